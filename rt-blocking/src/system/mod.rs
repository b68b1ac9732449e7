//! What differs between operating systems: process groups, signals, and how to
//! wait for a child.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use elsewhere::*;
#[cfg(unix)]
pub(crate) use unix::*;

/// The exit code that is reported if the system tells none.
pub(crate) const UNKNOWN: i32 = -1;
