//! What servers ask in the middle of calls.

use super::*;

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// The entries of `inputRequests` that a modern server answers a call with.
fn wants(bridge: &mut Bridge, asked: &Value, requests: Value) {
    let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": "theirs"});
    bridge.answer(asked, result);
}

fn one(method: &str, params: Value) -> Value {
    json!({"k": {"method": method, "params": params}})
}

/// What a modern host is asked: the only question, under its key, and the state.
fn is_asked(bridge: &mut Bridge) -> (String, Value, Value) {
    let told = bridge.down();
    let result = &told["result"];
    assert_eq!(result["resultType"], "input_required", "{told}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{told}");
    let (key, entry) = requests.iter().next().unwrap();
    (key.clone(), entry.clone(), result["requestState"].clone())
}

/// A modern host comes back with an answer.
fn comes_back(bridge: &mut Bridge, key: &str, answer: Value, state: Value) -> Value {
    let params = json!({"name": "n", "arguments": {}, "inputResponses": {key: answer}, "requestState": state});
    bridge.ask(method::TOOLS_CALL, params)
}

/// A legacy server asks a legacy host: what it is asked, and what the server hears.
fn ll(bridge: &mut Bridge, method: &str, params: Value, answer: Value) -> Value {
    let id = bridge.question(method, params);
    let question = bridge.down_is(method);
    bridge.reply(&question, answer.clone());
    let heard = bridge.up();
    assert_eq!((&heard["id"], &heard["result"]), (&id, &answer));
    question["params"].clone()
}

/// A modern server asks a legacy host: what that is asked.
fn lm(bridge: &mut Bridge, method: &str, params: Value, answer: Value) -> Value {
    let (id, asked) = bridge.call("n");
    wants(bridge, &asked, one(method, params));
    let question = bridge.down_is(method);
    bridge.reply(&question, answer.clone());
    // The call again, with the answer.
    let again = bridge.up_is(method::TOOLS_CALL);
    assert_eq!(again["params"]["inputResponses"], json!({"k": answer}));
    assert_eq!(again["params"]["requestState"], "theirs");
    assert_eq!(again["params"]["name"], "n");
    bridge.answer(&again, complete(text("done")));
    assert_eq!(bridge.down(), json!({"jsonrpc": "2.0", "id": id, "result": text("done")}));
    bridge.quiet();
    question["params"].clone()
}

/// A legacy server asks a modern host: the entry that the host sees.
fn ml(bridge: &mut Bridge, method: &str, params: Value, answer: Value) -> Value {
    let (_, asked) = bridge.call("n");
    let question = bridge.question(method, params);
    let (key, entry, state) = is_asked(bridge);
    let id = comes_back(bridge, &key, answer.clone(), state);
    let heard = bridge.up();
    assert_eq!((&heard["id"], &heard["result"]), (&question, &answer));
    bridge.answer(&asked, text("done"));
    let told = bridge.down();
    assert_eq!((&told["id"], bare(&told["result"])), (&id, complete(text("done"))));
    bridge.quiet();
    entry
}

/// Peers of the modern revision: nothing is said otherwise.
fn mm(method: &str, params: Value, answer: Value) {
    let mut bridge = Bridge::open(MM);
    let (_, asked) = bridge.call("n");
    wants(&mut bridge, &asked, one(method, params.clone()));
    let (key, entry, state) = is_asked(&mut bridge);
    assert_eq!((key.as_str(), &entry), ("k", &json!({"method": method, "params": params})));
    comes_back(&mut bridge, &key, answer.clone(), state);
    let again = bridge.up_is(method::TOOLS_CALL);
    assert_eq!(again["params"]["inputResponses"], json!({"k": answer}));
    assert_eq!(again["params"]["requestState"], "theirs");
}

/// A legacy server is told that its question cannot be asked.
fn undeclared(bridge: &mut Bridge, method: &str, params: Value, code: i32) {
    let id = bridge.question(method, params);
    let heard = bridge.up();
    assert_eq!((&heard["id"], &heard["error"]["code"]), (&id, &json!(code)), "{heard}");
    bridge.quiet();
}

fn roots() -> Value {
    json!({"roots": [{"uri": "file:///a", "name": "a"}]})
}

