//! Which `Host` and `Origin` a request may have.
//!
//! A page in a browser can be made to talk to a server on the user's own
//! machine. Its `Origin` then gives it away, or, if its name was rebound to our
//! address, its `Host` (MCP "Security & Endpoint" of every Streamable HTTP
//! revision; RFC 9112 3.2; RFC 6454 7). Clients that are not browsers send no
//! `Origin`, and are let in.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use crate::protocol::header_value::trim;

/// The rules of one listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginRules {
    hosts: Hosts,
    origins: Origins,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Hosts {
    Loopback,
    /// We listen on an address of unknown names.
    Any,
    Listed(Vec<Entry>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Origins {
    Loopback,
    Listed(Vec<OriginEntry>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum OriginEntry {
    /// The opaque origin `null`, of sandboxed frames and local files.
    Null,
    Tuple {
        scheme: String,
        at: Entry,
    },
}

/// A host of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    name: Name<String>,
    port: PortRule,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PortRule {
    Any,
    /// The same port, or none where that is the same.
    Exactly(Option<u16>),
}

/// The host in an authority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name<S> {
    /// A domain name or an IPv4 address, in any case.
    Text(S),
    /// What stood in square brackets.
    V6(Ipv6Addr),
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There is no `Host`, or more than one (RFC 9112 3.2).
    HostCount,
    /// `Host`, or the host in the target, is not one of ours.
    Host,
    /// `Origin` is not one that may use this server, or is there twice.
    Origin,
}

impl Refused {
    /// The HTTP status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::HostCount => 400,
            Self::Host | Self::Origin => 403,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostCount => "There must be exactly one Host header",
            Self::Host => "The Host header names a host that is not allowed",
            Self::Origin => "The Origin header names an origin that is not allowed",
        })
    }
}

/// An entry of a list that is not what the list is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InvalidEntry {
    /// Not `name`, `name:port` or `name:*`.
    Host(String),
    /// Not `scheme://name`, with or without `:port` or `:*`, nor `null`.
    Origin(String),
}

impl fmt::Display for InvalidEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(entry) => {
                write!(f, "\"{entry}\" is not a host: write name, name:port or name:*")
            }
            Self::Origin(entry) => write!(
                f,
                "\"{entry}\" is not an origin: write scheme://name, scheme://name:port, \
                 scheme://name:* or null"
            ),
        }
    }
}

impl OriginRules {
    /// The rules for a listener on `bind` (an address or name with a port, or
    /// the path of a Unix socket) with the lists of its operator.
    ///
    /// Without a list of hosts, a listener on a loopback address or a Unix
    /// socket takes only the loopback names `localhost`, `127.0.0.1` and
    /// `[::1]`, with any port; another takes any host. An entry without a port,
    /// or with `:*`, takes any port.
    ///
    /// Without a list of origins, the loopback names are allowed with `http`
    /// and `https` and any port. An entry without a port means the scheme's
    /// own; one with `:*` takes any.
    pub fn new(
        bind: &str,
        allowed_hosts: Option<&[String]>,
        allowed_origins: Option<&[String]>,
    ) -> Result<Self, InvalidEntry> {
        let hosts = match allowed_hosts {
            Some(list) => {
                Hosts::Listed(list.iter().map(|entry| host_entry(entry)).collect::<Result<_, _>>()?)
            }
            None if is_local(bind) => Hosts::Loopback,
            None => Hosts::Any,
        };
        let origins = match allowed_origins {
            Some(list) => Origins::Listed(
                list.iter().map(|entry| origin_entry(entry)).collect::<Result<_, _>>()?,
            ),
            None => Origins::Loopback,
        };
        Ok(Self { hosts, origins })
    }

    /// Whether a request is let in: `host` and `origin` are all values of these
    /// fields, `target` is the authority of a request target in absolute form.
    ///
    /// Asked for every method, before the body is read.
    pub fn check<'a>(
        &self,
        mut host: impl Iterator<Item = &'a [u8]>,
        mut origin: impl Iterator<Item = &'a [u8]>,
        target: Option<&str>,
    ) -> Result<(), Refused> {
        let (Some(only), None) = (host.next(), host.next()) else {
            return Err(Refused::HostCount);
        };
        // The target overrules `Host`, but whoever sends both means the same.
        let host = text(only).ok_or(Refused::Host)?;
        if !self.allows_host(host) || !target.is_none_or(|target| self.allows_host(target)) {
            return Err(Refused::Host);
        }
        match (origin.next(), origin.next()) {
            (None, _) => Ok(()),
            (Some(only), None) if text(only).is_some_and(|o| self.allows_origin(o)) => Ok(()),
            _ => Err(Refused::Origin),
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        // An empty port is legal in a URI's authority (RFC 3986 3.2.3).
        let Some((name, port)) = authority(host.strip_suffix(':').unwrap_or(host)) else {
            return false;
        };
        match &self.hosts {
            Hosts::Any => true,
            Hosts::Loopback => name.is_loopback(),
            Hosts::Listed(entries) => entries.iter().any(|entry| entry.takes(name, port)),
        }
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else {
            return origin == "null"
                && matches!(&self.origins, Origins::Listed(list) if list.contains(&OriginEntry::Null));
        };
        let Some((name, port)) = authority(rest) else {
            return false;
        };
        match &self.origins {
            Origins::Loopback => {
                name.is_loopback()
                    && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
            }
            Origins::Listed(entries) => entries.iter().any(|entry| match entry {
                OriginEntry::Null => false,
                OriginEntry::Tuple { scheme: wanted, at } => {
                    scheme.eq_ignore_ascii_case(wanted)
                        && at.takes(name, port.or(default_port(scheme)))
                }
            }),
        }
    }
}

