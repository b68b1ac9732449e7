//! A conversation with one server, for programs that are hosts themselves.
//!
//! [`Session`] is a [`Machine`](crate::driver::Machine) without listeners. It finds
//! out what the server speaks (and starts a process that does not survive the
//! question once more), agrees on a revision, and then sends what it is asked to
//! and gives back [`Event`]s. Whatever the revision, requests and results are the
//! same: what a modern one repeats in each request is added here.
//!
//! It does not begin again by itself: when the server is gone, so is the session.
//!
//! | file | subject |
//! | --- | --- |
//! | `machine` | the inputs, the time, and the end |
//! | `handshake` | what the server speaks, and the agreement on it |
//! | `calls` | requests and what comes of them |
//! | `trouble` | what can be in the way |

mod calls;
mod handshake;
mod machine;
mod trouble;

pub use calls::{CallId, Options};
pub use machine::{Config, Event, Limits, Session};
pub use trouble::Trouble;