#[test]
fn roots_ll() {
    ll(&mut Bridge::open(LL), method::LIST_ROOTS, json!({}), roots());
    let mut bridge = Bridge::between(LL, json!({}));
    undeclared(&mut bridge, method::LIST_ROOTS, json!({}), -32601);
}

#[test]
fn roots_lm() {
    lm(&mut Bridge::open(LM), method::LIST_ROOTS, json!({}), roots());
}

#[test]
fn roots_ml() {
    let entry = ml(&mut Bridge::open(ML), method::LIST_ROOTS, json!({}), roots());
    assert_eq!(entry, json!({"method": "roots/list"}));
    // The server is told of no roots where the host has none.
    let mut bridge = Bridge::between(ML, json!({"sampling": {}}));
    bridge.call("n");
    undeclared(&mut bridge, method::LIST_ROOTS, json!({}), -32601);
}

/// Outside of calls, and where the host has none: those that its owner has given last,
/// or those of the configuration.
#[test]
fn roots_ml_configured() {
    let place = Place::Process(Command { program: "server".into(), ..Command::default() });
    let own = json!({"roots": [{"uri": "file:///srv"}]});
    let server =
        Server { roots: Vec::from(["file:///srv".to_string()]), ..Server::new("s", place) };
    let told = |bridge: &mut Bridge, expected: &Value| {
        let id = bridge.question(method::LIST_ROOTS, json!({}));
        let heard = bridge.up();
        assert_eq!((&heard["id"], &heard["result"]), (&id, expected), "{heard}");
        bridge.quiet();
    };
    let offers = json!({"tools": {}});
    // Nobody can be asked.
    let mut bridge = Bridge::before(server.clone(), ML, json!({}), offers.clone());
    bridge.begin();
    let (_, asked) = bridge.call("n");
    told(&mut bridge, &own);
    bridge.answer(&asked, text("done"));
    bridge.down();
    told(&mut bridge, &own);
    undeclared(&mut bridge, method::ELICIT, form(), -32601);
    // The host can be, but not for roots.
    let mut bridge = Bridge::before(server.clone(), ML, json!({"sampling": {}}), offers.clone());
    bridge.begin();
    bridge.call("n");
    told(&mut bridge, &own);
    // It can be in a call, and has answered.
    let mut bridge = Bridge::before(server, ML, json!({"roots": {}}), offers);
    bridge.begin();
    ml(&mut bridge, method::LIST_ROOTS, json!({}), roots());
    told(&mut bridge, &roots());
}

#[test]
fn roots_mm() {
    mm(method::LIST_ROOTS, json!({}), roots());
}

#[test]
fn roots_changed_ll() {
    let mut bridge = Bridge::open(LL);
    bridge.notify(ROOTS_CHANGED, json!({}));
    bridge.up_is(ROOTS_CHANGED);
    bridge.quiet();
}

/// It means nothing to who is asked for roots when they are needed.
fn swallowed(speaks: Column) {
    let mut bridge = Bridge::open(speaks);
    bridge.notify(ROOTS_CHANGED, json!({}));
    bridge.quiet();
}

#[test]
fn roots_changed_lm() {
    swallowed(LM);
}

#[test]
fn roots_changed_ml() {
    swallowed(ML);
}

#[test]
fn roots_changed_mm() {
    swallowed(MM);
}

fn sample() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5})
}

fn sampled() -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"})
}

#[test]
fn sampling_ll() {
    let mut tools = sample();
    tools["tools"] = json!([]);
    let mut bridge = Bridge::open(LL);
    assert_eq!(ll(&mut bridge, method::SAMPLE, tools.clone(), sampled()), tools);
    // Tools are for hosts that have declared them.
    let mut bridge = Bridge::between(LL, json!({"sampling": {}}));
    undeclared(&mut bridge, method::SAMPLE, tools, -32602);
    assert_eq!(ll(&mut bridge, method::SAMPLE, sample(), sampled()), sample());
}

