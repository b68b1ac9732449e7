//! Levels, log messages, progress and cancellation.

use super::*;

const LEVEL: &str = meta::LOG_LEVEL;

#[test]
fn set_level_ll() {
    let mut bridge = Bridge::open(LL);
    let (asked, told) = bridge.relay(method::SET_LEVEL, json!({"level": "error"}), json!({}));
    assert_eq!((asked, told), (json!({"level": "error"}), json!({})));
}

#[test]
fn set_level_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.ask(method::SET_LEVEL, json!({"level": "error"}));
    assert_eq!(bridge.down()["result"], json!({}));
    bridge.quiet();
    let (_, asked) = bridge.call("n");
    assert_eq!(asked["params"]["_meta"][LEVEL], "error");
    // It is the level of that session alone.
    bridge.another();
    let (_, asked) = bridge.call("n");
    assert_eq!(asked["params"]["_meta"].get(LEVEL), None);
    bridge.ask(method::SET_LEVEL, json!({"level": "loud"}));
    bridge.refused(-32602);
}

#[test]
fn set_level_ml() {
    let mut bridge = Bridge::between(ML, json!({}));
    bridge.ask(method::SET_LEVEL, json!({"level": "error"}));
    bridge.refused(-32601);
    // Who wants to hear something says so with a request.
    let mut wants = |level: &str, expected: Option<&str>| {
        bridge.ask(method::TOOLS_CALL, json!({"name": "n", "_meta": {LEVEL: level}}));
        if let Some(expected) = expected {
            assert_eq!(bridge.up_is(method::SET_LEVEL)["params"]["level"], expected);
        }
        let asked = bridge.up_is(method::TOOLS_CALL);
        assert!(asked["params"].get("_meta").is_none());
    };
    wants("error", Some("error"));
    wants("critical", None);
    wants("debug", Some("debug"));
}

#[test]
fn set_level_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.ask(method::SET_LEVEL, json!({"level": "error"}));
    bridge.refused(-32601);
    bridge.ask(method::TOOLS_CALL, json!({"name": "n", "_meta": {LEVEL: "info"}}));
    assert_eq!(bridge.up()["params"]["_meta"][LEVEL], "info");
}

fn log(level: &str) -> Value {
    json!({"level": level, "logger": "l", "data": {"a": 1}})
}

#[test]
fn log_ll() {
    let mut bridge = Bridge::open(LL);
    let first = bridge.host;
    bridge.another();
    bridge.tell(method::MESSAGE, log("debug"));
    assert_eq!(bridge.down_is(method::MESSAGE)["params"], log("debug"));
    // The other host has a session of its own.
    assert!(bridge.world.silent(first));
    bridge.quiet();
}

#[test]
fn log_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.ask(method::SET_LEVEL, json!({"level": "info"}));
    bridge.down();
    let other = bridge.host;
    bridge.another();
    bridge.ask(method::SET_LEVEL, json!({"level": "info"}));
    bridge.down();
    let (_, asked) = bridge.call("n");
    bridge.tell(method::MESSAGE, log("info"));
    assert_eq!(bridge.down_is(method::MESSAGE)["params"], log("info"));
    assert!(bridge.world.silent(other));
    bridge.answer(&asked, complete(text("")));
    bridge.down();
    // Whose it is after that, nobody knows.
    bridge.tell(method::MESSAGE, log("info"));
    bridge.quiet();
}

#[test]
fn log_ml() {
    let mut bridge = Bridge::between(ML, json!({}));
    bridge.ask(method::TOOLS_CALL, json!({"name": "n", "_meta": {LEVEL: "info"}}));
    bridge.up_is(method::SET_LEVEL);
    bridge.up_is(method::TOOLS_CALL);
    bridge.tell(method::MESSAGE, log("debug"));
    bridge.quiet();
    bridge.tell(method::MESSAGE, log("info"));
    assert_eq!(bridge.down_is(method::MESSAGE)["params"], log("info"));
    // As soon as it may belong to another's call, it is told to nobody.
    let first = bridge.host;
    bridge.another();
    let (_, asked) = bridge.call("n");
    bridge.tell(method::MESSAGE, log("error"));
    assert!(bridge.world.silent(first));
    bridge.quiet();
    bridge.answer(&asked, text(""));
    bridge.down();
    bridge.host = first;
    bridge.tell(method::MESSAGE, log("error"));
    assert_eq!(bridge.down_is(method::MESSAGE)["params"], log("error"));
}

