//! How each side introduces itself, and what belongs to no feature.

use super::*;

#[test]
fn initialize_ll() {
    let mut bridge = Bridge::closed((R3, R4), json!({"roots": {}}), json!({"tools": {}}));
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "h", "version": "1"}});
    bridge.ask(method::INITIALIZE, params);
    let heard: Value =
        serde_json::from_str(&bridge.world.lines[&bridge.world.spawned[0]][0]).unwrap();
    // What the host speaks: between equals nothing has to be said otherwise.
    assert_eq!(heard["params"]["protocolVersion"], "2025-06-18");
    assert_eq!(heard["params"]["clientInfo"]["name"], "mcpx");
    assert_eq!(heard["params"]["capabilities"], json!({"roots": {}}));
    bridge.introduce();
    let welcome = bridge.down();
    assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(welcome["result"]["serverInfo"]["name"], "mcpx");
    assert_eq!(welcome["result"]["capabilities"], json!({"tools": {}}));
    assert_eq!(welcome["result"]["_meta"][meta::VIA_SERVER]["name"], "s");
    bridge.notify(method::INITIALIZED, json!({}));
    let heard = bridge.world.hear(bridge.server);
    assert!(heard.contains(method::INITIALIZED));
    bridge.quiet();
}

#[test]
fn initialize_lm() {
    let mut bridge = Bridge::closed(LM, json!({}), json!({"tools": {}}));
    let welcome = bridge.begin();
    assert_eq!(welcome["protocolVersion"], "2025-11-25");
    assert_eq!(welcome["serverInfo"]["name"], "mcpx");
    bridge.quiet();
    // The server is asked once, not for each host.
    bridge.another();
    bridge.quiet();
    assert_eq!(bridge.world.spawned.len(), 1);
}

#[test]
fn initialize_ml() {
    let mut bridge = Bridge::closed(ML, json!({}), json!({"tools": {}}));
    assert!(bridge.world.spawned.is_empty());
    bridge.begin();
    // One handshake serves all that can do the same.
    for _ in 0..2 {
        bridge.another();
        bridge.relay(method::TOOLS_LIST, json!({}), json!({"tools": []}));
    }
    assert_eq!(bridge.world.spawned.len(), 1);
    bridge.ask(method::INITIALIZE, json!({}));
    bridge.refused(-32601);
}

#[test]
fn initialize_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.ask(method::INITIALIZE, json!({}));
    bridge.refused(-32601);
}

#[test]
fn discover_ll() {
    let mut bridge = Bridge::open(LL);
    bridge.ask(method::DISCOVER, json!({}));
    bridge.refused(-32601);
}

#[test]
fn discover_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.ask(method::DISCOVER, json!({}));
    bridge.refused(-32601);
    // What the server says holds for as long as it says.
    let mut bridge = Bridge::closed(LM, json!({}), json!({}));
    bridge.introduction["ttlMs"] = json!(1000);
    bridge.introduction["cacheScope"] = json!("public");
    bridge.begin();
    bridge.another();
    bridge.quiet();
}

#[test]
fn discover_ml() {
    let offers = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "tasks": {"cancel": {}}});
    let mut bridge = Bridge::closed(ML, json!({}), offers);
    let found = bridge.begin();
    assert_eq!(
        bare(&found),
        json!({
            "supportedVersions": ["2026-07-28"], "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
        })
    );
    assert_eq!(found["_meta"][meta::SERVER_INFO]["name"], "mcpx");
    assert_eq!(found["_meta"][meta::VIA_SERVER]["name"], "s");
}

#[test]
fn discover_mm() {
    let mut bridge = Bridge::closed(MM, json!({}), json!({"tools": {}}));
    bridge.introduction["ttlMs"] = json!(5000);
    bridge.introduction["cacheScope"] = json!("private");
    let found = bridge.begin();
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    assert_eq!(found["cacheScope"], "private");
    assert!(found["ttlMs"].as_u64().unwrap() <= 5000);
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["_meta"][meta::SERVER_INFO]["name"], "mcpx");
}

/// A legacy host's ping is answered by us.
fn pings(bridge: &mut Bridge) {
    bridge.ask(method::PING, json!({}));
    assert_eq!(bridge.down()["result"], json!({}));
    bridge.quiet();
}

/// So is a legacy server's.
fn is_pinged(bridge: &mut Bridge) {
    let id = bridge.question(method::PING, json!({}));
    let pong = bridge.up();
    assert_eq!((&pong["id"], &pong["result"]), (&id, &json!({})));
    bridge.quiet();
}

#[test]
fn ping_ll() {
    let mut bridge = Bridge::open(LL);
    pings(&mut bridge);
    is_pinged(&mut bridge);
}

#[test]
fn ping_lm() {
    pings(&mut Bridge::open(LM));
}

#[test]
fn ping_ml() {
    let mut bridge = Bridge::open(ML);
    bridge.ask(method::PING, json!({}));
    bridge.refused(-32601);
    is_pinged(&mut bridge);
}

#[test]
fn ping_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.ask(method::PING, json!({}));
    bridge.refused(-32601);
}

fn instructed(speaks: Column) {
    let mut bridge = Bridge::closed(speaks, json!({}), json!({}));
    bridge.introduction["instructions"] = json!("do");
    assert_eq!(bridge.begin()["instructions"], "do");
}

#[test]
fn instructions_ll() {
    instructed(LL);
}

#[test]
fn instructions_lm() {
    instructed(LM);
}

#[test]
fn instructions_ml() {
    instructed(ML);
}

