//! What one endpoint allows its hosts.

use core::time::Duration;

/// Limits of an [`Endpoint`](super::Endpoint), all of them per endpoint unless
/// said otherwise.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one incoming message. Longer: HTTP 413, or the line is thrown
    /// away and answered `-32600`. Default 64 MiB.
    pub message_bytes: usize,
    /// Connections at a time; one more gets HTTP 503, or is closed at once if it is
    /// none for HTTP. Default 1,024.
    pub connections: usize,
    /// The same from one address that is not this machine's (for IPv6, one /64);
    /// one more gets HTTP 429, or is closed. Default 256.
    pub client_connections: usize,
    /// Sessions at a time; one more `initialize` gets HTTP 503. Default 1,000.
    pub sessions: usize,
    /// The same from one address; one more `initialize` gets HTTP 429. Default 250.
    pub client_sessions: usize,
    /// Requests in flight in one session or on one pipe; one more is refused
    /// with `-32600` and HTTP 429. Default 256.
    pub in_flight: usize,
    /// Requests in flight altogether; one more is refused with `-32603` and HTTP
    /// 503. Default 16,384.
    pub requests: usize,
    /// Messages in one batch (2025-03-26); one with more is refused with `-32600`.
    /// Default 100.
    pub batch_members: usize,
    /// Messages kept for a session that has no stream open; the oldest is
    /// dropped. Default 256.
    pub waiting_messages: usize,
    /// Bytes of the same. Default 4 MiB.
    pub waiting_bytes: usize,
    /// Streams that one session has open or may take up again; the oldest that
    /// nobody is on makes room. Default 32.
    pub streams: usize,
    /// Events that are kept of each of them. Default 256.
    pub replay_events: usize,
    /// Bytes of the same. Default 256 KiB.
    pub replay_bytes: usize,
    /// What hosts of 2025-11-25 are told to wait before they take a stream up
    /// again. Default 1 s.
    pub retry: Duration,
    /// Bytes that may arrive on an HTTP connection while it is busy, or on a pipe
    /// while `initialize` runs, before
    /// reading pauses. Default 64 KiB.
    pub held_bytes: usize,
    /// Queued bytes above which a connection is given up: its reader is too
    /// slow for what cannot be paused. Default 256 MiB.
    pub outgoing_hard: usize,
    /// A session without traffic ends after this. Default 30 minutes.
    pub session_idle: Duration,
    /// A session ends after this, used or not; its host begins another. Default
    /// 7 days.
    pub session_life: Duration,
    /// An HTTP connection without a request ends after this. Default 2 minutes.
    pub connection_idle: Duration,
    /// A request must have come within this; else HTTP 408. What has come of its
    /// body lengthens it at the pace of `body_rate`. Default 30 s.
    pub request_time: Duration,
    /// Bytes a second that a body must come at after that. Default 16 KiB.
    pub body_rate: u32,
    /// A host that reads nothing of what waits for it is given up after this, unless
    /// it is the one at our standard output. On a pipe that is asked only of those
    /// for whom much waits. Default 1 minute.
    pub write_stall: Duration,
    /// A stream without a message gets a comment after this, and a waiting
    /// request becomes a stream. Default 15 s.
    pub keep_alive: Duration,
    /// Requests still running when a pipe's peer stops sending have this long
    /// to be answered. Default 1 s.
    pub pipe_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 64 << 20,
            connections: 1024,
            client_connections: 256,
            sessions: 1000,
            client_sessions: 250,
            in_flight: 256,
            requests: 16_384,
            batch_members: 100,
            waiting_messages: 256,
            waiting_bytes: 4 << 20,
            streams: 32,
            replay_events: 256,
            replay_bytes: 256 << 10,
            retry: Duration::from_secs(1),
            held_bytes: 64 << 10,
            outgoing_hard: 256 << 20,
            session_idle: Duration::from_secs(30 * 60),
            session_life: Duration::from_secs(7 * 24 * 60 * 60),
            connection_idle: Duration::from_secs(120),
            request_time: Duration::from_secs(30),
            body_rate: 16 << 10,
            write_stall: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            pipe_grace: Duration::from_secs(1),
        }
    }
}
