//! The endpoint: its connections, and the way of every input to the part that
//! handles it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::asking::AskId;
use super::batch::Batches;
use super::clients::{Client, Clients};
use super::exchange::{Exchange, ExchangeId};
use super::gate::Access;
use super::http::{Http, State};
use super::legacy_sse::LegacySse;
use super::limits::Limits;
use super::peer::{Peer, PeerId};
use super::pipe::Pipe;
use crate::driver::{Action, ConnId, ListenerId};
use crate::entropy::Entropy;
use crate::jsonrpc::Message;
use crate::output::{Output, PauseReason};
use crate::protocol::origin::OriginRules;
use crate::protocol::revision::Revision;
use crate::seal::Sealer;
use crate::time::Instant;

/// Connections above the limit that are still told that they are too many.
const TURNED_AWAY: usize = 64;

/// What an endpoint is made with.
#[derive(Debug)]
pub struct Config {
    /// The listeners, in the order in which the runtime has them.
    pub listeners: Vec<Listener>,
    /// The path of the MCP endpoint on HTTP listeners, such as `/mcp`. It is at
    /// `/`, too.
    pub path: String,
    /// What is asked of everybody who comes by HTTP.
    pub access: Access,
    /// Whether HTTP listeners serve the transport of 2024-11-05 as well. Default
    /// `None`.
    pub legacy_sse: Option<LegacySse>,
    /// Its limits.
    pub limits: Limits,
    /// Whether a legacy request over HTTP must belong to a session. Otherwise one
    /// that does not is served by itself, at the revision of its header, or at
    /// 2025-03-26 without one (2025-11-25 `basic/transports`). Default `false`.
    pub strict: bool,
}

impl Default for Config {
    /// No listeners yet, and `/mcp`.
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            listeners: Vec::new(),
            path: String::from("/mcp"),
            access: Access::default(),
            legacy_sse: None,
            limits,
            strict: false,
        }
    }
}

/// What a listener speaks.
#[derive(Debug)]
pub enum Listener {
    /// HTTP/1.1, with these rules for `Host` and `Origin`.
    Http(OriginRules),
    /// Newline-delimited JSON-RPC on a socket.
    Ndjson,
    /// Newline-delimited JSON-RPC on our own standard input and output: when
    /// that ends, the endpoint [is over](Endpoint::is_over).
    Stdio,
}

/// What hosts want.
#[derive(Debug)]
pub enum Event<'a> {
    /// A request, to be answered once with [`Endpoint::respond`].
    Request(Request<'a>),
    /// A notification within a legacy session. `notifications/cancelled` is
    /// given as [`Event::Cancelled`] instead.
    Notification {
        /// The session.
        peer: PeerId,
        /// The notification.
        message: Message<'a>,
    },
    /// The answer to [`Endpoint::ask`]: a result or an error.
    Answer {
        /// The question.
        ask: AskId,
        /// The answer.
        message: Message<'a>,
    },
    /// Nobody waits for this request any more; it must not be answered.
    Cancelled {
        /// Which.
        exchange: ExchangeId,
        /// The host's reason, if it gave one.
        reason: Option<String>,
    },
    /// A session, or a pipe, has ended with all that belonged to it.
    Ended {
        /// Which.
        peer: PeerId,
    },
}

/// A request from a host.
#[derive(Debug)]
pub struct Request<'a> {
    /// Names it in answers.
    pub exchange: ExchangeId,
    /// How the host speaks. With `initialize`, the legacy revision that it asks
    /// for, or the newest if it asks for another.
    pub revision: Revision,
    /// The legacy session that it belongs to; `initialize` begins one. Requests
    /// that stand alone have none: modern ones, and legacy ones over HTTP unless
    /// that is [strict](Config::strict).
    pub peer: Option<PeerId>,
    /// The request.
    pub message: Message<'a>,
    /// The `Mcp-Param-*` fields of a modern HTTP request, as they came. None if
    /// it came another way.
    pub fields: Option<Vec<(String, String)>>,
}

impl Request<'_> {
    /// A copy, independent of the bytes that it came in.
    pub fn to_owned(&self) -> Request<'static> {
        Request {
            exchange: self.exchange,
            revision: self.revision,
            peer: self.peer,
            message: self.message.clone().into_owned(),
            fields: self.fields.clone(),
        }
    }

    /// The same, independent of the bytes that it came in.
    pub fn into_owned(self) -> Request<'static> {
        let Self { exchange, revision, peer, message, fields } = self;
        Request { exchange, revision, peer, message: message.into_owned(), fields }
    }
}

impl Event<'_> {
    pub(super) fn into_owned(self) -> Event<'static> {
        match self {
            Event::Request(request) => Event::Request(request.into_owned()),
            Event::Notification { peer, message } => {
                Event::Notification { peer, message: message.into_owned() }
            }
            Event::Answer { ask, message } => Event::Answer { ask, message: message.into_owned() },
            Event::Cancelled { exchange, reason } => Event::Cancelled { exchange, reason },
            Event::Ended { peer } => Event::Ended { peer },
        }
    }
}

