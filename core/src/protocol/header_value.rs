//! The text of `Mcp-Name` and `Mcp-Param-*` fields: plain where it can be,
//! `=?base64?…?=` where it cannot (2026-07-28
//! `basic/transports/streamable-http`, "Value Encoding").

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::jsonrpc::string;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The largest integer that every peer can hold exactly: 2^53 - 1.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Why a field value cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// It has a byte that is not visible ASCII, space or tab (RFC 9110 5.5).
    Character,
    /// Between the markers stands something else than canonical base64 with
    /// padding (RFC 4648 section 4).
    Base64,
    /// The base64 is not that of a UTF-8 text.
    Utf8,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Character => "the value has a character that a header cannot hold",
            Self::Base64 => "the value is not valid base64",
            Self::Utf8 => "the value does not decode to UTF-8",
        })
    }
}

/// The field value that carries `value`.
///
/// Plain text is printable ASCII that neither begins nor ends with a space and
/// does not look encoded already. A tab could stand inside a plain value, but
/// everybody encodes it, and nobody fails to decode that.
pub fn encode(value: &str) -> Cow<'_, str> {
    if is_plain(value) { Cow::Borrowed(value) } else { Cow::Owned(encode_base64(value)) }
}

fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !value.starts_with(' ')
        && !value.ends_with(' ')
        && payload(value).is_none()
}

fn encode_base64(value: &str) -> String {
    // Four characters for three bytes.
    let encoded = value.len().div_ceil(3).saturating_mul(4);
    let mut field = String::with_capacity(PREFIX.len() + encoded + SUFFIX.len());
    field.push_str(PREFIX);
    STANDARD.encode_string(value, &mut field);
    field.push_str(SUFFIX);
    field
}

/// What stands between the markers. They may not overlap: `=?base64?=` is
/// plain text.
fn payload(text: &str) -> Option<&str> {
    text.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

/// The field value that carries a JSON value, given as valid JSON text.
///
/// A string is sent as it is, an integer as a canonical decimal (`42.0` is
/// `42`), a boolean as `true` or `false`. Nothing else is sent: `null`, arrays,
/// objects, fractions, integers beyond ±(2^53-1), strings that are not Unicode.
pub fn encode_json(raw: &str) -> Option<Cow<'_, str>> {
    match raw.bytes().next()? {
        b'"' => Some(match string(raw)? {
            Cow::Borrowed(text) => encode(text),
            Cow::Owned(text) if is_plain(&text) => Cow::Owned(text),
            Cow::Owned(text) => Cow::Owned(encode_base64(&text)),
        }),
        b't' | b'f' => Some(Cow::Borrowed(raw)),
        b'-' | b'0'..=b'9' => safe_integer(raw).map(|n| Cow::Owned(n.to_string())),
        _ => None,
    }
}

/// The text that a field value carries. Optional white space around it is not
/// part of it (RFC 9110 5.5).
pub fn decode(field: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    let field = trim(field);
    if !field.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Err(Malformed::Character);
    }
    let text = str::from_utf8(field).map_err(|_| Malformed::Character)?;
    let Some(payload) = payload(text) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(payload).map_err(|_| Malformed::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Malformed::Utf8)
}

/// `field` without the spaces and tabs around it.
pub fn trim(field: &[u8]) -> &[u8] {
    let is_white = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = field.iter().position(|byte| !is_white(byte)).unwrap_or(field.len());
    let end = field.iter().rposition(|byte| !is_white(byte)).map_or(start, |last| last + 1);
    field.get(start..end).unwrap_or_default()
}

/// Whether a decoded field says the same as a JSON value, given as valid JSON
/// text: integers are compared as numbers (`42.0` is `42`), all else as text.
pub fn matches(text: &str, raw: &str) -> bool {
    match raw.bytes().next() {
        Some(b'"') => string(raw).is_some_and(|value| value == text),
        Some(b't' | b'f') => text == raw,
        Some(b'-' | b'0'..=b'9') => match (safe_integer(text), safe_integer(raw)) {
            (None, None) => text == raw,
            (field, body) => field == body,
        },
        _ => false,
    }
}

