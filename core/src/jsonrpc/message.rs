//! One message: checked once, then read without searching.

use alloc::borrow::Cow;
use alloc::string::String;

use super::code;
use super::members::{Elements, elements};
use super::parts::{Read, read};
use super::reject::{RejectReason, Rejected};
use super::scan::{Fault, Span};

/// What a message may be made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How deep arrays and objects may nest, the message itself included.
    pub depth: usize,
    /// How many members the message, its `params` and their `_meta` may have,
    /// each of them.
    pub members: usize,
}

impl Limits {
    /// 128 levels, which is what the other side's JSON reader is likely to take,
    /// and 4,096 members.
    pub const DEFAULT: Self = Self { depth: 128, members: 4096 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming<'a> {
    /// One message.
    Message(Message<'a>),
    /// An array, which only MCP 2025-03-26 knows. Its elements are not looked at
    /// yet.
    Batch(Batch<'a>),
}

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It has a method and an id, and wants an answer.
    Request,
    /// It has a method and no id, and gets no answer.
    Notification,
    /// The answer to a request: a result.
    Response,
    /// The answer to a request: an error. Without an id it answers none.
    Error,
}

/// One message. All of it is kept as the text that it came as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) kind: Kind,
    pub(super) id: Option<Span>,
    /// Without its quotes; empty in responses.
    pub(super) method: Span,
    /// The method, if it was written with escapes.
    pub(super) unescaped: Option<String>,
    pub(super) params: Option<Span>,
    pub(super) result: Option<Span>,
    pub(super) error: Option<Span>,
}

impl<'a> Message<'a> {
    /// Checks and takes apart one message, without copying it.
    ///
    /// It must be UTF-8 and JSON of limited depth, with `jsonrpc` `"2.0"`, an id
    /// that is a string or an integer, parameters that are an object, and exactly
    /// one of method, result and error. No member may be there twice, in itself,
    /// in `params` and in their `_meta`.
    pub fn parse(bytes: Cow<'a, [u8]>, limits: &Limits) -> Result<Incoming<'a>, Rejected> {
        let text = utf8(bytes)?;
        let parts = read(&text, limits).map_err(|fault| {
            let reason = match fault {
                Fault::Syntax => RejectReason::NotJson,
                Fault::TooDeep => RejectReason::TooDeep,
            };
            Rejected::unreadable(text.as_bytes(), reason)
        })?;
        match parts {
            Read::Object(parts) => parts.judge(text).map(Incoming::Message),
            Read::Array => Ok(Incoming::Batch(Batch { text })),
            Read::Scalar => Err(Rejected {
                code: code::INVALID_REQUEST,
                reason: RejectReason::NotAnObject,
                id: None,
                answerable: true,
            }),
        }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The id, exactly as it was written: `1`, `"a"`. Nothing for a
    /// notification, and for an error that says that it does not know the id.
    pub fn id(&self) -> Option<&str> {
        self.id.map(|span| span.of(&self.text))
    }

    /// The method. Empty for responses.
    pub fn method(&self) -> &str {
        self.unescaped.as_deref().unwrap_or_else(|| self.method.of(&self.text))
    }

    /// The parameters: the raw text of an object.
    pub fn params(&self) -> Option<&str> {
        self.params.map(|span| span.of(&self.text))
    }

    /// The result: raw JSON of any kind, an object in all that MCP defines.
    pub fn result(&self) -> Option<&str> {
        self.result.map(|span| span.of(&self.text))
    }

    /// The error: the raw text of an object with an integer `code` and a string
    /// `message`.
    pub fn error(&self) -> Option<&str> {
        self.error.map(|span| span.of(&self.text))
    }

    /// The whole message as it came.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A copy with other parameters: the raw text of an object that has been checked.
    pub fn with_params(&self, params: &str) -> Message<'static> {
        let Some(old) = self.params else { return self.clone().into_owned() };
        let piece = |start, end| self.text.get(start..end).unwrap_or_default();
        let mut text = String::with_capacity(self.text.len() + params.len());
        text.push_str(piece(0, old.start));
        text.push_str(params);
        text.push_str(piece(old.end, self.text.len()));
        // What stands behind them has moved.
        let moved = |span: Span| {
            let at = |place: usize| match place.checked_sub(old.end) {
                Some(behind) => old.start + params.len() + behind,
                None => place,
            };
            Span { start: at(span.start), end: at(span.end) }
        };
        Message {
            text: Cow::Owned(text),
            kind: self.kind,
            id: self.id.map(moved),
            method: moved(self.method),
            unescaped: self.unescaped.clone(),
            params: Some(Span { start: old.start, end: old.start + params.len() }),
            result: self.result.map(moved),
            error: self.error.map(moved),
        }
    }

    /// The same message, independent of what it was read from.
    pub fn into_owned(self) -> Message<'static> {
        Message { text: Cow::Owned(self.text.into_owned()), ..self }
    }
}

/// An array of what may be messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch<'a> {
    text: Cow<'a, str>,
}

