//! A server at a Streamable HTTP URL.
//!
//! Every message is a POST of its own on a connection of its own; connections
//! are used again when their response has ended (requirements HTTP, SES, SSE and
//! HDR rows for the client's role).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::lane::{Job, Lane, Task};
use super::legacy_sse::LegacySse;
use super::upstream::{Core, Event, Failure, RequestId};
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
    later: Vec<(Instant, Reopen)>,
    /// Attempts to open the listening stream since it last worked.
    pub(super) attempts: u32,
    listening: bool,
    /// The first request, until a response shows that the URL is right.
    pub(super) unsettled: Option<(RequestId, String)>,
    pub(super) redirects: u8,
    /// The transport of 2024-11-05, if the URL knows no other.
    pub(super) legacy: Option<Box<LegacySse>>,
    goodbye: Option<Instant>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Reopen {
    Listen(Option<String>),
    /// Not yet, but soon.
    Part(RequestId),
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
        if let (
            Task::Request { .. },
            method::INITIALIZE | method::DISCOVER,
            Envelope::Request { params, .. },
        ) = (task, method, envelope)
        {
            self.unsettled = Some((request, String::from(params.unwrap_or("{}"))));
        }
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

    pub(super) fn get(
        &mut self,
        core: &Core,
        wires: &mut Wires,
        task: Task,
        after: Option<&str>,
    ) -> Option<ConnId> {
        let conn = self.lane(core, wires, task)?;
        let head = Head { verb: "GET", method: "", envelope: None, fields: &[], after };
        if self.write_head(core, wires, conn, &head) {
            return Some(conn);
        }
        self.drop_lane(wires, conn);
        None
    }

    /// Where messages go, if not to the URL.
    fn endpoint(&self) -> Option<&Url> {
        self.legacy.as_ref()?.endpoint()
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
        let (host, port) = (String::from(self.url.host()), self.url.port());
        let to = match self.url.is_secure() {
            true => Target::Tls { host, port },
            false => Target::Tcp { host, port },
        };
        let conn = wires.connect(core.id, to);
        self.lanes.insert(conn, Box::new(Lane::new(now, Job::new(task))));
        Some(conn)
    }

    pub(super) fn drop_lane(&mut self, wires: &mut Wires, conn: ConnId) {
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
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.reader.expect(head.verb);
        }
        let to = head.envelope.and_then(|_| self.endpoint()).unwrap_or(&self.url);
        let (target, host) = (to.target(), self.url.authority());
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

    pub(super) fn resume_later(
        &mut self,
        core: &Core,
        job: &Job,
        request: RequestId,
        now: Instant,
    ) {
        let wait = job.retry.map_or(core.limits.reconnect, Duration::from_millis);
        if let Some(id) = &job.last_event_id {
            self.later.push((now + wait, Reopen::Resume(request, id.clone())));
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
        let limits = &core.limits;
        let backoff = limits.reconnect.saturating_mul(1 << self.attempts.min(10));
        let wait = job.retry.map_or(backoff.min(limits.reconnect_max), Duration::from_millis);
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
            Task::Stream => self.on_legacy_end(core, wires),
            Task::Sent(request) => core.fail(request, failure),
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
        if !legacy || self.session.is_none() || core.lost {
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
        let legacy = self.legacy.as_ref().and_then(|legacy| legacy.deadline());
        self.later.iter().map(|(at, _)| *at).chain(self.goodbye).chain(legacy).min()
    }

    pub(super) fn tick(&mut self, core: &mut Core, wires: &mut Wires) {
        let now = wires.now;
        if self.goodbye.is_some_and(|at| at <= now) {
            self.close_all(wires);
        }
        self.check_legacy(core, wires);
        let (due, later) =
            core::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(Instant, Reopen)> = due;
        for (_, reopen) in due {
            match reopen {
                Reopen::Listen(after) => {
                    self.get(core, wires, Task::Listen, after.as_deref());
                }
                Reopen::Part(request) => {
                    if core.open.contains(&request) {
                        core.events.push_back(Event::Parted { request });
                    }
                }
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
pub(super) fn resumable(core: &Core, job: &Job) -> bool {
    let legacy = core.revision.is_none_or(|revision| revision.era() == Era::Legacy);
    legacy && job.last_event_id.is_some()
}
