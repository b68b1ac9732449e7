//! What comes back from a server at a URL: the answer of a request, alone or with
//! what belongs to it, as JSON or as events.

use alloc::borrow::Cow;
use alloc::string::String;

use super::again::{no_message, refusal};
use super::failure::Failure;
use super::http::{Http, resumable};
use super::lane::{Body, Job, Task};
use super::upstream::{Core, Event, RequestId};
use super::wires::Wires;
use crate::driver::ConnId;
use crate::jsonrpc::{self, Incoming, Kind, Message};
use crate::wire::http1::{Part, ResponseHead};
use crate::wire::sse;

impl Http {
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
            match self.read_streamed(core, wires, conn) {
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
                        Body::Texts(texts) => {
                            texts.rest.extend_from_slice(data);
                            // More than one may be in what has just come.
                            let limit = core.limits.message_bytes.saturating_add(data.len());
                            texts.rest.len() > limit
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
        if job.status == 200 {
            job.attempts = 0;
            if job.task == Task::Listen {
                self.attempts = 0;
            }
        }
    }

    /// Reads on in a response that comes in parts, up to a message. Says whether
    /// there was one.
    fn read_streamed(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
    ) -> Result<bool, sse::TooLong> {
        let job = self.lanes.get_mut(&conn).and_then(|lane| lane.job.as_mut());
        let Some(Job { task, body, last_event_id, retry, .. }) = job else { return Ok(false) };
        let events = match body {
            Body::Events(events) => events,
            Body::Texts(texts) => {
                let Some(text) = texts.next() else { return Ok(false) };
                take(core, wires, task.request(), Cow::Borrowed(text));
                return Ok(true);
            }
            Body::Awaited | Body::Json(_) | Body::Ignored => return Ok(false),
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
        if *task == Task::Stream && self.legacy.as_ref().is_some_and(|l| l.awaits_endpoint()) {
            let endpoint = (event.kind == "endpoint").then(|| event.data.into_owned());
            self.on_legacy_endpoint(core, wires, conn, endpoint);
            return Ok(true);
        }
        // Other types are not ours; a priming event has no data.
        if event.kind != "message" || event.data.is_empty() {
            return Ok(true);
        }
        take(core, wires, task.request(), bytes(event.data));
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
            // What is no whole document is no answer, and says why.
            Body::Texts(texts) if !texts.rest.trim_ascii().is_empty() => Cow::Owned(texts.rest),
            _ => Cow::Borrowed(&[][..]),
        };
        if self.follow(core, wires, &mut job) || self.pause(core, wires, &mut job) {
            return None;
        }
        match job.task {
            Task::Request { request, initialize } => {
                if initialize && self.fall_back(core, wires, &mut job, request, &body) {
                    return None;
                }
                self.answer(core, wires, job, request, body)
            }
            Task::Resume(request) => self.answer(core, wires, job, request, body),
            Task::Stream => {
                self.on_legacy_end(core, wires);
                None
            }
            Task::Sent(request) => {
                if job.status >= 300 {
                    core.fail(request, refusal(&job));
                }
                None
            }
            Task::Listen => {
                if job.status == 200 {
                    self.reopen_listen(core, &job, wires.now);
                } else if job.status == 404 && self.session.is_some() {
                    core.lose_session(None);
                }
                None
            }
            Task::Post | Task::Initialized => {
                if job.status >= 300 {
                    if job.status == 404 && self.session.is_some() {
                        core.lose_session(None);
                    } else {
                        let failure = refusal(&job);
                        let why = alloc::format!("{}: a message was lost: {failure}", core.name);
                        wires.output.tell(crate::event::Event::Warning(why));
                    }
                }
                if job.task == Task::Initialized {
                    self.release(core, wires);
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
    pub(super) fn answer<'a>(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        job: Job,
        request: RequestId,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        if !core.open.contains(&request) {
            return None;
        }
        let lost = job.status == 404 && self.session.is_some();
        if let 401 | 403 = job.status {
            // Who may not come in, does not hear what is inside.
            core.fail(request, Failure::Status(job.status));
            return None;
        }
        if body.is_empty() {
            match job.status {
                // A stream that ended early can be taken up again if it had ids.
                200 if resumable(core, &job) => {
                    return self.poll_later(core, &job, request, wires.now);
                }
                200 => core.fail(request, Failure::Broken),
                _ if lost => core.lose_session(Some(request)),
                _ => core.fail(request, refusal(&job)),
            }
            return None;
        }
        match Message::parse(body, &jsonrpc::Limits::DEFAULT) {
            Ok(Incoming::Message(message)) if lost && message.kind() == Kind::Error => {
                core.lose_session(Some(request));
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
                core.split(wires, &batch, Some(request));
                core.fail(request, Failure::NotMcp("its batch holds no answer".into()));
                None
            }
            Err(_) if job.status != 200 => {
                if lost {
                    core.lose_session(Some(request));
                } else {
                    core.fail(request, refusal(&job));
                }
                None
            }
            Err(rejected) => {
                core.fail(request, no_message(&job, rejected.reason));
                None
            }
        }
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
}

/// Takes in a message of a stream.
fn take(core: &mut Core, wires: &mut Wires, during: Option<RequestId>, message: Cow<'_, [u8]>) {
    match Message::parse(message, &jsonrpc::Limits::DEFAULT) {
        Ok(Incoming::Message(message)) => {
            if let Some(event) = core.event(message, during) {
                core.events.push_back(event.into_owned());
            }
        }
        Ok(Incoming::Batch(batch)) => core.split(wires, &batch, during),
        Err(rejected) => {
            let why = alloc::format!("a message that is not JSON-RPC: {}", rejected.reason);
            core.report_noise(wires, why.as_bytes());
        }
    }
}

/// The bytes of an event's data.
fn bytes(data: Cow<'_, str>) -> Cow<'_, [u8]> {
    match data {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
