//! One server, with what all of them share.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use super::config::Server as Config;
use super::modern::Modern;
use super::project::Projection;
use super::revive::Lives;
use super::shared::Shared;
use super::starts::Starts;
use crate::client::{RequestId, Upstream, UpstreamId, Wires};
use crate::event;
use crate::output::Output;
use crate::protocol::revision::Revision;
use crate::server::{AskId, Endpoint, ExchangeId, PeerId, Request};
use crate::time::Instant;

/// Names a server of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ServerId(pub(super) u64);

/// What all servers share.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) endpoint: Endpoint,
    pub(super) wires: Wires,
    pub(super) output: Output,
    /// Who asked each question to a host.
    pub(super) asks: BTreeMap<AskId, (UpstreamId, String)>,
    /// The server that each connection leads to.
    pub(super) owners: BTreeMap<UpstreamId, ServerId>,
    /// Connections whose deadline may have changed since it was last looked at.
    pub(super) touched: BTreeSet<UpstreamId>,
    pub(super) timed: BTreeMap<UpstreamId, Instant>,
    pub(super) now: Instant,
    /// Whether standard output has ended because the server did.
    pub(super) deserted: bool,
    next: u64,
}

impl Hub {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            wires: Wires::default(),
            output: Output::default(),
            asks: BTreeMap::new(),
            owners: BTreeMap::new(),
            touched: BTreeSet::new(),
            timed: BTreeMap::new(),
            now: Instant::START,
            deserted: false,
            next: 1,
        }
    }

    /// It is `now`, until told otherwise.
    pub(super) fn at(&mut self, now: Instant) {
        self.now = now;
        self.endpoint.at(now);
        self.wires.at(now);
    }

    pub(super) fn number(&mut self) -> u64 {
        let n = self.next;
        self.next += 1;
        n
    }

    pub(super) fn warn(&mut self, text: String) {
        self.output.tell(event::Event::Warning(text));
    }
}

/// All that is known of one server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) config: Config,
    pub(super) links: BTreeMap<UpstreamId, Box<Link>>,
    /// Its session for each legacy session.
    pub(super) sessions: BTreeMap<PeerId, UpstreamId>,
    pub(super) modern: Modern,
    pub(super) shared: Shared,
    pub(super) lives: Lives,
    pub(super) starts: Starts,
    /// Where each running request of a host has gone.
    pub(super) routes: BTreeMap<ExchangeId, (UpstreamId, RequestId)>,
    pub(super) call_sweep: Option<Instant>,
}

impl Server {
    pub(super) fn new(id: ServerId, config: Config) -> Self {
        Self {
            id,
            config,
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            modern: Modern::default(),
            shared: Shared::default(),
            lives: Lives::default(),
            starts: Starts::default(),
            routes: BTreeMap::new(),
            call_sweep: None,
        }
    }

    /// When something of it is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let due = [
            self.modern.deadline(),
            self.shared.deadline(&self.config.limits),
            self.lives.deadline(),
            self.call_sweep,
            self.config.eager.then_some(Instant::START),
        ];
        due.into_iter().flatten().min()
    }
}

/// One server at work.
#[derive(Debug)]
pub(super) struct At<'a> {
    pub(super) server: &'a mut Server,
    pub(super) hub: &'a mut Hub,
}

impl At<'_> {
    /// A new connection to the server, not used yet.
    pub(super) fn add_link(&mut self, peer: Option<PeerId>) -> UpstreamId {
        let id = UpstreamId(self.hub.number());
        let config = &self.server.config;
        let upstream =
            Upstream::new(id, &config.name, config.place.clone(), config.upstream.clone());
        let link =
            Link { upstream, peer, works: false, calls: BTreeMap::new(), asked: BTreeMap::new() };
        self.server.links.insert(id, Box::new(link));
        self.hub.owners.insert(id, self.server.id);
        id
    }

    pub(super) fn touch(&mut self, id: UpstreamId) {
        self.hub.touched.insert(id);
    }

    /// Forgets a connection of which nothing is left.
    pub(super) fn bury(&mut self, id: UpstreamId) {
        let Some(link) = self.server.links.get(&id) else { return };
        if link.upstream.has_ended() && link.upstream.is_gone() && link.calls.is_empty() {
            self.server.links.remove(&id);
            self.hub.owners.remove(&id);
            self.hub.timed.remove(&id);
        }
    }

    /// Does what is due.
    pub(super) fn tick(&mut self) {
        self.begin();
        self.sweep_calls();
        self.check_probe();
        self.check_shared();
        self.check_revivals();
        self.check_relearning();
        self.check_relistening();
    }
}

/// A connection, or session, with the server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) upstream: Upstream,
    /// The legacy session that it is for; none if it is shared.
    pub(super) peer: Option<PeerId>,
    /// Whether a handshake has succeeded on it.
    pub(super) works: bool,
    pub(super) calls: BTreeMap<RequestId, Call>,
    /// Questions of the server that are with the host, by their raw ids.
    pub(super) asked: BTreeMap<String, AskId>,
}

impl Link {
    /// A call is over. While none runs no room is kept for any: most sessions are
    /// idle.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Call> {
        let call = self.calls.remove(&request);
        if self.calls.is_empty() {
            self.calls = BTreeMap::new();
        }
        call
    }
}

/// A request of ours to the server.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    /// The host's progress token, as raw JSON.
    pub(super) token: Option<String>,
    /// What its host gets, if that speaks an older revision.
    pub(super) projection: Option<Projection>,
    /// The request, if it may have to be sent again.
    pub(super) spare: Option<Box<Request<'static>>>,
    /// When it was sent.
    pub(super) sent: Instant,
    /// The same, or when it last showed progress.
    pub(super) since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallKind {
    /// For a host.
    Relay { exchange: ExchangeId, logs: bool },
    /// A modern host's `tools/list`.
    ListTools { exchange: ExchangeId, logs: bool },
    /// A host's `initialize`, and what it will speak.
    Initialize { exchange: ExchangeId, host: Revision },
    /// A host's `subscriptions/listen`.
    Listen { exchange: ExchangeId },
    /// Our own `server/discover`.
    Probe,
    /// Our own `initialize`.
    Open,
    /// Our own `initialize`, for a session that begins again.
    Revive { peer: PeerId },
    /// What nobody waits for: what a host had set in a session that has begun again.
    Restore,
    /// Our own `tools/list`.
    Relearn,
}

impl Call {
    /// One that no host waits for.
    pub(super) fn ours(kind: CallKind, now: Instant) -> Self {
        Self { kind, token: None, projection: None, spare: None, sent: now, since: now }
    }
}

impl CallKind {
    pub(super) fn exchange(self) -> Option<ExchangeId> {
        match self {
            Self::Relay { exchange, .. }
            | Self::ListTools { exchange, .. }
            | Self::Initialize { exchange, .. }
            | Self::Listen { exchange } => Some(exchange),
            Self::Probe | Self::Open | Self::Revive { .. } | Self::Restore | Self::Relearn => None,
        }
    }
}
