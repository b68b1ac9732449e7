//! The classes of characters of RFC 9110 section 5.6 and RFC 3986.

/// `tchar`.
pub(super) const fn is_token_char(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// `token`.
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&b| is_token_char(b))
}

/// `field-vchar`, SP or HTAB: all that may stand in a field value, a reason
/// phrase or a quoted string.
pub(super) const fn is_text_char(b: u8) -> bool {
    matches!(b, b'\t' | b' '..=b'~' | 0x80..)
}

/// `unreserved` or `sub-delims`.
pub(super) const fn is_name_char(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
        )
}

/// `pchar`, or what parts paths and queries.
pub(super) const fn is_path_or_query_char(b: u8) -> bool {
    is_name_char(b) || matches!(b, b':' | b'@' | b'/' | b'?')
}

/// Whether all are `allowed` or part of a `pct-encoded`.
pub(super) fn is_encoded(text: &[u8], allowed: fn(u8) -> bool) -> bool {
    let mut bytes = text.iter();
    while let Some(&b) = bytes.next() {
        let fine = match b {
            b'%' => {
                [bytes.next(), bytes.next()].iter().all(|b| b.is_some_and(u8::is_ascii_hexdigit))
            }
            _ => allowed(b),
        };
        if !fine {
            return false;
        }
    }
    true
}

/// Without SP and HTAB at both ends.
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}
