//! Looking into JSON text that has been checked, and changing it.
//!
//! Everything here expects text that a [`Message`](super::Message) gave out.
//! Other text gives nonsense or nothing, but never a panic.

use alloc::borrow::Cow;
use alloc::string::String;

use memchr::memchr;

use super::text::{quote, string, string_length};

/// The members of an object, in order. None if `object` is not one.
pub fn members(object: &str) -> Members<'_> {
    Members(Cursor::inside(object, b'{'))
}

/// The elements of an array, in order, as raw JSON. None if `array` is not one.
pub fn elements(array: &str) -> Elements<'_> {
    Elements(Cursor::inside(array, b'['))
}

/// The raw value of the member `name`.
///
/// If there are several, the last one: that is what most readers take. A
/// message's own members, and those of its parameters and of their `_meta`, are
/// known to be there once.
pub fn get<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    members(object).filter(|(key, _)| key == name).last().map(|(_, value)| value)
}

/// The raw value at the end of a path of names.
pub fn get_path<'a>(object: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(object, |value, name| get(value, name))
}

/// Appends `object` with the member `name` replaced or added (`Some`, raw JSON)
/// or removed (`None`). All else stays byte for byte; a second member of that
/// name is removed. What is not an object stays as it is.
pub fn with_member(object: &str, name: &str, value: Option<&str>, out: &mut String) {
    let Some(mut cursor) = Cursor::inside(object, b'{') else { return out.push_str(object) };
    let piece = |start, end| object.get(start..end).unwrap_or_default();
    let begin = cursor.at;
    out.push_str(piece(0, begin));
    let mut value = value;
    // What stands before the first member: white space. Before others, a comma too.
    let mut lead = "";
    let mut empty = true;
    let mut end = begin;
    while let Some(member) = cursor.member() {
        let gap = piece(end, member.start);
        if end == begin {
            lead = gap;
        }
        end = cursor.at;
        let new = if member.key == *name { value.take() } else { Some(member.value) };
        if let Some(new) = new {
            out.push_str(if empty { lead } else { gap });
            out.push_str(piece(member.start, end - member.value.len()));
            out.push_str(new);
            empty = false;
        }
    }
    if let Some(value) = value {
        if !empty {
            out.push(',');
        }
        quote(name, out);
        out.push(':');
        out.push_str(value);
    }
    out.push_str(piece(end, object.len()));
}

/// The name of a member. Compare it with the name that you look for.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    /// The name as it was written, quotes and escapes included.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// The name, if it is Unicode text. See [`string`].
    pub fn decoded(self) -> Option<Cow<'a, str>> {
        string(self.0)
    }
}

impl PartialEq<str> for Key<'_> {
    fn eq(&self, name: &str) -> bool {
        match memchr(b'\\', self.0.as_bytes()) {
            None => self.0.len() == name.len() + 2 && self.0.get(1..=name.len()) == Some(name),
            Some(_) => string(self.0).is_some_and(|decoded| decoded == name),
        }
    }
}

/// See [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a>(Option<Cursor<'a>>);

impl<'a> Iterator for Members<'a> {
    /// The name and the raw value.
    type Item = (Key<'a>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.0.as_mut()?.member()?;
        Some((member.key, member.value))
    }
}

/// See [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a>(Option<Cursor<'a>>);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.0.as_mut()?;
        cursor.next_item()?;
        cursor.value()
    }
}

struct Member<'t> {
    /// The offset of its name.
    start: usize,
    key: Key<'t>,
    value: &'t str,
}

/// A place in checked text.
#[derive(Clone, Debug)]
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// After the opening byte of `text`, if that is its first one.
    fn inside(text: &'t str, opening: u8) -> Option<Self> {
        let mut cursor = Self { text, at: 0 };
        cursor.space();
        if cursor.peek() != Some(opening) {
            return None;
        }
        cursor.at += 1;
        Some(cursor)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Goes to the next member or element. Nothing at the end.
    fn next_item(&mut self) -> Option<()> {
        self.space();
        if self.peek()? == b',' {
            self.at += 1;
            self.space();
        }
        (!matches!(self.peek()?, b'}' | b']')).then_some(())
    }

    fn member(&mut self) -> Option<Member<'t>> {
        self.next_item()?;
        let start = self.at;
        let key = Key(self.value()?);
        self.space();
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        self.space();
        Some(Member { start, key, value: self.value()? })
    }

    /// The value here. Afterwards the cursor is right behind it.
    fn value(&mut self) -> Option<&'t str> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = match rest.first()? {
            b'"' => string_length(rest),
            b'{' | b'[' => nested_length(rest),
            _ => rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len()),
        };
        let value = self.text.get(self.at..self.at + length).filter(|value| !value.is_empty())?;
        self.at += length;
        Some(value)
    }
}

