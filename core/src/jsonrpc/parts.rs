//! From text to the parts of a message, and the rules that they must keep.

use alloc::borrow::Cow;
use alloc::string::String;

use smallvec::SmallVec;

use super::code;
use super::id::is_id;
use super::members::get;
use super::message::{Kind, Limits, Message};
use super::reject::{RejectReason, Rejected};
use super::scan::{Fault, Scanner, Span};
use super::text::string;

/// A text that is JSON.
pub(super) enum Read {
    Object(Parts),
    Array,
    Scalar,
}

/// Where the members of a message are.
#[derive(Default)]
pub(super) struct Parts {
    version: Option<Span>,
    id: Option<Span>,
    /// How many ids there are.
    ids: usize,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    /// Found on the way, and told when all of it has turned out to be JSON.
    flaw: Option<RejectReason>,
}

/// Checks the grammar of the whole text, in one pass.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Read, Fault> {
    let mut scanner = Scanner::new(text, limits.depth);
    scanner.space();
    let read = match scanner.peek() {
        Some(b'{') => Read::Object(Parts::read(&mut scanner, limits)?),
        first => {
            scanner.value()?;
            if first == Some(b'[') { Read::Array } else { Read::Scalar }
        }
    };
    scanner.end()?;
    Ok(read)
}

impl Parts {
    fn read(scanner: &mut Scanner<'_>, limits: &Limits) -> Result<Self, Fault> {
        let mut parts = Self::default();
        let mut flaw = None;
        unique(scanner, limits, &mut flaw, |scanner, name, flaw| {
            let start = scanner.at();
            if name == "params" && scanner.peek() == Some(b'{') {
                read_params(scanner, limits, flaw)?;
            } else {
                scanner.value()?;
            }
            let span = Some(Span { start, end: scanner.at() });
            match name {
                "jsonrpc" => parts.version = span,
                "id" => {
                    parts.id = span;
                    parts.ids += 1;
                }
                "method" => parts.method = span,
                "params" => parts.params = span,
                "result" => parts.result = span,
                "error" => parts.error = span,
                _ => {}
            }
            Ok(())
        })?;
        parts.flaw = flaw;
        Ok(parts)
    }

    /// The message that `text`, from which the parts were read, is.
    pub(super) fn judge(self, text: Cow<'_, str>) -> Result<Message<'_>, Rejected> {
        let id = self.id.map(|span| span.of(&text)).filter(|raw| is_id(raw));
        let method = self.method.and_then(|span| string(span.of(&text)));
        match self.kind(&text, id.is_some(), method.is_some()) {
            Ok(kind) => {
                let unescaped = match method {
                    Some(Cow::Owned(method)) => Some(method),
                    _ => None,
                };
                let method =
                    self.method.map_or(Span { start: 0, end: 0 }, |Span { start, end }| Span {
                        start: start + 1,
                        end: end - 1,
                    });
                let id = self.id.filter(|_| id.is_some());
                let Self { params, result, error, .. } = self;
                Ok(Message { text, kind, id, method, unescaped, params, result, error })
            }
            Err(reason) => {
                let answer = self.result.is_some() || self.error.is_some();
                let response = self.method.is_none() && answer;
                let notification = method.is_some() && self.ids == 0;
                Err(Rejected {
                    code: code::INVALID_REQUEST,
                    reason,
                    id: id.filter(|_| self.ids == 1).map(String::from),
                    answerable: !response && !notification,
                })
            }
        }
    }

    /// What it is, given whether its id and its method are as they should be.
    fn kind(&self, text: &str, id: bool, method: bool) -> Result<Kind, RejectReason> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        let raw = |span: Span| span.of(text);
        if self.version.map(raw).and_then(string).as_deref() != Some("2.0") {
            return Err(RejectReason::Version);
        }
        match (self.method, self.result, self.error) {
            (Some(_), None, None) if !method => Err(RejectReason::Method),
            (Some(_), None, None) => match (self.params.map(raw), self.id) {
                (Some(params), _) if !params.starts_with('{') => Err(RejectReason::Params),
                (_, None) => Ok(Kind::Notification),
                (_, Some(_)) if id => Ok(Kind::Request),
                _ => Err(RejectReason::Id),
            },
            (None, Some(_), None) if id => Ok(Kind::Response),
            (None, Some(_), None) => Err(RejectReason::Id),
            (None, None, Some(error)) if !is_error(raw(error)) => Err(RejectReason::Error),
            (None, None, Some(_)) => match self.id.map(raw) {
                None => Ok(Kind::Error),
                Some(raw) if id || raw == "null" => Ok(Kind::Error),
                Some(_) => Err(RejectReason::Id),
            },
            _ => Err(RejectReason::Shape),
        }
    }
}

fn read_params(
    scanner: &mut Scanner<'_>,
    limits: &Limits,
    flaw: &mut Option<RejectReason>,
) -> Result<(), Fault> {
    unique(scanner, limits, flaw, |scanner, name, flaw| {
        if name == "_meta" && scanner.peek() == Some(b'{') {
            unique(scanner, limits, flaw, |scanner, _, _| scanner.value())
        } else {
            scanner.value()
        }
    })
}

/// Reads an object, handing out the decoded names, and notes it if one of them
/// is there twice. A name that is no Unicode text counts as it was written.
fn unique<'t>(
    scanner: &mut Scanner<'t>,
    limits: &Limits,
    flaw: &mut Option<RejectReason>,
    mut each: impl FnMut(&mut Scanner<'t>, &str, &mut Option<RejectReason>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut names: SmallVec<[Cow<'t, str>; 12]> = SmallVec::new();
    scanner.object(|scanner, raw| {
        let name = string(raw).unwrap_or(Cow::Borrowed(raw));
        each(scanner, &name, flaw)?;
        if names.len() < limits.members {
            names.push(name);
        } else {
            flaw.get_or_insert(RejectReason::TooManyMembers);
        }
        Ok(())
    })?;
    names.sort_unstable();
    if names.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
        flaw.get_or_insert(RejectReason::DuplicateMember);
    }
    Ok(())
}

fn is_error(raw: &str) -> bool {
    let code = get(raw, "code").is_some_and(|code| !code.starts_with('"') && is_id(code));
    code && get(raw, "message").is_some_and(|message| message.starts_with('"'))
}
