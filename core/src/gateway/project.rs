//! From a newer revision to an older, legacy one: what that does not know is
//! left out, or said with what it knows (requirements sections 4 and 5).
//!
//! Nothing of this happens between peers of the same revision.

use alloc::string::String;

use crate::jsonrpc::{elements, get, members, quote, string};
use crate::protocol::revision::Revision;
use crate::protocol::shape::{Holds, Shape, block_since};

/// What a host gets that speaks an older revision than its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Projection {
    /// What the host speaks.
    pub(super) to: Revision,
    /// What the answer is; none if it passes as it came.
    pub(super) result: Option<Shape>,
}

impl Projection {
    /// None between equals, and towards a newer host.
    pub(super) fn of(server: Option<Revision>, to: Revision, method: &str) -> Option<Self> {
        server.filter(|server| *server > to).map(|_| Self { to, result: Shape::of_result(method) })
    }

    /// The answer for the host, if it differs.
    pub(super) fn result(self, raw: &str) -> Option<String> {
        self.result.map(|shape| project(raw, shape, self.to))
    }
}

/// An object of this shape as `to` knows it.
pub(super) fn project(raw: &str, shape: Shape, to: Revision) -> String {
    let mut out = String::with_capacity(raw.len());
    object(raw, shape, to, &mut out);
    out
}

fn object(raw: &str, shape: Shape, to: Revision, out: &mut String) {
    if !raw.starts_with('{') {
        return out.push_str(raw);
    }
    if shape == Shape::Block && in_other_words(raw, to, out) {
        return;
    }
    let table = shape.members();
    out.push('{');
    let mut first = true;
    for (key, value) in members(raw) {
        let known = table.iter().find(|member| key == *member.name);
        if known.is_some_and(|member| member.since > to) || is_too_free(shape, key.raw(), value) {
            continue;
        }
        if !core::mem::take(&mut first) {
            out.push(',');
        }
        out.push_str(key.raw());
        out.push(':');
        match known.map(|member| member.holds) {
            Some(Holds::One(inner)) => object(value, inner, to, out),
            Some(Holds::Each(inner)) if value.starts_with('[') => {
                let text = (shape == Shape::Called).then(|| lost_text(raw, value, to)).flatten();
                array(value, inner, to, text, out);
            }
            _ => out.push_str(value),
        }
    }
    out.push('}');
}

fn array(raw: &str, shape: Shape, to: Revision, extra: Option<&str>, out: &mut String) {
    out.push('[');
    let mut first = true;
    for element in elements(raw) {
        if !core::mem::take(&mut first) {
            out.push(',');
        }
        object(element, shape, to, out);
    }
    if let Some(text) = extra {
        if !first {
            out.push(',');
        }
        text_block(text, out);
        out.push('}');
    }
    out.push(']');
}

/// Whether a member is of a kind that only the modern revision allows: there, the
/// structured content of a call may be anything, and its schema with it.
fn is_too_free(shape: Shape, key: &str, value: &str) -> bool {
    match (shape, key) {
        (Shape::Called, r#""structuredContent""#) => !value.starts_with('{'),
        (Shape::Tool, r#""outputSchema""#) => {
            get(value, "type").is_some_and(|kind| kind != r#""object""#)
        }
        _ => false,
    }
}

/// What a call has returned as structured content only, where that is unknown.
fn lost_text<'a>(called: &'a str, content: &str, to: Revision) -> Option<&'a str> {
    let structured = get(called, "structuredContent")
        .filter(|value| to < Revision::R2025_06_18 || !value.starts_with('{'))?;
    let is_text = |block| kind(block).as_deref() == Some("text");
    (!elements(content).any(is_text)).then_some(structured)
}

