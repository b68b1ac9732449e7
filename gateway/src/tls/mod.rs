//! TLS between a machine and its runtime.
//!
//! [`Secure`] is a machine around another one. What the inner one sends to a
//! [`Target::Tls`] leaves it encrypted, and what comes back reaches it in the
//! clear, so neither the core nor a runtime knows more of TLS than its name.
//!
//! | file | subject |
//! | --- | --- |
//! | `layer` | which connections are encrypted, and who hears what |
//! | `session` | one connection: its tunnel, its handshake, its bytes |
//! | `plain` | one without TLS, until its tunnel is open |
//! | `tunnel` | the way through a proxy (RFC 9110 9.3.6) |
//! | `settings` | whom to trust, who we are, which proxy |

mod layer;
mod plain;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod tunnel;

pub(crate) use layer::Secure;
pub(crate) use settings::{Options, Settings, Shared};
