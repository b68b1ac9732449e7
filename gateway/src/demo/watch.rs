//! Who hears of changes: legacy sessions that have subscribed, and modern
//! requests that listen.

use mcpx_core::jsonrpc::{code, elements, get, string};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::{meta, method};
use mcpx_core::server::{ExchangeId, Outcome, Route};

use super::machine::Demo;
use super::requests::{Answer, Call, not_found, required};
use super::resources::{self, COUNTER};
use super::shapes;

/// A `subscriptions/listen` that runs.
#[derive(Debug)]
pub(super) struct Listen {
    /// Whether its filter has `demo://counter`.
    watches: bool,
    /// The lists whose changes it has.
    lists: Vec<List>,
}

/// A list that can be said to change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    Tools,
    Prompts,
}

impl List {
    /// Its member in a filter.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Prompts => "promptsListChanged",
        }
    }

    fn notification(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_CHANGED,
            Self::Prompts => method::PROMPTS_CHANGED,
        }
    }
}

impl Demo {
    /// A legacy session begins or ceases to hear of changes to a resource.
    /// Only one of them ever changes, so no other is remembered.
    pub(super) fn subscribe(&mut self, call: &Call<'_>, watch: bool) -> Result<String, Fault> {
        let uri = required(call.params, "uri")?;
        if !resources::exists(&uri) {
            return Err(not_found(call.host.revision, &uri));
        }
        if uri == COUNTER
            && let Some(session) = call.peer.and_then(|peer| self.sessions.get_mut(&peer))
        {
            session.watches = watch;
        }
        Ok(shapes::complete(call.host.revision, ""))
    }

