//! Event streams, as in the WHATWG HTML standard, 9.2.5 and 9.2.6.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// Its type; `message` if none was named.
    pub kind: Cow<'a, str>,
    /// Its data: the `data` lines, joined by LF. Borrowed if it was one line that
    /// lay in the input. What is not UTF-8 becomes U+FFFD.
    pub data: Cow<'a, str>,
}

/// An event is longer than the limit. The stream is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event is longer than the limit")
    }
}

/// Reads an event stream.
///
/// An event with an empty `data` line is dispatched with empty data, as the
/// standard has it for a block with a `data` field and MCP for priming; a block
/// without one dispatches nothing, but its `id` counts.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// The last byte was a CR: an LF right after belongs to it.
    after_cr: bool,
    /// Bytes of the byte order mark that may open the stream; 3 when past it.
    mark: usize,
    kind: String,
    data: Vec<u8>,
    /// Whether the block has a `data` field.
    has_data: bool,
    id: String,
    last_event_id: String,
    retry: Option<u64>,
    failed: bool,
}

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl Decoder {
    /// A decoder for events of up to `limit` bytes: their data, and any one line.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            partial: Vec::new(),
            after_cr: false,
            mark: 0,
            kind: String::new(),
            data: Vec::new(),
            has_data: false,
            id: String::new(),
            last_event_id: String::new(),
            retry: None,
            failed: false,
        }
    }

    /// The next event. `None` when `input` is used up. What is unfinished when
    /// the stream ends is to be forgotten.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, TooLong> {
        if self.failed {
            return Err(TooLong);
        }
        self.skip_mark(input);
        // The data of the block, as long as it is one line that lies in the input.
        let mut borrowed: Option<&'a [u8]> = None;
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let bytes = *input;
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.data.extend_from_slice(borrowed.unwrap_or_default());
                self.partial.extend_from_slice(bytes);
                *input = &[];
                return if self.partial.len() > self.limit { self.fail() } else { Ok(None) };
            };
            let (piece, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() {
                if piece.is_empty() {
                    if let Some(event) = self.dispatch(borrowed.take()) {
                        return Ok(Some(event));
                    }
                    continue;
                }
                match split(piece) {
                    (b"data", value) if !self.has_data => {
                        self.has_data = true;
                        borrowed = Some(value);
                    }
                    (name, value) => {
                        if name == b"data" {
                            self.data.extend_from_slice(borrowed.take().unwrap_or_default());
                        }
                        self.field(name, value);
                    }
                }
            } else {
                self.partial.extend_from_slice(piece);
                let line = core::mem::take(&mut self.partial);
                let (name, value) = split(&line);
                self.field(name, value);
                self.partial = line;
                self.partial.clear();
                self.partial.shrink_to(4096);
            }
            if self.data.len() > self.limit || piece.len() > self.limit {
                return self.fail();
            }
        }
    }

    fn fail<'a>(&mut self) -> Result<Option<Event<'a>>, TooLong> {
        self.failed = true;
        self.partial = Vec::new();
        self.data = Vec::new();
        Err(TooLong)
    }

    fn skip_mark(&mut self, input: &mut &[u8]) {
        while self.mark < MARK.len() {
            let Some((&first, rest)) = input.split_first() else { return };
            if MARK.get(self.mark) == Some(&first) {
                self.mark += 1;
                *input = rest;
                continue;
            }
            // It was none: what was taken for its beginning begins a line.
            self.partial.extend_from_slice(MARK.get(..self.mark).unwrap_or_default());
            self.mark = MARK.len();
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.id = String::from_utf8_lossy(value).into_owned(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = core::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                self.retry = Some(number.unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }

    fn dispatch<'a>(&mut self, borrowed: Option<&'a [u8]>) -> Option<Event<'a>> {
        self.last_event_id.clone_from(&self.id);
        let kind = core::mem::take(&mut self.kind);
        if !core::mem::take(&mut self.has_data) {
            return None;
        }
        let data = match borrowed {
            Some(bytes) => String::from_utf8_lossy(bytes),
            None => Cow::Owned(match String::from_utf8(core::mem::take(&mut self.data)) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        };
        let kind = if kind.is_empty() { Cow::Borrowed("message") } else { Cow::Owned(kind) };
        Some(Event { kind, data })
    }

    /// The last event id: of the last block that ended, or of one before it.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The last reconnection time that was named, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }
}

/// The name and the value of a line. A comment has an empty name.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default();
            (name, value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, &[]),
    }
}

