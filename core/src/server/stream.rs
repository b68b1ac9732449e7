//! Event streams of sessions, which can be taken up again (2025-03-26 to
//! 2025-11-25 `basic/transports`, "Resumability and Redelivery").
//!
//! Each has a number, and each of its events an id, `stream.event`. What was
//! sent lately is kept: a host whose connection broke asks with `Last-Event-ID`
//! for what it has missed of that stream, and goes on with it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::endpoint::Endpoint;
use super::exchange::{Carrier, ExchangeId, Way, Work};
use super::http::State;
use super::peer::{Peer, PeerId, Place, Session};
use crate::driver::ConnId;
use crate::protocol::revision::Revision;

/// A stream of a session.
#[derive(Debug)]
pub(super) struct Stream {
    number: u64,
    /// The connection that carries it now.
    pub(super) conn: Option<ConnId>,
    /// What it answers; none for what belongs to no request.
    work: Option<Work>,
    /// The latest events and their numbers.
    kept: VecDeque<(u64, Vec<u8>)>,
    kept_bytes: usize,
    next: u64,
    ended: bool,
}

impl Stream {
    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether messages that belong to no request may go out on it.
    pub(super) fn is_open_for_all(&self) -> bool {
        self.work.is_none() && self.conn.is_some() && !self.ended
    }
}

/// Which event of which stream a host saw last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EventId {
    stream: u64,
    event: u64,
}

