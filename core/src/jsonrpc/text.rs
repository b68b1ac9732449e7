//! JSON strings, and white space that means nothing.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use memchr::{memchr, memchr2};

/// The text that a JSON string stands for; borrowed if it has no escapes.
///
/// Nothing if `raw` is not a JSON string, or if it holds an escaped surrogate
/// without its other half: such a string is JSON but no Unicode text. Whoever
/// only passes it on keeps the raw text.
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    let Some(first) = memchr(b'\\', inner.as_bytes()) else { return Some(Cow::Borrowed(inner)) };
    let mut out = String::with_capacity(inner.len());
    let (clean, mut rest) = inner.split_at(first);
    out.push_str(clean);
    while let Some(escape) = rest.strip_prefix('\\') {
        rest = unescape(escape, &mut out)?;
        let (clean, after) = rest.split_at(memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len()));
        out.push_str(clean);
        rest = after;
    }
    Some(Cow::Owned(out))
}

/// Appends what the escape at the beginning of `text` (after its backslash)
/// stands for, and returns the rest.
fn unescape<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    let mut chars = text.chars();
    out.push(match chars.next()? {
        plain @ ('"' | '\\' | '/') => plain,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let (unit, rest) = hex(chars.as_str())?;
            if let Some(plain) = char::from_u32(unit) {
                out.push(plain);
                return Some(rest);
            }
            let (low, rest) = hex(rest.strip_prefix("\\u")?)?;
            if !(0xd800..0xdc00).contains(&unit) || !(0xdc00..0xe000).contains(&low) {
                return None;
            }
            out.push(char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?);
            return Some(rest);
        }
        _ => return None,
    });
    Some(chars.as_str())
}

fn hex(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let valid = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    Some((u32::from_str_radix(digits, 16).ok().filter(|_| valid)?, rest))
}

/// Appends `text` as a JSON string. Only what must be escaped is.
pub fn quote(text: &str, out: &mut String) {
    quoted(text, |piece| out.push_str(piece));
}

/// Hands out the pieces of `text` written as a JSON string.
pub(super) fn quoted(text: &str, mut out: impl FnMut(&str)) {
    out("\"");
    let mut rest = text;
    while let Some(n) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        // What must be escaped is one byte, so that both cuts are fine.
        let (clean, after) = rest.split_at(n);
        let (special, after) = after.split_at(1);
        out(clean);
        match special {
            "\"" => out("\\\""),
            "\\" => out("\\\\"),
            "\n" => out("\\n"),
            "\r" => out("\\r"),
            "\t" => out("\\t"),
            control => {
                const DIGITS: &str = "0123456789abcdef";
                let byte = usize::from(control.bytes().next().unwrap_or_default());
                out(if byte < 0x10 { "\\u000" } else { "\\u001" });
                out(DIGITS.get(byte % 16..byte % 16 + 1).unwrap_or_default());
            }
        }
        rest = after;
    }
    out(rest);
    out("\"");
}

/// Appends JSON text as one line: as it is if it has no line breaks, otherwise
/// without any white space between its tokens.
pub fn compact(text: &str, out: &mut Vec<u8>) {
    if memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return out.extend_from_slice(text.as_bytes());
    }
    out.reserve(text.len());
    let mut rest = text.as_bytes();
    while let Some(n) =
        rest.iter().position(|byte| matches!(byte, b'"' | b' ' | b'\t' | b'\n' | b'\r'))
    {
        let (clean, after) = rest.split_at(n);
        out.extend_from_slice(clean);
        let length = if after.starts_with(b"\"") { string_length(after) } else { 1 };
        let (token, after) = after.split_at(length);
        if length > 1 {
            out.extend_from_slice(token);
        }
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// How long the string at the beginning of `bytes` is, quotes included; all of
/// it if it does not end.
pub(super) fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(n) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += n;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded() {
        assert!(matches!(string(r#""plain é""#), Some(Cow::Borrowed("plain é"))));
        let raw = r#""\"\\\/\b\f\n\r\t\u00e9\uD83D\ude00\u0000x""#;
        assert_eq!(string(raw).as_deref(), Some("\"\\/\u{8}\u{c}\n\r\té😀\0x"));
        assert_eq!(string("\"\"").as_deref(), Some(""));
    }

    #[test]
    fn what_is_no_text_is_not_decoded() {
        for raw in [
            "",
            "\"",
            "1",
            "null",
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800x""#,
            r#""\ud800\u0041""#,
        ] {
            assert_eq!(string(raw), None, "{raw}");
        }
        for broken in [r#""\x""#, r#""\u12""#, r#""\u+123""#, r#""\uéé""#, r#""\""#] {
            assert_eq!(string(broken), None, "{broken}");
        }
    }

    #[test]
    fn quoting_and_decoding_are_inverse() {
        let text: String = (0..0x300).filter_map(char::from_u32).chain("世界😀".chars()).collect();
        let mut raw = String::new();
        quote(&text, &mut raw);
        assert_eq!(string(&raw).as_deref(), Some(text.as_str()));
        assert!(raw.starts_with(r#""\u0000\u0001"#) && raw.contains(r#"\u001f !\"#));
        assert_eq!(serde_json::from_str::<String>(&raw).unwrap(), text);
    }

    #[test]
    fn lines_are_compacted_only_if_they_must() {
        let compacted = |text: &str| {
            let mut out = Vec::new();
            compact(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(compacted(r#"{ "a" : 1 }"#), r#"{ "a" : 1 }"#);
        assert_eq!(compacted("{ \"a b\" :\r\n\t[1, \"\\\" \"]\n}\n"), r#"{"a b":[1,"\" "]}"#);
        assert_eq!(compacted("\n\"open"), "\"open");
    }
}
