//! A server at a URL.

use super::*;

/// A legacy session with a URL: the host and the connection.
pub(super) fn web_session(world: &mut World, fields: &str) -> (ConnId, ConnId) {
    let host = world.host();
    world.say(host, INITIALIZE);
    let server = *world.spawned.last().unwrap();
    let request = core::mem::take(world.lines.entry(server).or_default());
    assert!(!request.iter().any(|line| line.starts_with("MCP-Protocol-Version")), "{request:?}");
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n{result}",
        result.len()
    );
    world.handle(Input::Received { conn: server, bytes: answer.as_bytes() });
    world.hear(host);
    (host, server)
}

#[test]
fn the_end_of_a_session_is_told_to_a_url() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
    world.handle(Input::Finished { conn: host });
    let goodbye = world.lines.remove(&server).unwrap();
    assert!(goodbye[0].starts_with("DELETE /mcp"), "{goodbye:?}");
    for field in ["Mcp-Session-Id: abc", "MCP-Protocol-Version: 2025-11-25"] {
        assert!(goodbye.iter().any(|line| line.eq_ignore_ascii_case(field)), "{goodbye:?}");
    }
    world.handle(Input::Received { conn: server, bytes: b"HTTP/1.1 204 No Content\r\n\r\n" });
    assert!(world.links() == 0);
}

#[test]
fn a_lost_session_of_a_url_ends_the_hosts() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
    world.say(host, r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#);
    world.handle(Input::Received {
        conn: server,
        bytes: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    });
    let failed = world.hear(host);
    assert!(failed.contains("\"id\":5") && failed.contains("ended our session"), "{failed}");
    assert!(world.only().sessions.is_empty());
}

