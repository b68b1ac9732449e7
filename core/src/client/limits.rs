//! What one upstream may cost.

use core::time::Duration;

use crate::time::backoff;

/// Limits of an [`Upstream`](super::Upstream).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one message from a server. Longer ones fail their request.
    /// Default 64 MiB.
    pub message_bytes: usize,
    /// Connections to one URL at a time; more requests fail. Default 512.
    pub connections: usize,
    /// A kept-alive connection idle for longer is not used again: many servers
    /// close theirs after 5 s. Default 4 s.
    pub reuse_idle: Duration,
    /// A child has this long to exit when its standard input has been closed,
    /// before SIGTERM. Default 3 s.
    pub exit_grace: Duration,
    /// And this long after SIGTERM, before SIGKILL. Default 2 s.
    pub term_grace: Duration,
    /// A session's end is told to a URL for at most this long. Default 1 s.
    pub goodbye: Duration,
    /// The wait before a broken stream is opened again, unless the server names
    /// one (`retry`). Doubles up to `reconnect_max`. Default 1 s.
    pub reconnect: Duration,
    /// The longest such wait. Default 30 s.
    pub reconnect_max: Duration,
    /// How often a stream that broke in the middle of an answer is asked for the
    /// rest of it, without any success. Default 5.
    pub resumptions: u32,
    /// Bytes of a request that are kept until its response begins, in case it has to
    /// be sent again: after a redirect, over another connection, or after a pause. A
    /// longer one is not. Default 64 KiB.
    pub again_bytes: usize,
    /// The longest pause that a request makes because the server asks for it
    /// (429 or 503, `Retry-After`); if it asks for more, the request fails. Default
    /// 10 s.
    pub retry_after: Duration,
    /// What follows `notifications/initialized` waits for the response to that, but no
    /// longer than this. Default 5 s.
    pub opening: Duration,
    /// A URL that may be one of HTTP+SSE has this long to say where messages go.
    /// Default 10 s.
    pub endpoint: Duration,
    /// Bytes of a line of standard error that are kept. Default 4 KiB.
    pub stderr_line: usize,
    /// Bytes of the last lines of standard error that are quoted when the process has
    /// ended. Default 1 KiB.
    pub stderr_tail: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 64 << 20,
            connections: 512,
            reuse_idle: Duration::from_secs(4),
            exit_grace: Duration::from_secs(3),
            term_grace: Duration::from_secs(2),
            goodbye: Duration::from_secs(1),
            reconnect: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(30),
            resumptions: 5,
            again_bytes: 64 << 10,
            retry_after: Duration::from_secs(10),
            opening: Duration::from_secs(5),
            endpoint: Duration::from_secs(10),
            stderr_line: 4 << 10,
            stderr_tail: 1 << 10,
        }
    }
}

impl Limits {
    /// The wait before the next attempt, after so many in vain.
    pub(super) fn backoff(&self, attempts: u32) -> Duration {
        backoff(self.reconnect, attempts, self.reconnect_max)
    }
}
