//! A server at a Streamable HTTP URL.
//!
//! Every message is a POST of its own on a connection of its own; connections
//! are used again when their response has ended (requirements HTTP, SES, SSE and
//! HDR rows for the client's role).

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::lane::{Body, Job, Lane, Task};
use super::upstream::{Core, Event, Failure, RequestId};
use super::wires::Wires;
use crate::driver::{CloseReason, ConnId, Target};
use crate::jsonrpc::{self, Envelope, Incoming, Kind, Message};
use crate::protocol::method;
use crate::protocol::required_headers;
use crate::protocol::revision::{Era, Revision};
use crate::time::Instant;
use crate::wire::http1::write::{self, BodyLen};
use crate::wire::http1::{Part, ResponseHead, Url};
use crate::wire::sse;

#[derive(Debug)]
pub(super) struct Http {
    url: Url,
    /// Fields from the configuration.
    fields: Vec<(String, String)>,
    session: Option<String>,
    lanes: BTreeMap<ConnId, Lane>,
    /// Streams to open again, and when.
    later: Vec<(Instant, Reopen)>,
    /// Attempts to open the listening stream since it last worked.
    attempts: u32,
    listening: bool,
    /// The first request, until a response shows that the URL is right.
    unsettled: Option<(RequestId, String)>,
    redirects: u8,
    goodbye: Option<Instant>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Reopen {
    Listen(Option<String>),
    Resume(RequestId, String),
}

/// The head of a request that is to be written.
struct Head<'a> {
    verb: &'a str,
    /// The JSON-RPC method, if it is a message with one.
    method: &'a str,
    /// The body.
    envelope: Option<&'a Envelope<'a>>,
    /// More fields, for modern requests.
    fields: &'a [(String, String)],
    /// The last event that came of a stream.
    after: Option<&'a str>,
}

/// Redirects that are followed before the first answer.
const REDIRECTS: u8 = 3;

impl Http {
    pub(super) fn new(url: Url, fields: Vec<(String, String)>) -> Self {
        Self {
            url,
            fields,
            session: None,
            lanes: BTreeMap::new(),
            later: Vec::new(),
            attempts: 0,
            listening: false,
            unsettled: None,
            redirects: 0,
            goodbye: None,
        }
    }

    pub(super) fn request(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        request: RequestId,
        method: &str,
        envelope: &Envelope<'_>,
        fields: &[(String, String)],
    ) {
        if core.ended {
            core.fail(request, Failure::Stopped);
            return;
        }
        if let (method::INITIALIZE | method::DISCOVER, Envelope::Request { params, .. }) =
            (method, envelope)
        {
            self.unsettled = Some((request, String::from(params.unwrap_or("{}"))));
        }
        let task = Task::Request { request, initialize: method == method::INITIALIZE };
        let Some(conn) = self.lane(core, wires, task) else {
            core.fail(request, Failure::TooMany);
            return;
        };
        let head = Head { verb: "POST", method, envelope: Some(envelope), fields, after: None };
        if !self.write_head(core, wires, conn, &head) {
            self.drop_lane(wires, conn);
            core.fail(request, Failure::NotMcp("a header field has bad characters".into()));
            return;
        }
        wires.output.write(conn, |tail| envelope.write(tail));
    }

    pub(super) fn post(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        method: &str,
        envelope: &Envelope<'_>,
    ) {
        if core.ended {
            return;
        }
        let Some(conn) = self.lane(core, wires, Task::Post) else { return };
        let head =
            Head { verb: "POST", method, envelope: Some(envelope), fields: &[], after: None };
        if self.write_head(core, wires, conn, &head) {
            wires.output.write(conn, |tail| envelope.write(tail));
        } else {
            self.drop_lane(wires, conn);
        }
    }

    /// Opens the stream for what belongs to no request.
    pub(super) fn listen(&mut self, core: &mut Core, wires: &mut Wires) {
        if !self.listening && self.session.is_some() {
            self.listening = true;
            self.get(core, wires, Task::Listen, None);
        }
    }

    fn get(&mut self, core: &mut Core, wires: &mut Wires, task: Task, after: Option<&str>) {
        let Some(conn) = self.lane(core, wires, task) else { return };
        let head = Head { verb: "GET", method: "", envelope: None, fields: &[], after };
        if !self.write_head(core, wires, conn, &head) {
            self.drop_lane(wires, conn);
        }
    }

