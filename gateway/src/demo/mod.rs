//! The built-in server of `--demo`: something to try a host or a gateway with,
//! and the example of a program that embeds [`mcpx_core::server`].
//!
//! It speaks all five revisions at once. The [`Endpoint`] below it decides how a
//! host speaks, and keeps connections, sessions and ids; what is left to an
//! embedder is what these files do: answer a request, remember a session, send a
//! notification, ask a host, and come to an end.
//!
//! | file | subject |
//! | --- | --- |
//! | `machine` | inputs, events, actions, and the end |
//! | `requests` | which method is answered where; the handshakes |
//! | `host` | what is known about whoever asks |
//! | `shapes` | results as the host's revision has them |
//! | `tools`, `arguments` | the tools, and what they are called with |
//! | `count`, `steps` | the tool that takes its time, and how that is done |
//! | `ask`, `inquiry` | the tools that ask back, and how that is done |
//! | `question`, `state` | what hosts can be asked, and what they keep meanwhile |
//! | `resources`, `watch` | the resources, and who hears of their changes |
//! | `prompts` | the prompt, and completion |
//! | `fixtures` | what conformance suites call |
//!
//! [`Endpoint`]: mcpx_core::server::Endpoint

mod arguments;
mod ask;
mod count;
mod fixtures;
mod host;
mod inquiry;
mod machine;
mod prompts;
mod question;
mod requests;
mod resources;
mod shapes;
mod state;
mod steps;
#[cfg(test)]
mod testing;
mod tools;
mod watch;

pub use machine::Demo;
