//! The fields of a head or a trailer section, in one piece of memory.

use alloc::vec::Vec;
use core::fmt;

use super::chars;

/// A place in the bytes of a section.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Where `part`, which is a part of `whole` or empty, lies in it.
    pub(super) fn within(whole: &[u8], part: &[u8]) -> Self {
        if part.is_empty() {
            return Self::default();
        }
        let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        Self { start: start as u32, end: start.wrapping_add(part.len()) as u32 }
    }

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// For what was checked to be ASCII.
    pub(super) fn text_of(self, bytes: &[u8]) -> &str {
        core::str::from_utf8(self.of(bytes)).unwrap_or_default()
    }
}

/// Field lines as they came, in their order.
///
/// Names compare ignoring case. A value is free of control characters (HTAB
/// apart) and of white space at its ends; it need not be UTF-8.
#[derive(Clone, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    lines: Vec<(Span, Span)>,
}

impl Fields {
    /// `lines` are the places of names and values in `bytes`.
    pub(super) fn new(bytes: Vec<u8>, lines: Vec<(Span, Span)>) -> Self {
        Self { bytes, lines }
    }

    /// The whole section, a start line included.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All lines as name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.lines.iter().map(|(name, value)| (name.text_of(&self.bytes), value.of(&self.bytes)))
    }

    /// The values of all lines of a name.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.lines
            .iter()
            .filter(|(n, _)| n.of(&self.bytes).eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value.of(&self.bytes))
    }

    /// The value of the first line of a name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let wanted =
            |(n, _): &&(Span, Span)| n.of(&self.bytes).eq_ignore_ascii_case(name.as_bytes());
        self.lines.iter().find(wanted).map(|(_, value)| value.of(&self.bytes))
    }

    /// The value of the first line of a name, if it is UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        core::str::from_utf8(self.get(name)?).ok()
    }

    /// The members of a list (RFC 9110 section 5.6.1) over all its lines,
    /// without the empty ones. Commas in quoted strings are not understood.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.get_all(name)
            .flat_map(|value| value.split(|&b| b == b','))
            .map(chars::trim)
            .filter(|member| !member.is_empty())
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(name, value)| (name, value.escape_ascii())))
            .finish()
    }
}
