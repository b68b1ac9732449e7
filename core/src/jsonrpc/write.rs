//! Writing messages.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::text::{compact, quote, quoted};

/// A message to be written. Ids, parameters, results and errors are raw JSON, the
/// method is plain text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Envelope<'a> {
    /// A request.
    Request {
        /// Its id.
        id: &'a str,
        /// Its method.
        method: &'a str,
        /// Its parameters, an object.
        params: Option<&'a str>,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: &'a str,
        /// Its parameters, an object.
        params: Option<&'a str>,
    },
    /// The answer to a request: a result.
    Result {
        /// The request's id.
        id: &'a str,
        /// The result.
        result: &'a str,
    },
    /// The answer to a request: an error.
    Error {
        /// The request's id. Without one the member is left out (2025-11-25 and
        /// later, HTTP bodies); where JSON-RPC 2.0 section 5 is to be followed to
        /// the letter, it is `null`.
        id: Option<&'a str>,
        /// The error: an object such as [`error_object`] makes.
        error: &'a str,
    },
}

/// A piece of a message.
enum Piece<'a> {
    /// Ours: written as it is.
    Fixed(&'static str),
    /// JSON from elsewhere, which may have line breaks.
    Raw(&'a str),
    /// Text to be quoted.
    Text(&'a str),
}

impl<'a> Envelope<'a> {
    /// How many bytes [`write`](Self::write) appends.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        let mut len = 0;
        self.pieces(|piece| match piece {
            Piece::Fixed(text) | Piece::Raw(text) => len += text.len(),
            Piece::Text(text) => quoted(text, |piece| len += piece.len()),
        });
        len
    }

    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        self.pieces(|piece| match piece {
            Piece::Fixed(text) | Piece::Raw(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Text(text) => quoted(text, |piece| out.extend_from_slice(piece.as_bytes())),
        });
    }

    /// Appends the message and a line feed, with no other line break in between.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        out.reserve(self.len() + 1);
        self.pieces(|piece| match piece {
            Piece::Fixed(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Raw(text) => compact(text, out),
            Piece::Text(text) => quoted(text, |piece| out.extend_from_slice(piece.as_bytes())),
        });
        out.push(b'\n');
    }

    fn pieces(&self, mut out: impl FnMut(Piece<'a>)) {
        use Piece::{Fixed, Raw, Text};
        out(Fixed("{\"jsonrpc\":\"2.0\""));
        let mut member = |name, value| {
            out(Fixed(name));
            out(value);
        };
        match *self {
            Self::Request { id, method, params } => {
                member(",\"id\":", Raw(id));
                member(",\"method\":", Text(method));
                if let Some(params) = params {
                    member(",\"params\":", Raw(params));
                }
            }
            Self::Notification { method, params } => {
                member(",\"method\":", Text(method));
                if let Some(params) = params {
                    member(",\"params\":", Raw(params));
                }
            }
            Self::Result { id, result } => {
                member(",\"id\":", Raw(id));
                member(",\"result\":", Raw(result));
            }
            Self::Error { id, error } => {
                if let Some(id) = id {
                    member(",\"id\":", Raw(id));
                }
                member(",\"error\":", Raw(error));
            }
        }
        out(Fixed("}"));
    }
}

/// The raw JSON of an error object. `data` is raw JSON.
pub fn error_object(code: i32, message: &str, data: Option<&str>) -> String {
    let mut out = String::from("{\"code\":");
    out.push_str(&code.to_string());
    out.push_str(",\"message\":");
    quote(message, &mut out);
    if let Some(data) = data {
        out.push_str(",\"data\":");
        out.push_str(data);
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(envelope: Envelope<'_>) -> String {
        let mut out = Vec::new();
        envelope.write(&mut out);
        assert_eq!(out.len(), envelope.len());
        String::from_utf8(out).unwrap()
    }

    fn line(envelope: Envelope<'_>) -> String {
        let mut out = Vec::new();
        envelope.write_line(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_is_written() {
        let (id, method) = ("1.0", "a\"\u{1}é");
        assert_eq!(
            written(Envelope::Request { id, method, params: Some("{ }") }),
            r#"{"jsonrpc":"2.0","id":1.0,"method":"a\"\u0001é","params":{ }}"#
        );
        assert_eq!(
            written(Envelope::Request { id, method: "m", params: None }),
            r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#
        );
        assert_eq!(
            written(Envelope::Notification { method: "m", params: Some("{}") }),
            r#"{"jsonrpc":"2.0","method":"m","params":{}}"#
        );
        assert_eq!(
            written(Envelope::Result { id: "\"a\"", result: "null" }),
            r#"{"jsonrpc":"2.0","id":"a","result":null}"#
        );
        let error = error_object(-32603, "no \\", Some("[1]"));
        assert_eq!(
            written(Envelope::Error { id: None, error: &error }),
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"no \\","data":[1]}}"#
        );
        assert_eq!(error_object(1, "", None), r#"{"code":1,"message":""}"#);
    }

    #[test]
    fn a_line_has_one_line_break() {
        let envelope = Envelope::Result { id: "1", result: "{\r\n  \"a b\": 1\n}" };
        assert_eq!(line(envelope), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a b\":1}}\n");
        let envelope = Envelope::Notification { method: "a\nb", params: Some("{ \"a\": 1 }") };
        assert_eq!(
            line(envelope),
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\\nb\",\"params\":{ \"a\": 1 }}\n"
        );
    }
}
