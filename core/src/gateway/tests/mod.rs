//! The gateway between scripted hosts and a scripted server, without a runtime.

mod again;
mod bridge;
mod idle;
mod instances;
mod many;
mod restarts;
mod revisions;
mod shared;
mod state;
mod tasks;
mod web;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::{Config, Gateway, Server};
use crate::client::Place;
use crate::driver::{
    Action, CloseReason, Command, ConnId, ExitStatus, Input, ListenerId, Machine, Signal,
};
use crate::jsonrpc::{get, get_path};
use crate::protocol::origin::OriginRules;
use crate::server;
use crate::time::Instant;
use crate::wire::http1::Url;

/// A gateway, and what came out of it.
struct World {
    gateway: Gateway,
    now: Instant,
    hosts: u64,
    /// Whole lines that each connection was sent and nobody took yet.
    lines: BTreeMap<ConnId, Vec<String>>,
    spawned: Vec<ConnId>,
    /// The programs that were started.
    programs: BTreeMap<ConnId, String>,
    finished: Vec<ConnId>,
    closed: Vec<ConnId>,
    signals: Vec<(ConnId, Signal)>,
    exit: bool,
    /// Whether what is asked for comes to be.
    starts: bool,
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

impl World {
    fn new() -> Self {
        Self::before(Place::Process(Command { program: "server".into(), ..Command::default() }))
    }

    /// A gateway before a URL.
    fn web() -> Self {
        let url = Url::parse("http://localhost:1/mcp").unwrap();
        Self::before(Place::Url { url, fields: Vec::new() })
    }

    fn before(place: Place) -> Self {
        let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
        let endpoint = server::Config {
            listeners: Vec::from([server::Listener::Ndjson, server::Listener::Http(rules)]),
            ..server::Config::default()
        };
        Self::with(Config::new(Server::new("server", place), endpoint))
    }

    /// The only server, as the gateway knows it.
    fn only(&self) -> &super::at::Server {
        self.gateway.servers.values().next().unwrap()
    }

    /// How many connections there are to it.
    fn links(&self) -> usize {
        self.only().links.len()
    }

    fn with(config: Config) -> Self {
        Self {
            gateway: Gateway::new(config, [1; 32]),
            now: Instant::START,
            hosts: 0,
            lines: BTreeMap::new(),
            spawned: Vec::new(),
            programs: BTreeMap::new(),
            finished: Vec::new(),
            closed: Vec::new(),
            signals: Vec::new(),
            exit: false,
            starts: true,
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.now = self.now + Duration::from_millis(1);
        self.gateway.handle(self.now, input);
        while let Some(action) = self.gateway.poll() {
            if let Action::Spawn { conn, command } = &action {
                self.programs.insert(*conn, command.program.clone());
            }
            match action {
                Action::Spawn { conn, .. } | Action::Connect { conn, .. } => {
                    self.spawned.push(conn);
                    if self.starts {
                        self.gateway.handle(self.now, Input::Connected { conn });
                    }
                }
                Action::Flush(conn) => {
                    let bytes = self.gateway.outgoing(conn).to_vec();
                    let text = String::from_utf8(bytes).unwrap();
                    let lines = self.lines.entry(conn).or_default();
                    lines.extend(text.lines().map(ToString::to_string));
                    self.gateway.sent(self.now, conn, text.len());
                }
                Action::Finish(conn) => self.finished.push(conn),
                Action::Close(conn) => self.closed.push(conn),
                Action::Signal { conn, signal } => self.signals.push((conn, signal)),
                Action::Exit => self.exit = true,
                _ => {}
            }
        }
    }

    fn host(&mut self) -> ConnId {
        self.hosts += 1;
        let conn = ConnId::accepted(self.hosts);
        self.handle(Input::Accepted { conn, listener: ListenerId(0), from: None });
        conn
    }

    fn say(&mut self, conn: ConnId, line: &str) {
        let line = format!("{line}\n");
        self.handle(Input::Received { conn, bytes: line.as_bytes() });
    }

    /// The next line that a connection was sent.
    fn hear(&mut self, conn: ConnId) -> String {
        let lines = self.lines.entry(conn).or_default();
        assert!(!lines.is_empty(), "nothing was said");
        lines.remove(0)
    }

    /// Answers what a server was asked first with a result.
    fn reply(&mut self, server: ConnId, result: &str) -> String {
        let asked = self.hear(server);
        let id = id_of(&asked);
        self.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        asked
    }

    fn silent(&mut self, conn: ConnId) -> bool {
        self.lines.entry(conn).or_default().is_empty()
    }

    /// A host with a legacy session, and its server.
    fn session(&mut self) -> (ConnId, ConnId) {
        let host = self.host();
        self.say(host, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"h","version":"1"}}}"#);
        let server = *self.spawned.last().unwrap();
        let id = id_of(&self.hear(server));
        self.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"s","version":"9"}}}}}}"#));
        let answer = self.hear(host);
        assert_eq!(get_path(&answer, &["result", "serverInfo", "name"]), Some("\"mcpx\""));
        assert_eq!(
            get_path(&answer, &["result", "_meta", "dev.mcpx/serverInfo", "name"]),
            Some("\"s\"")
        );
        self.say(host, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(self.hear(server).contains("notifications/initialized"));
        (host, server)
    }

    /// A modern host, whose server has answered the probe.
    fn modern(&mut self) -> (ConnId, ConnId) {
        self.modern_with("{}")
    }

    /// The same, and the server can do this.
    fn modern_with(&mut self, capabilities: &str) -> (ConnId, ConnId) {
        let host = self.host();
        self.say(
            host,
            &format!(
                r#"{{"jsonrpc":"2.0","id":"first","method":"tools/list","params":{{{META}}}}}"#
            ),
        );
        let server = *self.spawned.last().unwrap();
        let probe = self.hear(server);
        assert!(probe.contains("server/discover"));
        let id = id_of(&probe);
        self.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"supportedVersions":["2026-07-28"],"capabilities":{capabilities}}}}}"#));
        let list = self.hear(server);
        let id = id_of(&list);
        self.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[]}}}}"#));
        assert_eq!(id_of(&self.hear(host)), "\"first\"");
        (host, server)
    }
}

