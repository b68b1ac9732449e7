//! The gateway floor: hosts on one side, a server on the other.
//!
//! [`Gateway`] is a [`Machine`](crate::driver::Machine). A legacy session of a
//! host has a session with the server of its own: what either side says travels
//! to exactly one other. Modern requests share one connection to the server, and
//! so do legacy ones without a session, since each of them stands alone.
//!
//! | file | subject |
//! | --- | --- |
//! | `config` | what a gateway is made with |
//! | `machine` | the inputs and outputs, and whose they are |
//! | `dispatch` | whose a message of a host is |
//! | `at` | one server, with what all of them share |
//! | `instances` | a server for each token |
//! | `hosts` | what hosts ask and tell |
//! | `servers` | what the server answers, asks and tells |
//! | `modern` | the connection of modern requests, and what the server speaks |
//! | `shared` | the connection of legacy requests without a session |
//! | `many` | many servers as one |
//! | `idle` | ending what nobody uses |
//! | `relearn` | calls whose header fields no longer fit the server's tools |
//! | `relisten` | subscriptions whose stream breaks |
//! | `reload` | other servers than before |
//! | `revive` | sessions that the server has forgotten, or died with |
//! | `starts` | when the server's process is started |
//! | `state` | what modern servers have hosts keep for them |
//! | `tasks` | the ids of their tasks |
//! | `project` | from a newer legacy revision to an older one |
//! | `errors` | the same for errors, in either direction |
//! | `question` | the same for what the server asks |
//! | `rewrite` | ids, tokens and identities at the hop |
//! | `pressure` | who is paused until whom has been read |
//! | `serve` | modern requests before a legacy server |
//! | `park` | calls in the middle of which such a server asks |
//! | `roots` | what it is told of roots outside of them |
//! | `watch` | what modern hosts listen to there |
//! | `session` | legacy hosts before a modern server |
//! | `rounds` | what such a server asks them |
//! | `hear` | what it tells them |
//! | `drive` | tools of legacy servers that are called as tasks |
//! | `errand` | tasks of modern servers for legacy hosts |
//! | `translate` | from one era to the other |
//! | `shutdown` | the end, in good order |

mod at;
mod config;
mod dispatch;
mod drive;
mod errand;
mod errors;
mod hear;
mod hosts;
mod idle;
mod instances;
mod machine;
mod many;
mod modern;
mod park;
mod pressure;
mod project;
mod question;
mod relearn;
mod relisten;
mod reload;
mod revive;
mod rewrite;
mod roots;
mod rounds;
mod serve;
mod servers;
mod session;
mod shared;
mod shutdown;
mod starts;
mod state;
mod tasks;
#[cfg(test)]
mod tests;
mod translate;
mod watch;

pub use config::{Catalogue, Config, Instances, Limits, Server};
pub use machine::Gateway;
pub use many::{Expose, Filter, Naming, Prefix, View, prefix};
