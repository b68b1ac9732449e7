//! The server floor: our side towards hosts, in every revision, over HTTP and
//! over newline-framed pipes.
//!
//! An [`Endpoint`] owns the connections, sessions and running requests of its
//! hosts. It consumes bytes and gives [`Event`]s; whoever embeds it answers
//! with [`Endpoint::respond`], [`Endpoint::notify`] and [`Endpoint::ask`]. It
//! decides eras, checks headers, Origin and Host, keeps ids apart, and chooses
//! between JSON and event streams; the embedder sees requests and answers.
//!
//! | file | subject |
//! | --- | --- |
//! | `endpoint` | connections and inputs |
//! | `admit` | what a message is, and whether it may come in |
//! | `http` | HTTP connections and the requests on them |
//! | `door` | requests that came by another HTTP stack |
//! | `gate` | who may come in by HTTP |
//! | `respond` | responses and event streams on HTTP connections |
//! | `post` | what is in a POST, and whom it belongs to |
//! | `legacy_sse` | HTTP+SSE of 2024-11-05 |
//! | `batch` | arrays of messages |
//! | `clients` | what each client has |
//! | `pipe` | newline-framed connections |
//! | `exchange` | running requests, their answers, and notifications |
//! | `asking` | questions to hosts |
//! | `ready` | what waits until a host is ready |
//! | `owner` | whose a request is |
//! | `peer` | sessions and pipes as conversations |
//! | `token` | session ids on the wire |
//! | `stream` | event streams that can be taken up again |
//! | `sweep` | what falls due with time |

mod admit;
mod asking;
mod batch;
mod clients;
mod door;
mod endpoint;
mod exchange;
mod gate;
mod http;
mod legacy_sse;
mod limits;
mod owner;
mod peer;
mod pipe;
mod post;
mod ready;
mod respond;
mod stream;
mod sweep;
#[cfg(test)]
mod tests;
mod token;

pub use asking::{AskId, NotAsked};
pub use door::Head;
pub use endpoint::{Config, Endpoint, Event, Listener, Request};
pub use exchange::{ExchangeId, Outcome, Route};
pub use gate::Access;
pub(crate) use gate::Principal;
pub use legacy_sse::LegacySse;
pub use limits::Limits;
pub use owner::Owner;
pub use peer::PeerId;
