//! Header fields and streams, where both sides speak HTTP.

use super::*;

/// A request that reached the URL.
struct Asked {
    conn: ConnId,
    head: String,
    body: Value,
}

impl Asked {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

fn web(speaks: Column) -> Bridge {
    let url = Url::parse("http://localhost:1/mcp").unwrap();
    let offers = json!({"tools": {}});
    Bridge::before(
        Server::new("server", Place::Url { url, fields: Vec::new() }),
        speaks,
        json!({}),
        offers,
    )
}

/// What reached the URL since the last time.
fn reached(bridge: &mut Bridge) -> Vec<Asked> {
    let mut all = Vec::new();
    for conn in bridge.world.spawned.clone() {
        let mut head = String::new();
        for line in bridge.world.lines.remove(&conn).unwrap_or_default() {
            if line.starts_with('{') {
                let body = serde_json::from_str(&line).unwrap();
                all.push(Asked { conn, head: core::mem::take(&mut head), body });
            } else if line.is_empty() && !head.starts_with("POST") {
                all.push(Asked { conn, head: core::mem::take(&mut head), body: Value::Null });
            } else {
                head += &format!("{line}\n");
            }
        }
    }
    all
}

fn respond(bridge: &mut Bridge, conn: ConnId, status: &str, fields: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    let bytes = format!("{head}{body}");
    bridge.world.handle(Input::Received { conn, bytes: bytes.as_bytes() });
}

const JSON: &str = "Content-Type: application/json\r\n";

/// The server behaves well until it is asked something else: that.
fn asked(bridge: &mut Bridge) -> Asked {
    loop {
        let mut other = None;
        let all = reached(bridge);
        assert!(!all.is_empty(), "the URL was asked nothing");
        for asked in all {
            let mut result = bridge.introduction.clone();
            result["capabilities"] = bridge.offers.clone();
            let mut fields = String::from(JSON);
            match asked.body["method"].as_str() {
                Some(method::INITIALIZE) => {
                    result["protocolVersion"] = json!(bridge.speaks.1.to_string());
                    fields += "Mcp-Session-Id: theirs\r\n";
                }
                Some(method::DISCOVER) => {
                    result["supportedVersions"] = json!([bridge.speaks.1.to_string()]);
                    result["resultType"] = json!("complete");
                }
                Some(method::INITIALIZED) => {
                    respond(bridge, asked.conn, "202 Accepted", "", "");
                    continue;
                }
                None if asked.head.starts_with("GET") => {
                    respond(bridge, asked.conn, "405 Method Not Allowed", "", "");
                    continue;
                }
                _ => {
                    other = Some(asked);
                    continue;
                }
            }
            let id = &asked.body["id"];
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            respond(bridge, asked.conn, "200 OK", &fields, &answer);
        }
        if let Some(asked) = other {
            return asked;
        }
    }
}

/// A legacy host begins a session over HTTP: its header field.
fn session(bridge: &mut Bridge) -> String {
    let info = json!({"name": "h", "version": "1"});
    let revision = bridge.speaks.0.to_string();
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": info});
    bridge.post(method::INITIALIZE, params, &[]);
    for asked in reached(bridge) {
        let mut result = json!({"capabilities": bridge.offers, "resultType": "complete"});
        result["protocolVersion"] = json!(bridge.speaks.1.to_string());
        result["supportedVersions"] = json!([bridge.speaks.1.to_string()]);
        let id = &asked.body["id"];
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let fields = format!("{JSON}Mcp-Session-Id: theirs\r\n");
        respond(bridge, asked.conn, "200 OK", &fields, &answer);
    }
    let (status, head, _) = bridge.response();
    assert_eq!(status, 200);
    let field = head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id"));
    let field = field.unwrap().to_string();
    assert!(!field.contains("theirs"));
    field
}

/// What a host adds to its requests that is between it and us.
fn own(session: &str) -> Vec<String> {
    let (version, after) = ("MCP-Protocol-Version: 2025-11-25", "Last-Event-ID: 1");
    Vec::from([session, version, after].map(String::from))
}

fn call(bridge: &mut Bridge, fields: &[String]) -> Asked {
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    bridge.post(method::TOOLS_CALL, json!({"name": "n", "arguments": {}}), &fields);
    let asked = asked(bridge);
    assert_eq!(asked.body["method"], method::TOOLS_CALL);
    asked
}

fn answered(bridge: &mut Bridge, asked: &Asked) -> String {
    let id = &asked.body["id"];
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": complete(text("t"))}).to_string();
    respond(bridge, asked.conn, "200 OK", JSON, &answer);
    let (status, head, messages) = bridge.response();
    assert_eq!(status, 200);
    assert_eq!(messages[0]["result"]["content"][0]["text"], "t");
    head.to_lowercase()
}

/// What a legacy server at a URL is told in the header.
fn legacy_fields(asked: &Asked) {
    assert_eq!(asked.field("MCP-Protocol-Version"), Some("2025-11-25"));
    assert_eq!(asked.field("Mcp-Session-Id"), Some("theirs"));
    for name in ["Last-Event-ID", "Mcp-Method", "Mcp-Name"] {
        assert_eq!(asked.field(name), None, "{name}");
    }
}

/// The same of a modern one.
fn modern_fields(asked: &Asked) {
    assert_eq!(asked.field("MCP-Protocol-Version"), Some("2026-07-28"));
    assert_eq!(asked.field("Mcp-Method"), Some("tools/call"));
    assert_eq!(asked.field("Mcp-Name"), Some("n"));
    for name in ["Last-Event-ID", "Mcp-Session-Id"] {
        assert_eq!(asked.field(name), None, "{name}");
    }
}

#[test]
fn headers_ll() {
    let mut bridge = web(LL);
    let session = session(&mut bridge);
    let asked = call(&mut bridge, &own(&session));
    legacy_fields(&asked);
    answered(&mut bridge, &asked);
}

#[test]
fn headers_lm() {
    let mut bridge = web(LM);
    let session = session(&mut bridge);
    let asked = call(&mut bridge, &own(&session));
    modern_fields(&asked);
    answered(&mut bridge, &asked);
}

#[test]
fn headers_ml() {
    let mut bridge = web(ML);
    let asked = call(&mut bridge, &[]);
    legacy_fields(&asked);
    // A host that says one thing in the header and another in the body is refused.
    assert!(!answered(&mut bridge, &asked).contains("mcp-session-id"));
    bridge.post(method::TOOLS_CALL, json!({"name": "other"}), &["Mcp-Name: n"]);
    let (status, _, messages) = bridge.response();
    assert_eq!((status, &messages[0]["error"]["code"]), (400, &json!(-32020)));
}

#[test]
fn headers_mm() {
    let mut bridge = web(MM);
    let foreign = ["Mcp-Session-Id: x", "Last-Event-ID: 1"].map(String::from);
    let asked = call(&mut bridge, &foreign);
    modern_fields(&asked);
    assert!(!answered(&mut bridge, &asked).contains("mcp-session-id"));
}

/// The server answers a call with a stream that has ids; what the host's stream has of
/// them, and whether it begins with one.
fn streamed(speaks: Column) -> (String, bool) {
    let mut bridge = web(speaks);
    let mut fields = Vec::new();
    if speaks.0.era() == Era::Legacy {
        let version = format!("MCP-Protocol-Version: {}", speaks.0);
        fields.extend([session(&mut bridge), version]);
    }
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let params = json!({"name": "n", "_meta": {"progressToken": "p"}});
    bridge.post(method::TOOLS_CALL, params, &fields);
    let asked = asked(&mut bridge);
    let token = &asked.body["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 1});
    let progress = json!({"jsonrpc": "2.0", "method": method::PROGRESS, "params": params});
    let id = &asked.body["id"];
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": complete(text("t"))});
    let events = format!(
        "id: theirs/1\ndata:\n\nid: theirs/2\ndata: {progress}\n\nid: theirs/3\ndata: {answer}\n\n"
    );
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let bytes = format!("{head}{events}");
    bridge.world.handle(Input::Received { conn: asked.conn, bytes: bytes.as_bytes() });
    let lines = bridge.world.lines.remove(&bridge.host).unwrap();
    let all = lines.join("\n");
    assert!(all.contains("text/event-stream") && all.contains("\"progressToken\":\"p\""), "{all}");
    assert!(all.contains("\"text\":\"t\"") && !all.contains("theirs"), "{all}");
    let ids: Vec<&str> =
        lines.iter().filter(|line| line.starts_with("id:")).map(String::as_str).collect();
    let primed = lines.iter().any(|line| line.trim_end() == "data:");
    (ids.join(" "), primed)
}

#[test]
fn streams_ll() {
    for (host, primes) in [(R4, true), (R3, false), (R2, false)] {
        let (ids, primed) = streamed((host, R4));
        assert!(!ids.is_empty());
        assert_eq!(primed, primes, "{host}");
    }
}

#[test]
fn streams_lm() {
    for (host, primes) in [(R4, true), (R3, false)] {
        let (ids, primed) = streamed((host, R5));
        assert!(!ids.is_empty());
        assert_eq!(primed, primes, "{host}");
    }
}

#[test]
fn streams_ml() {
    assert_eq!(streamed(ML), (String::new(), false));
}

#[test]
fn streams_mm() {
    assert_eq!(streamed(MM), (String::new(), false));
}

/// Whether a host that hangs up has cancelled its call: what becomes of that.
fn hung_up(speaks: Column) -> (Vec<Asked>, bool) {
    let mut bridge = web(speaks);
    let mut fields = Vec::new();
    if speaks.0.era() == Era::Legacy {
        fields = own(&session(&mut bridge));
        fields.pop();
    }
    let asked = call(&mut bridge, &fields);
    let conn = bridge.host;
    bridge.world.handle(Input::Closed { conn, why: CloseReason::Reset });
    let told = reached(&mut bridge);
    let closed = bridge.world.closed.contains(&asked.conn);
    (told, closed)
}

#[test]
fn hanging_up_ll() {
    let (told, closed) = hung_up(LL);
    assert!(told.iter().all(|asked| asked.body["method"] != method::CANCELLED) && !closed);
}

#[test]
fn hanging_up_lm() {
    let (told, closed) = hung_up(LM);
    assert!(told.is_empty() && !closed);
}

#[test]
fn hanging_up_ml() {
    let (told, _) = hung_up(ML);
    assert!(told.iter().any(|asked| asked.body["method"] == method::CANCELLED));
}

#[test]
fn hanging_up_mm() {
    let (told, closed) = hung_up(MM);
    assert!(told.is_empty() && closed);
}
