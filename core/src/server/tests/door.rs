//! The message door.

use alloc::borrow::Cow;

use super::*;
use crate::server::Head;
use crate::wire::http1::RequestHead;

const FIELDS: [(&str, &str); 4] = [
    ("host", "localhost"),
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    // Those of the other stack's framing are its own.
    ("transfer-encoding", "chunked"),
];

fn head(method: &str, more: &[(&str, &str)]) -> RequestHead {
    let fields = FIELDS.iter().chain(more).map(|(name, value)| (*name, value.as_bytes()));
    RequestHead::from_parts(method, "/mcp", fields).unwrap()
}

/// Hands a request in; gives its connection.
fn ask(world: &mut World, head: RequestHead, body: &str) -> ConnId {
    world.conns += 1;
    let conn = ConnId::accepted(world.conns);
    world.endpoint.at(world.now);
    let body = Cow::Borrowed(body.as_bytes());
    if let Some(event) = world.endpoint.request(conn, ListenerId(0), None, head, body) {
        keep(event, &mut world.requests, &mut world.cancelled, &mut world.ended);
    }
    conn
}

/// What came of it: the head, if it is new, the body so far, and whether that is all.
fn read(world: &mut World, conn: ConnId) -> (Option<Head>, String, bool) {
    let mut done = false;
    while let Some(action) = world.endpoint.poll() {
        done |= action == Action::Finish(conn);
    }
    let head = world.endpoint.take_head(conn);
    let body = String::from_utf8(world.endpoint.outgoing(conn).to_vec()).unwrap();
    world.endpoint.sent(conn, body.len());
    (head, body, done)
}

#[test]
fn a_request_is_answered_without_a_byte_of_framing() {
    let mut world = World::new();
    let conn = ask(&mut world, head("POST", &[]), INITIALIZE);
    assert_eq!(read(&mut world, conn), (None, String::new(), false));
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.respond(exchange, Outcome::Result(INITIALIZED));
    let (answered, body, done) = read(&mut world, conn);
    let answered = answered.unwrap();
    assert_eq!((answered.status, answered.length, done), (200, Some(body.len() as u64), true));
    assert!(body.starts_with(r#"{"jsonrpc":"2.0","id":0,"result""#), "{body}");
    let names: Vec<&str> = answered.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Content-Type", "Mcp-Session-Id"]);
    world.endpoint.closed(conn);

    // The session is one that any door leads to.
    let session = [("mcp-session-id", answered.fields[1].1.as_str())];
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let conn = ask(&mut world, head("POST", &session), notice);
    let (answered, body, done) = read(&mut world, conn);
    assert_eq!((answered.unwrap().status, body.as_str(), done), (202, "", true));
    let conn = ask(&mut world, head("DELETE", &session), "");
    assert_eq!(read(&mut world, conn).0.unwrap().status, 204);
}

#[test]
fn what_is_refused_is_refused_there_too() {
    let mut world = World::new();
    for (method, more, body, status) in [
        ("POST", &[("origin", "https://evil.example")][..], INITIALIZE, 403),
        ("PUT", &[], INITIALIZE, 405),
        ("POST", &[], "{", 400),
        ("POST", &[("mcp-session-id", "x")], r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 404),
    ] {
        let conn = ask(&mut world, head(method, more), body);
        let (answered, body, done) = read(&mut world, conn);
        assert_eq!((answered.unwrap().status, done), (status, true));
        assert!(body.contains("\"error\""), "{body}");
    }
}

#[test]
fn streams_come_in_pieces_and_end() {
    let mut world = World::new();
    let (fields, body) = modern("tools/call", 1);
    let more: Vec<(&str, &str)> = fields
        .lines()
        .filter_map(|field| field.split_once(": "))
        .chain([("mcp-name", "n")])
        .collect();
    let body = body.replace("\"params\":{", "\"params\":{\"name\":\"n\",");
    let conn = ask(&mut world, head("POST", &more), &body);
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.notify(Route::Exchange(exchange), "notifications/progress", Some("{}"));
    let (answered, piece, done) = read(&mut world, conn);
    let answered = answered.unwrap();
    assert_eq!((answered.status, answered.length, done), (200, None, false));
    assert!(answered.fields.contains(&("Content-Type".into(), "text/event-stream".into())));
    assert!(piece.starts_with("event: message\ndata: {") && piece.ends_with("}\n\n"), "{piece}");
    world.endpoint.respond(exchange, Outcome::Result("{}"));
    let (answered, piece, done) = read(&mut world, conn);
    assert!(answered.is_none() && done && piece.ends_with("}\n\n"), "{piece}");

    // Whoever goes away cancels.
    let conn = ask(&mut world, head("POST", &more), &body);
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.closed(conn);
    world.settle();
    assert_eq!(world.cancelled, [exchange]);
}

#[test]
fn heads_that_would_be_two_are_none() {
    for (method, target, name, value) in [
        ("POST / HTTP/1.1\r\nA: b\r\n\r\nGET", "/mcp", "host", "localhost"),
        ("POST", "/mcp HTTP/1.1\r\nEvil: 1", "host", "localhost"),
        ("POST", "/mcp", "host", "localhost\r\nEvil: 1"),
        ("POST", "/mcp", "host: localhost\r\nevil", "1"),
        ("POST", "/mcp", "a b", "1"),
        ("POST", "/mcp", "host: x", "1"),
        ("P ST", "/mcp", "host", "localhost"),
        ("POST", "/mcp", "accept", "no host"),
    ] {
        let fields = [(name, value.as_bytes())];
        assert!(RequestHead::from_parts(method, target, fields).is_err(), "{method} {name}");
    }
}

#[test]
fn a_last_response_takes_as_long_as_it_is_read() {
    let mut world = World::new();
    let conn = world.connect(0);
    world.say(
        conn,
        &post("Connection: close\r\n", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
    );
    let (exchange, ..) = world.requests.remove(0);
    let long = format!("{{\"t\":\"{}\"}}", "x".repeat(50_000));
    world.endpoint.respond(exchange, Outcome::Result(&long));
    let mut left = world.endpoint.outgoing(conn).len();
    while left > 0 {
        world.now = world.now + Duration::from_secs(10);
        world.endpoint.at(world.now);
        world.endpoint.sweep();
        let mut actions = core::iter::from_fn(|| world.endpoint.poll());
        assert!(!actions.any(|action| action == Action::Close(conn)), "{left} bytes were lost");
        left = world.endpoint.sent(conn, 10_000);
    }
    world.pass(Duration::from_secs(3));
    assert_eq!(world.closed, [conn]);
}
