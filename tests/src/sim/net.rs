//! The world as a host sees it: a gateway with all its doors.

use std::time::Duration;

use mcpx::demo::Demo;
use mcpx_core::client::Place;
use mcpx_core::client::probe::Protocol;
use mcpx_core::driver::{Command, ExitStatus, Input, ListenerId};
use mcpx_core::gateway::{self, Gateway};
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::server;
use mcpx_core::time::Instant;
use mcpx_core::wire::http1::Url;

use super::program::Program;
use super::rng::Rng;
use super::weather::Weather;
use super::wire::{End, NodeId, WireId};
use super::world::World;
use crate::net::{Door, LineId, Net, Upstream};
use crate::odd::Odd;
use crate::scripted::Script;

/// How much simulated time anything may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// A gateway in a simulated world.
pub struct Sim {
    /// The world.
    pub world: World,
    /// The gateway.
    pub gateway: NodeId,
    /// The server, where it is no child of the gateway.
    pub server: Option<NodeId>,
}

/// Limits that tests reach without much ado.
fn limits() -> server::Limits {
    server::Limits { message_bytes: 16 << 20, ..server::Limits::default() }
}

pub(crate) fn endpoint(listeners: Vec<server::Listener>) -> server::Config {
    server::Config { listeners, limits: limits(), ..server::Config::default() }
}

pub(crate) fn http(bind: &str) -> server::Listener {
    let rules = OriginRules::new(bind, None, None);
    server::Listener::Http(rules.unwrap_or_else(|error| panic!("{bind}: {error}")))
}

pub(crate) fn doors() -> Vec<server::Listener> {
    vec![
        http("127.0.0.1:8808"),
        http("/run/mcpx.sock"),
        server::Listener::Ndjson,
        server::Listener::Ndjson,
        server::Listener::Stdio,
    ]
}

fn listener(door: Door) -> ListenerId {
    ListenerId(match door {
        Door::Http => 0,
        Door::HttpUnix => 1,
        Door::Lines => 2,
        Door::LinesUnix => 3,
        Door::Stdio => 4,
    })
}

fn place(upstream: Upstream) -> Place {
    let program =
        |program: &str| Place::Process(Command { program: program.into(), ..Command::default() });
    match upstream {
        Upstream::Demo | Upstream::Child => program("demo"),
        Upstream::Scripted => program("scripted"),
        Upstream::Missing => program("missing"),
        Upstream::Url => at("http://localhost:9000/mcp"),
        Upstream::Refused => at("http://localhost:1/mcp"),
        Upstream::Unresolved => at("http://nowhere.invalid:9000/mcp"),
    }
}

/// An empty world of a seed.
pub(crate) fn world(seed: u64) -> World {
    let mut rng = Rng::new(seed);
    let weather = if seed == 0 { Weather::STILL } else { Weather::of(&mut rng) };
    World::new(rng.number(), weather)
}

/// Makes the demo server a program.
fn install_demo(world: &mut World) {
    let demo = |seed| Box::new(Demo::new(endpoint(vec![server::Listener::Stdio]), seed));
    world.install("demo", Box::new(move |_, seed| demo(seed)));
}

/// Has a demo server listen at a port of localhost.
fn serve_demo(world: &mut World, port: usize) -> NodeId {
    let seed = world.rng().seed();
    let bind = format!("127.0.0.1:{port}");
    let node = world.add(Box::new(Demo::new(endpoint(vec![http(&bind)]), seed)));
    world.listen(&format!("localhost:{port}"), node, ListenerId(0));
    node
}

/// A server at a URL.
fn at(url: &str) -> Place {
    let url = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    Place::Url { url, fields: Vec::new() }
}

impl Sim {
    /// The world of a seed. Seed 0 has no weather.
    pub fn new(seed: u64, upstream: Upstream) -> Self {
        let mut world = world(seed);
        install_demo(&mut world);
        let scripted = || {
            let mut script = Script::default();
            Odd::on_pipe(Box::new(move |heard| script.hear(&heard.message)))
        };
        world.install("scripted", Box::new(move |_, _| Box::new(scripted())));
        let mut server = None;
        if upstream == Upstream::Url {
            server = Some(serve_demo(&mut world, 9000));
        }
        let seed = world.rng().seed();
        if let Upstream::Demo = upstream {
            let demo = Demo::new(endpoint(doors()), seed);
            return Self::around(world, Box::new(demo), server);
        }
        let one = gateway::Server::new("server", place(upstream));
        let config = gateway::Config::new(one, endpoint(doors()));
        Self::around(world, Box::new(Gateway::new(config, seed)), server)
    }