/// Whether a byte can be in a number, or in `true`, `false` or `null`.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// How long the object or array at the beginning of `bytes` is.
fn nested_length(bytes: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += string_length(bytes.get(at..).unwrap_or_default());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::vec::Vec;

    use super::*;

    const OBJECT: &str = r#" { "a" : 1,"b":"}\"" , "\u0063":{"d":[{"e":null}]},"f":[ ] } "#;

    #[test]
    fn members_come_in_order() {
        let all: Vec<_> = members(OBJECT).map(|(key, value)| (key.raw(), value)).collect();
        let expected = [
            ("\"a\"", "1"),
            ("\"b\"", r#""}\"""#),
            (r#""\u0063""#, r#"{"d":[{"e":null}]}"#),
            ("\"f\"", "[ ]"),
        ];
        assert_eq!(all, expected);
        assert_eq!(members(OBJECT).nth(2).unwrap().0.decoded().as_deref(), Some("c"));
    }

    #[test]
    fn names_are_compared_decoded() {
        assert_eq!(get(OBJECT, "c"), Some(r#"{"d":[{"e":null}]}"#));
        assert_eq!(get(OBJECT, "\\u0063"), None);
        assert_eq!(get(OBJECT, ""), None);
        assert_eq!(get(r#"{"":7,"é":8,"\ud800":9}"#, ""), Some("7"));
        assert_eq!(get(r#"{"":7,"é":8,"\ud800":9}"#, "é"), Some("8"));
        assert_eq!(get(r#"{"a":1,"\u0061":2}"#, "a"), Some("2"));
        assert_eq!(get_path(OBJECT, &["c", "d"]), Some(r#"[{"e":null}]"#));
        assert_eq!(get_path(OBJECT, &["a", "d"]), None);
    }

    #[test]
    fn elements_come_in_order() {
        let all: Vec<_> = elements(r#" [ 1 , "a,]" ,[[2]],{"b":[]},-1.5e+3,true ] "#).collect();
        assert_eq!(all, ["1", "\"a,]\"", "[[2]]", r#"{"b":[]}"#, "-1.5e+3", "true"]);
        assert_eq!(elements("[]").count() + elements("[ ]").count() + elements("{}").count(), 0);
    }

    fn with(object: &str, name: &str, value: Option<&str>) -> String {
        let mut out = String::new();
        with_member(object, name, value, &mut out);
        out
    }

    #[test]
    fn one_member_is_replaced() {
        assert_eq!(with(r#"{ "a" : 1 , "b":2 }"#, "a", Some("[]")), r#"{ "a" : [] , "b":2 }"#);
        assert_eq!(with(r#"{ "a" : 1 , "b":2 }"#, "b", Some("3")), r#"{ "a" : 1 , "b":3 }"#);
        assert_eq!(with(r#"{"\u0061":1}"#, "a", Some("2")), r#"{"\u0061":2}"#);
        assert_eq!(with(r#"{"a":1,"b":0,"a":2}"#, "a", Some("3")), r#"{"a":3,"b":0}"#);
    }

    #[test]
    fn one_member_is_added() {
        assert_eq!(with("{}", "a", Some("1")), r#"{"a":1}"#);
        assert_eq!(with(" { } ", "a", Some("1")), r#" {"a":1 } "#);
        assert_eq!(with("{\"b\":[1, 2]\n}", "x\"", Some("1")), "{\"b\":[1, 2],\"x\\\"\":1\n}");
    }

    #[test]
    fn one_member_is_removed() {
        assert_eq!(with(r#"{"a":1}"#, "a", None), "{}");
        assert_eq!(with(r#"{ "a":1, "b":2 }"#, "a", None), r#"{ "b":2 }"#);
        assert_eq!(with(r#"{ "a":1, "b":2 }"#, "b", None), r#"{ "a":1 }"#);
        assert_eq!(with(r#"{"a":1,"b":2,"c":3,"b":4}"#, "b", None), r#"{"a":1,"c":3}"#);
        assert_eq!(with(r#"{"a":1}"#, "b", None), r#"{"a":1}"#);
        assert_eq!(with("{}", "b", None), "{}");
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for text in ["", "1", "[1]", "null", "\"{}\""] {
            assert_eq!(with(text, "a", Some("1")), text);
            assert_eq!((members(text).count(), get(text, "a")), (0, None));
        }
    }

    #[test]
    fn unchecked_text_never_panics() {
        let alphabet = ["{", "}", "[", "]", "\"", "\\", ":", ",", " ", "a", "é", "1"];
        for seed in 0..12usize.pow(4) {
            let picked = (0..4).map(|n| alphabet[seed / 12usize.pow(n) % 12]);
            let text: String = picked.collect();
            for text in [format!("{{{text}"), format!("[{text}"), format!("{{\"a\":{text}")] {
                let _ = (members(&text).count(), elements(&text).count());
                let _ = (get(&text, "a"), with(&text, "a", Some("1")), with(&text, "a", None));
            }
        }
    }
}
