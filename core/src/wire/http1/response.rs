//! The client's side: reads responses.

use alloc::collections::VecDeque;

use super::body::{Body, BodyPart};
use super::chars::is_text_char;
use super::fields::Span;
use super::framing::{declared, keeps_alive};
use super::section::{Bounds, Section};
use super::{Error, Fields, Framing, Limits, Part, Peer, RejectReason, ResponsePart, Version};

/// The head of a response.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    reason: Span,
    /// The status code, 100 to 599.
    pub status: u16,
    /// The version.
    pub version: Version,
    /// The fields, as they came.
    pub fields: Fields,
    /// How its body ends. [`Framing::None`] for responses that cannot have one,
    /// whatever their fields say.
    pub framing: Framing,
    /// Whether the connection may be used again. If not, nothing after this
    /// response is read.
    pub keep_alive: bool,
}

impl ResponseHead {
    /// RFC 9112 section 6.3, in its order.
    fn new(line: StatusLine, fields: Fields, answers_head: bool) -> Result<Self, RejectReason> {
        let StatusLine { version, status, reason } = line;
        let framing = match status {
            101 => return Err(RejectReason::UnexpectedUpgrade),
            ..200 | 204 | 304 => Framing::None,
            _ if answers_head => Framing::None,
            _ => declared(&fields, version)?.unwrap_or(Framing::Eof),
        };
        let keep_alive = framing != Framing::Eof && keeps_alive(&fields, version);
        Ok(Self { reason, status, version, fields, framing, keep_alive })
    }

    /// The reason phrase; it means nothing and need not be UTF-8.
    pub fn reason(&self) -> &[u8] {
        self.reason.of(self.fields.bytes())
    }

    /// Whether a final response is still to come.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

#[derive(Clone, Copy, Debug)]
struct StatusLine {
    version: Version,
    status: u16,
    reason: Span,
}

impl StatusLine {
    /// RFC 9112 section 4.
    fn parse(line: &[u8]) -> Result<Self, RejectReason> {
        let Some((version, [b' ', a, b, c, b' ', reason @ ..])) = line.split_at_checked(8) else {
            return Err(RejectReason::InvalidStatusLine);
        };
        let version = Version::parse(version)?;
        let digits = [a, b, c];
        if !digits.iter().all(|d| d.is_ascii_digit()) || !reason.iter().all(|&b| is_text_char(b)) {
            return Err(RejectReason::InvalidStatusLine);
        }
        match digits.iter().fold(0, |status, &d| status * 10 + u16::from(d - b'0')) {
            status @ 100..=599 => Ok(Self { version, status, reason: Span::within(line, reason) }),
            _ => Err(RejectReason::InvalidStatus),
        }
    }
}

/// Reads the responses on one connection. It must be told of every request.
#[derive(Debug)]
pub struct ResponseReader {
    limits: Limits,
    state: State,
    /// For each request not yet answered: whether its method is HEAD.
    expected: VecDeque<bool>,
    /// Interim responses since the last final one.
    interim: u32,
}

#[derive(Debug)]
enum State {
    Start,
    Head(Section<StatusLine>),
    Body { body: Body, keep_alive: bool },
    Closed,
    Failed(RejectReason),
}

impl ResponseReader {
    /// A reader at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Start, expected: VecDeque::new(), interim: 0 }
    }

    /// A request with this method is being sent. Its response comes after
    /// those to earlier ones. Not for CONNECT, which would end HTTP here.
    pub fn expect(&mut self, method: &str) {
        self.expected.push_back(method == "HEAD");
    }

    /// Takes the next part from the front of `input`. Call it until it gives
    /// `None`, which means that the reader has to see more bytes.
    ///
    /// Bytes that no request asked for, and those after a response that does
    /// not [keep the connection](ResponseHead::keep_alive) alive, are left in
    /// `input`. A connection with such bytes must not be used again.
    ///
    /// # Errors
    ///
    /// The connection is to be closed. The same error comes ever after.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<ResponsePart<'a>>, Error> {
        self.step(input).map_err(|reason| self.fail(reason))
    }

    /// The server will send no more. Gives the end of a body that ends so.
    ///
    /// # Errors
    ///
    /// [`RejectReason::NoResponse`] if a request is unanswered and no byte of
    /// an answer came: it may be sent again if it is safe to repeat.
    /// [`RejectReason::Truncated`] inside a response.
    pub fn finish(&mut self) -> Result<Option<ResponsePart<'static>>, Error> {
        match &self.state {
            State::Failed(reason) => Err(Error { peer: Peer::Server, reason: *reason }),
            State::Body { body, .. } if body.ends_at_eof() => {
                self.state = State::Closed;
                Ok(Some(Part::End(Fields::default())))
            }
            State::Start if self.expected.is_empty() => Ok(None),
            State::Closed => Ok(None),
            State::Start if self.interim == 0 => Err(self.fail(RejectReason::NoResponse)),
            _ => Err(self.fail(RejectReason::Truncated)),
        }
    }

    /// Whether every request is answered and another may be sent.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Start) && self.expected.is_empty()
    }

    fn fail(&mut self, reason: RejectReason) -> Error {
        self.state = State::Failed(reason);
        Error { peer: Peer::Server, reason }
    }

    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<ResponsePart<'a>>, RejectReason> {
        loop {
            match &mut self.state {
                State::Start if input.is_empty() || self.expected.is_empty() => return Ok(None),
                State::Start => self.state = State::Head(Section::head()),
                State::Head(section) => {
                    let bounds =
                        Bounds { bytes: self.limits.head_bytes, fields: self.limits.fields };
                    let Some((line, fields)) = section.read(input, bounds, StatusLine::parse)?
                    else {
                        return Ok(None);
                    };
                    let answers_head = self.expected.front().is_some_and(|&head| head);
                    let head = ResponseHead::new(line, fields, answers_head)?;
                    if head.is_interim() {
                        self.interim += 1;
                        if self.interim > self.limits.interim_responses {
                            return Err(RejectReason::TooManyInterim);
                        }
                        self.state = State::Start;
                        return Ok(Some(Part::Interim(head)));
                    }
                    self.interim = 0;
                    self.expected.pop_front();
                    let body = Body::new(head.framing, &self.limits)?;
                    self.state = State::Body { body, keep_alive: head.keep_alive };
                    return Ok(Some(Part::Head(head)));
                }
                State::Body { body, keep_alive } => {
                    return Ok(match body.next(input)? {
                        None => None,
                        Some(BodyPart::Data(data)) => Some(Part::Data(data)),
                        Some(BodyPart::End(trailers)) => {
                            self.state = if *keep_alive { State::Start } else { State::Closed };
                            Some(Part::End(trailers))
                        }
                    });
                }
                State::Closed => return Ok(None),
                State::Failed(reason) => return Err(*reason),
            }
        }
    }
}
