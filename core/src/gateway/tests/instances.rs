//! A server for each token of hosts.

use super::*;
use crate::client::probe::Protocol;
use crate::gateway::{Catalogue, Instances};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;
const TASKS: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"resultType":"complete"}"#;

fn server(name: &str, instances: Instances, protocol: Protocol) -> Server {
    let place = Place::Process(Command { program: name.into(), ..Command::default() });
    Server { instances, protocol, ..Server::new(name, place) }
}

/// A gateway that knows two tokens.
fn world(servers: Vec<Server>) -> World {
    let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
    let tokens = Vec::from(["ann".to_string(), "bob".to_string()]);
    let endpoint = server::Config {
        listeners: Vec::from([server::Listener::Ndjson, server::Listener::Http(rules)]),
        access: server::Access { tokens, cors: false },
        ..server::Config::default()
    };
    World::with(Config::of(servers, endpoint))
}

/// A POST on a connection of its own, with a token.
fn post(world: &mut World, token: &str, fields: &str, body: &str) -> ConnId {
    world.hosts += 1;
    let conn = ConnId::accepted(world.hosts);
    world.handle(Input::Accepted { conn, listener: ListenerId(1), from: None });
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nAuthorization: Bearer {token}\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    world.handle(Input::Received { conn, bytes: request.as_bytes() });
    conn
}

/// A modern request.
fn modern(world: &mut World, token: &str, method: &str, name: &str, params: &str) -> ConnId {
    let named = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    let fields = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{named}");
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":4,"method":"{method}","params":{{{params}{META}}}}}"#);
    post(world, token, &fields, &body)
}

fn call(world: &mut World, token: &str, name: &str) -> ConnId {
    modern(world, token, "tools/call", name, &format!(r#""name":"{name}","#))
}

/// The last message that a connection was sent.
fn told(world: &mut World, conn: ConnId) -> String {
    let lines = world.lines.remove(&conn).unwrap_or_default();
    lines.into_iter().rfind(|line| line.contains("jsonrpc")).unwrap_or_default()
}

/// The last connection to a server.
fn last(world: &World) -> ConnId {
    *world.spawned.last().unwrap()
}

#[test]
fn ses_13_ses_14_hosts_with_different_tokens_have_processes_of_their_own() {
    let mut world = world(Vec::from([server("s", Instances::PerToken, Protocol::Modern)]));
    let a = call(&mut world, "ann", "n");
    let anns = last(&world);
    let b = call(&mut world, "bob", "n");
    let bobs = last(&world);
    assert_ne!(anns, bobs);
    world.reply(anns, r#"{"who":"ann"}"#);
    world.reply(bobs, r#"{"who":"bob"}"#);
    assert!(told(&mut world, a).contains("\"ann\"") && told(&mut world, b).contains("\"bob\""));
    // Each comes back to its own.
    call(&mut world, "ann", "n");
    assert!(!world.silent(anns) && world.silent(bobs));
    assert_eq!(world.spawned.len(), 2);
    // A pipe has no token.
    let host = world.host();
    world.say(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#),
    );
    assert_eq!(world.spawned.len(), 3);
}

#[test]
fn hosts_share_a_server_unless_it_is_said_otherwise() {
    let mut world = world(Vec::from([server("s", Instances::Shared, Protocol::Modern)]));
    call(&mut world, "ann", "n");
    call(&mut world, "bob", "n");
    assert_eq!(world.spawned.len(), 1);
}

#[test]
fn legacy_requests_without_a_session_go_to_the_instance_of_their_token() {
    let mut world = world(Vec::from([server("s", Instances::PerToken, Protocol::Legacy)]));
    let list = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{}}"#;
    for (token, spawned) in [("ann", 1), ("bob", 2), ("ann", 2)] {
        let host = post(&mut world, token, "", list);
        assert_eq!(world.spawned.len(), spawned);
        let server = world.spawned[usize::from(token == "bob")];
        if world.lines[&server][0].contains("initialize") {
            world.reply(server, r#"{"protocolVersion":"2025-11-25"}"#);
            world.hear(server);
        }
        world.reply(server, r#"{"tools":[]}"#);
        assert!(told(&mut world, host).contains("\"tools\":[]"), "{token}");
    }
}

#[test]
fn sessions_belong_to_the_instance_of_their_token_and_end_with_it() {
    let mut world = world(Vec::from([server("s", Instances::PerToken, Protocol::Legacy)]));
    let host = post(&mut world, "ann", "", INITIALIZE);
    let server = last(&world);
    world.reply(server, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#);
    let head = world.lines.remove(&host).unwrap_or_default();
    let session =
        head.iter().find_map(|line| line.strip_prefix("Mcp-Session-Id: ")).unwrap().to_string();
    let fields = format!("Mcp-Session-Id: {session}\r\n");
    post(&mut world, "ann", &fields, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(world.hear(server).contains("notifications/initialized"));
    world.gateway.configure(world.now, Vec::new(), Catalogue::default());
    world.handle(Input::Tick);
    assert!(world.finished.contains(&server));
    world.handle(Input::Exited { conn: server, status: ExitStatus::Code(0) });
    world.handle(Input::Tick);
    assert!(world.gateway.servers.is_empty() && world.gateway.instances.is_empty());
}

/// In a catalogue the server is seen once, and each token's calls, subscriptions and
/// tasks are at its own instance.
#[test]
fn an_instance_does_the_work_of_a_server_in_the_catalogue() {
    let servers = ["a", "b"].map(|name| server(name, Instances::PerToken, Protocol::Modern));
    let mut world = world(servers.to_vec());
    let list = modern(&mut world, "ann", "tools/list", "", "");
    for conn in world.spawned.clone() {
        world.reply(conn, TASKS);
        world.reply(conn, r#"{"tools":[{"name":"n","inputSchema":{"type":"object"}}]}"#);
    }
    let told_list = told(&mut world, list);
    assert!(told_list.contains("a__n") && told_list.contains("b__n"), "{told_list}");
    assert_eq!(world.spawned.len(), 2);

    let known = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let with_tasks = META.replace(
        known,
        &known.replace("{}", r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#),
    );
    let ask = |world: &mut World, token: &str, method: &str, name: &str, member: &str| {
        let fields = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n"
        );
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":4,"method":"{method}","params":{{"{member}":"{name}",{with_tasks}}}}}"#
        );
        post(world, token, &fields, &body)
    };
    let called = ask(&mut world, "ann", "tools/call", "a__n", "name");
    let anns = last(&world);
    assert_eq!(world.programs[&anns], "a");
    world.reply(anns, r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":1000}"#);
    let task = told(&mut world, called);
    let id = get_path(&task, &["result", "taskId"]).unwrap().trim_matches('"').to_string();
    // Its task is there, too, and for nobody else.
    let got = ask(&mut world, "ann", "tasks/get", &id, "taskId");
    let asked = world.reply(anns, r#"{"resultType":"complete","taskId":"t","status":"working"}"#);
    assert_eq!(get_path(&asked, &["params", "taskId"]), Some("\"t\""));
    assert!(told(&mut world, got).contains("working"));
    let other = ask(&mut world, "bob", "tasks/get", &id, "taskId");
    assert!(told(&mut world, other).contains("-32602"));
    assert_eq!(world.spawned.len(), 3);

    call(&mut world, "bob", "a__n");
    assert_ne!(last(&world), anns);
    assert_eq!((world.spawned.len(), &*world.programs[&last(&world)]), (4, "a"));
}
