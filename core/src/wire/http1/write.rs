//! Writes heads and chunks.
//!
//! Nothing that comes in can break out of its place: names, values, methods,
//! targets and hosts are checked, and on an error nothing has been written.
//! Framing is written here and nowhere else.

use alloc::vec::Vec;
use core::fmt;

use super::chars::{is_text_char, is_token};
use super::target::{Target, parse_authority};

/// The interim response that asks a client for the body it announced.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A field: name and value.
pub type Field<'a> = (&'a str, &'a str);

/// How the body that follows a head will be framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyLen {
    /// There is none. Where a reader could expect one, a length of 0 is said.
    None,
    /// So many bytes, written as they are.
    Length(u64),
    /// [`chunk`]s and a [`last_chunk`].
    Chunked,
    /// All bytes up to the end of the connection (responses only). Says
    /// `connection: close`.
    Close,
}

/// Why a head was not written: our own fault, not a peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// The method is not a token.
    InvalidMethod,
    /// The target has no form that fits the method.
    InvalidTarget,
    /// The host is not a host with an optional port.
    InvalidHost,
    /// The status is not in 100..599.
    InvalidStatus,
    /// A field's name is not a token.
    InvalidName,
    /// A field's value has a control character.
    InvalidValue,
    /// A field is written by this module only: Content-Length,
    /// Transfer-Encoding and, in a request, Host.
    ReservedField,
    /// A message of this kind cannot have such a body.
    ForbiddenBody,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidMethod => "the method is not a token",
            Self::InvalidTarget => "the request target does not fit the method",
            Self::InvalidHost => "the host is not a host with an optional port",
            Self::InvalidStatus => "the status code is not in 100..599",
            Self::InvalidName => "a field name is not a token",
            Self::InvalidValue => "a field value has a control character",
            Self::ReservedField => "framing and host cannot be set as fields",
            Self::ForbiddenBody => "a message of this kind cannot have such a body",
        })
    }
}

impl core::error::Error for WriteError {}

/// Appends the head of a response, with the reason phrase of [`reason`].
///
/// # Errors
///
/// [`WriteError`], with `out` as it was.
pub fn response_head(
    out: &mut Vec<u8>,
    status: u16,
    fields: &[Field<'_>],
    body: BodyLen,
) -> Result<(), WriteError> {
    if !(100..600).contains(&status) {
        return Err(WriteError::InvalidStatus);
    }
    let bodyless = matches!(status, ..200 | 204 | 304);
    if bodyless && body != BodyLen::None {
        return Err(WriteError::ForbiddenBody);
    }
    check_fields(fields, &["content-length", "transfer-encoding"])?;
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, status.into());
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    fields_and_end(out, fields, if bodyless { None } else { Some(body) });
    Ok(())
}