    /// A connection for one request: an idle one, or a new one. One that is not
    /// read, because what came before fills a host's queue, serves nobody else.
    fn lane(&mut self, core: &Core, wires: &mut Wires, task: Task) -> Option<ConnId> {
        let now = wires.now;
        let idle = self.lanes.iter().rev().find(|(conn, lane)| {
            lane.job.is_none()
                && now.since(lane.idle_since) < core.limits.reuse_idle
                && !wires.output.is_paused(**conn)
        });
        if let Some((&conn, _)) = idle {
            self.lanes.get_mut(&conn)?.job = Some(Job::new(task));
            return Some(conn);
        }
        let stale: Vec<ConnId> =
            self.lanes.iter().filter(|(_, lane)| lane.job.is_none()).map(|(c, _)| *c).collect();
        for conn in stale {
            self.drop_lane(wires, conn);
        }
        if self.lanes.len() >= core.limits.connections {
            return None;
        }
        let to = Target::Tcp { host: String::from(self.url.host()), port: self.url.port() };
        let conn = wires.connect(core.id, to);
        self.lanes.insert(conn, Lane::new(now, Job::new(task)));
        Some(conn)
    }

    fn drop_lane(&mut self, wires: &mut Wires, conn: ConnId) {
        if self.lanes.remove(&conn).is_some() {
            wires.close(conn);
        }
    }