#[test]
fn a_broken_stream_of_a_url_is_taken_up_again() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
    world.say(host, r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#);
    world.lines.clear();
    world.handle(Input::Received { conn: server, bytes: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: e7\nretry: 300\ndata:\n\n" });
    world.handle(Input::Finished { conn: server });
    let at = world.gateway.deadline().unwrap();
    assert!(at.since(world.now) <= Duration::from_millis(300));
    world.now = at;
    world.handle(Input::Tick);
    let again = *world.spawned.last().unwrap();
    let get = world.lines.remove(&again).unwrap();
    assert!(
        get[0].starts_with("GET /mcp")
            && get.iter().any(|l| l.eq_ignore_ascii_case("last-event-id: e7")),
        "{get:?}"
    );
    world.handle(Input::Received { conn: again, bytes: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n" });
    assert_eq!(id_of(&world.hear(host)), "5");
}

#[test]
fn a_server_that_is_polled_late_has_hosts_poll_when_that_is_near() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
    world.say(host, r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#);
    world.handle(Input::Received { conn: server, bytes: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: e7\nretry: 5000\ndata:\n\n" });
    world.handle(Input::Finished { conn: server });
    let began = world.now;
    let mut times = Vec::new();
    while world.spawned.len() < 2 {
        world.now = world.gateway.deadline().unwrap();
        times.push(world.now.since(began).as_millis());
        world.handle(Input::Tick);
    }
    assert_eq!(times, [4000, 5000]);
}

/// A token is for us, and not for the server.
#[test]
fn sec_06_tokens_of_hosts_go_no_further() {
    let mut world = World::web();
    let conn = ConnId::accepted(99);
    world.handle(Input::Accepted { conn, listener: ListenerId(1), from: None });
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nAuthorization: Bearer secret\r\nCookie: a=secret\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    world.handle(Input::Received { conn, bytes: request.as_bytes() });
    let server = *world.spawned.last().unwrap();
    let asked = world.lines.remove(&server).unwrap().join("\n");
    assert!(asked.contains("POST /mcp") && !asked.contains("secret"), "{asked}");
}

#[test]
fn several_documents_may_come_as_one_json_response() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "");
    world.say(host, r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}}"#);
    let mut respond = |text: &str| {
        world.handle(Input::Received { conn: server, bytes: text.as_bytes() });
        world.lines.remove(&host).unwrap_or_default()
    };
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(respond(head).is_empty());
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
    let answer = "{\"jsonrpc\":\"2.0\",\n\"id\":2,\"result\":{}}";
    // Each is passed on as soon as its last bracket is there.
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let told = respond(&chunk(progress));
    assert!(told.len() == 1 && told[0].contains(r#""progressToken":"t""#), "{told:?}");
    let (start, end) = answer.split_at(20);
    assert!(respond(&chunk(&format!("\n{progress}\n{start}"))).len() == 1);
    let told = respond(&chunk(end));
    assert!(told.len() == 1 && id_of(&told[0]) == "5", "{told:?}");
    assert!(respond("0\r\n\r\n").is_empty());
    // One that breaks off is no answer.
    world.say(host, r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#);
    let broken = format!("{head}{}0\r\n\r\n", chunk(&answer[..20]));
    world.handle(Input::Received { conn: server, bytes: broken.as_bytes() });
    assert!(world.hear(host).contains("does not answer as an MCP server"));
}

#[test]
fn a_lost_modern_stream_is_a_lost_request() {
    let mut world = World::web();
    let host = world.host();
    world.say(
        host,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#),
    );
    let server = *world.spawned.last().unwrap();
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{result}",
        result.len()
    );
    world.handle(Input::Received { conn: server, bytes: answer.as_bytes() });
    world.handle(Input::Received {
        conn: server,
        bytes: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: e7\ndata:\n\n",
    });
    world.handle(Input::Finished { conn: server });
    assert!(world.hear(host).contains("connection broke"));
}

/// The server at a URL answers what came to `conn`.
fn respond(world: &mut World, conn: ConnId, status: &str, body: &str) {
    let fields = if body.contains("protocolVersion") { "Mcp-Session-Id: new\r\n" } else { "" };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    world.handle(Input::Received { conn, bytes: answer.as_bytes() });
}

/// Answers the requests that were sent to the URL since the last time, with
/// empty results, and gives their bodies.
fn serve(world: &mut World) -> Vec<String> {
    let mut bodies = Vec::new();
    for conn in world.spawned.clone() {
        let lines = world.lines.remove(&conn).unwrap_or_default();
        for body in lines.into_iter().filter(|line| line.starts_with('{')) {
            let result = match get(&body, "method") {
                Some(r#""initialize""#) => r#"{"protocolVersion":"2025-11-25"}"#,
                _ => "{}",
            };
            match get(&body, "id") {
                Some(id) => {
                    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                    respond(world, conn, "200 OK", &answer);
                }
                None => respond(world, conn, "202 Accepted", ""),
            }
            bodies.push(body);
        }
    }
    bodies
}

#[test]
fn a_session_that_a_url_forgets_begins_again() {
    let mut world = World::web();
    let (host, _) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
    let ask = |id: u32, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    world.say(host, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    world.say(host, &ask(2, "logging/setLevel", r#"{"level":"debug"}"#));
    world.say(host, &ask(3, "resources/subscribe", r#"{"uri":"a:1"}"#));
    world.say(host, &ask(4, "resources/subscribe", r#"{"uri":"a:2"}"#));
    world.say(host, &ask(5, "resources/unsubscribe", r#"{"uri":"a:1"}"#));
    serve(&mut world);
    serve(&mut world);
    world.lines.clear();
    world.now = world.now + Duration::from_secs(2);
    let (one, two) = (world.host(), world.spawned.len());
    world.handle(Input::Finished { conn: one });
    // Two calls are refused; a third comes while the session begins again.
    world.say(host, &ask(6, "tools/call", r#"{"name":"a","_meta":{"progressToken":"t"}}"#));
    world.say(host, &ask(7, "tools/call", r#"{"name":"b"}"#));
    let refused: Vec<ConnId> = world
        .spawned
        .iter()
        .copied()
        .filter(|conn| {
            let lines = world.lines.get(conn);
            lines.is_some_and(|lines| lines.iter().any(|line| line.contains("tools/call")))
        })
        .collect();
    assert_eq!(refused.len(), 2);
    world.lines.clear();
    respond(&mut world, refused[0], "404 Not Found", "");
    world.say(host, &ask(8, "tools/call", r#"{"name":"c"}"#));
    respond(&mut world, refused[1], "404 Not Found", "");
    assert!(world.spawned.len() > two);
    let begun = serve(&mut world);
    assert!(begun.len() == 1 && begun[0].contains("\"initialize\""), "{begun:?}");
    // Nothing comes before the end of the handshake.
    let sent = serve(&mut world);
    assert!(sent.len() == 1 && sent[0].contains("notifications/initialized"), "{sent:?}");
    let sent = serve(&mut world);
    for part in [
        r#"{"level":"debug"}"#,
        r#"{"uri":"a:2"}"#,
        r#""name":"a""#,
        r#""name":"b""#,
        r#""name":"c""#,
    ] {
        assert_eq!(sent.iter().filter(|body| body.contains(part)).count(), 1, "{part}: {sent:?}");
    }
    assert!(!sent.iter().any(|body| body.contains("a:1")), "{sent:?}");
    let mut answered: Vec<String> =
        world.lines[&host].iter().map(|line| id_of(line).to_string()).collect();
    answered.sort();
    assert_eq!(answered, ["6", "7", "8"]);
    assert_eq!(world.only().sessions.len(), 1);
    assert_eq!(world.links(), 1);
}

#[test]
fn a_session_that_will_not_begin_again_ends_the_hosts() {
    for silent in [false, true] {
        let mut world = World::web();
        let (host, _) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
        world.now = world.now + Duration::from_secs(2);
        world.say(host, r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#);
        let asked = *world
            .lines
            .iter()
            .find(|(_, lines)| lines.iter().any(|line| line.contains("tools/list")))
            .unwrap()
            .0;
        world.lines.clear();
        respond(&mut world, asked, "404 Not Found", "");
        let again = *world
            .lines
            .iter()
            .find(|(_, lines)| lines.iter().any(|line| line.contains("initialize")))
            .unwrap()
            .0;
        world.lines.remove(&host);
        if silent {
            while !world.lines.contains_key(&host) {
                world.now = world.gateway.deadline().unwrap();
                world.handle(Input::Tick);
            }
        } else {
            respond(&mut world, again, "500 Oh", "");
        }
        let failed = world.hear(host);
        assert_eq!(id_of(&failed), "6");
        assert!(failed.contains("server: "), "{failed}");
        assert!(world.only().sessions.is_empty());
    }
}

#[test]
fn calls_whose_fields_do_not_fit_the_tools_are_sent_again() {
    for (list, outcome) in [
        (
            r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}"#,
            true,
        ),
        (r#""error":{"code":-32603,"message":"no"}"#, false),
    ] {
        let mut world = World::web();
        let host = world.host();
        let call = |id: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","arguments":{{"r":"x"}},{META}}}}}"#
            )
        };
        world.say(host, &call(1));
        let server = world.spawned[0];
        world.lines.clear();
        respond(
            &mut world,
            server,
            "200 OK",
            r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#,
        );
        world.say(host, &call(2));
        let other = *world.spawned.last().unwrap();
        // Nobody has listed the tools: the server misses a field.
        for (conn, id) in [(server, 2), (other, 3)] {
            let sent = world.lines.remove(&conn).unwrap();
            assert!(!sent.iter().any(|line| line.starts_with("Mcp-Param")), "{sent:?}");
            let error = r#""error":{"code":-32020,"message":"Mcp-Param-Region is missing"}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{error}}}"#);
            respond(&mut world, conn, "400 Bad Request", &body);
        }
        let asked = world.lines.remove(&server).unwrap();
        assert!(asked.last().unwrap().contains("tools/list"), "{asked:?}");
        assert!(!world.lines.contains_key(&other) && !world.lines.contains_key(&host));
        respond(&mut world, server, "200 OK", &format!(r#"{{"jsonrpc":"2.0","id":4,{list}}}"#));
        if !outcome {
            let told = world.lines.remove(&host).unwrap();
            assert!(told.len() == 2 && told.iter().all(|line| line.contains("-32020")), "{told:?}");
            continue;
        }
        for (conn, id) in [(server, 5), (other, 6)] {
            let sent = world.lines.remove(&conn).unwrap();
            assert!(sent.iter().any(|line| line == "Mcp-Param-Region: x"), "{sent:?}");
            // A second refusal is final.
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32020,"message":"again"}}}}"#
            );
            respond(&mut world, conn, "400 Bad Request", &body);
        }
        let told = world.lines.remove(&host).unwrap();
        assert!(told.len() == 2 && told.iter().all(|line| line.contains("again")), "{told:?}");
    }
}

#[test]
fn hse_10_a_url_that_refuses_posts_may_speak_http_sse() {
    let mut world = World::web();
    let host = world.host();
    world.say(host, INITIALIZE);
    let refusal = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
    let stream = *world.spawned.last().unwrap();
    world.lines.clear();
    world.handle(Input::Received { conn: stream, bytes: refusal });
    let asked = world.lines.remove(&stream).unwrap();
    assert!(asked[0].starts_with("GET /mcp"), "{asked:?}");
    world.handle(Input::Received { conn: stream, bytes: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages?s=1\n\n" });
    let post = *world.spawned.last().unwrap();
    let asked = world.lines.remove(&post).unwrap();
    assert!(asked[0].starts_with("POST /messages?s=1"), "{asked:?}");
    let accepted = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    world.handle(Input::Received { conn: post, bytes: accepted });
    world.handle(Input::Received { conn: stream, bytes: b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\"}}\n\n" });
    assert!(world.hear(host).contains("\"result\""));
}

#[test]
fn tsk_03_a_url_lists_no_tasks_for_it_would_list_those_of_others() {
    let mut world = World::web();
    let host = world.host();
    world.say(host, INITIALIZE);
    let server = *world.spawned.last().unwrap();
    world.lines.remove(&server);
    respond(
        &mut world,
        server,
        "200 OK",
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{}}}}}"#,
    );
    let welcome = world.hear(host);
    assert_eq!(get_path(&welcome, &["result", "capabilities"]), Some(r#"{"tasks":{"cancel":{}}}"#));
    world.say(host, r#"{"jsonrpc":"2.0","id":5,"method":"tasks/list"}"#);
    assert_eq!(get_path(&world.hear(host), &["error", "code"]), Some("-32601"));
    // What is cancelled too late, the server says itself.
    world.say(host, r#"{"jsonrpc":"2.0","id":6,"method":"tasks/cancel","params":{"taskId":"t"}}"#);
    let body = world.lines.remove(&server).unwrap().pop().unwrap();
    let error = r#"{"code":-32602,"message":"it is over"}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id_of(&body));
    respond(&mut world, server, "200 OK", &answer);
    assert_eq!(get(&world.hear(host), "error"), Some(error));
}