    /// A modern host listens: the request runs until one of us ends it.
    pub(super) fn listen(&mut self, call: &Call<'_>) -> Result<Answer, Fault> {
        let unfit = |why| Fault::new(code::INVALID_PARAMS, why);
        let filter = get(call.params, "notifications")
            .filter(|filter| filter.starts_with('{'))
            .ok_or_else(|| unfit("`notifications` is missing or no object"))?;
        let wanted = get(filter, "resourceSubscriptions").unwrap_or("[]");
        if !wanted.starts_with('[') {
            return Err(unfit("`resourceSubscriptions` must be an array"));
        }
        let (mut uris, mut watches) = (Vec::new(), false);
        for raw in elements(wanted) {
            let uri = string(raw).ok_or_else(|| unfit("A resource is named by a string"))?;
            if resources::exists(&uri) {
                uris.push(raw);
                watches |= uri == COUNTER;
            }
        }
        let mut lists = vec![List::Tools, List::Prompts];
        lists.retain(|list| get(filter, list.member()) == Some("true"));
        // The list of resources never changes: that part is not honoured.
        let mut honoured: Vec<String> =
            lists.iter().map(|list| format!(r#""{}":true"#, list.member())).collect();
        if !uris.is_empty() {
            honoured.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        let honoured = honoured.join(",");
        let subscription = self.subscription(call.exchange);
        let params = format!(r#"{{{subscription},"notifications":{{{honoured}}}}}"#);
        let route = Route::Exchange(call.exchange);
        if !self.endpoint.notify(route, method::ACKNOWLEDGED, Some(&params)) {
            let why = "Listening needs an event stream: accept text/event-stream";
            return Err(Fault::new(code::INVALID_REQUEST, why));
        }
        self.listens.insert(call.exchange, Listen { watches, lists });
        Ok(Answer::Later)
    }

    /// Changes `demo://counter` and tells everybody who wants to know.
    pub(super) fn touch(&mut self) {
        self.counter = self.counter.wrapping_add(1);
        let params = format!(r#"{{"uri":"{COUNTER}"}}"#);
        for (&peer, _) in self.sessions.iter().filter(|(_, session)| session.watches) {
            self.endpoint.notify(Route::Peer(peer), method::RESOURCE_UPDATED, Some(&params));
        }
        for (&exchange, _) in self.listens.iter().filter(|(_, listen)| listen.watches) {
            let subscription = self.subscription(exchange);
            let params = format!(r#"{{{subscription},"uri":"{COUNTER}"}}"#);
            let route = Route::Exchange(exchange);
            self.endpoint.notify(route, method::RESOURCE_UPDATED, Some(&params));
        }
    }

    /// Tells everybody who wants to know that a list has changed.
    pub(super) fn announce(&mut self, list: List) {
        for &peer in self.sessions.keys() {
            self.endpoint.notify(Route::Peer(peer), list.notification(), None);
        }
        for (&exchange, _) in self.listens.iter().filter(|(_, it)| it.lists.contains(&list)) {
            let params = format!("{{{}}}", self.subscription(exchange));
            self.endpoint.notify(Route::Exchange(exchange), list.notification(), Some(&params));
        }
    }

    /// Ends what listens, gracefully.
    pub(super) fn end_listens(&mut self) {
        for (exchange, _) in std::mem::take(&mut self.listens) {
            let subscription = self.subscription(exchange);
            let result = format!(r#"{{"resultType":"complete",{subscription}}}"#);
            self.endpoint.respond(exchange, Outcome::Result(&result));
        }
    }

    /// The `_meta` member that says which request a message belongs to.
    fn subscription(&self, exchange: ExchangeId) -> String {
        let (key, id) = (meta::SUBSCRIPTION_ID, self.endpoint.id_of(exchange).unwrap_or("null"));
        format!(r#""_meta":{{"{key}":{id}}}"#)
    }
}

#[cfg(test)]
mod tests {
    use mcpx_core::driver::{CloseReason, Input};
    use mcpx_core::protocol::revision::{Era, Revision};
    use serde_json::json;

    use super::super::testing::{Bench, Wire, everywhere, text};
    use super::*;

    #[test]
    fn legacy_sessions_hear_what_they_have_subscribed_to() {
        for (wire, revision) in everywhere().filter(|(_, r)| r.era() == Era::Legacy) {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let other = bench.host(wire, revision, json!({}));
            let stream = bench.stream(&host);
            let counter = json!({"uri": COUNTER});
            bench.call(&other, "touch", json!({}));
            bench.result(&host, "resources/subscribe", counter.clone());
            bench.result(&host, "resources/subscribe", json!({"uri": "demo://readme"}));
            bench.read(stream);
            let touched = bench.call(&other, "touch", json!({}));
            assert_eq!(text(&touched), "The counter is at 2");
            let heard = bench.read(stream);
            assert_eq!(heard.len(), 1);
            assert_eq!(heard[0]["method"], "notifications/resources/updated");
            assert_eq!(heard[0]["params"], counter);
            bench.result(&host, "resources/unsubscribe", counter);
            bench.call(&other, "touch", json!({}));
            assert!(bench.read(stream).is_empty());
            let unknown = json!({"uri": "demo://no"});
            assert_eq!(bench.error(&host, "resources/subscribe", unknown).0, -32002);
        }
    }

    #[test]
    fn modern_listeners_hear_what_their_filter_has() {
        for wire in [Wire::Pipe, Wire::Http] {
            let mut bench = Bench::new();
            let host = bench.host(wire, Revision::R2026_07_28, json!({}));
            let filter = json!({
                "toolsListChanged": true,
                "resourceSubscriptions": [COUNTER, "demo://no", "demo://readme"],
            });
            let stream =
                bench.start(&host, "subscriptions/listen", json!({"notifications": filter}));
            let id = bench.last_id();
            let heard = bench.read(stream);
            assert_eq!(heard.len(), 1);
            assert_eq!(heard[0]["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(heard[0]["params"]["_meta"], json!({meta::SUBSCRIPTION_ID: id}));
            let honoured = json!({
                "toolsListChanged": true,
                "resourceSubscriptions": [COUNTER, "demo://readme"],
            });
            assert_eq!(heard[0]["params"]["notifications"], honoured);

            let toucher = bench.host(Wire::Pipe, Revision::R2026_07_28, json!({}));
            bench.call(&toucher, "touch", json!({}));
            let heard = bench.read(stream);
            assert_eq!(heard.len(), 1);
            assert_eq!(heard[0]["method"], "notifications/resources/updated");
            assert_eq!(heard[0]["params"]["uri"], COUNTER);
            assert_eq!(heard[0]["params"]["_meta"], json!({meta::SUBSCRIPTION_ID: id}));

            bench.input(Input::Closed { conn: stream, why: CloseReason::Reset });
            assert!(bench.demo.listens.is_empty());
        }
    }

    #[test]
    fn a_filter_without_the_counter_hears_nothing() {
        let mut bench = Bench::new();
        let host = bench.host(Wire::Pipe, Revision::R2026_07_28, json!({}));
        let filter = json!({"resourceSubscriptions": ["demo://readme"]});
        bench.start(&host, "subscriptions/listen", json!({"notifications": filter}));
        bench.start(&host, "subscriptions/listen", json!({"notifications": {}}));
        assert_eq!(bench.read(host.conn).len(), 2);
        assert_eq!(bench.request(&host, "tools/call", json!({"name": "touch"})).len(), 1);
    }

    #[test]
    fn a_filter_without_its_form_is_refused() {
        let mut bench = Bench::new();
        let host = bench.host(Wire::Http, Revision::R2026_07_28, json!({}));
        for params in [
            json!({}),
            json!({"notifications": []}),
            json!({"notifications": {"resourceSubscriptions": "x"}}),
            json!({"notifications": {"resourceSubscriptions": [1]}}),
        ] {
            assert_eq!(bench.error(&host, "subscriptions/listen", params).0, -32602);
        }
    }
}
