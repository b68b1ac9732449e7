//! When the process of a modern server ends because nobody uses it.

use super::*;

const PERIOD: Duration = Duration::from_secs(601);

fn pass(world: &mut World, time: Duration) {
    world.now = world.now + time;
    world.handle(Input::Tick);
}

fn call(world: &mut World, host: ConnId) {
    world.say(
        host,
        &format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"n",{META}}}}}"#
        ),
    );
}

#[test]
fn it_ends_when_nobody_has_used_it_for_long_and_begins_again() {
    let mut world = World::new();
    let (host, server) = world.modern();
    pass(&mut world, PERIOD / 2);
    call(&mut world, host);
    pass(&mut world, PERIOD);
    assert!(!world.finished.contains(&server), "a call runs");
    world.reply(server, r#"{"content":[]}"#);
    world.hear(host);
    pass(&mut world, PERIOD);
    assert!(world.finished.contains(&server));
    world.handle(Input::Exited { conn: server, status: ExitStatus::Code(0) });
    assert_eq!(world.links(), 0);

    call(&mut world, host);
    let second = *world.spawned.last().unwrap();
    assert_ne!(server, second);
    let probe =
        world.reply(second, r#"{"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0}"#);
    assert!(probe.contains("server/discover"));
    world.reply(second, r#"{"content":[]}"#);
    assert!(world.hear(host).contains("content"));
}

#[test]
fn one_whose_tasks_hosts_may_come_back_to_stays() {
    let mut world = World::new();
    let (_, server) = world.modern_with(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    pass(&mut world, PERIOD * 10);
    assert!(!world.finished.contains(&server));
}

#[test]
fn one_that_was_to_be_there_before_anybody_needs_it_stays() {
    let place = Place::Process(Command { program: "server".into(), ..Command::default() });
    let server = Server { eager: true, ..Server::new("server", place) };
    let endpoint = server::Config {
        listeners: Vec::from([server::Listener::Ndjson]),
        ..server::Config::default()
    };
    let mut world = World::with(Config::new(server, endpoint));
    world.handle(Input::Tick);
    let (_, server) = world.modern();
    pass(&mut world, PERIOD * 10);
    assert!(!world.finished.contains(&server));
}