fn id_of(line: &str) -> String {
    get(line, "id").unwrap().to_string()
}

#[test]
fn each_session_has_a_server_of_its_own() {
    let mut world = World::new();
    let (a, server_a) = world.session();
    let (b, server_b) = world.session();
    assert_ne!(server_a, server_b);
    // The same id on both sides at once.
    for host in [a, b] {
        world.say(host, r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
    }
    for (host, server, name) in [(b, server_b, "b"), (a, server_a, "a")] {
        let id = id_of(&world.hear(server));
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":"{name}"}}}}"#));
        let answer = world.hear(host);
        assert_eq!(
            (get(&answer, "id"), get_path(&answer, &["result", "n"])),
            (Some("7"), Some(&*format!("\"{name}\"")))
        );
    }
    // One leaves; the other's server stays.
    world.handle(Input::Finished { conn: a });
    assert!(world.finished.contains(&server_a) && !world.finished.contains(&server_b));
}

#[test]
fn progress_and_cancellation_change_names_at_the_hop() {
    let mut world = World::new();
    let (host, server) = world.session();
    world.say(host, r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"n","_meta":{"progressToken":"tok"}}}"#);
    let call = world.hear(server);
    let id = id_of(&call);
    assert_eq!(get_path(&call, &["params", "_meta", "progressToken"]), Some(&*id));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1.50}}}}"#));
    let progress = world.hear(host);
    assert_eq!(get(&progress, "params"), Some(r#"{"progressToken":"tok","progress":1.50}"#));

    world.say(host, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"why"}}"#);
    let cancelled = world.hear(server);
    assert_eq!(get_path(&cancelled, &["params", "requestId"]), Some(&*id));
    assert_eq!(get_path(&cancelled, &["params", "reason"]), Some("\"why\""));
    // What comes late is dropped.
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert!(world.silent(host));
}

