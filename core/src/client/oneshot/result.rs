//! What is asked for, and what comes of it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::protocol::method;

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
    pub(in crate::client) const fn method(self) -> &'static str {
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
