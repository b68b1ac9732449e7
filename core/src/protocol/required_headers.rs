//! The request headers of 2026-07-28 that repeat what the body says
//! (`basic/transports/streamable-http`, "Standard Request Headers" and "Server
//! Validation"): what a client sends, and what a server compares.
//!
//! A server asks in the order of the functions here, with other refusals in
//! between: [`version`] before it looks whether it serves that version,
//! [`method`] before it looks whether the method exists, then [`name`], then
//! [`x_mcp_header::check_params`]. Only modern requests are asked; the headers
//! of a notification are never looked at.
//!
//! The fields of the head are handed in as a function that gives them all, in
//! any order, each time it is asked.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::jsonrpc::get;
use crate::protocol::header_value::{decode, encode_json, matches, trim};
use crate::protocol::x_mcp_header::{self, Declaration};
use crate::protocol::{meta, method as methods};

/// The header that names the revision of a request.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The header that repeats `method`.
pub const METHOD: &str = "Mcp-Method";
/// The header that repeats the name of what a request is about.
pub const NAME: &str = "Mcp-Name";

/// A header that repeats something in the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Header {
    /// `MCP-Protocol-Version`.
    ProtocolVersion,
    /// `Mcp-Method`.
    Method,
    /// `Mcp-Name`.
    Name,
    /// `Mcp-Param-…`: the whole name, as the tool declares it.
    Param(String),
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProtocolVersion => PROTOCOL_VERSION,
            Self::Method => METHOD,
            Self::Name => NAME,
            Self::Param(name) => name,
        })
    }
}

/// Why a request is refused with 400 and `-32020`.
///
/// Its text names the header, never a value: values may be secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderFault {
    /// The header is not there, and the body has what it repeats.
    Missing(Header),
    /// The header and the body disagree.
    Mismatch(Header),
    /// The header's value has characters or an encoding that is not allowed.
    Malformed(Header),
    /// The header is given more than once.
    Duplicate(Header),
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(header) => write!(f, "Header mismatch: {header} is missing"),
            Self::Mismatch(header) => {
                write!(f, "Header mismatch: {header} does not say what the body says")
            }
            Self::Malformed(header) => write!(f, "Header mismatch: {header} is malformed"),
            Self::Duplicate(header) => {
                write!(f, "Header mismatch: {header} is given more than once")
            }
        }
    }
}

/// A field of a request head: its name in any case, its raw value.
pub type Field<'a> = (&'a str, &'a [u8]);

/// The one value of the field called `wanted`, without white space around it.
///
/// `Err(Duplicate)` of `header` if there are several.
pub(crate) fn only<'a, I: Iterator<Item = Field<'a>>>(
    fields: impl Fn() -> I,
    wanted: &str,
    header: impl Fn() -> Header,
) -> Result<Option<&'a [u8]>, HeaderFault> {
    let mut values = fields()
        .filter(|(name, _)| name.eq_ignore_ascii_case(wanted))
        .map(|(_, value)| trim(value));
    let value = values.next();
    match values.next() {
        Some(_) => Err(HeaderFault::Duplicate(header())),
        None => Ok(value),
    }
}

/// Compares `MCP-Protocol-Version` with what `params` claims in `_meta`.
pub fn version<'a, I: Iterator<Item = Field<'a>>>(
    fields: impl Fn() -> I,
    params: Option<&str>,
) -> Result<(), HeaderFault> {
    let header = || Header::ProtocolVersion;
    let value = only(fields, PROTOCOL_VERSION, header)?.ok_or(HeaderFault::Missing(header()))?;
    match meta::claim(params).flatten() {
        Some(claim) if claim.as_bytes() == value => Ok(()),
        _ => Err(HeaderFault::Mismatch(header())),
    }
}

/// Compares `Mcp-Method` with the method of the request.
pub fn method<'a, I: Iterator<Item = Field<'a>>>(
    fields: impl Fn() -> I,
    method: &str,
) -> Result<(), HeaderFault> {
    let header = || Header::Method;
    let value = only(fields, METHOD, header)?.ok_or(HeaderFault::Missing(header()))?;
    if value == method.as_bytes() { Ok(()) } else { Err(HeaderFault::Mismatch(header())) }
}

/// Compares `Mcp-Name` with what the request is about.
///
/// A request that is about nothing in particular may carry any `Mcp-Name`. One
/// that should name something and does not is refused later, for its params,
/// unless the header makes up for it.
pub fn name<'a, I: Iterator<Item = Field<'a>>>(
    fields: impl Fn() -> I,
    method: &str,
    params: Option<&str>,
) -> Result<(), HeaderFault> {
    let Some(member) = name_member(method) else { return Ok(()) };
    let body = params.and_then(|params| get(params, member)).filter(|raw| raw.starts_with('"'));
    compare(only(fields, NAME, || Header::Name)?, body, || Header::Name)
}

/// All three comparisons, in order.
pub fn check<'a, I: Iterator<Item = Field<'a>>>(
    fields: impl Fn() -> I,
    method: &str,
    params: Option<&str>,
) -> Result<(), HeaderFault> {
    version(&fields, params)?;
    self::method(&fields, method)?;
    name(fields, method, params)
}

