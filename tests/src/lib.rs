//! What the tests that cross crates share.
//!
//! | module | subject |
//! | --- | --- |
//! | `net` | the gateway and its surroundings as hosts see them |
//! | `sim` | the third runtime, with virtual time and no operating system |
//! | `real` | the program itself, with sockets and processes |
//! | `host` | a host of any revision, at any door |
//! | `odd` | servers with whatever manners a test gives them |
//! | `party` | many hosts that do whatever they like, and what must hold |
//! | `scripted` | a server that does what servers should not |

pub mod host;
pub mod net;
pub mod odd;
pub mod party;
#[cfg(unix)]
pub mod real;
pub mod scripted;
pub mod sim;
