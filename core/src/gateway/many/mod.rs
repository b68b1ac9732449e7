//! Many servers as one.
//!
//! Hosts see one catalogue of what all servers offer, kept here, and every request
//! goes to the server whose name it has. A server that is alone, and shown as it is,
//! needs none of this.
//!
//! | file | subject |
//! | --- | --- |
//! | `view` | how much of a server hosts are shown |
//! | `names` | the names under which they see it |
//! | `catalogue` | what one server offers |
//! | `attend` | hearing that it has changed |
//! | `merged` | what all offer, as one list of each kind |
//! | `consult` | requests that are answered from there |
//! | `route` | whose a request is |
//! | `guests` | legacy sessions, which begin at each server when they need it |
//! | `tell` | telling hosts what has changed |
//! | `listen` | what modern hosts listen to |
//! | `search` | two tools in the place of all |

mod attend;
mod catalogue;
mod consult;
mod guests;
mod listen;
mod merged;
mod names;
mod route;
mod search;
mod tell;
mod view;

pub(super) use attend::Attention;
pub(super) use catalogue::{Catalogue, List};
pub(super) use consult::Many;
pub(super) use listen::Listens;
pub use names::{Naming, Prefix, prefix};
pub use search::Expose;
pub use view::{Filter, View};
