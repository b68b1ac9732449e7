//! Errors that the protocol names, and the HTTP status of each.

use alloc::string::String;
use core::fmt::Write as _;

use crate::jsonrpc::{code, error_object, quote};
use crate::protocol::revision::Era;

/// An error on its way to a peer: its code and the raw JSON error object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The JSON-RPC code.
    pub code: i32,
    /// The whole error object, as JSON.
    pub object: String,
}

impl Fault {
    /// An error with a sentence.
    pub fn new(code: i32, message: &str) -> Self {
        Self { code, object: error_object(code, message, None) }
    }

    /// An error with a sentence and raw JSON data.
    pub fn with_data(code: i32, message: &str, data: &str) -> Self {
        Self { code, object: error_object(code, message, Some(data)) }
    }

    /// `-32601` for `method`.
    pub fn method_not_found(method: &str) -> Self {
        let mut message = String::from("Method not found: ");
        message.push_str(method);
        Self::new(code::METHOD_NOT_FOUND, &message)
    }

    /// `-32022` with what is served and what was asked for (2026-07-28
    /// `basic/versioning`).
    pub fn unsupported_version(supported: &str, requested: &str) -> Self {
        let mut data = String::new();
        let _ = write!(data, r#"{{"supported":{supported},"requested":"#);
        quote(requested, &mut data);
        data.push('}');
        Self::with_data(code::UNSUPPORTED_VERSION, "Unsupported protocol version", &data)
    }
}

/// The HTTP status of an error answer that needs no stream.
///
/// Legacy hosts get 200 for an answered request: a 404 would make them start a
/// new session (`requirements` ERR-01 to ERR-06).
pub fn status(era: Era, code: i32) -> u16 {
    match (era, code) {
        (Era::Modern, code::METHOD_NOT_FOUND) => 404,
        (
            Era::Modern,
            code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CAPABILITY
            | code::UNSUPPORTED_VERSION,
        ) => 400,
        _ => 200,
    }
}