/// Compares a field value that may be encoded with the raw JSON value that it
/// should repeat. A value that no header can carry is not expected.
pub(crate) fn compare(
    field: Option<&[u8]>,
    body: Option<&str>,
    header: impl Fn() -> Header,
) -> Result<(), HeaderFault> {
    match (field, body) {
        (None, None) => Ok(()),
        (None, Some(raw)) if encode_json(raw).is_none() => Ok(()),
        (None, Some(_)) => Err(HeaderFault::Missing(header())),
        (Some(field), body) => {
            let text = decode(field).map_err(|_| HeaderFault::Malformed(header()))?;
            match body {
                Some(raw) if matches(&text, raw) => Ok(()),
                _ => Err(HeaderFault::Mismatch(header())),
            }
        }
    }
}

/// The member of `params` that `Mcp-Name` repeats.
///
/// The task methods are those of the tasks extension (SEP-2663).
fn name_member(method: &str) -> Option<&'static str> {
    match method {
        methods::TOOLS_CALL | methods::PROMPTS_GET => Some("name"),
        methods::RESOURCES_READ => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// The headers that a client sends to repeat what is in the body of a request,
/// besides `MCP-Protocol-Version`. `declarations` are those of the tool that is
/// called, if its schema is known.
pub fn mirrored(
    method: &str,
    params: Option<&str>,
    declarations: &[Declaration],
) -> Vec<(Cow<'static, str>, String)> {
    let mut headers = Vec::with_capacity(2 + declarations.len());
    headers.push((Cow::Borrowed(METHOD), String::from(method)));
    let Some(params) = params else { return headers };
    let named = name_member(method)
        .and_then(|member| get(params, member))
        .filter(|raw| raw.starts_with('"'))
        .and_then(encode_json);
    headers.extend(named.map(|value| (Cow::Borrowed(NAME), value.into_owned())));
    if method == methods::TOOLS_CALL {
        headers.extend(x_mcp_header::mirrored_params(params, declarations));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &str =
        r#"{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;

    fn ask(headers: &[(&str, &str)]) -> Result<(), HeaderFault> {
        let fields = || headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        check(fields, "tools/call", Some(PARAMS))
    }

    #[test]
    fn headers_repeat_the_body() {
        let version = ("mcp-protocol-version", " 2026-07-28 ");
        let method = ("MCP-METHOD", "tools/call");
        let name = ("Mcp-Name", "=?base64?w6k=?=");
        assert_eq!(ask(&[name, method, version]), Ok(()));

        assert_eq!(ask(&[method, name]), Err(HeaderFault::Missing(Header::ProtocolVersion)));
        assert_eq!(ask(&[version, name]), Err(HeaderFault::Missing(Header::Method)));
        assert_eq!(ask(&[version, method]), Err(HeaderFault::Missing(Header::Name)));
        assert_eq!(
            ask(&[version, ("Mcp-Method", "Tools/Call"), name]),
            Err(HeaderFault::Mismatch(Header::Method))
        );
        assert_eq!(
            ask(&[version, method, ("Mcp-Name", "é")]),
            Err(HeaderFault::Malformed(Header::Name))
        );
        assert_eq!(ask(&[version, method, name, name]), Err(HeaderFault::Duplicate(Header::Name)));
    }

    #[test]
    fn a_name_that_the_body_lacks_is_the_later_refusal_of_its_params() {
        let none = core::iter::empty::<Field<'_>>;
        assert_eq!(name(none, "tools/call", Some("{}")), Ok(()));
        assert_eq!(name(none, "tools/call", Some(r#"{"name":7}"#)), Ok(()));
        assert_eq!(name(none, "tools/list", None), Ok(()));
        let extra = || [("Mcp-Name", &b"x"[..])].into_iter();
        assert_eq!(name(extra, "tools/list", Some(r#"{"name":"y"}"#)), Ok(()));
        assert_eq!(name(extra, "tools/call", Some("{}")), Err(HeaderFault::Mismatch(Header::Name)));
    }

    #[test]
    fn a_client_repeats_what_the_method_is_about() {
        let named = |method: &str, params: &str| {
            let headers = mirrored(method, Some(params), &[]);
            assert_eq!(headers.first(), Some(&(METHOD.into(), method.into())));
            headers.get(1).cloned()
        };
        let name = |value: &str| Some((Cow::Borrowed(NAME), String::from(value)));
        assert_eq!(named("tools/call", r#"{"name":"a"}"#), name("a"));
        assert_eq!(named("prompts/get", r#"{"name":" a"}"#), name("=?base64?IGE=?="));
        assert_eq!(named("resources/read", r#"{"uri":"a:b","name":"c"}"#), name("a:b"));
        assert_eq!(named("tasks/get", r#"{"taskId":"t"}"#), name("t"));
        assert_eq!(named("tools/list", r#"{"name":"a"}"#), None);
        assert_eq!(named("tools/call", r#"{"name":7}"#), None);
        assert_eq!(mirrored("ping", None, &[]).len(), 1);
    }
}
