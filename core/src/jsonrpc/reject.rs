//! Why a text is not a message, and whether anybody should hear of it.

use alloc::string::String;
use core::fmt;

use super::code;
use super::skim::Skimmer;

/// A text that is not a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// For the answer: [`PARSE_ERROR`](code::PARSE_ERROR) or
    /// [`INVALID_REQUEST`](code::INVALID_REQUEST).
    pub code: i32,
    /// What is wrong.
    pub reason: RejectReason,
    /// The raw id, if it could be made out beyond doubt. It is the id to answer
    /// with; of a broken response, that of the request it was meant for.
    pub id: Option<String>,
    /// Whether it may be answered. Responses and notifications never are, not
    /// even broken ones (JSON-RPC 2.0 section 4.1).
    pub answerable: bool,
}

/// What is wrong with a text that is not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RejectReason {
    /// It is not UTF-8.
    NotUtf8,
    /// It is not JSON.
    NotJson,
    /// Its arrays and objects nest too deep.
    TooDeep,
    /// It is JSON, but neither an object nor an array.
    NotAnObject,
    /// A member is there twice, so that two readers may see two messages.
    DuplicateMember,
    /// It has more members than can be checked for duplicates.
    TooManyMembers,
    /// `jsonrpc` is not `"2.0"`.
    Version,
    /// `id` is neither a string nor an integer, or is missing from a result.
    Id,
    /// `method` is not a string of Unicode text.
    Method,
    /// `params` is not an object.
    Params,
    /// `error` is not an object with an integer `code` and a string `message`.
    Error,
    /// It has not exactly one of `method`, `result` and `error`.
    Shape,
}

impl Rejected {
    /// A text that could not be read to its end. Whatever can still be made out
    /// decides who hears of it.
    pub(super) fn unreadable(bytes: &[u8], reason: RejectReason) -> Self {
        let mut skimmer = Skimmer::default();
        skimmer.feed(bytes);
        let skimmed = skimmer.finish();
        let response = skimmed.answer && !skimmed.method;
        // JSON-RPC 2.0 section 5: what cannot be parsed is answered without id.
        let (code, known) = match reason {
            RejectReason::TooDeep => (code::INVALID_REQUEST, true),
            _ => (code::PARSE_ERROR, response),
        };
        let notification = known && skimmed.method && skimmed.id.is_none();
        let id = skimmed.id.filter(|_| known);
        Self { code, reason, id, answerable: !response && !notification }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "The message is not UTF-8",
            Self::NotJson => "The message is not JSON",
            Self::TooDeep => "The message is nested too deep",
            Self::NotAnObject => "The message is not a JSON object",
            Self::DuplicateMember => "The message has the same member twice",
            Self::TooManyMembers => "The message has too many members",
            Self::Version => "jsonrpc must be \"2.0\"",
            Self::Id => "id must be a string or an integer",
            Self::Method => "method must be a string",
            Self::Params => "params must be an object",
            Self::Error => "error must be an object with a code and a message",
            Self::Shape => "The message must have exactly one of method, result and error",
        })
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl core::error::Error for Rejected {}
