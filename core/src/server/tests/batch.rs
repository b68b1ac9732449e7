//! Arrays of messages (requirements BAT-01 to BAT-06).

use alloc::vec;

use super::*;

const CALLS: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":"b","method":"tools/call"}]"#;

/// An initialized pipe.
fn pipe(world: &mut World, version: &str) -> ConnId {
    let conn = world.connect(1);
    world.say(conn, &format!("{}\n", INITIALIZE.replace("2025-11-25", version)));
    let (exchange, ..) = world.requests.remove(0);
    world.respond(exchange, Outcome::Result(&INITIALIZED.replace("2025-11-25", version)));
    world.take(conn);
    conn
}

fn session(world: &mut World, version: &str) -> (PeerId, String) {
    let (peer, fields) = world.session_at(version);
    (peer, fields.replace("2025-11-25", version))
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn bat_01_and_05_requests_are_answered_with_one_array() {
    let mut world = World::new();
    let (peer, fields) = session(&mut world, "2025-03-26");
    let conn = world.connect(0);
    world.say(conn, &post(&fields, CALLS));
    assert_eq!(world.requests.len(), 2);
    assert!(world.requests.iter().all(|(_, of, _)| *of == Some(peer)));
    let (first, second) = (world.requests[0].0, world.requests[1].0);
    world.respond(second, Outcome::Error(r#"{"code":-32603,"message":"no"}"#));
    assert_eq!(world.take(conn), "");
    world.respond(first, Outcome::Result("{\n}"));
    let answer = world.take(conn);
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("application/json"));
    assert_eq!(
        body(&answer),
        r#"[{"jsonrpc":"2.0","id":"b","error":{"code":-32603,"message":"no"}},{"jsonrpc":"2.0","id":1,"result":{}}]"#
    );
    assert!(answer.contains(&format!("content-length: {}\r\n", body(&answer).len())), "{answer}");
    assert!(world.endpoint.batches.is_empty() && world.endpoint.running() == 0);
    // And the connection is free again.
    world.requests.clear();
    world.say(conn, &post(&fields, CALLS));
    assert_eq!(world.requests.len(), 2);
}

#[test]
fn bat_01_a_pipe_answers_with_one_line() {
    let mut world = World::new();
    let conn = pipe(&mut world, "2025-03-26");
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    world.say(conn, &format!("{CALLS}\n[{ping}]\n"));
    // What is answered at once does not wait for another batch.
    assert_eq!(world.take(conn), "[{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]\n");
    for (exchange, ..) in core::mem::take(&mut world.requests) {
        world.respond(exchange, Outcome::Result("{}"));
    }
    assert_eq!(
        world.take(conn),
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"result\":{}}]\n"
    );
}

#[test]
fn bat_02_and_03_some_arrays_are_refused_as_a_whole() {
    let many = vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; 101].join(",");
    let cases = [
        String::from("[]"),
        format!("[{INITIALIZE}]"),
        format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"tools/list"}},{INITIALIZE}]"#),
        String::from(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        ),
        String::from(
            r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        ),
        format!("[{many}]"),
    ];
    for case in cases {
        let mut world = World::new();
        world.endpoint.config.limits.message_bytes = 64 << 10;
        let (_, fields) = session(&mut world, "2025-03-26");
        starts(&world.refused(&post(&fields, &case)), 400, -32600);
        let conn = pipe(&mut world, "2025-03-26");
        world.say(conn, &format!("{case}\n"));
        let answer = world.take(conn);
        assert!(answer.contains("\"id\":null") && answer.contains("-32600"), "{answer}");
        assert!(!answer.starts_with('[') && world.requests.is_empty());
    }
}

#[test]
fn bat_04_an_array_without_requests_is_accepted() {
    let mut world = World::new();
    let (peer, fields) = session(&mut world, "2025-03-26");
    let ask = world.endpoint.ask(Route::Peer(peer), "roots/list", None).unwrap();
    let notes = String::from(
        r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"x":1,"method":"n"}]"#,
    );
    let answers = format!(
        r#"[{{"jsonrpc":"2.0","id":"mcpx-{}","result":{{}}}},{{"jsonrpc":"2.0","id":"q","result":{{}}}}]"#,
        world.endpoint.next - 1
    );
    for case in [notes.clone(), answers] {
        assert!(world.refused(&post(&fields, &case)).starts_with("HTTP/1.1 202 "), "{case}");
    }
    assert!(!world.endpoint.asks.contains_key(&ask));
    let conn = pipe(&mut world, "2025-03-26");
    world.say(conn, &format!("{notes}\n"));
    assert_eq!(world.take(conn), "");
}

