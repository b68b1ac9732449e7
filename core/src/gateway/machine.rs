//! The gateway as a machine: every input to its owner, every event on its way.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::net::IpAddr;

use super::config::Config;
use super::modern::Modern;
use super::pressure::Pressure;
use super::project::Projection;
use super::revive::Lives;
use super::shared::Shared;
use super::shutdown::Phase;
use super::starts::Starts;
use crate::client::{RequestId, Upstream, UpstreamId, Wires};
use crate::driver::{Action, ConnId, Input, ListenerId, Machine};
use crate::entropy::Entropy;
use crate::event;
use crate::output::Output;
use crate::protocol::revision::Revision;
use crate::server::{self, AskId, Endpoint, ExchangeId, PeerId, Request};
use crate::time::Instant;
use crate::wire::http1::RequestHead;

/// A gateway in front of one server. See the [module](super).
#[derive(Debug)]
pub struct Gateway {
    pub(super) config: Config,
    pub(super) endpoint: Endpoint,
    pub(super) wires: Wires,
    pub(super) output: Output,
    pub(super) links: BTreeMap<UpstreamId, Box<Link>>,
    /// The server's session of each legacy session.
    pub(super) sessions: BTreeMap<PeerId, UpstreamId>,
    pub(super) modern: Modern,
    pub(super) shared: Shared,
    pub(super) lives: Lives,
    pub(super) starts: Starts,
    /// Where each running request of a host has gone.
    pub(super) routes: BTreeMap<ExchangeId, (UpstreamId, RequestId)>,
    /// Who asked each question to a host.
    pub(super) asks: BTreeMap<AskId, (UpstreamId, String)>,
    pub(super) pressure: Pressure,
    pub(super) phase: Phase,
    pub(super) now: Instant,
    /// Whether standard output has ended because the server did.
    pub(super) deserted: bool,
    /// Links whose deadline may have changed since it was last looked at.
    touched: BTreeSet<UpstreamId>,
    pub(super) timed: BTreeMap<UpstreamId, Instant>,
    pub(super) call_sweep: Option<Instant>,
    next: u64,
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

impl Gateway {
    /// A gateway whose secrets come from `seed`.
    pub fn new(mut config: Config, seed: [u8; 32]) -> Self {
        let endpoint = core::mem::take(&mut config.endpoint);
        Self {
            config,
            endpoint: Endpoint::new(endpoint, Entropy::new(seed)),
            wires: Wires::default(),
            output: Output::default(),
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            modern: Modern::default(),
            shared: Shared::default(),
            lives: Lives::default(),
            starts: Starts::default(),
            routes: BTreeMap::new(),
            asks: BTreeMap::new(),
            pressure: Pressure::default(),
            phase: Phase::Serving,
            now: Instant::START,
            deserted: false,
            touched: BTreeSet::new(),
            timed: BTreeMap::new(),
            call_sweep: None,
            next: 1,
        }
    }

    /// Whether the end of the server is what ends the program: it was the one of
    /// the host that started us.
    pub fn is_deserted(&self) -> bool {
        self.deserted
    }

    /// A request that the embedder's own HTTP stack has read: the message door, as
    /// [`Endpoint::request`] has it. Afterwards poll as after any input.
    pub fn request(
        &mut self,
        now: Instant,
        conn: ConnId,
        listener: ListenerId,
        from: Option<IpAddr>,
        head: RequestHead,
        body: &[u8],
    ) {
        self.now = now;
        self.endpoint.at(now);
        self.wires.at(now);
        if let Some(event) = self.endpoint.request(conn, listener, from, head, Cow::Borrowed(body))
        {
            self.on_host_event(event);
        }
        self.settle();
    }

    /// The head of the response to such a request, once.
    pub fn take_head(&mut self, conn: ConnId) -> Option<server::Head> {
        self.endpoint.take_head(conn)
    }

    pub(super) fn number(&mut self) -> u64 {
        let n = self.next;
        self.next += 1;
        n
    }

    /// A new connection to the server, not used yet.
    pub(super) fn add_link(&mut self, peer: Option<PeerId>) -> UpstreamId {
        let id = UpstreamId(self.number());
        let upstream = Upstream::new(
            id,
            &self.config.name,
            self.config.place.clone(),
            self.config.upstream.clone(),
        );
        let link =
            Link { upstream, peer, works: false, calls: BTreeMap::new(), asked: BTreeMap::new() };
        self.links.insert(id, Box::new(link));
        id
    }

    pub(super) fn touch(&mut self, id: UpstreamId) {
        self.touched.insert(id);
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let mut input = bytes;
        if !conn.is_requested() {
            while let Some(event) = self.endpoint.receive(conn, &mut input) {
                self.on_host_event(event);
            }
            while let Some(full) = self.wires.take_swollen() {
                if self.pressure.block(full, conn) {
                    self.endpoint.hold(conn, true);
                }
            }
            return;
        }
        let Some(id) = self.wires.owner(conn) else { return };
        while let Some(link) = self.links.get_mut(&id)
            && let Some(event) = link.upstream.receive(&mut self.wires, conn, &mut input)
        {
            self.on_server_event(id, event);
        }
        self.touch(id);
    }

