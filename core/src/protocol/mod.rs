//! What the revisions say: tables, names and rules, without any state.

pub(crate) mod completion;
pub mod fault;
pub mod header_value;
pub mod host_capabilities;
pub mod meta;
pub mod method;
pub mod origin;
pub mod required_headers;
pub mod revision;
pub mod shape;
pub mod x_mcp_header;
