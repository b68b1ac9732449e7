//! One server, whatever carries it.

use alloc::borrow::Cow;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;

use super::failure::Failure;
use super::http::Http;
use super::limits::Limits;
use super::pipe::{Pipe, Start};
use super::wires::Wires;
use crate::driver::{CloseReason, Command, ConnId, ExitStatus, Target};
use crate::event;
use crate::jsonrpc::{self, Batch, Envelope, Incoming, Kind, Message};
use crate::protocol::method;
use crate::protocol::revision::Revision;
use crate::server::Outcome;
use crate::time::Instant;
use crate::wire::http1::Url;

/// Names an upstream of a machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct UpstreamId(pub u64);

/// Names a request of ours to one upstream. Its number is the JSON-RPC id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct RequestId(pub u64);

/// Where a server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A program to start; it speaks on its standard input and output.
    Process(Command),
    /// A socket on which it speaks in lines, as a process does.
    Socket(Target),
    /// A Streamable HTTP endpoint, with fields to send along.
    Url {
        /// The endpoint.
        url: Url,
        /// Header fields on every request.
        fields: alloc::vec::Vec<(String, String)>,
    },
}

/// What a server does.
#[derive(Debug)]
pub enum Event<'a> {
    /// The answer to a request: a result or an error.
    Answer {
        /// The request.
        request: RequestId,
        /// The answer.
        message: Message<'a>,
    },
    /// The server has ended its response before the answer, and is soon asked for
    /// the rest of it: after [`reconnect`](super::Limits::reconnect) at most
    /// (2025-11-25, SSE-06).
    Parted {
        /// The request.
        request: RequestId,
    },
    /// A request will not be answered.
    Failed {
        /// The request.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// The server asks; answer with [`Upstream::answer`].
    Request {
        /// What.
        message: Message<'a>,
        /// The request on whose stream it came.
        during: Option<RequestId>,
    },
    /// The server tells.
    Notification {
        /// What.
        message: Message<'a>,
        /// The request on whose stream it came.
        during: Option<RequestId>,
    },
    /// The server, or its session, is gone. All its requests have failed.
    Ended {
        /// Why.
        failure: Failure,
    },
}

impl Place {
    /// Whether it is reached by HTTP.
    pub fn is_url(&self) -> bool {
        matches!(self, Self::Url { .. })
    }
}

/// One server. See the [module](super).
#[derive(Debug)]
pub struct Upstream {
    pub(super) core: Core,
    carrier: Carrier,
}

/// What both carriers share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) id: UpstreamId,
    pub(super) name: String,
    pub(super) limits: Limits,
    pub(super) events: VecDeque<Event<'static>>,
    /// Requests that have no answer yet.
    pub(super) open: BTreeSet<RequestId>,
    /// What the handshake agreed on, or the modern revision.
    pub(super) revision: Option<Revision>,
    next: u64,
    pub(super) ended: bool,
    /// The server has forgotten our session.
    pub(super) lost: bool,
    /// Things that were no messages, reported so far.
    noises: u32,
}

/// How much of something that is no message is shown.
pub(super) const NOISE: usize = 128;
/// How often that is reported of one upstream.
const NOISES: u32 = 20;

#[derive(Debug)]
enum Carrier {
    Pipe(Pipe),
    Http(Http),
}

impl Event<'_> {
    pub(super) fn into_owned(self) -> Event<'static> {
        match self {
            Event::Answer { request, message } => {
                Event::Answer { request, message: message.into_owned() }
            }
            Event::Request { message, during } => {
                Event::Request { message: message.into_owned(), during }
            }
            Event::Notification { message, during } => {
                Event::Notification { message: message.into_owned(), during }
            }
            Event::Failed { request, failure } => Event::Failed { request, failure },
            Event::Parted { request } => Event::Parted { request },
            Event::Ended { failure } => Event::Ended { failure },
        }
    }
}

impl Core {
    /// Fails a request, if it is still open.
    pub(super) fn fail(&mut self, request: RequestId, failure: Failure) {
        if self.open.remove(&request) {
            self.events.push_back(Event::Failed { request, failure });
        }
    }

    /// Fails all requests that are open.
    pub(super) fn fail_all(&mut self, failure: &Failure) {
        for request in core::mem::take(&mut self.open) {
            self.events.push_back(Event::Failed { request, failure: failure.clone() });
        }
    }

