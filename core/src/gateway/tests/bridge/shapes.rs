//! Results in the shapes of the host's revision.

use super::*;

/// What a host of each revision sees of what a tool of this server has given.
fn seen(server: Revision, host: Revision, result: Value) -> Value {
    let mut bridge = Bridge::open((host, server));
    let modern =
        |era: Era, result: Value| if era == Era::Modern { complete(result) } else { result };
    let said = modern(server.era(), result);
    let (_, told) = bridge.relay(method::TOOLS_CALL, json!({"name": "n"}), said);
    let mut told = bare(&told);
    if host.era() == Era::Modern {
        assert_eq!(told.as_object_mut().unwrap().remove("resultType"), Some(json!("complete")));
    }
    told
}

/// What a host sees of the tools that a server lists.
fn listed(server: Revision, host: Revision, tool: Value) -> Value {
    let mut bridge = Bridge::open((host, server));
    let said = json!({"tools": [tool]});
    let said = if server.era() == Era::Modern { complete(said) } else { said };
    bridge.relay(method::TOOLS_LIST, json!({}), said).1["tools"][0].clone()
}

const OLD: [Revision; 2] = [R1, R2];
const NEWER: [Revision; 2] = [R3, R4];

fn structured(value: Value) -> Value {
    json!({"content": [], "structuredContent": value})
}

fn tool() -> Value {
    json!({"name": "n", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}})
}

fn old_tool() -> Value {
    json!({"name": "n", "inputSchema": {"type": "object"}})
}

fn object() -> Value {
    json!({"a": [1, 2.50]})
}

/// Hosts that know no structured content have it as text.
fn structured_for_legacy(server: Revision) {
    for host in OLD {
        assert_eq!(seen(server, host, structured(object())), text(r#"{"a":[1,2.5]}"#));
        assert_eq!(listed(server, host, tool()), old_tool());
        // What is there as text already is not said twice.
        let mut both = text(r#"{"a":[1,2.5]}"#);
        both["structuredContent"] = object();
        assert_eq!(seen(server, host, both), text(r#"{"a":[1,2.5]}"#));
    }
    for host in NEWER {
        assert_eq!(seen(server, host, structured(object())), structured(object()));
        assert_eq!(listed(server, host, tool()), tool());
    }
}

#[test]
fn structured_ll() {
    structured_for_legacy(R4);
}

#[test]
fn structured_lm() {
    structured_for_legacy(R5);
    // Legacy hosts know objects only.
    for host in [R1, R2, R3, R4] {
        assert_eq!(seen(R5, host, structured(json!([1]))), text("[1]"));
    }
}

#[test]
fn structured_ml() {
    assert_eq!(seen(R4, R5, structured(object())), structured(object()));
    assert_eq!(listed(R4, R5, tool()), tool());
}

#[test]
fn structured_mm() {
    for value in [object(), json!([1]), json!("x")] {
        assert_eq!(seen(R5, R5, structured(value.clone())), structured(value));
    }
}

fn block(block: Value) -> Value {
    json!({"content": [block]})
}

fn link() -> Value {
    block(json!({"type": "resource_link", "name": "n", "uri": "a:b", "mimeType": "x/y"}))
}

fn link_for_legacy(server: Revision) {
    for host in OLD {
        assert_eq!(seen(server, host, link()), text("n – a:b (x/y)"));
    }
    for host in NEWER {
        assert_eq!(seen(server, host, link()), link());
    }
}

#[test]
fn resource_link_ll() {
    link_for_legacy(R4);
}

#[test]
fn resource_link_lm() {
    link_for_legacy(R5);
}

#[test]
fn resource_link_ml() {
    assert_eq!(seen(R4, R5, link()), link());
}

#[test]
fn resource_link_mm() {
    assert_eq!(seen(R5, R5, link()), link());
}

fn audio() -> Value {
    block(json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}))
}

fn audio_for_legacy(server: Revision) {
    let told = seen(server, R1, audio());
    let embedded = &told["content"][0];
    assert_eq!(embedded["type"], "resource");
    assert_eq!(embedded["resource"]["blob"], "AAAA");
    assert_eq!(embedded["resource"]["mimeType"], "audio/wav");
    assert!(embedded["resource"]["uri"].is_string());
    for host in [R2, R3, R4] {
        assert_eq!(seen(server, host, audio()), audio());
    }
}

fn audible() -> Value {
    let content = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 1})
}

#[test]
fn audio_ll() {
    audio_for_legacy(R4);
    // Nor can such a host sample from it.
    let mut bridge = Bridge::open((R1, R4));
    let id = bridge.question(method::SAMPLE, audible());
    let heard = bridge.up();
    assert_eq!((&heard["id"], &heard["error"]["code"]), (&id, &json!(-32602)));
    bridge.quiet();
}

#[test]
fn audio_lm() {
    audio_for_legacy(R5);
    let mut bridge = Bridge::open((R1, R5));
    let (id, asked) = bridge.call("n");
    let requests = json!({"k": {"method": method::SAMPLE, "params": audible()}});
    bridge.answer(&asked, json!({"resultType": "input_required", "inputRequests": requests}));
    let told = bridge.down();
    assert_eq!((&told["id"], &told["result"]["isError"]), (&id, &json!(true)));
    bridge.quiet();
}

#[test]
fn audio_ml() {
    assert_eq!(seen(R4, R5, audio()), audio());
}

#[test]
fn audio_mm() {
    assert_eq!(seen(R5, R5, audio()), audio());
}

/// A tool with all that revisions have added, and the names of it that a host knows.
fn full() -> Value {
    json!({
        "name": "n", "inputSchema": {}, "title": "t", "icons": [{"src": "https://example.com/i"}],
        "annotations": {"title": "at", "readOnlyHint": true}, "_meta": {"a/b": 1},
    })
}

fn known(host: Revision) -> &'static [&'static str] {
    match host {
        R1 => &["name", "inputSchema"],
        R2 => &["name", "inputSchema", "annotations"],
        R3 => &["name", "inputSchema", "annotations", "title", "_meta"],
        _ => &["name", "inputSchema", "annotations", "title", "_meta", "icons"],
    }
}

fn items_for_legacy(server: Revision) {
    for host in [R1, R2, R3, R4] {
        let tool = listed(server, host, full());
        let mut names: Vec<&str> = tool.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = known(host).to_vec();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{server} to {host}");
        // A title that is missing is not made up.
        assert_eq!(listed(server, host, old_tool()), old_tool());
    }
}

#[test]
fn items_ll() {
    items_for_legacy(R4);
    assert_eq!(listed(R1, R4, old_tool()), old_tool());
}

#[test]
fn items_lm() {
    items_for_legacy(R5);
}

#[test]
fn items_ml() {
    for server in [R1, R2, R3, R4] {
        assert_eq!(listed(server, R5, full()), full());
    }
}

#[test]
fn items_mm() {
    assert_eq!(listed(R5, R5, full()), full());
}
