//! Processes that die, and what is said about a server beforehand.

use super::*;
use crate::client::probe::Protocol;
use crate::gateway::{Limits, Server};

const LIST: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
const AGREED: &str = r#"{"protocolVersion":"2025-06-18"}"#;

fn process() -> Place {
    Place::Process(Command { program: "server".into(), ..Command::default() })
}

fn configured(change: impl FnOnce(&mut Server)) -> World {
    let world = World::new();
    let endpoint = server::Config {
        listeners: Vec::from([server::Listener::Ndjson]),
        ..server::Config::default()
    };
    let mut server = Server::new("server", process());
    change(&mut server);
    World { gateway: Gateway::new(Config::new(server, endpoint), [1; 32]), ..world }
}

/// Answers the next request to a server, whose method must be this.
fn answer(world: &mut World, server: ConnId, method: &str, result: &str) -> String {
    let request = world.hear(server);
    assert!(request.contains(&format!("\"method\":\"{method}\"")), "{request}");
    let id = id_of(&request);
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    request
}

fn die(world: &mut World, server: ConnId) {
    world.handle(Input::Stderr { conn: server, bytes: b"one\ntwo\n" });
    world.handle(Input::Finished { conn: server });
    world.handle(Input::Exited { conn: server, status: ExitStatus::Signal(9) });
}

/// The newest process.
fn newest(world: &World) -> ConnId {
    *world.spawned.last().unwrap()
}

