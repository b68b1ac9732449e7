//! The addresses of HTTP servers: RFC 9110 sections 4.2.1 and 4.2.2.

use alloc::string::{String, ToString};
use core::fmt;

use super::chars::{is_encoded, is_path_or_query_char};
use super::target::parse_authority;

/// An `http` or `https` URL, in the parts that a client needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    secure: bool,
    host: String,
    port: u16,
    authority: String,
    target: String,
}

/// Why a URL cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UrlError {
    /// It does not begin with a scheme and `://`.
    NoScheme,
    /// Its scheme is neither `http` nor `https`.
    UnknownScheme,
    /// It has a user name or password, which must not be there.
    UserInfo,
    /// Its host is missing or malformed.
    InvalidHost,
    /// Its port is not in 1..65535.
    InvalidPort,
    /// Its path or query has characters that must be percent-encoded.
    InvalidPath,
    /// It has a fragment, which no server ever sees.
    Fragment,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoScheme => "the URL does not begin with http:// or https://",
            Self::UnknownScheme => "the URL's scheme is neither http nor https",
            Self::UserInfo => "the URL has a user name or password",
            Self::InvalidHost => "the URL's host is missing or malformed",
            Self::InvalidPort => "the URL's port is not in 1..65535",
            Self::InvalidPath => {
                "the URL's path or query has characters that must be percent-encoded"
            }
            Self::Fragment => "the URL has a fragment",
        })
    }
}

impl core::error::Error for UrlError {}

impl Url {
    /// Reads `http[s]://host[:port][/path][?query]`. Nothing is repaired or
    /// normalised, except that an empty path becomes `/` and the scheme's own port
    /// (80, or 443) is left out of the [authority](Self::authority).
    ///
    /// # Errors
    ///
    /// [`UrlError`], for the first part that is wrong.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::NoScheme)?;
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err(UrlError::UnknownScheme);
        }
        let usual = if secure { 443 } else { 80 };
        let (authority, path) = rest
            .split_at_checked(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
            .unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        let (host, port) = parse_authority(authority.as_bytes()).ok_or(UrlError::InvalidHost)?;
        let host = core::str::from_utf8(host).map_err(|_| UrlError::InvalidHost)?;
        if host.contains('%') || host.starts_with("[v") || host.starts_with("[V") {
            return Err(UrlError::InvalidHost);
        }
        let port = match port.map(core::str::from_utf8) {
            None | Some(Ok("")) => usual,
            Some(digits) => digits
                .ok()
                .and_then(|d| d.parse().ok())
                .filter(|&p| p != 0)
                .ok_or(UrlError::InvalidPort)?,
        };
        if path.contains('#') {
            return Err(UrlError::Fragment);
        }
        if !is_encoded(path.as_bytes(), is_path_or_query_char) {
            return Err(UrlError::InvalidPath);
        }
        let mut target = String::with_capacity(path.len() + 1);
        if !path.starts_with('/') {
            target.push('/');
        }
        target.push_str(path);
        Ok(Self {
            secure,
            port,
            authority: if port == usual { host } else { authority }.to_string(),
            host: host.trim_start_matches('[').trim_end_matches(']').to_string(),
            target,
        })
    }

    /// The URL that a reference means which was found at this one: RFC 3986
    /// section 5.2, but for dot segments, which the server may read as it likes.
    ///
    /// # Errors
    ///
    /// [`UrlError`], for the first part that is wrong.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let scheme = self.scheme();
        let authority = &self.authority;
        let path = self.target.split('?').next().unwrap_or_default();
        let text = if reference.starts_with("//") {
            alloc::format!("{scheme}:{reference}")
        } else if reference.starts_with('/') {
            alloc::format!("{scheme}://{authority}{reference}")
        } else if reference.starts_with('?') {
            alloc::format!("{scheme}://{authority}{path}{reference}")
        } else if reference.split(['/', '?', '#']).next().is_some_and(|s| s.contains(':')) {
            return Self::parse(reference);
        } else {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            alloc::format!("{scheme}://{authority}{folder}/{reference}")
        };
        Self::parse(&text)
    }

    /// Whether both are of the same origin: scheme, host and port (RFC 6454).
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.secure == other.secure
            && self.port == other.port
            && self.host.eq_ignore_ascii_case(&other.host)
    }

    /// The host to connect to: a name or an address, IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is reached by TLS.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// The value of Host: the host, IPv6 in brackets, and the port unless it
    /// is the scheme's own.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The request target: path and query.
    pub fn target(&self) -> &str {
        &self.target
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.authority, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found() {
        for (text, host, port, authority, target) in [
            ("http://a", "a", 80, "a", "/"),
            ("HTTP://a.b:8080/mcp?x=1", "a.b", 8080, "a.b:8080", "/mcp?x=1"),
            ("http://127.0.0.1:80?q", "127.0.0.1", 80, "127.0.0.1", "/?q"),
            ("http://[::1]:3000/", "::1", 3000, "[::1]:3000", "/"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
            ("http://a:/x", "a", 80, "a", "/x"),
            ("http://a:443/", "a", 443, "a:443", "/"),
            ("https://a", "a", 443, "a", "/"),
            ("HTTPS://a:443/x", "a", 443, "a", "/x"),
            ("https://[::1]:80/x", "::1", 80, "[::1]:80", "/x"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.host(), url.port(), url.authority(), url.target()),
                (host, port, authority, target)
            );
            assert_eq!(Url::parse(&url.to_string()), Ok(url));
        }
    }

    #[test]
    fn references_mean_what_they_mean_where_they_are_found() {
        let base = Url::parse("https://h:8443/a/sse?x=1").unwrap();
        for (reference, expected) in [
            ("/m?s=1", "https://h:8443/m?s=1"),
            ("m", "https://h:8443/a/m"),
            ("?s=1", "https://h:8443/a/sse?s=1"),
            ("m?at=12:00", "https://h:8443/a/m?at=12:00"),
            ("//other/m", "https://other/m"),
            ("http://h:8443/m", "http://h:8443/m"),
        ] {
            let url = base.join(reference).unwrap();
            assert_eq!(Url::parse(expected), Ok(url.clone()), "{reference}");
            assert_eq!(base.is_same_origin(&url), !expected.contains("other") && url.is_secure());
        }
        assert_eq!(base.join("ftp://h/m"), Err(UrlError::UnknownScheme));
        assert_eq!(base.join("mailto:x"), Err(UrlError::NoScheme));
    }

    #[test]
    fn odd_urls_are_refused() {
        for (text, error) in [
            ("", UrlError::NoScheme),
            ("localhost:80/mcp", UrlError::NoScheme),
            ("ftp://a/", UrlError::UnknownScheme),
            ("http://u:p@a/", UrlError::UserInfo),
            ("http:///x", UrlError::InvalidHost),
            ("http://a b/", UrlError::InvalidHost),
            ("http://::1/", UrlError::InvalidHost),
            ("http://[::1/", UrlError::InvalidHost),
            ("http://a%20b/", UrlError::InvalidHost),
            ("http://a:0/", UrlError::InvalidPort),
            ("http://a:65536/", UrlError::InvalidPort),
            ("http://a/#x", UrlError::Fragment),
            ("http://a/ b", UrlError::InvalidPath),
            ("http://a/\r\nx", UrlError::InvalidPath),
            ("http://a/%zz", UrlError::InvalidPath),
            ("http://a/\u{e9}", UrlError::InvalidPath),
        ] {
            assert_eq!(Url::parse(text), Err(error), "{text}");
        }
    }
}
