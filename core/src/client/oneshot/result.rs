//! What is asked for, what comes of it, and what can be in its way.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::client::Failure;
use crate::jsonrpc::{get, string};
use crate::protocol::method;
use crate::protocol::revision::Revision;

/// Something to do at a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// Call a tool.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments: the JSON text of an object.
        arguments: String,
    },
    /// Ask for all that the server offers.
    List,
}

/// What came of a [`Job`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The result of a call: the JSON text of an object. Whether the tool
    /// failed is in its `isError`.
    Called(String),
    /// What the server offers.
    Listed(Listing),
}

/// What a server offers: the JSON text of each item, in the server's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Tools.
    pub tools: Vec<String>,
    /// Resources.
    pub resources: Vec<String>,
    /// Resource templates.
    pub templates: Vec<String>,
    /// Prompts.
    pub prompts: Vec<String>,
}

/// A kind of things that servers list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
    /// Prompts.
    Prompts,
}

impl Kind {
    /// All of them, in the order in which they are asked for.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The member of a result that holds them.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The method that asks for them.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Templates => method::TEMPLATES_LIST,
            Self::Prompts => method::PROMPTS_LIST,
        }
    }

    /// The capability that servers declare if they have them.
    pub(super) const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }
}

impl Listing {
    /// The items of a kind.
    pub fn of(&self, kind: Kind) -> &[String] {
        match kind {
            Kind::Tools => &self.tools,
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
            Kind::Prompts => &self.prompts,
        }
    }

    pub(super) fn of_mut(&mut self, kind: Kind) -> &mut Vec<String> {
        match kind {
            Kind::Tools => &mut self.tools,
            Kind::Resources => &mut self.resources,
            Kind::Templates => &mut self.templates,
            Kind::Prompts => &mut self.prompts,
        }
    }
}

/// Why a [`Job`] has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The server could not be reached, or broke.
    Failure(Failure),
    /// The server answered a request with an error.
    Refused {
        /// The request's method.
        method: &'static str,
        /// The error: the JSON text of an object.
        error: String,
    },
    /// It speaks no revision that we do.
    NoCommonRevision,
    /// Its result for this method is not as the protocol has it.
    Malformed(&'static str),
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