#[test]
fn instructions_mm() {
    instructed(MM);
}

#[test]
fn unknown_method_ll() {
    let mut bridge = Bridge::open(LL);
    let (asked, told) = bridge.relay("experimental/x", json!({"a": 1}), json!({"b": 1}));
    assert_eq!((asked, told), (json!({"a": 1}), json!({"b": 1})));
}

#[test]
fn unknown_method_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.ask("experimental/x", json!({}));
    bridge.refused(-32601);
}

#[test]
fn unknown_method_ml() {
    let mut bridge = Bridge::open(ML);
    bridge.ask("experimental/x", json!({}));
    bridge.refused(-32601);
}

#[test]
fn unknown_method_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.ask("experimental/x", json!({}));
    let asked = bridge.up();
    bridge.fail(&asked, json!({"code": -32601, "message": "no"}));
    bridge.refused(-32601);
}

/// Neither side's unknown notification reaches the other, and none is answered.
fn unknown_notification(speaks: Column) {
    let mut bridge = Bridge::open(speaks);
    bridge.notify("notifications/x", json!({}));
    bridge.tell("notifications/x", json!({}));
    bridge.quiet();
}

#[test]
fn unknown_notification_ll() {
    // Between one host and a session of its own, what others have made of the protocol
    // (`experimental`) travels in both directions, as requests do.
    let mut bridge = Bridge::open(LL);
    bridge.notify("notifications/x", json!({"a": 1}));
    assert_eq!(bridge.up_is("notifications/x")["params"], json!({"a": 1}));
    bridge.tell("notifications/x", json!({"b": 1}));
    assert_eq!(bridge.down_is("notifications/x")["params"], json!({"b": 1}));
    bridge.quiet();
}

#[test]
fn unknown_notification_lm() {
    unknown_notification(LM);
}

#[test]
fn unknown_notification_ml() {
    unknown_notification(ML);
}

#[test]
fn unknown_notification_mm() {
    unknown_notification(MM);
}

const PAIR: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"prompts/list"}]"#;

/// A host of 2025-03-26 sends two requests at once: the server gets them one by one,
/// and it gets two answers at once.
fn split(speaks: Column) {
    let mut bridge = Bridge::open(speaks);
    bridge.world.say(bridge.host, PAIR);
    for method in [method::TOOLS_LIST, method::PROMPTS_LIST] {
        let asked = bridge.up_is(method);
        let list = method.split('/').next().unwrap();
        bridge.answer(&asked, complete(json!({list: []})));
    }
    let answers = bridge.down();
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [1, 2]);
    bridge.quiet();
}

#[test]
fn batch_ll() {
    split((R2, R4));
    // A server of that revision may answer, and ask, several at once.
    let mut bridge = Bridge::open((R4, R2));
    let (_, first) = bridge.call("a");
    let (_, second) = bridge.call("b");
    let answer = |asked: &Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": text("")});
    bridge.server_says(&json!([answer(&second), answer(&first)]));
    assert_eq!((&bridge.down()["id"], &bridge.down()["id"]), (&json!("host/3"), &json!("host/2")));
    bridge.quiet();
    // One of another revision may not.
    let mut bridge = Bridge::open(LL);
    let (_, asked) = bridge.call("a");
    bridge.server_says(&json!([answer(&asked)]));
    bridge.quiet();
}

#[test]
fn batch_lm() {
    split((R2, R5));
}

#[test]
fn batch_ml() {
    let mut bridge = Bridge::open((R5, R2));
    bridge.world.say(bridge.host, PAIR);
    bridge.refused(-32600);
    bridge.can = json!({});
    let (_, first) = bridge.call("a");
    let (_, second) = bridge.call("b");
    let answer = |asked: &Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": text("")});
    bridge.server_says(&json!([answer(&first), answer(&second)]));
    assert!(bridge.down()["result"].is_object() && bridge.down()["result"].is_object());
}

#[test]
fn batch_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.world.say(bridge.host, PAIR);
    bridge.refused(-32600);
    let (_, asked) = bridge.call("a");
    bridge.server_says(&json!([{"jsonrpc": "2.0", "id": asked["id"], "result": text("")}]));
    bridge.quiet();
}

/// What is asked on a connection that is nobody's in particular.
fn answered_by_us(bridge: &mut Bridge) {
    is_pinged(bridge);
    for method in [method::LIST_ROOTS, method::SAMPLE, method::ELICIT, "x/y"] {
        let id = bridge.question(method, json!({}));
        let answer = bridge.up();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32601)), "{method}");
    }
    bridge.quiet();
}

#[test]
fn outside_ll() {
    // Legacy hosts without a session share a connection.
    let mut bridge = Bridge::closed(LL, json!({}), json!({}));
    bridge.host = bridge.post(method::TOOLS_LIST, json!({}), &[]);
    let asked = bridge.up();
    bridge.answer(&asked, json!({"tools": []}));
    assert_eq!(bridge.response().0, 200);
    answered_by_us(&mut bridge);
}

/// A modern server asks in no such way.
fn dropped_question(speaks: Column) {
    let mut bridge = Bridge::open(speaks);
    bridge.question(method::LIST_ROOTS, json!({}));
    bridge.quiet();
    bridge.call("it goes on");
}

#[test]
fn outside_lm() {
    dropped_question(LM);
}

#[test]
fn outside_ml() {
    answered_by_us(&mut Bridge::open(ML));
}

#[test]
fn outside_mm() {
    dropped_question(MM);
}
