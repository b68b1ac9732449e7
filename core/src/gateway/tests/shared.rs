//! Legacy requests without a session, and the connection that they share.

use super::*;

const LIST: &str = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{}}"#;

/// Sends a POST on a connection of its own.
fn post(world: &mut World, fields: &str, body: &str) -> ConnId {
    world.hosts += 1;
    let conn = ConnId::accepted(world.hosts);
    world.handle(Input::Accepted { conn, listener: ListenerId(1), from: None });
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    world.handle(Input::Received { conn, bytes: request.as_bytes() });
    conn
}

/// The message that a connection was sent.
fn answer(world: &mut World, conn: ConnId) -> String {
    let lines = world.lines.remove(&conn).unwrap_or_default();
    lines.into_iter().find(|line| line.contains("jsonrpc")).unwrap_or_default()
}

#[test]
fn it_is_begun_once_and_declares_nothing() {
    let mut world = World::new();
    let (a, b) = (post(&mut world, "", LIST), post(&mut world, "", LIST));
    let server = *world.spawned.last().unwrap();
    let asked = world.reply(server, r#"{"protocolVersion":"2025-03-26"}"#);
    assert_eq!(get_path(&asked, &["params", "capabilities"]), Some("{}"));
    assert_eq!(get_path(&asked, &["params", "clientInfo", "name"]), Some("\"mcpx\""));
    assert!(world.hear(server).contains("notifications/initialized"));
    for (host, name) in [(a, "a"), (b, "b")] {
        world.reply(server, &format!(r#"{{"n":"{name}"}}"#));
        let answer = answer(&mut world, host);
        assert_eq!(get(&answer, "id"), Some("4"));
        assert_eq!(get(&answer, "result"), Some(&*format!(r#"{{"n":"{name}"}}"#)));
    }
    let c = post(&mut world, "", LIST);
    world.reply(server, "{}");
    assert!(answer(&mut world, c).contains("\"result\":{}"));
    assert_eq!(world.spawned.len(), 1);
    // It has nobody to ask, and nobody to tell.
    world.say(server, r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#);
    assert!(world.hear(server).contains("-32601"));
    world.say(server, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    // Whoever hangs up has cancelled.
    let d = post(&mut world, "", LIST);
    let id = id_of(&world.hear(server));
    world.handle(Input::Closed { conn: d, why: CloseReason::Reset });
    assert_eq!(get_path(&world.hear(server), &["params", "requestId"]), Some(&*id));
}

#[test]
fn it_is_begun_anew_when_it_died() {
    let mut world = World::new();
    let a = post(&mut world, "", LIST);
    let first = *world.spawned.last().unwrap();
    world.reply(first, r#"{"protocolVersion":"2025-11-25"}"#);
    world.handle(Input::Finished { conn: first });
    world.handle(Input::Exited { conn: first, status: ExitStatus::Code(3) });
    assert!(answer(&mut world, a).contains("exited with code 3"));
    assert!(!world.gateway.is_deserted());
    let b = post(&mut world, "", LIST);
    let second = *world.spawned.last().unwrap();
    assert_ne!(first, second);
    world.reply(second, r#"{"protocolVersion":"2025-11-25"}"#);
    world.hear(second);
    world.reply(second, "{}");
    assert!(answer(&mut world, b).contains("\"result\":{}"));
}

#[test]
fn it_ends_when_nobody_uses_it() {
    let mut world = World::new();
    let a = post(&mut world, "", LIST);
    let server = *world.spawned.last().unwrap();
    world.reply(server, r#"{"protocolVersion":"2025-11-25"}"#);
    world.hear(server);
    // A call that runs is use.
    world.now = world.now + Duration::from_secs(601);
    world.handle(Input::Tick);
    assert!(!world.finished.contains(&server));
    world.reply(server, "{}");
    answer(&mut world, a);
    world.now = world.now + Duration::from_secs(601);
    world.handle(Input::Tick);
    assert!(world.finished.contains(&server));
    world.handle(Input::Exited { conn: server, status: ExitStatus::Code(0) });
    assert!(world.links() == 0);
}

#[test]
fn a_server_that_refuses_or_keeps_silent_is_told_of() {
    let mut world = World::new();
    let a = post(&mut world, "", LIST);
    let server = *world.spawned.last().unwrap();
    let id = id_of(&world.hear(server));
    world.say(
        server,
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"?"}}}}"#),
    );
    // It may know the other era.
    let server = *world.spawned.last().unwrap();
    let id = id_of(&world.hear(server));
    world.say(
        server,
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"?"}}}}"#),
    );
    assert!(answer(&mut world, a).contains("neither initialize nor server/discover"));
    let b = post(&mut world, "", LIST);
    world.now = world.now + Duration::from_secs(60);
    world.handle(Input::Tick);
    assert!(answer(&mut world, b).contains("it does not answer"));
    let c = post(&mut world, "", LIST);
    let server = *world.spawned.last().unwrap();
    world.reply(server, r#"{"protocolVersion":"x"}"#);
    assert!(answer(&mut world, c).contains("unknown protocolVersion"));
    assert_eq!(world.spawned.len(), 4);
}

#[test]
fn hosts_of_all_revisions_share_it() {
    let mut world = World::new();
    let tools = r#"{"tools":[{"name":"n","title":"t"}]}"#;
    let old = post(&mut world, "MCP-Protocol-Version: 2024-11-05\r\n", LIST);
    let server = *world.spawned.last().unwrap();
    world.reply(server, r#"{"protocolVersion":"2025-11-25"}"#);
    world.hear(server);
    world.reply(server, tools);
    let new = post(&mut world, "MCP-Protocol-Version: 2025-11-25\r\n", LIST);
    world.reply(server, tools);
    let told = answer(&mut world, old);
    assert_eq!(get(&told, "result"), Some(r#"{"tools":[{"name":"n"}]}"#));
    assert_eq!(get(&answer(&mut world, new), "result"), Some(tools));
}