/// Our side towards hosts. See the [module](super).
#[derive(Debug)]
pub struct Endpoint {
    pub(super) config: Config,
    pub(super) output: Output,
    pub(super) entropy: Entropy,
    pub(super) sealer: Sealer,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) peers: BTreeMap<PeerId, Peer>,
    pub(super) exchanges: BTreeMap<ExchangeId, Exchange>,
    pub(super) batches: Batches,
    pub(super) clients: Clients,
    pub(super) asks: BTreeMap<AskId, PeerId>,
    pub(super) events: VecDeque<Event<'static>>,
    /// Connections that became free while bytes were held for them.
    pub(super) freed: VecDeque<ConnId>,
    pub(super) sweep_at: Option<Instant>,
    pub(super) scratch: Vec<u8>,
    pub(super) draining: bool,
    /// The moment of the input that is being handled.
    pub(super) now: Instant,
    over: bool,
    pub(super) next: u64,
}

#[derive(Debug)]
pub(super) enum Conn {
    Pipe(Pipe),
    Http(Http),
}

impl Conn {
    /// Whose it is.
    pub(super) fn from(&self) -> Option<Client> {
        match self {
            Self::Pipe(pipe) => pipe.from,
            Self::Http(http) => http.from,
        }
    }
}

/// What there is no more of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// The room of the endpoint.
    All,
    /// The room of one client.
    Client,
}

impl Full {
    /// Status and message of the refusal.
    pub(super) fn refusal(self, of: &str) -> (u16, String) {
        match self {
            Self::All => (503, alloc::format!("Too many {of}: try again later")),
            Self::Client => (429, alloc::format!("Too many {of} from your address: end some")),
        }
    }
}

