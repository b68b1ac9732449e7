//! The client floor: our side towards servers.
//!
//! An [`Upstream`] is one server: a child process on its standard input and
//! output, a socket, or a Streamable HTTP URL. It gives requests ids of our own, writes
//! what the transport requires (headers, session id, protocol version), and
//! gives back [`Event`]s. It knows how a revision travels, not what a gateway
//! does with it.
//!
//! | file | subject |
//! | --- | --- |
//! | `upstream` | one server, whatever carries it |
//! | `failure` | why something did not work |
//! | `wires` | the connections of all upstreams |
//! | [`probe`] | which era a server is of |
//! | `pipe` | a child process, or a socket: start, lines, diagnosis, end |
//! | `http` | a URL: requests, the session, connections and their ends |
//! | `again` | requests that go out again |
//! | `response` | what comes back from a URL |
//! | `lane` | one HTTP connection and the response on it |
//! | `schemas` | which arguments travel in header fields |
//! | [`session`] | one server, shaken hands with: calls, questions, notifications |
//! | `peer` | the same for programs that wait for answers |
//! | [`oneshot`] | one visit to a server: connect, do some things, leave |

mod again;
mod failure;
mod http;
mod lane;
mod legacy_sse;
mod limits;
pub mod oneshot;
mod peer;
mod pipe;
pub mod probe;
mod response;
pub(crate) mod schemas;
pub mod session;
mod upstream;
mod wires;

pub use failure::Failure;
pub use limits::Limits;
pub use peer::{Answerer, Client, Drive, Error, Notification};
pub use upstream::{Event, Place, RequestId, Upstream, UpstreamId};
pub use wires::Wires;