/// The integer that a JSON number is, if it is one that every peer can hold.
/// Exact: no floating point is involved.
fn safe_integer(number: &str) -> Option<i64> {
    let (negative, rest) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (decimal, exponent) = match rest.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, parse_exponent(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = match decimal.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (decimal, ""),
    };
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }

    // The number is `digits` without its trailing `zeros`, times ten to the
    // power of `scale`. More than twenty significant digits are either too many
    // or a fraction.
    let (mut digits, mut zeros) = (0u64, 0u32);
    for byte in whole.bytes().chain(fraction.bytes()) {
        match byte {
            b'0' if digits == 0 => {}
            b'0' => zeros = zeros.checked_add(1)?,
            b'1'..=b'9' => {
                let shift = 10u64.checked_pow(zeros.checked_add(1)?)?;
                digits = digits.checked_mul(shift)?.checked_add(u64::from(byte - b'0'))?;
                zeros = 0;
            }
            _ => return None,
        }
    }
    if digits == 0 {
        return Some(0);
    }
    let scale =
        exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::from(zeros))?;
    let power = 10u64.checked_pow(u32::try_from(scale).ok()?)?;
    let magnitude = digits.checked_mul(power).filter(|n| *n <= MAX_SAFE_INTEGER)?;
    let magnitude = i64::try_from(magnitude).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_sent_as_it_is() {
        for text in ["", "us-west1", "a b, c", "=?utf-8?q?a?=", "=?base64?=", "end?="] {
            assert_eq!(encode(text), text);
        }
    }

    #[test]
    fn other_text_goes_through_base64_and_back() {
        for text in [" a", "a ", "a\tb", "a\r\nEvil: 1", "\u{7f}", "日本語", "=?base64?SGk=?="] {
            let field = encode(text);
            assert!(field.starts_with(PREFIX) && field.ends_with(SUFFIX), "{field}");
            assert_eq!(decode(field.as_bytes()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn white_space_around_a_field_is_not_part_of_it() {
        assert_eq!(decode(b" \t foo\t ").as_deref(), Ok("foo"));
        assert_eq!(decode(b" \t ").as_deref(), Ok(""));
        assert_eq!(decode(b" =?base64?SGk=?= ").as_deref(), Ok("Hi"));
    }

    #[test]
    fn half_a_sentinel_is_plain() {
        for text in ["=?base64?SGk=", "=?BASE64?SGk=?=", "x =?base64?SGk=?=", "=?base64?="] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_cannot_be_decoded_says_why() {
        assert_eq!(decode(b"caf\xc3\xa9"), Err(Malformed::Character));
        assert_eq!(decode(b"a\x7fb"), Err(Malformed::Character));
        assert_eq!(decode(b"=?base64?SGk?="), Err(Malformed::Base64));
        assert_eq!(decode(b"=?base64?SGl=?="), Err(Malformed::Base64));
        assert_eq!(decode(b"=?base64?-_-_?="), Err(Malformed::Base64));
        assert_eq!(decode(b"=?base64?//4=?="), Err(Malformed::Utf8));
    }

    #[test]
    fn json_values_have_one_spelling() {
        let cases = [
            (r#""a\u0062""#, Some("ab")),
            (r#""42.0""#, Some("42.0")),
            ("42", Some("42")),
            ("-7.0", Some("-7")),
            ("4.2e1", Some("42")),
            ("420e-1", Some("42")),
            ("-0", Some("0")),
            ("0e999999999999999999", Some("0")),
            ("9007199254740991", Some("9007199254740991")),
            ("-9007199254740992", None),
            ("1e400", None),
            ("3.14", None),
            ("true", Some("true")),
            ("null", None),
            ("[1]", None),
            ("{}", None),
            (r#""\ud800""#, None),
        ];
        for (raw, field) in cases {
            assert_eq!(encode_json(raw).as_deref(), field, "{raw}");
        }
    }

    #[test]
    fn integers_match_as_numbers_and_the_rest_as_text() {
        assert!(matches("42.0", "42") && matches("42", "42.0") && matches("-0", "0"));
        assert!(!matches("43", "42") && !matches("0x2a", "42") && !matches("042", "42"));
        assert!(!matches("42.", "42") && !matches("42e", "42") && !matches("", "42"));
        assert!(!matches("9007199254740993", "9007199254740992"));
        assert!(!matches("42.0", r#""42""#) && matches("42", r#""42""#));
        assert!(matches("true", "true") && !matches("True", "true") && !matches("", "null"));
    }
}
