//! What objects hold in which legacy revision: members that the first did not
//! know (requirements section 5). What is not listed is as old as its object,
//! or nobody's business but the peers'.

use super::method;
use super::revision::Revision;
use Revision::{R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25};

/// A kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// The result of `initialize`.
    Initialized,
    /// What a server can do.
    ServerCapabilities,
    /// The result of `tools/list`.
    Tools,
    /// A tool.
    Tool,
    /// The result of `tools/call`.
    Called,
    /// The result of `prompts/list`.
    Prompts,
    /// A prompt.
    Prompt,
    /// An argument of a prompt.
    Argument,
    /// The result of `prompts/get`.
    Prompted,
    /// A message of a prompt.
    PromptMessage,
    /// The result of `resources/list`.
    Resources,
    /// The result of `resources/templates/list`.
    Templates,
    /// A resource, or a template of some.
    Resource,
    /// The result of `resources/read`.
    Read,
    /// What is in a resource.
    Contents,
    /// A piece of content: text, an image, a resource and so on.
    Block,
    /// Hints about an object.
    Annotations,
    /// The parameters of `notifications/progress`.
    Progress,
}

/// A member of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// The first revision that knows it.
    pub since: Revision,
    /// What is in it, if that differs between revisions.
    pub holds: Holds,
}

/// What is in a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// The same in every revision.
    Any,
    /// An object.
    One(Shape),
    /// An array of objects.
    Each(Shape),
}

const fn since(since: Revision, name: &'static str) -> Member {
    Member { name, since, holds: Holds::Any }
}

const fn one(name: &'static str, shape: Shape) -> Member {
    Member { name, since: R2024_11_05, holds: Holds::One(shape) }
}

const fn each(name: &'static str, shape: Shape) -> Member {
    Member { name, since: R2024_11_05, holds: Holds::Each(shape) }
}

impl Shape {
    /// The shape of the result of a request; none if all revisions agree on it.
    pub fn of_result(method: &str) -> Option<Self> {
        Some(match method {
            method::TOOLS_LIST => Self::Tools,
            method::TOOLS_CALL => Self::Called,
            method::PROMPTS_LIST => Self::Prompts,
            method::PROMPTS_GET => Self::Prompted,
            method::RESOURCES_LIST => Self::Resources,
            method::TEMPLATES_LIST => Self::Templates,
            method::RESOURCES_READ => Self::Read,
            _ => return None,
        })
    }

    /// Its members on which the revisions do not agree.
    pub const fn members(self) -> &'static [Member] {
        match self {
            Self::Initialized => const { &[one("capabilities", Self::ServerCapabilities)] },
            Self::ServerCapabilities => {
                const { &[since(R2025_03_26, "completions"), since(R2025_11_25, "tasks")] }
            }
            Self::Tools => const { &[each("tools", Self::Tool)] },
            Self::Tool => {
                const {
                    &[
                        since(R2025_03_26, "annotations"),
                        since(R2025_06_18, "title"),
                        since(R2025_06_18, "outputSchema"),
                        since(R2025_06_18, "_meta"),
                        since(R2025_11_25, "icons"),
                        since(R2025_11_25, "execution"),
                    ]
                }
            }
            Self::Called => {
                const { &[each("content", Self::Block), since(R2025_06_18, "structuredContent")] }
            }
            Self::Prompts => const { &[each("prompts", Self::Prompt)] },
            Self::Prompt => {
                const {
                    &[
                        each("arguments", Self::Argument),
                        since(R2025_06_18, "title"),
                        since(R2025_06_18, "_meta"),
                        since(R2025_11_25, "icons"),
                    ]
                }
            }
            Self::Argument => const { &[since(R2025_06_18, "title")] },
            Self::Prompted => const { &[each("messages", Self::PromptMessage)] },
            Self::PromptMessage => const { &[one("content", Self::Block)] },
            Self::Resources => const { &[each("resources", Self::Resource)] },
            Self::Templates => const { &[each("resourceTemplates", Self::Resource)] },
            Self::Resource => {
                const {
                    &[
                        one("annotations", Self::Annotations),
                        since(R2025_06_18, "title"),
                        since(R2025_06_18, "_meta"),
                        since(R2025_11_25, "icons"),
                    ]
                }
            }
            Self::Read => const { &[each("contents", Self::Contents)] },
            Self::Contents => const { &[since(R2025_06_18, "_meta")] },
            Self::Block => {
                const {
                    &[
                        one("annotations", Self::Annotations),
                        one("resource", Self::Contents),
                        since(R2025_06_18, "title"),
                        since(R2025_06_18, "_meta"),
                        since(R2025_11_25, "icons"),
                    ]
                }
            }
            Self::Annotations => const { &[since(R2025_06_18, "lastModified")] },
            Self::Progress => const { &[since(R2025_03_26, "message")] },
        }
    }
}

/// The first revision that knows a kind of [block](Shape::Block).
pub fn block_since(kind: &str) -> Revision {
    match kind {
        "audio" => R2025_03_26,
        "resource_link" => R2025_06_18,
        _ => R2024_11_05,
    }
}
