//! Calls that come back with questions, their state, and tasks.

use super::*;

fn asks(keys: &[&str], state: Option<&str>) -> Value {
    let requests: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_string(), json!({"method": "roots/list"}))).collect();
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

fn roots() -> Value {
    json!({"roots": []})
}

#[test]
fn input_required_ll() {
    // These names mean nothing to legacy peers: they pass as anything does.
    let mut bridge = Bridge::open(LL);
    let params =
        json!({"name": "n", "arguments": {}, "inputResponses": {"k": 1}, "requestState": "s"});
    let result = json!({"content": [], "inputRequests": {"k": 1}, "requestState": "s"});
    let (asked, told) = bridge.relay(method::TOOLS_CALL, params.clone(), result.clone());
    assert_eq!((asked, told), (params, result));
}

#[test]
fn input_required_lm() {
    let mut bridge = Bridge::open(LM);
    let (id, mut asked) = bridge.call("n");
    // As many rounds as the server wants, with as many questions, in one call.
    for (keys, state) in [(&["a", "b"][..], Some("1")), (&["c"][..], None)] {
        bridge.answer(&asked, asks(keys, state));
        for _ in keys {
            let question = bridge.down_is(method::LIST_ROOTS);
            bridge.reply(&question, roots());
        }
        asked = bridge.up_is(method::TOOLS_CALL);
        let answers: Map<String, Value> =
            keys.iter().map(|key| ((*key).to_string(), roots())).collect();
        assert_eq!(asked["params"]["inputResponses"], Value::Object(answers));
        assert_eq!(asked["params"].get("requestState"), state.map(|state| json!(state)).as_ref());
    }
    bridge.answer(&asked, complete(text("done")));
    assert_eq!(bridge.down(), json!({"jsonrpc": "2.0", "id": id, "result": text("done")}));
    bridge.quiet();
}

#[test]
fn input_required_ml() {
    let mut bridge = Bridge::open(ML);
    let (_, asked) = bridge.call("n");
    // What is asked at once is told at once.
    let question = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
    let lines = format!("{}\n{}", question("x"), question("y"));
    bridge.world.say(bridge.server, &lines);
    let parked = bridge.down();
    let requests = parked["result"]["inputRequests"].as_object().unwrap();
    let answers: Map<String, Value> = requests.keys().map(|key| (key.clone(), roots())).collect();
    assert_eq!(answers.len(), 2);
    let state = &parked["result"]["requestState"];
    let params =
        json!({"name": "n", "arguments": {}, "inputResponses": answers, "requestState": state});
    let id = bridge.ask(method::TOOLS_CALL, params);
    for id in ["x", "y"] {
        let answer = bridge.up();
        assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &roots()));
    }
    bridge.answer(&asked, text("done"));
    assert_eq!(bridge.down()["id"], id);
}

#[test]
fn input_required_mm() {
    let mut bridge = Bridge::open(MM);
    let (asked, told) =
        bridge.relay(method::TOOLS_CALL, json!({"name": "n"}), asks(&["a", "b"], Some("s")));
    assert_eq!(asked.get("inputResponses"), None);
    assert_eq!(told["inputRequests"], asks(&["a", "b"], None)["inputRequests"]);
    assert_eq!(told["resultType"], "input_required");
}

#[test]
fn request_state_ll() {
    input_required_ll();
}

#[test]
fn request_state_lm() {
    // It stays with us: what the host says of one goes no further.
    let mut bridge = Bridge::open(LM);
    let (_, asked) = bridge.call("n");
    bridge.answer(&asked, asks(&["k"], Some("theirs")));
    let question = bridge.down_is(method::LIST_ROOTS);
    assert!(!question.to_string().contains("theirs"));
    bridge.reply(&question, roots());
    assert_eq!(bridge.up()["params"]["requestState"], "theirs");
}

/// A host comes back with this state.
fn back(bridge: &mut Bridge, name: &str, state: &Value) {
    let params = json!({"name": name, "inputResponses": {"q1": roots(), "k": roots()}, "requestState": state});
    bridge.ask(method::TOOLS_CALL, params);
}

#[test]
fn request_state_ml() {
    let mut bridge = Bridge::open(ML);
    bridge.ask(method::TOOLS_CALL, json!({"name": "n"}));
    bridge.up();
    bridge.question(method::LIST_ROOTS, json!({}));
    let state = bridge.down()["result"]["requestState"].clone();
    let owner = bridge.host;
    // Another call, another host, and what is no state of ours.
    back(&mut bridge, "other", &state);
    bridge.refused(-32602);
    back(&mut bridge, "n", &json!("AAAA"));
    bridge.refused(-32602);
    bridge.another();
    back(&mut bridge, "n", &state);
    bridge.refused(-32602);
    bridge.host = owner;
    back(&mut bridge, "n", &state);
    assert_eq!(bridge.up()["result"], roots());
    // It is good once.
    back(&mut bridge, "n", &state);
    bridge.refused(-32602);
    // And for a while.
    let mut bridge = Bridge::open(ML);
    bridge.ask(method::TOOLS_CALL, json!({"name": "n"}));
    bridge.up();
    bridge.question(method::LIST_ROOTS, json!({}));
    let state = bridge.down()["result"]["requestState"].clone();
    bridge.pass(Duration::from_secs(3600));
    bridge.up_is(method::CANCELLED);
    back(&mut bridge, "n", &state);
    bridge.refused(-32602);
}

