//! Hosts and servers of one era that speak different revisions.

use super::*;

/// A host that asks for one revision, before a server that agrees to another.
fn pair(world: &mut World, host_speaks: &str, server_speaks: &str) -> (ConnId, ConnId) {
    let host = world.host();
    world.say(host, &INITIALIZE.replace("2025-11-25", host_speaks));
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
