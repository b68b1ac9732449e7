//! What modern hosts listen to before a legacy server (requirements SUB rows, column
//! ML): `resources/subscribe` for each resource that somebody wants, once, and the
//! notifications of the shared connection to all that want them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::at::{At, Call, CallKind};
use super::relisten::{LISTS, filter};
use super::rewrite::with;
use crate::client::{RequestId, UpstreamId};
use crate::jsonrpc::{elements, get, get_path, string};
use crate::protocol::method;
use crate::server::{ExchangeId, Request};
use crate::time::{Instant, backoff};

/// The longest pause before the connection is begun again.
const LONGEST: Duration = Duration::from_secs(32);

/// Those who listen.
#[derive(Debug, Default)]
pub(super) struct Watches {
    all: BTreeMap<ExchangeId, Watch>,
    /// The resources that the server was asked to tell about, raw.
    subscribed: BTreeSet<String>,
    /// Those of them that it has not answered about.
    asked: BTreeMap<(UpstreamId, RequestId), String>,
    /// When the connection is begun again, and how often it was in vain.
    again: Option<Instant>,
    tries: u32,
}

/// What somebody listens to.
#[derive(Debug)]
struct Watch {
    /// The lists, by the places of their names in [`LISTS`].
    lists: [bool; 3],
    uris: BTreeSet<String>,
    told: bool,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.again
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.all.keys().copied()
    }
}

/// Whether news of a resource concerns who wants another: it may lie below that
/// (SUB-10).
pub(super) fn concerns(uri: &str, wanted: &str) -> bool {
    match (string(uri), string(wanted)) {
        (Some(uri), Some(wanted)) => uri.starts_with(&*wanted),
        _ => uri == wanted,
    }
}

