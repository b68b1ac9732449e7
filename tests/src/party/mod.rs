//! Many hosts that do whatever they like before many servers, while connections break,
//! servers die and time jumps.
//!
//! A [`Script`] says who is there and what happens; a seed makes one. Whatever it says,
//! every request is answered once, to the one who made it, in words that its revision
//! knows, and nothing is left when all have gone. One that fails is made [as short as it
//! can be](shrink), and told as text that a test can hold.
//!
//! | file | subject |
//! | --- | --- |
//! | `script` | what is done, made by chance or read from text |
//! | `scene` | the servers |
//! | `wild` | servers with bad manners |
//! | `guest` | a host, and what it waits for |
//! | `play` | doing it |
//! | `law` | what may be said in which revision |
//! | `witness` | what the servers are told |
//! | `shrink` | as little of it as still fails |

mod guest;
mod law;
mod play;
mod scene;
mod script;
mod shrink;
mod wild;
mod witness;

pub use law::schemas_are_here;
pub use play::{Played, play};
pub use script::{Act, Deed, Scenario, Script};
pub use shrink::{attempt, shrink};
