//! Why something with a server did not work, in words for people.

use alloc::string::String;
use core::fmt;

use crate::driver::{CloseReason, ExitStatus};

/// Why something with a server did not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The program could not be started.
    NotStarted(CloseReason),
    /// The process has ended; with its last words on standard error.
    Exited(ExitStatus, String),
    /// The process had ended before it was asked.
    Gone,
    /// No connection to the URL.
    NotConnected(CloseReason),
    /// The connection broke before the answer.
    Broken,
    /// What came is not HTTP, or not as MCP uses it.
    NotMcp(String),
    /// This HTTP status, without an answer.
    Status(u16),
    /// The URL redirects to there, which is another server, or too far.
    Redirected(String),
    /// The server no longer knows our session (HTTP 404).
    SessionLost,
    /// The answer is longer than the limit.
    TooLong,
    /// Too many connections to this URL.
    TooMany,
    /// We stopped it.
    Stopped,
}

impl Failure {
    /// Whether it may be over soon: what was asked is worth asking again then.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Exited(..)
                | Self::Gone
                | Self::Broken
                | Self::NotConnected(_)
                | Self::Status(500..)
        )
    }

    /// Whether what was spoken to in lines is gone.
    pub(super) fn is_end(&self) -> bool {
        matches!(self, Self::Exited(..) | Self::Gone | Self::Broken)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(CloseReason::NotFound) => {
                f.write_str("its program was not found: check the command and PATH")
            }
            Self::NotStarted(CloseReason::Denied) => {
                f.write_str("its program may not be executed: check its permissions")
            }
            Self::NotStarted(_) => f.write_str("its program could not be started"),
            Self::Exited(status, words) => {
                match status {
                    ExitStatus::Code(code) => write!(f, "it exited with code {code}")?,
                    ExitStatus::Signal(signal) => write!(f, "it was killed by signal {signal}")?,
                }
                if words.is_empty() { Ok(()) } else { write!(f, "; its last words: {words}") }
            }
            Self::Gone => f.write_str("its process has ended"),
            Self::NotConnected(CloseReason::Refused) => {
                f.write_str("nobody listens at its address: is it running?")
            }
            Self::NotConnected(CloseReason::Unresolved) => {
                f.write_str("its host name has no address")
            }
            Self::NotConnected(CloseReason::Untrusted) => {
                f.write_str("its certificate is not trusted")
            }
            Self::NotConnected(_) => f.write_str("it cannot be reached"),
            Self::Broken => f.write_str("the connection broke before the answer came"),
            Self::NotMcp(what) => write!(f, "it does not answer as an MCP server: {what}"),
            Self::Status(status) => {
                f.write_str(match status {
                    401 => "it wants authorization: check the headers in its configuration",
                    403 => "it forbids this: check the headers in its configuration",
                    404 | 405 | 501 => "its URL takes no MCP messages: check the path",
                    429 => "too much is asked of it: try again later",
                    500..=599 => "it cannot answer now: try again later",
                    _ => "it does not answer",
                })?;
                write!(f, " (HTTP {status})")
            }
            Self::Redirected(to) => {
                write!(f, "its URL redirects to {to}: if that is right, configure it")
            }
            Self::SessionLost => f.write_str("it has ended our session"),
            Self::TooLong => f.write_str("its answer is longer than the limit"),
            Self::TooMany => f.write_str("too many connections to it are open"),
            Self::Stopped => f.write_str("it was stopped"),
        }
    }
}