impl Endpoint {
    /// An endpoint whose session ids come from `entropy`, the key that seals them too.
    pub fn new(config: Config, mut entropy: Entropy) -> Self {
        let sealer = Sealer::new(entropy.bytes());
        Self {
            config,
            output: Output::default(),
            entropy,
            sealer,
            conns: BTreeMap::new(),
            peers: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            batches: Batches::new(),
            clients: Clients::default(),
            asks: BTreeMap::new(),
            events: VecDeque::new(),
            freed: VecDeque::new(),
            sweep_at: None,
            scratch: Vec::new(),
            draining: false,
            now: Instant::START,
            over: false,
            next: 1,
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        let n = self.next;
        self.next += 1;
        n
    }

    /// It is `now`, until told otherwise. Call before anything else for an input.
    pub fn at(&mut self, now: Instant) {
        self.now = now;
    }

    /// A host has connected, from this address if it is not on this machine.
    pub fn accepted(&mut self, conn: ConnId, listener: ListenerId, from: Option<IpAddr>) {
        let kind = self.config.listeners.get(listener.0 as usize);
        let stdio = matches!(kind, Some(Listener::Stdio));
        let http = matches!(kind, Some(Listener::Http(_)));
        let from = Client::at(from);
        let full = self.is_full(from);
        let most = self.config.limits.connections;
        let room = full.is_none() || http && self.conns.len() < most + TURNED_AWAY;
        if self.draining || kind.is_none() || !room {
            self.output.act(Action::Close(conn));
            return;
        }
        self.output.open(conn);
        if http {
            let http = Http::new(self.now, listener, from, &self.config.limits);
            self.add(conn, Conn::Http(http));
            self.sweep_by(self.now + self.config.limits.request_time);
            if let Some(full) = full {
                self.turn_away(conn, full);
            }
        } else {
            let peer = self.add_pipe_peer(conn);
            let pipe = Pipe::new(peer, stdio, from, &self.config.limits);
            self.add(conn, Conn::Pipe(pipe));
        }
    }

    /// Why there is no room for another connection from there.
    pub(super) fn is_full(&self, from: Option<Client>) -> Option<Full> {
        let limits = &self.config.limits;
        if self.conns.len() >= limits.connections {
            Some(Full::All)
        } else if self.clients.of(from).connections >= limits.client_connections {
            Some(Full::Client)
        } else {
            None
        }
    }

    pub(super) fn add(&mut self, conn: ConnId, state: Conn) {
        self.clients.change(state.from(), |held| held.connections += 1);
        self.conns.insert(conn, state);
    }

    fn remove(&mut self, conn: ConnId) -> Option<Conn> {
        let state = self.conns.remove(&conn)?;
        self.clients.change(state.from(), |held| held.connections -= 1);
        Some(state)
    }

    /// Bytes came from a host. Call until `None`; `input` is used up then.
    pub fn receive<'a>(&mut self, conn: ConnId, input: &mut &'a [u8]) -> Option<Event<'a>> {
        match self.conns.get_mut(&conn) {
            Some(Conn::Pipe(_)) => self.receive_pipe(conn, input),
            Some(Conn::Http(_)) => self.receive_http(conn, input),
            None => {
                *input = &[];
                None
            }
        }
    }

    /// The host will send no more.
    pub fn finished(&mut self, conn: ConnId) {
        match self.conns.get_mut(&conn) {
            Some(Conn::Pipe(_)) => self.finish_pipe(conn),
            Some(Conn::Http(_)) => self.finish_http(conn),
            None => {}
        }
    }

    /// The connection is gone.
    pub fn closed(&mut self, conn: ConnId) {
        match self.remove(conn) {
            Some(Conn::Pipe(pipe)) => {
                self.end_peer(pipe.peer);
                self.over |= pipe.stdio;
            }
            Some(Conn::Http(http)) => self.abandon_http(conn, http.state),
            None => {}
        }
        self.output.forget(conn);
    }

    /// Drops a connection of ours, unless that has been done: several things may be due
    /// for one at a time.
    pub(super) fn close(&mut self, conn: ConnId) {
        if self.conns.contains_key(&conn) {
            self.output.act(Action::Close(conn));
            self.closed(conn);
        }
    }

    /// Bytes were written. Returns how many are left.
    pub fn sent(&mut self, conn: ConnId, n: usize) -> usize {
        let left = self.output.sent(conn, n);
        match self.conns.get_mut(&conn) {
            Some(Conn::Pipe(pipe)) => pipe.unread = None,
            Some(Conn::Http(http)) => http.unread = None,
            None => {}
        }
        if !self.output.is_swollen(conn) {
            self.output.resume(conn, PauseReason::Unread);
        }
        if left == 0 {
            match self.conns.get_mut(&conn) {
                Some(Conn::Pipe(pipe)) => {
                    let peer = pipe.peer;
                    if self.peers.contains_key(&peer) {
                        self.leave_if_silent(conn, peer);
                    } else {
                        self.close(conn);
                    }
                }
                Some(Conn::Http(http)) if http.state == State::Closing && http.ended => {
                    self.close(conn);
                }
                Some(Conn::Http(http)) if http.state == State::Closing => {
                    http.since = self.now;
                    self.sweep_by(self.now + super::sweep::LINGER);
                }
                _ => {}
            }
        }
        left
    }

    /// Ends a pipe when what is queued is written.
    pub(super) fn finish_then_close(&mut self, conn: ConnId) {
        if self.output.queued(conn) > 0 {
            self.output.act(Action::Finish(conn));
        } else {
            self.close(conn);
        }
    }

    /// What happened without new bytes. Call until `None` after every input.
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let conn = *self.freed.front()?;
            let event = match self.conns.get(&conn) {
                Some(Conn::Http(_)) => self.receive_held(conn),
                Some(Conn::Pipe(_)) => self.receive_held_pipe(conn),
                None => None,
            };
            if let Some(event) = event {
                return Some(event);
            }
            self.freed.pop_front();
        }
    }

    /// The next action for the runtime.
    pub fn poll(&mut self) -> Option<Action> {
        self.output.poll()
    }

    /// Bytes queued for a host.
    pub fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.output.outgoing(conn)
    }

    /// A connection whose queue became [swollen](crate::output::SWOLLEN): it is
    /// not read from until it reads.
    pub fn take_swollen(&mut self) -> Option<ConnId> {
        let conn = self.output.take_swollen()?;
        self.sweep_by(self.now);
        self.output.pause(conn, PauseReason::Unread);
        Some(conn)
    }

    /// Whether a connection's queue is swollen.
    pub fn is_swollen(&self, conn: ConnId) -> bool {
        self.output.is_swollen(conn)
    }

    /// Stops or resumes reading from a connection, for what it sends fills the
    /// queue of another.
    pub fn hold(&mut self, conn: ConnId, hold: bool) {
        match hold {
            true => self.output.pause(conn, PauseReason::Feeding),
            false => self.output.resume(conn, PauseReason::Feeding),
        }
    }

    /// Whether our own standard input has ended and nothing is left to say.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Stops taking new work: listeners and idle connections close, requests
    /// that run may still be answered.
    pub fn drain(&mut self) {
        if self.draining {
            return;
        }
        self.draining = true;
        self.output.act(Action::StopListening);
        let idle: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| matches!(conn, Conn::Http(http) if http.is_idle()))
            .map(|(conn, _)| *conn)
            .collect();
        for conn in idle {
            self.hang_up(conn);
        }
    }

    /// How many requests still run.
    pub fn running(&self) -> usize {
        self.exchanges.len()
    }

    /// Whether anything queued has still to be written.
    pub fn has_outgoing(&self) -> bool {
        self.conns.keys().any(|conn| self.output.queued(*conn) > 0)
    }

    /// Ends every session and drops every connection.
    pub fn shut_down(&mut self) {
        while let Some((&peer, _)) = self.peers.first_key_value() {
            self.end_peer(peer);
        }
        while let Some((&conn, _)) = self.conns.first_key_value() {
            self.output.act(Action::Finish(conn));
            self.closed_keeping_output(conn);
        }
    }

    /// Forgets a connection whose last bytes the runtime shall still write.
    fn closed_keeping_output(&mut self, conn: ConnId) {
        match self.remove(conn) {
            Some(Conn::Pipe(pipe)) => self.end_peer(pipe.peer),
            Some(Conn::Http(http)) => self.abandon_http(conn, http.state),
            None => {}
        }
    }
}