    /// Pauses the connection to the server whose bytes filled a host's queue.
    /// One that others share is not paused: a host that reads nothing is given
    /// up at the hard limit instead.
    fn press(&mut self, source: Option<ConnId>) {
        while let Some(full) = self.endpoint.take_swollen() {
            let Some(source) = source.filter(|source| source.is_requested()) else { continue };
            let Some(link) = self.wires.owner(source).and_then(|id| self.links.get(&id)) else {
                continue;
            };
            let exclusive = link.peer.is_some() || link.upstream.is_per_request();
            if exclusive && self.pressure.block(full, source) {
                self.wires.hold(source, true);
            }
        }
    }

    fn relieve(&mut self, sink: ConnId) {
        for source in self.pressure.release(sink) {
            if source.is_requested() {
                self.wires.hold(source, false);
            } else {
                self.endpoint.hold(source, false);
            }
        }
    }

    /// Handles what follows from an input until nothing does.
    fn settle(&mut self) {
        loop {
            if let Some(event) = self.endpoint.poll_event() {
                self.on_host_event(event);
                continue;
            }
            let Some(id) = self.touched.pop_first() else { break };
            let Some(link) = self.links.get_mut(&id) else { continue };
            if let Some(event) = link.upstream.poll_event() {
                self.touched.insert(id);
                self.on_server_event(id, event);
                continue;
            }
            match link.upstream.deadline() {
                Some(at) => self.timed.insert(id, at),
                None => self.timed.remove(&id),
            };
            self.bury(id);
        }
        self.proceed();
    }

    fn tick(&mut self) {
        self.endpoint.sweep();
        self.begin();
        let now = self.now;
        let due: alloc::vec::Vec<UpstreamId> =
            self.timed.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in due {
            if let Some(link) = self.links.get_mut(&id) {
                link.upstream.tick(&mut self.wires);
            }
            self.touch(id);
        }
        self.sweep_calls();
        self.check_probe();
        self.check_shared();
        self.check_revivals();
        self.check_relearning();
        self.check_relistening();
    }

    fn at_upstream(&mut self, conn: ConnId, act: impl FnOnce(&mut Upstream, &mut Wires)) {
        let Some(id) = self.wires.owner(conn) else { return };
        if let Some(link) = self.links.get_mut(&id) {
            act(&mut link.upstream, &mut self.wires);
        }
        self.touch(id);
    }
}

impl Machine for Gateway {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.now = now;
        self.endpoint.at(now);
        self.wires.at(now);
        let mut source = None;
        match input {
            Input::Accepted { conn, listener, from } => {
                self.endpoint.accepted(conn, listener, from);
            }
            Input::Received { conn, bytes } => {
                source = Some(conn);
                self.received(conn, bytes);
            }
            Input::Connected { conn } => {
                self.at_upstream(conn, |upstream, wires| upstream.connected(wires, conn));
            }
            Input::Finished { conn } if conn.is_requested() => {
                self.at_upstream(conn, |upstream, wires| upstream.finished(wires, conn));
            }
            Input::Finished { conn } => self.endpoint.finished(conn),
            Input::Closed { conn, why } => {
                if conn.is_requested() {
                    self.at_upstream(conn, |upstream, wires| upstream.closed(wires, conn, why));
                } else {
                    self.endpoint.closed(conn);
                }
                self.pressure.forget(conn);
                self.relieve(conn);
            }
            Input::Stderr { conn, bytes } => {
                self.at_upstream(conn, |upstream, wires| upstream.stderr(wires, bytes));
            }
            Input::Exited { conn, status } => {
                self.at_upstream(conn, |upstream, wires| upstream.exited(wires, conn, status));
                self.pressure.forget(conn);
                self.relieve(conn);
            }
            Input::Tick => self.tick(),
            Input::Stop => self.stop(),
        }
        self.settle();
        self.press(source);
    }

    fn poll(&mut self) -> Option<Action> {
        self.endpoint.poll().or_else(|| self.wires.poll()).or_else(|| self.output.poll())
    }

    fn deadline(&self) -> Option<Instant> {
        let timed = self.timed.values().copied();
        timed
            .chain(self.endpoint.deadline())
            .chain(self.phase.deadline())
            .chain(self.modern.deadline())
            .chain(self.shared_deadline())
            .chain(self.lives.deadline())
            .chain(self.call_sweep)
            .chain(self.config.eager.then_some(Instant::START))
            .min()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        if conn.is_requested() { self.wires.outgoing(conn) } else { self.endpoint.outgoing(conn) }
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.now = now;
        self.endpoint.at(now);
        self.wires.at(now);
        let swollen = if conn.is_requested() {
            self.wires.sent(conn, n);
            self.wires.is_swollen(conn)
        } else {
            self.endpoint.sent(conn, n);
            self.endpoint.is_swollen(conn)
        };
        if !swollen && !self.pressure.is_idle() {
            self.relieve(conn);
        }
        // A pipe may have ended with its last byte.
        self.settle();
    }
}

impl Gateway {
    pub(super) fn warn(&mut self, text: String) {
        self.output.tell(event::Event::Warning(text));
    }
}
