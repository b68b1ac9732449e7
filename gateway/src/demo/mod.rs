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
//! | `count` | the tool that takes its time |
//! | `inquiry` | the tools that ask back |
//! | `resources`, `watch` | the resources, and who hears of their changes |
//! | `prompts` | the prompt, and completion |
//!
//! [`Endpoint`]: mcpx_core::server::Endpoint

mod arguments;
mod count;
mod host;
mod inquiry;
mod machine;
mod prompts;
mod requests;
mod resources;
mod shapes;
#[cfg(test)]
mod testing;
mod tools;
mod watch;

pub use machine::Demo;