impl Batch<'_> {
    /// The elements as raw JSON, each to be parsed by itself.
    pub fn elements(&self) -> Elements<'_> {
        elements(&self.text)
    }

    /// Whether it has none, which JSON-RPC 2.0 section 6 forbids.
    pub fn is_empty(&self) -> bool {
        self.elements().next().is_none()
    }
}

fn utf8(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, Rejected> {
    let refused = |bytes: &[u8]| Rejected::unreadable(bytes, RejectReason::NotUtf8);
    match bytes {
        Cow::Borrowed(bytes) => {
            core::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| refused(bytes))
        }
        Cow::Owned(bytes) => {
            String::from_utf8(bytes).map(Cow::Owned).map_err(|error| refused(error.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    fn parse(text: &str) -> Result<Message<'_>, Rejected> {
        match Message::parse(Cow::Borrowed(text.as_bytes()), &Limits::DEFAULT)? {
            Incoming::Message(message) => Ok(message),
            Incoming::Batch(batch) => panic!("a batch: {batch:?}"),
        }
    }

    /// The reason, the id to answer with, and whether to answer.
    fn refusal(text: &str) -> (RejectReason, Option<String>, bool) {
        let rejected = parse(text).unwrap_err();
        let parse_error = matches!(rejected.reason, RejectReason::NotJson | RejectReason::NotUtf8);
        let code = if parse_error { code::PARSE_ERROR } else { code::INVALID_REQUEST };
        assert_eq!(rejected.code, code, "{text}");
        (rejected.reason, rejected.id, rejected.answerable)
    }

    fn some(id: &str) -> Option<String> {
        Some(String::from(id))
    }

    #[test]
    fn a_request_is_taken_apart() {
        let text =
            r#" {"jsonrpc":"2.0", "id" : 1.0 ,"method":"tools/call","params":{"n":1e400},"x":[]} "#;
        let message = parse(text).unwrap();
        assert_eq!(message.kind(), Kind::Request);
        assert_eq!((message.id(), message.method()), (Some("1.0"), "tools/call"));
        assert_eq!(message.params(), Some(r#"{"n":1e400}"#));
        assert_eq!((message.result(), message.error(), message.as_str()), (None, None, text));
        assert!(matches!(message.text, Cow::Borrowed(_)));
        assert_eq!(message.clone().into_owned(), message);
    }

    #[test]
    fn parameters_are_replaced_wherever_they_stand() {
        for text in [
            r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"n":1}}"#,
            r#"{"params":{"n":1},"method":"m","jsonrpc":"2.0","id":"a"}"#,
        ] {
            for params in [r#"{"much":"longer"}"#, "{}"] {
                let other = parse(text).unwrap().with_params(params);
                let expected = text.replace(r#"{"n":1}"#, params);
                assert_eq!(other, parse(&expected).unwrap().into_owned());
            }
        }
        let without = parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).unwrap();
        assert_eq!(without.with_params("{}"), without.clone().into_owned());
    }

    #[test]
    fn names_and_methods_may_be_escaped() {
        let text = r#"{"\u006asonrpc":"2.0","\u0069d":"\u0061","m\u0065thod":"a\/\u00e9"}"#;
        let message = parse(text).unwrap();
        assert_eq!((message.id(), message.method()), (Some(r#""\u0061""#), "a/é"));
        assert_eq!(message.into_owned().method(), "a/é");
    }

    #[test]
    fn notifications_and_responses_are_told_apart() {
        let notification = parse(r#"{"jsonrpc":"2.0","method":"m","params":{"id":1}}"#).unwrap();
        assert_eq!((notification.kind(), notification.id()), (Kind::Notification, None));
        let response = parse(r#"{"jsonrpc":"2.0","id":"a","result":[null]}"#).unwrap();
        assert_eq!((response.kind(), response.id()), (Kind::Response, Some("\"a\"")));
        assert_eq!((response.method(), response.result()), ("", Some("[null]")));
        for id in ["", r#""id":null,"#] {
            let text = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-1,"message":"m"}}}}"#);
            let error = parse(&text).unwrap();
            assert_eq!((error.kind(), error.id()), (Kind::Error, None));
            assert_eq!(error.error(), Some(r#"{"code":-1,"message":"m"}"#));
        }
    }

    #[test]
    fn an_array_is_a_batch() {
        let batch = |text: &'static str| match Message::parse(
            Cow::Borrowed(text.as_bytes()),
            &Limits::DEFAULT,
        ) {
            Ok(Incoming::Batch(batch)) => batch,
            other => panic!("{other:?}"),
        };
        let two = batch(r#" [{"a":[1]}, 2] "#);
        assert!(two.elements().eq([r#"{"a":[1]}"#, "2"]) && !two.is_empty());
        assert!(batch("[ ]").is_empty());
    }

    #[test]
    fn requests_are_refused_with_their_id() {
        use RejectReason::*;
        for (members, reason) in [
            (r#""method":"m""#, Version),
            (r#""jsonrpc":2.0,"method":"m""#, Version),
            (r#""jsonrpc":"2.0","method":7"#, Method),
            (r#""jsonrpc":"2.0","method":"\ud800""#, Method),
            (r#""jsonrpc":"2.0","method":"m","params":[1]"#, Params),
            (r#""jsonrpc":"2.0","method":"m","params":null"#, Params),
            (r#""jsonrpc":"2.0""#, Shape),
            (r#""jsonrpc":"2.0","method":"m","result":1"#, Shape),
            (r#""jsonrpc":"2.0","method":"m","\u006dethod":"n""#, DuplicateMember),
            (r#""jsonrpc":"2.0","method":"m","x":0,"x":0"#, DuplicateMember),
            (r#""jsonrpc":"2.0","method":"m","params":{"a":0,"\u0061":1}"#, DuplicateMember),
            (r#""jsonrpc":"2.0","method":"m","params":{"_meta":{"a":0,"a":0}}"#, DuplicateMember),
        ] {
            let text = format!(r#"{{"id":1,{members}}}"#);
            assert_eq!(refusal(&text), (reason, some("1"), true), "{text}");
        }
        for id in ["null", "1.5", "true", "[]", "{}", "1e400"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            assert_eq!(refusal(&text), (Id, None, true), "{text}");
        }
        let text = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#;
        assert_eq!(refusal(text), (DuplicateMember, None, true));
    }

    #[test]
    fn responses_and_notifications_are_never_answered() {
        use RejectReason::*;
        let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#;
        for (text, reason, id) in [
            (r#"{"id":1,"result":{}}"#, Version, some("1")),
            (r#"{"jsonrpc":"2.0","result":{}}"#, Id, None),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Id, None),
            (both, Shape, some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"error":"e"}"#, Error, some("1")),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#, Error, some("1")),
            (r#"{"jsonrpc":"2.0","id":1.5,"error":{"code":1,"message":""}}"#, Id, None),
            (r#"{"jsonrpc":"2.0","method":"m","params":1}"#, Params, None),
            (r#"{"method":"m"}"#, Version, None),
            (r#"{"jsonrpc":"2.0","id":1,"result":tru}"#, NotJson, some("1")),
        ] {
            assert_eq!(refusal(text), (reason, id, false), "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_answered_without_id() {
        use RejectReason::*;
        for (text, reason) in [
            ("", NotJson),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}x"#, NotJson),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"#, NotJson),
            ("\u{feff}{}", NotJson),
            ("42", NotAnObject),
            ("\"x\"", NotAnObject),
            ("{}", Version),
        ] {
            assert_eq!(refusal(text), (reason, None, true), "{text}");
        }
        let broken = Cow::Borrowed(&b"{\"id\":1,\"method\":\"\xff\"}"[..]);
        let rejected = Message::parse(broken.clone(), &Limits::DEFAULT).unwrap_err();
        assert_eq!((rejected.code, rejected.id.as_deref()), (code::PARSE_ERROR, None));
        let owned = Message::parse(Cow::Owned(broken.into_owned()), &Limits::DEFAULT);
        assert_eq!(owned, Err(rejected));
    }

    #[test]
    fn deep_messages_are_refused_with_their_id() {
        let deep = |levels: usize, rest: &str| {
            format!(r#"{{"x":{}{},{rest}}}"#, "[".repeat(levels), "]".repeat(levels))
        };
        let request = r#""jsonrpc":"2.0","id":7,"method":"m""#;
        assert!(parse(&deep(127, request)).is_ok());
        let too_deep = RejectReason::TooDeep;
        assert_eq!(refusal(&deep(128, request)), (too_deep, some("7"), true));
        assert_eq!(refusal(&deep(128, r#""method":"m""#)), (too_deep, None, false));
        assert_eq!(refusal(&deep(128, r#""id":7,"result":1"#)), (too_deep, some("7"), false));
        assert_eq!(refusal(&"[".repeat(100_000)), (too_deep, None, true));
    }

    #[test]
    fn members_are_counted_where_they_are_compared() {
        let limits = Limits { members: 4, ..Limits::DEFAULT };
        let parse = |params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
            let parsed = Message::parse(Cow::Owned(text.into_bytes()), &limits);
            parsed.map_err(|rejected| rejected.reason)
        };
        assert!(parse(r#"{"a":{"1":0,"2":0,"3":0,"4":0,"5":0},"b":0,"c":0,"d":0}"#).is_ok());
        let too_many = Err(RejectReason::TooManyMembers);
        assert_eq!(parse(r#"{"a":0,"b":0,"c":0,"d":0,"e":0}"#), too_many);
        assert_eq!(parse(r#"{"_meta":{"a":0,"b":0,"c":0,"d":0,"e":0}}"#), too_many);
    }
}
