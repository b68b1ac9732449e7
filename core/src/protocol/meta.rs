//! The reserved `_meta` keys of 2026-07-28 `basic/index`, and the one claim
//! that decides an era.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::jsonrpc::{get, string, with_member};

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

/// `object` with members of its `_meta` replaced (`Some`) or removed (`None`).
/// No object at all is taken for an empty one.
pub fn with(object: Option<&str>, edits: &[(&str, Option<&str>)]) -> String {
    let object = object.unwrap_or("{}");
    let mut inner = String::from(of(object).unwrap_or("{}"));
    for (name, value) in edits {
        let mut next = String::with_capacity(inner.len() + 64);
        with_member(&inner, name, *value, &mut next);
        inner = next;
    }
    let inner = (inner != "{}").then_some(inner.as_str());
    let mut out = String::with_capacity(object.len() + 128);
    with_member(object, "_meta", inner, &mut out);
    out
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
