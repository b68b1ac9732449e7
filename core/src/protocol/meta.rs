//! The reserved `_meta` keys of 2026-07-28 `basic/index`, and the one claim
//! that decides an era.

use alloc::borrow::Cow;

use crate::jsonrpc::{get, string};

/// `_meta` key: the revision that a request is written in.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key: what the host can do, on each request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key: who the host is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key: who the server is, on each result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key: the lowest level of log messages that a request wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// `_meta` key: which `subscriptions/listen` a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// `_meta` key of ours: the host's own identity, towards a server.
pub const VIA_CLIENT: &str = "dev.mcpx/clientInfo";
/// `_meta` key of ours: the server's own identity, towards a host.
pub const VIA_SERVER: &str = "dev.mcpx/serverInfo";
/// Not prefixed: the token that a sender wants its progress reported under.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The `_meta` object of `params` (or of a result).
pub fn of(params: &str) -> Option<&str> {
    get(params, "_meta").filter(|meta| meta.starts_with('{'))
}

/// The revision that a request claims to be written in: what makes it modern.
///
/// `None` if there is no claim; `Some(None)` if the claim is not a string.
pub fn claim(params: Option<&str>) -> Option<Option<Cow<'_, str>>> {
    get(of(params?)?, PROTOCOL_VERSION).map(string)
}

/// Who we are on both hops: an `Implementation` as JSON.
pub const IDENTITY: &str =
    concat!(r#"{"name":"mcpx","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