    /// The world of a seed, with a gateway before several servers, `s0`, `s1` and so on,
    /// each of them the demo server where it says, and taken to speak what it says.
    pub fn among(seed: u64, servers: &[(Upstream, Protocol)]) -> Self {
        let mut world = world(seed);
        install_demo(&mut world);
        let mut configured = Vec::new();
        for (n, (upstream, protocol)) in servers.iter().enumerate() {
            let place = match upstream {
                Upstream::Url => {
                    let port = 9000 + n;
                    serve_demo(&mut world, port);
                    at(&format!("http://localhost:{port}/mcp"))
                }
                other => place(*other),
            };
            let one = gateway::Server::new(&format!("s{n}"), place);
            configured.push(gateway::Server { protocol: *protocol, ..one });
        }
        let config = gateway::Config::of(configured, endpoint(doors()));
        let gateway = Gateway::new(config, world.rng().seed());
        Self::around(world, Box::new(gateway), None)
    }

    /// The world of a seed, with a gateway before a server of the test's: the program
    /// `server`, or whatever listens at `localhost:9000`.
    pub fn before(seed: u64, url: bool, settle: impl FnOnce(&mut World)) -> Self {
        let mut world = world(seed);
        settle(&mut world);
        let place = match url {
            true => place(Upstream::Url),
            false => Place::Process(Command { program: "server".into(), ..Command::default() }),
        };
        let server = gateway::Server::new("server", place);
        let config = gateway::Config::new(server, endpoint(doors()));
        let gateway = Gateway::new(config, world.rng().seed());
        Self::around(world, Box::new(gateway), None)
    }

    /// The same, with this machine in the place of the gateway.
    pub(crate) fn around(
        mut world: World,
        machine: Box<dyn Program>,
        server: Option<NodeId>,
    ) -> Self {
        let gateway = world.add(machine);
        for door in [Door::Http, Door::HttpUnix, Door::Lines, Door::LinesUnix] {
            world.listen(&format!("{door:?}"), gateway, listener(door));
        }
        Self { world, gateway, server }
    }

    /// Steps until `done`, or until it takes too long.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let patience: Instant = self.world.now() + PATIENCE;
        while !done(self) {
            if !self.world.step() || self.world.now() > patience {
                self.world.broken(&format!("this never happens: {what}"));
            }
        }
    }
}

fn wire(line: LineId) -> WireId {
    WireId(line.0)
}

impl Net for Sim {
    fn open(&mut self, door: Door) -> LineId {
        let wire = match door {
            Door::Stdio => self.world.attach(self.gateway, listener(door)),
            socket => self.world.open(&format!("{socket:?}")),
        };
        LineId(wire.0)
    }

    fn write(&mut self, line: LineId, bytes: &[u8]) {
        let id = wire(line);
        if let Some(wire) = self.world.wires.get_mut(&id) {
            wire.outside.outbox.extend(bytes);
        }
        self.world.wake(id, 0);
    }

    fn finish(&mut self, line: LineId) {
        let id = wire(line);
        if let Some(wire) = self.world.wires.get_mut(&id) {
            wire.pipes[0].finishing = true;
        }
        self.world.wake(id, 0);
    }

    fn close(&mut self, line: LineId) {
        let id = wire(line);
        if let Some(wire) = self.world.wires.get_mut(&id) {
            wire.ends[0] = End::Nobody;
            wire.outside = super::wire::Outside { ended: true, ..Default::default() };
            self.world.hang_up(id, 0);
        }
    }

    fn hold(&mut self, line: LineId, held: bool) {
        let id = wire(line);
        if let Some(wire) = self.world.wires.get_mut(&id) {
            wire.pipes[1].paused = held;
        }
        if !held {
            self.world.arrive(id, 1);
        }
    }

    fn wait(&mut self, lines: &[LineId]) {
        let ready = |sim: &mut Self| {
            lines.iter().any(|line| match sim.world.wires.get(&wire(*line)) {
                Some(wire) => wire.outside.ended || !wire.outside.inbox.is_empty(),
                None => true,
            })
        };
        self.until(&format!("something comes on one of {lines:?}"), ready);
    }

    fn read(&mut self, line: LineId) -> Vec<u8> {
        let found = self.world.wires.get_mut(&wire(line));
        found.map(|wire| std::mem::take(&mut wire.outside.inbox)).unwrap_or_default()
    }

    fn ended(&mut self, line: LineId) -> bool {
        self.world
            .wires
            .get(&wire(line))
            .is_none_or(|wire| wire.outside.ended && wire.outside.inbox.is_empty())
    }

    fn kill_servers(&mut self) -> usize {
        let children = self.world.children(self.gateway);
        for child in &children {
            self.world.kill(*child);
        }
        children.len()
    }

    fn stop(&mut self) {
        self.world.give(self.gateway, Input::Stop);
    }

    fn over(&mut self) -> i32 {
        self.until("the gateway ends", |sim| sim.world.is_over(sim.gateway));
        match self.world.status(self.gateway) {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(signal) => 128 + signal,
        }
    }
}
