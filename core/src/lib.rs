//! The Model Context Protocol without I/O: codecs, our side towards hosts, our
//! side towards servers, and a gateway between them, as state machines.
//!
//! **What it is.** Bytes, moments and events go in; bytes and actions come out.
//! The crate is `no_std` and forbids unsafe code, so the compiler proves that it
//! has no sockets, no clock, no threads and no randomness of its own. The same
//! seed and the same inputs give the same outputs, byte for byte, however the
//! incoming bytes were cut: runs can be recorded, replayed, simulated and fuzzed.
//!
//! **What it is not.** A runtime. `mcpx-mio` and `mcpx-blocking` drive any
//! [`Machine`](driver::Machine); so can your program, with the loop below.
//!
//! # Floors
//!
//! Each uses only the ones above it in this table, so you can stop at any.
//!
//! | floor | modules | subject |
//! | --- | --- | --- |
//! | 0 | [`time`], [`entropy`], [`seal`], [`buffer`], [`driver`], [`event`], [`output`] | moments, randomness and bytes handed in; the contract with a runtime |
//! | 1 | [`jsonrpc`] | the envelope: ids exact, the rest raw |
//! | 2 | [`wire`] | NDJSON, HTTP/1.1 and event streams as bytes |
//! | 3 | [`protocol`] | what the five revisions say: names, headers, rules |
//! | 4 | [`server`] | hosts: connections, sessions, streams, answers |
//! | 5 | [`client`] | servers: processes and URLs |
//! | 6 | [`gateway`] | hosts on one side, a server on the other |
//!
//! # The loop
//!
//! An endpoint for one host on a pipe, whole:
//!
//! ```
//! use mcpx_core::driver::{ConnId, ListenerId};
//! use mcpx_core::entropy::Entropy;
//! use mcpx_core::server::{Config, Endpoint, Event, Listener, Outcome};
//! use mcpx_core::time::Instant;
//!
//! let config = Config { listeners: vec![Listener::Ndjson], ..Config::default() };
//! // 32 bytes from the operating system.
//! let mut endpoint = Endpoint::new(config, Entropy::new([0; 32]));
//!
//! // A host connects...
//! let host = ConnId::accepted(1);
//! endpoint.at(Instant::from_micros(10));
//! endpoint.accepted(host, ListenerId(0), None);
//!
//! // ...and asks.
//! let mut bytes = &br#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}
//! "#[..];
//! while let Some(event) = endpoint.receive(host, &mut bytes) {
//!     if let Event::Request(request) = event {
//!         assert_eq!(request.message.method(), "initialize");
//!         endpoint.respond(request.exchange, Outcome::Result(
//!             r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
//!         ));
//!     }
//! }
//!
//! // Send what is queued.
//! let answer = endpoint.outgoing(host).to_vec();
//! assert!(answer.starts_with(br#"{"jsonrpc":"2.0","id":"a","result":{"#));
//! endpoint.sent(host, answer.len());
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod buffer;
pub mod client;
pub mod driver;
pub mod entropy;
pub mod event;
pub mod gateway;
pub mod jsonrpc;
pub mod output;
pub mod protocol;
pub mod seal;
pub mod server;
pub mod time;
pub mod wire;
