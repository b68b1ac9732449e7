//! What hosts ask for, and get at once.

use mcpx_core::protocol::revision::Revision;
use mcpx_tests::host::Host;
use mcpx_tests::net::Upstream;
use serde_json::json;

use crate::stage::Stage;

pub(crate) fn handshake(stage: &mut Stage<'_>) {
    let host = stage.host();
    let welcome = &host.welcome;
    assert!(welcome["capabilities"]["tools"].is_object(), "{welcome}");
    if stage.is_modern() {
        assert_eq!(welcome["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(welcome["resultType"], "complete");
        assert_eq!(host.session, None);
    } else {
        assert_eq!(welcome["serverInfo"]["name"], "mcpx");
        assert_eq!(host.session.is_some(), stage.door.is_http());
    }
}

pub(crate) fn tools(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let list = host.call(net, "tools/list", json!({}));
    let tools = list.result()["tools"].as_array().unwrap();
    let add = tools.iter().find(|tool| tool["name"] == "add").unwrap();
    let structured = stage.revision >= Revision::R2025_06_18;
    assert_eq!(add.get("outputSchema").is_some(), structured);
    for message in ["hello", "", "é\u{1F600}\n\t\"\\/\u{7f}\u{2028}", &"long ".repeat(50_000)] {
        let answer = host.tool(net, "echo", json!({"message": message}));
        assert_eq!(answer.text(), format!("Echo: {message}"));
    }
    let sum = host.tool(net, "add", json!({"a": 1.5, "b": 2}));
    let expected = structured.then(|| json!({"sum": 3.5}));
    assert_eq!(sum.result().get("structuredContent").cloned(), expected);
    assert_eq!(host.tool(net, "nonsense", json!({})).code(), -32602);
    assert!(host.rest().is_empty());
}

pub(crate) fn resources(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let list = host.call(net, "resources/list", json!({}));
    assert!(!list.result()["resources"].as_array().unwrap().is_empty());
    let templates = host.call(net, "resources/templates/list", json!({}));
    assert!(!templates.result()["resourceTemplates"].as_array().unwrap().is_empty());
    let mut read = |uri: &str| host.call(net, "resources/read", json!({"uri": uri}));
    assert_eq!(read("demo://counter").result()["contents"][0]["text"], "0");
    assert!(read("demo://pixel.png").result()["contents"][0]["blob"].is_string());
    assert_eq!(read("demo://greeting/Ada").result()["contents"][0]["text"], "Hello, Ada!");
    let unknown = read("demo://no");
    assert_eq!(unknown.code(), if stage.is_modern() { -32602 } else { -32002 });
}

pub(crate) fn prompts(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    let list = host.call(net, "prompts/list", json!({}));
    assert!(list.result()["prompts"].as_array().unwrap().iter().any(|one| one["name"] == "greet"));
    let params = json!({"name": "greet", "arguments": {"name": "Ada", "style": "pirate"}});
    let prompt = host.call(net, "prompts/get", params);
    let text = prompt.result()["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Ada") && text.contains("pirate"));
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "a"},
    });
    let completion = host.call(net, "completion/complete", params);
    assert_eq!(completion.result()["completion"]["values"], json!(["Ada", "Alan"]));
}

/// Ids come back as they were, whatever they are.
pub(crate) fn ids(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    for id in [
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_993_u64),
        json!(i64::MIN),
        json!(""),
        json!("1"),
        json!("mcpx-1"),
        json!("é\"\\\n\u{0}\u{1F600}"),
        json!("x".repeat(1000)),
    ] {
        host.request_as(net, id.clone(), "tools/list", json!({}));
        assert!(host.answer(net, &id).result()["tools"].is_array());
    }
    assert!(host.rest().is_empty());
}

pub(crate) fn unknown_methods(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    assert_eq!(host.call(net, "nonsense/method", json!({})).code(), -32601);
    host.notify(net, "notifications/nonsense", json!({}));
    assert_eq!(host.tool(net, "echo", json!({"message": "m"})).text(), "Echo: m");
    assert!(host.rest().is_empty());
}

pub(crate) fn ping(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    assert_eq!(host.call(stage.net, "ping", json!({})).result(), &json!({}));
}

/// One connection serves one request after another, and pipelined ones in
/// order.
pub(crate) fn keep_alive(stage: &mut Stage<'_>) {
    let mut host = stage.host();
    let net = &mut *stage.net;
    for n in 0..20 {
        let message = n.to_string();
        let answer = host.tool(net, "echo", json!({"message": message}));
        assert_eq!(answer.text(), format!("Echo: {message}"));
        host.settle(net);
    }
    if stage.upstream == Upstream::Demo && !stage.is_modern() {
        pipelined(&mut host, stage);
    }
}

fn pipelined(host: &mut Host, stage: &mut Stage<'_>) {
    let net = &mut *stage.net;
    let line = net.open(stage.door);
    let session = host.session.as_deref().unwrap();
    let mut bytes = String::new();
    for id in 0..3 {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        bytes.push_str(&format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {session}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }
    net.write(line, bytes.as_bytes());
    let mut heard = String::new();
    while heard.matches("\"result\"").count() < 3 {
        net.wait(&[line]);
        heard.push_str(&String::from_utf8(net.read(line)).unwrap());
        assert!(!net.ended(line));
    }
    let places: Vec<_> = (0..3).map(|id| heard.find(&format!("\"id\":{id}")).unwrap()).collect();
    assert!(places.is_sorted());
}
