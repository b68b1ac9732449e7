//! The endpoint as hosts see it, byte for byte, without a runtime.

mod access;
mod batch;
mod door;
mod legacy_sse;
mod limits;
mod rows;
mod session;
mod stateless;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::{Config, Endpoint, Event, ExchangeId, Limits, Listener, Outcome, PeerId, Route};
use crate::driver::{Action, ConnId, ListenerId};
use crate::entropy::Entropy;
use crate::protocol::origin::OriginRules;
use crate::protocol::revision::Revision;
use crate::time::Instant;

/// An endpoint with an HTTP and an NDJSON listener, whose requests are kept
/// until a test answers them.
struct World {
    endpoint: Endpoint,
    now: Instant,
    conns: u64,
    requests: Vec<(ExchangeId, Option<PeerId>, String)>,
    cancelled: Vec<ExchangeId>,
    ended: Vec<PeerId>,
    closed: Vec<ConnId>,
    /// All that each connection was sent.
    sent: BTreeMap<ConnId, String>,
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"h","version":"1"}}}"#;
const INITIALIZED: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn post(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}

fn modern(method: &str, id: u32) -> (String, String) {
    let fields = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
    (fields, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{META}}}}}"#))
}

impl World {
    fn new() -> Self {
        let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
        let config = Config {
            listeners: Vec::from([Listener::Http(rules), Listener::Ndjson]),
            limits: Limits { message_bytes: 4096, ..Limits::default() },
            ..Config::default()
        };
        Self {
            endpoint: Endpoint::new(config, Entropy::new([3; 32])),
            now: Instant::START,
            conns: 0,
            requests: Vec::new(),
            cancelled: Vec::new(),
            ended: Vec::new(),
            closed: Vec::new(),
            sent: BTreeMap::new(),
        }
    }

    fn connect(&mut self, listener: u32) -> ConnId {
        self.connect_from(listener, None)
    }

    fn connect_from(&mut self, listener: u32, from: Option<&str>) -> ConnId {
        self.conns += 1;
        let conn = ConnId::accepted(self.conns);
        self.endpoint.at(self.now);
        let from = from.map(|address| address.parse().unwrap());
        self.endpoint.accepted(conn, ListenerId(listener), from);
        conn
    }

    fn say(&mut self, conn: ConnId, text: &str) {
        self.say_bytes(conn, text.as_bytes());
    }

    fn say_bytes(&mut self, conn: ConnId, bytes: &[u8]) {
        let mut input = bytes;
        self.endpoint.at(self.now);
        while let Some(event) = self.endpoint.receive(conn, &mut input) {
            keep(event, &mut self.requests, &mut self.cancelled, &mut self.ended);
        }
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            keep(event, &mut self.requests, &mut self.cancelled, &mut self.ended);
        }
        while let Some(action) = self.endpoint.poll() {
            match action {
                Action::Flush(conn) => {
                    let bytes = self.endpoint.outgoing(conn).to_vec();
                    self.sent
                        .entry(conn)
                        .or_default()
                        .push_str(core::str::from_utf8(&bytes).unwrap());
                    self.endpoint.sent(conn, bytes.len());
                }
                Action::Close(conn) => self.closed.push(conn),
                _ => {}
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.endpoint.at(self.now);
        self.endpoint.sweep();
        self.settle();
    }

    fn respond(&mut self, exchange: ExchangeId, outcome: Outcome<'_>) {
        self.endpoint.respond(exchange, outcome);
        self.settle();
    }

    fn take(&mut self, conn: ConnId) -> String {
        self.sent.remove(&conn).unwrap_or_default()
    }

    fn take_settled(&mut self, conn: ConnId) -> String {
        self.settle();
        self.take(conn)
    }

    /// What one POST on a connection of its own is answered, without the event.
    fn refused(&mut self, request: &str) -> String {
        let conn = self.connect(0);
        self.say(conn, request);
        assert!(self.requests.is_empty(), "not refused: {request}");
        self.take(conn)
    }

    fn session(&mut self) -> (PeerId, String) {
        self.session_at("2025-11-25")
    }

    fn session_at(&mut self, version: &str) -> (PeerId, String) {
        let conn = self.connect(0);
        self.say(conn, &post("", INITIALIZE));
        let (exchange, peer, _) = self.requests.remove(0);
        let result = INITIALIZED.replace("2025-11-25", version);
        self.respond(exchange, Outcome::Result(&result));
        let answer = self.take(conn);
        let token = answer.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: ")).unwrap();
        (peer.unwrap(), format!("Mcp-Session-Id: {token}\r\nMCP-Protocol-Version: 2025-11-25\r\n"))
    }
}

fn keep(
    event: Event<'_>,
    requests: &mut Vec<(ExchangeId, Option<PeerId>, String)>,
    cancelled: &mut Vec<ExchangeId>,
    ended: &mut Vec<PeerId>,
) {
    match event {
        Event::Request(request) => {
            let text = request.message.as_str().to_string();
            requests.push((request.exchange, request.peer, text));
        }
        Event::Cancelled { exchange, .. } => cancelled.push(exchange),
        Event::Ended { peer } => ended.push(peer),
        Event::Notification { .. } | Event::Answer { .. } => {}
    }
}

fn starts(answer: &str, status: u16, code: i32) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    assert!(answer.contains(&format!("\"code\":{code},")), "{answer}");
}

