//! Hosts and servers of one era that speak different revisions.

use super::*;

/// A host that asks for one revision, before a server that agrees to another.
fn pair(world: &mut World, host_speaks: &str, server_speaks: &str) -> (ConnId, ConnId) {
    let can = r#"{"sampling":{},"elicitation":{}}"#;
    pair_that_can(world, can, host_speaks, server_speaks)
}

/// The same, and the host can do this.
fn pair_that_can(
    world: &mut World,
    can: &str,
    host_speaks: &str,
    server_speaks: &str,
) -> (ConnId, ConnId) {
    let host = world.host();
    let initialize = INITIALIZE.replace("2025-11-25", host_speaks);
    world.say(host, &initialize.replacen("{}", can, 1));
    let server = *world.spawned.last().unwrap();
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{server_speaks}","capabilities":{{"completions":{{}},"tools":{{}}}},"serverInfo":{{"name":"s","version":"9"}}}}}}"#));
    let answer = world.hear(host);
    // VER-02: the host's own choice.
    assert_eq!(
        get_path(&answer, &["result", "protocolVersion"]),
        Some(&*format!("\"{host_speaks}\""))
    );
    let completes = get_path(&answer, &["result", "capabilities", "completions"]).is_some();
    assert_eq!(completes, host_speaks != "2024-11-05" || host_speaks == server_speaks);
    world.say(host, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(world.hear(server).contains("notifications/initialized"));
    (host, server)
}

/// What a host is told when a server answers with a result.
fn relayed(world: &mut World, ends: (ConnId, ConnId), method: &str, result: &str) -> String {
    let (host, server) = ends;
    world.say(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"n"}}}}"#),
    );
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    get(&world.hear(host), "result").unwrap().to_string()
}

const CALLED: &str = r#"{"content":[ {"type":"resource_link","name":"n","uri":"u"}],"structuredContent":{"a":1},"x":1.0}"#;

#[test]
fn ver_04_an_older_host_gets_what_it_knows() {
    let mut world = World::new();
    let ends = pair(&mut world, "2024-11-05", "2025-11-25");
    assert_eq!(
        relayed(&mut world, ends, "tools/call", CALLED),
        r#"{"content":[{"type":"text","text":"n – u"},{"type":"text","text":"{\"a\":1}"}],"x":1.0}"#
    );
    let tools = r#"{"tools":[{"name":"n","title":"t","inputSchema":{}}]}"#;
    assert_eq!(
        relayed(&mut world, ends, "tools/list", tools),
        r#"{"tools":[{"name":"n","inputSchema":{}}]}"#
    );
    assert_eq!(relayed(&mut world, ends, "experimental/x", tools), tools);
}

#[test]
fn equals_and_newer_hosts_get_all_as_it_came() {
    for (host, server) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2025-11-25", "2024-11-05"),
    ] {
        let mut world = World::new();
        let ends = pair(&mut world, host, server);
        assert_eq!(relayed(&mut world, ends, "tools/call", CALLED), CALLED);
    }
}

#[test]
fn prg_04_the_first_revision_knows_no_message_of_progress() {
    for (speaks, told) in [("2024-11-05", false), ("2025-03-26", true)] {
        let mut world = World::new();
        let (host, server) = pair(&mut world, speaks, "2025-11-25");
        world.say(host, r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"n","_meta":{"progressToken":"tok"}}}"#);
        let id = id_of(&world.hear(server));
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1,"message":"m"}}}}"#));
        let progress = world.hear(host);
        assert_eq!(get_path(&progress, &["params", "progressToken"]), Some("\"tok\""));
        assert_eq!(get_path(&progress, &["params", "message"]).is_some(), told);
    }
}

#[test]
fn err_10_urls_to_visit_first_are_told_as_they_are() {
    let mut world = World::new();
    let can = r#"{"elicitation":{"url":{}}}"#;
    let (host, server) = pair_that_can(&mut world, can, "2025-11-25", "2025-11-25");
    world.say(host, r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"n"}}"#);
    let id = id_of(&world.hear(server));
    let error = r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com","message":"?"}]}}"#;
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
    assert_eq!(get(&world.hear(host), "error"), Some(error));
    // What is done there is told, too.
    let done = r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#;
    world.say(server, done);
    assert_eq!(get_path(&world.hear(host), &["params", "elicitationId"]), Some("\"e\""));
}

#[test]
fn sub_10_updates_below_a_subscribed_resource_are_told() {
    let mut world = World::new();
    let (host, server) = pair(&mut world, "2025-11-25", "2025-11-25");
    world.say(
        host,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://b"}}"#,
    );
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    world.hear(host);
    world.say(server, r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b/c"}}"#);
    assert_eq!(get_path(&world.hear(host), &["params", "uri"]), Some("\"a://b/c\""));
}

#[test]
fn lif_08_a_host_is_not_asked_what_it_cannot_answer() {
    let mut world = World::new();
    let (host, server) = pair(&mut world, "2025-11-25", "2025-11-25");
    for (ask, code) in [
        (r#""roots/list""#, "-32601"),
        (r#""elicitation/create","params":{"mode":"url"}"#, "-32602"),
        (r#""sampling/createMessage","params":{"tools":[]}"#, "-32602"),
    ] {
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":"q","method":{ask}}}"#));
        let answer = world.hear(server);
        assert_eq!(get(&answer, "id"), Some("\"q\""));
        assert_eq!(get_path(&answer, &["error", "code"]), Some(code));
    }
    assert!(world.silent(host));
}

#[test]
fn an_older_host_is_asked_in_its_own_words() {
    let mut world = World::new();
    let (host, server) = pair(&mut world, "2025-06-18", "2025-11-25");
    let ask = |property: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{{"mode":"form","message":"?","requestedSchema":{{"properties":{{"p":{property}}}}}}}}}"#
        )
    };
    world.say(server, &ask(r#"{"type":"string","default":"x"}"#));
    assert_eq!(
        get(&world.hear(host), "params"),
        Some(r#"{"message":"?","requestedSchema":{"properties":{"p":{"type":"string"}}}}"#)
    );
    world.say(server, &ask(r#"{"type":"array"}"#));
    assert!(world.silent(host));
    assert_eq!(get(&world.hear(server), "result"), Some(r#"{"action":"cancel"}"#));
    let (host, server) = pair(&mut world, "2024-11-05", "2025-11-25");
    world.say(server, r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[{"content":{"type":"audio"}}]}}"#);
    assert_eq!(get_path(&world.hear(server), &["error", "code"]), Some("-32602"));
    assert!(world.silent(host));
}
