//! Requests to a URL that go out again, or cannot, and the words for that.

use super::web::web_session;
use super::*;
use crate::client::probe::Protocol;

const LIST: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"n"}}"#;

fn respond(world: &mut World, conn: ConnId, head: &str, body: &str) {
    let length = body.len();
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}");
    world.handle(Input::Received { conn, bytes: text.as_bytes() });
}

/// What the newest connection was asked: its first line and its last.
fn asked(world: &mut World) -> (ConnId, String, String) {
    let conn = *world.spawned.last().unwrap();
    let lines = world.lines.remove(&conn).unwrap_or_default();
    (conn, lines.first().cloned().unwrap_or_default(), lines.last().cloned().unwrap_or_default())
}

/// Passes time until something is due, and lets it happen.
fn pass(world: &mut World) -> Duration {
    let at = world.gateway.deadline().unwrap();
    let passed = at.since(world.now);
    world.now = at;
    world.handle(Input::Tick);
    passed
}

#[test]
fn what_a_stale_connection_swallowed_is_sent_again_if_that_is_safe() {
    for (request, safe) in [(LIST, true), (CALL, false)] {
        for broken in [false, true] {
            let mut world = World::web();
            let (host, server) = web_session(&mut world, "");
            world.say(host, request);
            assert!(world.lines.remove(&server).is_some());
            if broken {
                world.handle(Input::Closed { conn: server, why: CloseReason::Reset });
            } else {
                world.handle(Input::Finished { conn: server });
            }
            if !safe {
                assert_eq!(world.spawned.len(), 1);
                assert!(world.hear(host).contains("broke before the answer"));
                continue;
            }
            let (again, line, body) = asked(&mut world);
            assert_ne!(again, server);
            assert!(line.starts_with("POST /mcp") && body.contains("tools/list"), "{line} {body}");
            // Once: a new connection is not stale.
            world.handle(Input::Closed { conn: again, why: CloseReason::Reset });
            assert_eq!(world.spawned.len(), 2);
            assert!(world.hear(host).contains("broke before the answer"));
        }
    }
}

#[test]
fn a_response_that_has_begun_is_not_asked_for_again() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "");
    world.say(host, LIST);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{";
    world.handle(Input::Received { conn: server, bytes: head });
    world.handle(Input::Closed { conn: server, why: CloseReason::Reset });
    assert_eq!(world.spawned.len(), 1);
    assert!(world.hear(host).contains("broke before the answer"));
}

#[test]
fn redirects_are_followed_within_the_server() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "");
    world.say(host, CALL);
    let length = |world: &mut World| world.lines.remove(&server).unwrap().len();
    let before = length(&mut world);
    respond(&mut world, server, "307 Temporary Redirect\r\nLocation: /mcp/", "");
    let line = world.lines.get(&server).unwrap()[0].clone();
    assert!(line.starts_with("POST /mcp/ HTTP/1.1"), "{line}");
    assert_eq!(length(&mut world), before);
    // Not for ever.
    for _ in 0..3 {
        respond(&mut world, server, "308 Permanent Redirect\r\nLocation: /mcp/", "");
    }
    let told = world.hear(host);
    assert!(told.contains("its URL redirects to /mcp/"), "{told}");
    // What follows goes there at once.
    world.lines.clear();
    world.say(host, LIST);
    assert!(world.lines.get(&server).unwrap()[0].starts_with("POST /mcp/ "));
    let elsewhere = "307 Temporary Redirect\r\nLocation: http://evil.example/mcp?t=secret";
    respond(&mut world, server, elsewhere, "");
    let told = world.hear(host);
    assert!(told.contains("http://evil.example/mcp: if") && !told.contains("secret"), "{told}");
    assert_eq!(world.spawned.len(), 1);
    // A POST that would become a GET is not one.
    world.say(host, LIST);
    respond(&mut world, server, "302 Found\r\nLocation: /login", "");
    assert!(world.hear(host).contains("redirects to /login"));
}