#[test]
fn log_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.ask(method::TOOLS_CALL, json!({"name": "n", "_meta": {LEVEL: "info"}}));
    let asked = bridge.up();
    bridge.tell(method::MESSAGE, log("info"));
    assert_eq!(bridge.down_is(method::MESSAGE)["params"], log("info"));
    bridge.answer(&asked, complete(text("")));
    bridge.down();
    // Who has not asked to hear any hears none (LOG-01).
    bridge.call("n");
    bridge.tell(method::MESSAGE, log("info"));
    bridge.quiet();
}

/// A call whose progress the host wants to see: what the server was asked.
fn shown(bridge: &mut Bridge) -> Value {
    bridge.ask(method::TOOLS_CALL, json!({"name": "n", "_meta": {"progressToken": "p"}}));
    bridge.up_is(method::TOOLS_CALL)
}

fn progress(bridge: &mut Bridge, asked: &Value, value: u32) {
    let token = &asked["params"]["_meta"]["progressToken"];
    bridge
        .tell(method::PROGRESS, json!({"progressToken": token, "progress": value, "message": "m"}));
}

/// The progress that the host sees next.
fn sees(bridge: &mut Bridge, value: u32, message: bool) {
    let params = bridge.down_is(method::PROGRESS)["params"].clone();
    let mut expected = json!({"progressToken": "p", "progress": value});
    if message {
        expected["message"] = json!("m");
    }
    assert_eq!(bare(&params), expected);
}

#[test]
fn progress_ll() {
    for (host, message) in [(R4, true), (R2, true), (R1, false)] {
        let mut bridge = Bridge::open((host, R4));
        let asked = shown(&mut bridge);
        progress(&mut bridge, &asked, 1);
        sees(&mut bridge, 1, message);
        bridge.answer(&asked, text(""));
        bridge.down();
        // There is none after the answer.
        progress(&mut bridge, &asked, 2);
        bridge.quiet();
    }
}

