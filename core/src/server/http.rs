//! The HTTP side: connections, answers and event streams.
//!
//! A connection serves one request at a time; bytes that come meanwhile are
//! held back, within a limit, so that answers keep their order.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::clients::Client;
use super::door::Door;
use super::endpoint::{Conn, Endpoint, Event, Full, Listener};
use super::exchange::Work;
use super::gate::{self, Principal, Verdict, accepts};
use super::limits::Limits;
use super::peer::PeerId;
use super::stream::EventId;
use crate::driver::{Action, ConnId, ListenerId};
use crate::jsonrpc::{Envelope, code, error_object};
use crate::output::PauseReason;
use crate::protocol::fault::Fault;
use crate::protocol::revision::Era;
use crate::time::Instant;
use crate::wire::http1::{self, Framing, Part, RequestHead, RequestReader, Version, write};

#[derive(Debug)]
pub(super) struct Http {
    listener: ListenerId,
    pub(super) from: Option<Client>,
    reader: RequestReader,
    pub(super) head: Option<RequestHead>,
    body: Vec<u8>,
    /// Bytes that came while the connection was busy.
    held: Vec<u8>,
    /// The host will send no more.
    pub(super) ended: bool,
    /// Whether the connection outlives the present request.
    pub(super) keep_alive: bool,
    pub(super) version: Version,
    /// The page that asks, if its browser is to be told that it may.
    pub(super) origin: Option<String>,
    /// Who asks, if that matters.
    pub(super) principal: Option<Principal>,
    pub(super) state: State,
    /// It came by the embedder's HTTP stack.
    pub(super) door: Option<Door>,
    /// Since when nothing is read of what waits for the host.
    pub(super) unread: Option<Instant>,
    /// When the state was entered, a request began, or a stream was written to.
    pub(super) since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Between requests.
    Idle,
    /// A request is coming.
    Reading,
    /// A request, or a batch, is being worked on.
    Busy(Work),
    /// A GET stream of a session.
    Stream(PeerId),
    /// The stream of a conversation by HTTP+SSE.
    Conversation(PeerId),
    /// Nothing more is read; what is queued is written, then the end.
    Closing,
}

impl Http {
    pub(super) fn new(
        now: Instant,
        listener: ListenerId,
        from: Option<Client>,
        limits: &Limits,
    ) -> Self {
        let limits =
            http1::Limits { body_bytes: limits.message_bytes as u64, ..http1::Limits::default() };
        Self {
            listener,
            from,
            reader: RequestReader::new(limits),
            head: None,
            body: Vec::new(),
            held: Vec::new(),
            ended: false,
            keep_alive: true,
            version: Version::Http11,
            origin: None,
            principal: None,
            state: State::Idle,
            door: None,
            unread: None,
            since: now,
        }
    }

    /// How long a request may take to come, as much of it as there is.
    pub(super) fn patience(&self, limits: &Limits) -> Duration {
        let rate = u64::from(limits.body_rate.max(1));
        limits.request_time + Duration::from_secs(self.body.len() as u64 / rate)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }
}

impl Endpoint {
    pub(super) fn http(&mut self, conn: ConnId) -> Option<&mut Http> {
        match self.conns.get_mut(&conn) {
            Some(Conn::Http(http)) => Some(http),
            _ => None,
        }
    }

