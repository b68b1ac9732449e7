//! What changes in a message between two hops: progress tokens, identities,
//! subscription ids. All the rest passes as it came.

use alloc::string::String;

use super::project::project;
use crate::jsonrpc::{get, members, quote, string, with_member};
use crate::protocol::meta;
use crate::protocol::revision::Revision;
use crate::protocol::shape::Shape;

/// `object` with one member replaced.
pub(super) fn with(object: &str, name: &str, value: &str) -> String {
    let mut out = String::with_capacity(object.len() + value.len() + 16);
    with_member(object, name, Some(value), &mut out);
    out
}

/// `text` as JSON.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(text, &mut out);
    out
}

/// The token under which a request wants its progress reported, as raw JSON.
pub(super) fn progress_token(params: Option<&str>) -> Option<&str> {
    get(meta::of(params?)?, meta::PROGRESS_TOKEN)
}

/// The parameters of a modern request for the server: our identity, the host's
/// beside it.
pub(super) fn modern_request(params: Option<&str>, token: Option<&str>) -> String {
    let theirs = params.and_then(meta::of).and_then(|m| get(m, meta::CLIENT_INFO));
    let edits = [
        (meta::VIA_CLIENT, theirs),
        (meta::CLIENT_INFO, Some(meta::IDENTITY)),
        (meta::PROGRESS_TOKEN, token),
    ];
    meta::with(params, &edits)
}

/// What is looked for in a modern result, found in one walk: results are long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Seen<'a> {
    meta: Option<&'a str>,
    /// The `resultType`, raw.
    pub(super) kind: Option<&'a str>,
    /// The `taskId`, raw.
    pub(super) task: Option<&'a str>,
}

/// Looks at a modern result.
pub(super) fn seen(result: &str) -> Seen<'_> {
    let mut seen = Seen::default();
    for (key, value) in members(result) {
        if key == *"_meta" {
            seen.meta = Some(value).filter(|meta| meta.starts_with('{'));
        } else if key == *"resultType" {
            seen.kind = Some(value);
        } else if key == *"taskId" {
            seen.task = Some(value);
        }
    }
    seen
}

/// A modern result for the host: our identity, the server's beside it. An absent
/// `resultType` is said to be what it means (MET-06).
pub(super) fn modern_result(result: &str) -> String {
    let Seen { meta, kind, .. } = seen(result);
    let mut inner = String::from(meta.unwrap_or("{}"));
    if let Some(theirs) = meta.and_then(|meta| get(meta, meta::SERVER_INFO)) {
        inner = with(&inner, meta::VIA_SERVER, theirs);
    }
    inner = with(&inner, meta::SERVER_INFO, meta::IDENTITY);
    let mut out = String::with_capacity(result.len() + inner.len() + 64);
    with_member(result, "_meta", Some(&inner), &mut out);
    if kind.is_none() && out.ends_with('}') {
        // It has members: that one at least.
        out.pop();
        out.push_str(r#","resultType":"complete"}"#);
    }
    out
}

/// `initialize` for the server. Nothing of ours in its `_meta`: some servers take
/// whoever sends any for a modern host.
pub(super) fn initialize(params: Option<&str>, token: Option<&str>) -> String {
    let params = meta::with(params, &[(meta::PROGRESS_TOKEN, token)]);
    let params = with(&params, "clientInfo", meta::IDENTITY);
    // A version that no legacy server can mean is answered as by one (VER-02):
    // with the newest of them.
    let wanted = get(&params, "protocolVersion").and_then(string);
    if wanted.is_some_and(|wanted| Revision::parse_legacy(&wanted).is_none()) {
        let newest = alloc::format!("\"{}\"", Revision::NEWEST_LEGACY);
        return with(&params, "protocolVersion", &newest);
    }
    params
}

/// The revision that a result of `initialize` agrees to, if we know it.
pub(super) fn agreed(result: &str) -> Option<Revision> {
    Revision::parse_legacy(&get(result, "protocolVersion").and_then(string)?)
}

/// The result of `initialize` for the host, which gets the revision that it asks
/// for (VER-02), whatever the server agreed to.
pub(super) fn initialized(result: &str, server: Revision, host: Revision) -> String {
    let theirs = get(result, "serverInfo");
    let result = meta::with(Some(result), &[(meta::VIA_SERVER, theirs)]);
    let result = with(&result, "serverInfo", meta::IDENTITY);
    if server == host {
        return result;
    }
    let result = with(&result, "protocolVersion", &alloc::format!("\"{host}\""));
    if server > host { project(&result, Shape::Initialized, host) } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_change_changes() {
        let params = r#"{"z": 1.0,"_meta":{"progressToken":"t", "x/y":[1]},"name":"n"}"#;
        assert_eq!(progress_token(Some(params)), Some("\"t\""));
        let out = meta::with(Some(params), &[(meta::PROGRESS_TOKEN, Some("7"))]);
        assert_eq!(out, r#"{"z": 1.0,"_meta":{"progressToken":7, "x/y":[1]},"name":"n"}"#);
    }

    #[test]
    fn versions_that_need_no_handshake_are_not_offered_in_one() {
        let offered = |version: &str| {
            let params = alloc::format!(r#"{{"protocolVersion":"{version}"}}"#);
            get(&initialize(Some(&params), None), "protocolVersion").map(String::from)
        };
        assert_eq!(offered("2024-11-05").as_deref(), Some("\"2024-11-05\""));
        assert_eq!(offered("2026-07-28").as_deref(), Some("\"2025-11-25\""));
        assert_eq!(offered("1999-01-01").as_deref(), Some("\"2025-11-25\""));
    }

    #[test]
    fn hosts_get_the_revision_that_they_ask_for() {
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"tasks":{},"tools":{}},"serverInfo":{}}"#;
        let told = |host| initialized(result, Revision::R2025_11_25, host);
        let same = told(Revision::R2025_11_25);
        assert!(same.starts_with(r#"{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"tasks":{},"tools":{}},"#));
        let older = told(Revision::R2025_06_18);
        assert!(older.starts_with(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"completions":{},"tools":{}},"#
        ));
        let oldest = told(Revision::R2024_11_05);
        assert!(oldest.contains(r#""capabilities":{"tools":{}}"#));
        let newer = initialized(
            r#"{"protocolVersion":"2024-11-05"}"#,
            Revision::R2024_11_05,
            Revision::R2025_11_25,
        );
        assert_eq!(get(&newer, "protocolVersion"), Some("\"2025-11-25\""));
    }

    #[test]
    fn an_empty_meta_is_left_out() {
        let out = meta::with(Some(r#"{"a":1}"#), &[(meta::PROGRESS_TOKEN, None)]);
        assert_eq!(out, r#"{"a":1}"#);
    }

    #[test]
    fn identities_travel_beside_ours() {
        let out = modern_request(
            Some(r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"h"}}}"#),
            None,
        );
        let inner = meta::of(&out).unwrap();
        assert_eq!(get(inner, meta::CLIENT_INFO), Some(meta::IDENTITY));
        assert_eq!(get(inner, meta::VIA_CLIENT), Some(r#"{"name":"h"}"#));
        let out = modern_result(r#"{"content":[]}"#);
        assert_eq!(get(&out, "resultType"), Some("\"complete\""));
    }
}
