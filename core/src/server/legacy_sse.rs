//! The HTTP+SSE transport of 2024-11-05 (`basic/transports`), for hosts that know no
//! other.
//!
//! A conversation is a pipe of which one direction is an event stream, opened with
//! GET, and the other one POSTs that are answered 202. The first event tells where
//! to send them; it lasts as long as the stream.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::admit;
use super::endpoint::{Conn, Endpoint, Event};
use super::gate::accepts;
use super::http::{State, no_session};
use super::peer::{PeerId, Place};
use super::token::Ticket;
use crate::driver::ConnId;
use crate::jsonrpc::{Envelope, Incoming, Message, code};
use crate::protocol::fault::Fault;
use crate::protocol::revision::Revision;
use crate::wire::http1::RequestHead;

/// Where the old transport is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LegacySse {
    /// The path of the event stream. Default `/sse`.
    pub stream: String,
    /// The path for messages. Default `/message`.
    pub message: String,
}

impl Default for LegacySse {
    fn default() -> Self {
        Self { stream: String::from("/sse"), message: String::from("/message") }
    }
}

/// The field of the query that names the conversation, as the official SDKs call it.
const QUERY: &str = "sessionId=";

impl LegacySse {
    /// Whether one of its paths is this.
    pub(super) fn has(&self, path: &str) -> bool {
        path == self.stream || path == self.message
    }
}

impl Endpoint {
    /// A request to one of the paths of the old transport.
    pub(super) fn read_legacy<'a>(
        &mut self,
        conn: ConnId,
        head: &RequestHead,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        let stream = self.config.legacy_sse.as_ref().is_some_and(|it| it.stream == head.path());
        match (stream, head.method()) {
            (true, "GET") => {
                self.open_conversation(conn, head);
                None
            }
            (false, "POST") => self.read_legacy_post(conn, head, body),
            // Hosts that know both transports try the newer one first, at this path.
            (true, _) => self.refuse_legacy(conn, 405, "Only GET is for this path"),
            (false, _) => self.refuse_legacy(conn, 405, "Only POST is for this path"),
        }
    }

    fn refuse_legacy<'a>(&mut self, conn: ConnId, status: u16, why: &str) -> Option<Event<'a>> {
        self.refuse(conn, status, &Fault::new(code::INVALID_REQUEST, why), None);
        None
    }

    fn open_conversation(&mut self, conn: ConnId, head: &RequestHead) {
        if !accepts(head, "text/event-stream") {
            let why = "GET opens an event stream: accept text/event-stream";
            self.refuse_legacy(conn, 406, why);
            return;
        }
        let Some(LegacySse { message, .. }) = self.config.legacy_sse.clone() else { return };
        let peer = self.add_pipe_peer(conn);
        let expires = self.now + self.config.limits.session_life;
        let revision = Revision::R2024_11_05;
        let Some(token) = self.seal_ticket(Ticket { revision, expires, peer }) else {
            self.end_peer(peer);
            self.refuse_legacy(conn, 500, "No conversation can be begun");
            return;
        };
        self.set_state(conn, State::Conversation(peer));
        self.begin_stream(conn);
        self.write_raw(conn, |event| {
            event.extend_from_slice(b"event: endpoint\ndata: ");
            event.extend_from_slice(message.as_bytes());
            event.extend_from_slice(b"?");
            event.extend_from_slice(QUERY.as_bytes());
            event.extend_from_slice(token.as_bytes());
            event.extend_from_slice(b"\n");
        });
    }

    fn read_legacy_post<'a>(
        &mut self,
        conn: ConnId,
        head: &RequestHead,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        let query = head.query().unwrap_or_default();
        let token = query.split('&').find_map(|field| field.strip_prefix(QUERY));
        let Some((peer, stream)) = token.and_then(|token| self.conversation(conn, token)) else {
            self.refuse(conn, 404, &no_session(), None);
            return None;
        };
        match Message::parse(body, &admit::JSON) {
            Ok(Incoming::Message(message)) => {
                self.write_empty(conn, 202);
                self.read_message(stream, peer, message)
            }
            Ok(Incoming::Batch(_)) => self.refuse_legacy(conn, 400, admit::NO_BATCH),
            Err(rejected) => {
                let fault = Fault { code: rejected.code, object: admit::rejection(&rejected) };
                self.refuse(conn, 400, &fault, rejected.id.as_deref());
                None
            }
        }
    }

    /// The conversation that a token names, and its stream, if it is of whoever asks.
    fn conversation(&self, conn: ConnId, token: &str) -> Option<(PeerId, ConnId)> {
        let Ticket { peer, expires, .. } = self.ticket(token)?;
        let Place::Pipe(stream) = self.peers.get(&peer)?.place else { return None };
        let live = matches!(
            self.conns.get(&stream),
            Some(Conn::Http(http)) if http.state == State::Conversation(peer)
        );
        let theirs = self.principal(conn) == self.principal(stream);
        (live && theirs && self.now < expires).then_some((peer, stream))
    }

    /// Writes a message on a pipe, as its framing has it.
    pub(super) fn write_pipe(&mut self, conn: ConnId, envelope: &Envelope<'_>) {
        self.write_pipe_line(conn, |out| envelope.write_line(out));
    }

    /// The same with a message that is written as a line.
    pub(super) fn write_pipe_line(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        match self.conns.get(&conn) {
            Some(Conn::Http(_)) => self.write_event_with(conn, write),
            _ => self.output.write(conn, write),
        }
    }
}
