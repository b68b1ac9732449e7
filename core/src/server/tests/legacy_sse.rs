//! HTTP+SSE of 2024-11-05.

use super::*;
use crate::server::{Access, LegacySse};

const ASKED: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"h","version":"1"}}}"#;
const AGREED: &str =
    r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;

fn world(tokens: &[&str]) -> World {
    let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
    let tokens = tokens.iter().map(ToString::to_string).collect();
    let config = Config {
        listeners: Vec::from([Listener::Http(rules)]),
        access: Access { tokens, cors: false },
        legacy_sse: Some(LegacySse::default()),
        ..Config::default()
    };
    World { endpoint: Endpoint::new(config, Entropy::new([3; 32])), ..World::new() }
}

fn open(world: &mut World, fields: &str) -> (ConnId, String) {
    let conn = world.connect(0);
    world.say(
        conn,
        &format!(
            "GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}\r\n"
        ),
    );
    let head = world.take(conn);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"), "{head}");
    let (_, place) = head.split_once("event: endpoint\ndata: ").unwrap();
    let (place, rest) = place.split_once('\n').unwrap();
    assert_eq!(rest, "\n\r\n");
    assert!(place.starts_with("/message?sessionId="), "{place}");
    (conn, place.to_string())
}

fn send(world: &mut World, place: &str, fields: &str, body: &str) -> String {
    let conn = world.connect(0);
    let length = body.len();
    world.say(conn, &format!("POST {place} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{fields}Content-Length: {length}\r\n\r\n{body}"));
    world.take(conn)
}

fn conversation(world: &mut World) -> (ConnId, String, PeerId) {
    let (stream, place) = open(world, "");
    let accepted = send(world, &place, "", ASKED);
    assert_eq!(accepted, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
    let (exchange, peer, _) = world.requests.remove(0);
    world.respond(exchange, Outcome::Result(AGREED));
    let answer = world.take(stream);
    assert!(answer.contains("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\""));
    assert_eq!(world.endpoint.revision_of(peer.unwrap()), Some(Revision::R2024_11_05));
    (stream, place, peer.unwrap())
}

#[test]
fn hse_01_and_02_and_04_all_that_a_host_is_told_comes_on_its_stream() {
    let mut world = world(&[]);
    let (stream, place, peer) = conversation(&mut world);
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"n"}}"#;
    assert!(send(&mut world, &place, "", call).starts_with("HTTP/1.1 202"));
    let (exchange, ..) = world.requests.remove(0);
    let route = Route::Exchange(exchange);
    world.endpoint.notify(route, "notifications/progress", Some("{\"n\":1}"));
    world.endpoint.notify(Route::Peer(peer), "notifications/tools/list_changed", None);
    world.endpoint.ask(route, "roots/list", None).unwrap();
    world.settle();
    let told = world.take(stream);
    assert!(["{\"n\":1}", "list_changed", "roots/list"].iter().all(|part| told.contains(part)));
    let ask = told.lines().find(|line| line.contains("roots/list")).unwrap();
    let id = crate::jsonrpc::get(ask.strip_prefix("data: ").unwrap(), "id").unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#);
    assert!(send(&mut world, &place, "", &answer).starts_with("HTTP/1.1 202"));
    world.respond(exchange, Outcome::Result("{}"));
    assert!(world.take(stream).contains(r#""id":"c","result":{}"#));
    // A ping, and what cannot be served, are answered there, too.
    send(&mut world, &place, "", r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    assert!(world.take(stream).contains(r#""id":7,"result":{}"#));
}

#[test]
fn silence_is_broken_by_comments() {
    let mut world = world(&[]);
    let (stream, ..) = conversation(&mut world);
    world.pass(Duration::from_secs(16));
    assert_eq!(world.take(stream), "3\r\n:\n\n\r\n");
}

#[test]
fn the_end_of_the_stream_is_the_end() {
    let mut world = world(&[]);
    let (stream, place, peer) = conversation(&mut world);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n"}}"#;
    send(&mut world, &place, "", call);
    world.endpoint.finished(stream);
    world.settle();
    assert_eq!((world.ended.as_slice(), world.cancelled.len()), (&[peer][..], 1));
    assert!(send(&mut world, &place, "", call).starts_with("HTTP/1.1 404"));

    world.requests.clear();
    let (stream, place, peer) = conversation(&mut world);
    world.endpoint.end_peer(peer);
    world.settle();
    assert!(world.take(stream).ends_with("0\r\n\r\n"));
    assert!(send(&mut world, &place, "", call).starts_with("HTTP/1.1 404"));
}

#[test]
fn hse_05_refusals_say_why() {
    let mut world = world(&[]);
    let (_, place, _) = conversation(&mut world);
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    for (place, body, status) in [
        ("/message", ping, 404),
        ("/message?sessionId=", ping, 404),
        ("/message?sessionId=AAAA", ping, 404),
        (&*place, "{", 400),
        (&*place, "[]", 400),
        (&*place, &*format!("[{ping}]"), 400),
        ("/sse", ping, 405),
    ] {
        let answer = send(&mut world, place, "", body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{place} {body}: {answer}");
        assert!(answer.contains("\"error\""), "{answer}");
    }
    for (request, status) in [
        ("GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", 406),
        ("GET /sse HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        ("GET /message HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    ] {
        let answer = world.refused(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
    }
    // A session of the newer transport is none of this one, and the reverse.
    let (_, fields) = world.session();
    let token = fields.split("\r\n").next().unwrap().split_once(": ").unwrap().1;
    let answer = send(&mut world, &format!("/message?sessionId={token}"), "", ping);
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let token = place.split_once('=').unwrap().1;
    let answer = world.refused(&post(&format!("Mcp-Session-Id: {token}\r\n"), ping));
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn a_conversation_is_of_whoever_began_it() {
    let mut world = world(&["the-first-one", "the-second-one"]);
    let (_, place) = open(&mut world, "Authorization: Bearer the-first-one\r\n");
    for (fields, status) in [
        ("", 401),
        ("Authorization: Bearer the-second-one\r\n", 404),
        ("Authorization: Bearer the-first-one\r\n", 202),
    ] {
        let answer = send(&mut world, &place, fields, ASKED);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[test]
fn hse_06_it_is_not_there_unless_wanted() {
    let mut world = World::new();
    let answer = world.refused("GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}
