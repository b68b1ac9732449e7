//! The HTTP side: connections, answers and event streams.
//!
//! A connection serves one request at a time; bytes that come meanwhile are
//! held back, within a limit, so that answers keep their order.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::endpoint::{Conn, Endpoint, Event, Listener};
use super::exchange::Work;
use super::limits::Limits;
use super::peer::PeerId;
use super::stream::EventId;
use crate::driver::{Action, ConnId, ListenerId};
use crate::jsonrpc::{Envelope, code, error_object};
use crate::output::PauseReason;
use crate::protocol::fault::Fault;
use crate::protocol::revision::Era;
use crate::time::Instant;
use crate::wire::http1::write::{self, BodyLen};
use crate::wire::http1::{self, Form, Framing, Part, RequestHead, RequestReader, Version};

#[derive(Debug)]
pub(super) struct Http {
    listener: ListenerId,
    reader: RequestReader,
    head: Option<RequestHead>,
    body: Vec<u8>,
    /// Bytes that came while the connection was busy.
    held: Vec<u8>,
    /// The host will send no more.
    pub(super) ended: bool,
    /// Whether the connection outlives the present request.
    keep_alive: bool,
    version: Version,
    pub(super) state: State,
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
    /// Nothing more is read; what is queued is written, then the end.
    Closing,
}

