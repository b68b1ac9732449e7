//! The servers of a run.

use std::time::Duration;

use mcpx::demo::Demo;
use mcpx_core::client::Place;
use mcpx_core::driver::{Command, ListenerId};
use mcpx_core::gateway::{self, Gateway};
use mcpx_core::server;
use mcpx_core::wire::http1::Url;

use super::script::Script;
use super::wild;
use super::witness::Witness;
use crate::odd::Odd;
use crate::sim::{NodeId, Rng, Sim, World, doors, endpoint, http, world};

/// What a server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The demo server, without a gateway before it.
    Demo,
    /// The demo server as a process.
    Child,
    /// The demo server at a URL.
    Url,
    /// A process with bad manners, of a legacy revision.
    WildLegacy,
    /// The same, of the modern one.
    WildModern,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Demo, "demo"),
    (Kind::Child, "child"),
    (Kind::Url, "url"),
    (Kind::WildLegacy, "wild-legacy"),
    (Kind::WildModern, "wild-modern"),
];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("demo", |(_, name)| name)
    }

    pub(super) fn find(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Whether a process of it may stay when all hosts are gone.
    pub(super) fn lasts(self) -> bool {
        matches!(self, Self::Child | Self::WildLegacy | Self::WildModern)
    }
}

/// What nobody uses ends then; and a request that its server may have forgotten.
const LONGEST: Duration = Duration::from_secs(120);

/// The world of a script, with everybody in it but the hosts.
pub(super) fn build(script: &Script) -> Sim {
    let mut world = world(script.seed);
    install(&mut world);
    if let [(Kind::Demo, _)] = script.servers.as_slice() {
        let seed = world.rng().seed();
        let demo = Demo::new(endpoint(doors()), seed);
        return Sim::around(world, Box::new(demo), None);
    }
    let mut servers = Vec::new();
    for (n, (kind, protocol)) in script.servers.iter().enumerate() {
        let place = match kind {
            Kind::Demo | Kind::Child => program("demo"),
            Kind::WildLegacy => program("wild-legacy"),
            Kind::WildModern => program("wild-modern"),
            Kind::Url => {
                let port = 9000 + n;
                serve(&mut world, port);
                at(port)
            }
        };
        let limits = limits(script.is_troubled());
        let one = gateway::Server::new(&format!("s{n}"), place);
        servers.push(gateway::Server { protocol: *protocol, limits, ..one });
    }
    let config = gateway::Config::of(servers, endpoint(doors()));
    let gateway = Gateway::new(config, world.rng().seed());
    Sim::around(world, Box::new(gateway), None)
}

/// Limits that a run reaches; `forgetful` are servers that may never answer.
fn limits(forgetful: bool) -> gateway::Limits {
    let usual = gateway::Limits::default();
    let call_idle = if forgetful { LONGEST } else { usual.call_idle };
    gateway::Limits { call_idle, idle: LONGEST, ..usual }
}

fn program(name: &str) -> Place {
    Place::Process(Command { program: name.into(), ..Command::default() })
}

fn at(port: usize) -> Place {
    let url = Url::parse(&format!("http://localhost:{port}/mcp"));
    Place::Url { url: url.unwrap_or_else(|error| panic!("{error}")), fields: Vec::new() }
}

/// The programs that can be started.
fn install(world: &mut World) {
    let stdio = || endpoint(vec![server::Listener::Stdio]);
    let demo = move |seed| Witness::on_pipe(Box::new(Demo::new(stdio(), seed)));
    world.install("demo", Box::new(move |_, seed| Box::new(demo(seed))));
    for (name, modern) in [("wild-legacy", false), ("wild-modern", true)] {
        let wild = move |seed: [u8; 32]| {
            let [a, b, c, d, ..] = seed;
            let chance = Rng::new(u64::from(u32::from_le_bytes([a, b, c, d])));
            Witness::on_pipe(Box::new(Odd::on_pipe(wild::manners(modern, chance))))
        };
        world.install(name, Box::new(move |_, seed| Box::new(wild(seed))));
    }
}

/// Has a demo server listen at a port of localhost.
fn serve(world: &mut World, port: usize) -> NodeId {
    let seed = world.rng().seed();
    let bind = format!("127.0.0.1:{port}");
    let demo = Demo::new(endpoint(vec![http(&bind)]), seed);
    let node = world.add(Box::new(Witness::on_http(Box::new(demo))));
    world.listen(&format!("localhost:{port}"), node, ListenerId(0));
    node
}
