//! Event streams, as in the WHATWG HTML standard, 9.2.5 (the grammar) and 9.2.6
//! (what it means).

mod decode;
mod encode;

pub use decode::{Decoder, Event, TooLong, is_event_stream};
pub use encode::{Outgoing, Refused, comment, encode};
