//! Results as the host's revision has them.
//!
//! What we offer is written down once, as constant text in the newest shape;
//! members that a revision does not know are taken out on the way to it.

use mcpx_core::jsonrpc::{quote, with_member};
use mcpx_core::protocol::meta;
use mcpx_core::protocol::revision::{Era, Revision};

/// How long the lists and the resources that never change may be cached.
pub(super) const STABLE: u32 = 3_600_000;
/// The same for what may change at any moment.
pub(super) const VOLATILE: u32 = 0;

/// Members that came with a later revision than the thing itself.
pub(super) type Since = [(&'static str, Revision)];

/// A result with these members, written without the braces around them.
pub(super) fn complete(revision: Revision, members: &str) -> String {
    match revision.era() {
        Era::Legacy => ["{", members, "}"].concat(),
        Era::Modern => finish("complete", members),
    }
}

/// The same for results that may be cached for this many milliseconds.
pub(super) fn cacheable(revision: Revision, members: &str, ttl_ms: u32) -> String {
    match revision.era() {
        Era::Legacy => complete(revision, members),
        Era::Modern => {
            // Nothing that we say depends on who asks.
            complete(revision, &format!(r#"{members},"ttlMs":{ttl_ms},"cacheScope":"public""#))
        }
    }
}

/// A modern result that asks for more before the request can be answered:
/// requests by their keys, without the braces around them.
pub(super) fn input_required(requests: &str, state: Option<&str>) -> String {
    let state = state.map(|state| format!(r#","requestState":{}"#, quoted(state)));
    let state = state.unwrap_or_default();
    finish("input_required", &format!(r#""inputRequests":{{{requests}}}{state}"#))
}

fn finish(result_type: &str, members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    let (key, identity) = (meta::SERVER_INFO, meta::IDENTITY);
    format!(r#"{{"resultType":"{result_type}"{comma}{members},"_meta":{{"{key}":{identity}}}}}"#)
}

/// The result of a list that has one page and never changes.
pub(super) fn list<'a>(
    revision: Revision,
    name: &str,
    items: impl IntoIterator<Item = &'a str>,
    since: &Since,
) -> String {
    let items: Vec<String> = items.into_iter().map(|item| project(revision, item, since)).collect();
    cacheable(revision, &format!(r#""{name}":[{}]"#, items.join(",")), STABLE)
}

/// An item without the members that came after the revision.
fn project(revision: Revision, item: &str, since: &Since) -> String {
    since.iter().filter(|(_, first)| revision < *first).fold(item.to_owned(), |item, (name, _)| {
        let mut less = String::with_capacity(item.len());
        with_member(&item, name, None, &mut less);
        less
    })
}

/// The result of a tool: these blocks of content, as raw JSON.
pub(super) fn content(revision: Revision, blocks: &str) -> String {
    complete(revision, &format!(r#""content":[{blocks}]"#))
}

/// The result of a tool: one text.
pub(super) fn text(revision: Revision, text: &str) -> String {
    complete(revision, &worded(text))
}

/// The result of a tool that has failed, in words for the model.
pub(super) fn failure(revision: Revision, why: &str) -> String {
    complete(revision, &(worded(why) + r#","isError":true"#))
}

/// The result of a tool that is an object, and the same as text: early revisions
/// know no other (FEA-01).
pub(super) fn structured(revision: Revision, object: &str) -> String {
    let mut members = worded(object);
    if revision >= Revision::R2025_06_18 {
        members += r#","structuredContent":"#;
        members += object;
    }
    complete(revision, &members)
}

fn worded(text: &str) -> String {
    let mut members = String::with_capacity(text.len() + 40);
    members += r#""content":[{"type":"text","text":"#;
    quote(text, &mut members);
    members += "}]";
    members
}

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut raw = String::with_capacity(text.len() + 2);
    quote(text, &mut raw);
    raw
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(result: &str) -> Value {
        serde_json::from_str(result).unwrap()
    }

    #[test]
    fn only_modern_results_say_what_they_are() {
        assert_eq!(complete(Revision::R2024_11_05, ""), "{}");
        assert_eq!(cacheable(Revision::R2025_11_25, r#""a":1"#, STABLE), r#"{"a":1}"#);
        let result = parse(&cacheable(Revision::R2026_07_28, r#""a":1"#, VOLATILE));
        assert_eq!(result["resultType"], "complete");
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("public")));
        assert_eq!(result["_meta"][meta::SERVER_INFO]["name"], "mcpx");
        assert_eq!(parse(&complete(Revision::R2026_07_28, ""))["resultType"], "complete");
    }

    #[test]
    fn members_appear_with_their_revision() {
        let since = [("b", Revision::R2025_06_18), ("c", Revision::R2025_11_25)];
        let listed = |revision| list(revision, "x", [r#"{"a":1,"b":2,"c":3}"#, "{}"], &since);
        assert_eq!(listed(Revision::R2025_03_26), r#"{"x":[{"a":1},{}]}"#);
        assert_eq!(listed(Revision::R2025_06_18), r#"{"x":[{"a":1,"b":2},{}]}"#);
        assert_eq!(listed(Revision::R2025_11_25), r#"{"x":[{"a":1,"b":2,"c":3},{}]}"#);
    }
}
