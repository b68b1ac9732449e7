//! Writing an event stream.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use memchr::memchr2;

/// A block to write. With `data` it is an event, otherwise it only sets what it
/// names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outgoing<'a> {
    /// The event's type.
    pub event: Option<&'a str>,
    /// The last event id from here on.
    pub id: Option<&'a str>,
    /// The reconnection time, in milliseconds.
    pub retry: Option<u64>,
    /// The event's data. Each line break, of any kind, is read back as LF.
    pub data: Option<&'a str>,
}

/// Why a block cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The type holds a line break, and would end its field.
    EventLineBreak,
    /// The id holds a line break, and would end its field.
    IdLineBreak,
    /// The id holds a NUL, for which readers ignore it.
    IdNul,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EventLineBreak => "an event's type holds a line break",
            Self::IdLineBreak => "an event's id holds a line break",
            Self::IdNul => "an event's id holds a NUL",
        })
    }
}

impl core::error::Error for Refused {}

/// Appends a block, or nothing if it is refused.
pub fn encode(out: &mut Vec<u8>, block: &Outgoing<'_>) -> Result<(), Refused> {
    let breaks = |text: &str| text.contains(['\r', '\n']);
    if block.event.is_some_and(breaks) {
        return Err(Refused::EventLineBreak);
    }
    if block.id.is_some_and(breaks) {
        return Err(Refused::IdLineBreak);
    }
    if block.id.is_some_and(|id| id.contains('\0')) {
        return Err(Refused::IdNul);
    }
    let mut field = |name: &str, value: &str| {
        for part in [name, value, "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    };
    if let Some(kind) = block.event {
        field("event: ", kind);
    }
    if let Some(id) = block.id {
        field("id: ", id);
    }
    if let Some(retry) = block.retry {
        field("retry: ", &retry.to_string());
    }
    if let Some(data) = block.data {
        lines(data, |line| field("data: ", line));
    }
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, of one line or several. Readers skip it.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    lines(text, |line| {
        out.push(b':');
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    });
    out.push(b'\n');
}

/// Hands out what is before, between and after the line breaks of `text`.
fn lines(text: &str, mut each: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(end) = memchr2(b'\n', b'\r', rest.as_bytes()) {
        let (line, after) = rest.split_at(end);
        each(line);
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    each(rest);
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn written(block: Outgoing<'_>) -> String {
        let mut out = Vec::new();
        encode(&mut out, &block).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_written_in_order() {
        let block = Outgoing {
            event: Some("e"),
            id: Some("7"),
            retry: Some(5),
            data: Some("a\r\nb\r\n\r"),
        };
        assert_eq!(
            written(block),
            "event: e\nid: 7\nretry: 5\ndata: a\ndata: b\ndata: \ndata: \n\n"
        );
        assert_eq!(written(Outgoing { retry: Some(0), ..Outgoing::default() }), "retry: 0\n\n");
        assert_eq!(written(Outgoing { data: Some(""), ..Outgoing::default() }), "data: \n\n");
    }

    #[test]
    fn nothing_can_break_out_of_its_field() {
        let mut out = Vec::new();
        for (event, id, reason) in [
            ("a\ndata: x", "1", Refused::EventLineBreak),
            ("a\r", "1", Refused::EventLineBreak),
            ("a", "1\n\ndata: x", Refused::IdLineBreak),
            ("a", "1\r2", Refused::IdLineBreak),
            ("a", "1\0", Refused::IdNul),
        ] {
            let block = Outgoing { event: Some(event), id: Some(id), ..Outgoing::default() };
            assert_eq!(encode(&mut out, &block), Err(reason));
        }
        assert!(out.is_empty());
        comment(&mut out, "still here\r\rdata: x");
        assert_eq!(out, b":still here\n:\n:data: x\n\n");
    }
}