#[test]
fn refusals_come_in_the_order_of_the_rules() {
    let mut world = World::new();
    let (fields, body) = modern("tools/list", 4);
    let right = post(&fields, &body);
    let (fields, body) = modern("ping", 4);
    let ping = post(&fields, &body);
    let cases = [
        (right.replace("Host: localhost", "Host: evil.example"), 403, -32600),
        (
            right.replace("Host: localhost", "Host: localhost\r\nOrigin: https://evil.example"),
            403,
            -32600,
        ),
        (right.replace("POST", "PUT"), 405, -32600),
        (right.replace("/mcp", "/other"), 404, -32600),
        (
            right.replace("application/json\r\nAcc", "text/plain; a=application/json\r\nAcc"),
            415,
            -32600,
        ),
        (right.replace("application/json, text/event-stream", "text/html"), 406, -32600),
        (post("", "{"), 400, -32700),
        (post("", "[]"), 400, -32600),
        (post("", r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), 400, -32600),
        (right.replace("MCP-Protocol-Version: 2026-07-28\r\n", ""), 400, -32020),
        (right.replace("Version: 2026-07-28", "Version: 2025-11-25"), 400, -32020),
        (right.replace("2026-07-28", "2030-01-01"), 400, -32022),
        (right.replace("clientCapabilities\":{}", "clientCapabilities\":77"), 400, -32602),
        (right.replace("Mcp-Method: tools/list", "Mcp-Method: tools/call"), 400, -32020),
        (
            post(
                "MCP-Protocol-Version: 2026-07-28\r\n",
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#,
            ),
            400,
            -32602,
        ),
        (
            post(
                "MCP-Protocol-Version: 1999-01-01\r\n",
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#,
            ),
            400,
            -32022,
        ),
        (
            post("Mcp-Session-Id: none\r\n", r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#),
            404,
            -32600,
        ),
    ];
    for (request, status, code) in cases.into_iter().chain([(ping, 404, -32601)]) {
        let answer = world.refused(&request);
        assert!(!answer.is_empty(), "no answer to {request}");
        starts(&answer, status, code);
    }
    let late = world.refused(&post(
        "Mcp-Session-Id: none\r\n",
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#,
    ));
    assert!(late.contains("\"id\":4"), "{late}");
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let mut world = World::new();
    let conn = world.connect(0);
    let two: String = [1, 2]
        .map(|id| {
            let (fields, body) = modern("tools/list", id);
            post(&fields, &body)
        })
        .concat();
    world.say(conn, &two);
    assert_eq!(world.requests.len(), 1);
    let (first, ..) = world.requests.remove(0);
    world.respond(first, Outcome::Result("{}"));
    let (second, ..) = world.requests.remove(0);
    world.respond(second, Outcome::Error(r#"{"code":-32601,"message":"no"}"#));
    let answers = world.take(conn);
    assert!(answers.find("\"id\":1").unwrap() < answers.find("\"id\":2").unwrap());
    assert!(answers.contains("HTTP/1.1 404"));
}

#[test]
fn a_response_becomes_a_stream_when_it_has_to() {
    let mut world = World::new();
    let conn = world.connect(0);
    let (fields, body) = modern("tools/list", 1);
    world.say(conn, &post(&fields, &body));
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.notify(Route::Exchange(exchange), "notifications/progress", Some("{\n}"));
    world.settle();
    let head = world.take(conn);
    assert!(
        head.contains("Content-Type: text/event-stream") && head.contains("X-Accel-Buffering: no")
    );
    assert!(head.contains("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n"));
    world.respond(exchange, Outcome::Result("{}"));
    assert!(world.take(conn).ends_with("\n\n\r\n0\r\n\r\n"));
    // And the connection is free again.
    world.say(conn, &post(&fields, &body));
    assert_eq!(world.requests.len(), 1);
}

#[test]
fn a_result_comes_as_the_host_likes_it_best() {
    let (fields, body) = modern("tools/list", 1);
    for (accept, streams) in [
        ("application/json, text/event-stream", false),
        ("text/event-stream, application/json", true),
        ("text/event-stream;q=0.5, application/json", false),
        ("application/json;q=0.5, text/event-stream", true),
        ("application/json;q=0, text/*", true),
        ("text/event-stream", true),
        ("application/json", false),
        ("*/*", false),
    ] {
        for outcome in [Outcome::Result("{}"), Outcome::Error(r#"{"code":-32601,"message":""}"#)] {
            let mut world = World::new();
            let conn = world.connect(0);
            let likes = post(&fields, &body)
                .replace("application/json, text/event-stream\r\n", &format!("{accept}\r\n"));
            world.say(conn, &likes);
            let (exchange, ..) = world.requests.remove(0);
            world.respond(exchange, outcome);
            let answer = world.take(conn);
            let streamed = answer.contains("Content-Type: text/event-stream");
            let expected = streams && outcome == Outcome::Result("{}");
            assert_eq!(streamed, expected, "{accept}");
            assert_eq!(answer.starts_with("HTTP/1.1 404"), outcome != Outcome::Result("{}"));
        }
    }
}

#[test]
fn a_session_streams_a_result_that_can_be_taken_up_again() {
    let mut world = World::new();
    let (_, fields) = world.session();
    let conn = world.connect(0);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = post(&fields, ping)
        .replace("application/json, text/event-stream\r\n", "text/event-stream\r\n");
    world.say(conn, &request);
    let answer = world.take(conn);
    let id = answer.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    assert!(answer.contains(r#""result":{}"#) && answer.ends_with("0\r\n\r\n"));
    let (_, again) = resume(&mut world, &fields, id);
    assert!(again.contains(r#""result":{}"#));
}

#[test]
fn silence_is_filled_with_comments() {
    let mut world = World::new();
    let conn = world.connect(0);
    let (fields, body) = modern("tools/list", 1);
    world.say(conn, &post(&fields, &body));
    world.pass(Duration::from_secs(15));
    assert!(world.take(conn).contains("3\r\n:\n\n\r\n"));
    world.pass(Duration::from_secs(15));
    assert_eq!(world.take(conn), "3\r\n:\n\n\r\n");
}

#[test]
fn a_modern_host_that_hangs_up_has_cancelled() {
    let mut world = World::new();
    let conn = world.connect(0);
    let (fields, body) = modern("tools/list", 1);
    world.say(conn, &post(&fields, &body));
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.finished(conn);
    world.settle();
    assert_eq!(world.cancelled, [exchange]);
    assert_eq!(world.endpoint.running(), 0);
}

#[test]
fn a_session_lives_until_it_is_deleted() {
    let mut world = World::new();
    let (peer, fields) = world.session();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let conn = world.connect(0);
    world.say(conn, &post(&fields, list));
    assert_eq!(world.requests.remove(0).1, Some(peer));
    // A legacy request survives its connection.
    world.endpoint.finished(conn);
    world.endpoint.closed(conn);
    assert!(world.cancelled.is_empty());

    let conn = world.connect(0);
    world.say(conn, &format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    assert!(world.take(conn).starts_with("HTTP/1.1 204"));
    assert_eq!((world.ended.len(), world.cancelled.len()), (1, 1));
    starts(&world.refused(&post(&fields, list)), 404, -32600);
}

#[test]
fn an_idle_session_ends_by_itself() {
    let mut world = World::new();
    let (peer, _) = world.session();
    for _ in 0..200 {
        world.pass(Duration::from_secs(10));
    }
    assert_eq!(world.ended, [peer]);
    assert_eq!(world.endpoint.deadline(), None);
}

#[test]
fn a_session_whose_hosts_vanish_in_a_call_ends_too() {
    let mut world = World::new();
    let (peer, fields) = world.session();
    let conn = world.connect(0);
    world.say(conn, &post(&fields, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#));
    for conn in [1, 2].map(ConnId::accepted) {
        world.endpoint.closed(conn);
    }
    world.pass(Duration::from_secs(3600));
    let (exchange, ..) = world.requests.remove(0);
    world.respond(exchange, Outcome::Result("{}"));
    while let Some(at) = world.endpoint.deadline() {
        world.pass(at.since(world.now));
    }
    assert_eq!(world.ended, [peer]);
}

#[test]
fn a_refused_initialize_leaves_nothing() {
    let mut world = World::new();
    let conn = world.connect(0);
    world.say(conn, &post("", INITIALIZE));
    let (exchange, ..) = world.requests.remove(0);
    world.respond(exchange, Outcome::Error(r#"{"code":-32603,"message":"no"}"#));
    let answer = world.take(conn);
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("Mcp-Session-Id"));
    assert!(world.endpoint.peers.is_empty());
}

#[test]
fn what_belongs_to_no_request_waits_for_a_stream() {
    let mut world = World::new();
    let (peer, fields) = world.session();
    world.endpoint.make_ready(peer);
    world.endpoint.notify(Route::Peer(peer), "notifications/tools/list_changed", None);
    let conn = world.connect(0);
    world.say(
        conn,
        &format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}\r\n"
        ),
    );
    let stream = world.take(conn);
    assert!(stream.contains("3\r\n:\n\n\r\n") && stream.contains("tools/list_changed"));
    world.endpoint.notify(Route::Peer(peer), "notifications/prompts/list_changed", None);
    world.settle();
    assert!(world.take(conn).contains("prompts/list_changed"));
    world.endpoint.closed(conn);
    assert!(!world.endpoint.has_stream(peer));
}

#[test]
fn only_so_much_waits_for_a_stream() {
    let mut world = World::new();
    let (peer, _) = world.session();
    for _ in 0..1000 {
        world.endpoint.notify(Route::Peer(peer), "notifications/message", Some("{}"));
    }
    let super::peer::Place::Session(session) = &world.endpoint.peers[&peer].place else { panic!() };
    assert_eq!(session.waiting.len(), 256);
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_comes() {
    let mut world = World::new();
    let answer = world.refused("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("Connection: close"), "{answer}");
}

#[test]
fn bad_lines_on_a_pipe_are_answered_and_the_pipe_lives() {
    let mut world = World::new();
    let conn = world.connect(1);
    world.say(conn, "{oops\n");
    assert!(world.take(conn).contains("-32700"));
    let long = format!(
        "{{\"method\":\"m\",\"params\":{{\"x\":\"{}\"}},\"id\":\"long\"}}\n",
        "x".repeat(5000)
    );
    world.say(conn, &long);
    let answer = world.take(conn);
    assert!(answer.contains("\"id\":\"long\"") && answer.contains("-32600"), "{answer}");
    world.say(conn, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!(world.take(conn), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    assert!(world.closed.is_empty());
}

#[test]
fn an_id_in_flight_is_not_taken_twice() {
    let mut world = World::new();
    let conn = world.connect(1);
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{{{META}}}}}\n");
    world.say(conn, &line);
    world.say(conn, &line);
    assert_eq!(world.requests.len(), 1);
    assert!(world.take(conn).contains("still running"));
    let (exchange, ..) = world.requests.remove(0);
    world.respond(exchange, Outcome::Result("{}"));
    assert!(world.take(conn).contains("\"result\""));
}

#[test]
fn a_browser_cannot_speak_through_a_pipe() {
    let mut world = World::new();
    let conn = world.connect(1);
    world.say(conn, &format!("POST / HTTP/1.1\r\nHost: a\r\n\r\n{INITIALIZE}\n"));
    assert_eq!((world.closed.as_slice(), world.requests.len()), (&[conn][..], 0));
}

/// A call whose stream has begun with one notification.
fn streaming(world: &mut World, fields: &str) -> (ConnId, ExchangeId, String) {
    let conn = world.connect(0);
    world.say(conn, &post(fields, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#));
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.notify(Route::Exchange(exchange), "notifications/progress", Some("{\"n\":1}"));
    world.settle();
    let stream = world.take(conn);
    let id = stream.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap_or("");
    (conn, exchange, id.to_string())
}

fn resume(world: &mut World, fields: &str, after: &str) -> (ConnId, String) {
    let conn = world.connect(0);
    world.say(conn, &format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}Last-Event-ID: {after}\r\n\r\n"));
    let answer = world.take(conn);
    (conn, answer)
}

#[test]
fn a_broken_stream_is_taken_up_again_without_a_gap() {
    let mut world = World::new();
    let (_, fields) = world.session();
    let (conn, exchange, seen) = streaming(&mut world, &fields);
    world.endpoint.closed(conn);
    // While nobody is there, it goes on.
    world.endpoint.notify(Route::Exchange(exchange), "notifications/progress", Some("{\"n\":2}"));
    let (conn, missed) = resume(&mut world, &fields, &seen);
    assert!(missed.contains("{\"n\":2}") && !missed.contains("{\"n\":1}"), "{missed}");
    world.respond(exchange, Outcome::Result("{\"done\":true}"));
    let rest = world.take(conn);
    assert!(rest.contains("\"done\":true") && rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
    // And even when it has ended.
    let (_, again) = resume(&mut world, &fields, &seen);
    assert!(
        again.contains("{\"n\":2}")
            && again.contains("\"done\":true")
            && again.ends_with("0\r\n\r\n")
    );
}

#[test]
fn only_what_is_kept_of_the_same_session_is_given_again() {
    let mut world = World::new();
    let (_, fields) = world.session();
    let (_, other) = world.session();
    let (conn, exchange, seen) = streaming(&mut world, &fields);
    world.endpoint.closed(conn);
    for after in ["", "x", "1.1", "99999.1", &format!("{seen}9")] {
        assert!(resume(&mut world, &fields, after).1.starts_with("HTTP/1.1 400"), "{after}");
    }
    assert!(resume(&mut world, &other, &seen).1.starts_with("HTTP/1.1 400"));
    for _ in 0..1000 {
        world.endpoint.notify(Route::Exchange(exchange), "notifications/message", Some("{}"));
    }
    assert!(resume(&mut world, &fields, &seen).1.starts_with("HTTP/1.1 400"));
}

#[test]
fn only_the_newest_legacy_revision_is_primed() {
    for (version, ids, primed) in [
        ("2024-11-05", false, false),
        ("2025-03-26", true, false),
        ("2025-06-18", true, false),
        ("2025-11-25", true, true),
    ] {
        let mut world = World::new();
        let (_, fields) = world.session_at(version);
        let fields = fields.replace("2025-11-25", version);
        let conn = world.connect(0);
        world.say(conn, &post(&fields, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#));
        let (exchange, ..) = world.requests.remove(0);
        world.endpoint.notify(Route::Exchange(exchange), "notifications/message", Some("{}"));
        world.settle();
        let stream = world.take(conn);
        assert_eq!(
            stream.contains("data: \n\n") && stream.contains("retry: 1000\n"),
            primed,
            "{version}"
        );
        assert_eq!(stream.contains("id: "), ids, "{version}");
    }
}

#[test]
fn streams_that_nobody_is_on_make_room() {
    let mut world = World::new();
    let (peer, fields) = world.session();
    for _ in 0..100 {
        let conn = world.connect(0);
        world.say(
            conn,
            &format!(
                "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}\r\n"
            ),
        );
        world.endpoint.closed(conn);
    }
    let super::peer::Place::Session(session) = &world.endpoint.peers[&peer].place else { panic!() };
    assert_eq!(session.streams.len(), 32);
}
