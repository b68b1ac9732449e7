//! What changes, and who wants to hear of it.

use super::*;

const LISTS: [&str; 3] =
    [method::TOOLS_CHANGED, method::PROMPTS_CHANGED, method::RESOURCES_CHANGED];

/// A modern host listens; its server, if that is modern, agrees. What the server was
/// asked and what the host was told.
fn listens(bridge: &mut Bridge, wanted: Value) -> (Value, Value, Value) {
    let id = bridge.ask(method::LISTEN, json!({"notifications": wanted}));
    let mut asked = Value::Null;
    if bridge.speaks.1.era() == Era::Modern {
        asked = bridge.up_is(method::LISTEN);
        let granted = asked["params"]["notifications"].clone();
        bridge.tell(method::ACKNOWLEDGED, tagged(&asked, json!({"notifications": granted})));
    } else {
        while bridge.world.spawned.iter().any(|conn| !bridge.world.lines[conn].is_empty()) {
            let asked = bridge.up_is(method::SUBSCRIBE);
            match asked["params"]["uri"] == bridge.refuses {
                true => bridge.fail(&asked, json!({"code": -32602, "message": "no"})),
                false => bridge.answer(&asked, json!({})),
            }
        }
    }
    let told = bridge.down_is(method::ACKNOWLEDGED);
    assert_eq!(told["params"]["_meta"][meta::SUBSCRIPTION_ID], id);
    (id, asked, told["params"]["notifications"].clone())
}

/// The host hears this next, as what it listens to under this id.
fn hears(bridge: &mut Bridge, method: &str, id: &Value, params: Value) {
    let told = bridge.down_is(method);
    assert_eq!(told["params"]["_meta"], json!({meta::SUBSCRIPTION_ID: id}));
    assert_eq!(bare(&told["params"]), params);
}

/// The same of a host that listens to nothing by itself.
fn hears_plainly(bridge: &mut Bridge, method: &str, params: Value) {
    let told = bridge.down_is(method);
    assert!(told["params"].get("_meta").is_none(), "{told}");
    let params = if params == json!({}) { told["params"].clone() } else { params };
    assert_eq!(told["params"], params);
}

#[test]
fn list_changed_ll() {
    let mut bridge = Bridge::open(LL);
    for method in LISTS {
        bridge.tell(method, json!({}));
        hears_plainly(&mut bridge, method, json!({}));
    }
    bridge.quiet();
}

#[test]
fn list_changed_lm() {
    let mut bridge = Bridge::open(LM);
    let listen = bridge.listen.clone();
    // What the server offers, and nothing else.
    assert_eq!(
        listen["params"]["notifications"],
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
    );
    for method in LISTS {
        bridge.tell(method, tagged(&listen, json!({})));
        hears_plainly(&mut bridge, method, json!({}));
    }
    bridge.quiet();
    let mut bridge =
        Bridge::closed(LM, json!({}), json!({"tools": {"listChanged": true}, "prompts": {}}));
    bridge.begin();
    assert_eq!(bridge.listen["params"]["notifications"], json!({"toolsListChanged": true}));
}

#[test]
fn list_changed_ml() {
    let mut bridge = Bridge::open(ML);
    let server = bridge.server;
    let (tools, ..) = listens(&mut bridge, json!({"toolsListChanged": true}));
    let (both, ..) =
        listens(&mut bridge, json!({"toolsListChanged": true, "promptsListChanged": true}));
    bridge.server = server;
    bridge.tell(method::TOOLS_CHANGED, json!({}));
    for id in [&tools, &both] {
        hears(&mut bridge, method::TOOLS_CHANGED, id, json!({}));
    }
    bridge.tell(method::PROMPTS_CHANGED, json!({}));
    hears(&mut bridge, method::PROMPTS_CHANGED, &both, json!({}));
    bridge.tell(method::RESOURCES_CHANGED, json!({}));
    bridge.quiet();
}

#[test]
fn list_changed_mm() {
    let mut bridge = Bridge::open(MM);
    let (id, listen, _) = listens(&mut bridge, json!({"toolsListChanged": true}));
    bridge.tell(method::TOOLS_CHANGED, tagged(&listen, json!({})));
    hears(&mut bridge, method::TOOLS_CHANGED, &id, json!({}));
    bridge.quiet();
}

fn uri(uri: &str) -> Value {
    json!({"uri": uri})
}

#[test]
fn subscribe_ll() {
    let mut bridge = Bridge::open(LL);
    for method in [method::SUBSCRIBE, method::UNSUBSCRIBE] {
        let (asked, told) = bridge.relay(method, uri("a:1"), json!({}));
        assert_eq!((asked, told), (uri("a:1"), json!({})));
    }
    bridge.quiet();
}

#[test]
fn subscribe_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.refuses = "a:no";
    let before = bridge.listen.clone();
    bridge.ask(method::SUBSCRIBE, uri("a:1"));
    // The host is answered when the server listens, and what came before ends then.
    bridge.introduce();
    let with = bridge.listen.clone();
    assert_eq!(with["params"]["notifications"]["resourceSubscriptions"], json!(["a:1"]));
    assert_eq!(with["params"]["notifications"]["toolsListChanged"], true);
    assert_eq!(bridge.down()["result"], json!({}));
    assert_eq!(bridge.up_is(method::CANCELLED)["params"]["requestId"], before["id"]);
    // What the server does not tell about is refused.
    bridge.ask(method::SUBSCRIBE, uri("a:no"));
    bridge.introduce();
    assert_eq!(bridge.down()["error"]["code"], -32602);
    assert_eq!(bridge.up_is(method::CANCELLED)["params"]["requestId"], with["id"]);
    bridge.ask(method::UNSUBSCRIBE, uri("a:1"));
    bridge.introduce();
    assert_eq!(bridge.down()["result"], json!({}));
    assert_eq!(bridge.listen["params"]["notifications"].get("resourceSubscriptions"), None);
}

