//! Conversations: legacy sessions over HTTP, and pipes.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::asking::AskId;
use super::clients::Client;
use super::endpoint::{Conn, Endpoint, Event, Full};
use super::exchange::ExchangeId;
use super::gate::Principal;
use super::http::State;
use super::stream::Stream;
use super::token::Ticket;
use crate::driver::ConnId;
use crate::protocol::host_capabilities::HostCapabilities;
use crate::protocol::revision::Revision;
use crate::time::Instant;

/// Names a legacy session, or a pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PeerId(pub(super) u64);

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) place: Place,
    /// What `initialize` agreed on; `None` before.
    pub(super) revision: Option<Revision>,
    /// What its host has declared in `initialize`.
    pub(super) capabilities: HostCapabilities,
    /// The `initialize` that is running.
    pub(super) opening: Option<ExchangeId>,
    /// Requests of the host that run, by the raw text of their ids.
    pub(super) in_flight: BTreeMap<Box<str>, ExchangeId>,
    /// Questions to the host that are open.
    pub(super) asks: BTreeSet<AskId>,
    /// What waits until its host is ready, as lines; none once it is.
    #[allow(clippy::box_collection, reason = "it is there for a moment of a long life")]
    pub(super) early: Option<Box<Vec<Vec<u8>>>>,
    pub(super) last_seen: Instant,
}

#[derive(Debug)]
pub(super) enum Place {
    Pipe(ConnId),
    Session(Session),
}

/// A session over HTTP.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Whose it is, if that matters.
    pub(super) owner: Option<Principal>,
    /// Who began it.
    pub(super) from: Option<Client>,
    /// When its id on the wire ceases to hold; none before `initialize` has
    /// succeeded.
    pub(super) expires: Option<Instant>,
    /// Its streams, oldest first.
    pub(super) streams: Vec<Stream>,
    /// Messages for a stream that is not open, oldest first.
    pub(super) waiting: VecDeque<Vec<u8>>,
    pub(super) waiting_bytes: usize,
}

impl Session {
    /// The newest stream for messages that belong to no request, and whether
    /// there is one: it gets them all.
    pub(super) fn primary(&self) -> Option<&Stream> {
        self.streams.iter().rev().find(|stream| stream.is_open_for_all())
    }
}

impl Peer {
    fn new(place: Place, now: Instant) -> Self {
        Self {
            place,
            revision: None,
            capabilities: HostCapabilities::default(),
            opening: None,
            in_flight: BTreeMap::new(),
            asks: BTreeSet::new(),
            early: None,
            last_seen: now,
        }
    }
}

impl Endpoint {
    pub(super) fn add_pipe_peer(&mut self, conn: ConnId) -> PeerId {
        let peer = PeerId(self.number());
        self.peers.insert(peer, Peer::new(Place::Pipe(conn), self.now));
        peer
    }

    /// A session for an `initialize` that has just come. It has no id before
    /// that succeeds.
    pub(super) fn add_session_peer(&mut self, conn: ConnId) -> Result<PeerId, Full> {
        let limits = &self.config.limits;
        let from = self.conns.get(&conn).and_then(Conn::from);
        if self.peers.len() >= limits.sessions {
            return Err(Full::All);
        }
        if self.clients.of(from).sessions >= limits.client_sessions {
            return Err(Full::Client);
        }
        let owner = self.principal(conn);
        let peer = PeerId(self.number());
        let session = Session { owner, from, ..Session::default() };
        self.clients.change(from, |held| held.sessions += 1);
        self.peers.insert(peer, Peer::new(Place::Session(session), self.now));
        self.sweep_by(self.now + self.config.limits.session_idle);
        Ok(peer)
    }

    /// Who asks on a connection, if that matters.
    pub(super) fn principal(&self, conn: ConnId) -> Option<Principal> {
        match self.conns.get(&conn) {
            Some(Conn::Http(http)) => http.principal,
            _ => None,
        }
    }

    pub(super) fn is_opening(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.opening.is_some())
    }

    /// `initialize` has succeeded with this revision: gives a session over HTTP
    /// its id.
    pub(super) fn open_session(&mut self, peer: PeerId, revision: Revision) -> Option<String> {
        let expires = self.now + self.config.limits.session_life;
        let state = self.peers.get_mut(&peer)?;
        state.opening = None;
        state.revision = Some(revision);
        state.early = Some(Box::default());
        let Place::Session(session) = &mut state.place else { return None };
        session.expires = Some(expires);
        self.seal_ticket(Ticket { revision, expires, peer })
    }

    /// What a session, or a pipe, has agreed on; nothing before that.
    pub fn revision_of(&self, peer: PeerId) -> Option<Revision> {
        self.peers.get(&peer)?.revision
    }

    /// Ends a session, or a pipe: what runs in it is cancelled, its streams and
    /// its pipe close. Reported as [`Event::Ended`].
    pub fn end_peer(&mut self, peer: PeerId) {
        let Some(state) = self.peers.remove(&peer) else { return };
        for exchange in state.in_flight.into_values() {
            self.drop_exchange(exchange);
            self.events.push_back(Event::Cancelled { exchange, reason: None });
        }
        for ask in state.asks {
            self.asks.remove(&ask);
        }
        match state.place {
            Place::Session(session) => {
                self.clients.change(session.from, |held| held.sessions -= 1);
                for conn in session.streams.into_iter().filter_map(|stream| stream.conn) {
                    self.end_stream(conn);
                }
            }
            Place::Pipe(conn) => match self.conns.get(&conn) {
                Some(Conn::Pipe(_)) => self.finish_then_close(conn),
                Some(Conn::Http(http)) if http.state == State::Conversation(peer) => {
                    self.end_stream(conn);
                }
                _ => {}
            },
        }
        self.events.push_back(Event::Ended { peer });
    }

    /// Keeps a message for a session without a stream.
    pub(super) fn keep_for_later(&mut self, peer: PeerId, message: Vec<u8>) {
        let limits = &self.config.limits;
        let Some(Peer { place: Place::Session(session), .. }) = self.peers.get_mut(&peer) else {
            return;
        };
        session.waiting_bytes += message.len();
        session.waiting.push_back(message);
        while session.waiting.len() > limits.waiting_messages
            || (session.waiting_bytes > limits.waiting_bytes && session.waiting.len() > 1)
        {
            let dropped = session.waiting.pop_front().map_or(0, |old| old.len());
            session.waiting_bytes -= dropped;
        }
    }
}
