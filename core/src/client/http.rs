//! A server at a Streamable HTTP URL.
//!
//! Every message is a POST of its own on a connection of its own; connections
//! are used again when their response has ended (requirements HTTP, SES, SSE and
//! HDR rows for the client's role).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use smallvec::SmallVec;

use super::again::Again;
use super::failure::Failure;
use super::lane::{Job, Lane, Task};
use super::legacy_sse::LegacySse;
use super::upstream::{Core, Event, RequestId};
use super::wires::Wires;
use crate::driver::{CloseReason, ConnId, Target};
use crate::jsonrpc::Envelope;
use crate::protocol::method;
use crate::protocol::required_headers;
use crate::protocol::revision::{Era, Revision};
use crate::time::Instant;
use crate::wire::http1::Url;
use crate::wire::http1::write::{self, BodyLen};

#[derive(Debug)]
pub(super) struct Http {
    pub(super) url: Url,
    /// Fields from the configuration.
    fields: Vec<(String, String)>,
    pub(super) session: Option<String>,
    /// In boxes: the map has room for many where mostly there is one, or none.
    pub(super) lanes: BTreeMap<ConnId, Box<Lane>>,
    /// Streams to open again, and when.
    pub(super) later: Vec<(Instant, Reopen)>,
    /// Attempts to open the listening stream since it last worked.
    pub(super) attempts: u32,
    listening: bool,
    /// Until when what follows the handshake waits for the server to know its end.
    pub(super) opening: Option<Instant>,
    /// What waits for that.
    pub(super) held: Vec<(Task, Again)>,
    /// The transport of 2024-11-05, if the URL knows no other.
    pub(super) legacy: Option<Box<LegacySse>>,
    goodbye: Option<Instant>,
}

/// What is done later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reopen {
    Listen(Option<String>),
    /// Not yet, but soon.
    Part(RequestId),
    Resume {
        request: RequestId,
        after: String,
        attempts: u32,
    },
    Again(Task, Again),
}