#[test]
fn bat_05_a_stream_carries_one_event_for_each_answer() {
    let mut world = World::new();
    let (_, fields) = session(&mut world, "2025-03-26");
    let conn = world.connect(0);
    world.say(conn, &post(&fields, CALLS));
    let (first, second) = (world.requests[0].0, world.requests[1].0);
    world.respond(first, Outcome::Result("{\"n\":1}"));
    world.endpoint.notify(Route::Exchange(second), "notifications/progress", None);
    world.settle();
    let begun = world.take(conn);
    assert!(begun.contains("text/event-stream"));
    let (one, progress) = (begun.find("{\"n\":1}").unwrap(), begun.find("progress").unwrap());
    assert!(one < progress, "{begun}");
    let seen = begun.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    // Such a stream can be taken up again.
    world.endpoint.closed(conn);
    let (conn, missed) = resume(&mut world, &fields, seen);
    assert!(missed.contains("progress") && !missed.contains("{\"n\":1}"), "{missed}");
    world.respond(second, Outcome::Result("{\"n\":2}"));
    let rest = world.take(conn);
    assert!(rest.contains("{\"n\":2}") && rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
    assert!(!begun.contains('[') && !rest.contains('['));
}

#[test]
fn bat_05_silence_makes_a_stream() {
    let mut world = World::new();
    let (_, fields) = session(&mut world, "2025-03-26");
    let conn = world.connect(0);
    world.say(conn, &post(&fields, CALLS));
    world.pass(Duration::from_secs(15));
    assert!(world.take(conn).contains("3\r\n:\n\n\r\n"));
    for (exchange, ..) in core::mem::take(&mut world.requests) {
        world.respond(exchange, Outcome::Result("{}"));
    }
    let rest = world.take(conn);
    assert!(rest.matches("event: message").count() == 2 && rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[test]
fn bat_06_no_other_revision_takes_arrays() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut world = World::new();
        let (_, fields) = session(&mut world, version);
        starts(&world.refused(&post(&fields, CALLS)), 400, -32600);
        let conn = pipe(&mut world, version);
        world.say(conn, &format!("{CALLS}\n"));
        let answer = world.take(conn);
        assert!(answer.contains("-32600"), "{answer}");
        assert_eq!(answer.contains("\"id\":null"), version != "2025-11-25", "{answer}");
    }
    let mut world = World::new();
    let modern =
        format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}]"#);
    starts(&world.refused(&post("MCP-Protocol-Version: 2026-07-28\r\n", &modern)), 400, -32600);
    let conn = world.connect(1);
    world.say(conn, &format!("{modern}\n"));
    assert!(world.take(conn).contains("-32600"));
}

#[test]
fn each_message_stands_for_itself() {
    let mut world = World::new();
    let conn = pipe(&mut world, "2025-03-26");
    let modern = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{{META}}}}}"#);
    let same = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    world.say(conn, &format!("[1,[],{same},{same},{{\"id\":2}},{modern}]\n"));
    assert_eq!(world.requests.len(), 1);
    world.respond(world.requests[0].0, Outcome::Result("{}"));
    let answer = world.take(conn);
    assert_eq!(answer.matches("-32600").count(), 5, "{answer}");
    assert_eq!(answer.matches("\"id\":null").count(), 2, "{answer}");
    assert!(answer.contains("\"id\":2,") && answer.contains("\"id\":7,"));
    assert!(answer.contains("\"result\":{}"));
}

#[test]
fn a_cancelled_request_leaves_its_batch() {
    let mut world = World::new();
    let conn = pipe(&mut world, "2025-03-26");
    // Even when it is cancelled in the same breath.
    world.say(conn, &format!("{CALLS}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":1}}}}\n"));
    assert_eq!(world.cancelled, [world.requests[0].0]);
    world.respond(world.requests[1].0, Outcome::Result("{}"));
    assert_eq!(world.take(conn), "[{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"result\":{}}]\n");
}

#[test]
fn a_batch_ends_with_its_session() {
    let mut world = World::new();
    let (peer, fields) = session(&mut world, "2025-03-26");
    let conn = world.connect(0);
    world.say(conn, &post(&fields, CALLS));
    world.endpoint.end_peer(peer);
    world.settle();
    assert_eq!((world.cancelled.len(), world.endpoint.batches.len()), (2, 0));
    assert!(world.take(conn).ends_with("0\r\n\r\n"));
    world.requests.clear();
    let conn = pipe(&mut world, "2025-03-26");
    world.say(conn, &format!("{CALLS}\n"));
    world.endpoint.finished(conn);
    world.settle();
    world.pass(Duration::from_secs(1));
    assert_eq!((world.cancelled.len(), world.endpoint.batches.len()), (4, 0));
    assert_eq!(world.closed, [conn]);
}
