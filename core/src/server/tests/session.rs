//! Session ids (requirements SES-01 to SES-06, D2).

use super::*;

const LIST: &str = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#;

fn token(fields: &str) -> &str {
    fields.lines().next().unwrap().strip_prefix("Mcp-Session-Id: ").unwrap()
}

/// What each way to use a session id is answered.
fn uses(world: &mut World, fields: &str) -> [String; 3] {
    let host = "Host: localhost\r\nAccept: text/event-stream\r\n";
    [
        post(fields, LIST),
        format!("GET /mcp HTTP/1.1\r\n{host}{fields}\r\n"),
        format!("DELETE /mcp HTTP/1.1\r\n{host}{fields}\r\n"),
    ]
    .map(|request| world.refused(&request))
}

#[test]
fn ses_02_and_03_ids_are_alike_in_form_only() {
    let mut world = World::new();
    let ids = [0; 3].map(|_| token(&world.session().1).to_string());
    assert!(ids.iter().all(|id| id.len() == 78 && id.bytes().all(|byte| byte.is_ascii_graphic())));
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    // Another endpoint has another key.
    let mut other = World::new();
    other.endpoint = Endpoint::new(
        Config {
            listeners: core::mem::take(&mut other.endpoint.config.listeners),
            ..Config::default()
        },
        Entropy::new([4; 32]),
    );
    other.session();
    for answer in uses(&mut other, &format!("Mcp-Session-Id: {}\r\n", ids[0])) {
        starts(&answer, 404, -32600);
    }
}

#[test]
fn ses_06_whatever_is_wrong_with_an_id_looks_the_same() {
    let mut world = World::new();
    let (peer, fields) = world.session();
    let (_, other) = world.session();
    let id = token(&fields);
    let forged = [
        String::from("none"),
        String::new(),
        format!("{id}A"),
        id[1..].to_string(),
        format!("{}{}", &id[..60], &token(&other)[60..]),
        id.to_lowercase(),
    ];
    for id in forged {
        for answer in uses(&mut world, &format!("Mcp-Session-Id: {id}\r\n")) {
            starts(&answer, 404, -32600);
        }
    }
    world.endpoint.end_peer(peer);
    for answer in uses(&mut world, &fields) {
        starts(&answer, 404, -32600);
    }
    assert!(uses(&mut world, &fields)[0].contains("\"id\":4"));
}

#[test]
fn ses_06_ids_expire_with_their_sessions_even_in_use() {
    let mut world = World::new();
    let (peer, fields) = world.session();
    let conn = world.connect(0);
    world.say(
        conn,
        &format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}\r\n"
        ),
    );
    let life = world.endpoint.config.limits.session_life;
    world.pass(life - Duration::from_secs(1));
    assert!(world.ended.is_empty());
    world.pass(Duration::from_secs(1));
    assert_eq!(world.ended, [peer]);
    starts(&world.refused(&post(&fields, LIST)), 404, -32600);
}

#[test]
fn ver_07_the_id_tells_the_revision_whatever_the_header_says() {
    let mut world = World::new();
    let (peer, fields) = world.session_at("2025-06-18");
    let conn = world.connect(0);
    let request = post(&fields, LIST);
    world.endpoint.at(world.now);
    let Some(Event::Request(request)) = world.endpoint.receive(conn, &mut request.as_bytes())
    else {
        panic!("not served")
    };
    assert_eq!((request.revision, request.peer), (Revision::R2025_06_18, Some(peer)));
    // One that does not exist is refused all the same (VER-08).
    let fields = fields.replace("2025-11-25", "1999-01-01");
    starts(&world.refused(&post(&fields, LIST)), 400, -32022);
}
