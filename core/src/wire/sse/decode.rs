//! Reading an event stream.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use memchr::{memchr, memchr2};

/// An event. The last event id at its time is the decoder's
/// [`last_event_id`](Decoder::last_event_id) when it is handed out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// Its type; `message` if none was named.
    pub kind: Cow<'a, str>,
    /// Its data: the `data` lines, joined by LF. Borrowed if it was one line that
    /// lay in the input. What is not UTF-8 becomes U+FFFD.
    pub data: Cow<'a, str>,
}

/// A line, or an event's data, is longer than the limit. The stream is of no
/// more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event is longer than the limit")
    }
}

impl core::error::Error for TooLong {}

/// The line buffer keeps this much memory between lines.
const KEEP: usize = 4096;

/// Reads an event stream.
///
/// A block with an empty `data` line is an event with empty data: so the
/// standard has it, and so MCP primes a stream (2025-11-25 `basic/transports`).
/// A block without `data` is no event, but its id counts. A block that the end
/// of the stream cuts off counts for nothing.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// Whether the first line has come, which may begin with a byte order mark.
    begun: bool,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// In a comment. It may be endless, and is not kept.
    comment: bool,
    /// The last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    kind: String,
    /// The data of the block, once it has a `data` line.
    data: Option<Vec<u8>>,
    id: String,
    /// Whether the block has changed the id.
    id_changed: bool,
    last_event_id: String,
    retry: Option<u64>,
    failed: bool,
}