/// The head of a request that is to be written.
struct Head<'a> {
    verb: &'static str,
    /// The JSON-RPC method, if it is a message with one.
    method: &'a str,
    /// The body.
    envelope: Option<&'a Envelope<'a>>,
    /// More fields, for modern requests.
    fields: &'a [(String, String)],
    /// The last event that came of a stream.
    after: Option<&'a str>,
}

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
            opening: None,
            held: Vec::new(),
            legacy: None,
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
        let task = match self.endpoint() {
            Some(_) => Task::Sent(request),
            None => Task::Request { request, initialize: method == method::INITIALIZE },
        };
        let head = Head { verb: "POST", method, envelope: Some(envelope), fields, after: None };
        if let Err(failure) = self.send(core, wires, task, &head) {
            core.fail(request, failure);
        }
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
        let head =
            Head { verb: "POST", method, envelope: Some(envelope), fields: &[], after: None };
        let task = if method == method::INITIALIZED { Task::Initialized } else { Task::Post };
        if let Err(failure) = self.send(core, wires, task, &head) {
            self.give_up(core, wires, Job::new(task), failure);
        } else if task == Task::Initialized {
            self.opening = Some(wires.now + core.limits.opening);
        }
    }

    /// Opens the stream for what belongs to no request.
    pub(super) fn listen(&mut self, core: &mut Core, wires: &mut Wires) {
        if !self.listening && self.session.is_some() {
            self.listening = true;
            let _ = self.get(core, wires, Task::Listen, None);
        }
    }

    pub(super) fn get(
        &mut self,
        core: &Core,
        wires: &mut Wires,
        task: Task,
        after: Option<&str>,
    ) -> Result<Option<&mut Job>, Failure> {
        let head = Head { verb: "GET", method: "", envelope: None, fields: &[], after };
        let conn = self.send(core, wires, task, &head)?;
        let lane = conn.and_then(|conn| self.lanes.get_mut(&conn));
        let Some(job) = lane.and_then(|lane| lane.job.as_mut()) else { return Ok(None) };
        // Until there is another, this one counts.
        job.last_event_id = after.map(String::from);
        Ok(Some(job))
    }

    /// Sends a request on a connection of its own; none if it has to wait.
    fn send(
        &mut self,
        core: &Core,
        wires: &mut Wires,
        task: Task,
        head: &Head<'_>,
    ) -> Result<Option<ConnId>, Failure> {
        if self.opening.is_some() && task != Task::Goodbye {
            let mut bytes = Vec::new();
            self.write(core, &mut bytes, head)?;
            let again = Again::new(head.verb, &bytes, method::is_safe(head.method));
            self.held.push((task, again));
            return Ok(None);
        }
        let conn = self.lane(core, wires, task).ok_or(Failure::TooMany)?;
        let mut written = Ok(None);
        wires.output.write(conn, |tail| {
            let start = tail.len();
            written = self.write(core, tail, head).map(|()| {
                let bytes = tail.get(start..).unwrap_or_default();
                let kept = bytes.len() <= core.limits.again_bytes;
                kept.then(|| Again::new(head.verb, bytes, method::is_safe(head.method)))
            });
        });
        let again = match written {
            Ok(again) => again,
            Err(failure) => {
                self.drop_lane(wires, conn);
                return Err(failure);
            }
        };
        self.expect(conn, head.verb, again);
        Ok(Some(conn))
    }

    /// Appends a request.
    fn write(&self, core: &Core, tail: &mut Vec<u8>, head: &Head<'_>) -> Result<(), Failure> {
        let fields = self.fields_of(core, head);
        let fields: SmallVec<[(&str, &str); 12]> =
            fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        let body = match head.envelope {
            Some(envelope) => BodyLen::Length(envelope.len() as u64),
            None => BodyLen::None,
        };
        let to = head.envelope.and_then(|_| self.endpoint()).unwrap_or(&self.url);
        let (target, host) = (to.target(), self.url.authority());
        write::request_head(tail, head.verb, target, host, &fields, body)
            .map_err(|_| Failure::NotMcp("a header field has bad characters".into()))?;
        if let Some(envelope) = head.envelope {
            envelope.write(tail);
        }
        Ok(())
    }

    /// Where messages go, if not to the URL.
    fn endpoint(&self) -> Option<&Url> {
        self.legacy.as_ref()?.endpoint()
    }

    /// A connection for one request: an idle one, or a new one. One that is not
    /// read, because what came before fills a host's queue, serves nobody else.
    pub(super) fn lane(&mut self, core: &Core, wires: &mut Wires, task: Task) -> Option<ConnId> {
        let now = wires.now;
        let idle = self.lanes.iter().rev().find(|(conn, lane)| {
            lane.job.is_none()
                && now.since(lane.idle_since) < core.limits.reuse_idle
                && !wires.output.is_paused(**conn)
        });
        if let Some((&conn, _)) = idle {
            let lane = self.lanes.get_mut(&conn)?;
            lane.job = Some(Job::new(task));
            lane.reused = true;
            return Some(conn);
        }
        self.drop_idle(wires);
        if self.lanes.len() >= core.limits.connections {
            return None;
        }
        let (host, port) = (String::from(self.url.host()), self.url.port());
        let to = match self.url.is_secure() {
            true => Target::Tls { host, port },
            false => Target::Tcp { host, port },
        };
        let conn = wires.connect(core.id, to);
        self.lanes.insert(conn, Box::new(Lane::new(now, Job::new(task))));
        Some(conn)
    }

    /// Drops the connections that nothing is asked on.
    pub(super) fn drop_idle(&mut self, wires: &mut Wires) {
        let idle: Vec<ConnId> =
            self.lanes.iter().filter(|(_, lane)| lane.job.is_none()).map(|(c, _)| *c).collect();
        for conn in idle {
            self.drop_lane(wires, conn);
        }
    }

    pub(super) fn drop_lane(&mut self, wires: &mut Wires, conn: ConnId) {
        if self.lanes.remove(&conn).is_some() {
            wires.close(conn);
        }
    }

    /// The fields of a request, those of the connection apart.
    fn fields_of<'a>(
        &'a self,
        core: &Core,
        head: &Head<'a>,
    ) -> SmallVec<[(Cow<'a, str>, Cow<'a, str>); 12]> {
        let mut all = SmallVec::new();
        let mut add = |name: &'a str, value: &'a str| all.push((name.into(), value.into()));
        match head.verb {
            "POST" => {
                add("Content-Type", "application/json");
                add("Accept", "application/json, text/event-stream");
            }
            "GET" => add("Accept", "text/event-stream"),
            _ => {}
        }
        add("User-Agent", concat!("mcpx/", env!("CARGO_PKG_VERSION")));
        // Not on initialize: strict servers refuse a version before the handshake.
        if let Some(revision) = core.revision
            && head.method != method::INITIALIZE
        {
            add("MCP-Protocol-Version", revision.as_str());
        }
        if let Some(session) = &self.session {
            add("Mcp-Session-Id", session);
        }
        if let Some(id) = head.after {
            add("Last-Event-ID", id);
        }
        if core.revision.is_some_and(|revision| revision.era() == Era::Modern) {
            if let Some(Envelope::Request { method, params, .. }) = head.envelope {
                let mirrored = required_headers::mirrored(method, *params, &[]);
                all.extend(mirrored.into_iter().map(|(name, value)| (name, value.into())));
            }
            all.extend(head.fields.iter().map(borrowed));
        }
        all.extend(self.fields.iter().map(borrowed));
        all
    }

    pub(super) fn connected(&mut self, conn: ConnId) {
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.connected = true;
        }
    }

    pub(super) fn resume_later(
        &mut self,
        core: &Core,
        job: &Job,
        request: RequestId,
        now: Instant,
    ) {
        let backoff = core.limits.backoff(job.attempts);
        let wait = job.retry.map_or(backoff, Duration::from_millis);
        if let Some(after) = job.last_event_id.clone() {
            let attempts = job.attempts + 1;
            self.later.push((now + wait, Reopen::Resume { request, after, attempts }));
        }
    }

    /// The server is polled for its answer after the time that it gives. Whoever
    /// asked is told when that is near: so their own pause need not be as long.
    pub(super) fn poll_later(
        &mut self,
        core: &Core,
        job: &Job,
        request: RequestId,
        now: Instant,
    ) -> Option<Event<'static>> {
        self.resume_later(core, job, request, now);
        let early = core.limits.reconnect;
        match job.retry.map(Duration::from_millis).and_then(|wait| wait.checked_sub(early)) {
            Some(held) => {
                self.later.push((now + held, Reopen::Part(request)));
                None
            }
            None => Some(Event::Parted { request }),
        }
    }

    pub(super) fn reopen_listen(&mut self, core: &Core, job: &Job, now: Instant) {
        let backoff = core.limits.backoff(self.attempts);
        let wait = job.retry.map_or(backoff, Duration::from_millis);
        self.attempts += 1;
        self.later.push((now + wait, Reopen::Listen(job.last_event_id.clone())));
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
    pub(super) fn lose(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        failure: Failure,
    ) {
        let Some(mut lane) = self.lanes.remove(&conn) else { return };
        wires.close(conn);
        let Some(mut job) = lane.job.take() else { return };
        if failure != Failure::Broken || !self.leave_stale(core, wires, &lane, &mut job) {
            self.give_up(core, wires, job, failure);
        }
    }

    /// What was asked has come to nothing so far.
    pub(super) fn give_up(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        job: Job,
        failure: Failure,
    ) {
        let now = wires.now;
        match job.task {
            Task::Request { request, .. } | Task::Resume(request) => {
                let broken = matches!(failure, Failure::Broken | Failure::NotConnected(_));
                let hope = broken && job.attempts < core.limits.resumptions;
                if hope && core.open.contains(&request) && resumable(core, &job) {
                    self.resume_later(core, &job, request, now);
                } else {
                    core.fail(request, failure);
                }
            }
            Task::Listen => self.reopen_listen(core, &job, now),
            Task::Stream => self.on_legacy_end(core, wires),
            Task::Sent(request) => core.fail(request, failure),
            Task::Post | Task::Initialized => {
                let why = alloc::format!("{}: a message was lost: {failure}", core.name);
                wires.output.tell(crate::event::Event::Warning(why));
                if job.task == Task::Initialized {
                    self.release(core, wires);
                }
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
        self.held.clear();
        self.opening = None;
        if self.goodbye.is_some() {
            return;
        }
        if !legacy || self.session.is_none() || core.lost {
            self.close_all(wires);
            return;
        }
        let busy: Vec<ConnId> =
            self.lanes.iter().filter(|(_, lane)| lane.job.is_some()).map(|(c, _)| *c).collect();
        for conn in busy {
            self.drop_lane(wires, conn);
        }
        let head = Head { verb: "DELETE", method: "", envelope: None, fields: &[], after: None };
        if self.send(core, wires, Task::Goodbye, &head).is_err() {
            return self.close_all(wires);
        }
        self.goodbye = Some(wires.now + core.limits.goodbye);
    }

    pub(super) fn close_all(&mut self, wires: &mut Wires) {
        while let Some((conn, _)) = self.lanes.pop_first() {
            wires.close(conn);
        }
        self.later.clear();
        self.held.clear();
        self.opening = None;
        self.goodbye = None;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let legacy = self.legacy.as_ref().and_then(|legacy| legacy.deadline());
        let later = self.later.iter().map(|(at, _)| *at);
        later.chain(self.goodbye).chain(legacy).chain(self.opening).min()
    }

    pub(super) fn tick(&mut self, core: &mut Core, wires: &mut Wires) {
        let now = wires.now;
        if self.goodbye.is_some_and(|at| at <= now) {
            self.close_all(wires);
        }
        self.check_legacy(core, wires);
        if self.opening.is_some_and(|at| at <= now) {
            self.release(core, wires);
        }
        let (due, later) =
            core::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Instant, Reopen)> = due;
        for (_, reopen) in due {
            match reopen {
                Reopen::Listen(after) => {
                    let _ = self.get(core, wires, Task::Listen, after.as_deref());
                }
                Reopen::Part(request) => {
                    if core.open.contains(&request) {
                        core.events.push_back(Event::Parted { request });
                    }
                }
                Reopen::Resume { request, after, attempts } => {
                    if core.open.contains(&request) {
                        match self.get(core, wires, Task::Resume(request), Some(&after)) {
                            Ok(Some(job)) => job.attempts = attempts,
                            Ok(None) => {}
                            Err(failure) => core.fail(request, failure),
                        }
                    }
                }
                Reopen::Again(task, again) => self.resume_again(core, wires, task, again),
            }
        }
    }
}

fn borrowed((name, value): &(String, String)) -> (Cow<'_, str>, Cow<'_, str>) {
    (name.into(), value.into())
}

/// Whether the stream of a response can be taken up again: its events had ids,
/// and the server is of a revision that keeps them (not 2026-07-28, SSE-08).
pub(super) fn resumable(core: &Core, job: &Job) -> bool {
    let legacy = core.revision.is_none_or(|revision| revision.era() == Era::Legacy);
    legacy && job.last_event_id.is_some()
}
