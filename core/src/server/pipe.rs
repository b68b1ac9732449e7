//! Newline-framed connections: standard input and output, Unix sockets, TCP.
//!
//! One pipe is one peer. Modern requests and a legacy session may share it
//! (2026-07-28 `basic/versioning`, requirements section 2).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::admit::{self, Admitted};
use super::clients::Client;
use super::endpoint::{Conn, Endpoint, Event};
use super::exchange::{Carried, Carrier, Sender, Way};
use super::limits::Limits;
use super::peer::{PeerId, Place};
use crate::driver::ConnId;
use crate::jsonrpc::{Envelope, Incoming, Message, code, error_object};
use crate::output::PauseReason;
use crate::protocol::fault::Fault;
use crate::protocol::revision::Revision;
use crate::time::Instant;
use crate::wire::ndjson::{Decoder, Line, looks_like_message};

#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) peer: PeerId,
    pub(super) stdio: bool,
    pub(super) from: Option<Client>,
    /// Since when nothing is read of what waits for the host.
    pub(super) unread: Option<Instant>,
    decoder: Decoder,
    /// Bytes that came while `initialize` was running: what follows it is read
    /// in the light of its result.
    held: Vec<u8>,
    /// When the peer will be given up: it has stopped sending.
    pub(super) give_up: Option<Instant>,
}

impl Pipe {
    pub(super) fn new(peer: PeerId, stdio: bool, from: Option<Client>, limits: &Limits) -> Self {
        Self {
            peer,
            stdio,
            from,
            unread: None,
            decoder: Decoder::new(limits.message_bytes),
            held: Vec::new(),
            give_up: None,
        }
    }
}

