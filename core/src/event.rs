//! What a machine tells its embedder besides its work: material for logs and
//! metrics.

use alloc::string::String;

use crate::driver::ExitStatus;

/// Something worth knowing. None of them needs an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An upstream server wrote a line to its standard error.
    Stderr {
        /// The upstream's configured name.
        upstream: String,
        /// The line, without its end; cut if it is very long.
        line: String,
    },
    /// An upstream server wrote something to its standard output that is not a
    /// JSON-RPC message. It was skipped.
    Noise {
        /// The upstream's configured name.
        upstream: String,
        /// The line's beginning.
        line: String,
    },
    /// An upstream server's process has ended.
    Exited {
        /// The upstream's configured name.
        upstream: String,
        /// How.
        status: ExitStatus,
    },
    /// Something went wrong that no peer will hear of, or not in these words.
    Warning(String),
}