/// Appends the head of a request. `host` is the value of Host; `target` is
/// whatever fits the method.
///
/// # Errors
///
/// [`WriteError`], with `out` as it was. [`BodyLen::Close`] is forbidden.
pub fn request_head(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    host: &str,
    fields: &[Field<'_>],
    body: BodyLen,
) -> Result<(), WriteError> {
    if !is_token(method.as_bytes()) {
        return Err(WriteError::InvalidMethod);
    }
    Target::parse(method.as_bytes(), target.as_bytes()).map_err(|_| WriteError::InvalidTarget)?;
    parse_authority(host.as_bytes()).ok_or(WriteError::InvalidHost)?;
    if body == BodyLen::Close {
        return Err(WriteError::ForbiddenBody);
    }
    check_fields(fields, &["content-length", "transfer-encoding", "host"])?;
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    field(out, "host", host);
    // Methods that give content a meaning say that there is none: RFC 9110
    // section 8.6.
    let unsaid = body == BodyLen::None && !matches!(method, "POST" | "PUT" | "PATCH");
    fields_and_end(out, fields, if unsaid { None } else { Some(body) });
    Ok(())
}

/// Appends a chunk made of `parts`. Empty data is not written: it would be the
/// last chunk.
pub fn chunk(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length == 0 {
        return;
    }
    hexadecimal(out, length as u64);
    out.extend_from_slice(b"\r\n");
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body, without trailers.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// The reason phrase of a status code; empty for codes that we never send.
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

fn check_fields(fields: &[Field<'_>], reserved: &[&str]) -> Result<(), WriteError> {
    for (name, value) in fields {
        if !is_token(name.as_bytes()) {
            return Err(WriteError::InvalidName);
        }
        if !value.bytes().all(is_text_char) {
            return Err(WriteError::InvalidValue);
        }
        if reserved.iter().any(|r| r.eq_ignore_ascii_case(name)) {
            return Err(WriteError::ReservedField);
        }
    }
    Ok(())
}

fn fields_and_end(out: &mut Vec<u8>, fields: &[Field<'_>], body: Option<BodyLen>) {
    for (name, value) in fields {
        field(out, name, value);
    }
    match body {
        None => {}
        Some(BodyLen::None) => field(out, "content-length", "0"),
        Some(BodyLen::Length(length)) => {
            out.extend_from_slice(b"content-length: ");
            decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Some(BodyLen::Chunked) => field(out, "transfer-encoding", "chunked"),
        Some(BodyLen::Close) => field(out, "connection", "close"),
    }
    out.extend_from_slice(b"\r\n");
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn decimal(out: &mut Vec<u8>, number: u64) {
    digits::<10>(out, number);
}

fn hexadecimal(out: &mut Vec<u8>, number: u64) {
    digits::<16>(out, number);
}

fn digits<const BASE: u64>(out: &mut Vec<u8>, mut number: u64) {
    let start = out.len();
    loop {
        let digit = (number % BASE) as u8;
        out.push(if digit < 10 { b'0' + digit } else { b'a' + (digit - 10) });
        number /= BASE;
        if number == 0 {
            break;
        }
    }
    if let Some(written) = out.get_mut(start..) {
        written.reverse();
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};

    use super::*;

    fn text(
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<String, WriteError> {
        let mut out = b"before|".to_vec();
        let result = write(&mut out);
        let text = String::from_utf8(out).unwrap();
        match result {
            Ok(()) => Ok(text["before|".len()..].to_string()),
            Err(error) => {
                assert_eq!(text, "before|", "nothing is written on an error");
                Err(error)
            }
        }
    }

    #[test]
    fn heads_are_written_with_their_framing() {
        let response =
            |status, body| text(|out| response_head(out, status, &[("a", "b")], body)).unwrap();
        assert_eq!(
            response(200, BodyLen::Length(1234567890)),
            "HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 1234567890\r\n\r\n"
        );
        assert_eq!(
            response(200, BodyLen::Chunked),
            "HTTP/1.1 200 OK\r\na: b\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        assert_eq!(
            response(200, BodyLen::Close),
            "HTTP/1.1 200 OK\r\na: b\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(
            response(202, BodyLen::None),
            "HTTP/1.1 202 Accepted\r\na: b\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(response(204, BodyLen::None), "HTTP/1.1 204 No Content\r\na: b\r\n\r\n");
        assert_eq!(
            response(599, BodyLen::Length(0)),
            "HTTP/1.1 599 \r\na: b\r\ncontent-length: 0\r\n\r\n"
        );
        let request =
            |method, body| text(|out| request_head(out, method, "/x?y", "h:1", &[], body)).unwrap();
        assert_eq!(request("GET", BodyLen::None), "GET /x?y HTTP/1.1\r\nhost: h:1\r\n\r\n");
        assert_eq!(
            request("POST", BodyLen::None),
            "POST /x?y HTTP/1.1\r\nhost: h:1\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(
            request("POST", BodyLen::Length(7)),
            "POST /x?y HTTP/1.1\r\nhost: h:1\r\ncontent-length: 7\r\n\r\n"
        );
    }

    #[test]
    fn nothing_breaks_out_of_its_place() {
        let response = |fields: &[Field<'_>]| {
            text(|out| response_head(out, 200, fields, BodyLen::None)).unwrap_err()
        };
        for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "\u{7f}", "\u{1b}"] {
            assert_eq!(response(&[("ok", "ok"), ("a", value)]), WriteError::InvalidValue);
        }
        for name in ["", "a b", "a:", "a\r\n", "\u{e9}"] {
            assert_eq!(response(&[(name, "x")]), WriteError::InvalidName);
        }
        for name in ["Content-Length", "transfer-encoding"] {
            assert_eq!(response(&[(name, "5")]), WriteError::ReservedField);
        }
        let request = |method, target, host, fields: &[Field<'_>], body| {
            text(|out| request_head(out, method, target, host, fields, body)).unwrap_err()
        };
        assert_eq!(request("GE T", "/", "h", &[], BodyLen::None), WriteError::InvalidMethod);
        assert_eq!(
            request("GET", "/ HTTP/1.1\r\n", "h", &[], BodyLen::None),
            WriteError::InvalidTarget
        );
        assert_eq!(request("GET", "/", "h\r\na: b", &[], BodyLen::None), WriteError::InvalidHost);
        assert_eq!(
            request("GET", "/", "h", &[("HOST", "b")], BodyLen::None),
            WriteError::ReservedField
        );
        assert_eq!(request("POST", "/", "h", &[], BodyLen::Close), WriteError::ForbiddenBody);
    }

    #[test]
    fn a_status_without_a_body_gets_none() {
        for status in [100, 204, 304] {
            let error =
                text(|out| response_head(out, status, &[], BodyLen::Length(0))).unwrap_err();
            assert_eq!(error, WriteError::ForbiddenBody);
        }
        for status in [0, 99, 600, u16::MAX] {
            let error = text(|out| response_head(out, status, &[], BodyLen::None)).unwrap_err();
            assert_eq!(error, WriteError::InvalidStatus);
        }
    }

    #[test]
    fn chunks_are_framed_and_never_empty() {
        let mut out = Vec::new();
        chunk(&mut out, &[]);
        chunk(&mut out, &[b"", b""]);
        chunk(&mut out, &[b"data: ", b"0123456789", b"\n\n"]);
        last_chunk(&mut out);
        assert_eq!(out, b"12\r\ndata: 0123456789\n\n\r\n0\r\n\r\n");
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 9, 10, 15, 16, 255, 1 << 32, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            out.push(b' ');
            hexadecimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), std::format!("{number} {number:x}"));
        }
    }
}
