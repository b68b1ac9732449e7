//! Who may come in by HTTP, by the head of a request alone: before a byte of its
//! body is read.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use subtle::{Choice, ConstantTimeEq as _};

use super::endpoint::Config;
use crate::protocol::origin::OriginRules;
use crate::wire::http1::{Form, RequestHead};

/// What is asked of everybody who comes by HTTP, besides the rules of the
/// listener.
#[derive(Clone, Default)]
pub struct Access {
    /// Tokens, one of which a request must have: `Authorization: Bearer` (RFC 6750).
    /// None: nobody is asked for any. A session belongs to the token that it was
    /// begun with.
    pub tokens: Vec<String>,
    /// Whether browsers are told that pages of the allowed origins may use the
    /// endpoint (CORS). They are named exactly, and without credentials.
    pub cors: bool,
}

impl fmt::Debug for Access {
    // Never shows a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.tokens.len();
        f.debug_struct("Access").field("tokens", &tokens).field("cors", &self.cors).finish()
    }
}

/// Whose token a request has, by its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Principal(pub(super) usize);

/// What the head of a request says.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Go on.
    Welcome(Option<Principal>),
    /// It asks what it may do: with these fields, a list.
    Preflight(String),
    /// No.
    Refused(u16, Cow<'static, str>),
}

/// Judges a request by its head. The second part is the origin that a browser is to
/// be told of.
pub(super) fn judge(
    head: &RequestHead,
    rules: Option<&OriginRules>,
    config: &Config,
) -> (Verdict, Option<String>) {
    let (fields, access) = (&head.fields, &config.access);
    let target = head.host().filter(|_| head.form() == Form::Absolute);
    let checked = rules
        .map_or(Ok(()), |it| it.check(fields.get_all("host"), fields.get_all("origin"), target));
    if let Err(refused) = checked {
        return (Verdict::Refused(refused.status(), refused.to_string().into()), None);
    }
    let origin = fields.get_str("origin").filter(|_| access.cors).map(|it| String::from(it.trim()));
    let verdict = if !is_at(head, config) {
        Verdict::Refused(404, "Not found: the MCP endpoint is at another path".into())
    } else if origin.is_some() && is_preflight(head) {
        Verdict::Preflight(allowed_fields(head))
    } else {
        match access.principal(head) {
            Err(why) => Verdict::Refused(401, why.into()),
            Ok(principal) => match refuse_by_head(head) {
                Some((status, why)) => Verdict::Refused(status, why.into()),
                None => Verdict::Welcome(principal),
            },
        }
    };
    (verdict, origin)
}

impl Access {
    /// Whose token a request has. How long that takes says nothing about the tokens
    /// but their lengths.
    fn principal(&self, head: &RequestHead) -> Result<Option<Principal>, &'static str> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let mut values = head.fields.get_all("authorization");
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err("Authorization is missing: send Bearer and a token of this gateway");
        };
        let given = match value.split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
            _ => return Err("Authorization must be Bearer and a token of this gateway"),
        };
        let mut found = None;
        for (place, token) in self.tokens.iter().enumerate() {
            let same: Choice = token.as_bytes().ct_eq(given);
            if bool::from(same) {
                found = Some(Principal(place));
            }
        }
        found.map(Some).ok_or("The token is not one of this gateway")
    }
}

fn is_preflight(head: &RequestHead) -> bool {
    head.method() == "OPTIONS" && head.fields.get("access-control-request-method").is_some()
}

/// The fields that a page may send: those of MCP, and the `Mcp-Param-*` that it asks
/// for.
fn allowed_fields(head: &RequestHead) -> String {
    let mut allowed = String::from(
        "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, \
         Mcp-Name, Mcp-Session-Id",
    );
    let wanted = head.fields.get_str("access-control-request-headers").unwrap_or_default();
    for name in wanted.split(',').map(str::trim) {
        let is_param = name.get(..10).is_some_and(|it| it.eq_ignore_ascii_case("mcp-param-"));
        if is_param && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            allowed.push_str(", ");
            allowed.push_str(name);
        }
    }
    allowed
}

/// Whether the endpoint is at the path of a request. Nothing else is here, so
/// whoever names only the host means it.
fn is_at(head: &RequestHead, config: &Config) -> bool {
    let path = head.path();
    path == config.path
        || path == "/"
        || config.legacy_sse.as_ref().is_some_and(|legacy| legacy.has(path))
}

fn refuse_by_head(head: &RequestHead) -> Option<(u16, &'static str)> {
    match head.method() {
        "POST" => {}
        "GET" | "DELETE" => return None,
        _ => return Some((405, "Method not allowed: use POST, GET or DELETE")),
    }
    if !is_json(head.fields.get_str("content-type").unwrap_or_default()) {
        return Some((415, "Content-Type must be application/json"));
    }
    if !accepts(head, "application/json") && !accepts(head, "text/event-stream") {
        return Some((406, "Accept must allow application/json and text/event-stream"));
    }
    None
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Whether `Accept` allows a media type.
pub(super) fn accepts(head: &RequestHead, media: &str) -> bool {
    wish(head, media).is_some()
}

/// How much `Accept` wants a media type, if it allows it: its weight in
/// thousandths (RFC 9110 12.5.1), then its place, for hosts without weights name
/// first what they like best. Without `Accept`, all are the same.
pub(super) fn wish(head: &RequestHead, media: &str) -> Option<(u16, Reverse<usize>)> {
    let kind = media.split('/').next().unwrap_or_default();
    let mut values = head.fields.get_all("accept").peekable();
    if values.peek().is_none() {
        return Some((1000, Reverse(0)));
    }
    values
        .flat_map(|value| core::str::from_utf8(value).unwrap_or_default().split(','))
        .enumerate()
        .filter_map(|(place, range)| {
            let mut parts = range.split(';');
            let essence = parts.next().unwrap_or_default().trim();
            let wild = essence
                .strip_suffix("/*")
                .is_some_and(|prefix| prefix == "*" || prefix.eq_ignore_ascii_case(kind));
            let weight = parts
                .filter_map(|parameter| parameter.split_once('='))
                .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
                .map_or(1000, |(_, weight)| thousandths(weight));
            let fits = wild || essence.eq_ignore_ascii_case(media);
            (fits && weight > 0).then_some((weight, Reverse(place)))
        })
        .max()
}

/// A weight, 0 to 1, in thousandths. One that is no number refuses.
fn thousandths(weight: &str) -> u16 {
    let weight: f32 = weight.trim().parse().unwrap_or_default();
    (weight.clamp(0.0, 1.0) * 1000.0) as u16
}