/// A block of a kind that is unknown, with what is known. Says whether it is one.
fn in_other_words(raw: &str, to: Revision, out: &mut String) -> bool {
    let Some(kind) = kind(raw).filter(|kind| block_since(kind) > to) else { return false };
    let member = |name| get(raw, name).and_then(string);
    if kind == "audio" {
        out.push_str(r#"{"type":"resource","resource":{"uri":"mcpx:audio""#);
        for (name, of) in [("mimeType", "mimeType"), ("blob", "data")] {
            if let Some(value) = get(raw, of) {
                out.push_str(",\"");
                out.push_str(name);
                out.push_str("\":");
                out.push_str(value);
            }
        }
        out.push('}');
    } else {
        let (name, uri) = (member("name").unwrap_or_default(), member("uri").unwrap_or_default());
        let mut text = alloc::format!("{name} \u{2013} {uri}");
        if let Some(media) = member("mimeType") {
            text.push_str(" (");
            text.push_str(&media);
            text.push(')');
        }
        text_block(&text, out);
    }
    if let Some(annotations) = get(raw, "annotations") {
        out.push_str(",\"annotations\":");
        object(annotations, Shape::Annotations, to, out);
    }
    out.push('}');
    true
}

/// Begins a block of text.
fn text_block(text: &str, out: &mut String) {
    out.push_str(r#"{"type":"text","text":"#);
    quote(text, out);
}

fn kind(block: &str) -> Option<alloc::borrow::Cow<'_, str>> {
    get(block, "type").and_then(string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25};

    const TOOLS: &str = r#"{"tools":[{"name":"n", "x":1.0,"title":"t","description":"d","inputSchema":{"title":"kept"},"outputSchema":{},"annotations":{"title":"a"},"icons":[],"execution":{},"_meta":{}}],"nextCursor":"c","_meta":{"k":1}}"#;

    #[test]
    fn tools_lose_what_is_younger_than_the_host() {
        let to = |revision| project(TOOLS, Shape::Tools, revision);
        let rest = r#"],"nextCursor":"c","_meta":{"k":1}}"#;
        let first = r#"{"tools":[{"name":"n","x":1.0,"#;
        let input = r#""description":"d","inputSchema":{"title":"kept"}"#;
        assert_eq!(to(R2024_11_05), alloc::format!("{first}{input}}}{rest}"));
        let annotated = r#","annotations":{"title":"a"}"#;
        assert_eq!(to(R2025_03_26), alloc::format!("{first}{input}{annotated}}}{rest}"));
        let more = r#","outputSchema":{}"#;
        assert_eq!(
            to(R2025_06_18),
            alloc::format!(r#"{first}"title":"t",{input}{more}{annotated},"_meta":{{}}}}{rest}"#)
        );
        assert!(to(R2025_11_25).contains("icons") && to(R2025_11_25).contains("execution"));
    }

    #[test]
    fn prompts_and_resources_lose_titles_and_icons() {
        let prompts = r#"{"prompts":[{"name":"p","title":"t","arguments":[{"name":"a","title":"t"}],"icons":[]}]}"#;
        assert_eq!(
            project(prompts, Shape::Prompts, R2025_03_26),
            r#"{"prompts":[{"name":"p","arguments":[{"name":"a"}]}]}"#
        );
        assert!(
            project(prompts, Shape::Prompts, R2025_06_18).contains(r#""name":"a","title":"t""#)
        );
        let resource = r#"{"uri":"u","name":"n","title":"t","size":3,"annotations":{"priority":1,"lastModified":"x"},"_meta":{}}"#;
        let old = r#"{"uri":"u","name":"n","size":3,"annotations":{"priority":1}}"#;
        for (name, shape) in
            [("resources", Shape::Resources), ("resourceTemplates", Shape::Templates)]
        {
            let list = |item: &str| alloc::format!(r#"{{"{name}":[{item}]}}"#);
            assert_eq!(project(&list(resource), shape, R2024_11_05), list(old));
            assert_eq!(project(&list(resource), shape, R2025_06_18), list(resource));
        }
        let read = r#"{"contents":[{"uri":"u","text":"x","_meta":{}}]}"#;
        assert_eq!(
            project(read, Shape::Read, R2025_03_26),
            r#"{"contents":[{"uri":"u","text":"x"}]}"#
        );
    }

    #[test]
    fn content_is_said_with_what_is_known() {
        let audio = r#"{"type":"audio","data":"QQ==","mimeType":"audio/wav","_meta":{}}"#;
        let link = r#"{"type":"resource_link","name":"n\"","uri":"u","mimeType":"m","annotations":{"priority":1,"lastModified":"x"}}"#;
        let block = |raw: &str, to| project(raw, Shape::Block, to);
        assert_eq!(
            block(audio, R2024_11_05),
            r#"{"type":"resource","resource":{"uri":"mcpx:audio","mimeType":"audio/wav","blob":"QQ=="}}"#
        );
        assert_eq!(
            block(audio, R2025_03_26),
            r#"{"type":"audio","data":"QQ==","mimeType":"audio/wav"}"#
        );
        assert_eq!(
            block(link, R2025_03_26),
            r#"{"type":"text","text":"n\" – u (m)","annotations":{"priority":1}}"#
        );
        assert_eq!(block(link, R2025_06_18), link);
        let prompted = alloc::format!(r#"{{"messages":[{{"role":"user","content":{link}}}]}}"#);
        assert!(project(&prompted, Shape::Prompted, R2024_11_05).contains(r#""type":"text""#));
    }

    #[test]
    fn structured_content_is_never_lost() {
        let to = |raw: &str, revision| project(raw, Shape::Called, revision);
        let only = r#"{"content":[],"structuredContent":{"a":"b"},"isError":false}"#;
        assert_eq!(
            to(only, R2025_03_26),
            r#"{"content":[{"type":"text","text":"{\"a\":\"b\"}"}],"isError":false}"#
        );
        let both = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{}}"#;
        assert_eq!(to(both, R2024_11_05), r#"{"content":[{"type":"text","text":"x"}]}"#);
        assert_eq!(to(both, R2025_06_18), both);
    }

    #[test]
    fn oddities_pass() {
        for odd in ["null", "[]", "1", r#"{"tools":null}"#, r#"{"tools":[1,"x"]}"#] {
            assert_eq!(project(odd, Shape::Tools, R2024_11_05), odd);
        }
    }

    #[test]
    fn nothing_changes_between_equals_and_upwards() {
        for (server, host) in [(R2025_06_18, R2025_06_18), (R2024_11_05, R2025_11_25)] {
            assert_eq!(Projection::of(Some(server), host, "tools/list"), None);
        }
        assert_eq!(Projection::of(None, R2024_11_05, "tools/list"), None);
        let down = Projection::of(Some(R2025_11_25), R2024_11_05, "tools/list").unwrap();
        assert_eq!(down.result, Some(Shape::Tools));
        let other = Projection::of(Some(R2025_11_25), R2024_11_05, "completion/complete").unwrap();
        assert_eq!(other.result("{}"), None);
    }
}