    /// Fails all requests and reports the end, once.
    pub(super) fn end(&mut self, failure: Failure) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.fail_all(&failure);
        self.events.push_back(Event::Ended { failure });
    }

    /// The server no longer knows our session, and has refused `request` therefore.
    /// It will refuse what else is open as well; that was the end.
    pub(super) fn lose_session(&mut self, request: Option<RequestId>) {
        self.lost = true;
        if let Some(request) = request {
            self.fail(request, Failure::SessionLost);
        }
    }

    /// Reports something from the server that is no message.
    pub(super) fn report_noise(&mut self, wires: &mut Wires, line: &[u8]) {
        if line.is_empty() || self.noises >= NOISES {
            return;
        }
        self.noises += 1;
        let shown = line.get(..NOISE.min(line.len())).unwrap_or_default();
        let line = String::from_utf8_lossy(shown).into_owned();
        wires.output.tell(event::Event::Noise { upstream: self.name.clone(), line });
    }

    /// Reads each message of a batch by itself, if the server's revision knows them:
    /// 2025-03-26 only (BAT-06).
    pub(super) fn split(
        &mut self,
        wires: &mut Wires,
        batch: &Batch<'_>,
        during: Option<RequestId>,
    ) {
        if self.revision != Some(Revision::R2025_03_26) {
            return self.report_noise(wires, b"a batch, which its revision does not know");
        }
        for element in batch.elements() {
            let parsed =
                Message::parse(Cow::Borrowed(element.as_bytes()), &jsonrpc::Limits::DEFAULT);
            if let Ok(Incoming::Message(message)) = parsed
                && let Some(event) = self.event(message, during)
            {
                self.events.push_back(event.into_owned());
            }
        }
    }

    /// What a message from the server means. Answers to nothing are dropped:
    /// they are late (CAN-03).
    pub(super) fn event<'a>(
        &mut self,
        message: Message<'a>,
        during: Option<RequestId>,
    ) -> Option<Event<'a>> {
        match message.kind() {
            Kind::Request => Some(Event::Request { message, during }),
            Kind::Notification => Some(Event::Notification { message, during }),
            Kind::Response | Kind::Error => {
                // An error without an id, on a request's own stream, is its answer.
                let request = match message.id() {
                    Some(id) => RequestId(id.parse().ok()?),
                    None => during?,
                };
                self.open.remove(&request).then_some(Event::Answer { request, message })
            }
        }
    }
}

impl Upstream {
    /// A server called `name` in messages to people. Nothing happens before the
    /// first request.
    pub fn new(id: UpstreamId, name: &str, place: Place, limits: Limits) -> Self {
        let core = Core {
            id,
            name: String::from(name),
            limits,
            events: VecDeque::new(),
            open: BTreeSet::new(),
            revision: None,
            next: 1,
            ended: false,
            lost: false,
            noises: 0,
        };
        let carrier = match place {
            Place::Process(command) => {
                Carrier::Pipe(Pipe::new(Start::Spawn(command), &core.limits))
            }
            Place::Socket(target) => Carrier::Pipe(Pipe::new(Start::Connect(target), &core.limits)),
            Place::Url { url, fields } => Carrier::Http(Http::new(url, fields)),
        };
        Self { core, carrier }
    }

    /// Its id.
    pub fn id(&self) -> UpstreamId {
        self.core.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Says what the peers have agreed on, so that the transport follows it: the
    /// negotiated legacy revision, or the modern one.
    pub fn speak(&mut self, revision: Revision) {
        self.core.revision = Some(revision);
    }

    /// What the peers have agreed on, as far as [`speak`](Self::speak) was told.
    pub fn revision(&self) -> Option<Revision> {
        self.core.revision
    }

    /// The id that the next request will get, for tokens that must name it.
    pub fn next_id(&self) -> RequestId {
        RequestId(self.core.next)
    }

    /// Sends a request. `fields` go with a modern one over HTTP, besides those
    /// that repeat its body: `Mcp-Param-*` of the host.
    pub fn request(
        &mut self,
        wires: &mut Wires,
        method: &str,
        params: Option<&str>,
        fields: &[(String, String)],
    ) -> RequestId {
        let request = RequestId(self.core.next);
        self.core.next += 1;
        self.core.open.insert(request);
        let id = alloc::format!("{}", request.0);
        let envelope = Envelope::Request { id: &id, method, params };
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.send(&mut self.core, wires, &envelope),
            Carrier::Http(http) => {
                http.request(&mut self.core, wires, request, method, &envelope, fields);
            }
        }
        request
    }

    /// Sends a notification.
    pub fn notify(&mut self, wires: &mut Wires, method: &str, params: Option<&str>) {
        let envelope = Envelope::Notification { method, params };
        self.post(wires, method, &envelope);
    }

    /// Answers a request of the server's, whose raw id is `id`.
    pub fn answer(&mut self, wires: &mut Wires, id: &str, outcome: Outcome<'_>) {
        self.post(wires, "", &outcome.envelope(id));
    }