#[test]
fn progress_lm() {
    let mut bridge = Bridge::open(LM);
    let asked = shown(&mut bridge);
    for value in [1, 2] {
        progress(&mut bridge, &asked, value);
        sees(&mut bridge, value, true);
    }
    let question =
        json!({"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}});
    bridge.answer(&asked, question);
    let question = bridge.down_is(method::LIST_ROOTS);
    bridge.reply(&question, json!({"roots": []}));
    // The next round begins anew, but not for the host.
    let asked = bridge.up_is(method::TOOLS_CALL);
    for value in [1, 2] {
        progress(&mut bridge, &asked, value);
        bridge.quiet();
    }
    progress(&mut bridge, &asked, 3);
    sees(&mut bridge, 3, true);
}

#[test]
fn progress_ml() {
    let mut bridge = Bridge::open(ML);
    let asked = shown(&mut bridge);
    progress(&mut bridge, &asked, 1);
    sees(&mut bridge, 1, true);
    bridge.question(method::LIST_ROOTS, json!({}));
    let parked = bridge.down();
    assert_eq!(parked["result"]["resultType"], "input_required");
    progress(&mut bridge, &asked, 2);
    bridge.quiet();
    let state = &parked["result"]["requestState"];
    let params = json!({
        "name": "n", "requestState": state, "inputResponses": {"q1": {"roots": []}}, "_meta": {"progressToken": "p"},
    });
    bridge.ask(method::TOOLS_CALL, params);
    bridge.up();
    // What goes back is not shown, and nothing twice.
    for value in [1, 2] {
        progress(&mut bridge, &asked, value);
        bridge.quiet();
    }
    progress(&mut bridge, &asked, 3);
    sees(&mut bridge, 3, true);
}

#[test]
fn progress_mm() {
    let mut bridge = Bridge::open(MM);
    let asked = shown(&mut bridge);
    progress(&mut bridge, &asked, 1);
    sees(&mut bridge, 1, true);
    bridge.answer(&asked, complete(text("")));
    bridge.down();
    progress(&mut bridge, &asked, 2);
    bridge.quiet();
}

/// A host cancels its call: the server is told so, and hears and says nothing else.
fn cancelled_down(speaks: Column, can: Value) {
    let mut bridge = Bridge::between(speaks, can);
    let (id, asked) = bridge.call("n");
    bridge.notify(method::CANCELLED, json!({"requestId": id, "reason": "why"}));
    let told = bridge.up_is(method::CANCELLED);
    assert_eq!(told["params"]["requestId"], asked["id"]);
    assert_eq!(told["params"]["reason"], "why");
    bridge.answer(&asked, text("too late"));
    bridge.quiet();
}

#[test]
fn cancelled_from_down_ll() {
    cancelled_down(LL, json!({}));
}

#[test]
fn cancelled_from_down_lm() {
    cancelled_down(LM, json!({}));
}

#[test]
fn cancelled_from_down_ml() {
    cancelled_down(ML, json!({}));
    cancelled_down(ML, json!({"roots": {}}));
    // A call that waits for its host is cancelled when that does not come back.
    let mut bridge = Bridge::open(ML);
    let (_, asked) = bridge.call("n");
    bridge.question(method::LIST_ROOTS, json!({}));
    bridge.down();
    bridge.pass(Duration::from_secs(3600));
    assert_eq!(bridge.up_is(method::CANCELLED)["params"]["requestId"], asked["id"]);
}

#[test]
fn cancelled_from_down_mm() {
    cancelled_down(MM, json!({}));
}

#[test]
fn cancelled_from_up_ll() {
    let mut bridge = Bridge::open(LL);
    let id = bridge.question(method::LIST_ROOTS, json!({}));
    let asked = bridge.down_is(method::LIST_ROOTS);
    bridge.tell(method::CANCELLED, json!({"requestId": id, "reason": "why"}));
    let told = bridge.down_is(method::CANCELLED);
    assert_eq!(told["params"], json!({"requestId": asked["id"], "reason": "why"}));
    bridge.reply(&asked, json!({"roots": []}));
    bridge.quiet();
}

#[test]
fn cancelled_from_up_lm() {
    let mut bridge = Bridge::open(LM);
    let listen = bridge.listen.clone();
    let (_, asked) = bridge.call("n");
    // Only what is listened to may be ended so.
    bridge.tell(method::CANCELLED, json!({"requestId": asked["id"]}));
    bridge.quiet();
    bridge.answer(&asked, complete(text("")));
    assert!(bridge.down()["result"].is_object());
    bridge.tell(method::CANCELLED, json!({"requestId": listen["id"]}));
    bridge.pass(Duration::from_secs(60));
    bridge.introduce();
    assert_ne!(bridge.listen["id"], listen["id"]);
}

#[test]
fn cancelled_from_up_ml() {
    let mut bridge = Bridge::open(ML);
    let (id, asked) = bridge.call("n");
    // Withdrawn before the host is told.
    let question = json!({"jsonrpc": "2.0", "id": "a", "method": method::LIST_ROOTS});
    let withdrawn =
        json!({"jsonrpc": "2.0", "method": method::CANCELLED, "params": {"requestId": "a"}});
    let lines = format!("{question}\n{withdrawn}");
    bridge.world.say(bridge.server, &lines);
    bridge.quiet();
    bridge.answer(&asked, text("a"));
    assert_eq!(bridge.down()["id"], id);
    // And afterwards: what the host answers is for nobody, and the call goes on.
    let (_, asked) = bridge.call("n");
    let id = bridge.question(method::LIST_ROOTS, json!({}));
    let parked = bridge.down();
    bridge.tell(method::CANCELLED, json!({"requestId": id}));
    let state = &parked["result"]["requestState"];
    let params = json!({"name": "n", "arguments": {}, "requestState": state, "inputResponses": {"q1": {"roots": []}}});
    let id = bridge.ask(method::TOOLS_CALL, params);
    bridge.quiet();
    bridge.answer(&asked, text("b"));
    let told = bridge.down();
    assert_eq!((&told["id"], &told["result"]["content"][0]["text"]), (&id, &json!("b")));
}

#[test]
fn cancelled_from_up_mm() {
    let mut bridge = Bridge::open(MM);
    bridge.ask(method::LISTEN, json!({"notifications": {"toolsListChanged": true}}));
    let listen = bridge.up_is(method::LISTEN);
    bridge.tell(
        method::ACKNOWLEDGED,
        tagged(&listen, json!({"notifications": {"toolsListChanged": true}})),
    );
    bridge.down_is(method::ACKNOWLEDGED);
    let (_, asked) = bridge.call("n");
    bridge.tell(method::CANCELLED, json!({"requestId": asked["id"]}));
    bridge.quiet();
    bridge.tell(method::CANCELLED, json!({"requestId": listen["id"]}));
    bridge.pass(Duration::from_secs(60));
    // The host does not notice that another is listened to.
    let again = bridge.up_is(method::LISTEN);
    assert_eq!(again["params"]["notifications"], json!({"toolsListChanged": true}));
}