impl Endpoint {
    pub(super) fn receive_pipe<'a>(
        &mut self,
        conn: ConnId,
        input: &mut &'a [u8],
    ) -> Option<Event<'a>> {
        loop {
            let Some(Conn::Pipe(pipe)) = self.conns.get_mut(&conn) else {
                *input = &[];
                return None;
            };
            let peer = pipe.peer;
            let Some(state) = self.peers.get(&peer) else {
                // It has ended; only its last bytes have still to go out.
                *input = &[];
                return None;
            };
            if state.opening.is_some() || !pipe.held.is_empty() {
                pipe.held.extend_from_slice(core::mem::take(input));
                if pipe.held.len() > self.config.limits.held_bytes {
                    self.output.pause(conn, PauseReason::Busy);
                }
                return None;
            }
            // The messages of a batch come before what follows it.
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            match pipe.decoder.next(input)? {
                Line::Text(line) => {
                    if let Some(event) = self.read_line(conn, peer, line) {
                        return Some(event);
                    }
                }
                Line::TooLong { skimmed, .. } => {
                    if skimmed.method && skimmed.id.is_some() {
                        let error =
                            error_object(code::INVALID_REQUEST, "The message is too long", None);
                        self.write_error(conn, skimmed.id.as_deref(), &error);
                    }
                }
            }
        }
    }

    fn read_line<'a>(
        &mut self,
        conn: ConnId,
        peer: PeerId,
        line: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        let session = self.peers.get(&peer).and_then(|peer| peer.revision);
        // A page in a browser can make it send a POST here, whose body would be
        // read as messages.
        if !looks_like_message(&line) && is_http(&line) && !self.is_stdio(conn) {
            self.close(conn);
            return None;
        }
        match Message::parse(line, &admit::JSON) {
            Ok(Incoming::Message(message)) => self.read_message(conn, peer, message),
            Ok(Incoming::Batch(batch)) => {
                let read = match session {
                    Some(revision @ Revision::R2025_03_26) => {
                        let sender = Sender::session(peer, revision);
                        self.read_batch(Way::new(conn, Carrier::Pipe), sender, &batch)
                    }
                    _ => Err(Fault::new(code::INVALID_REQUEST, admit::NO_BATCH)),
                };
                if let Err(fault) = read {
                    self.write_error(conn, no_id(session), &fault.object);
                }
                None
            }
            Err(rejected) => {
                if rejected.answerable {
                    let error = admit::rejection(&rejected);
                    let id = rejected.id.as_deref().or(no_id(session));
                    self.write_error(conn, id, &error);
                }
                None
            }
        }
    }

    /// Whether a peer is the one that started us: when it goes, so do we.
    pub fn is_on_stdio(&self, peer: PeerId) -> bool {
        match self.peers.get(&peer).map(|peer| &peer.place) {
            Some(Place::Pipe(conn)) => self.is_stdio(*conn),
            _ => false,
        }
    }

    fn is_stdio(&self, conn: ConnId) -> bool {
        matches!(self.conns.get(&conn), Some(Conn::Pipe(pipe)) if pipe.stdio)
    }

    fn write_error(&mut self, conn: ConnId, id: Option<&str>, error: &str) {
        self.write_pipe(conn, &Envelope::Error { id, error });
    }

    pub(super) fn read_message<'a>(
        &mut self,
        conn: ConnId,
        peer: PeerId,
        message: Message<'a>,
    ) -> Option<Event<'a>> {
        let session = self.peers.get(&peer).and_then(|peer| peer.revision);
        let way = Carried::Alone(Way::new(conn, Carrier::Pipe));
        match admit::on_pipe(&message, session, self.is_opening(peer)) {
            Ok(Admitted::Modern) => self.begin(Sender::modern(Some(peer)), way, message),
            Ok(Admitted::Legacy) => {
                let revision = session.unwrap_or_else(|| admit::wanted(&message));
                self.begin(Sender::session(peer, revision), way, message)
            }
            Ok(Admitted::Notice) => self.notice(peer, message),
            Ok(Admitted::Answer) => self.answered(peer, message).ok(),
            Ok(Admitted::Ignored) => None,
            Err(fault) => {
                self.write_error(conn, message.id(), &fault.object);
                None
            }
        }
    }

    /// Bytes that were held while `initialize` ran. `None` when they are used up
    /// or wait for more.
    pub(super) fn receive_held_pipe(&mut self, conn: ConnId) -> Option<Event<'static>> {
        let Some(Conn::Pipe(pipe)) = self.conns.get_mut(&conn) else { return None };
        let (peer, held) = (pipe.peer, core::mem::take(&mut pipe.held));
        self.output.resume(conn, PauseReason::Busy);
        let mut input = held.as_slice();
        let event = self.receive_pipe(conn, &mut input).map(Event::into_owned);
        if !input.is_empty()
            && let Some(Conn::Pipe(pipe)) = self.conns.get_mut(&conn)
        {
            pipe.held = input.to_vec();
        }
        if event.is_none() {
            self.read_rest(conn);
            self.leave_if_silent(conn, peer);
        }
        event
    }

    /// A last line without its end is a message too, once the peer sends no more.
    fn read_rest(&mut self, conn: ConnId) {
        let Some(Conn::Pipe(pipe)) = self.conns.get_mut(&conn) else { return };
        if pipe.give_up.is_none() || !pipe.held.is_empty() {
            return;
        }
        let peer = pipe.peer;
        if let Some(Line::Text(line)) = pipe.decoder.finish()
            && let Some(event) = self.read_line(conn, peer, line)
        {
            self.events.push_back(event.into_owned());
        }
    }

    /// The peer has stopped sending: what still runs gets a moment.
    pub(super) fn finish_pipe(&mut self, conn: ConnId) {
        let until = self.now + self.config.limits.pipe_grace;
        let Some(Conn::Pipe(pipe)) = self.conns.get_mut(&conn) else { return };
        pipe.give_up = Some(until);
        let peer = pipe.peer;
        self.read_rest(conn);
        self.sweep_by(until);
        self.leave_if_silent(conn, peer);
    }

    /// Ends a pipe whose peer sends no more and waits for nothing that comes by itself.
    pub(super) fn leave_if_silent(&mut self, conn: ConnId, peer: PeerId) {
        let leaving =
            matches!(self.conns.get(&conn), Some(Conn::Pipe(pipe)) if pipe.give_up.is_some());
        let held = matches!(self.conns.get(&conn), Some(Conn::Pipe(pipe)) if !pipe.held.is_empty());
        let busy = held
            || !self.events.is_empty()
            || self.peers.get(&peer).is_some_and(|peer| {
                let mut running = peer.in_flight.values();
                running.any(|id| self.exchanges.get(id).is_some_and(|exchange| !exchange.endless))
            });
        if !leaving || busy {
            return;
        }
        self.finish_then_close(conn);
    }
}

/// Whether a line is the first of an HTTP request.
fn is_http(line: &[u8]) -> bool {
    memchr::memmem::rfind(line, b" HTTP/").is_some_and(|at| at + b" HTTP/1.1".len() == line.len())
}

/// What stands for an id that could not be read: `null` up to 2025-06-18,
/// nothing since (RPC-07).
fn no_id(session: Option<Revision>) -> Option<&'static str> {
    session.is_some_and(|revision| revision < Revision::R2025_11_25).then_some("null")
}
