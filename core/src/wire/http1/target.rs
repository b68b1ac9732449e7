//! Request targets (RFC 9112 section 3.2) and authorities (RFC 3986 section 3.2).

use core::net::Ipv6Addr;

use memchr::{memchr, memchr2, memmem};

use super::RejectReason;
use super::chars::{is_encoded, is_name_char, is_path_or_query_char};

/// The form of a request target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A path with an optional query.
    Origin,
    /// A whole URI of any scheme, as sent to proxies.
    Absolute,
    /// Host and port, for CONNECT only.
    Authority,
    /// `*`, for OPTIONS only.
    Asterisk,
}

/// A target in its parts. Those that a form does not have are empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target<'a> {
    pub(super) form: Form,
    pub(super) authority: &'a [u8],
    /// Path and query.
    pub(super) path: &'a [u8],
}

impl<'a> Target<'a> {
    pub(super) fn parse(method: &[u8], text: &'a [u8]) -> Result<Self, RejectReason> {
        let target = match (method, text) {
            (b"CONNECT", _) => Self { form: Form::Authority, authority: text, path: b"" },
            (b"OPTIONS", b"*") => Self { form: Form::Asterisk, authority: b"", path: text },
            (_, [b'/', ..]) => Self { form: Form::Origin, authority: b"", path: text },
            _ => Self::parse_absolute(text).ok_or(RejectReason::InvalidTarget)?,
        };
        let authority_fits = match target.form {
            Form::Origin | Form::Asterisk => true,
            Form::Absolute => parse_authority(target.authority).is_some(),
            Form::Authority => {
                parse_authority(text).is_some_and(|(_, port)| port.is_some_and(|p| !p.is_empty()))
            }
        };
        match authority_fits && is_encoded(target.path, is_path_or_query_char) {
            true => Ok(target),
            false => Err(RejectReason::InvalidTarget),
        }
    }

    fn parse_absolute(text: &'a [u8]) -> Option<Self> {
        let (scheme, rest) = text.split_at_checked(memmem::find(text, b"://")?)?;
        let (first, others) = scheme.split_first()?;
        let is_scheme = first.is_ascii_alphabetic()
            && others.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        let rest = rest.strip_prefix(b"://").filter(|_| is_scheme)?;
        let (authority, path) =
            rest.split_at_checked(memchr2(b'/', b'?', rest).unwrap_or(rest.len()))?;
        Some(Self { form: Form::Absolute, authority, path })
    }
}

/// `host [ ":" port ]` without user information, as in Host. The host is not
/// empty; the port is, after a lone colon.
pub(super) fn parse_authority(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let host_len = match text.first()? {
        b'[' => memchr(b']', text)? + 1,
        _ => memchr(b':', text).unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at_checked(host_len)?;
    let port = match rest {
        [] => None,
        [b':', port @ ..] if port.iter().all(u8::is_ascii_digit) => Some(port),
        _ => return None,
    };
    let is_host = match host {
        [b'[', literal @ .., b']'] => is_ip_literal(literal),
        _ => !host.is_empty() && is_encoded(host, is_name_char),
    };
    is_host.then_some((host, port))
}

fn is_ip_literal(text: &[u8]) -> bool {
    match text {
        [b'v' | b'V', future @ ..] => memchr(b'.', future)
            .and_then(|dot| future.split_at_checked(dot))
            .is_some_and(|(version, address)| {
                !version.is_empty()
                    && version.iter().all(u8::is_ascii_hexdigit)
                    && address.len() > 1
                    && address.iter().all(|&b| is_name_char(b) || b == b':')
            }),
        _ => core::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_fit_their_methods() {
        let form = |method: &str, target: &str| {
            Target::parse(method.as_bytes(), target.as_bytes()).map(|t| t.form)
        };
        assert_eq!(form("GET", "/mcp?a=%20&b=?"), Ok(Form::Origin));
        assert_eq!(form("GET", "//evil/mcp"), Ok(Form::Origin));
        assert_eq!(form("GET", "HTTP://b:81?x"), Ok(Form::Absolute));
        assert_eq!(form("OPTIONS", "*"), Ok(Form::Asterisk));
        assert_eq!(form("CONNECT", "b:80"), Ok(Form::Authority));
        for (method, target) in [
            ("GET", "*"),
            ("GET", "mcp"),
            ("GET", "b:80"),
            ("GET", ""),
            ("GET", "/#x"),
            ("GET", "/%2"),
            ("GET", "/\u{e9}"),
            ("GET", "/a|b"),
            ("GET", "http://u@b/"),
            ("GET", "http:///x"),
            ("GET", "1http://b/"),
            ("CONNECT", "b"),
            ("CONNECT", "b:"),
            ("CONNECT", "/x"),
        ] {
            assert_eq!(form(method, target), Err(RejectReason::InvalidTarget), "{method} {target}");
        }
    }

    #[test]
    fn authorities_are_a_host_and_perhaps_a_port() {
        for good in [
            "a",
            "a:",
            "a:80",
            "0.0.0.0=5000",
            "a%2eb",
            "localhost.",
            "[::1]",
            "[::1]:80",
            "[v1.a:b]",
            "a_b",
        ] {
            assert!(parse_authority(good.as_bytes()).is_some(), "{good}");
        }
        for bad in [
            "",
            ":80",
            "a b",
            "u@a",
            "a/x",
            "a:8o",
            "a:1:2",
            "::1",
            "[::1",
            "[::1]x",
            "[]",
            "[fe80::1%25a]",
            "[v.a]",
            "a\\b",
        ] {
            assert!(parse_authority(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
