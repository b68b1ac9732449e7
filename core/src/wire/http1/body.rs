//! Reads a body by its framing.

use super::chunk::ChunkLine;
use super::section::{Bounds, Section};
use super::{Fields, Framing, Limits, RejectReason};

/// A body on its way.
#[derive(Debug)]
pub(super) struct Body {
    state: State,
    /// What is left of the limits.
    bytes: u64,
    extension_bytes: usize,
    trailers: Bounds,
}

#[derive(Debug)]
enum State {
    Length(u64),
    UntilEof,
    ChunkLine(ChunkLine),
    Chunk(u64),
    ChunkCr,
    ChunkLf,
    Trailers(Section<()>),
}

/// A piece of a body.
pub(super) enum BodyPart<'a> {
    Data(&'a [u8]),
    End(Fields),
}

impl Body {
    /// Refuses a length past the limit before any byte of it.
    pub(super) fn new(framing: Framing, limits: &Limits) -> Result<Self, RejectReason> {
        let state = match framing {
            Framing::None => State::Length(0),
            Framing::Length(length) if length > limits.body_bytes => {
                return Err(RejectReason::BodyTooLong);
            }
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkLine(ChunkLine::default()),
            Framing::Eof => State::UntilEof,
        };
        Ok(Self {
            state,
            bytes: limits.body_bytes,
            extension_bytes: limits.chunk_extension_bytes,
            trailers: Bounds { bytes: limits.trailer_bytes, fields: limits.fields },
        })
    }

    /// Whether the end of the connection is its regular end.
    pub(super) fn ends_at_eof(&self) -> bool {
        matches!(self.state, State::UntilEof)
    }

    /// Takes the next piece from the front of `input`; `None` if more is
    /// needed. Not to be called after [`BodyPart::End`].
    pub(super) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<BodyPart<'a>>, RejectReason> {
        loop {
            match &mut self.state {
                State::Length(0) => return Ok(Some(BodyPart::End(Fields::default()))),
                State::Chunk(0) => self.state = State::ChunkCr,
                State::Length(left) | State::Chunk(left) => return Ok(take(input, left)),
                State::UntilEof if self.bytes == 0 && !input.is_empty() => {
                    return Err(RejectReason::BodyTooLong);
                }
                State::UntilEof => return Ok(take(input, &mut self.bytes)),
                State::ChunkLine(line) => {
                    let Some(size) = line.read(input, &mut self.extension_bytes)? else {
                        return Ok(None);
                    };
                    self.bytes = self.bytes.checked_sub(size).ok_or(RejectReason::BodyTooLong)?;
                    self.state = match size {
                        0 => State::Trailers(Section::trailers()),
                        _ => State::Chunk(size),
                    };
                }
                State::ChunkCr | State::ChunkLf => {
                    let Some((byte, rest)) = input.split_first() else { return Ok(None) };
                    *input = rest;
                    self.state = match (&self.state, byte) {
                        (State::ChunkCr, b'\r') => State::ChunkLf,
                        (State::ChunkLf, b'\n') => State::ChunkLine(ChunkLine::default()),
                        _ => return Err(RejectReason::InvalidChunkEnd),
                    };
                }
                State::Trailers(section) => {
                    let trailers = section.read(input, self.trailers, |_| Ok(()))?;
                    return Ok(trailers.map(|((), fields)| BodyPart::End(fields)));
                }
            }
        }
    }
}

/// At most `left` bytes from the front of `input`, if there are any.
fn take<'a>(input: &mut &'a [u8], left: &mut u64) -> Option<BodyPart<'a>> {
    let n = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    let (data, rest) = input.split_at_checked(n).filter(|(data, _)| !data.is_empty())?;
    *input = rest;
    *left -= n as u64;
    Some(BodyPart::Data(data))
}