#[test]
fn questions_of_the_server_travel_to_its_host_and_back() {
    let mut world = World::new();
    let (host, server) = world.session();
    let (other, _) = world.session();
    world.say(
        server,
        r#"{"jsonrpc":"2.0","id":"q/1","method":"elicitation/create","params":{"message":"?"}}"#,
    );
    let question = world.hear(host);
    assert!(world.silent(other));
    let id = id_of(&question);
    // Another host cannot answer it.
    world.say(other, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#));
    world.say(host, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#));
    let answer = world.hear(server);
    assert_eq!(
        (get(&answer, "id"), get(&answer, "result")),
        (Some("\"q/1\""), Some(r#"{"action":"decline"}"#))
    );
    assert!(world.silent(server));

    world.say(server, r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#);
    let id = id_of(&world.hear(host));
    world.say(
        server,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    );
    assert_eq!(get_path(&world.hear(host), &["params", "requestId"]), Some(&*id));
    world.say(server, r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    assert_eq!(world.hear(server), r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
}

#[test]
fn lif_05_nothing_but_log_messages_goes_to_a_host_that_is_not_ready() {
    let mut world = World::new();
    let host = world.host();
    world.say(host, &INITIALIZE.replacen("{}", r#"{"roots":{}}"#, 1));
    let server = *world.spawned.last().unwrap();
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}"#));
    world.hear(host);
    for _ in 0..2 {
        world.say(server, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
    world.say(server, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    world.say(
        server,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    world.say(server, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    assert!(world.hear(host).contains("notifications/message"));
    assert!(world.silent(host));
    world.say(host, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(world.hear(host).contains("tools/list_changed"));
    assert!(world.hear(host).contains("roots/list"));
    let withdrawn = world.hear(host);
    assert!(withdrawn.contains("notifications/cancelled"), "{withdrawn}");
    assert!(world.silent(host));
}

#[test]
fn modern_hosts_share_a_server() {
    let mut world = World::new();
    let (a, server) = world.modern();
    let b = world.host();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"n",{META}}}}}"#
    );
    world.say(a, &call);
    world.say(b, &call);
    assert_eq!(world.spawned.len(), 1);
    let (first, second) = (world.hear(server), world.hear(server));
    assert_eq!(
        get_path(&first, &["params", "_meta", "dev.mcpx/clientInfo", "name"]),
        Some("\"h\"")
    );
    for (line, host, name) in [(second, b, "B"), (first, a, "A")] {
        let id = id_of(&line);
        world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":"{name}"}}}}"#));
        let answer = world.hear(host);
        assert_eq!(get_path(&answer, &["result", "n"]), Some(&*format!("\"{name}\"")));
        assert_eq!(get_path(&answer, &["result", "resultType"]), Some("\"complete\""));
    }
}

#[test]
fn subscriptions_keep_the_hosts_own_ids() {
    let mut world = World::new();
    let (host, server) = world.modern();
    world.say(host, &format!(r#"{{"jsonrpc":"2.0","id":"listen:0","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#));
    let id = id_of(&world.hear(server));
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{}}}}}}"#));
    let path = ["params", "_meta", "io.modelcontextprotocol/subscriptionId"];
    assert_eq!(get_path(&world.hear(host), &path), Some("\"listen:0\""));
    // A stop ends it gracefully.
    world.handle(Input::Stop);
    let end = world.hear(host);
    assert_eq!(
        get_path(&end, &["result", "_meta", "io.modelcontextprotocol/subscriptionId"]),
        Some("\"listen:0\"")
    );
    assert_eq!(get_path(&world.hear(server), &["params", "requestId"]), Some(&*id));
    assert!(world.finished.contains(&server) && !world.exit);
    world.handle(Input::Exited { conn: server, status: ExitStatus::Code(0) });
    assert!(world.exit);
}

#[test]
fn a_dead_server_fails_its_calls() {
    let mut world = World::new();
    let (host, server) = world.session();
    world.say(host, r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
    world.handle(Input::Stderr { conn: server, bytes: b"out of luck\n" });
    world.handle(Input::Finished { conn: server });
    world.handle(Input::Exited { conn: server, status: ExitStatus::Code(3) });
    let failed = world.hear(host);
    assert_eq!(get(&failed, "id"), Some("9"));
    assert!(failed.contains("exited with code 3") && failed.contains("out of luck"), "{failed}");
    assert!(world.links() == 0);
    // Other hosts may come: only the one that started us would end us.
    assert!(!world.gateway.is_deserted());
    assert!(world.only().sessions.is_empty() && world.only().routes.is_empty());
}

#[test]
fn a_server_that_does_not_leave_is_made_to() {
    let mut world = World::new();
    let (_, server) = world.session();
    world.handle(Input::Stop);
    assert_eq!(world.finished.iter().filter(|conn| **conn == server).count(), 1);
    while !world.exit && world.signals.len() < 2 {
        world.now = world.gateway.deadline().unwrap();
        world.handle(Input::Tick);
    }
    assert_eq!(world.signals, [(server, Signal::Terminate), (server, Signal::Kill)]);
    world.handle(Input::Exited { conn: server, status: ExitStatus::Signal(9) });
    assert!(world.exit);
}

#[test]
fn what_follows_initialize_at_once_waits_for_its_answer() {
    let mut world = World::new();
    let host = world.host();
    let two = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{}}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
    world.handle(Input::Received { conn: host, bytes: two.as_bytes() });
    world.handle(Input::Finished { conn: host });
    let server = *world.spawned.last().unwrap();
    let id = id_of(&world.hear(server));
    assert!(world.silent(server));
    world.say(
        server,
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25"}}}}"#),
    );
    // The last line, which has no end, is served too.
    let list = world.hear(server);
    assert!(list.contains("tools/list"));
    let id = id_of(&list);
    world.say(server, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[]}}}}"#));
    assert_eq!((id_of(&world.hear(host)), id_of(&world.hear(host))), ("0".into(), "1".into()));
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}"#;

#[test]
fn a_server_that_never_started_is_forgotten() {
    let mut world = World::new();
    world.starts = false;
    let host = world.host();
    world.say(host, INITIALIZE);
    let server = *world.spawned.last().unwrap();
    world.handle(Input::Closed { conn: host, why: CloseReason::Reset });
    world.handle(Input::Closed { conn: server, why: CloseReason::NotFound });
    assert!(world.links() == 0);
    world.handle(Input::Stop);
    assert!(world.exit);
}

#[test]
fn a_stop_does_not_wait_for_an_answer_to_the_probe() {
    for mut world in [World::new(), World::web()] {
        let host = world.host();
        world.say(
            host,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#),
        );
        let server = *world.spawned.last().unwrap();
        world.handle(Input::Stop);
        world.handle(Input::Stop);
        world.handle(Input::Exited { conn: server, status: ExitStatus::Signal(9) });
        assert!(world.exit);
        assert_eq!(world.gateway.deadline(), None);
    }
}