#[test]
fn sampling_lm() {
    assert_eq!(lm(&mut Bridge::open(LM), method::SAMPLE, sample(), sampled()), sample());
    // A user who refuses ends the call (MRT-14).
    let mut bridge = Bridge::open(LM);
    let (id, asked) = bridge.call("n");
    wants(&mut bridge, &asked, one(method::SAMPLE, sample()));
    let question = bridge.down_is(method::SAMPLE);
    let refusal = json!({"code": -1, "message": "User rejected sampling request"});
    bridge.host_says(&json!({"jsonrpc": "2.0", "id": question["id"], "error": refusal}));
    let told = bridge.down();
    assert_eq!((&told["id"], &told["result"]["isError"]), (&id, &json!(true)), "{told}");
    bridge.quiet();
}

#[test]
fn sampling_ml() {
    let mut asks = sample();
    (asks["task"], asks["_meta"]) = (json!({}), json!({"a": 1}));
    let entry = ml(&mut Bridge::open(ML), method::SAMPLE, asks, sampled());
    assert_eq!(entry, json!({"method": method::SAMPLE, "params": sample()}));
    let mut bridge = Bridge::between(ML, json!({"roots": {}}));
    bridge.call("n");
    undeclared(&mut bridge, method::SAMPLE, sample(), -32601);
}

#[test]
fn sampling_mm() {
    mm(method::SAMPLE, sample(), sampled());
}

fn form() -> Value {
    let name = json!({"type": "string", "default": "x"});
    json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {"name": name}}})
}

/// The same as 2025-06-18 says it.
fn older_form() -> Value {
    let name = json!({"type": "string"});
    json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"name": name}}})
}

fn filled() -> Value {
    json!({"action": "accept", "content": {"name": "y"}})
}

#[test]
fn form_ll() {
    assert_eq!(ll(&mut Bridge::open(LL), method::ELICIT, form(), filled()), form());
    let mut bridge = Bridge::open((R3, R4));
    assert_eq!(ll(&mut bridge, method::ELICIT, form(), filled()), older_form());
    // Hosts of the first two revisions cannot be asked.
    for host in [R1, R2] {
        undeclared(&mut Bridge::open((host, R4)), method::ELICIT, form(), -32601);
    }
}

#[test]
fn form_lm() {
    assert_eq!(lm(&mut Bridge::open(LM), method::ELICIT, form(), filled()), form());
    let mut bridge = Bridge::open((R3, R5));
    assert_eq!(lm(&mut bridge, method::ELICIT, form(), filled()), older_form());
    for action in ["decline", "cancel"] {
        lm(&mut Bridge::open(LM), method::ELICIT, form(), json!({"action": action}));
    }
}

#[test]
fn form_ml() {
    let entry = ml(&mut Bridge::open(ML), method::ELICIT, form(), filled());
    assert_eq!(entry, json!({"method": method::ELICIT, "params": form()}));
    // One of 2025-06-18 does not say that it is a form.
    let mut bridge = Bridge::open((R5, R3));
    let mut expected = older_form();
    expected["mode"] = json!("form");
    let entry = ml(&mut bridge, method::ELICIT, older_form(), json!({"action": "decline"}));
    assert_eq!(entry["params"], expected);
}

#[test]
fn form_mm() {
    mm(method::ELICIT, form(), filled());
}

fn url(id: Option<&str>) -> Value {
    let mut params = json!({"mode": "url", "message": "?", "url": "https://example.com/a"});
    if let Some(id) = id {
        params["elicitationId"] = json!(id);
    }
    params
}

#[test]
fn url_ll() {
    let accepted = json!({"action": "accept"});
    let asked = ll(&mut Bridge::open(LL), method::ELICIT, url(Some("e")), accepted);
    assert_eq!(asked, url(Some("e")));
    undeclared(&mut Bridge::open((R3, R4)), method::ELICIT, url(Some("e")), -32602);
}

