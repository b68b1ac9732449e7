//! Legacy requests without a session (requirements section 2 item 7, D7).

use super::*;

const LIST: &str = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#;

#[test]
fn ses_05_and_ver_07_the_header_says_what_a_request_is_written_in() {
    let mut world = World::new();
    for (fields, revision) in [
        ("", Revision::R2025_03_26),
        ("MCP-Protocol-Version: 2024-11-05\r\n", Revision::R2024_11_05),
        ("MCP-Protocol-Version:  2025-11-25\r\n", Revision::R2025_11_25),
    ] {
        let conn = world.connect(0);
        let request = post(fields, LIST);
        let mut input = request.as_bytes();
        let Some(Event::Request(request)) = world.endpoint.receive(conn, &mut input) else {
            panic!("not served")
        };
        assert_eq!((request.revision, request.peer), (revision, None));
        let exchange = request.exchange;
        world.respond(exchange, Outcome::Error(r#"{"code":-32601,"message":"no"}"#));
        starts(&world.take(conn), 200, -32601);
    }
}

#[test]
fn a_stream_of_no_session_has_no_ids() {
    let mut world = World::new();
    let (conn, exchange, id) = streaming(&mut world, "MCP-Protocol-Version: 2025-11-25\r\n");
    assert_eq!(id, "");
    assert!(world.endpoint.ask(Route::Exchange(exchange), "roots/list", None).is_err());
    world.respond(exchange, Outcome::Result("{}"));
    assert!(world.take(conn).ends_with("\n\n\r\n0\r\n\r\n"));
}

#[test]
fn what_needs_a_session_is_refused_without() {
    let mut world = World::new();
    for method in ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let answer = world.refused(&post("", &LIST.replace("tools/list", method)));
        starts(&answer, 400, -32600);
        assert!(answer.contains("\"id\":4"));
    }
    let answer = world.refused(&post("", r#"{"jsonrpc":"2.0","id":4,"result":{}}"#));
    starts(&answer, 400, -32600);
    assert!(!answer.contains("\"id\""));
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(world.refused(&post("", notice)).starts_with("HTTP/1.1 202"));
    let ping = world.refused(&post("", &LIST.replace("tools/list", "ping")));
    assert!(ping.ends_with(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#));
}

#[test]
fn whoever_hangs_up_can_never_hear_the_answer() {
    let mut world = World::new();
    let conn = world.connect(0);
    world.say(conn, &post("", LIST));
    // Only one direction is closed yet.
    world.endpoint.finished(conn);
    world.settle();
    assert!(world.cancelled.is_empty());
    world.endpoint.closed(conn);
    let conn = world.connect(0);
    world.say(conn, &post("", &format!("[{LIST},{LIST}]")));
    world.endpoint.closed(conn);
    world.settle();
    assert_eq!((world.cancelled.len(), world.endpoint.running()), (3, 0));
    assert!(world.endpoint.batches.is_empty());
}

#[test]
fn arrays_without_a_session_are_of_2025_03_26() {
    let mut world = World::new();
    let conn = world.connect(0);
    let level = LIST.replace("tools/list", "logging/setLevel");
    world.say(conn, &post("", &format!("[{LIST},{level}]")));
    world.respond(world.requests[0].0, Outcome::Result("{}"));
    let answer = world.take(conn);
    assert!(answer.contains("-32600") && answer.contains(r#""id":4,"result":{}"#), "{answer}");
    world.requests.clear();
    for (fields, body) in [
        ("MCP-Protocol-Version: 2025-06-18\r\n", format!("[{LIST}]")),
        ("", String::from(r#"[{"jsonrpc":"2.0","id":4,"result":{}}]"#)),
    ] {
        starts(&world.refused(&post(fields, &body)), 400, -32600);
    }
}

#[test]
fn ses_05_a_strict_endpoint_wants_a_session() {
    let mut world = World::new();
    world.endpoint.config.strict = true;
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for body in [LIST, &LIST.replace("tools/list", "ping"), notice, &format!("[{LIST}]")] {
        starts(&world.refused(&post("", body)), 400, -32600);
    }
    let (_, fields) = world.session();
    let conn = world.connect(0);
    world.say(conn, &post(&fields, LIST));
    assert_eq!(world.requests.len(), 1);
}
