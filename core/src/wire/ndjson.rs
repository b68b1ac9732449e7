//! Newline-delimited JSON: one message a line (every revision's `basic/…/stdio`;
//! TR-01, TR-03).
//!
//! LF is the only delimiter; a CR before it belongs to the line end. Lines of
//! white space are skipped. A line over the limit is thrown away as it comes, in
//! constant memory, and only its id is remembered.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use memchr::memchr;

use crate::jsonrpc::{Skimmed, Skimmer};

/// A line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// Its bytes, without the line end, whatever they are. Borrowed if the whole
    /// line lay in the input; otherwise the collected bytes, moved out.
    Text(Cow<'a, [u8]>),
    /// It was over the limit.
    TooLong {
        /// What could be learned of it.
        skimmed: Skimmed,
        /// Its length in bytes, without the line end.
        length: u64,
    },
}

/// Cuts bytes into lines.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// A line that is being thrown away.
    discarding: Option<Discarding>,
}

#[derive(Debug, Default)]
struct Discarding {
    skimmer: Skimmer,
    length: u64,
    /// Whether its last byte so far is a CR, which may belong to the line end.
    cr: bool,
}

impl Decoder {
    /// A decoder that hands on lines of up to `limit` bytes, line end not counted.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), discarding: None }
    }

    /// The next line. `None` when `input` is used up.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<Line<'a>> {
        loop {
            let bytes = *input;
            let Some(end) = memchr(b'\n', bytes) else {
                *input = &[];
                self.keep(bytes);
                return None;
            };
            let (piece, rest) = bytes.split_at(end);
            *input = rest.get(1..).unwrap_or_default();
            let line = if self.partial.is_empty() && self.discarding.is_none() {
                Cow::Borrowed(piece)
            } else {
                self.keep(piece);
                if let Some(discarding) = self.discarding.take() {
                    return Some(discarding.finish());
                }
                Cow::Owned(core::mem::take(&mut self.partial))
            };
            if trim(&line).len() > self.limit {
                let mut discarding = Discarding::default();
                discarding.feed(&line);
                return Some(discarding.finish());
            }
            if !is_blank(&line) {
                return Some(Line::Text(match line {
                    Cow::Borrowed(line) => Cow::Borrowed(trim(line)),
                    Cow::Owned(mut line) => {
                        line.truncate(trim(&line).len());
                        Cow::Owned(line)
                    }
                }));
            }
        }
    }

    /// Takes part of a line.
    fn keep(&mut self, piece: &[u8]) {
        if let Some(discarding) = &mut self.discarding {
            return discarding.feed(piece);
        }
        // One byte more may be a CR that does not count.
        if self.partial.len() + piece.len() <= self.limit.saturating_add(1) {
            return self.partial.extend_from_slice(piece);
        }
        let mut discarding = Discarding::default();
        discarding.feed(&core::mem::take(&mut self.partial));
        discarding.feed(piece);
        self.discarding = Some(discarding);
    }

    /// The end of the input: a last line without an end is a line too.
    pub fn finish(&mut self) -> Option<Line<'static>> {
        self.next(&mut &b"\n"[..])
    }

    /// How many bytes of an unfinished line are kept.
    pub fn buffered(&self) -> usize {
        self.partial.len()
    }
}

impl Discarding {
    fn feed(&mut self, piece: &[u8]) {
        self.skimmer.feed(piece);
        self.length += piece.len() as u64;
        self.cr = piece.last().map_or(self.cr, |byte| *byte == b'\r');
    }

    fn finish(self) -> Line<'static> {
        let length = self.length - u64::from(self.cr);
        Line::TooLong { skimmed: self.skimmer.finish(), length }
    }
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Whether a line can be a message at all: programs print other things.
pub fn looks_like_message(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    /// All lines of `input` fed in pieces of `cut` bytes; `!n` for one too long.
    fn lines(input: &str, limit: usize, cut: usize) -> Vec<String> {
        let mut decoder = Decoder::new(limit);
        let mut out = Vec::new();
        let mut push = |line| {
            out.push(match line {
                Line::Text(text) => String::from_utf8(text.into_owned()).unwrap(),
                Line::TooLong { skimmed, length } => {
                    alloc::format!("!{length} {}", skimmed.id.unwrap_or_default())
                }
            });
        };
        for mut piece in input.as_bytes().chunks(cut) {
            while let Some(line) = decoder.next(&mut piece) {
                push(line);
            }
        }
        if let Some(line) = decoder.finish() {
            push(line);
        }
        out
    }

    #[test]
    fn cuts_do_not_matter() {
        let input = "\n{\"a\":1}\r\n  \r\n\u{2028}x\n{\"id\":5,\"method\":\"mmmmmmmmmmmm\"}\nlast";
        let whole = lines(input, 12, 1000);
        assert_eq!(whole, ["{\"a\":1}", "\u{2028}x", "!32 5", "last"]);
        for cut in 1..20 {
            assert_eq!(lines(input, 12, cut), whole, "{cut}");
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let input = "12345\r\n123456\n123456\r\n12345\r\r\n1234567\r\n12345";
        for cut in 1..input.len() {
            let expected = ["12345", "!6 ", "!6 ", "!6 ", "!7 ", "12345"];
            assert_eq!(lines(input, 5, cut), expected, "{cut}");
        }
    }

    #[test]
    fn a_whole_line_is_not_copied() {
        let mut decoder = Decoder::new(100);
        let mut input = &b"{}\n{"[..];
        assert!(matches!(decoder.next(&mut input), Some(Line::Text(Cow::Borrowed(b"{}")))));
        assert_eq!(decoder.next(&mut input), None);
        assert_eq!(decoder.buffered(), 1);
    }

    #[test]
    fn what_is_thrown_away_takes_no_memory() {
        let mut decoder = Decoder::new(1000);
        for _ in 0..1000 {
            assert_eq!(decoder.next(&mut &[b'x'; 999][..]), None);
            assert!(decoder.buffered() <= 1001);
        }
        assert!(matches!(
            decoder.next(&mut &b"\n"[..]),
            Some(Line::TooLong { length: 999_000, .. })
        ));
        assert!(matches!(decoder.next(&mut &b"{}\n"[..]), Some(Line::Text(_))));
    }

    #[test]
    fn messages_begin_with_a_bracket() {
        assert!(looks_like_message(b" \t{}") && looks_like_message(b"["));
        assert!(!looks_like_message(b"Listening on {port}") && !looks_like_message(b""));
    }
}