#[test]
fn lif_04_nothing_overtakes_the_end_of_the_handshake() {
    for answered in [true, false] {
        let mut world = World::web();
        let (host, server) = web_session(&mut world, "Mcp-Session-Id: abc\r\n");
        world.say(host, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        world.say(host, LIST);
        world.say(host, &LIST.replace('5', "6"));
        world.say(
            host,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}"#,
        );
        let sent = world.lines.remove(&server).unwrap();
        assert!(sent.last().unwrap().contains("notifications/initialized"));
        assert_eq!(world.spawned.len(), 1);
        if answered {
            respond(&mut world, server, "202 Accepted", "");
        } else {
            assert!(pass(&mut world) <= Duration::from_secs(5));
        }
        let first: Vec<&String> =
            world.lines.values().filter(|lines| !lines.is_empty()).map(|lines| &lines[0]).collect();
        assert!(first.iter().any(|line| line.starts_with("GET /mcp")), "{first:?}");
        let all: Vec<&String> = world.lines.values().flatten().collect();
        assert_eq!(all.iter().filter(|line| line.contains("tools/list")).count(), 1, "{all:?}");
    }
}

#[test]
fn a_busy_server_is_asked_when_it_wants_to_be() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let mut world = World::web();
        let (host, server) = web_session(&mut world, "");
        world.say(host, CALL);
        for _ in 0..3 {
            world.lines.clear();
            respond(&mut world, server, &format!("{status}\r\nRetry-After: 2"), "busy");
            assert!(world.silent(host) && world.silent(server));
            assert!(pass(&mut world) <= Duration::from_secs(2));
            assert!(world.lines.get(&server).unwrap()[0].starts_with("POST /mcp"));
        }
        respond(&mut world, server, &format!("{status}\r\nRetry-After: 2"), "busy");
        let told = world.hear(host);
        assert!(told.contains("try again later") && told.contains(&status[..3]), "{told}");
        // Longer than anybody would wait, or nobody knows how long.
        for field in ["Retry-After: 3600", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", "A: b"] {
            world.say(host, CALL);
            respond(&mut world, server, &format!("{status}\r\n{field}"), "busy");
            assert!(world.hear(host).contains("try again later"), "{field}");
        }
    }
}

#[test]
fn who_has_left_is_not_waited_for() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "");
    world.say(host, CALL);
    respond(&mut world, server, "503 Service Unavailable\r\nRetry-After: 2", "");
    world.say(
        host,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
    );
    world.lines.clear();
    pass(&mut world);
    assert!(world.silent(server));
}

#[test]
fn refusals_say_what_to_do() {
    for (head, body, words) in [
        ("401 Unauthorized", "", "wants authorization"),
        (
            "401 Unauthorized",
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"no"}}"#,
            "wants authorization",
        ),
        ("403 Forbidden", "<html>", "forbids this"),
        ("405 Method Not Allowed", "", "check the path"),
        ("500 Internal Server Error", "oops", "try again later (HTTP 500)"),
        (
            "200 OK\r\nContent-Type: text/html; charset=utf-8",
            "<html>",
            "it answered with text/html",
        ),
        ("200 OK\r\nContent-Type: application/json", "{", "as an MCP server"),
    ] {
        let mut world = World::web();
        let (host, server) = web_session(&mut world, "");
        world.say(host, CALL);
        respond(&mut world, server, head, body);
        let told = world.hear(host);
        assert!(told.contains(words) && told.contains("server: "), "{head}: {told}");
    }
}

#[test]
fn the_rest_of_a_stream_is_asked_for_a_few_times() {
    let mut world = World::web();
    let (host, server) = web_session(&mut world, "");
    world.say(host, CALL);
    let begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: e1\ndata:\n\n";
    world.handle(Input::Received { conn: server, bytes: begun });
    world.handle(Input::Closed { conn: server, why: CloseReason::Reset });
    world.starts = false;
    let mut waits = Vec::new();
    while world.silent(host) {
        waits.push(pass(&mut world).as_millis().div_ceil(1000));
        let (conn, ..) = asked(&mut world);
        world.handle(Input::Closed { conn, why: CloseReason::Refused });
    }
    assert_eq!(waits, [1, 2, 4, 8, 16]);
    assert!(world.hear(host).contains("nobody listens"));
    assert_eq!(world.spawned.len(), 6);
}

