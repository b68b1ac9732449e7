//! From one era to the other: what a message of a host becomes for a server, and
//! the reverse (requirements sections 4 and 5).
//!
//! *Up* is towards the server, *down* towards the host.

use alloc::string::{String, ToString};
use core::fmt::Write as _;

use super::errand::with_extension;
use super::project::project;
use super::rewrite::with;
use crate::jsonrpc::{get, members, quote, with_member};
use crate::protocol::revision::Revision;
use crate::protocol::shape::Shape;
use crate::protocol::{meta, method};

/// `object` without a member.
pub(super) fn without(object: &str, name: &str) -> String {
    let mut out = String::with_capacity(object.len());
    with_member(object, name, None, &mut out);
    out
}

/// A legacy server's result without a `resultType`, if it has one, which only the modern
/// revision knows. Results are long and this is rare, so they are not parsed for it.
pub(super) fn without_kind(result: &str) -> Option<String> {
    let named = memchr::memmem::find(result.as_bytes(), br#""resultType""#).is_some();
    (named && get(result, "resultType").is_some()).then(|| without(result, "resultType"))
}

/// The parameters of a request for a server of this revision: the first two know nothing
/// of the other arguments that `completion/complete` may tell (FEA-03).
pub(super) fn for_older_server(
    server: Option<Revision>,
    method: &str,
    params: &str,
) -> Option<String> {
    let knows = server.is_none_or(|server| server >= Revision::R2025_06_18);
    (method == method::COMPLETE && !knows).then(|| without(params, "context"))
}

/// The members of an object that are named here.
fn only(object: &str, names: &[&str]) -> String {
    let mut out = String::from("{");
    for (key, value) in members(object) {
        if names.iter().any(|name| key == **name) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(key.raw());
            out.push(':');
            out.push_str(value);
        }
    }
    out.push('}');
    out
}

/// What a legacy session means to the modern requests that are made of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Speaker {
    /// What it speaks.
    pub(super) revision: Revision,
    /// What it can do, as a modern host says it.
    pub(super) capabilities: String,
    /// Who it is, as raw JSON.
    pub(super) info: Option<String>,
    /// The level that it has set, as raw JSON.
    pub(super) level: Option<String>,
}

impl Speaker {
    /// The host whose `initialize` has these parameters.
    pub(super) fn new(revision: Revision, params: Option<&str>) -> Self {
        let member = |name| params.and_then(|params| get(params, name));
        Self {
            revision,
            capabilities: capabilities_up(revision, member("capabilities").unwrap_or("{}")),
            info: member("clientInfo").map(ToString::to_string),
            level: None,
        }
    }

    /// A host of which nothing is known.
    pub(super) fn nobody(revision: Revision) -> Self {
        Self { revision, capabilities: String::from("{}"), info: None, level: None }
    }

    /// The same, for requests of which the server may make tasks.
    pub(super) fn with_tasks(self) -> Self {
        Self { capabilities: with_extension(&self.capabilities), ..self }
    }

    /// The parameters of its request for a modern server.
    pub(super) fn params(&self, params: Option<&str>, token: Option<&str>) -> String {
        let version = alloc::format!("\"{}\"", Revision::NEWEST_MODERN);
        let edits = [
            (meta::PROTOCOL_VERSION, Some(version.as_str())),
            (meta::CLIENT_INFO, Some(meta::IDENTITY)),
            (meta::VIA_CLIENT, self.info.as_deref()),
            (meta::CLIENT_CAPABILITIES, Some(self.capabilities.as_str())),
            (meta::LOG_LEVEL, self.level.as_deref()),
            (meta::PROGRESS_TOKEN, token),
        ];
        meta::with(params, &edits)
    }
}

