//! Sessions that a server at a URL no longer knows, or whose process has died:
//! another one takes their place (requirements SES rows, TR-29).
//!
//! A server that was restarted answers 404 to what belongs to an old session. It
//! has done nothing then, so the request that was refused is sent again in the
//! new session, once, and the host notices nothing. What a process was doing when it
//! died may have been done: that fails. What the host had set there before is set
//! again.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};

use super::at::{At, Call, CallKind};
use super::rewrite;
use super::servers::refuses_handshakes;
use super::session::Session;
use super::translate::Speaker;
use crate::client::{Failure, UpstreamId};
use crate::jsonrpc::{Message, get};
use crate::protocol::method;
use crate::server::{ExchangeId, PeerId, Request};
use crate::time::Instant;

/// The sessions that can begin again.
#[derive(Debug, Default)]
pub(super) struct Lives {
    known: BTreeMap<PeerId, Life>,
    revivals: BTreeMap<PeerId, Revival>,
}

/// What a session with a server needs to begin again.
#[derive(Debug)]
struct Life {
    /// The parameters of `initialize`.
    initialize: Box<str>,
    /// Whether we begin it when it is needed, and not the host.
    lent: bool,
    /// Since when the server has agreed.
    open: Option<Instant>,
    /// Whether the host has said `notifications/initialized`.
    initialized: bool,
    /// The parameters of the last `logging/setLevel`.
    level: Option<String>,
    /// The resources that are subscribed to, as raw JSON.
    subscribed: BTreeSet<String>,
}

/// A session that is about to begin again.
#[derive(Debug)]
struct Revival {
    until: Instant,
    waiting: VecDeque<Request<'static>>,
}

impl Lives {
    /// The end has begun: nothing begins again any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.revivals.is_empty()
    }

    /// A host is gone.
    pub(super) fn bury(&mut self, peer: PeerId) {
        self.known.remove(&peer);
        self.revivals.remove(&peer);
    }

    /// A request that waits for a new session is no longer wanted.
    pub(super) fn forget_waiting(&mut self, exchange: ExchangeId) {
        for revival in self.revivals.values_mut() {
            revival.waiting.retain(|request| request.exchange != exchange);
        }
    }

    /// The requests that wait for new sessions.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.revivals.values().flat_map(|it| it.waiting.iter().map(|request| request.exchange))
    }

    /// The sessions of hosts: each with the parameters of its `initialize`, whether it is
    /// ready, and those of its `logging/setLevel`. They may begin again from now on.
    pub(super) fn lend_all(&mut self) -> impl Iterator<Item = (PeerId, &str, bool, Option<&str>)> {
        self.known.iter_mut().map(|(peer, life)| {
            life.lent = true;
            (*peer, &*life.initialize, life.initialized, life.level.as_deref())
        })
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.revivals.values().map(|revival| revival.until).min()
    }
}