impl Entry {
    fn takes(&self, name: Name<&str>, port: Option<u16>) -> bool {
        let same_name = match (&self.name, name) {
            (Name::Text(own), Name::Text(other)) => own.eq_ignore_ascii_case(other),
            (Name::V6(own), Name::V6(other)) => *own == other,
            _ => false,
        };
        same_name
            && match self.port {
                PortRule::Any => true,
                PortRule::Exactly(own) => own == port,
            }
    }
}

impl Name<&str> {
    /// Only the usual spellings: a browser sends no other, and what else
    /// reaches loopback is not worth a rule that lets it in.
    fn is_loopback(self) -> bool {
        match self {
            Self::Text(name) => name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"),
            Self::V6(address) => address == Ipv6Addr::LOCALHOST,
        }
    }

    fn to_owned(self) -> Name<String> {
        match self {
            Self::Text(name) => Name::Text(String::from(name)),
            Self::V6(address) => Name::V6(address),
        }
    }
}

fn host_entry(entry: &str) -> Result<Entry, InvalidEntry> {
    let (text, any) = without_wildcard(entry);
    let (name, port) = authority(text).ok_or_else(|| InvalidEntry::Host(entry.into()))?;
    let port = if any || port.is_none() { PortRule::Any } else { PortRule::Exactly(port) };
    Ok(Entry { name: name.to_owned(), port })
}

fn origin_entry(entry: &str) -> Result<OriginEntry, InvalidEntry> {
    if entry == "null" {
        return Ok(OriginEntry::Null);
    }
    let (text, any) = without_wildcard(entry);
    let parsed = text
        .split_once("://")
        .filter(|(scheme, _)| is_scheme(scheme))
        .and_then(|(scheme, rest)| Some((scheme, authority(rest)?)));
    let Some((scheme, (name, port))) = parsed else {
        return Err(InvalidEntry::Origin(entry.into()));
    };
    let port = if any { PortRule::Any } else { PortRule::Exactly(port.or(default_port(scheme))) };
    Ok(OriginEntry::Tuple {
        scheme: String::from(scheme),
        at: Entry { name: name.to_owned(), port },
    })
}

fn without_wildcard(entry: &str) -> (&str, bool) {
    match entry.strip_suffix(":*") {
        Some(rest) => (rest, true),
        None => (entry, false),
    }
}

/// Whether only processes of this machine can reach a listener on `bind`.
fn is_local(bind: &str) -> bool {
    match bind_name(bind) {
        Some(Name::Text(name)) => match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        },
        Some(Name::V6(address)) => address == Ipv6Addr::LOCALHOST,
        // The path of a Unix socket.
        None => true,
    }
}

/// The host of a listener's address, whose port may be 0.
fn bind_name(bind: &str) -> Option<Name<&str>> {
    authority(bind.strip_suffix(":0").unwrap_or(bind)).map(|(name, _)| name)
}

/// A field value without white space around it, if it is ASCII.
fn text(value: &[u8]) -> Option<&str> {
    str::from_utf8(trim(value)).ok().filter(|value| value.is_ascii())
}

/// Splits `name` or `name:port`. No user information, no empty parts; names
/// are of letters, digits, `-`, `.`, `_` and `~` alone.
fn authority(text: &str) -> Option<(Name<&str>, Option<u16>)> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (Name::V6(address.parse().ok()?), port)
        }
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            if name.is_empty() || !name.bytes().all(is_plain) {
                return None;
            }
            (Name::Text(name), port)
        }
    };
    match port.strip_prefix(':') {
        Some(digits) => Some((name, Some(parse_port(digits)?))),
        None => port.is_empty().then_some((name, None)),
    }
}

/// A port from 1 to 65535 in at most five digits.
fn parse_port(digits: &str) -> Option<u16> {
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|port| *port != 0)
}

/// RFC 3986 3.1.
fn is_scheme(text: &str) -> bool {
    let is_rest = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_rest)
}

