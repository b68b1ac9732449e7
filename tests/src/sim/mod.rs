//! The third runtime: virtual time, and no operating system.
//!
//! A [`World`] holds machines, the processes that they start, and the
//! connections between them and the test. One seed decides in which pieces, how
//! fast and in what order everything happens; the same seed gives the same bytes
//! at the same moments. It drives any [`Machine`](mcpx_core::driver::Machine) by
//! the same contract as the runtimes that ship, and fails as soon as a machine
//! breaks its side of it.
//!
//! | file | subject |
//! | --- | --- |
//! | `world` | who is there, what happens next |
//! | `acts` | what machines want done |
//! | `wire` | connections |
//! | `weather`, `rng` | pieces and delays, by chance that repeats itself |
//! | `program` | machines as processes |
//! | `net` | the world as a host sees it |

mod acts;
mod net;
mod program;
mod rng;
mod weather;
mod wire;
mod world;

pub use net::Sim;
pub(crate) use net::{doors, endpoint, http, world};
pub use program::Program;
pub use rng::Rng;
pub use weather::Weather;
pub use wire::{NodeId, WireId};
pub use world::World;