impl EventId {
    /// Reads an id of ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, event) = text.trim().split_once('.')?;
        Some(Self { stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

impl Endpoint {
    fn session_mut(&mut self, peer: PeerId) -> Option<(&mut Session, Revision)> {
        match self.peers.get_mut(&peer)? {
            Peer { place: Place::Session(session), revision: Some(revision), .. } => {
                Some((session, *revision))
            }
            _ => None,
        }
    }

    /// Begins a stream of a session on a connection, and its response. With
    /// 2025-11-25 the host learns at once where to take it up again.
    pub(super) fn open_stream(
        &mut self,
        conn: ConnId,
        peer: PeerId,
        work: Option<Work>,
    ) -> Option<u64> {
        let number = self.number();
        let most = self.config.limits.streams;
        let (session, revision) = self.session_mut(peer)?;
        // The oldest that nobody is on makes room.
        let idle =
            |stream: &Stream| stream.ended || (stream.work.is_none() && stream.conn.is_none());
        if session.streams.len() >= most
            && let Some(old) = session.streams.iter().position(idle)
        {
            session.streams.remove(old);
        }
        session.streams.push(Stream {
            number,
            conn: Some(conn),
            work,
            kept: VecDeque::new(),
            kept_bytes: 0,
            next: 1,
            ended: false,
        });
        self.begin_stream(conn);
        if revision >= Revision::R2025_11_25 {
            let retry = self.config.limits.retry.as_millis();
            self.write_raw(conn, |out| {
                let _ = write!(Text(out), "id: {number}.0\nretry: {retry}\ndata: \n");
            });
        }
        Some(number)
    }

    /// Sends a message on a stream of a session, and keeps it.
    /// `message` appends it as one line.
    pub(super) fn write_on(
        &mut self,
        peer: PeerId,
        number: u64,
        message: impl FnOnce(&mut Vec<u8>),
    ) {
        let limits = (self.config.limits.replay_events, self.config.limits.replay_bytes);
        let Some((session, revision)) = self.session_mut(peer) else { return };
        let Some(stream) = session.streams.iter_mut().find(|s| s.number == number) else { return };
        let event = stream.next;
        stream.next += 1;
        let mut text = Vec::new();
        let ids = revision >= Revision::R2025_03_26;
        if ids {
            let _ = writeln!(Text(&mut text), "id: {number}.{event}");
        }
        text.extend_from_slice(b"event: message\ndata: ");
        message(&mut text);
        let conn = stream.conn;
        if let Some(conn) = conn {
            self.write_raw(conn, |out| out.extend_from_slice(&text));
        }
        let Some((session, _)) = self.session_mut(peer) else { return };
        let Some(stream) = session.streams.iter_mut().find(|s| s.number == number) else { return };
        if !ids {
            return;
        }
        stream.kept_bytes += text.len();
        stream.kept.push_back((event, text));
        // The last one is kept whatever its size while nobody has seen it.
        let least = usize::from(conn.is_none());
        while stream.kept.len() > least
            && (stream.kept.len() > limits.0 || stream.kept_bytes > limits.1)
        {
            let dropped = stream.kept.pop_front().map_or(0, |(_, old)| old.len());
            stream.kept_bytes -= dropped;
        }
    }

    /// Ends a stream of a session; what was sent on it may still be asked for.
    pub(super) fn close_stream(&mut self, peer: PeerId, number: u64) {
        let Some((session, _)) = self.session_mut(peer) else { return };
        let Some(stream) = session.streams.iter_mut().find(|s| s.number == number) else { return };
        stream.ended = true;
        if let Some(conn) = stream.conn.take() {
            self.end_stream(conn);
        }
    }

    /// Ends the response to a request of a 2025-11-25 session before its answer,
    /// which the host then comes for after [`retry`](super::Limits::retry), as it was
    /// told when the stream began (SSE-06, SSE-07). So a call
    /// that takes long does not hold a connection. On any other request this has no
    /// effect.
    pub fn part(&mut self, exchange: ExchangeId) {
        let state = self.exchanges.get(&exchange);
        let Some(peer) = state.and_then(|state| state.sender.peer) else { return };
        if self.session_mut(peer).is_none_or(|(_, revision)| revision < Revision::R2025_11_25) {
            return;
        }
        let work = Work::Request(exchange);
        if !matches!(self.way(work), Some(Way { carrier: Carrier::Http { sse: true, .. }, .. })) {
            return;
        }
        let Some((_, number)) = self.stream_of(work) else { return };
        let Some((session, _)) = self.session_mut(peer) else { return };
        let stream = session.streams.iter_mut().find(|stream| stream.number == number);
        if let Some(conn) = stream.and_then(|stream| stream.conn.take()) {
            self.carrier_lost(work);
            self.end_stream(conn);
        }
    }

    /// Sends what has waited for a stream.
    pub(super) fn deliver_waiting(&mut self, peer: PeerId) {
        let Some((session, _)) = self.session_mut(peer) else { return };
        let Some(number) = session.primary().map(Stream::number) else { return };
        session.waiting_bytes = 0;
        for line in core::mem::take(&mut session.waiting) {
            self.write_on(peer, number, |out| out.extend_from_slice(&line));
        }
    }

    /// The connection of a stream is gone.
    pub(super) fn stream_lost(&mut self, peer: PeerId, conn: ConnId) {
        if let Some((session, _)) = self.session_mut(peer) {
            for stream in session.streams.iter_mut().filter(|stream| stream.conn == Some(conn)) {
                stream.conn = None;
            }
        }
    }

    /// Goes on with a stream on a new connection, after the event that the host
    /// saw last. `false` if that cannot be done without a gap.
    pub(super) fn resume_stream(&mut self, conn: ConnId, peer: PeerId, after: EventId) -> bool {
        let Some((session, _)) = self.session_mut(peer) else { return false };
        let Some(stream) = session.streams.iter_mut().find(|s| s.number == after.stream) else {
            return false;
        };
        let oldest = stream.kept.front().map_or(stream.next, |(event, _)| *event);
        if after.event + 1 < oldest || after.event >= stream.next {
            return false;
        }
        let missed: Vec<Vec<u8>> = stream
            .kept
            .iter()
            .filter(|(event, _)| *event > after.event)
            .map(|(_, text)| text.clone())
            .collect();
        let (work, ended) = (stream.work, stream.ended);
        let before = stream.conn.replace(conn);
        if let Some(before) = before {
            // Its other end has not been missed by us yet, but by the host.
            self.close(before);
        }
        match work.filter(|_| !ended) {
            Some(work) => {
                self.occupy(conn, work);
                self.carry_on(work, conn);
            }
            None => self.set_state(conn, State::Stream(peer)),
        }
        self.begin_stream(conn);
        self.write_comment(conn);
        for text in missed {
            self.write_raw(conn, |out| out.extend_from_slice(&text));
        }
        if ended {
            self.close_stream(peer, after.stream);
        }
        true
    }
}

/// Formats into bytes.
struct Text<'a>(&'a mut Vec<u8>);

impl core::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
