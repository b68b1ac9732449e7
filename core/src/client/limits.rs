//! What one upstream may cost.

use core::time::Duration;

/// Limits of an [`Upstream`](super::Upstream).
#[derive(Clone, Debug)]
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
    /// A URL that may be one of HTTP+SSE has this long to say where messages go.
    /// Default 10 s.
    pub endpoint: Duration,
    /// Bytes of a line of standard error that are kept. Default 4 KiB.
    pub stderr_line: usize,
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
            endpoint: Duration::from_secs(10),
            stderr_line: 4 << 10,
        }
    }
}
