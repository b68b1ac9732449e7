//! One HTTP connection to a server, and the response that is coming on it.

use alloc::string::String;
use alloc::vec::Vec;

use super::again::Again;
use super::upstream::RequestId;
use crate::time::Instant;
use crate::wire::http1::{self, Framing, ResponseHead, ResponseReader};
use crate::wire::sse;
use crate::wire::texts::Splitter;

/// A connection.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) reader: ResponseReader,
    /// What was asked on it; `None` while it idles.
    pub(super) job: Option<Job>,
    pub(super) connected: bool,
    /// Whether its job is not its first.
    pub(super) reused: bool,
    pub(super) idle_since: Instant,
    pub(super) keep_alive: bool,
}

impl Lane {
    pub(super) fn new(now: Instant, job: Job) -> Self {
        let limits = http1::Limits { body_bytes: u64::MAX, ..http1::Limits::default() };
        Self {
            reader: ResponseReader::new(limits),
            job: Some(job),
            connected: false,
            reused: false,
            idle_since: now,
            keep_alive: true,
        }
    }
}

/// A request on its way, and what has come of its response.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    /// The request, until its response begins.
    pub(super) again: Option<Again>,
    pub(super) status: u16,
    pub(super) body: Body,
    /// The content type, if it is none of ours.
    pub(super) kind: Option<String>,
    /// Where `Location` pointed.
    pub(super) location: Option<String>,
    /// The last event id of the stream, to resume it.
    pub(super) last_event_id: Option<String>,
    /// The wait that the server asked for, in milliseconds.
    pub(super) retry: Option<u64>,
    /// How often the rest of it was asked for since something came.
    pub(super) attempts: u32,
}

/// Why something was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    /// A request of ours.
    Request {
        request: RequestId,
        /// Whether the response may begin a session.
        initialize: bool,
    },
    /// The rest of the stream of a request.
    Resume(RequestId),
    /// A notification, or an answer.
    Post,
    /// The notification that ends the handshake: what follows waits for its response.
    Initialized,
    /// The stream for what belongs to no request.
    Listen,
    /// The stream of HTTP+SSE, on which everything comes.
    Stream,
    /// A request whose answer comes on that stream.
    Sent(RequestId),
    /// The end of the session.
    Goodbye,
}

impl Task {
    /// The request that waits for this response.
    pub(super) fn request(self) -> Option<RequestId> {
        match self {
            Self::Request { request, .. } | Self::Resume(request) => Some(request),
            Self::Post
            | Self::Initialized
            | Self::Listen
            | Self::Stream
            | Self::Sent(_)
            | Self::Goodbye => None,
        }
    }
}

/// What a response's body is, and what has come of it.
#[derive(Debug)]
pub(super) enum Body {
    /// Before the head.
    Awaited,
    /// A JSON document.
    Json(Vec<u8>),
    /// JSON documents, as they come.
    Texts(Texts),
    /// An event stream.
    Events(Events),
    /// Nothing that we read.
    Ignored,
}

/// An event stream, and what has come of it and is not read yet.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) decoder: sse::Decoder,
    pub(super) rest: Vec<u8>,
    /// How much of `rest` has been read.
    pub(super) read: usize,
}

/// JSON documents one after another, and what is not read yet.
#[derive(Debug, Default)]
pub(super) struct Texts {
    splitter: Splitter,
    pub(super) rest: Vec<u8>,
    read: usize,
    /// How far the splitter has come.
    seen: usize,
}

impl Texts {
    /// The next document that is complete.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let start = self.read;
        let Some(n) = self.splitter.feed(self.rest.get(self.seen..)?) else {
            self.rest.drain(..start);
            self.read = 0;
            self.seen = self.rest.len();
            return None;
        };
        self.seen += n;
        self.read = self.seen;
        self.rest.get(start..self.read)
    }
}

impl Job {
    pub(super) fn new(task: Task) -> Self {
        Self {
            task,
            again: None,
            status: 0,
            body: Body::Awaited,
            kind: None,
            location: None,
            last_event_id: None,
            retry: None,
            attempts: 0,
        }
    }

    /// Takes the head of the response.
    pub(super) fn begin(&mut self, head: &ResponseHead, limit: usize) {
        self.status = head.status;
        if head.status < 300 {
            self.again = None;
        }
        self.location = head.fields.get_str("location").map(String::from);
        if let 429 | 503 = head.status {
            let seconds = head.fields.get_str("retry-after").and_then(|s| s.trim().parse().ok());
            self.retry = seconds.map(|seconds: u64| seconds.saturating_mul(1000));
        }
        let kind = head.fields.get("content-type");
        let named = head.fields.get_str("content-type").and_then(|kind| kind.split(';').next());
        self.kind = named.map(str::trim).filter(|kind| *kind != "application/json").map(shorten);
        self.body = match head.status {
            200 if sse::is_event_stream(kind) => Body::Events(Events {
                decoder: sse::Decoder::new(limit),
                rest: Vec::new(),
                read: 0,
            }),
            202 | 204 => Body::Ignored,
            200 if matches!(head.framing, Framing::Chunked | Framing::Eof) => {
                Body::Texts(Texts::default())
            }
            // Not only application/json: errors come with any type.
            _ => Body::Json(Vec::new()),
        };
    }
}

/// As much of a name as is shown.
fn shorten(name: &str) -> String {
    name.chars().take(100).collect()
}
