//! Lists, plain calls and completion.

use super::*;

const LISTS: [(&str, &str); 4] = [
    (method::TOOLS_LIST, "tools"),
    (method::PROMPTS_LIST, "prompts"),
    (method::RESOURCES_LIST, "resources"),
    (method::TEMPLATES_LIST, "resourceTemplates"),
];

/// Each list, page by page: what the server is asked, and what the host is told.
fn listed(speaks: Column, adds: Value, sees: Value) {
    for (method, list) in LISTS {
        let mut bridge = Bridge::open(speaks);
        let page = |more: &Value| {
            let mut page = json!({list: [{"name": "n"}], "nextCursor": "c"});
            page.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            page
        };
        let (_, told) = bridge.relay(method, json!({}), page(&adds));
        assert_eq!(bare(&told), page(&sees), "{method}");
        // The server's own cursor asks it for the next page.
        let cursor = told["nextCursor"].clone();
        let (asked, told) = bridge.relay(method, json!({"cursor": cursor}), json!({list: []}));
        assert_eq!(asked["cursor"], "c");
        assert_eq!(told["nextCursor"], Value::Null);
        bridge.quiet();
    }
}

fn cacheable() -> Value {
    json!({"resultType": "complete", "ttlMs": 7000, "cacheScope": "public"})
}

/// What a modern server must be told with each request.
fn says_all(asked: &Value, bridge: &Bridge) {
    let own = &asked["_meta"];
    assert_eq!(own[meta::PROTOCOL_VERSION], "2026-07-28");
    assert_eq!(own[meta::CLIENT_INFO]["name"], "mcpx");
    assert_eq!(own[meta::VIA_CLIENT]["name"], "h");
    let mut can = bridge.can.clone();
    if bridge.speaks.0.era() == Era::Legacy {
        // What only sessions have.
        can["roots"] = json!({});
    }
    assert_eq!(own[meta::CLIENT_CAPABILITIES], can);
}

/// What a legacy one must not be told.
fn says_nothing(asked: &Value) {
    assert!(asked.get("_meta").is_none(), "{asked}");
}

#[test]
fn lists_ll() {
    listed(LL, json!({}), json!({}));
}

#[test]
fn lists_lm() {
    listed(LM, cacheable(), json!({}));
    let mut bridge = Bridge::open(LM);
    let (asked, _) = bridge.relay(method::TOOLS_LIST, json!({}), complete(json!({"tools": []})));
    says_all(&asked, &bridge);
}

#[test]
fn lists_ml() {
    listed(ML, json!({}), json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}));
    let mut bridge = Bridge::open(ML);
    let (asked, _) = bridge.relay(method::TOOLS_LIST, json!({}), json!({"tools": []}));
    says_nothing(&asked);
}

#[test]
fn lists_mm() {
    listed(MM, cacheable(), cacheable());
    let mut bridge = Bridge::open(MM);
    let (asked, _) = bridge.relay(method::TOOLS_LIST, json!({}), complete(json!({"tools": []})));
    says_all(&asked, &bridge);
}

