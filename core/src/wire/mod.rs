//! Byte codecs: what the transports put on the wire, without any MCP.

pub mod http1;
pub mod ndjson;
pub mod sse;
pub mod texts;
