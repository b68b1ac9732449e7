//! What the readers give out.

use core::convert::Infallible;

use super::{Fields, RequestHead, ResponseHead};

/// The next piece of a message: a head, then data, then the end.
///
/// `H` is the type of head. `I` is that of interim heads; it has no values for
/// requests, so a `match` on a [`RequestPart`] need not name [`Part::Interim`].
#[derive(Clone, Debug)]
pub enum Part<'a, H, I = Infallible> {
    /// A whole interim (1xx) response. The final one is still to come.
    Interim(I),
    /// The head of a message.
    Head(H),
    /// A piece of its body, in the bytes of the input, never empty. Where a
    /// body is cut into pieces means nothing.
    Data(&'a [u8]),
    /// Its end, with the trailers (none, mostly). They must not be merged into
    /// the fields of the head: RFC 9110 section 6.5.1.
    End(Fields),
}

/// A piece of a request.
pub type RequestPart<'a> = Part<'a, RequestHead>;

/// A piece of a response.
pub type ResponsePart<'a> = Part<'a, ResponseHead, ResponseHead>;
