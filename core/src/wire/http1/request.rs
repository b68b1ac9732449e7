//! The server's side: reads requests.

use alloc::vec::Vec;

use super::body::{Body, BodyPart};
use super::chars::is_token;
use super::fields::Span;
use super::framing::{declared, keeps_alive};
use super::section::{Bounds, Section};
use super::target::{Target, parse_authority};
use super::{Error, Fields, Form, Framing, Limits, Part, Peer, RejectReason, RequestPart, Version};

/// Fields that are of the connection, or say how a body ends.
const HOP: [&str; 7] =
    ["connection", "content-length", "expect", "keep-alive", "te", "transfer-encoding", "upgrade"];

/// The head of a request.
#[derive(Clone, Debug)]
pub struct RequestHead {
    line: RequestLine,
    /// The fields, as they came.
    pub fields: Fields,
    /// How its body ends; never [`Framing::Eof`]. Bytes of a body come even
    /// with methods that give it no meaning.
    pub framing: Framing,
    /// Whether another request may follow on the connection. If not, nothing
    /// after this one is read.
    pub keep_alive: bool,
    /// Whether the client waits for [`CONTINUE`](super::write::CONTINUE) or a
    /// final status before it sends the body (RFC 9110 section 10.1.1). Never
    /// for HTTP/1.0.
    pub expect_continue: bool,
}

impl RequestHead {
    fn new(line: RequestLine, fields: Fields) -> Result<Self, RejectReason> {
        let mut hosts = fields.get_all("host");
        match (hosts.next(), hosts.next()) {
            (_, Some(_)) => return Err(RejectReason::RepeatedHost),
            (Some(host), None) if parse_authority(host).is_none() => {
                return Err(RejectReason::InvalidHost);
            }
            (None, None) if line.version == Version::Http11 => {
                return Err(RejectReason::MissingHost);
            }
            _ => {}
        }
        drop(hosts);
        Ok(Self {
            framing: declared(&fields, line.version)?.unwrap_or(Framing::None),
            keep_alive: keeps_alive(&fields, line.version),
            expect_continue: line.version == Version::Http11
                && fields.list("expect").any(|e| e.eq_ignore_ascii_case(b"100-continue")),
            line,
            fields,
        })
    }

    /// The head of a request that another HTTP stack has read, judged as strictly as
    /// one that came as bytes. The authority of HTTP/2 is the field `Host`. Fields of
    /// the framing and of the connection are left out: they were that stack's.
    ///
    /// # Errors
    ///
    /// What is wrong with it: answer [`Error::status`].
    pub fn from_parts<'a>(
        method: &str,
        target: &str,
        fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, Error> {
        // What is handed in must not pass for more than it is.
        let odd = Error { peer: Peer::Client, reason: RejectReason::InvalidRequestLine };
        let breaks = |part: &[u8]| part.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        if breaks(method.as_bytes()) || breaks(target.as_bytes()) {
            return Err(odd);
        }
        let mut bytes = Vec::from(method);
        bytes.push(b' ');
        bytes.extend_from_slice(target.as_bytes());
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        for (name, value) in fields {
            if HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop)) {
                continue;
            }
            if breaks(name.as_bytes()) || breaks(value) || name.contains(':') {
                return Err(odd);
            }
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let mut input = bytes.as_slice();
        match RequestReader::new(Limits::default()).next(&mut input)? {
            Some(Part::Head(head)) if input.is_empty() => Ok(head),
            _ => Err(odd),
        }
    }

    /// The method, case kept.
    pub fn method(&self) -> &str {
        self.line.method.text_of(self.fields.bytes())
    }

    /// The whole target, as it came.
    pub fn target(&self) -> &str {
        self.line.target.text_of(self.fields.bytes())
    }

    /// Which form the target has.
    pub fn form(&self) -> Form {
        self.line.form
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.line.version
    }

    /// The path without the query, percent-encoding kept; `/` for an absolute
    /// form without one, `*` for the asterisk form, empty for CONNECT.
    pub fn path(&self) -> &str {
        let (path, _) = self.split_path();
        if path.is_empty() && self.line.form == Form::Absolute { "/" } else { path }
    }

    /// What follows the first `?` of the target.
    pub fn query(&self) -> Option<&str> {
        self.split_path().1
    }

    /// The host and perhaps port that the request is for: the target's
    /// authority if it has one (RFC 9112 section 3.2.2), else Host, which only
    /// HTTP/1.0 may lack. Well-formed by RFC 3986; a port may be empty or out
    /// of range.
    pub fn host(&self) -> Option<&str> {
        match self.line.authority.text_of(self.fields.bytes()) {
            "" => self.fields.get_str("host"),
            authority => Some(authority),
        }
    }

    fn split_path(&self) -> (&str, Option<&str>) {
        let path = self.line.path.text_of(self.fields.bytes());
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)))
    }
}