    fn post(&mut self, wires: &mut Wires, method: &str, envelope: &Envelope<'_>) {
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.send(&mut self.core, wires, envelope),
            Carrier::Http(http) => http.post(&mut self.core, wires, method, envelope),
        }
    }

    /// Gives up a request: its answer will be dropped, and the server is told in
    /// the way of its revision (2026-07-28 over HTTP: the stream is closed;
    /// otherwise `notifications/cancelled`). `reason` is raw JSON.
    pub fn cancel(&mut self, wires: &mut Wires, request: RequestId, reason: Option<&str>) {
        if !self.core.open.remove(&request) {
            return;
        }
        if let Carrier::Http(http) = &mut self.carrier
            && self.core.revision == Some(Revision::NEWEST_MODERN)
        {
            http.abandon(&self.core, wires, request);
            return;
        }
        let mut params = alloc::format!(r#"{{"requestId":{}"#, request.0);
        if let Some(reason) = reason {
            params.push_str(r#","reason":"#);
            params.push_str(reason);
        }
        params.push('}');
        self.notify(wires, method::CANCELLED, Some(&params));
    }

    /// Opens the stream for what belongs to no request (legacy, HTTP). Does
    /// nothing for a process.
    pub fn listen(&mut self, wires: &mut Wires) {
        if let Carrier::Http(http) = &mut self.carrier {
            http.listen(&mut self.core, wires);
        }
    }

    /// Bytes came. Call until `None`.
    pub fn receive<'a>(
        &mut self,
        wires: &mut Wires,
        conn: ConnId,
        input: &mut &'a [u8],
    ) -> Option<Event<'a>> {
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.receive(&mut self.core, wires, input),
            Carrier::Http(http) => http.receive(&mut self.core, wires, conn, input),
        }
    }

    /// What happened without new bytes. Call until `None` after every input.
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        if self.core.lost && self.core.open.is_empty() {
            self.core.end(Failure::SessionLost);
        }
        let event = self.core.events.pop_front();
        if event.is_none() {
            // Most servers are silent: they keep no room for what they might say.
            self.core.events = VecDeque::new();
        }
        event
    }

    /// The connection or process is there.
    pub fn connected(&mut self, wires: &mut Wires, conn: ConnId) {
        wires.output.open(conn);
        match &mut self.carrier {
            Carrier::Http(http) => http.connected(conn),
            Carrier::Pipe(pipe) => pipe.connected(),
        }
    }

    /// The server will send no more on this connection.
    pub fn finished(&mut self, wires: &mut Wires, conn: ConnId) {
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.finished(&mut self.core, wires),
            Carrier::Http(http) => http.finished(&mut self.core, wires, conn),
        }
    }

    /// The connection is gone, or never came to be.
    pub fn closed(&mut self, wires: &mut Wires, conn: ConnId, why: CloseReason) {
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.closed(&mut self.core, wires, conn, why),
            Carrier::Http(http) => http.closed(&mut self.core, wires, conn, why),
        }
    }

    /// The process wrote to its standard error.
    pub fn stderr(&mut self, wires: &mut Wires, bytes: &[u8]) {
        if let Carrier::Pipe(pipe) = &mut self.carrier {
            pipe.stderr(&self.core, wires, bytes);
        }
    }

    /// The process has ended.
    pub fn exited(&mut self, wires: &mut Wires, conn: ConnId, status: ExitStatus) {
        if let Carrier::Pipe(pipe) = &mut self.carrier {
            pipe.exited(&mut self.core, wires, conn, status);
        }
    }

    /// Ends it: a process gets its standard input closed, later SIGTERM, later
    /// SIGKILL; a URL is told that the session ends. [`is_gone`](Self::is_gone)
    /// says when that is done.
    pub fn stop(&mut self, wires: &mut Wires) {
        self.core.end(Failure::Stopped);
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.stop(&self.core, wires),
            Carrier::Http(http) => http.stop(&mut self.core, wires),
        }
    }

    /// Ends it without patience.
    pub fn kill(&mut self, wires: &mut Wires) {
        self.core.end(Failure::Stopped);
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.kill(wires),
            Carrier::Http(http) => http.close_all(wires),
        }
    }

    /// Whether it has ended, or was stopped.
    pub fn has_ended(&self) -> bool {
        self.core.ended
    }

    /// Whether each request has a connection of its own.
    pub fn is_per_request(&self) -> bool {
        matches!(self.carrier, Carrier::Http(_))
    }

    /// Whether nothing of it is left: no process, no connection.
    pub fn is_gone(&self) -> bool {
        match &self.carrier {
            Carrier::Pipe(pipe) => pipe.is_gone(),
            Carrier::Http(http) => http.is_gone(),
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.carrier {
            Carrier::Pipe(pipe) => pipe.deadline(),
            Carrier::Http(http) => http.deadline(),
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, wires: &mut Wires) {
        match &mut self.carrier {
            Carrier::Pipe(pipe) => pipe.tick(&self.core, wires),
            Carrier::Http(http) => http.tick(&mut self.core, wires),
        }
    }
}
