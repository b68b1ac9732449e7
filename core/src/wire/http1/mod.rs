//! HTTP/1.1 messages as bytes: RFC 9112 over the terms of RFC 9110, both sides.
//!
//! [`RequestReader`] and [`ResponseReader`] turn bytes into [`Part`]s, one at a
//! time; [`mod@write`] turns heads and chunks into bytes. Field lines are read by
//! httparse; everything that decides where a message ends is decided here.
//!
//! ```
//! use mcpx_core::wire::http1::{Limits, Part, RequestReader};
//!
//! let mut reader = RequestReader::new(Limits::default());
//! let mut input = &b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"[..];
//! while let Some(part) = reader.next(&mut input)? {
//!     match part {
//!         Part::Head(head) => assert_eq!((head.method(), head.path()), ("POST", "/mcp")),
//!         Part::Data(bytes) => assert_eq!(bytes, b"{}"),
//!         Part::End(trailers) => assert!(trailers.is_empty()),
//!     }
//! }
//! # Ok::<(), mcpx_core::wire::http1::Error>(())
//! ```
//!
//! **Strict where it matters.** Whatever two readers could understand in two
//! ways (a bare CR or LF, a folded line, two framings, an unclear length, an odd
//! coding) is an [`Error`], and nothing after it is read. Where the RFCs allow
//! to refuse or to repair, we refuse.
//!
//! **Cuts do not matter.** However the bytes are cut, the same parts and the
//! same error come out, but for the places where [`Part::Data`] is cut. Every
//! byte is looked at a fixed number of times.

mod body;
mod chars;
mod chunk;
mod error;
mod fields;
mod framing;
mod limits;
mod part;
mod request;
mod response;
mod section;
mod target;
#[cfg(test)]
mod tests;
pub mod url;
pub mod write;

pub use error::{Error, Peer, RejectReason};
pub use fields::Fields;
pub use framing::{Framing, Version};
pub use limits::Limits;
pub use part::{Part, RequestPart, ResponsePart};
pub use request::{RequestHead, RequestReader};
pub use response::{ResponseHead, ResponseReader};
pub use target::Form;
pub use url::{Url, UrlError};