/// What a legacy host can do, as a modern one says it: what its revision knows of
/// what servers may ask.
fn capabilities_up(revision: Revision, declared: &str) -> String {
    let object = |name| get(declared, name).filter(|value| value.starts_with('{'));
    let mut out = String::from("{");
    let mut add = |name: &str, value: &str| {
        let comma = if out.len() > 1 { "," } else { "" };
        let _ = write!(out, r#"{comma}"{name}":{value}"#);
    };
    if object("roots").is_some() {
        add("roots", "{}");
    }
    if let Some(sampling) = object("sampling") {
        let newest = revision >= Revision::R2025_11_25;
        add("sampling", if newest { sampling } else { "{}" });
    }
    if let Some(modes) = object("elicitation").filter(|_| revision >= Revision::R2025_06_18) {
        let url = revision >= Revision::R2025_11_25 && get(modes, "url").is_some();
        let form = !url || get(modes, "form").is_some();
        add(
            "elicitation",
            match (form, url) {
                (true, true) => r#"{"form":{},"url":{}}"#,
                (false, true) => r#"{"url":{}}"#,
                _ => r#"{"form":{}}"#,
            },
        );
    }
    out.push('}');
    out
}

/// What a modern host can do, as `initialize` says it: what it may be asked for.
pub(super) fn capabilities_for_legacy(declared: &str) -> String {
    only(declared, &["roots", "sampling", "elicitation"])
}

/// The parameters of a modern host's request for a legacy server.
pub(super) fn params_for_legacy(params: Option<&str>, token: Option<&str>) -> String {
    let edits = [
        (meta::PROTOCOL_VERSION, None),
        (meta::CLIENT_INFO, None),
        (meta::CLIENT_CAPABILITIES, None),
        (meta::LOG_LEVEL, None),
        (meta::PROGRESS_TOKEN, token),
    ];
    meta::with(params, &edits)
}

/// Whether a result says for how long it holds (2026-07-28 `server/utilities/caching`).
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        method::DISCOVER
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::RESOURCES_READ
    )
}

