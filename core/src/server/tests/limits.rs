//! Slow, silent and too many hosts.

use super::*;

fn world(limits: Limits) -> World {
    let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
    let listeners = Vec::from([Listener::Http(rules), Listener::Ndjson, Listener::Stdio]);
    let config = Config { listeners, limits, ..Config::default() };
    World { endpoint: Endpoint::new(config, Entropy::new([3; 32])), ..World::new() }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_head_must_come_in_time() {
    let mut world = world(Limits::default());
    let (silent, slow) = (world.connect(0), world.connect(0));
    for byte in ["P", "O", "S", "T", " /mcp HTTP/1.1\r\nHost: localhost\r\nA: "] {
        world.say(slow, byte);
        world.pass(7 * SECOND);
    }
    let answer = world.take(slow);
    starts(&answer, 408, -32600);
    assert!(answer.contains("Connection: close"), "{answer}");
    world.pass(3 * SECOND);
    assert_eq!(world.closed, [slow]);
    // Whoever never says anything has as long as between two requests.
    world.pass(120 * SECOND);
    assert_eq!(world.closed, [slow, silent]);
    assert_eq!(world.take(silent), "");
}

#[test]
fn a_body_must_come_at_some_pace() {
    let mut world = world(Limits { body_rate: 1000, ..Limits::default() });
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n";
    let (steady, slow) = (world.connect(0), world.connect(0));
    for conn in [steady, slow] {
        world.say(conn, head);
    }
    for _ in 0..60 {
        world.say(steady, &" ".repeat(1000));
        world.say(slow, &" ".repeat(100));
        world.pass(SECOND);
    }
    starts(&world.take(slow), 408, -32600);
    assert_eq!(world.take(steady), "");
}

#[test]
fn who_reads_nothing_is_given_up() {
    let mut world = world(Limits::default());
    let http = world.connect(0);
    let pipe = world.connect(1);
    let stdio = world.connect(2);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let told = |world: &mut World| {
        world.endpoint.at(world.now);
        for (conn, text) in [
            (http, post("", ping)),
            (pipe, format!("{INITIALIZE}\n")),
            (stdio, format!("{INITIALIZE}\n")),
        ] {
            let mut input = text.as_bytes();
            while let Some(event) = world.endpoint.receive(conn, &mut input) {
                if let Event::Request(request) = event {
                    world.endpoint.respond(request.exchange, Outcome::Result(INITIALIZED));
                }
            }
        }
        let long = "x".repeat(100_000);
        let params = format!(r#"{{"t":"{long}"}}"#);
        let peers: Vec<PeerId> = world.endpoint.peers.keys().copied().collect();
        for peer in peers {
            world.endpoint.notify(Route::Peer(peer), "notifications/x", Some(&params));
        }
        while world.endpoint.take_swollen().is_some() {}
        // Nobody writes.
        while world.endpoint.poll().is_some() {}
    };
    told(&mut world);
    let mut closed = Vec::new();
    for _ in 0..130 {
        world.now = world.now + SECOND;
        world.endpoint.at(world.now);
        world.endpoint.sweep();
        while let Some(action) = world.endpoint.poll() {
            if let Action::Close(conn) = action {
                closed.push(conn);
            }
        }
    }
    closed.sort();
    assert_eq!(closed, [http, pipe]);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let mut world = world(Limits { connections: 2, ..Limits::default() });
    let (_, pipe) = (world.connect(0), world.connect(1));
    let turned_away = world.connect(0);
    world.settle();
    let answer = world.take(turned_away);
    starts(&answer, 503, -32603);
    assert!(answer.contains("Retry-After: 5") && answer.contains("Connection: close"), "{answer}");
    let line = world.connect(1);
    world.settle();
    assert_eq!(world.closed, [line]);
    for _ in 0..100 {
        world.connect(0);
    }
    world.settle();
    assert_eq!(world.closed.len(), 1 + 100 - 63);
    // They go, and there is room again.
    world.pass(3 * SECOND);
    world.endpoint.closed(pipe);
    let welcome = world.connect(1);
    world.settle();
    assert!(!world.closed.contains(&welcome));
}

#[test]
fn one_client_cannot_take_the_room_of_others() {
    let limits = Limits { connections: 100, client_connections: 2, ..Limits::default() };
    let mut world = world(limits);
    let greedy = Some("2001:db8::1");
    let (first, _) = (world.connect_from(0, greedy), world.connect_from(1, greedy));
    // The same network, so the same client.
    let third = world.connect_from(0, Some("2001:db8::2"));
    let answer = world.take_settled(third);
    starts(&answer, 429, -32603);
    assert!(answer.contains("Retry-After: 5") && answer.contains("your address"), "{answer}");
    let line = world.connect_from(1, greedy);
    world.settle();
    assert_eq!(world.closed, [line]);
    for _ in 0..10 {
        let local = world.connect_from(0, Some("127.0.0.1"));
        assert_eq!(world.take_settled(local), "");
    }
    let other = world.connect_from(0, Some("192.0.2.1"));
    assert_eq!(world.take_settled(other), "");
    // What it ends, it may have again.
    world.endpoint.closed(first);
    world.endpoint.closed(third);
    let again = world.connect_from(0, greedy);
    assert_eq!(world.take_settled(again), "");
}

#[test]
fn one_client_cannot_take_all_sessions() {
    let mut world = world(Limits { sessions: 100, client_sessions: 2, ..Limits::default() });
    let begin = |world: &mut World, from: &str| {
        let conn = world.connect_from(0, Some(from));
        world.say(conn, &post("", INITIALIZE));
        if let Some((exchange, ..)) = world.requests.pop() {
            world.respond(exchange, Outcome::Result(INITIALIZED));
        }
        world.endpoint.closed(conn);
        world.take(conn)
    };
    let first = begin(&mut world, "192.0.2.1");
    let session = first.split("Mcp-Session-Id: ").nth(1).unwrap().split("\r\n").next().unwrap();
    assert!(begin(&mut world, "192.0.2.1").contains("200 OK"));
    let answer = begin(&mut world, "192.0.2.1");
    starts(&answer, 429, -32603);
    assert!(answer.contains("Retry-After: 5") && answer.contains("\"id\":0"), "{answer}");
    assert!(begin(&mut world, "192.0.2.2").contains("200 OK"));
    // A session ended by whomever makes room for its client.
    let conn = world.connect(0);
    let delete = "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: ";
    world.say(conn, &format!("{delete}{session}\r\n\r\n"));
    assert!(begin(&mut world, "192.0.2.1").contains("200 OK"));
}

#[test]
fn a_session_has_so_many_requests_and_all_have_so_many() {
    let mut world = world(Limits { in_flight: 2, requests: 3, ..Limits::default() });
    let (_, fields) = world.session();
    let list = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    let ask = |world: &mut World, fields: &str, id: u32| {
        let conn = world.connect(0);
        world.say(conn, &post(fields, &list(id)));
        world.take(conn)
    };
    assert_eq!(ask(&mut world, &fields, 1), "");
    assert_eq!(ask(&mut world, &fields, 2), "");
    let answer = ask(&mut world, &fields, 3);
    starts(&answer, 429, -32600);
    assert!(answer.contains("Retry-After: 5") && answer.contains("\"id\":3"), "{answer}");
    assert_eq!(ask(&mut world, "", 4), "");
    let answer = ask(&mut world, "", 5);
    starts(&answer, 503, -32603);
    assert!(answer.contains("Retry-After: 5") && answer.contains("\"id\":5"), "{answer}");
    let pipe = world.connect(1);
    world.say(pipe, &format!("{INITIALIZE}\n"));
    assert!(world.take(pipe).contains("-32603"));
}

#[test]
fn a_hundred_thousand_tiny_lines_are_read_at_once() {
    let mut world = world(Limits::default());
    let pipe = world.connect(1);
    world.say(pipe, &format!("{INITIALIZE}\n"));
    let (exchange, ..) = world.requests.remove(0);
    world.respond(exchange, Outcome::Result(INITIALIZED));
    world.take(pipe);
    let flood = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(100_000);
    world.say(pipe, &flood);
    assert_eq!(world.take(pipe).lines().count(), 100_000);
}
