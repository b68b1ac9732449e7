//! The JSON-RPC 2.0 envelope.
//!
//! ```text
//! bytes ──Message::parse──▶ Incoming::Message ── kind, id, method, params, result, error
//!                           Incoming::Batch   ── elements, each parsed by itself
//!                           Rejected          ── the code, the reason, and whom to answer
//! Envelope ──write, write_line──▶ bytes
//! ```
//!
//! A message is checked completely, once, and never turned into a tree: its
//! parameters, result and error stay the text that they were, so that numbers,
//! escapes, order and unknown members survive. [`get`], [`members`] and
//! [`with_member`] look into such text and change it.
//!
//! Sources: RFC 8259; the JSON-RPC 2.0 specification; MCP `basic` (ids are
//! strings or integers, parameters are objects).

mod id;
mod members;
mod message;
mod parts;
mod reject;
mod scan;
mod skim;
mod text;
mod write;

pub mod code;

pub use id::same_id;
pub use members::{Elements, Key, Members, elements, get, get_path, members, with_member};
pub use message::{Batch, Incoming, Kind, Limits, Message};
pub use reject::{RejectReason, Rejected};
pub use skim::{Skimmed, Skimmer};
pub use text::{compact, quote, string};
pub use write::{Envelope, error_object};