fn unknown(speaks: Column) {
    for method in [method::SUBSCRIBE, method::UNSUBSCRIBE] {
        let mut bridge = Bridge::open(speaks);
        bridge.ask(method, uri("a:1"));
        bridge.refused(-32601);
    }
}

#[test]
fn subscribe_ml() {
    unknown(ML);
}

#[test]
fn subscribe_mm() {
    unknown(MM);
}

#[test]
fn updated_ll() {
    let mut bridge = Bridge::open(LL);
    bridge.relay(method::SUBSCRIBE, uri("a:1"), json!({}));
    let (first, server) = (bridge.host, bridge.server);
    bridge.another();
    bridge.server = server;
    bridge.tell(method::RESOURCE_UPDATED, uri("a:1"));
    assert!(bridge.world.silent(bridge.host));
    bridge.host = first;
    hears_plainly(&mut bridge, method::RESOURCE_UPDATED, uri("a:1"));
    bridge.quiet();
}

#[test]
fn updated_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.ask(method::SUBSCRIBE, uri("a:1"));
    bridge.introduce();
    bridge.down();
    bridge.up_is(method::CANCELLED);
    let (first, listen) = (bridge.host, bridge.listen.clone());
    bridge.another();
    bridge.tell(method::RESOURCE_UPDATED, tagged(&listen, uri("a:1")));
    assert!(bridge.world.silent(bridge.host));
    bridge.host = first;
    hears_plainly(&mut bridge, method::RESOURCE_UPDATED, uri("a:1"));
    bridge.quiet();
}

#[test]
fn updated_ml() {
    let mut bridge = Bridge::open(ML);
    let server = bridge.server;
    let (one, ..) = listens(&mut bridge, json!({"resourceSubscriptions": ["a:1"]}));
    listens(&mut bridge, json!({"resourceSubscriptions": ["a:2"]}));
    bridge.server = server;
    bridge.tell(method::RESOURCE_UPDATED, uri("a:1"));
    hears(&mut bridge, method::RESOURCE_UPDATED, &one, uri("a:1"));
    // So do parts of it (SUB-10).
    bridge.tell(method::RESOURCE_UPDATED, uri("a:1/part"));
    hears(&mut bridge, method::RESOURCE_UPDATED, &one, uri("a:1/part"));
    bridge.quiet();
}

#[test]
fn updated_mm() {
    let mut bridge = Bridge::open(MM);
    let (id, listen, _) = listens(&mut bridge, json!({"resourceSubscriptions": ["a:1"]}));
    bridge.tell(method::RESOURCE_UPDATED, tagged(&listen, uri("a:1")));
    hears(&mut bridge, method::RESOURCE_UPDATED, &id, uri("a:1"));
    bridge.quiet();
}

#[test]
fn listen_ll() {
    let mut bridge = Bridge::open(LL);
    bridge.ask(method::LISTEN, json!({"notifications": {}}));
    bridge.refused(-32601);
}

#[test]
fn listen_lm() {
    let mut bridge = Bridge::open(LM);
    bridge.ask(method::LISTEN, json!({"notifications": {}}));
    bridge.refused(-32601);
}

#[test]
fn listen_ml() {
    let mut bridge = Bridge::open(ML);
    bridge.refuses = "a:no";
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1", "a:no"]});
    let (id, _, granted) = listens(&mut bridge, wanted);
    assert_eq!(granted, json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]}));
    // The server is asked once for what several want, and told when nobody does any more.
    let (other, _, granted) = listens(&mut bridge, json!({"resourceSubscriptions": ["a:1"]}));
    assert_eq!(granted, json!({"resourceSubscriptions": ["a:1"]}));
    bridge.notify(method::CANCELLED, json!({"requestId": other}));
    bridge.quiet();
    bridge.notify(method::CANCELLED, json!({"requestId": id}));
    let gone = bridge.up_is(method::UNSUBSCRIBE);
    assert_eq!(gone["params"], uri("a:1"));
    bridge.answer(&gone, json!({}));
    // What the server does not offer is not promised.
    let mut bridge = Bridge::closed(ML, json!({}), json!({"tools": {}, "resources": {}}));
    bridge.begin();
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]});
    let (id, _, granted) = listens(&mut bridge, wanted);
    assert_eq!(granted, json!({}));
    // At the end it has a result.
    bridge.world.handle(Input::Stop);
    let end = bridge.down();
    assert_eq!((&end["id"], &end["result"]["_meta"][meta::SUBSCRIPTION_ID]), (&id, &id));
    assert_eq!(end["result"]["resultType"], "complete");
}

#[test]
fn listen_mm() {
    let mut bridge = Bridge::open(MM);
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": ["a:1"]});
    let (id, listen, granted) = listens(&mut bridge, wanted.clone());
    assert_eq!(listen["params"]["notifications"], wanted);
    assert_eq!(granted, wanted);
    bridge.answer(&listen, json!({"_meta": {meta::SUBSCRIPTION_ID: listen["id"]}}));
    let end = bridge.down();
    assert_eq!((&end["id"], &end["result"]["_meta"][meta::SUBSCRIPTION_ID]), (&id, &id));
    let (id, listen, _) = listens(&mut bridge, wanted);
    bridge.notify(method::CANCELLED, json!({"requestId": id}));
    assert_eq!(bridge.up_is(method::CANCELLED)["params"]["requestId"], listen["id"]);
    bridge.quiet();
}
