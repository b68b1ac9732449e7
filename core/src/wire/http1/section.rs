//! Collects a section of lines: a head, or the trailers of a body.
//!
//! A section that lies whole in one input is copied once, into the [`Fields`]
//! that own it. One that was cut is held here; lines already seen are not
//! searched again. Faults are found line by line as the lines come, so that a
//! bad line is answered at once, and the first bad line decides, however the
//! bytes were cut.

use alloc::vec::Vec;
use core::mem;

use memchr::memchr;
use smallvec::{SmallVec, smallvec};

use super::fields::Span;
use super::{Fields, RejectReason};

/// The limits of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) bytes: usize,
    pub(super) fields: usize,
}

/// A section on its way. `S` is the start line, read.
#[derive(Debug)]
pub(super) struct Section<S> {
    held: Vec<u8>,
    scan: Scan<S>,
}

#[derive(Debug)]
struct Scan<S> {
    start: Option<S>,
    /// Where the field lines begin.
    fields_at: usize,
    /// How many of them are complete, and where the next begins.
    fields: usize,
    line_at: usize,
    /// Up to here there is no line end that was not handled.
    searched: usize,
}

impl<S> Section<S> {
    /// A section that begins with a start line.
    pub(super) fn head() -> Self {
        Self::new(None)
    }

    fn new(start: Option<S>) -> Self {
        let scan = Scan { start, fields_at: 0, fields: 0, line_at: 0, searched: 0 };
        Self { held: Vec::new(), scan }
    }

    /// Whether nothing of it has come.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes the section from the front of `input`; `None` if all of the input
    /// belongs to it and more is needed. `parse` reads the start line (without
    /// its end), whose place is the beginning of the section's bytes.
    ///
    /// The section must not be used again after it has been given out.
    pub(super) fn read(
        &mut self,
        input: &mut &[u8],
        bounds: Bounds,
        parse: impl Fn(&[u8]) -> Result<S, RejectReason>,
    ) -> Result<Option<(S, Fields)>, RejectReason> {
        let bounds = Bounds { bytes: bounds.bytes.min(u32::MAX as usize), ..bounds };
        let before = self.held.len();
        let room = bounds.bytes.saturating_sub(before);
        let window = input.get(..room).unwrap_or(input);
        if before > 0 {
            self.held.extend_from_slice(window);
        }
        let bytes = if before > 0 { &self.held } else { window };

        let Some(end) = self.scan.run(bytes, bounds, parse)? else {
            if before == 0 {
                self.held.extend_from_slice(window);
            }
            *input = &[];
            return Ok(None);
        };
        *input = input.get(end.saturating_sub(before)..).unwrap_or_default();
        let bytes = match before {
            0 => window.get(..end).unwrap_or_default().to_vec(),
            _ => {
                self.held.truncate(end);
                mem::take(&mut self.held)
            }
        };
        let lines = parse_fields(
            bytes.get(self.scan.fields_at..).unwrap_or_default(),
            &bytes,
            self.scan.fields,
        )?;
        // Both must have seen the same lines, or one of them was misled.
        if lines.len() != self.scan.fields {
            return Err(RejectReason::InvalidFieldName);
        }
        Ok(self.scan.start.take().map(|start| (start, Fields::new(bytes, lines))))
    }
}

impl Section<()> {
    /// A section of field lines alone.
    pub(super) fn trailers() -> Self {
        Self::new(Some(()))
    }
}

impl<S> Scan<S> {
    /// The end of the section, if it is there.
    fn run(
        &mut self,
        bytes: &[u8],
        bounds: Bounds,
        parse: impl Fn(&[u8]) -> Result<S, RejectReason>,
    ) -> Result<Option<usize>, RejectReason> {
        let (mut unchecked_at, checked) = (self.line_at, self.fields);
        let fault = loop {
            let unsearched = bytes.get(self.searched..).unwrap_or_default();
            let Some(at) = memchr(b'\n', unsearched).map(|at| self.searched + at) else {
                self.searched = bytes.len();
                break match self.start {
                    _ if bytes.len() < bounds.bytes => None,
                    None => Some(RejectReason::StartLineTooLong),
                    Some(_) => Some(RejectReason::SectionTooLong),
                };
            };
            self.searched = at + 1;
            let Some(line) = bytes.get(self.line_at..at).and_then(|line| line.strip_suffix(b"\r"))
            else {
                break Some(RejectReason::BareLf);
            };
            if self.start.is_none() {
                self.start = Some(parse(line)?);
                self.fields_at = at + 1;
                unchecked_at = at + 1;
            } else {
                match line.first() {
                    None => return Ok(Some(at + 1)),
                    Some(b' ' | b'\t') => break Some(RejectReason::ObsoleteFold),
                    Some(_) if self.fields == bounds.fields => {
                        break Some(RejectReason::TooManyFields);
                    }
                    Some(_) => self.fields += 1,
                }
            }
            self.line_at = at + 1;
        };
        // Not at its end yet: what is wrong in earlier lines comes first.
        if self.fields > checked {
            let lines = bytes.get(unchecked_at..self.line_at).unwrap_or_default();
            parse_fields(lines, bytes, self.fields - checked)?;
        }
        fault.map_or(Ok(None), Err)
    }
}

/// Reads field lines, each ending in CRLF; `whole` is what spans refer to. If
/// the empty line is missing, they are checked and nothing is given back.
fn parse_fields(
    lines: &[u8],
    whole: &[u8],
    at_most: usize,
) -> Result<Vec<(Span, Span)>, RejectReason> {
    let mut headers: SmallVec<[httparse::Header<'_>; 32]> =
        smallvec![httparse::EMPTY_HEADER; at_most];
    match httparse::parse_headers(lines, &mut headers) {
        Ok(httparse::Status::Complete((_, headers))) => {
            let spans = |h: &httparse::Header<'_>| {
                (Span::within(whole, h.name.as_bytes()), Span::within(whole, h.value))
            };
            Ok(headers.iter().map(spans).collect())
        }
        Ok(httparse::Status::Partial) => Ok(Vec::new()),
        Err(httparse::Error::HeaderValue) => Err(RejectReason::InvalidFieldValue),
        Err(httparse::Error::TooManyHeaders) => Err(RejectReason::TooManyFields),
        Err(_) => Err(RejectReason::InvalidFieldName),
    }
}