impl At<'_> {
    /// A host begins a session.
    pub(super) fn born(&mut self, peer: PeerId, initialize: &str) {
        let life = Life {
            initialize: initialize.into(),
            lent: false,
            open: None,
            initialized: false,
            level: None,
            subscribed: BTreeSet::new(),
        };
        self.server.lives.known.insert(peer, life);
    }

    /// A session that has begun elsewhere may begin here, when it is needed.
    pub(super) fn lend(
        &mut self,
        peer: PeerId,
        initialize: &str,
        initialized: bool,
        level: Option<String>,
    ) {
        self.born(peer, initialize);
        if let Some(life) = self.server.lives.known.get_mut(&peer) {
            (life.lent, life.initialized, life.level) = (true, initialized, level);
        }
    }

    /// Whether a session has begun here, or may.
    pub(super) fn knows(&self, peer: PeerId) -> bool {
        self.server.lives.known.contains_key(&peer)
    }

    /// A session has set this level. Says whether there is one that has begun here.
    pub(super) fn keep_level(&mut self, peer: PeerId, params: &str) -> bool {
        let Some(life) = self.server.lives.known.get_mut(&peer) else { return false };
        life.level = Some(params.into());
        life.open.is_some() && !self.server.lives.revivals.contains_key(&peer)
    }

    fn is_lent(&self, peer: PeerId) -> bool {
        self.server.lives.known.get(&peer).is_some_and(|life| life.lent)
    }

    /// The server has agreed.
    pub(super) fn opened(&mut self, id: UpstreamId) {
        let peer = self.server.links.get(&id).and_then(|link| link.peer);
        if let Some(life) = peer.and_then(|peer| self.server.lives.known.get_mut(&peer)) {
            life.open = Some(self.hub.now);
        }
    }

    /// A copy of a request, if it may have to be sent again, or sets something that
    /// has to be set again.
    pub(super) fn spare(&self, request: &Request<'_>) -> Option<Box<Request<'static>>> {
        self.server.lives.known.get(&request.peer?)?;
        let kept =
            self.server.config.place.is_url() || method::needs_session(request.message.method());
        kept.then(|| Box::new(request.to_owned()))
    }

    /// The server has done what a host asked.
    pub(super) fn remember(&mut self, request: &Request<'_>) {
        let most = self.server.config.limits.subscriptions;
        let life = request.peer.and_then(|peer| self.server.lives.known.get_mut(&peer));
        let Some(life) = life else { return };
        let params = request.message.params().unwrap_or("{}");
        match request.message.method() {
            method::SET_LEVEL => life.level = Some(params.into()),
            method::SUBSCRIBE if life.subscribed.len() < most => {
                life.subscribed.extend(get(params, "uri").map(ToString::to_string));
            }
            method::UNSUBSCRIBE => {
                life.subscribed.retain(|uri| Some(uri.as_str()) != get(params, "uri"));
            }
            _ => {}
        }
    }

    /// Whether a notification of a host may go to the server now.
    pub(super) fn may_notify(&mut self, peer: PeerId, message: &Message<'_>) -> bool {
        if let Some(life) = self.server.lives.known.get_mut(&peer) {
            life.initialized |= message.method() == method::INITIALIZED;
        }
        !self.server.lives.revivals.contains_key(&peer)
    }

    /// Keeps a request back if its session is just beginning again. Gives it back
    /// if not.
    pub(super) fn await_revival<'a>(&mut self, request: Request<'a>) -> Option<Request<'a>> {
        let revival = request.peer.and_then(|peer| self.server.lives.revivals.get_mut(&peer));
        let Some(revival) = revival else { return Some(request) };
        if revival.waiting.len() < self.server.config.limits.waiting {
            revival.waiting.push_back(request.into_owned());
        } else {
            self.too_many_waiting(request.exchange);
        }
        None
    }

    /// The server did not know the session of a request. Says whether the request
    /// is sent again.
    pub(super) fn send_again(&mut self, id: UpstreamId, request: Request<'static>) -> bool {
        let Some(peer) = request.peer else { return false };
        if self.server.sessions.get(&peer) == Some(&id) {
            // If the last one has only just begun, another is no help.
            if !self.is_settled(peer) || self.room().is_err() {
                return false;
            }
            self.revive(peer);
        }
        self.await_revival(request).is_none()
    }

    /// A request in a session whose server is no more: another takes its place.
    pub(super) fn begin_again(&mut self, request: Request<'_>) {
        let exchange = request.exchange;
        let Some(peer) = request.peer.filter(|peer| self.has_worked(*peer)) else {
            return self.no_server(exchange);
        };
        if let Err(fault) = self.room() {
            return self.refuse(exchange, &fault);
        }
        self.revive(peer);
        // It has room for one.
        self.await_revival(request);
    }

    /// Whether a session has ever begun, or is to.
    fn has_worked(&self, peer: PeerId) -> bool {
        let life = self.server.lives.known.get(&peer);
        life.is_some_and(|life| life.lent || life.open.is_some())
    }

    /// Whether a session has worked for a while.
    fn is_settled(&self, peer: PeerId) -> bool {
        let since = self.server.lives.known.get(&peer).and_then(|life| life.open);
        since.is_some_and(|since| {
            self.hub.now.since(since) >= self.server.config.limits.revive_pause
        })
    }

    /// Begins another session with the server for that of a host.
    fn revive(&mut self, peer: PeerId) {
        let Some(life) = self.server.lives.known.get(&peer) else { return };
        let until = self.hub.now + self.server.config.limits.handshake;
        let params = life.initialize.clone();
        self.server.lives.revivals.insert(peer, Revival { until, waiting: VecDeque::new() });
        let id = self.add_link(Some(peer));
        self.initialize(id, &params, CallKind::Revive { peer });
        self.server.sessions.insert(peer, id);
    }

    /// The server has answered `initialize` for the new session.
    pub(super) fn on_revived(&mut self, id: UpstreamId, peer: PeerId, message: &Message<'_>) {
        let Some(revision) = message.result().and_then(rewrite::agreed) else {
            if message.error().is_some_and(refuses_handshakes) && self.is_lent(peer) {
                return self.bridge_instead(id, peer);
            }
            return self.on_revival_failure(peer, "it refuses to begin our session again", false);
        };
        self.started(id);
        self.note_tasks(id, message.result().unwrap_or("{}"));
        let life = self.server.lives.known.get_mut(&peer);
        let (Some(life), Some(link)) = (life, self.server.links.get_mut(&id)) else { return };
        let (wires, now) = (&mut self.hub.wires, self.hub.now);
        link.upstream.speak(revision);
        if life.initialized {
            link.upstream.notify(wires, method::INITIALIZED, None);
            link.upstream.listen(wires);
        }
        let level = life.level.clone().map(|params| (method::SET_LEVEL, params));
        let subscribed = life.subscribed.iter();
        let subscribed =
            subscribed.map(|uri| (method::SUBSCRIBE, alloc::format!(r#"{{"uri":{uri}}}"#)));
        for (method, params) in level.into_iter().chain(subscribed) {
            let request = link.upstream.request(wires, method, Some(&params), &[]);
            link.calls.insert(request, Call::ours(CallKind::Restore, now));
        }
        life.open = Some(now);
        self.touch(id);
        let revival = self.server.lives.revivals.remove(&peer);
        for request in revival.into_iter().flat_map(|revival| revival.waiting) {
            let kind = CallKind::Relay { exchange: request.exchange, logs: true };
            self.relay_legacy(id, &request, kind);
        }
    }

    /// The server knows no sessions: the one of a host goes on without.
    fn bridge_instead(&mut self, id: UpstreamId, peer: PeerId) {
        self.note_only_modern();
        self.server.sessions.remove(&peer);
        self.stop_link(id);
        let life = self.server.lives.known.remove(&peer);
        let waiting = self.server.lives.revivals.remove(&peer).map(|it| it.waiting);
        let revision = self.hub.endpoint.revision_of(peer);
        if let (Some(life), Some(revision)) = (life, revision) {
            let mut speaker = Speaker::new(revision, Some(&life.initialize));
            speaker.level =
                life.level.and_then(|params| get(&params, "level").map(ToString::to_string));
            self.server.bridged.insert(peer, Session::new(speaker));
        }
        for request in waiting.into_iter().flatten() {
            self.on_host_request(request);
        }
    }

    /// There is no new session. It may be tried again when it is needed; if not, the
    /// host has to begin anew.
    pub(super) fn on_revival_failure(&mut self, peer: PeerId, why: &str, again: bool) {
        let Some(revival) = self.server.lives.revivals.remove(&peer) else { return };
        for request in revival.waiting {
            self.fail(request.exchange, why);
        }
        if let Some(id) = self.server.sessions.remove(&peer) {
            self.stop_link(id);
        }
        if !again && self.is_lent(peer) {
            // Other servers may still be there for it.
            self.server.lives.bury(peer);
        } else if !again {
            self.server.lives.bury(peer);
            self.hub.deserted |= self.hub.endpoint.is_on_stdio(peer);
            self.hub.endpoint.end_peer(peer);
        }
    }

    /// The server has ended the session of a host, or has died. Says whether the
    /// session goes on: at once, or when its host next needs it.
    pub(super) fn lost(&mut self, peer: PeerId, failure: &Failure) -> bool {
        let at_once = self.is_settled(peer) && self.room().is_ok();
        match failure {
            Failure::Exited(..) | Failure::Broken if self.has_worked(peer) && !at_once => {
                self.server.sessions.remove(&peer);
                true
            }
            Failure::Exited(..) | Failure::Broken | Failure::SessionLost if at_once => {
                self.revive(peer);
                true
            }
            _ if self.is_lent(peer) => {
                self.server.sessions.remove(&peer);
                true
            }
            _ => false,
        }
    }

    /// Gives up new sessions that take too long to begin.
    pub(super) fn check_revivals(&mut self) {
        let now = self.hub.now;
        let late = |(_, revival): &(&PeerId, &Revival)| revival.until <= now;
        while let Some(peer) = self.server.lives.revivals.iter().find(late).map(|(peer, _)| *peer) {
            self.on_revival_failure(peer, "it does not begin our session again", true);
        }
    }
}
