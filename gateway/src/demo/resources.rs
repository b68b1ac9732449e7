//! The resources: a text, a picture, a template and a number that changes.

use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::revision::Revision;

use super::fixtures::resources as fixtures;
use super::requests::{not_found, required};
use super::shapes::{self, STABLE, Since, VOLATILE};

/// The resource that changes.
pub(super) const COUNTER: &str = "demo://counter";
const README: &str = "demo://readme";
const PIXEL: &str = "demo://pixel.png";
/// What a URI begins with if it is made from the template.
const GREETING: &str = "demo://greeting/";
/// The template.
pub(super) const TEMPLATE: &str = "demo://greeting/{name}";

const RESOURCES: &[&str] = &[
    r#"{"uri":"demo://readme","name":"readme","title":"Read me","description":"A text","mimeType":"text/plain"}"#,
    r#"{"uri":"demo://pixel.png","name":"pixel","title":"Pixel","description":"A picture","mimeType":"image/png","size":73}"#,
    r#"{"uri":"demo://counter","name":"counter","title":"Counter","description":"A number that the tool `touch` changes","mimeType":"text/plain"}"#,
];

const TEMPLATES: &[&str] = &[
    r#"{"uriTemplate":"demo://greeting/{name}","name":"greeting","title":"Greeting","description":"A greeting for a name","mimeType":"text/plain"}"#,
];

const SINCE: &Since = &[("title", Revision::R2025_06_18)];

const README_TEXT: &str = "This is the demo server of mcpx.\n\nIt has one of everything, so that \
    hosts and gateways can be tried without a server of their own.\n";

/// Two by two pixels of 24 bits, as base64.
pub(super) const PIXEL_BLOB: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR42mN4EKUNRAwQCgAp7gWV+RJsigAAAABJRU5ErkJggg==";

pub(super) fn list(revision: Revision) -> String {
    let all = RESOURCES.iter().chain(fixtures::RESOURCES).copied();
    shapes::list(revision, "resources", all, SINCE)
}

pub(super) fn templates(revision: Revision) -> String {
    let all = TEMPLATES.iter().chain(fixtures::TEMPLATES).copied();
    shapes::list(revision, "resourceTemplates", all, SINCE)
}

/// The result of `resources/read`, while `demo://counter` is at `counter`.
pub(super) fn read(revision: Revision, params: &str, counter: u64) -> Result<String, Fault> {
    let uri = required(params, "uri")?;
    let text = |text: &str| format!(r#""mimeType":"text/plain","text":{}"#, shapes::quoted(text));
    let (content, ttl_ms) = match &*uri {
        README => (text(README_TEXT), STABLE),
        PIXEL => (format!(r#""mimeType":"image/png","blob":"{PIXEL_BLOB}""#), STABLE),
        COUNTER => (text(&counter.to_string()), VOLATILE),
        uri => {
            let content = match greeted(uri) {
                Some(name) => Some(text(&format!("Hello, {name}!"))),
                None => fixtures::read(uri),
            };
            (content.ok_or_else(|| not_found(revision, uri))?, STABLE)
        }
    };
    let uri = shapes::quoted(&uri);
    Ok(shapes::cacheable(revision, &format!(r#""contents":[{{"uri":{uri},{content}}}]"#), ttl_ms))
}

/// Whether there is such a resource.
pub(super) fn exists(uri: &str) -> bool {
    matches!(uri, README | PIXEL | COUNTER)
        || greeted(uri).is_some()
        || fixtures::read(uri).is_some()
}

/// The name in a URI that is made from the template.
fn greeted(uri: &str) -> Option<String> {
    expanded(uri, GREETING, "")
}

/// The variable in a URI that is made from a template with one, which stands
/// between `before` and `after`.
pub(super) fn expanded(uri: &str, before: &str, after: &str) -> Option<String> {
    let raw = uri.strip_prefix(before)?.strip_suffix(after)?;
    // A simple expansion leaves only unreserved characters as they are
    // (RFC 6570 section 3.2.2); we also take others that cannot be mistaken.
    if raw.is_empty() || raw.contains(['/', '?', '#']) {
        return None;
    }
    percent_decoded(raw)
}

fn percent_decoded(raw: &str) -> Option<String> {
    let mut pieces = raw.split('%');
    let mut out = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (hex, rest) = piece.split_at_checked(2)?;
        if !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(hex, 16).ok()?);
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use mcpx_core::protocol::revision::Era;
    use serde_json::json;

    use super::super::testing::{Bench, everywhere};
    use super::*;

    #[test]
    fn greetings_are_decoded() {
        assert_eq!(greeted("demo://greeting/Ada").as_deref(), Some("Ada"));
        assert_eq!(greeted("demo://greeting/J%C3%BCrgen%20K").as_deref(), Some("Jürgen K"));
        for uri in ["", "demo://greeting/", "demo://greeting/a/b", "demo://greeting/%", "x://y"] {
            assert_eq!(greeted(uri), None, "{uri}");
        }
        for uri in ["demo://greeting/%C3", "demo://greeting/%+1", "demo://greeting/%é"] {
            assert_eq!(greeted(uri), None, "{uri}");
        }
    }

    #[test]
    fn resources_of_every_kind_are_read() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let mut read = |uri: &str| {
                let result = bench.result(&host, "resources/read", json!({"uri": uri}));
                assert_eq!(result["ttlMs"].is_u64(), revision.era() == Era::Modern);
                assert_eq!(result["contents"][0]["uri"], uri);
                result["contents"][0].clone()
            };
            assert_eq!(read("demo://readme")["text"], README_TEXT);
            let pixel = read("demo://pixel.png");
            assert_eq!(
                (&pixel["mimeType"], &pixel["blob"]),
                (&json!("image/png"), &json!(PIXEL_BLOB))
            );
            assert_eq!(read("demo://counter")["text"], "0");
            assert_eq!(read("demo://greeting/Ada")["text"], "Hello, Ada!");
        }
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let code = if revision.era() == Era::Modern { -32602 } else { -32002 };
            let params = json!({"uri": "demo://no"});
            let refused = bench.error(&host, "resources/read", params.clone());
            assert_eq!(refused, (code, params));
            assert_eq!(bench.error(&host, "resources/read", json!({"uri": 1})).0, -32602);
        }
    }

    #[test]
    fn every_listed_resource_exists() {
        for item in RESOURCES {
            let item: serde_json::Value = serde_json::from_str(item).unwrap();
            assert!(exists(item["uri"].as_str().unwrap()));
        }
    }
}