    pub(super) fn receive_http<'a>(
        &mut self,
        conn: ConnId,
        input: &mut &'a [u8],
    ) -> Option<Event<'a>> {
        // The body, as long as it lies in the input in one piece.
        let mut piece: Option<&'a [u8]> = None;
        loop {
            let (now, limit) = (self.now, self.config.limits.held_bytes);
            let Some(http) = self.http(conn) else {
                *input = &[];
                return None;
            };
            // In a request a part may follow that takes no bytes: its end.
            if input.is_empty() && http.state != State::Reading {
                return None;
            }
            match http.state {
                State::Closing => {
                    *input = &[];
                    return None;
                }
                State::Busy(_) | State::Stream(_) | State::Conversation(_) => {
                    http.held.extend_from_slice(core::mem::take(input));
                    if http.held.len() > limit {
                        self.output.pause(conn, PauseReason::Busy);
                    }
                    return None;
                }
                State::Idle if !http.held.is_empty() => {
                    // The connection has just become free: what came first is
                    // read first.
                    http.held.extend_from_slice(core::mem::take(input));
                    return None;
                }
                State::Idle => {
                    http.state = State::Reading;
                    http.since = now;
                    let by = now + self.config.limits.request_time;
                    self.sweep_by(by);
                }
                State::Reading => match http.reader.next(input) {
                    Ok(None) => {
                        http.body.extend_from_slice(piece.unwrap_or_default());
                        return None;
                    }
                    Ok(Some(Part::Head(head))) => self.read_head(conn, head),
                    Ok(Some(Part::Data(data))) => {
                        if http.body.is_empty() && piece.is_none() {
                            piece = Some(data);
                        } else {
                            http.body.extend_from_slice(piece.take().unwrap_or_default());
                            http.body.extend_from_slice(data);
                        }
                    }
                    Ok(Some(Part::End(_))) => {
                        let Some(head) = http.head.take() else { continue };
                        let body = match piece.take() {
                            Some(piece) => Cow::Borrowed(piece),
                            None => Cow::Owned(core::mem::take(&mut http.body)),
                        };
                        if let Some(event) = self.read_request(conn, &head, body) {
                            return Some(event);
                        }
                    }
                    Err(error) => {
                        let status = error.status();
                        http.keep_alive = false;
                        let error = error_object(code::INVALID_REQUEST, &error.to_string(), None);
                        self.write_json(
                            conn,
                            status,
                            &Envelope::Error { id: None, error: &error },
                            None,
                        );
                    }
                },
            }
        }
    }

    /// Bytes that were held while the connection was busy. `None` when they are
    /// used up or wait for more.
    pub(super) fn receive_held(&mut self, conn: ConnId) -> Option<Event<'static>> {
        let http = self.http(conn)?;
        if http.state != State::Idle || http.held.is_empty() {
            return None;
        }
        let held = core::mem::take(&mut http.held);
        self.output.resume(conn, PauseReason::Busy);
        let mut input = held.as_slice();
        let event = self.receive_http(conn, &mut input).map(Event::into_owned);
        if !input.is_empty()
            && let Some(http) = self.http(conn)
        {
            http.held = input.to_vec();
        }
        event
    }

    /// What the head alone decides.
    pub(super) fn read_head(&mut self, conn: ConnId, head: RequestHead) {
        let Some(Conn::Http(http)) = self.conns.get_mut(&conn) else { return };
        http.keep_alive = head.keep_alive && http.door.is_none();
        http.version = head.version();
        let config = &self.config;
        let rules = match config.listeners.get(http.listener.0 as usize) {
            Some(Listener::Http(rules)) => Some(rules),
            _ => None,
        };
        let (verdict, origin) = gate::judge(&head, rules, config);
        http.origin = origin;
        let refused = match verdict {
            Verdict::Welcome(principal) => {
                http.principal = principal;
                if head.expect_continue && head.framing != Framing::None && http.door.is_none() {
                    self.output.write(conn, |tail| tail.extend_from_slice(write::CONTINUE));
                }
                http.head = Some(head);
                return;
            }
            Verdict::Preflight(fields) => Err(fields),
            Verdict::Refused(status, why) => Ok((status, why)),
        };
        // An unread body must not be taken for the next request.
        http.keep_alive &= head.framing == Framing::None;
        match refused {
            Ok((status, why)) => {
                self.refuse(conn, status, &Fault::new(code::INVALID_REQUEST, &why), None);
            }
            Err(fields) => self.write_preflight(conn, &fields),
        }
        if let Some(http) = self.http(conn)
            && http.state == State::Idle
        {
            // The reader still gives the end of this request.
            http.state = State::Reading;
        }
    }

    pub(super) fn read_request<'a>(
        &mut self,
        conn: ConnId,
        head: &RequestHead,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        if self.config.legacy_sse.as_ref().is_some_and(|it| it.has(head.path())) {
            return self.read_legacy(conn, head, body);
        }
        match head.method() {
            "POST" => self.read_post(conn, head, body),
            "GET" => self.open_get(conn, head),
            _ => {
                let token = head.fields.get_str("mcp-session-id").unwrap_or_default();
                match self.session(conn, token) {
                    Some(session) => {
                        self.end_peer(session.peer);
                        self.write_empty(conn, 204);
                    }
                    None => self.refuse(conn, 404, &no_session(), None),
                }
                None
            }
        }
    }

    /// A GET: the stream of a session for what belongs to no request.
    fn open_get(&mut self, conn: ConnId, head: &RequestHead) -> Option<Event<'static>> {
        let token = head.fields.get_str("mcp-session-id").map(str::trim);
        let Some(token) = token else {
            self.refuse(
                conn,
                405,
                &Fault::new(code::INVALID_REQUEST, "GET needs the Mcp-Session-Id of a session"),
                None,
            );
            return None;
        };
        let Some(peer) = self.session(conn, token).map(|session| session.peer) else {
            self.refuse(conn, 404, &no_session(), None);
            return None;
        };
        if !accepts(head, "text/event-stream") {
            let why = "GET opens an event stream: accept text/event-stream";
            self.refuse(conn, 406, &Fault::new(code::INVALID_REQUEST, why), None);
            return None;
        }
        match head.fields.get_str("last-event-id") {
            Some(id) => {
                let resumed =
                    EventId::parse(id).is_some_and(|after| self.resume_stream(conn, peer, after));
                if !resumed {
                    let why = "Last-Event-ID names no event that is still kept";
                    self.refuse(conn, 400, &Fault::new(code::INVALID_REQUEST, why), None);
                    return None;
                }
            }
            None => {
                self.set_state(conn, State::Stream(peer));
                self.open_stream(conn, peer, None);
                self.write_comment(conn);
            }
        }
        self.deliver_waiting(peer);
        None
    }

    pub(super) fn set_state(&mut self, conn: ConnId, state: State) {
        let now = self.now;
        if let Some(http) = self.http(conn) {
            http.state = state;
            http.since = now;
        }
        self.sweep_by(now + self.config.limits.keep_alive);
    }

    /// Marks a connection as working on something.
    pub(super) fn occupy(&mut self, conn: ConnId, work: Work) {
        self.set_state(conn, State::Busy(work));
    }

    /// A request does not come, or too slowly.
    pub(super) fn time_out(&mut self, conn: ConnId) {
        if let Some(http) = self.http(conn) {
            http.keep_alive = false;
            let why = "The request did not come in time";
            self.refuse(conn, 408, &Fault::new(code::INVALID_REQUEST, why), None);
        }
    }

    /// One connection more than there may be.
    pub(super) fn turn_away(&mut self, conn: ConnId, full: Full) {
        if let Some(http) = self.http(conn) {
            http.keep_alive = false;
            let (status, why) = full.refusal("connections");
            self.refuse(conn, status, &Fault::new(code::INTERNAL_ERROR, &why), None);
        }
    }

    /// The request of a connection is answered: on to the next, or the end.
    pub(super) fn free(&mut self, conn: ConnId) {
        let (now, draining) = (self.now, self.draining);
        let Some(http) = self.http(conn) else { return };
        if http.ended || draining || !http.keep_alive {
            self.hang_up(conn);
            return;
        }
        http.state = State::Idle;
        http.since = now;
        if !http.held.is_empty() {
            self.freed.push_back(conn);
        }
        self.sweep_by(now + self.config.limits.connection_idle);
    }

    /// Ends a connection when what is queued is written.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        let (now, queued) = (self.now, self.output.queued(conn));
        let Some(http) = self.http(conn) else { return };
        http.state = State::Closing;
        http.since = now;
        http.held = Vec::new();
        if http.ended && queued == 0 {
            self.close(conn);
            return;
        }
        self.output.act(Action::Finish(conn));
        self.sweep_by(now + super::sweep::LINGER);
    }

    pub(super) fn finish_http(&mut self, conn: ConnId) {
        let queued = self.output.queued(conn);
        let Some(http) = self.http(conn) else { return };
        http.ended = true;
        match http.state {
            State::Idle | State::Reading | State::Stream(_) | State::Conversation(_) => {
                self.close(conn);
            }
            State::Closing if queued == 0 => self.close(conn),
            State::Closing => {}
            State::Busy(Work::Request(exchange)) => {
                // A modern host that hangs up has cancelled its request; a
                // legacy one may have closed only its own direction.
                let era = self.exchanges.get(&exchange).map(|state| state.sender.revision.era());
                if era == Some(Era::Modern) {
                    self.close(conn);
                }
            }
            State::Busy(Work::Batch(_)) => {}
        }
    }

    /// What a connection that is gone leaves behind.
    pub(super) fn abandon_http(&mut self, conn: ConnId, state: State) {
        match state {
            State::Busy(work) => self.carrier_lost(work),
            State::Stream(peer) => {
                self.stream_lost(peer, conn);
            }
            State::Conversation(peer) => self.end_peer(peer),
            State::Idle | State::Reading | State::Closing => {}
        }
    }
}

pub(super) fn no_session() -> Fault {
    Fault::new(code::INVALID_REQUEST, "Session not found: it ended or never was; send initialize")
}