#[test]
fn a_session_survives_its_process() {
    for lived in [Duration::from_millis(10), Duration::from_secs(60)] {
        let mut world = World::new();
        let (host, first) = world.session();
        for (method, params) in [
            ("logging/setLevel", r#"{"level":"debug"}"#),
            ("resources/subscribe", r#"{"uri":"a://b"}"#),
        ] {
            world.say(
                host,
                &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#),
            );
            answer(&mut world, first, method, "{}");
            world.hear(host);
        }
        world.now = world.now + lived;
        world.say(host, r#"{"jsonrpc":"2.0","id":4,"method":"tools/call"}"#);
        world.hear(first);
        die(&mut world, first);
        // It may have been done, so it is not done again.
        let failed = world.hear(host);
        assert!(failed.contains("killed by signal 9; its last words: one | two"), "{failed}");
        // One that has lived for a while is missed at once, for it tells things, too.
        assert_eq!(world.spawned.len(), if lived.as_secs() > 1 { 2 } else { 1 });
        world.say(host, LIST);
        let second = newest(&world);
        assert_ne!(first, second);
        let begun = answer(&mut world, second, "initialize", AGREED);
        assert!(begun.contains(r#""elicitation":{}"#), "{begun}");
        assert!(world.hear(second).contains("notifications/initialized"));
        let level = answer(&mut world, second, "logging/setLevel", "{}");
        assert!(level.contains(r#"{"level":"debug"}"#), "{level}");
        answer(&mut world, second, "resources/subscribe", "{}");
        answer(&mut world, second, "tools/list", r#"{"tools":[]}"#);
        let listed = world.hear(host);
        assert_eq!(get(&listed, "result"), Some(r#"{"tools":[]}"#));
        assert!(world.silent(host) && world.silent(second));
    }
}

#[test]
fn what_a_dead_process_has_asked_is_withdrawn() {
    let mut world = World::new();
    let (host, server) = world.session();
    world.say(server, r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#);
    let id = id_of(&world.hear(host));
    die(&mut world, server);
    let cancelled = world.hear(host);
    assert_eq!(get_path(&cancelled, &["params", "requestId"]), Some(&*id));
}

#[test]
fn a_process_that_does_not_start_rests() {
    let mut world = World::new();
    let attempt = |world: &mut World| {
        let host = world.host();
        let before = world.spawned.len();
        world.say(host, INITIALIZE);
        if world.spawned.len() > before {
            let server = newest(world);
            die(world, server);
        }
        (world.hear(host), world.spawned.len() - before)
    };
    for _ in 0..3 {
        let (told, started) = attempt(&mut world);
        assert!(told.contains("killed by signal 9; its last words") && started == 1, "{told}");
    }
    for (n, pause) in [1, 2, 4, 8, 16, 32].into_iter().enumerate() {
        let (told, started) = attempt(&mut world);
        assert!(started == 0 && told.contains("one | two"), "{told}");
        let failed = n + 3;
        assert!(told.contains(&format!("its last {failed} starts failed")), "{told}");
        assert!(told.contains(&format!("after {pause} s")), "{told}");
        world.now = world.now + Duration::from_secs(pause);
        assert_eq!(attempt(&mut world).1, 1);
    }
    world.now = world.now + Duration::from_secs(60);
    assert_eq!(attempt(&mut world).1, 1);
    let (told, started) = attempt(&mut world);
    assert!(started == 0 && told.contains("given up for now"), "{told}");
    // One that works makes up for all.
    world.now = world.now + Duration::from_secs(600);
    let (_, server) = world.session();
    die(&mut world, server);
    assert_eq!(attempt(&mut world).1, 1);
    assert_eq!(attempt(&mut world).1, 1);
}

#[test]
fn a_session_that_cannot_begin_again_yet_waits_for_better_days() {
    let mut world = World::new();
    let (host, first) = world.session();
    die(&mut world, first);
    for _ in 0..3 {
        world.say(host, LIST);
        let server = newest(&world);
        die(&mut world, server);
        assert!(world.hear(host).contains("killed by signal 9"));
    }
    world.say(host, LIST);
    assert!(world.hear(host).contains("its last 3 starts failed"));
    world.now = world.now + Duration::from_secs(2);
    world.say(host, LIST);
    let server = newest(&world);
    answer(&mut world, server, "initialize", AGREED);
    world.hear(server);
    answer(&mut world, server, "tools/list", "{}");
    assert!(world.hear(host).contains("\"result\":{}"));
}

#[test]
fn a_process_that_keeps_silent_is_given_up() {
    let mut world = World::new();
    let (host, first) = world.session();
    die(&mut world, first);
    world.say(host, LIST);
    let server = newest(&world);
    world.now = world.now + Duration::from_secs(60);
    world.handle(Input::Tick);
    assert!(world.hear(host).contains("does not begin our session again"));
    assert!(world.finished.contains(&server));
    // What is done to it is no failure of the next.
    world.say(host, LIST);
    assert_ne!(newest(&world), server);
}

#[test]
fn a_process_that_refuses_ends_the_session() {
    let mut world = World::new();
    let (host, first) = world.session();
    die(&mut world, first);
    world.say(host, LIST);
    let server = newest(&world);
    answer(&mut world, server, "initialize", r#"{"protocolVersion":"1"}"#);
    assert!(world.hear(host).contains("refuses to begin our session again"));
    assert!(world.only().sessions.is_empty());
}

#[test]
fn a_configured_revision_is_not_asked_for() {
    let modern = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let mut world = configured(|config| config.protocol = Protocol::Modern);
    let host = world.host();
    world.say(host, &modern);
    let server = newest(&world);
    answer(&mut world, server, "tools/list", "{}");
    assert!(world.hear(host).contains("complete"));
    world.say(host, INITIALIZE);
    answer(&mut world, server, "server/discover", r#"{"supportedVersions":["2026-07-28"]}"#);
    assert!(world.hear(host).contains(r#""protocolVersion":"2025-11-25""#));
    assert_eq!(world.spawned.len(), 1);
    // It is begun anew when it has died.
    die(&mut world, server);
    world.say(host, &modern);
    let server = newest(&world);
    answer(&mut world, server, "tools/list", "{}");

    for protocol in [Protocol::Legacy, Protocol::parse("2025-03-26").unwrap()] {
        let mut world = configured(|config| config.protocol = protocol);
        let host = world.host();
        world.say(host, &modern);
        let server = newest(&world);
        let offered = world.hear(server);
        let version = get_path(&offered, &["params", "protocolVersion"]).unwrap();
        assert_eq!(version.trim_matches('"'), protocol.offer().as_str());
    }
}

#[test]
fn an_eager_server_is_there_before_anybody_asks() {
    for (protocol, first) in [
        (Protocol::Auto, "server/discover"),
        (Protocol::Modern, "server/discover"),
        (Protocol::Legacy, "initialize"),
    ] {
        let mut world = configured(|config| {
            config.protocol = protocol;
            config.eager = true;
        });
        assert_eq!(world.gateway.deadline(), Some(Instant::START));
        world.handle(Input::Tick);
        assert_ne!(world.gateway.deadline(), Some(Instant::START));
        let server = newest(&world);
        if first == "initialize" {
            answer(&mut world, server, first, AGREED);
            continue;
        }
        answer(&mut world, server, first, "{}");
        if protocol == Protocol::Modern {
            assert_eq!(world.spawned.len(), 1);
            continue;
        }
        // It is a legacy one: the connection of that era is made instead.
        let server = newest(&world);
        assert_eq!(world.spawned.len(), 2);
        answer(&mut world, server, "initialize", AGREED);
    }
}

#[test]
fn calls_have_their_time() {
    let second = Duration::from_secs(1);
    for (counts, alive) in [(true, [true, true, true, false]), (false, [true, false, false, false])]
    {
        let mut world = configured(|config| {
            config.limits = Limits {
                call_idle: 10 * second,
                call_total: 28 * second,
                progress_counts: counts,
                ..Limits::default()
            };
        });
        let (host, server) = world.session();
        world.say(host, r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":1}}}"#);
        let id = id_of(&world.hear(server));
        for (n, alive) in alive.into_iter().enumerate() {
            world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{n}}}}}"#));
            world.now = world.now + 8 * second;
            world.handle(Input::Tick);
            let heard = world.lines.remove(&host).unwrap_or_default();
            let failed = heard.iter().any(|line| line.contains("did not answer in time"));
            assert!(!failed || !alive, "{n}: {heard:?}");
            if failed {
                assert!(world.hear(server).contains("notifications/cancelled"));
            }
        }
        assert!(world.only().routes.is_empty());
    }
}

#[test]
fn subscriptions_survive_their_server() {
    let mut world = World::new();
    let (host, mut server) = world.modern();
    world.say(host, &format!(r#"{{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["a://b"]}},{META}}}}}"#));
    let acknowledge = |world: &mut World, server: ConnId| {
        let listen = world.hear(server);
        assert!(listen.contains("subscriptions/listen"), "{listen}");
        let id = id_of(&listen);
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["a://b"]}}}}}}"#));
    };
    acknowledge(&mut world, server);
    assert!(world.hear(host).contains("acknowledged"));
    let path = ["params", "_meta", "io.modelcontextprotocol/subscriptionId"];
    for _ in 0..3 {
        die(&mut world, server);
        assert!(world.silent(host));
        world.now = world.now + Duration::from_secs(1);
        world.handle(Input::Tick);
        server = newest(&world);
        answer(&mut world, server, "server/discover", r#"{"supportedVersions":["2026-07-28"]}"#);
        acknowledge(&mut world, server);
        // It may have missed something.
        let tools = world.hear(host);
        assert!(tools.contains("notifications/tools/list_changed"), "{tools}");
        let updated = world.hear(host);
        assert_eq!(get_path(&updated, &["params", "uri"]), Some("\"a://b\""));
        for told in [tools, updated] {
            assert_eq!(get_path(&told, &path), Some("\"l\""));
        }
        assert!(world.silent(host));
    }
    // Whoever no longer listens is not listened for.
    die(&mut world, server);
    let before = world.spawned.len();
    world.say(
        host,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#,
    );
    world.now = world.now + Duration::from_secs(60);
    world.handle(Input::Tick);
    assert_eq!(world.spawned.len(), before);
}

#[test]
fn a_subscription_that_never_was_fails_at_once() {
    let mut world = World::new();
    let (host, server) = world.modern();
    world.say(host, &format!(r#"{{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{{"notifications":{{}},{META}}}}}"#));
    die(&mut world, server);
    assert!(world.hear(host).contains("killed by signal 9"));
}

#[test]
fn a_subscription_that_its_next_server_refuses_is_forgotten() {
    let mut world = World::new();
    let (host, server) = world.modern();
    world.say(host, &format!(r#"{{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#));
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true}}}}}}"#));
    world.hear(host);
    die(&mut world, server);
    world.now = world.now + Duration::from_secs(1);
    world.handle(Input::Tick);
    // What is started now knows neither era.
    for _ in 0..2 {
        let server = newest(&world);
        let id = id_of(&world.hear(server));
        let error = r#"{"code":-32601,"message":"?"}"#;
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
    }
    assert!(world.hear(host).contains("\"error\""));
    world.handle(Input::Finished { conn: host });
    let remembered = world.gateway.remembered();
    assert!(remembered.is_empty(), "{remembered:?}");
}