#[test]
fn request_state_mm() {
    let mut bridge = Bridge::open(MM);
    let (_, told) =
        bridge.relay(method::TOOLS_CALL, json!({"name": "n"}), asks(&["k"], Some("theirs")));
    let state = told["requestState"].clone();
    assert_ne!(state, "theirs");
    let owner = bridge.host;
    for name in ["other", "n"] {
        back(&mut bridge, name, &state);
        if name == "n" {
            assert_eq!(bridge.up()["params"]["requestState"], "theirs");
        } else {
            bridge.refused(-32602);
        }
    }
    bridge.another();
    assert_ne!(bridge.host, owner);
    back(&mut bridge, "n", &state);
    bridge.refused(-32602);
}

/// Offers to make tasks, as each era says it.
fn task_offers(era: Era) -> Value {
    match era {
        Era::Legacy => {
            json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}})
        }
        Era::Modern => json!({"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}),
    }
}

fn with_tasks(speaks: Column, can: Value) -> (Bridge, Value) {
    let mut bridge = Bridge::closed(speaks, can, task_offers(speaks.1.era()));
    let begun = bridge.begin();
    (bridge, begun["capabilities"].clone())
}

const TASKS: [&str; 4] = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"];

#[test]
fn tasks_ll() {
    let (mut bridge, offers) = with_tasks(LL, json!({}));
    assert_eq!(offers, task_offers(Era::Legacy));
    let made = json!({"task": {"taskId": "t", "status": "working"}});
    let params = json!({"name": "n", "task": {"ttl": 5}});
    let (asked, told) = bridge.relay(method::TOOLS_CALL, params.clone(), made.clone());
    assert_eq!((asked, told), (params, made));
    let about = json!({"taskId": "t"});
    let (asked, _) = bridge.relay("tasks/get", about.clone(), json!({"taskId": "t"}));
    assert_eq!(asked, about);
    // Others are not offered any.
    let (_, offers) = with_tasks((R3, R4), json!({}));
    assert_eq!(offers, json!({"tools": {}}));
}

#[test]
fn tasks_lm() {
    let (mut bridge, offers) = with_tasks(LM, json!({}));
    assert_eq!(offers, json!({"tools": {}}));
    let id = bridge.ask(method::TOOLS_CALL, json!({"name": "n"}));
    let asked = bridge.up_is(method::TOOLS_CALL);
    let can = &asked["params"]["_meta"][meta::CLIENT_CAPABILITIES];
    assert_eq!(can["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
    // The task is ours to look after.
    bridge.answer(
        &asked,
        json!({"resultType": "task", "taskId": "t", "status": "working", "pollIntervalMs": 100}),
    );
    bridge.quiet();
    bridge.pass(Duration::from_millis(150));
    let polled = bridge.up_is("tasks/get");
    assert_eq!(polled["params"]["taskId"], "t");
    bridge.answer(
        &polled,
        json!({"taskId": "t", "status": "completed", "result": complete(text("done"))}),
    );
    assert_eq!(bridge.down(), json!({"jsonrpc": "2.0", "id": id, "result": text("done")}));
    for method in TASKS {
        bridge.ask(method, json!({"taskId": "t"}));
        bridge.refused(-32601);
    }
}

#[test]
fn tasks_ml() {
    let (mut bridge, offers) = with_tasks(ML, json!({}));
    assert_eq!(offers, json!({"tools": {}}));
    let (id, asked) = bridge.call("n");
    assert_eq!(asked["params"].get("task"), None);
    // A tool that must be a task is one.
    bridge.fail(&asked, json!({"code": -32601, "message": "only as a task"}));
    let asked = bridge.up_is(method::TOOLS_CALL);
    assert_eq!(asked["params"]["task"], json!({}));
    bridge.answer(&asked, json!({"task": {"taskId": "t", "status": "working"}}));
    let waited = bridge.up_is("tasks/result");
    assert_eq!(waited["params"]["taskId"], "t");
    bridge.answer(&waited, text("done"));
    let told = bridge.down();
    assert_eq!((&told["id"], bare(&told["result"])), (&id, complete(text("done"))));
    for method in TASKS {
        bridge.ask(method, json!({"taskId": "t"}));
        bridge.refused(-32601);
    }
}

#[test]
fn tasks_mm() {
    let knows = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let (mut bridge, offers) = with_tasks(MM, knows);
    assert_eq!(offers, task_offers(Era::Modern));
    let made = json!({"resultType": "task", "taskId": "t", "status": "working"});
    let (_, told) = bridge.relay(method::TOOLS_CALL, json!({"name": "n"}), made);
    let id = told["taskId"].clone();
    assert_ne!(id, "t");
    let (asked, told) = bridge.relay(
        "tasks/get",
        json!({"taskId": id}),
        json!({"taskId": "t", "status": "working"}),
    );
    assert_eq!((&asked["taskId"], &told["taskId"]), (&json!("t"), &id));
    // Who has not said that it knows tasks cannot ask for them.
    bridge.can = json!({});
    bridge.ask("tasks/get", json!({"taskId": id}));
    bridge.refused(-32021);
}

/// A call that a legacy server may ask something about has the time that others have.
#[test]
fn a_call_that_may_be_parked_is_given_up_as_others_are() {
    let mut bridge = Bridge::open(ML);
    let (id, asked) = bridge.call("n");
    bridge.world.now = bridge.world.now + Duration::from_secs(3601);
    bridge.world.handle(Input::Tick);
    let told = bridge.down();
    assert_eq!((&told["id"], &told["error"]["code"]), (&id, &json!(-32603)), "{told}");
    let cancelled = bridge.up_is(method::CANCELLED);
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}
