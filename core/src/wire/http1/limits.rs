//! How much of a message is taken before it is refused.

/// The limits of one reader. All are hard: past them the message is refused
/// and the connection is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a head, from the start line to the empty line, both included.
    /// No more than 4 GiB count. RFC 9112 section 3 recommends at least 8000
    /// for a request line alone.
    pub head_bytes: usize,
    /// Field lines of a head, and again of a trailer section.
    pub fields: usize,
    /// Bytes of a body, chunk framing not counted. `u64::MAX` for a stream
    /// without an end.
    pub body_bytes: u64,
    /// Bytes of chunk extensions in a whole body.
    pub chunk_extension_bytes: usize,
    /// Bytes of a trailer section, the empty line included.
    pub trailer_bytes: usize,
    /// Interim (1xx) responses before a final one.
    pub interim_responses: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            fields: 100,
            body_bytes: 64 * 1024 * 1024,
            chunk_extension_bytes: 16 * 1024,
            trailer_bytes: 16 * 1024,
            interim_responses: 16,
        }
    }
}