impl At<'_> {
    /// A host listens.
    pub(super) fn watch(&mut self, id: UpstreamId, request: &Request<'_>) {
        let wanted = request.message.params().and_then(|params| get(params, "notifications"));
        let wanted = wanted.unwrap_or("{}");
        let offered = get(self.server.shared.introduction(), "capabilities").unwrap_or("{}");
        let offers = |path: [&str; 2]| get_path(offered, &path) == Some("true");
        let lists = LISTS.map(|(member, _, group)| {
            get(wanted, member) == Some("true") && offers([group, "listChanged"])
        });
        let mut uris = BTreeSet::new();
        if offers(["resources", "subscribe"]) {
            let wanted = elements(get(wanted, "resourceSubscriptions").unwrap_or("[]"));
            let most = self.server.config.limits.subscriptions;
            uris.extend(wanted.filter(|uri| uri.starts_with('"')).take(most).map(String::from));
        }
        if let Some(link) = self.server.links.get_mut(&id) {
            link.upstream.listen(&mut self.hub.wires);
        }
        let watch = Watch { lists, uris, told: false };
        self.server.watches.all.insert(request.exchange, watch);
        self.subscribe_all(id);
        self.acknowledge();
        self.touch(id);
    }

    /// Asks the server to tell about what somebody wants and it was not asked for.
    fn subscribe_all(&mut self, id: UpstreamId) {
        let now = self.hub.now;
        let watches = &mut self.server.watches;
        let wanted = watches.all.values().flat_map(|watch| &watch.uris);
        let new: Vec<String> =
            wanted.filter(|uri| !watches.subscribed.contains(*uri)).cloned().collect();
        let Some(link) = self.server.links.get_mut(&id) else { return };
        for uri in new {
            if !watches.subscribed.insert(uri.clone()) {
                continue;
            }
            let params = alloc::format!(r#"{{"uri":{uri}}}"#);
            let wires = &mut self.hub.wires;
            let sent = link.upstream.request(wires, method::SUBSCRIBE, Some(&params), &[]);
            link.calls.insert(sent, Call::ours(CallKind::Subscribe, now));
            watches.asked.insert((id, sent), uri);
        }
        self.sweep_calls_later();
    }

    /// The server has answered about a resource.
    pub(super) fn on_subscribed(&mut self, id: UpstreamId, request: RequestId, well: bool) {
        let watches = &mut self.server.watches;
        let Some(uri) = watches.asked.remove(&(id, request)) else { return };
        if !well {
            watches.subscribed.remove(&uri);
            for watch in watches.all.values_mut() {
                watch.uris.remove(&uri);
            }
        }
        self.acknowledge();
    }

    /// Tells those who have not been told that all they want is arranged.
    fn acknowledge(&mut self) {
        let asked: BTreeSet<&String> = self.server.watches.asked.values().collect();
        let ready =
            |watch: &Watch| !watch.told && !watch.uris.iter().any(|uri| asked.contains(uri));
        let all = self.server.watches.all.iter();
        let ready: Vec<ExchangeId> =
            all.filter(|(_, watch)| ready(watch)).map(|(exchange, _)| *exchange).collect();
        for exchange in ready {
            let Some(watch) = self.server.watches.all.get_mut(&exchange) else { continue };
            watch.told = true;
            let filter = filter(watch.lists, &watch.uris);
            let params = with("{}", "notifications", &filter);
            if !self.acknowledge_part(exchange, Some(&params)) {
                self.hub.tell_listen(exchange, method::ACKNOWLEDGED, Some(&params));
            }
        }
    }

    /// A notification of the connection that all share.
    pub(super) fn tell_watches(&mut self, method: &str, params: Option<&str>) {
        let uri = params.and_then(|params| get(params, "uri")).unwrap_or_default();
        let list = LISTS.iter().position(|(_, name, _)| *name == method);
        let wants = |watch: &Watch| match list {
            Some(place) => watch.lists[place],
            None => {
                method == method::RESOURCE_UPDATED
                    && watch.uris.iter().any(|wanted| concerns(uri, wanted))
            }
        };
        let all = self.server.watches.all.iter();
        let who: Vec<ExchangeId> = all
            .filter(|(_, watch)| watch.told && wants(watch))
            .map(|(exchange, _)| *exchange)
            .collect();
        for exchange in who {
            self.hub.tell_listen(exchange, method, params);
        }
    }

    /// A host does not listen any more. Says whether it did.
    pub(super) fn unwatch(&mut self, exchange: ExchangeId) -> bool {
        let now = self.hub.now;
        let watches = &mut self.server.watches;
        let Some(gone) = watches.all.remove(&exchange) else { return false };
        if watches.all.is_empty() {
            watches.again = None;
        }
        let Some(id) = self.server.shared.link() else { return true };
        let Some(link) = self.server.links.get_mut(&id) else { return true };
        for uri in gone.uris {
            if watches.all.values().any(|watch| watch.uris.contains(&uri))
                || !watches.subscribed.remove(&uri)
            {
                continue;
            }
            let params = alloc::format!(r#"{{"uri":{uri}}}"#);
            let wires = &mut self.hub.wires;
            let sent = link.upstream.request(wires, method::UNSUBSCRIBE, Some(&params), &[]);
            link.calls.insert(sent, Call::ours(CallKind::Restore, now));
        }
        self.touch(id);
        true
    }

    /// The shared connection is gone: another is begun for those who listen.
    pub(super) fn watch_again_later(&mut self) {
        let watches = &mut self.server.watches;
        watches.subscribed.clear();
        watches.asked.clear();
        if !watches.all.is_empty() {
            let pause = backoff(Duration::from_secs(1), watches.tries, LONGEST);
            watches.tries = watches.tries.saturating_add(1);
            watches.again = Some(self.hub.now + pause);
        }
    }

    pub(super) fn check_watches(&mut self) {
        if self.server.watches.again.is_none_or(|at| at > self.hub.now) {
            return;
        }
        self.server.watches.again = None;
        if self.server.shared.is_absent() {
            match self.may_initialize() {
                Ok(()) => self.open_shared(),
                Err(_) => self.watch_again_later(),
            }
        }
    }

    /// A connection for those who listen is there again. Everything may have changed.
    pub(super) fn watch_again(&mut self, id: UpstreamId) {
        if self.server.watches.all.is_empty() {
            return;
        }
        (self.server.watches.again, self.server.watches.tries) = (None, 0);
        if let Some(link) = self.server.links.get_mut(&id) {
            link.upstream.listen(&mut self.hub.wires);
        }
        self.subscribe_all(id);
        for (_, method, _) in LISTS {
            self.tell_watches(method, None);
        }
        let watches = &self.server.watches;
        let told = watches.all.values().flat_map(|watch| &watch.uris);
        let uris: BTreeSet<String> = told.cloned().collect();
        for uri in uris {
            let params = alloc::format!(r#"{{"uri":{uri}}}"#);
            self.tell_watches(method::RESOURCE_UPDATED, Some(&params));
        }
        self.touch(id);
    }
}
