//! What a modern server has its hosts keep for it.

use super::*;

#[test]
fn mrt_06_a_state_comes_back_as_it_was_from_whom_it_was_given_to() {
    let mut world = World::new();
    let (host, server) = world.modern();
    let other = world.host();
    let call = |id: u32, name: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"{more},{META}}}}}"#
        )
    };
    world.say(host, &call(1, "n", ""));
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{}},"requestState":"a\"b"}}}}"#));
    let asked = world.hear(host);
    let token = get_path(&asked, &["result", "requestState"]).unwrap().to_string();
    assert!(!token.contains("a\\\"b"));
    let state = format!(r#","requestState":{token},"inputResponses":{{"k":{{}}}}"#);
    for (who, id, name) in [(other, 2, "n"), (host, 3, "m")] {
        world.say(who, &call(id, name, &state));
        let refused = world.hear(who);
        assert_eq!(get_path(&refused, &["error", "code"]), Some("-32602"), "{refused}");
        assert!(world.silent(server));
    }
    world.say(host, &call(4, "n", r#","requestState":"a\"b""#));
    assert_eq!(get_path(&world.hear(host), &["error", "code"]), Some("-32602"));
    // Any number of times: the server may enforce more.
    for id in [5, 6] {
        world.say(host, &call(id, "n", &state));
        let again = world.hear(server);
        assert_eq!(get_path(&again, &["params", "requestState"]), Some(r#""a\"b""#));
        assert_eq!(get_path(&again, &["params", "inputResponses", "k"]), Some("{}"));
    }
    world.now = world.now + Duration::from_secs(601);
    world.say(host, &call(7, "n", &state));
    assert_eq!(get_path(&world.hear(host), &["error", "code"]), Some("-32602"));
}
