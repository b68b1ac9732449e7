//! Why a message is refused, by whom it was sent, and what to answer.

use core::fmt;

/// Who sent the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// The sender of requests.
    Client,
    /// The sender of responses.
    Server,
}

/// A fault of the peer. Nothing more can be read from the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// Whose fault it is.
    pub peer: Peer,
    /// What is wrong.
    pub reason: RejectReason,
}

impl Error {
    /// The status that tells it to a client: our own answer to a bad request,
    /// or 502 where a gateway got a bad response (RFC 9110 section 15.6.3).
    pub const fn status(self) -> u16 {
        match self.peer {
            Peer::Client => self.reason.status(),
            Peer::Server => 502,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self.peer {
            Peer::Client => "bad request",
            Peer::Server => "bad response",
        };
        write!(f, "{message}: {}", self.reason)
    }
}

impl core::error::Error for Error {}

/// One row for each reason: its name, its status in answer to a request, its
/// sentence, which is its documentation too.
macro_rules! reasons {
    ($($name:ident, $status:literal, $text:literal;)*) => {
        /// Everything a message can be refused for.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum RejectReason {
            $(#[doc = concat!("\"", $text, "\"; ", stringify!($status), ".")] $name,)*
        }

        impl RejectReason {
            /// Every reason, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The status that answers a request with this fault.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                }
            }
        }

        impl fmt::Display for RejectReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

reasons! {
    BareLf, 400, "a line ends in LF without CR";
    InvalidRequestLine, 400, "the request line is not method, target and version";
    InvalidMethod, 400, "the method is not a token";
    InvalidTarget, 400, "the request target has no valid form";
    InvalidStatusLine, 400, "the status line is malformed";
    InvalidStatus, 400, "the status code is not in 100..599";
    InvalidVersion, 400, "the HTTP version is malformed";
    UnsupportedVersion, 505, "the HTTP version is not 1.x";
    StartLineTooLong, 414, "the start line is longer than the limit";
    SectionTooLong, 431, "the head or the trailer section is longer than the limit";
    TooManyFields, 431, "there are more field lines than the limit";
    ObsoleteFold, 400, "a field line starts with white space";
    InvalidFieldName, 400, "a field name is not a token directly before a colon";
    InvalidFieldValue, 400, "a field value has a control character";
    MissingHost, 400, "there is no Host";
    RepeatedHost, 400, "there is more than one Host";
    InvalidHost, 400, "Host is not a host with an optional port";
    InvalidContentLength, 400, "Content-Length is not a single decimal number";
    RepeatedContentLength, 400, "there is more than one Content-Length";
    InvalidTransferEncoding, 400, "Transfer-Encoding does not end in a single chunked";
    UnsupportedTransferEncoding, 501, "there is a transfer coding besides chunked";
    TransferEncodingInHttp10, 400, "an HTTP/1.0 message has Transfer-Encoding";
    ConflictingFraming, 400, "there are both Content-Length and Transfer-Encoding";
    BodyTooLong, 413, "the body is longer than the limit";
    InvalidChunkSize, 400, "a chunk size is not a hexadecimal number of at most 16 digits";
    InvalidChunkExtension, 400, "a chunk extension is malformed";
    ChunkExtensionsTooLong, 400, "the chunk extensions are longer than the limit";
    InvalidChunkEnd, 400, "a chunk line or chunk does not end in CRLF";
    UnexpectedUpgrade, 400, "the connection changes to a protocol that nobody asked for";
    TooManyInterim, 400, "there are more interim responses than the limit";
    NoResponse, 400, "the connection ended before a response began";
    Truncated, 400, "the connection ended inside a message";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::string::ToString;

    use super::*;

    #[test]
    fn every_reason_has_a_sentence_of_its_own_and_an_error_status() {
        let sentences: BTreeSet<_> = RejectReason::ALL.iter().map(|r| r.to_string()).collect();
        assert_eq!(sentences.len(), RejectReason::ALL.len());
        for &reason in RejectReason::ALL {
            assert!((400..=599).contains(&reason.status()));
            assert_eq!(Error { peer: Peer::Server, reason }.status(), 502);
        }
    }

    #[test]
    fn an_error_says_who_and_why() {
        let error = Error { peer: Peer::Client, reason: RejectReason::MissingHost };
        assert_eq!(
            (error.to_string().as_str(), error.status()),
            ("bad request: there is no Host", 400)
        );
    }
}