impl Http {
    pub(super) fn new(now: Instant, listener: ListenerId, limits: &Limits) -> Self {
        let limits =
            http1::Limits { body_bytes: limits.message_bytes as u64, ..http1::Limits::default() };
        Self {
            listener,
            reader: RequestReader::new(limits),
            head: None,
            body: Vec::new(),
            held: Vec::new(),
            ended: false,
            keep_alive: true,
            version: Version::Http11,
            state: State::Idle,
            since: now,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }
}

impl Endpoint {
    fn http(&mut self, conn: ConnId) -> Option<&mut Http> {
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
                State::Busy(_) | State::Stream(_) => {
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
    fn read_head(&mut self, conn: ConnId, head: RequestHead) {
        let Some(Conn::Http(http)) = self.conns.get_mut(&conn) else { return };
        http.keep_alive = head.keep_alive;
        http.version = head.version();
        let rules = match self.config.listeners.get(http.listener.0 as usize) {
            Some(Listener::Http(rules)) => Some(rules),
            _ => None,
        };
        let refusal = rules.and_then(|rules| {
            let fields = &head.fields;
            let target = head.host().filter(|_| head.form() == Form::Absolute);
            rules.check(fields.get_all("host"), fields.get_all("origin"), target).err()
        });
        let refusal = match refusal {
            Some(refused) => Some((refused.status(), refused.to_string())),
            None => refuse_by_head(&head, &self.config.path)
                .map(|(status, why)| (status, String::from(why))),
        };
        match refusal {
            Some((status, why)) => {
                // An unread body must not be taken for the next request.
                http.keep_alive &= head.framing == Framing::None;
                self.refuse(conn, status, &Fault::new(code::INVALID_REQUEST, &why), None);
                if let Some(http) = self.http(conn)
                    && http.state == State::Idle
                {
                    // The reader still gives the end of this request.
                    http.state = State::Reading;
                }
            }
            None => {
                if head.expect_continue && head.framing != Framing::None {
                    self.output.write(conn, |tail| tail.extend_from_slice(write::CONTINUE));
                }
                http.head = Some(head);
            }
        }
    }

    fn read_request<'a>(
        &mut self,
        conn: ConnId,
        head: &RequestHead,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        match head.method() {
            "POST" => self.read_post(conn, head, body),
            "GET" => self.open_get(conn, head),
            _ => {
                let token = head.fields.get_str("mcp-session-id").unwrap_or_default();
                match self.session(token) {
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
        let Some(peer) = self.session(token).map(|session| session.peer) else {
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

    /// The request of a connection is answered: on to the next, or the end.
    fn free(&mut self, conn: ConnId) {
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
            State::Idle | State::Reading | State::Stream(_) => self.close(conn),
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
            State::Idle | State::Reading | State::Closing => {}
        }
    }

    pub(super) fn begin_stream(&mut self, conn: ConnId) {
        let Some(http) = self.http(conn) else { return };
        let length = match http.version {
            Version::Http11 => BodyLen::Chunked,
            Version::Http10 => {
                http.keep_alive = false;
                BodyLen::Close
            }
        };
        let mut fields: Vec<(&str, &str)> = Vec::from([
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
            ("X-Accel-Buffering", "no"),
        ]);
        if !http.keep_alive {
            fields.push(("Connection", "close"));
        }
        self.output.write(conn, |tail| write_head(tail, 200, &fields, length));
    }

    pub(super) fn write_event(&mut self, conn: ConnId, envelope: &Envelope<'_>) {
        self.write_raw(conn, |event| {
            event.extend_from_slice(EVENT);
            envelope.write_line(event);
        });
    }

    /// Writes a message that is a line as an event.
    pub(super) fn write_event_line(&mut self, conn: ConnId, line: &[u8]) {
        self.write_raw(conn, |event| {
            event.extend_from_slice(EVENT);
            event.extend_from_slice(line);
        });
    }

    /// Writes an event, complete but for its last line end.
    pub(super) fn write_raw(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        let mut event = core::mem::take(&mut self.scratch);
        event.clear();
        write(&mut event);
        self.write_scratch(conn, event);
    }

    pub(super) fn write_comment(&mut self, conn: ConnId) {
        self.write_raw(conn, |event| event.extend_from_slice(b":\n"));
    }

    /// Sends an event, complete but for its last line end, as one chunk.
    fn write_scratch(&mut self, conn: ConnId, mut event: Vec<u8>) {
        event.push(b'\n');
        let now = self.now;
        if let Some(http) = self.http(conn) {
            http.since = now;
            let chunked = http.version == Version::Http11;
            self.output.write(conn, |tail| {
                if chunked {
                    write::chunk(tail, &[&event]);
                } else {
                    tail.extend_from_slice(&event);
                }
            });
        }
        event.shrink_to(64 << 10);
        self.scratch = event;
    }

    pub(super) fn end_stream(&mut self, conn: ConnId) {
        let Some(http) = self.http(conn) else { return };
        if http.version == Version::Http11 {
            self.output.write(conn, write::last_chunk);
        }
        self.free(conn);
    }

    /// Ends the response to a request that will not be answered.
    pub(super) fn end_without_answer(&mut self, conn: ConnId, sse: bool, streaming: bool) {
        if streaming {
            self.end_stream(conn);
        } else if sse {
            self.begin_stream(conn);
            self.end_stream(conn);
        } else {
            self.write_empty(conn, 202);
        }
    }

    pub(super) fn write_json(
        &mut self,
        conn: ConnId,
        status: u16,
        envelope: &Envelope<'_>,
        session: Option<&str>,
    ) {
        self.write_body(conn, status, session, envelope.len() as u64, |tail| envelope.write(tail));
    }

    /// Writes a response whose body is JSON of `length` bytes.
    pub(super) fn write_body(
        &mut self,
        conn: ConnId,
        status: u16,
        session: Option<&str>,
        length: u64,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(http) = self.http(conn) else { return };
        let mut fields: Vec<(&str, &str)> = Vec::from([("Content-Type", "application/json")]);
        if let Some(session) = session {
            fields.push(("Mcp-Session-Id", session));
        }
        if status == 405 {
            fields.push(("Allow", "POST, GET, DELETE"));
        }
        if status == 503 {
            fields.push(("Retry-After", "5"));
        }
        if !http.keep_alive {
            fields.push(("Connection", "close"));
        }
        self.output.write(conn, |tail| {
            write_head(tail, status, &fields, BodyLen::Length(length));
            body(tail);
        });
        self.free(conn);
    }

    pub(super) fn refuse(&mut self, conn: ConnId, status: u16, fault: &Fault, id: Option<&str>) {
        self.write_json(conn, status, &Envelope::Error { id, error: &fault.object }, None);
    }

    pub(super) fn write_empty(&mut self, conn: ConnId, status: u16) {
        let Some(http) = self.http(conn) else { return };
        let close: &[(&str, &str)] = if http.keep_alive { &[] } else { &[("Connection", "close")] };
        let length = if status == 204 { BodyLen::None } else { BodyLen::Length(0) };
        self.output.write(conn, |tail| write_head(tail, status, close, length));
        self.free(conn);
    }
}

const EVENT: &[u8] = b"event: message\ndata: ";

/// Writes a head whose fields are all ours: none of them can be refused.
fn write_head(tail: &mut Vec<u8>, status: u16, fields: &[(&str, &str)], length: BodyLen) {
    let written = write::response_head(tail, status, fields, length);
    debug_assert!(written.is_ok());
}

pub(super) fn no_session() -> Fault {
    Fault::new(code::INVALID_REQUEST, "Session not found: it ended or never was; send initialize")
}

fn refuse_by_head(head: &RequestHead, path: &str) -> Option<(u16, &'static str)> {
    // Nothing else is here, so whoever names only the host means it.
    if head.path() != path && head.path() != "/" {
        return Some((404, "Not found: the MCP endpoint is at another path"));
    }
    match head.method() {
        "POST" => {}
        "GET" | "DELETE" => return None,
        _ => return Some((405, "Method not allowed: use POST, GET or DELETE")),
    }
    if !is_json(head.fields.get_str("content-type").unwrap_or_default()) {
        return Some((415, "Content-Type must be application/json"));
    }
    if !accepts(head, "application/json") && !accepts(head, "text/event-stream") {
        return Some((406, "Accept must allow application/json and text/event-stream"));
    }
    None
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Whether `Accept` allows a media type.
pub(super) fn accepts(head: &RequestHead, media: &str) -> bool {
    wish(head, media).is_some()
}

/// How much `Accept` wants a media type, if it allows it: its weight in
/// thousandths (RFC 9110 12.5.1), then its place, for hosts without weights name
/// first what they like best. Without `Accept`, all are the same.
pub(super) fn wish(head: &RequestHead, media: &str) -> Option<(u16, Reverse<usize>)> {
    let kind = media.split('/').next().unwrap_or_default();
    let mut values = head.fields.get_all("accept").peekable();
    if values.peek().is_none() {
        return Some((1000, Reverse(0)));
    }
    values
        .flat_map(|value| core::str::from_utf8(value).unwrap_or_default().split(','))
        .enumerate()
        .filter_map(|(place, range)| {
            let mut parts = range.split(';');
            let essence = parts.next().unwrap_or_default().trim();
            let wild = essence
                .strip_suffix("/*")
                .is_some_and(|prefix| prefix == "*" || prefix.eq_ignore_ascii_case(kind));
            let weight = parts
                .filter_map(|parameter| parameter.split_once('='))
                .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
                .map_or(1000, |(_, weight)| thousandths(weight));
            let fits = wild || essence.eq_ignore_ascii_case(media);
            (fits && weight > 0).then_some((weight, Reverse(place)))
        })
        .max()
}

/// A weight, 0 to 1, in thousandths. One that is no number refuses.
fn thousandths(weight: &str) -> u16 {
    let weight: f32 = weight.trim().parse().unwrap_or_default();
    (weight.clamp(0.0, 1.0) * 1000.0) as u16
}
