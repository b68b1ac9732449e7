//! What legacy hosts are told of a modern server's changes: a subscription of ours
//! for each session (requirements SUB rows, column LM).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::at::{At, Call, CallKind};
use super::modern::Verdict;
use super::relisten::{LISTS, filter};
use super::rewrite::with;
use crate::client::{RequestId, UpstreamId};
use crate::jsonrpc::{code, elements, get, get_path};
use crate::protocol::fault::Fault;
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, Outcome, PeerId, Request, Route};
use crate::time::{Instant, backoff};

/// The longest pause before another attempt.
const LONGEST: Duration = Duration::from_secs(32);

/// What a session hears.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Whether the host has said that it is ready.
    ready: bool,
    /// The resources that it has subscribed to, raw.
    uris: BTreeSet<String>,
    /// The subscription that the server has acknowledged.
    current: Option<(UpstreamId, RequestId)>,
    /// The one that is to take its place.
    next: Option<(UpstreamId, RequestId)>,
    /// The requests of the host that wait for that.
    waiting: BTreeMap<ExchangeId, String>,
    /// When it is tried again, and how often it was in vain.
    again: Option<Instant>,
    tries: u32,
}

impl Hearing {
    /// The requests that wait for a subscription.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.waiting.keys().copied()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(super) fn forget_waiting(&mut self, exchange: ExchangeId) {
        self.waiting.remove(&exchange);
    }
}