/// The result of a legacy server for a modern host, but for its identity.
pub(super) fn result_for_modern(method: &str, result: &str) -> String {
    let mut out = with(result, "resultType", r#""complete""#);
    if is_cacheable(method) {
        out = with(&with(&out, "ttlMs", "0"), "cacheScope", r#""private""#);
    }
    out
}

/// The answer to `server/discover` for a server that has answered `initialize` so.
/// Tasks are of another kind there (D10).
pub(super) fn discovered(initialized: &str) -> String {
    let capabilities = without(get(initialized, "capabilities").unwrap_or("{}"), "tasks");
    let mut out = alloc::format!(
        r#"{{"supportedVersions":["{}"],"capabilities":{capabilities}"#,
        Revision::NEWEST_MODERN
    );
    if let Some(instructions) = get(initialized, "instructions") {
        let _ = write!(out, r#","instructions":{instructions}"#);
    }
    out.push('}');
    let info = [(meta::SERVER_INFO, get(initialized, "serverInfo"))];
    result_for_modern(method::DISCOVER, &meta::with(Some(&out), &info))
}

/// The answer to `initialize` for a host before a server that has answered
/// `server/discover` so, but for our identity.
pub(super) fn initialized(discovered: &str, host: Revision) -> String {
    let capabilities = get(discovered, "capabilities").unwrap_or("{}");
    let capabilities =
        project(&without(capabilities, "extensions"), Shape::ServerCapabilities, host);
    let mut out = alloc::format!(r#"{{"protocolVersion":"{host}","capabilities":{capabilities}"#);
    let info = meta::of(discovered).and_then(|m| get(m, meta::SERVER_INFO));
    let _ = write!(out, r#","serverInfo":{}"#, info.unwrap_or(meta::IDENTITY));
    if let Some(instructions) = get(discovered, "instructions") {
        let _ = write!(out, r#","instructions":{instructions}"#);
    }
    out.push('}');
    out
}

/// The result of a modern server for a legacy host.
pub(super) fn result_for_legacy(method: &str, result: &str, host: Revision) -> String {
    let mut out = without(result, "resultType");
    if is_cacheable(method) {
        out = without(&without(&out, "ttlMs"), "cacheScope");
    }
    if let Some(info) = meta::of(result).and_then(|m| get(m, meta::SERVER_INFO)) {
        let edits = [(meta::SERVER_INFO, None), (meta::VIA_SERVER, Some(info))];
        out = meta::with(Some(&out), &edits);
    }
    match Shape::of_result(method) {
        Some(shape) => project(&out, shape, host),
        None => out,
    }
}

/// A question of a legacy server as an entry of `inputRequests`. What only has a
/// meaning on its own connection is left out.
pub(super) fn input_request(method: &str, params: Option<&str>) -> String {
    let mut params = params.unwrap_or("{}").to_string();
    if method != method::LIST_ROOTS {
        params = without(&without(&params, "_meta"), "task");
    }
    if method == method::ELICIT {
        params = without(&params, "elicitationId");
        if get(&params, "mode").is_none() {
            params = with(&params, "mode", r#""form""#);
        }
    }
    let mut out = String::from(r#"{"method":"#);
    quote(method, &mut out);
    if params != "{}" {
        let _ = write!(out, r#","params":{params}"#);
    }
    out.push('}');
    out
}

/// Whether log messages of this level are to reach who wants those from another.
/// Both are raw JSON. Unknown levels pass.
pub(super) fn reaches(level: &str, wanted: &str) -> bool {
    match (severity(level), severity(wanted)) {
        (Some(level), Some(wanted)) => level >= wanted,
        _ => true,
    }
}

/// The place of a level among them all (RFC 5424, the other way around).
pub(super) fn severity(level: &str) -> Option<usize> {
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let level = level.strip_prefix('"')?.strip_suffix('"')?;
    levels.iter().position(|known| *known == level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25};

    #[test]
    fn hosts_declare_what_their_revision_knows() {
        let declared = r#"{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"tasks":{},"experimental":{}}"#;
        let up = |revision| capabilities_up(revision, declared);
        assert_eq!(up(R2024_11_05), r#"{"roots":{},"sampling":{}}"#);
        assert_eq!(up(R2025_06_18), r#"{"roots":{},"sampling":{},"elicitation":{"form":{}}}"#);
        assert_eq!(
            up(R2025_11_25),
            r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#
        );
        assert_eq!(
            capabilities_up(R2025_11_25, r#"{"elicitation":{}}"#),
            r#"{"elicitation":{"form":{}}}"#
        );
        assert_eq!(capabilities_up(R2025_11_25, r#"{"roots":1}"#), "{}");
        assert_eq!(capabilities_for_legacy(r#"{"extensions":{},"roots":{}}"#), r#"{"roots":{}}"#);
    }

    #[test]
    fn met_01_requests_of_sessions_say_on_their_own_what_the_session_said_once() {
        let params = r#"{"capabilities":{"roots":{}},"clientInfo":{"name":"h"}}"#;
        let mut speaker = Speaker::new(R2025_06_18, Some(params));
        speaker.level = Some(r#""error""#.into());
        let out =
            speaker.params(Some(r#"{"name":"n","_meta":{"progressToken":"t","x":1}}"#), Some("7"));
        let inner = meta::of(&out).unwrap();
        for (key, value) in [
            (meta::PROTOCOL_VERSION, r#""2026-07-28""#),
            (meta::CLIENT_CAPABILITIES, r#"{"roots":{}}"#),
            (meta::CLIENT_INFO, meta::IDENTITY),
            (meta::VIA_CLIENT, r#"{"name":"h"}"#),
            (meta::LOG_LEVEL, r#""error""#),
            (meta::PROGRESS_TOKEN, "7"),
            ("x", "1"),
        ] {
            assert_eq!(get(inner, key), Some(value), "{key}");
        }
        let back = params_for_legacy(Some(&out), None);
        assert_eq!(get(meta::of(&back).unwrap(), meta::PROTOCOL_VERSION), None);
    }

    #[test]
    fn results_get_and_lose_what_the_modern_revision_adds() {
        let list = result_for_modern(method::TOOLS_LIST, r#"{"tools":[]}"#);
        assert_eq!(
            list,
            r#"{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
        assert_eq!(result_for_legacy(method::TOOLS_LIST, &list, R2025_11_25), r#"{"tools":[]}"#);
        let called = result_for_modern(method::TOOLS_CALL, r#"{"content":[]}"#);
        assert_eq!(called, r#"{"content":[],"resultType":"complete"}"#);
        let structured = r#"{"content":[],"structuredContent":[1],"resultType":"complete"}"#;
        assert_eq!(
            result_for_legacy(method::TOOLS_CALL, structured, R2025_11_25),
            r#"{"content":[{"type":"text","text":"[1]"}]}"#
        );
    }

    #[test]
    fn each_era_introduces_servers_in_its_own_way() {
        let initialized_by = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{}},"serverInfo":{"name":"s"},"instructions":"do"}"#;
        let found = discovered(initialized_by);
        assert_eq!(get(&found, "capabilities"), Some(r#"{"tools":{}}"#));
        assert_eq!(get(&found, "instructions"), Some(r#""do""#));
        let back = initialized(&found, R2025_03_26);
        assert_eq!(
            back,
            r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"s"},"instructions":"do"}"#
        );
        let r1 = initialized(r#"{"capabilities":{"completions":{},"extensions":{}}}"#, R2024_11_05);
        assert_eq!(get(&r1, "capabilities"), Some("{}"));
    }

    #[test]
    fn mrt_12_questions_lose_what_only_their_connection_knew() {
        assert_eq!(
            input_request(
                method::ELICIT,
                Some(r#"{"message":"m","elicitationId":"e","_meta":{},"task":{}}"#)
            ),
            r#"{"method":"elicitation/create","params":{"message":"m","mode":"form"}}"#
        );
        assert_eq!(input_request(method::LIST_ROOTS, None), r#"{"method":"roots/list"}"#);
    }

    #[test]
    fn levels_are_ordered() {
        assert!(reaches(r#""error""#, r#""info""#) && reaches(r#""info""#, r#""info""#));
        assert!(!reaches(r#""debug""#, r#""info""#) && reaches(r#""odd""#, r#""info""#));
    }
}