#[test]
fn url_lm() {
    let mut bridge = Bridge::open(LM);
    let (id, asked) = bridge.call("n");
    wants(&mut bridge, &asked, one(method::ELICIT, url(None)));
    let question = bridge.down_is(method::ELICIT);
    let ours = question["params"]["elicitationId"].as_str().unwrap();
    assert_eq!(question["params"], url(Some(ours)));
    bridge.reply(&question, json!({"action": "accept"}));
    let again = bridge.up_is(method::TOOLS_CALL);
    assert_eq!(again["params"]["inputResponses"]["k"], json!({"action": "accept"}));
    // While its user is there, the server is asked again in a while; the host is not.
    wants(&mut bridge, &again, one(method::ELICIT, url(None)));
    bridge.quiet();
    bridge.pass(Duration::from_secs(10));
    let again = bridge.up_is(method::TOOLS_CALL);
    bridge.answer(&again, complete(text("done")));
    let done = bridge.down_is(method::ELICITED);
    assert_eq!(done["params"]["elicitationId"], ours);
    assert_eq!(bridge.down()["id"], id);
    // Others are not said to be able to.
    let mut bridge = Bridge::open((R3, R5));
    let (_, asked) = bridge.call("n");
    let can = &asked["params"]["_meta"][meta::CLIENT_CAPABILITIES]["elicitation"];
    assert_eq!(can, &json!({"form": {}}));
}

#[test]
fn url_ml() {
    let accepted = json!({"action": "accept"});
    let entry = ml(&mut Bridge::open(ML), method::ELICIT, url(Some("e")), accepted);
    assert_eq!(entry, json!({"method": method::ELICIT, "params": url(None)}));
}

#[test]
fn url_mm() {
    mm(method::ELICIT, url(None), json!({"action": "accept"}));
}

fn visit_first() -> Value {
    json!({"code": -32042, "message": "m", "data": {"elicitations": [url(Some("e"))]}})
}

#[test]
fn url_required_ll() {
    let mut bridge = Bridge::open(LL);
    let (_, asked) = bridge.call("n");
    bridge.fail(&asked, visit_first());
    assert_eq!(bridge.down()["error"], visit_first());
    bridge.tell(method::ELICITED, json!({"elicitationId": "e"}));
    assert_eq!(bridge.down_is(method::ELICITED)["params"], json!({"elicitationId": "e"}));
    // Hosts of other revisions do not know the code.
    let mut bridge = Bridge::open((R3, R4));
    let (_, asked) = bridge.call("n");
    bridge.fail(&asked, visit_first());
    let told = bridge.down();
    assert_eq!(told["error"]["code"], -32603, "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("example.com"), "{told}");
    assert_eq!(told["error"]["data"], visit_first()["data"]);
    bridge.tell(method::ELICITED, json!({"elicitationId": "e"}));
    bridge.quiet();
}

#[test]
fn url_required_lm() {
    // A modern server has no such error: one of that number means nothing.
    let mut bridge = Bridge::open(LM);
    let (_, asked) = bridge.call("n");
    bridge.fail(&asked, visit_first());
    assert_eq!(bridge.down()["error"]["code"], -32603);
}

#[test]
fn url_required_ml() {
    let mut bridge = Bridge::open(ML);
    let (_, asked) = bridge.call("n");
    bridge.fail(&asked, visit_first());
    let (key, entry, state) = is_asked(&mut bridge);
    assert_eq!(entry, json!({"method": method::ELICIT, "params": url(None)}));
    bridge.tell(method::ELICITED, json!({"elicitationId": "e"}));
    bridge.quiet();
    // Then the same call begins again.
    let id = comes_back(&mut bridge, &key, json!({"action": "accept"}), state);
    let again = bridge.up_is(method::TOOLS_CALL);
    assert_eq!(again["params"], asked["params"]);
    bridge.answer(&again, text("done"));
    assert_eq!(bridge.down()["id"], id);
    // A host that opens no URLs is told what it lacks.
    let mut bridge = Bridge::between(ML, json!({"elicitation": {"form": {}}}));
    let (_, asked) = bridge.call("n");
    bridge.fail(&asked, visit_first());
    let told = bridge.refused(-32021);
    assert_eq!(told["error"]["data"]["requiredCapabilities"], json!({"elicitation": {"url": {}}}));
}

#[test]
fn url_required_mm() {
    let mut bridge = Bridge::open(MM);
    let (_, asked) = bridge.call("n");
    bridge.fail(&asked, json!({"code": -32042, "message": "m"}));
    // The server's own, whatever it means by it.
    assert_eq!(bridge.down()["error"], json!({"code": -32042, "message": "m"}));
}
