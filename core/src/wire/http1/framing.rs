//! Where a body ends and whether the connection lives on: RFC 9112 sections 6
//! and 9.3.

use super::chars::trim;
use super::{Fields, RejectReason};

/// The version that a message is to be read by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, or a later minor version, which is to be read as 1.1 (RFC
    /// 9110 section 2.5).
    Http11,
}

impl Version {
    pub(super) fn parse(text: &[u8]) -> Result<Self, RejectReason> {
        match text {
            b"HTTP/1.1" => Ok(Self::Http11),
            b"HTTP/1.0" => Ok(Self::Http10),
            [b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', b'0'..=b'9'] => match major {
                b'1' => Ok(Self::Http11),
                _ => Err(RejectReason::UnsupportedVersion),
            },
            _ => Err(RejectReason::InvalidVersion),
        }
    }
}

/// How the end of a body is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// There is no body.
    None,
    /// Content-Length: so many bytes, perhaps none.
    Length(u64),
    /// Transfer-Encoding: chunked.
    Chunked,
    /// The end of the connection. Never in a request.
    Eof,
}

/// The greatest length that a body or chunk may announce: sums of two stay
/// below the end of `u64`, and no peer that counts signed is misled.
pub(super) const GREATEST_LENGTH: u64 = i64::MAX as u64;

/// What the fields say, if they say anything. Refuses whatever is not one clear
/// length or one clear `chunked`: a recipient that guesses can be made to see
/// other messages than its neighbour does.
pub(super) fn declared(fields: &Fields, version: Version) -> Result<Option<Framing>, RejectReason> {
    let mut lengths = fields.get_all("content-length");
    let length = lengths.next();
    if fields.get("transfer-encoding").is_some() {
        if version == Version::Http10 {
            return Err(RejectReason::TransferEncodingInHttp10);
        }
        check_codings(fields.get_all("transfer-encoding"))?;
        return match length {
            Some(_) => Err(RejectReason::ConflictingFraming),
            None => Ok(Some(Framing::Chunked)),
        };
    }
    if lengths.next().is_some() {
        return Err(RejectReason::RepeatedContentLength);
    }
    length.map(|text| parse_length(text).map(Framing::Length)).transpose()
}

/// The codings must be `chunked` and nothing else. `Fields::list` is of no use
/// here: an empty member is a fault.
fn check_codings<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<(), RejectReason> {
    let (mut chunked, mut other) = (false, false);
    for coding in lines.flat_map(|line| line.split(|&b| b == b',')).map(trim) {
        if chunked || coding.is_empty() {
            return Err(RejectReason::InvalidTransferEncoding);
        }
        match coding.eq_ignore_ascii_case(b"chunked") {
            true => chunked = true,
            false => other = true,
        }
    }
    match (chunked, other) {
        (true, false) => Ok(()),
        (true, true) => Err(RejectReason::UnsupportedTransferEncoding),
        (false, _) => Err(RejectReason::InvalidTransferEncoding),
    }
}

fn parse_length(text: &[u8]) -> Result<u64, RejectReason> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(RejectReason::InvalidContentLength);
    }
    text.iter()
        .try_fold(0u64, |length, digit| {
            length.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .filter(|&length| length <= GREATEST_LENGTH)
        .ok_or(RejectReason::BodyTooLong)
}

/// Whether another message may follow on the connection.
pub(super) fn keeps_alive(fields: &Fields, version: Version) -> bool {
    let has = |option: &[u8]| fields.list("connection").any(|o| o.eq_ignore_ascii_case(option));
    match version {
        Version::Http11 => !has(b"close"),
        Version::Http10 => has(b"keep-alive") && !has(b"close"),
    }
}
