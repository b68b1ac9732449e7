//! What can be in the way of what is asked of a server.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::client::Failure;
use crate::jsonrpc::{get, string};
use crate::protocol::revision::Revision;

/// Why something that was asked of a server has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The server could not be reached, or broke.
    Failure(Failure),
    /// The server answered a request with an error.
    Refused {
        /// The request's method.
        method: String,
        /// The error: the JSON text of an object.
        error: String,
    },
    /// It speaks no revision that we do.
    NoCommonRevision,
    /// Its result for this method is not as the protocol has it.
    Malformed(String),
    /// It wants something from the user before it goes on.
    NeedsInput,
    /// Its list has more pages or bytes than the limit, or no end.
    Endless(&'static str),
    /// It did not answer this method in time.
    Silent(&'static str, Duration),
    /// All together took longer than the limit.
    OutOfTime(Duration),
    /// The user stopped it.
    Interrupted,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(f),
            Self::Refused { method, error } => {
                let code = get(error, "code").unwrap_or("no code");
                let message = get(error, "message").and_then(string).unwrap_or_default();
                write!(f, "it refused {method}: {message} ({code})")
            }
            Self::NoCommonRevision => write!(
                f,
                "it speaks none of the MCP revisions up to {} that are known here",
                Revision::NEWEST_MODERN
            ),
            Self::Malformed(method) => write!(f, "its answer to {method} is not as MCP has it"),
            Self::NeedsInput => f.write_str(
                "the tool wants to ask the user something first, which is not possible here",
            ),
            Self::Endless(method) => write!(f, "its answers to {method} do not come to an end"),
            Self::Silent(method, limit) => {
                write!(f, "it did not answer {method} within {} seconds", limit.as_secs())
            }
            Self::OutOfTime(limit) => {
                write!(f, "it was not done after {} seconds", limit.as_secs())
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Trouble {
    /// The code of the error that the server answered with, if it did.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { error, .. } => get(error, "code")?.parse().ok(),
            _ => None,
        }
    }

    /// What a server is told when something is cancelled because of it: raw JSON.
    pub(super) fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Interrupted => Some(r#""interrupted""#),
            Self::OutOfTime(_) => Some(r#""timed out""#),
            _ => None,
        }
    }
}
