//! One visit to a server: connect, do a list of things, leave.
//!
//! [`OneShot`] is a [`Machine`](crate::driver::Machine) without listeners, for
//! command lines, scripts and checks. It begins a
//! [`Session`](super::session::Session), works through its [`Job`]s one after the
//! other, ends the server, and asks the runtime to exit. [`OneShot::into_results`]
//! then has something for each job.
//!
//! | file | subject |
//! | --- | --- |
//! | `machine` | the inputs, the time, and the end |
//! | `work` | calls and lists |
//! | `result` | jobs and answers |

mod machine;
mod result;
mod work;

#[cfg(test)]
mod tests;

pub use machine::{Config, Limits, OneShot};
pub use result::{Answer, Job, Kind, Listing};
