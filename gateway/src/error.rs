//! Why a command did not do what was asked, and the code that it exits with.

use std::fmt::Display;

/// How the program ends. The numbers are part of its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// All went well.
    Done,
    /// Something failed at work.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// The tool ran, and reported an error.
    ToolError,
    /// The user interrupted it: 128 and the number of SIGINT, as shells have it.
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::ToolError => 3,
            Self::Interrupted => 130,
        }
    }
}

/// One sentence for the user.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line or the configuration must be changed.
    Usage(String),
    /// It failed at work.
    Failed(String),
    /// The user interrupted it.
    Interrupted,
}

impl Error {
    pub(crate) fn usage(text: impl Display) -> Self {
        Self::Usage(text.to_string())
    }

    pub(crate) fn failed(text: impl Display) -> Self {
        Self::Failed(text.to_string())
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Failed(text) => text,
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Failed(_) => Exit::Failed,
            Self::Interrupted => Exit::Interrupted,
        }
    }
}