impl Decoder {
    /// A decoder for lines and data of up to `limit` bytes each. It keeps a line,
    /// the data, the type and two ids at most.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            begun: false,
            partial: Vec::new(),
            comment: false,
            after_cr: false,
            kind: String::new(),
            data: None,
            id: String::new(),
            id_changed: false,
            last_event_id: String::new(),
            retry: None,
            failed: false,
        }
    }

    /// The next event. `None` when `input` is used up. After an error there is
    /// nothing but that error.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, TooLong> {
        if self.failed {
            return Err(TooLong);
        }
        let event = self.read(input);
        if event.is_err() {
            *self = Self { failed: true, ..Self::new(self.limit) };
        }
        event
    }

    fn read<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, TooLong> {
        // The data of the block, as long as it is one line that lies in the input.
        let mut held: Option<&'a [u8]> = None;
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let bytes = *input;
            self.comment |= self.partial.is_empty() && bytes.first() == Some(&b':');
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                *input = &[];
                if !self.comment {
                    self.keep(bytes)?;
                }
                if let Some(data) = held {
                    self.add_data(data)?;
                }
                return Ok(None);
            };
            let (piece, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            if core::mem::take(&mut self.comment) {
                self.begun = true;
                continue;
            }
            if !self.partial.is_empty() {
                if let Some(data) = held.take() {
                    self.add_data(data)?;
                }
                self.keep(piece)?;
                self.take_partial()?;
                continue;
            }
            if piece.len() > self.limit {
                return Err(TooLong);
            }
            let line = self.unmarked(piece);
            if line.is_empty() {
                if let Some(event) = self.dispatch(held.take()) {
                    return Ok(Some(event));
                }
                continue;
            }
            match split(line) {
                (b"data", value) if self.data.is_none() && held.is_none() => held = Some(value),
                (b"data", value) => {
                    if let Some(data) = held.take() {
                        self.add_data(data)?;
                    }
                    self.add_data(value)?;
                }
                (name, value) => self.field(name, value),
            }
        }
    }

    /// Takes part of a line.
    fn keep(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        if self.partial.len() + piece.len() > self.limit {
            return Err(TooLong);
        }
        self.partial.extend_from_slice(piece);
        Ok(())
    }

    /// The line that came in pieces is complete. It is never a blank one, save for
    /// a mark alone, which begins a stream and so ends no block.
    fn take_partial(&mut self) -> Result<(), TooLong> {
        let mut line = core::mem::take(&mut self.partial);
        let marked = line.len() - self.unmarked(&line).len();
        let (name, value) = split(line.get(marked..).unwrap_or_default());
        if name == b"data" && self.data.is_none() {
            // A long one: better moved than copied.
            line.drain(..line.len() - value.len());
            self.data = Some(line);
            return Ok(());
        }
        if name == b"data" {
            self.add_data(value)?;
        } else {
            self.field(name, value);
        }
        line.clear();
        line.shrink_to(KEEP);
        self.partial = line;
        Ok(())
    }

    /// The line without the byte order mark that the first one may have.
    fn unmarked<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        if core::mem::replace(&mut self.begun, true) {
            return line;
        }
        line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLong> {
        match &mut self.data {
            None => self.data = Some(Vec::from(value)),
            Some(data) => {
                if data.len() + 1 + value.len() > self.limit {
                    return Err(TooLong);
                }
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
        Ok(())
    }

    /// Takes a field other than data.
    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"event" => set(&mut self.kind, value),
            b"id" if memchr(0, value).is_none() => {
                set(&mut self.id, value);
                self.id_changed = true;
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = core::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = Some(number.unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }

    /// A block has ended.
    fn dispatch<'a>(&mut self, held: Option<&'a [u8]>) -> Option<Event<'a>> {
        if core::mem::take(&mut self.id_changed) {
            self.last_event_id.clone_from(&self.id);
        }
        let data = match (held, self.data.take()) {
            (Some(data), _) => String::from_utf8_lossy(data),
            (None, Some(data)) => Cow::Owned(match String::from_utf8(data) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
            (None, None) => {
                self.kind.clear();
                return None;
            }
        };
        let kind = match self.kind.as_str() {
            "" | "message" => {
                self.kind.clear();
                Cow::Borrowed("message")
            }
            _ => Cow::Owned(core::mem::take(&mut self.kind)),
        };
        Some(Event { kind, data })
    }

    /// The id of the last block that ended and had one; empty if there was none.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The reconnection time that was named last, in milliseconds. It counts from
    /// the end of its line on; one that is too large is `u64::MAX`.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Whether the input has stopped inside a line or a block, so that something
    /// is lost if it ends there.
    pub fn is_unfinished(&self) -> bool {
        let block = self.data.is_some() || self.id_changed || !self.kind.is_empty();
        block || self.comment || !self.partial.is_empty()
    }
}

fn set(text: &mut String, value: &[u8]) {
    text.clear();
    text.push_str(&String::from_utf8_lossy(value));
}

/// The name and the value of a line. A comment has an empty name.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr(b':', line) else { return (line, &[]) };
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default();
    (name, value.strip_prefix(b" ").unwrap_or(value))
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

    /// Type, data and id of all events of `input` fed in pieces of `cut` bytes.
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

    fn event(kind: &str, data: &str, id: &str) -> (String, String, String) {
        (kind.into(), data.into(), id.into())
    }

    #[test]
    fn cuts_and_line_ends_do_not_matter() {
        let input = "\u{feff}:c\r\nid: 1\r\ndata: a\r\ndata:b\r\n\r\nevent: x\rdata\r\rid: 2\n\n\
            data: é\n\nid\ndata: z\n\nid: \0\nretry: 1x\nevent: message\ndata: end\n:\n\n\
            event: no\n\ndata: lost";
        let expected = [
            event("message", "a\nb", "1"),
            event("x", "", "1"),
            event("message", "é", "2"),
            event("message", "z", ""),
            event("message", "end", ""),
        ];
        for cut in 1..=input.len() {
            assert_eq!(read(input.as_bytes(), cut), expected, "{cut}");
        }
    }

    #[test]
    fn only_the_first_line_may_have_a_mark() {
        for cut in 1..30 {
            let marked = "\u{feff}data: 1\n\n\u{feff}data: 2\n\n".as_bytes();
            assert_eq!(read(marked, cut), [event("message", "1", "")]);
            assert_eq!(read("\u{feff}\ndata: 3\n\n".as_bytes(), cut), [event("message", "3", "")]);
            assert_eq!(read(b"\xef\xbb\xbedata: 1\n\ndata:\xff\xe9\n\n", cut).len(), 1);
            let commented = ":\n\u{feff}data: 4\n\n".as_bytes();
            assert_eq!(read(commented, cut), []);
        }
    }

    #[test]
    fn one_line_of_data_is_not_copied() {
        let mut decoder = Decoder::new(100);
        let mut input = &b"id: 1\ndata: {}\nevent: message\n:\n\ndata: a\n"[..];
        let event = decoder.next(&mut input).unwrap().unwrap();
        assert!(matches!(event.data, Cow::Borrowed("{}")));
        assert!(matches!(event.kind, Cow::Borrowed("message")));
        assert_eq!(decoder.next(&mut input), Ok(None));
        let event = decoder.next(&mut &b"\n"[..]).unwrap().unwrap();
        assert_eq!(event.data, "a");
    }

    #[test]
    fn an_unfinished_block_commits_nothing() {
        let mut decoder = Decoder::new(100);
        assert_eq!(decoder.next(&mut &b"id: 1\n\nid: 2\nretry: 5\n"[..]), Ok(None));
        assert_eq!((decoder.last_event_id(), decoder.retry()), ("1", Some(5)));
        assert!(decoder.is_unfinished());
        assert_eq!(decoder.next(&mut &b"\n: c\n"[..]), Ok(None));
        assert_eq!(decoder.last_event_id(), "2");
        assert!(!decoder.is_unfinished());
        for unfinished in [&b":c"[..], b"x", b"x\nevent: a\n", b"data\n"] {
            assert_eq!(decoder.next(&mut &*unfinished), Ok(None));
            assert!(decoder.is_unfinished());
        }
    }

    #[test]
    fn retry_times_saturate() {
        let mut decoder = Decoder::new(100);
        assert_eq!(decoder.next(&mut &b"retry: 007\nretry: 1.5\nretry\nretry:-1\n"[..]), Ok(None));
        assert_eq!(decoder.retry(), Some(7));
        assert_eq!(decoder.next(&mut &b"retry: 99999999999999999999999\n"[..]), Ok(None));
        assert_eq!(decoder.retry(), Some(u64::MAX));
    }

    /// Whether a decoder with a limit of 10 bytes takes the input, cut anyhow.
    fn fits(input: &str) -> bool {
        let taken = |cut: usize| {
            let mut decoder = Decoder::new(10);
            let ok = input.as_bytes().chunks(cut).all(|mut piece| {
                core::iter::from_fn(|| decoder.next(&mut piece).transpose()).all(|e| e.is_ok())
            });
            assert_eq!(ok, decoder.next(&mut &b""[..]).is_ok());
            ok
        };
        let whole = taken(1000);
        (1..input.len()).for_each(|cut| assert_eq!(taken(cut), whole, "{input:?} cut at {cut}"));
        whole
    }

    #[test]
    fn the_limit_is_exact() {
        assert!(fits("data: 4567\n\ndata: 4567\r\n\r\n"));
        assert!(!fits("data: 45678\n\n"));
        assert!(!fits("unknown: 678\n"));
        assert!(!fits("unknown: 678"));
        assert!(fits("data: 4567\ndata:9 11\n\n"));
        assert!(!fits("data: 4567\ndata:9 11 12\n"));
        assert!(fits("data: 4567\ndata: 9 11\ndata\n\n"));
        assert!(!fits("data: 4567\ndata: 9 11\ndata\ndata\n\n"));
        assert!(fits("data: 4567\n: a comment of any length\ndata:9\n\n:even unfinished as this"));
    }

    #[test]
    fn memory_is_bounded_and_time_linear() {
        let mut decoder = Decoder::new(100);
        for _ in 0..100_000 {
            assert_eq!(decoder.next(&mut &b":\n\n"[..]), Ok(None));
        }
        let comments = ":\n".repeat(100_000);
        assert_eq!(decoder.next(&mut comments.as_bytes()), Ok(None));
        assert_eq!(decoder.next(&mut &b":"[..]), Ok(None));
        for _ in 0..100_000 {
            assert_eq!(decoder.next(&mut &b"endless"[..]), Ok(None));
        }
        assert_eq!(decoder.partial.capacity(), 0);
    }

    #[test]
    fn the_content_type_is_a_media_type() {
        for kind in ["text/event-stream", "Text/Event-Stream ; charset=x", "text/event-stream;"] {
            assert!(is_event_stream(Some(kind.as_bytes())));
        }
        for kind in ["", "text/event-streamx", "application/json, text/event-stream", "text/plain"]
        {
            assert!(!is_event_stream(Some(kind.as_bytes())));
        }
        assert!(!is_event_stream(None));
    }
}