fn plain() -> [(&'static str, Value, Value); 3] {
    [
        (method::TOOLS_CALL, json!({"name": "n", "arguments": {"a": 1.5}}), text("t")),
        (
            method::PROMPTS_GET,
            json!({"name": "n", "arguments": {"a": "b"}}),
            json!({"messages": []}),
        ),
        (
            method::RESOURCES_READ,
            json!({"uri": "a://b"}),
            json!({"contents": [{"uri": "a://b", "text": ""}]}),
        ),
    ]
}

/// The parameters of a request, but for what each hop says of itself.
fn own(asked: &Value) -> Value {
    bare(asked)
}

#[test]
fn calls_ll() {
    let mut bridge = Bridge::open(LL);
    for (method, params, result) in plain() {
        let (asked, told) = bridge.relay(method, params.clone(), result.clone());
        assert_eq!((asked, told), (params, result));
    }
}

#[test]
fn calls_lm() {
    let mut bridge = Bridge::open(LM);
    for (method, params, result) in plain() {
        let mut said = complete(result.clone());
        if method == method::RESOURCES_READ {
            (said["ttlMs"], said["cacheScope"]) = (json!(1), json!("public"));
        }
        let (asked, told) = bridge.relay(method, params.clone(), said);
        says_all(&asked, &bridge);
        assert_eq!((own(&asked), told), (params, result));
    }
}

#[test]
fn calls_ml() {
    let mut bridge = Bridge::open(ML);
    for (method, params, result) in plain() {
        let (asked, told) = bridge.relay(method, params.clone(), result.clone());
        assert_eq!(asked, params);
        let mut expected = complete(result);
        if method == method::RESOURCES_READ {
            (expected["ttlMs"], expected["cacheScope"]) = (json!(0), json!("private"));
        }
        assert_eq!(bare(&told), expected);
    }
}

#[test]
fn calls_mm() {
    let mut bridge = Bridge::open(MM);
    for (method, params, result) in plain() {
        let (asked, told) = bridge.relay(method, params.clone(), complete(result.clone()));
        says_all(&asked, &bridge);
        assert_eq!((own(&asked), bare(&told)), (params, complete(result)));
    }
}

fn completion() -> Value {
    json!({"completion": {"values": ["a"], "total": 1, "hasMore": false}})
}

/// Values for an argument; the server is told what the others are if it may know.
fn completes(speaks: Column, told_context: bool) {
    let mut bridge = Bridge::open(speaks);
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "n"}, "argument": {"name": "a", "value": "x"},
        "context": {"arguments": {"b": "y"}},
    });
    let modern = speaks.1.era() == Era::Modern;
    let said = if modern { complete(completion()) } else { completion() };
    let (asked, told) = bridge.relay(method::COMPLETE, params.clone(), said);
    assert_eq!(asked.get("context").is_some(), told_context, "{speaks:?}");
    assert_eq!(asked["argument"], params["argument"]);
    let modern = speaks.0.era() == Era::Modern;
    let expected = if modern { complete(completion()) } else { completion() };
    assert_eq!(bare(&told), expected);
}

#[test]
fn completion_ll() {
    for (host, server, context) in
        [(R4, R4, true), (R3, R4, true), (R4, R3, true), (R4, R2, false), (R3, R1, false)]
    {
        completes((host, server), context);
    }
}

#[test]
fn completion_lm() {
    completes(LM, true);
}

#[test]
fn completion_ml() {
    for (server, context) in [(R4, true), (R3, true), (R2, false), (R1, false)] {
        completes((R5, server), context);
    }
    // A server that does not complete is not asked.
    let mut bridge = Bridge::closed(ML, json!({}), json!({"prompts": {}}));
    bridge.begin();
    let id = bridge.ask(method::COMPLETE, json!({"ref": {}, "argument": {}}));
    assert_eq!(bridge.refused(-32601)["id"], id);
}

#[test]
fn completion_mm() {
    completes(MM, true);
}

/// What a result says of its kind and of how long it holds, and what the host sees.
fn kinds(speaks: Column, says: Value, sees: Value) {
    let mut bridge = Bridge::open(speaks);
    let result = |members: &Value| {
        let mut result = json!({"contents": []});
        result.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        result
    };
    let (_, told) = bridge.relay(method::RESOURCES_READ, json!({"uri": "a:b"}), result(&says));
    assert_eq!(bare(&told), result(&sees));
}

#[test]
fn result_type_ll() {
    // One that its revision does not know is no business of the host's.
    kinds(LL, json!({"resultType": "complete"}), json!({}));
}

#[test]
fn result_type_lm() {
    kinds(LM, json!({"resultType": "complete"}), json!({}));
}

#[test]
fn result_type_ml() {
    let mut bridge = Bridge::open(ML);
    let (_, told) = bridge.relay(method::TOOLS_CALL, json!({"name": "n"}), text(""));
    assert_eq!(told["resultType"], "complete");
}

#[test]
fn result_type_mm() {
    let mut bridge = Bridge::open(MM);
    // One that says nothing means that it is complete.
    for said in [text(""), complete(text(""))] {
        let (_, told) = bridge.relay(method::TOOLS_CALL, json!({"name": "n"}), said);
        assert_eq!(bare(&told), complete(text("")));
    }
}

#[test]
fn caching_ll() {
    kinds(LL, json!({}), json!({}));
}

#[test]
fn caching_lm() {
    kinds(LM, cacheable(), json!({}));
}

#[test]
fn caching_ml() {
    kinds(ML, json!({}), json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}));
}

#[test]
fn caching_mm() {
    kinds(MM, cacheable(), cacheable());
}
