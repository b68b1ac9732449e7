//! `--record` and `mcpx replay`: everything that enters a gateway, written down, and
//! what it makes of it, once more and without any network.
//!
//! A recording is a file of JSON lines. The first says what the gateway is made from;
//! each of the others is something that happened to it. Secrets are replaced byte for
//! byte, alike each time, so that a recording without them replays as one with them.
//!
//! | file | subject |
//! | --- | --- |
//! | `settings` | the first line |
//! | `entry` | the others |
//! | `log` | writing them |
//! | `veil` | what stands in the place of secrets |
//! | `replay` | reading them, and doing it again |
//! | `transcript` | what is printed then |

mod entry;
mod log;
mod replay;
mod settings;
#[cfg(test)]
mod tests;
mod transcript;
mod veil;

pub(crate) use log::{Log, Options, Recorded};
pub(crate) use replay::{Replay, replay};
