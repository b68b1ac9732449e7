#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! mcpx-core

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
pub mod server;
pub mod time;
pub mod wire;