fn default_port(scheme: &str) -> Option<u16> {
    if scheme.eq_ignore_ascii_case("http") {
        Some(80)
    } else if scheme.eq_ignore_ascii_case("https") {
        Some(443)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn ask(rules: &OriginRules, host: &str, origin: Option<&str>) -> Result<(), Refused> {
        rules.check([host.as_bytes()].into_iter(), origin.map(str::as_bytes).into_iter(), None)
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|&entry| entry.into()).collect()
    }

    #[test]
    fn by_default_only_loopback_names_are_let_in() {
        for bind in ["127.0.0.1:3000", "[::1]:3000", "localhost:0", "127.0.0.1:0", "/run/mcpx.sock"]
        {
            let rules = OriginRules::new(bind, None, None).unwrap();
            for host in ["localhost", "LocalHost:1", "127.0.0.1:3000", "[::1]:3000", "localhost:"] {
                assert_eq!(ask(&rules, host, None), Ok(()), "{bind} {host}");
            }
            for host in ["", "evil.example", "localhost.", "127.1", "::1", "localhost@evil", "a b"]
            {
                assert_eq!(ask(&rules, host, None), Err(Refused::Host), "{bind} {host}");
            }
            for origin in ["http://localhost:5173", "HTTPS://127.0.0.1", "http://[0::1]:1"] {
                assert_eq!(ask(&rules, "localhost", Some(origin)), Ok(()), "{origin}");
            }
            for origin in ["", "null", "http://evil.example", "ws://localhost", "http://localhost/"]
            {
                assert_eq!(
                    ask(&rules, "localhost", Some(origin)),
                    Err(Refused::Origin),
                    "{origin}"
                );
            }
        }
    }

    #[test]
    fn an_open_listener_takes_any_host_but_no_foreign_origin() {
        for bind in ["0.0.0.0:3000", "[::]:0", "10.0.0.5:80", "box.example:80"] {
            let rules = OriginRules::new(bind, None, None).unwrap();
            assert_eq!(ask(&rules, "10.0.0.5:3000", None), Ok(()), "{bind}");
            assert_eq!(ask(&rules, "a b", None), Err(Refused::Host), "{bind}");
            assert_eq!(ask(&rules, "a", Some("http://a")), Err(Refused::Origin), "{bind}");
        }
    }

    #[test]
    fn lists_say_all() {
        let hosts = strings(&["a.example", "b.example:1", "[::2]:*"]);
        let origins = strings(&["https://a.example", "http://b.example:*", "app://x", "null"]);
        let rules = OriginRules::new("127.0.0.1:1", Some(&hosts), Some(&origins)).unwrap();
        for host in ["a.example", "A.example:7", "b.example:1", "[0::2]:9", "[::2]"] {
            assert_eq!(ask(&rules, host, None), Ok(()), "{host}");
        }
        for host in ["localhost", "b.example", "b.example:2", "x.a.example", "[::3]"] {
            assert_eq!(ask(&rules, host, None), Err(Refused::Host), "{host}");
        }
        for origin in ["https://a.example:443", "http://b.example:7", "app://x", "null"] {
            assert_eq!(ask(&rules, "a.example", Some(origin)), Ok(()), "{origin}");
        }
        for origin in ["http://a.example", "https://a.example:80", "app://y", "Null", "app://x:1"] {
            assert_eq!(ask(&rules, "a.example", Some(origin)), Err(Refused::Origin), "{origin}");
        }
    }

    #[test]
    fn fields_must_not_be_repeated_nor_contradicted() {
        let rules = OriginRules::new("127.0.0.1:1", None, None).unwrap();
        let check = |hosts: &[&'static str], origins: &[&'static str], target| {
            let bytes = |list: &[&'static str]| -> Vec<&[u8]> {
                list.iter().map(|value| value.as_bytes()).collect()
            };
            rules.check(bytes(hosts).into_iter(), bytes(origins).into_iter(), target)
        };
        assert_eq!(check(&[], &[], None), Err(Refused::HostCount));
        assert_eq!(check(&["localhost", "localhost"], &[], None), Err(Refused::HostCount));
        let origin = "http://localhost";
        assert_eq!(check(&["localhost"], &[origin, origin], None), Err(Refused::Origin));
        assert_eq!(check(&["localhost"], &[], Some("evil.example")), Err(Refused::Host));
        assert_eq!(check(&["evil.example"], &[], Some("localhost")), Err(Refused::Host));
        assert_eq!(check(&["localhost"], &[], Some("localhost:1")), Ok(()));
    }

    #[test]
    fn entries_that_could_never_match_are_errors() {
        for host in ["", "*", "http://a", "a:0", "a:b", "[::1", "a/"] {
            let list = vec![String::from(host)];
            let error = OriginRules::new("127.0.0.1:1", Some(&list), None);
            assert_eq!(error, Err(InvalidEntry::Host(host.into())));
        }
        for origin in ["", "*", "a.example", "http://", "http://a/", "://a", "1://a"] {
            let list = vec![String::from(origin)];
            let error = OriginRules::new("127.0.0.1:1", None, Some(&list));
            assert_eq!(error, Err(InvalidEntry::Origin(origin.into())));
        }
    }
}