#[derive(Clone, Copy, Debug)]
struct RequestLine {
    method: Span,
    target: Span,
    form: Form,
    authority: Span,
    path: Span,
    version: Version,
}

impl RequestLine {
    /// RFC 9112 section 3: exactly two spaces, nothing guessed.
    fn parse(line: &[u8]) -> Result<Self, RejectReason> {
        let mut parts = line.split(|&b| b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(RejectReason::InvalidRequestLine);
        };
        let version = Version::parse(version)?;
        if !is_token(method) {
            return Err(RejectReason::InvalidMethod);
        }
        let Target { form, authority, path } = Target::parse(method, target)?;
        Ok(Self {
            method: Span::within(line, method),
            target: Span::within(line, target),
            form,
            authority: Span::within(line, authority),
            path: Span::within(line, path),
            version,
        })
    }
}

/// Reads the requests of one connection.
#[derive(Debug)]
pub struct RequestReader {
    limits: Limits,
    state: State,
}

#[derive(Debug)]
enum State {
    Start,
    /// The CR of an empty line before a request has been skipped.
    BlankLine,
    Head(Section<RequestLine>),
    Body {
        body: Body,
        keep_alive: bool,
    },
    Closed,
    Failed(RejectReason),
}

impl RequestReader {
    /// A reader at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Start }
    }

    /// Takes the next part from the front of `input`. Call it until it gives
    /// `None`, which means that the reader has to see more bytes.
    ///
    /// After a request that does not [keep the connection](RequestHead::keep_alive)
    /// alive, it gives `None` and takes nothing.
    ///
    /// # Errors
    ///
    /// The request is to be answered with [`Error::status`], if at all, and the
    /// connection to be closed. The same error comes ever after.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<RequestPart<'a>>, Error> {
        self.step(input).map_err(|reason| self.fail(reason))
    }

    /// The client will send no more.
    ///
    /// # Errors
    ///
    /// [`RejectReason::Truncated`] inside a request.
    pub fn finish(&mut self) -> Result<(), Error> {
        match &self.state {
            State::Failed(reason) => Err(Error { peer: Peer::Client, reason: *reason }),
            _ if self.is_idle() || matches!(self.state, State::Closed) => Ok(()),
            _ => Err(self.fail(RejectReason::Truncated)),
        }
    }

    /// Whether it stands between two requests.
    pub fn is_idle(&self) -> bool {
        match &self.state {
            State::Start => true,
            State::Head(section) => section.is_empty(),
            _ => false,
        }
    }

    fn fail(&mut self, reason: RejectReason) -> Error {
        self.state = State::Failed(reason);
        Error { peer: Peer::Client, reason }
    }

    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<RequestPart<'a>>, RejectReason> {
        loop {
            match &mut self.state {
                // One empty line is forgiven: RFC 9112 section 2.2.
                State::Start | State::BlankLine => {
                    let Some((byte, rest)) = input.split_first() else { return Ok(None) };
                    self.state = match (&self.state, byte) {
                        (State::Start, b'\r') => {
                            *input = rest;
                            State::BlankLine
                        }
                        (State::Start, _) => State::Head(Section::head()),
                        (_, b'\n') => {
                            *input = rest;
                            State::Head(Section::head())
                        }
                        _ => return Err(RejectReason::InvalidRequestLine),
                    };
                }
                State::Head(section) => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let bounds =
                        Bounds { bytes: self.limits.head_bytes, fields: self.limits.fields };
                    let Some((line, fields)) = section.read(input, bounds, RequestLine::parse)?
                    else {
                        return Ok(None);
                    };
                    let head = RequestHead::new(line, fields)?;
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