impl At<'_> {
    fn hearing(&mut self, peer: PeerId) -> Option<&mut Hearing> {
        Some(&mut self.server.bridged.get_mut(&peer)?.hearing)
    }

    /// The host is ready to hear.
    pub(super) fn hear(&mut self, peer: PeerId) {
        if let Some(hearing) = self.hearing(peer) {
            hearing.ready = true;
            self.listen_for(peer);
        }
    }

    pub(super) fn subscribe(&mut self, request: &Request<'_>) {
        let exchange = request.exchange;
        let most = self.server.config.limits.subscriptions;
        let offered = self.server.modern.discovered.as_deref().unwrap_or("{}");
        let offers = get_path(offered, &["capabilities", "resources", "subscribe"]);
        if offers != Some("true") {
            return self.refuse(exchange, &Fault::method_not_found(method::SUBSCRIBE));
        }
        let uri = request.message.params().and_then(|params| get(params, "uri"));
        let hearing = request.peer.and_then(|peer| Some((peer, self.hearing(peer)?)));
        let (Some(uri), Some((peer, hearing))) = (uri, hearing) else {
            let fault = Fault::new(code::INVALID_PARAMS, "uri is missing");
            return self.refuse(exchange, &fault);
        };
        if hearing.uris.contains(uri) && hearing.next.is_none() {
            return self.hub.endpoint.respond(exchange, Outcome::Result("{}"));
        }
        if hearing.uris.len() >= most {
            let fault = Fault::new(code::INTERNAL_ERROR, "Too many subscriptions: end some");
            return self.refuse(exchange, &fault);
        }
        hearing.uris.insert(uri.to_string());
        hearing.waiting.insert(exchange, uri.to_string());
        self.listen_for(peer);
    }

    pub(super) fn unsubscribe(&mut self, request: &Request<'_>) {
        let uri = request.message.params().and_then(|params| get(params, "uri"));
        if let (Some(peer), Some(uri)) = (request.peer, uri)
            && let Some(hearing) = self.hearing(peer)
            && hearing.uris.remove(uri)
        {
            self.listen_for(peer);
        }
        self.hub.endpoint.respond(request.exchange, Outcome::Result("{}"));
    }

    /// Opens a subscription for what a session is to hear now. The one before ends
    /// when the server has acknowledged it, so that nothing is missed.
    fn listen_for(&mut self, peer: PeerId) {
        let now = self.hub.now;
        let Verdict::Modern(id) = self.server.modern.verdict else {
            return self.listen_later(peer);
        };
        let offered = self.server.modern.discovered.as_deref().unwrap_or("{}");
        let offers =
            |group| get_path(offered, &["capabilities", group, "listChanged"]) == Some("true");
        let lists = LISTS.map(|(_, _, group)| offers(group));
        let Some(session) = self.server.bridged.get_mut(&peer) else { return };
        let hearing = &mut session.hearing;
        hearing.again = None;
        let filter = filter(lists.map(|offered| offered && hearing.ready), &hearing.uris);
        let superseded = hearing.next.take();
        if filter == "{}" {
            let current = hearing.current.take();
            return self.end_listening([current, superseded]);
        }
        let params = session.speaker.params(Some(&with("{}", "notifications", &filter)), None);
        if let Some(link) = self.server.links.get_mut(&id) {
            let wires = &mut self.hub.wires;
            let sent = link.upstream.request(wires, method::LISTEN, Some(&params), &[]);
            link.calls.insert(sent, Call::ours(CallKind::Hear { peer }, now));
            session.hearing.next = Some((id, sent));
        }
        self.end_listening([superseded, None]);
        self.touch(id);
    }

    fn end_listening(&mut self, which: [Option<(UpstreamId, RequestId)>; 2]) {
        for (id, request) in which.into_iter().flatten() {
            if let Some(link) = self.server.links.get_mut(&id)
                && link.take(request).is_some()
            {
                link.upstream.cancel(&mut self.hub.wires, request, None);
            }
            self.touch(id);
        }
    }

    /// The server tells something of a session's subscription.
    pub(super) fn on_heard(
        &mut self,
        id: UpstreamId,
        request: RequestId,
        peer: PeerId,
        method: &str,
        params: Option<&str>,
    ) {
        if method != method::ACKNOWLEDGED {
            let params = meta::with(params, &[(meta::SUBSCRIPTION_ID, None)]);
            let params = (params != "{}").then_some(params);
            self.hub.endpoint.notify(Route::Peer(peer), method, params.as_deref());
            return;
        }
        let Some(hearing) = self.hearing(peer) else { return };
        if hearing.next != Some((id, request)) {
            return;
        }
        hearing.next = None;
        let before = hearing.current.replace((id, request));
        let missed = core::mem::take(&mut hearing.tries) > 0;
        let honoured = params.and_then(|params| get(params, "notifications")).unwrap_or("{}");
        let honoured: BTreeSet<&str> =
            elements(get(honoured, "resourceSubscriptions").unwrap_or("[]")).collect();
        let waiting = core::mem::take(&mut hearing.waiting);
        for uri in waiting.values().filter(|uri| !honoured.contains(uri.as_str())) {
            hearing.uris.remove(uri);
        }
        let uris: Vec<String> = hearing.uris.iter().cloned().collect();
        for (exchange, uri) in waiting {
            if honoured.contains(uri.as_str()) {
                self.hub.endpoint.respond(exchange, Outcome::Result("{}"));
            } else {
                let fault = Fault::new(code::INVALID_PARAMS, "The server does not tell about it");
                self.refuse(exchange, &fault);
            }
        }
        self.end_listening([before, None]);
        if missed {
            self.tell_all_changed(peer, &uris);
        }
    }

    /// Everything may have changed while nobody listened.
    fn tell_all_changed(&mut self, peer: PeerId, uris: &[String]) {
        let offered = self.server.modern.discovered.as_deref().unwrap_or("{}");
        let changed = LISTS.iter().filter(|(_, _, group)| {
            get_path(offered, &["capabilities", group, "listChanged"]) == Some("true")
        });
        for (_, method, _) in changed {
            self.hub.endpoint.notify(Route::Peer(peer), method, None);
        }
        for uri in uris {
            let params = alloc::format!(r#"{{"uri":{uri}}}"#);
            let method = method::RESOURCE_UPDATED;
            self.hub.endpoint.notify(Route::Peer(peer), method, Some(&params));
        }
    }

    /// A subscription of a session has come to its end.
    pub(super) fn on_hearing_ended(&mut self, id: UpstreamId, request: RequestId, peer: PeerId) {
        let Some(hearing) = self.hearing(peer) else { return };
        if hearing.next == Some((id, request)) {
            hearing.next = None;
            let waiting = core::mem::take(&mut hearing.waiting);
            for uri in waiting.values() {
                hearing.uris.remove(uri);
            }
            for exchange in waiting.into_keys() {
                self.fail(exchange, "it refuses the subscription");
            }
        } else if hearing.current == Some((id, request)) {
            hearing.current = None;
        } else {
            return;
        }
        self.listen_later(peer);
    }

    fn listen_later(&mut self, peer: PeerId) {
        let (now, most) = (self.hub.now, self.server.config.limits.relistens);
        let Some(hearing) = self.hearing(peer) else { return };
        if hearing.tries >= most || hearing.current.is_some() || hearing.next.is_some() {
            return;
        }
        let again = now + backoff(Duration::from_secs(1), hearing.tries, LONGEST);
        hearing.again = Some(again);
        hearing.tries += 1;
        self.server.hear_again.set(again, peer);
    }

    /// Tries again what is due.
    pub(super) fn check_hearing(&mut self) {
        let now = self.hub.now;
        while let Some(peer) = self.server.hear_again.due(now) {
            let due = self.hearing(peer).and_then(|hearing| hearing.again.take_if(|at| *at <= now));
            if due.is_none() {
                continue;
            }
            self.want_modern();
            self.listen_for(peer);
        }
    }

    /// A session is over.
    pub(super) fn stop_hearing(&mut self, peer: PeerId) {
        if let Some(session) = self.server.bridged.remove(&peer) {
            self.end_listening([session.hearing.current, session.hearing.next]);
        }
    }
}