/// A modern server may refuse a legacy host's call for its header fields. A second
/// refusal is final.
#[test]
fn calls_of_legacy_hosts_are_sent_again_once() {
    let place =
        Place::Url { url: Url::parse("http://localhost:1/mcp").unwrap(), fields: Vec::new() };
    let listeners = Vec::from([server::Listener::Ndjson]);
    let endpoint = server::Config { listeners, ..server::Config::default() };
    let behind = Server { protocol: Protocol::Modern, ..Server::new("server", place) };
    let mut world = World::with(Config::new(behind, endpoint));
    let host = world.host();
    world.say(host, INITIALIZE);
    let server = world.spawned[0];
    let found = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#;
    respond(&mut world, server, "200 OK", found);
    assert!(world.hear(host).contains(r#""protocolVersion":"2025-11-25""#));
    world.say(host, CALL);
    let refusal = |id: u32| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32020,"message":"a field"}}}}"#)
    };
    respond(&mut world, server, "400 Bad Request", &refusal(2));
    let listed = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#;
    respond(&mut world, server, "200 OK", listed);
    respond(&mut world, server, "400 Bad Request", &refusal(4));
    let told = world.hear(host);
    assert!(told.contains("-32603") && told.contains("a field"), "{told}");
}

const ENDPOINT: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: ";

/// A host whose server refuses the POST of `initialize`, and what it is asked then.
fn refused(world: &mut World) -> (ConnId, ConnId) {
    let host = world.host();
    world.say(host, INITIALIZE);
    let (server, ..) = asked(world);
    respond(world, server, "404 Not Found", "nothing here");
    let (stream, line, _) = asked(world);
    assert!(line.starts_with("GET /mcp"), "{line}");
    (host, stream)
}

#[test]
fn hse_02_messages_go_to_the_server_itself() {
    for (endpoint, words) in [
        ("http://evil.example/messages", "on another server"),
        ("//localhost:2/messages", "on another server"),
        ("https://localhost:1/messages", "on another server"),
        ("http://user@localhost:1/", "user name"),
    ] {
        let mut world = World::web();
        let (host, stream) = refused(&mut world);
        let text = format!("{ENDPOINT}{endpoint}\n\n");
        world.handle(Input::Received { conn: stream, bytes: text.as_bytes() });
        let told = world.hear(host);
        assert!(told.contains(words) && !told.contains("\"result\""), "{endpoint}: {told}");
        assert_eq!(world.spawned.len(), 1);
    }
}

#[test]
fn hse_10_what_is_no_such_stream_is_told_as_the_first_refusal() {
    for other in [
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\n",
    ] {
        let mut world = World::web();
        let (host, stream) = refused(&mut world);
        world.handle(Input::Received { conn: stream, bytes: other.as_bytes() });
        let told = world.hear(host);
        assert!(told.contains("(HTTP 404)"), "{other}: {told}");
    }
    let mut world = World::web();
    let (host, _) = refused(&mut world);
    assert!(pass(&mut world) <= Duration::from_secs(10));
    assert!(world.hear(host).contains("(HTTP 404)"));
}

#[test]
fn hse_03_the_end_of_the_stream_is_the_end_of_the_session() {
    let mut world = World::web();
    let (host, stream) = refused(&mut world);
    let text = format!("{ENDPOINT}/m\n\n");
    world.handle(Input::Received { conn: stream, bytes: text.as_bytes() });
    let (post, ..) = asked(&mut world);
    respond(&mut world, post, "202 Accepted", "");
    world.handle(Input::Received { conn: stream, bytes: b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\"}}\n\n" });
    assert!(world.hear(host).contains("\"result\""));
    world.say(host, CALL);
    let told = world.lines.remove(&post).unwrap();
    assert!(told[0].starts_with("POST /m ") && told.last().unwrap().contains("tools/call"));
    world.handle(Input::Finished { conn: stream });
    let told = world.hear(host);
    assert!(told.contains("\"id\":5") && told.contains("broke before the answer"), "{told}");
}
