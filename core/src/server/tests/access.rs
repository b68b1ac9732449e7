//! Tokens, and pages of other origins (TR-41, TR-42).

use super::*;
use crate::server::Access;

fn world(access: Access) -> World {
    let origins = ["https://app.example".to_string(), "http://localhost:*".to_string()];
    let rules = OriginRules::new("127.0.0.1:8808", None, Some(&origins)).unwrap();
    let config =
        Config { listeners: Vec::from([Listener::Http(rules)]), access, ..Config::default() };
    World { endpoint: Endpoint::new(config, Entropy::new([3; 32])), ..World::new() }
}

fn tokens() -> World {
    let tokens = Vec::from(["first-token".to_string(), "second".to_string()]);
    world(Access { tokens, cors: false })
}

fn exchange(world: &mut World, request: &str) -> String {
    let conn = world.connect(0);
    world.say(conn, request);
    if let Some((exchange, _, body)) = world.requests.pop() {
        let initialize = body.contains("\"initialize\"");
        let result = if initialize { INITIALIZED } else { "{}" };
        world.respond(exchange, Outcome::Result(result));
    }
    world.take(conn)
}

#[test]
fn sec_05_a_token_is_asked_for_before_the_body_is_read() {
    let mut world = tokens();
    for field in [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer third\r\n",
        "Authorization: Bearer first-toke\r\n",
        "Authorization: Bearer first-token-\r\n",
        "Authorization: Basic first-token\r\n",
        "Authorization: first-token\r\n",
        "Authorization: Bearer second\r\nAuthorization: Bearer second\r\n",
    ] {
        for verb in ["POST", "GET", "DELETE", "OPTIONS"] {
            let conn = world.connect(0);
            let fields = format!("Content-Type: application/json\r\nContent-Length: 9\r\n{field}");
            world.say(conn, &format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
            let answer = world.take(conn);
            assert!(answer.starts_with("HTTP/1.1 401"), "{verb} {field}: {answer}");
            assert!(answer.contains("\r\nWWW-Authenticate: Bearer\r\n"), "{answer}");
            assert!(answer.contains("-32600") && !answer.contains("first"), "{answer}");
        }
    }
    for field in ["Authorization: Bearer second\r\n", "authorization:  bearer  first-token \r\n"] {
        let answer = exchange(&mut world, &post(field, INITIALIZE));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Whoever asks without the token is not let to where answers are kept, be they
/// for everybody.
#[test]
fn cac_09_the_token_comes_before_any_answer() {
    let mut world = tokens();
    let (fields, body) = modern("tools/list", 1);
    let list = r#"{"tools":[],"ttlMs":60000,"cacheScope":"public"}"#;
    for (field, known) in [("Authorization: Bearer second\r\n", true), ("", false)] {
        let conn = world.connect(0);
        world.say(conn, &post(&format!("{fields}{field}"), &body));
        let asked = world.requests.pop();
        assert_eq!(asked.is_some(), known);
        if let Some((exchange, _, _)) = asked {
            world.respond(exchange, Outcome::Result(list));
        }
        assert_eq!(world.take(conn).contains("cacheScope"), known);
    }
}

#[test]
fn sec_07_a_session_is_of_the_token_that_began_it() {
    let mut world = tokens();
    let answer = exchange(&mut world, &post("Authorization: Bearer second\r\n", INITIALIZE));
    let id = answer.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: ")).unwrap().trim();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (token, status) in [("first-token", 404), ("second", 200)] {
        let fields = format!("Authorization: Bearer {token}\r\nMcp-Session-Id: {id}\r\n");
        let answer = exchange(&mut world, &post(&fields, ping));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{token}: {answer}");
        for verb in ["GET", "DELETE"] {
            let request = format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
            if status == 404 {
                assert!(exchange(&mut world, &request).starts_with("HTTP/1.1 404"));
            }
        }
    }
}

fn preflight(origin: &str) -> String {
    format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
         Access-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: content-type, mcp-param-region,evil\r\n\r\n"
    )
}

#[test]
fn pages_of_allowed_origins_are_told_that_they_may() {
    let tokens = Vec::from(["second".to_string()]);
    let mut world = world(Access { tokens, cors: true });
    let answer = exchange(&mut world, &preflight("https://app.example"));
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    for field in [
        "Access-Control-Allow-Origin: https://app.example",
        "Vary: Origin",
        "Access-Control-Allow-Methods: GET, POST, DELETE",
        "mcp-param-region",
        "Mcp-Session-Id",
    ] {
        assert!(answer.contains(field), "{field}: {answer}");
    }
    assert!(!answer.contains("evil") && !answer.contains("Credentials"), "{answer}");

    let origin = "Origin: https://app.example\r\n";
    let fields = format!("{origin}Authorization: Bearer second\r\n");
    for (request, status) in [
        (post(&fields, INITIALIZE), 200),
        (post(origin, INITIALIZE), 401),
        (post(&fields, "{"), 400),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"), 405),
    ] {
        let answer = exchange(&mut world, &request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains("Access-Control-Allow-Origin: https://app.example\r\n"));
        assert!(answer.contains("Access-Control-Expose-Headers: Mcp-Session-Id"));
    }
    for origin in ["https://evil.example", "null"] {
        let answer = exchange(&mut world, &preflight(origin));
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(!answer.contains("Access-Control"), "{answer}");
    }
    // Programs that are no browsers are not troubled.
    let answer = exchange(&mut world, &post("Authorization: Bearer second\r\n", INITIALIZE));
    assert!(!answer.contains("Access-Control") && !answer.contains("Vary"), "{answer}");
}

#[test]
fn event_streams_tell_it_too() {
    let mut world = world(Access { tokens: Vec::new(), cors: true });
    let conn = world.connect(0);
    let fields = "Origin: http://localhost:3000\r\nMCP-Protocol-Version: 2025-11-25\r\n";
    world.say(conn, &post(fields, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#));
    let (exchange, ..) = world.requests.remove(0);
    world.endpoint.notify(Route::Exchange(exchange), "notifications/progress", Some("{}"));
    world.settle();
    let head = world.take(conn);
    assert!(head.contains("Access-Control-Allow-Origin: http://localhost:3000\r\n"), "{head}");
}

#[test]
fn nothing_is_said_of_origins_unless_asked_for() {
    let mut world = world(Access::default());
    let answer = exchange(&mut world, &preflight("https://app.example"));
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.contains("Allow: POST, GET, DELETE"), "{answer}");
    let fields = "Origin: https://app.example\r\n";
    let answer = exchange(&mut world, &post(fields, INITIALIZE));
    assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("Access-Control"), "{answer}");
}