    /// Queues the head of a request. `false` if it cannot be written: a field
    /// has characters that it must not have.
    fn write_head(
        &mut self,
        core: &Core,
        wires: &mut Wires,
        conn: ConnId,
        head: &Head<'_>,
    ) -> bool {
        let mut all: Vec<(&str, &str)> = Vec::with_capacity(12 + self.fields.len());
        match head.verb {
            "POST" => {
                all.push(("Content-Type", "application/json"));
                all.push(("Accept", "application/json, text/event-stream"));
            }
            "GET" => all.push(("Accept", "text/event-stream")),
            _ => {}
        }
        all.push(("User-Agent", concat!("mcpx/", env!("CARGO_PKG_VERSION"))));
        let modern = core.revision.is_some_and(|revision| revision.era() == Era::Modern);
        let mirrored = match head.envelope {
            Some(Envelope::Request { method, params, .. }) if modern => {
                required_headers::mirrored(method, *params, &[])
            }
            _ => Vec::new(),
        };
        // Not on initialize: strict servers refuse a version before the handshake.
        if let Some(revision) = core.revision
            && head.method != method::INITIALIZE
        {
            all.push(("MCP-Protocol-Version", revision.as_str()));
        }
        all.extend(mirrored.iter().map(|(name, value)| (&**name, &**value)));
        if modern {
            all.extend(head.fields.iter().map(|(name, value)| (&**name, &**value)));
        }
        if let Some(session) = &self.session {
            all.push(("Mcp-Session-Id", session));
        }
        if let Some(id) = head.after {
            all.push(("Last-Event-ID", id));
        }
        all.extend(self.fields.iter().map(|(name, value)| (&**name, &**value)));
        let body = match head.envelope {
            Some(envelope) => BodyLen::Length(envelope.len() as u64),
            None => BodyLen::None,
        };
        let (target, host) = (self.url.target(), self.url.authority());
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.reader.expect(head.verb);
        }
        let mut written = false;
        wires.output.write(conn, |tail| {
            written = write::request_head(tail, head.verb, target, host, &all, body).is_ok();
        });
        written
    }

    pub(super) fn connected(&mut self, conn: ConnId) {
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.connected = true;
        }
    }

    pub(super) fn receive<'a>(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        input: &mut &'a [u8],
    ) -> Option<Event<'a>> {
        // The body, as long as it lies in the input in one piece.
        let mut piece: Option<&'a [u8]> = None;
        loop {
            // What an event leads to must not depend on what came after it.
            if piece.is_none()
                && let Some(event) = core.events.pop_front()
            {
                return Some(event);
            }
            match self.read_event(core, wires, conn) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(sse::TooLong) => {
                    self.lose(core, wires, conn, Failure::TooLong);
                    return None;
                }
            }
            let Some(lane) = self.lanes.get_mut(&conn) else {
                *input = &[];
                return None;
            };
            let part = match lane.reader.next(input) {
                Ok(part) => part,
                Err(error) => {
                    let why = alloc::format!("{error}");
                    self.lose(core, wires, conn, Failure::NotMcp(why));
                    return None;
                }
            };
            match part {
                None => {
                    if let (Some(piece), Some(Job { body: Body::Json(body), .. })) =
                        (piece, &mut lane.job)
                    {
                        body.extend_from_slice(piece);
                    }
                    return None;
                }
                Some(Part::Interim(_)) => {}
                Some(Part::Head(head)) => {
                    lane.keep_alive = head.keep_alive;
                    self.read_head(core, conn, &head);
                }
                Some(Part::Data(data)) => {
                    let Some(job) = &mut lane.job else { continue };
                    let over = match &mut job.body {
                        Body::Json(body) if body.is_empty() && piece.is_none() => {
                            piece = Some(data);
                            data.len() > core.limits.message_bytes
                        }
                        Body::Json(body) => {
                            body.extend_from_slice(piece.take().unwrap_or_default());
                            body.extend_from_slice(data);
                            body.len() > core.limits.message_bytes
                        }
                        Body::Events(events) => {
                            events.rest.extend_from_slice(data);
                            false
                        }
                        Body::Awaited | Body::Ignored => false,
                    };
                    if over {
                        self.lose(core, wires, conn, Failure::TooLong);
                        return None;
                    }
                }
                Some(Part::End(_)) => {
                    if let Some(event) = self.read_end(core, wires, conn, piece.take()) {
                        return Some(event);
                    }
                }
            }
        }
    }

    fn read_head(&mut self, core: &mut Core, conn: ConnId, head: &ResponseHead) {
        let Some(job) = self.lanes.get_mut(&conn).and_then(|lane| lane.job.as_mut()) else {
            return;
        };
        job.begin(head, core.limits.message_bytes);
        let begins = matches!(job.task, Task::Request { initialize: true, .. });
        if begins && job.status == 200 {
            let id = head.fields.get_str("mcp-session-id").map(str::trim);
            // Only visible ASCII may be sent back (SES-03).
            self.session = id
                .filter(|id| !id.is_empty() && id.bytes().all(|b| (0x21..=0x7e).contains(&b)))
                .map(String::from);
        }
        if job.task == Task::Listen && job.status == 200 {
            self.attempts = 0;
        }
    }

    /// Reads on in an event stream, up to a message. Says whether there was one.
    fn read_event(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
    ) -> Result<bool, sse::TooLong> {
        let job = self.lanes.get_mut(&conn).and_then(|lane| lane.job.as_mut());
        let Some(Job { task, body: Body::Events(events), last_event_id, retry, .. }) = job else {
            return Ok(false);
        };
        let mut rest = events.rest.get(events.read..).unwrap_or_default();
        let event = events.decoder.next(&mut rest)?;
        events.read = events.rest.len() - rest.len();
        let id = events.decoder.last_event_id();
        if !id.is_empty() && last_event_id.as_deref() != Some(id) {
            *last_event_id = Some(String::from(id));
        }
        *retry = events.decoder.retry().or(*retry);
        let Some(event) = event else {
            events.rest.clear();
            events.read = 0;
            return Ok(false);
        };
        // Other types are not ours; a priming event has no data.
        if event.kind != "message" || event.data.is_empty() {
            return Ok(true);
        }
        let during = task.request();
        match Message::parse(bytes(event.data), &jsonrpc::Limits::DEFAULT) {
            Ok(Incoming::Message(message)) => {
                if let Some(event) = core.event(message, during) {
                    core.events.push_back(event.into_owned());
                }
            }
            Ok(Incoming::Batch(batch)) => core.split(&batch, during),
            Err(rejected) => {
                let why = alloc::format!("an event that is not JSON-RPC: {}", rejected.reason);
                core.report_noise(wires, why.as_bytes());
            }
        }
        Ok(true)
    }

    /// A response has ended.
    fn read_end<'a>(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        piece: Option<&'a [u8]>,
    ) -> Option<Event<'a>> {
        let lane = self.lanes.get_mut(&conn)?;
        let mut job = lane.job.take()?;
        lane.idle_since = wires.now;
        if !lane.keep_alive {
            self.drop_lane(wires, conn);
        }
        let body = match core::mem::replace(&mut job.body, Body::Ignored) {
            Body::Json(body) => piece.map_or(Cow::Owned(body), Cow::Borrowed),
            _ => Cow::Borrowed(&[][..]),
        };
        match job.task {
            Task::Request { request, initialize } => {
                if self.follow(core, wires, &job, request, initialize) {
                    return None;
                }
                self.settle(request, &job);
                self.answer(core, job, request, body, wires.now)
            }
            Task::Resume(request) => self.answer(core, job, request, body, wires.now),
            Task::Listen => {
                if job.status == 200 {
                    self.reopen_listen(core, &job, wires.now);
                }
                None
            }
            Task::Post => {
                if job.status >= 400 {
                    if job.status == 404 && self.session.is_some() {
                        core.end(Failure::SessionLost);
                    } else {
                        let why = alloc::format!(
                            "{}: it refused a message: HTTP {}",
                            core.name,
                            job.status
                        );
                        wires.output.tell(crate::event::Event::Warning(why));
                    }
                }
                None
            }
            Task::Goodbye => {
                self.close_all(wires);
                None
            }
        }
    }

    /// The response to a request, complete.
    fn answer<'a>(
        &mut self,
        core: &mut Core,
        job: Job,
        request: RequestId,
        body: Cow<'a, [u8]>,
        now: Instant,
    ) -> Option<Event<'a>> {
        if !core.open.contains(&request) {
            return None;
        }
        let lost = job.status == 404 && self.session.is_some();
        if body.is_empty() {
            match job.status {
                // A stream that ended early can be taken up again if it had ids.
                200 if resumable(core, &job) => self.resume_later(core, &job, request, now),
                200 => core.fail(request, Failure::Broken),
                _ if lost => core.end(Failure::SessionLost),
                status => core.fail(request, Failure::Status(status)),
            }
            return None;
        }
        match Message::parse(body, &jsonrpc::Limits::DEFAULT) {
            Ok(Incoming::Message(message)) if lost && message.kind() == Kind::Error => {
                core.end(Failure::SessionLost);
                None
            }
            // Refusals carry any id: the exchange says what they answer.
            Ok(Incoming::Message(message)) if message.kind() == Kind::Error => {
                core.open.remove(&request).then_some(Event::Answer { request, message })
            }
            Ok(Incoming::Message(message)) => {
                let event = core.event(message, Some(request));
                if !matches!(event, Some(Event::Answer { .. })) {
                    core.fail(request, Failure::NotMcp("its response holds no answer".into()));
                }
                event
            }
            Ok(Incoming::Batch(batch)) => {
                core.split(&batch, Some(request));
                core.fail(request, Failure::NotMcp("its batch holds no answer".into()));
                None
            }
            Err(_) if job.status != 200 => {
                if lost {
                    core.end(Failure::SessionLost);
                } else {
                    core.fail(request, Failure::Status(job.status));
                }
                None
            }
            Err(rejected) => {
                core.fail(request, Failure::NotMcp(alloc::format!("{}", rejected.reason)));
                None
            }
        }
    }

    /// Follows a redirect of the first request: the configured URL may lack a
    /// slash. Only within the same server.
    fn follow(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        job: &Job,
        request: RequestId,
        initialize: bool,
    ) -> bool {
        let (307 | 308, Some(location)) = (job.status, &job.location) else { return false };
        let Some((first, params)) = self.unsettled.take() else { return false };
        let url = match location.starts_with('/') {
            true => Url::parse(&alloc::format!("http://{}{location}", self.url.authority())),
            false => Url::parse(location),
        };
        let Some(url) = url.ok().filter(|url| {
            first == request
                && self.redirects < REDIRECTS
                && url.host() == self.url.host()
                && url.port() == self.url.port()
        }) else {
            return false;
        };
        self.url = url;
        self.redirects += 1;
        let method = if initialize { method::INITIALIZE } else { method::DISCOVER };
        let id = alloc::format!("{}", request.0);
        let envelope = Envelope::Request { id: &id, method, params: Some(&params) };
        self.request(core, wires, request, method, &envelope, &[]);
        true
    }

    fn settle(&mut self, request: RequestId, job: &Job) {
        if job.status < 300 && self.unsettled.as_ref().is_some_and(|(first, _)| *first == request) {
            self.unsettled = None;
        }
    }

    fn resume_later(&mut self, core: &Core, job: &Job, request: RequestId, now: Instant) {
        let wait = job.retry.map_or(core.limits.reconnect, Duration::from_millis);
        if let Some(id) = &job.last_event_id {
            self.later.push((now + wait, Reopen::Resume(request, id.clone())));
        }
    }

    fn reopen_listen(&mut self, core: &Core, job: &Job, now: Instant) {
        let limits = &core.limits;
        let backoff = limits.reconnect.saturating_mul(1 << self.attempts.min(10));
        let wait = job.retry.map_or(backoff.min(limits.reconnect_max), Duration::from_millis);
        self.attempts += 1;
        self.later.push((now + wait, Reopen::Listen(job.last_event_id.clone())));
    }

    pub(super) fn finished(&mut self, core: &mut Core, wires: &mut Wires, conn: ConnId) {
        let Some(lane) = self.lanes.get_mut(&conn) else { return };
        lane.keep_alive = false;
        match lane.reader.finish() {
            Ok(Some(_)) => {
                if let Some(event) = self.read_end(core, wires, conn, None) {
                    core.events.push_back(event.into_owned());
                }
            }
            Ok(None) | Err(_) => self.lose(core, wires, conn, Failure::Broken),
        }
        self.drop_lane(wires, conn);
    }

    pub(super) fn closed(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        why: CloseReason,
    ) {
        let Some(lane) = self.lanes.get(&conn) else { return };
        let failure = if lane.connected { Failure::Broken } else { Failure::NotConnected(why) };
        // The runtime has dropped it.
        wires.forget(conn);
        self.lose(core, wires, conn, failure);
    }

    /// A connection is of no more use: what was asked on it fails, or is asked
    /// again where that is safe.
    fn lose(&mut self, core: &mut Core, wires: &mut Wires, conn: ConnId, failure: Failure) {
        let Some(lane) = self.lanes.remove(&conn) else { return };
        wires.close(conn);
        let Some(job) = lane.job else { return };
        let now = wires.now;
        match job.task {
            Task::Request { request, .. } | Task::Resume(request) => {
                let broken = failure == Failure::Broken && core.open.contains(&request);
                if broken && resumable(core, &job) {
                    self.resume_later(core, &job, request, now);
                } else {
                    core.fail(request, failure);
                }
            }
            Task::Listen => self.reopen_listen(core, &job, now),
            Task::Post => {
                let why = alloc::format!("{}: a message was lost: {failure}", core.name);
                wires.output.tell(crate::event::Event::Warning(why));
            }
            Task::Goodbye => self.close_all(wires),
        }
    }

    /// Closes the stream of a request that nobody waits for.
    pub(super) fn abandon(&mut self, core: &Core, wires: &mut Wires, request: RequestId) {
        debug_assert!(!core.open.contains(&request));
        let found = self.lanes.iter().find(|(_, lane)| {
            lane.job.as_ref().is_some_and(|job| job.task.request() == Some(request))
        });
        if let Some((&conn, _)) = found {
            self.drop_lane(wires, conn);
        }
    }

    pub(super) fn stop(&mut self, core: &mut Core, wires: &mut Wires) {
        let legacy = core.revision.is_some_and(|r| r != Revision::NEWEST_MODERN);
        self.later.clear();
        if self.goodbye.is_some() {
            return;
        }
        if !legacy || self.session.is_none() {
            self.close_all(wires);
            return;
        }
        let busy: Vec<ConnId> =
            self.lanes.iter().filter(|(_, lane)| lane.job.is_some()).map(|(c, _)| *c).collect();
        for conn in busy {
            self.drop_lane(wires, conn);
        }
        if let Some(conn) = self.lane(core, wires, Task::Goodbye) {
            let head =
                Head { verb: "DELETE", method: "", envelope: None, fields: &[], after: None };
            self.write_head(core, wires, conn, &head);
        }
        self.goodbye = Some(wires.now + core.limits.goodbye);
    }

    pub(super) fn close_all(&mut self, wires: &mut Wires) {
        while let Some((conn, _)) = self.lanes.pop_first() {
            wires.close(conn);
        }
        self.later.clear();
        self.goodbye = None;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).chain(self.goodbye).min()
    }

    pub(super) fn tick(&mut self, core: &mut Core, wires: &mut Wires) {
        let now = wires.now;
        if self.goodbye.is_some_and(|at| at <= now) {
            self.close_all(wires);
        }
        let (due, later) =
            core::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Instant, Reopen)> = due;
        for (_, reopen) in due {
            match reopen {
                Reopen::Listen(after) => self.get(core, wires, Task::Listen, after.as_deref()),
                Reopen::Resume(request, after) => {
                    if core.open.contains(&request) {
                        self.get(core, wires, Task::Resume(request), Some(&after));
                    }
                }
            }
        }
    }
}

/// Whether the stream of a response can be taken up again: its events had ids,
/// and the server is of a revision that keeps them (not 2026-07-28, SSE-08).
fn resumable(core: &Core, job: &Job) -> bool {
    let legacy = core.revision.is_none_or(|revision| revision.era() == Era::Legacy);
    legacy && job.last_event_id.is_some()
}

/// The bytes of an event's data.
fn bytes(data: Cow<'_, str>) -> Cow<'_, [u8]> {
    match data {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