/// An event to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outgoing<'a> {
    /// Its type.
    pub event: Option<&'a str>,
    /// Its id.
    pub id: Option<&'a str>,
    /// The reconnection time, in milliseconds.
    pub retry: Option<u64>,
    /// Its data; line breaks make it several lines.
    pub data: &'a str,
}

/// A field holds a character that cannot be written. Nothing was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event's type or id holds a line break or NUL")
    }
}

/// Appends an event.
pub fn encode(out: &mut Vec<u8>, event: &Outgoing<'_>) -> Result<(), Refused> {
    let breaks = |text: &str| text.contains(['\r', '\n', '\0']);
    if event.event.is_some_and(breaks) || event.id.is_some_and(breaks) {
        return Err(Refused);
    }
    let mut field = |name: &str, value: &str| {
        for part in [name, ": ", value, "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    };
    if let Some(kind) = event.event {
        field("event", kind);
    }
    if let Some(id) = event.id {
        field("id", id);
    }
    if let Some(retry) = event.retry {
        field("retry", &alloc::format!("{retry}"));
    }
    let mut rest = event.data;
    loop {
        let end = memchr::memchr2(b'\n', b'\r', rest.as_bytes()).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        field("data", line);
        if after.is_empty() {
            break;
        }
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, of one line or several.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    for line in text.split(['\r', '\n']) {
        out.push(b':');
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Whether a response's `Content-Type` says that its body is an event stream.
pub fn is_event_stream(content_type: Option<&[u8]>) -> bool {
    let value = content_type.unwrap_or_default();
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], cut: usize) -> Vec<(String, String, String)> {
        let mut decoder = Decoder::new(1000);
        let mut out = Vec::new();
        for mut piece in input.chunks(cut) {
            while let Some(event) = decoder.next(&mut piece).unwrap() {
                let id = String::from(decoder.last_event_id());
                out.push((event.kind.into_owned(), event.data.into_owned(), id));
            }
        }
        out
    }

    #[test]
    fn cuts_and_line_ends_do_not_matter() {
        let input = "\u{feff}:c\r\nid: 1\r\ndata: a\r\ndata:b\r\n\r\nevent: x\rdata\r\rid: 2\n\ndata: é\n\nid\ndata: z\n\nid: \0\nretry: 1x\ndata: end\n\ndata: lost";
        let event = |kind: &str, data: &str, id: &str| (kind.into(), data.into(), id.into());
        let expected: [(String, String, String); 5] = [
            event("message", "a\nb", "1"),
            event("x", "", "1"),
            event("message", "é", "2"),
            event("message", "z", ""),
            event("message", "end", ""),
        ];
        for cut in [1, 2, 3, 5, 7, 1000] {
            assert_eq!(read(input.as_bytes(), cut), expected, "{cut}");
        }
    }

    #[test]
    fn one_line_of_data_is_not_copied() {
        let mut decoder = Decoder::new(100);
        let event = decoder.next(&mut &b"event: message\ndata: {}\n\n"[..]).unwrap().unwrap();
        assert!(matches!(event.data, Cow::Borrowed("{}")));
    }

    #[test]
    fn memory_is_bounded() {
        let mut decoder = Decoder::new(100);
        let mut result = Ok(None);
        for _ in 0..20 {
            result = decoder.next(&mut &b"data: 0123456789\n"[..]);
        }
        assert_eq!(result, Err(TooLong));
        let mut decoder = Decoder::new(100);
        for _ in 0..100_000 {
            assert_eq!(decoder.next(&mut &b":\n\n"[..]), Ok(None));
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut out = Vec::new();
        let event = Outgoing { event: Some("e"), id: Some("7"), retry: Some(5), data: "a\r\nb\n" };
        encode(&mut out, &event).unwrap();
        comment(&mut out, "still here");
        assert_eq!(read(&out, 3), [("e".into(), "a\nb\n".into(), "7".into())]);
        let refused = encode(&mut out, &Outgoing { id: Some("a\nb"), ..event });
        assert_eq!(refused, Err(Refused));
    }
}
