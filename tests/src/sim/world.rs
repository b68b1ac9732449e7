//! Who is there, and what happens next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use mcpx_core::driver::{CloseReason, ConnId, Input, ListenerId};
use mcpx_core::event::Event;
use mcpx_core::time::Instant;

use super::program::Program;
use super::rng::Rng;
use super::weather::Weather;
use super::wire::{End, NodeId, Wire, WireId};

/// What a program is made from: its arguments, and 32 random bytes.
pub(super) type Maker = Box<dyn Fn(&[String], [u8; 32]) -> Box<dyn Program>>;

/// Ticks that a machine may want at one moment before it is taken to be stuck.
const TICKS: u32 = 16;

/// Turns that a long message takes, more or less.
const TURNS: usize = 64;

/// Bytes of each piece that are told.
const SHOWN: usize = 500;

/// The simulated world. See the [module](super).
pub struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) wires: BTreeMap<WireId, Wire>,
    /// What each machine calls its connections, and the side that it is on.
    pub(super) conns: BTreeMap<(NodeId, ConnId), (WireId, usize)>,
    /// The processes that machines have started and not seen the end of.
    pub(super) children: BTreeMap<(NodeId, ConnId), NodeId>,
    /// Connections that machines have asked for and that are not there yet.
    pub(super) asked: BTreeSet<(NodeId, ConnId)>,
    pub(super) programs: BTreeMap<String, Maker>,
    listeners: BTreeMap<String, (NodeId, ListenerId)>,
    agenda: BTreeMap<(Instant, u64, u64), What>,
    pub(super) now: Instant,
    pub(super) rng: Rng,
    weather: Weather,
    numbers: u64,
    aloud: bool,
    digest: Digest,
    steps: u64,
}

pub(super) struct Node {
    pub(super) machine: Box<dyn Program>,
    pub(super) parent: Option<(NodeId, ConnId)>,
    pub(super) over: bool,
    /// It did not end by itself.
    pub(super) killed: bool,
    accepted: u64,
    ticked: (Instant, u32),
    /// What it told its embedder.
    pub(super) events: Vec<Event>,
}

/// What is going to happen.
#[derive(Debug)]
pub(super) enum What {
    /// The one on this side writes.
    Write(WireId, usize),
    /// A piece of what this side wrote arrives.
    Deliver(WireId, usize),
    /// A connection reaches its listener, if there is one.
    Connect(WireId, String),
    /// It fails.
    Fail(NodeId, ConnId, CloseReason),
    /// A process that was started is there.
    Start(WireId),
    /// A process is gone, and its parent is to hear of it.
    Exited(NodeId),
}

impl World {
    /// An empty world.
    pub fn new(seed: u64, weather: Weather) -> Self {
        Self {
            nodes: Vec::new(),
            wires: BTreeMap::new(),
            conns: BTreeMap::new(),
            children: BTreeMap::new(),
            asked: BTreeSet::new(),
            programs: BTreeMap::new(),
            listeners: BTreeMap::new(),
            agenda: BTreeMap::new(),
            now: Instant::START,
            rng: Rng::new(seed),
            weather,
            numbers: 0,
            aloud: std::env::var_os("TRACE").is_some(),
            digest: Digest(0),
            steps: 0,
        }
    }

    /// Puts a machine into the world.
    pub fn add(&mut self, machine: Box<dyn Program>) -> NodeId {
        self.enter(machine, None)
    }

    /// Has `node` accept the connections to `place`.
    pub fn listen(&mut self, place: &str, node: NodeId, listener: ListenerId) {
        self.listeners.insert(place.to_owned(), (node, listener));
    }

    /// Makes a program that machines can start by its name.
    pub fn install(&mut self, name: &str, maker: Maker) {
        self.programs.insert(name.to_owned(), maker);
    }

    /// The moment.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Chance.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// A number that depends on every byte and every moment so far.
    pub fn digest(&self) -> u64 {
        self.digest.0
    }

    /// How many things have happened.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The connections that a machine has asked for, processes aside.
    pub fn requested(&self, node: NodeId) -> Vec<WireId> {
        let range = (node, ConnId::requested(0))..=(node, ConnId::requested(u64::MAX));
        let all = self.conns.range(range);
        let sockets = all.filter(|(key, _)| !self.children.contains_key(*key));
        sockets.map(|(_, (wire, _))| *wire).collect()
    }

    /// A connection breaks in the middle: both sides lose it.
    pub fn reset(&mut self, wire: WireId) {
        for side in 0..2 {
            self.lose(wire, side, CloseReason::Reset);
        }
    }

    /// Nothing happens for so long, and then all that was due is late.
    pub fn jump(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Whether a machine has ended.
    pub fn is_over(&self, node: NodeId) -> bool {
        self.nodes[node.0].over
    }

    /// What a machine remembers of those whom it served.
    pub fn remembered(&self, node: NodeId) -> BTreeSet<&'static str> {
        self.nodes[node.0].machine.remembered()
    }

    /// How a machine's process ends.
    pub fn status(&self, node: NodeId) -> mcpx_core::driver::ExitStatus {
        self.nodes[node.0].machine.status()
    }

    /// What a machine has told its embedder.
    pub fn events(&self, node: NodeId) -> &[Event] {
        &self.nodes[node.0].events
    }

    /// Processes that run, those that no machine has started included.
    pub fn running(&self) -> usize {
        self.nodes.iter().filter(|node| !node.over).count()
    }

    /// The processes that `node` has started and not seen the end of.
    pub fn children(&self, node: NodeId) -> Vec<NodeId> {
        self.children.iter().filter(|((at, _), _)| *at == node).map(|(_, child)| *child).collect()
    }

    /// Hands a machine an input at this moment.
    pub fn give(&mut self, node: NodeId, input: Input<'_>) {
        if self.nodes[node.0].over {
            return;
        }
        match input {
            Input::Received { conn, bytes } => {
                self.tell(format_args!("{} > {conn:?}", node.0), bytes);
            }
            other => self.tell(format_args!("{} > {other:?}", node.0), b""),
        }
        let now = self.now;
        self.nodes[node.0].machine.handle(now, input);
        self.act(node);
    }

    /// The next thing happens. False if nothing ever will.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        let tick = (0..self.nodes.len())
            .filter(|n| !self.nodes[*n].over)
            .filter_map(|n| Some((self.nodes[n].machine.deadline()?, n)))
            .min();
        let next = self.agenda.first_key_value().map(|((at, ..), _)| *at);
        match (tick, next) {
            (None, None) => return false,
            (Some((at, n)), next) if next.is_none_or(|next| at <= next) => {
                self.now = self.now.max(at);
                self.tick(NodeId(n));
            }
            _ => {
                if let Some(((at, ..), what)) = self.agenda.pop_first() {
                    self.now = self.now.max(at);
                    self.happen(what);
                }
            }
        }
        true
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.next_at().is_some_and(|at| at <= until) && self.step() {}
        self.now = until;
    }

    pub(super) fn stop_listening(&mut self, node: NodeId) {
        self.listeners.retain(|_, (at, _)| *at != node);
    }

    fn next_at(&self) -> Option<Instant> {
        let ticks =
            self.nodes.iter().filter(|node| !node.over).filter_map(|node| node.machine.deadline());
        ticks.chain(self.agenda.first_key_value().map(|((at, ..), _)| *at)).min()
    }

    fn tick(&mut self, node: NodeId) {
        let now = self.now;
        let ticked = &mut self.nodes[node.0].ticked;
        *ticked = if ticked.0 == now { (now, ticked.1 + 1) } else { (now, 1) };
        if ticked.1 > TICKS {
            self.broken(&format!("the deadline of {} stays in the past", node.0));
        }
        self.give(node, Input::Tick);
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Write(wire, side) => self.write(wire, side),
            What::Deliver(wire, side) => self.deliver(wire, side),
            What::Connect(wire, place) => self.connect(wire, &place),
            What::Fail(node, conn, why) => {
                if self.asked.remove(&(node, conn)) {
                    self.conns.remove(&(node, conn));
                    self.give(node, Input::Closed { conn, why });
                }
            }
            What::Start(wire) => self.establish(wire),
            What::Exited(child) => self.exited(child),
        }
    }

    /// Plans something for later: when, is up to the weather.
    pub(super) fn plan(&mut self, what: What) {
        let at = self.now + self.weather.delay(&mut self.rng);
        // Among what happens at one moment, the order is chance as well.
        let tie = if self.weather.delay == 0 { 0 } else { self.rng.number() };
        let number = self.number();
        self.agenda.insert((at, tie, number), what);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn enter(
        &mut self,
        machine: Box<dyn Program>,
        parent: Option<(NodeId, ConnId)>,
    ) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node {
            machine,
            parent,
            over: false,
            killed: false,
            accepted: 0,
            ticked: (Instant::START, 0),
            events: Vec::new(),
        });
        self.act(id);
        id
    }

    pub(super) fn add_wire(&mut self, ends: [End; 2]) -> WireId {
        let id = WireId(self.number());
        self.wires.insert(id, Wire::new(ends));
        for (side, end) in ends.into_iter().enumerate() {
            if let End::Node(node, conn) = end {
                self.conns.insert((node, conn), (id, side));
            }
        }
        id
    }

    /// A connection to `place`, for the test.
    pub fn open(&mut self, place: &str) -> WireId {
        let wire = self.add_wire([End::Outside, End::Nobody]);
        self.plan(What::Connect(wire, place.to_owned()));
        wire
    }

    /// A connection to a machine's listener that is there at once.
    pub fn attach(&mut self, node: NodeId, listener: ListenerId) -> WireId {
        let wire = self.add_wire([End::Outside, End::Nobody]);
        self.accept(wire, node, listener);
        wire
    }

    fn connect(&mut self, wire: WireId, place: &str) {
        let Some(ends) = self.wires.get(&wire).map(|wire| wire.ends) else { return };
        let found = self.listeners.get(place).copied();
        let Some((node, listener)) = found.filter(|(node, _)| !self.is_over(*node)) else {
            let unknown = place.split(':').next().is_some_and(|host| host.ends_with(".invalid"));
            let why = if unknown { CloseReason::Unresolved } else { CloseReason::Refused };
            return self.lose(wire, 0, why);
        };
        if ends[0] != End::Nobody {
            self.accept(wire, node, listener);
        }
    }

    fn accept(&mut self, wire: WireId, node: NodeId, listener: ListenerId) {
        let conn = self.accepted(node);
        if let Some(found) = self.wires.get_mut(&wire) {
            found.ends[1] = End::Node(node, conn);
            self.conns.insert((node, conn), (wire, 1));
        }
        self.give(node, Input::Accepted { conn, listener, from: None });
        self.establish(wire);
    }

    pub(super) fn accepted(&mut self, node: NodeId) -> ConnId {
        let node = &mut self.nodes[node.0];
        node.accepted += 1;
        ConnId::accepted(node.accepted)
    }

    /// The side that asked learns that the connection is there.
    fn establish(&mut self, id: WireId) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        wire.open = true;
        let asker = wire.ends[0];
        for side in 0..2 {
            self.wake(id, side);
            self.arrive(id, side);
        }
        if let End::Node(node, conn) = asker
            && self.asked.remove(&(node, conn))
        {
            self.give(node, Input::Connected { conn });
        }
    }

    /// Whoever is on this side of a connection loses it.
    pub(super) fn lose(&mut self, id: WireId, side: usize, why: CloseReason) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        let end = std::mem::replace(&mut wire.ends[side], End::Nobody);
        wire.pipes[side].finished = true;
        wire.pipes[1 - side].bytes.clear();
        match end {
            End::Outside => wire.outside.ended = true,
            End::Node(node, conn) => {
                self.conns.remove(&(node, conn));
                self.asked.remove(&(node, conn));
                self.give(node, Input::Closed { conn, why });
                self.buried(node, conn);
            }
            End::Nobody => {}
        }
        self.hang_up(id, side);
    }

    /// Nothing more can come from a process whose pipes its parent has lost.
    pub(super) fn buried(&mut self, parent: NodeId, conn: ConnId) {
        if let Some(child) = self.children.get(&(parent, conn)).copied()
            && self.is_over(child)
        {
            self.plan(What::Exited(child));
        }
    }

    /// The other side learns that nobody is on this one any more, after all that
    /// was written.
    pub(super) fn hang_up(&mut self, id: WireId, side: usize) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        wire.pipes[side].finished = true;
        wire.pipes[1 - side].bytes.clear();
        if wire.ends == [End::Nobody; 2] && wire.outside.inbox.is_empty() {
            self.wires.remove(&id);
            return;
        }
        self.arrive(id, side);
        // Who is waiting for room has lost it.
        self.wake(id, 1 - side);
    }

    /// Has a side write, unless it is about to.
    pub(super) fn wake(&mut self, id: WireId, side: usize) {
        let Some(wire) = self.wires.get_mut(&id).filter(|wire| wire.open) else { return };
        if !std::mem::replace(&mut wire.pipes[side].writing, true) {
            self.plan(What::Write(id, side));
        }
    }

    /// Has what a side wrote arrive, unless it is about to.
    pub(super) fn arrive(&mut self, id: WireId, side: usize) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        if !std::mem::replace(&mut wire.pipes[side].moving, true) {
            self.plan(What::Deliver(id, side));
        }
    }

    fn write(&mut self, id: WireId, side: usize) {
        let window = self.weather.window;
        let Some(wire) = self.wires.get_mut(&id) else { return };
        wire.pipes[side].writing = false;
        let (end, gone) = (wire.ends[side], wire.ends[1 - side] == End::Nobody);
        let underway = wire.pipes[side].bytes.len();
        let waiting = match end {
            End::Nobody => return,
            End::Outside => wire.outside.outbox.len(),
            End::Node(node, conn) => self.nodes[node.0].machine.outgoing(conn).len(),
        };
        let pipe = &mut wire.pipes[side];
        let grain = if underway == 0 { 0 } else { pipe.grain }.max(waiting / TURNS);
        pipe.grain = grain;
        let room = window.max(2 * grain).saturating_sub(underway);
        if gone && waiting > 0 {
            return self.lose(id, side, CloseReason::Reset);
        }
        let n = self.weather.cut(waiting.min(room), grain, &mut self.rng);
        let Some(wire) = self.wires.get_mut(&id) else { return };
        let pipe = &mut wire.pipes[side];
        match end {
            End::Node(node, conn) if n > 0 => {
                let bytes = self.nodes[node.0].machine.outgoing(conn)[..n].to_vec();
                pipe.bytes.extend(&bytes);
                self.tell(format_args!("{} < {conn:?}", node.0), &bytes);
                let now = self.now;
                self.nodes[node.0].machine.sent(now, conn, n);
                self.act(node);
            }
            _ => pipe.bytes.extend(wire.outside.outbox.drain(..n)),
        }
        if n > 0 {
            self.arrive(id, side);
        }
        if n < waiting.min(room) {
            self.wake(id, side);
        }
        let Some(wire) = self.wires.get_mut(&id) else { return };
        if wire.pipes[side].finishing && n == waiting && wire.ends[side] == end {
            wire.pipes[side].finished = true;
            self.arrive(id, side);
        }
    }

    fn deliver(&mut self, id: WireId, side: usize) {
        let Some(wire) = self.wires.get_mut(&id) else { return };
        let reader = wire.ends[1 - side];
        let pipe = &mut wire.pipes[side];
        pipe.moving = false;
        if pipe.paused || pipe.told || !wire.open {
            return;
        }
        let n = self.weather.cut(pipe.bytes.len(), pipe.grain, &mut self.rng);
        let bytes: Vec<u8> = pipe.bytes.drain(..n).collect();
        if n == 0 && pipe.finished {
            pipe.told = true;
            match reader {
                End::Node(node, conn) => self.give(node, Input::Finished { conn }),
                End::Outside => wire.outside.ended = true,
                End::Nobody => {}
            }
            return self.parted(id);
        }
        if n > 0 {
            match reader {
                End::Node(node, conn) => self.give(node, Input::Received { conn, bytes: &bytes }),
                End::Outside => wire.outside.inbox.extend_from_slice(&bytes),
                End::Nobody => {}
            }
            self.wake(id, side);
            self.arrive(id, side);
        }
    }

    /// Both sides may be through with a connection, and a process with its life.
    fn parted(&mut self, id: WireId) {
        let Some(wire) = self.wires.get(&id) else { return };
        if let (End::Node(node, conn), End::Nobody) = (wire.ends[0], wire.ends[1]) {
            self.buried(node, conn);
        }
    }

    /// Something happened: it counts for the digest, and is told if anybody listens.
    pub(super) fn tell(&mut self, what: fmt::Arguments<'_>, bytes: &[u8]) {
        let now = self.now.as_micros();
        // A digest takes all that is written to it.
        let _ = write!(self.digest, "{now} {what} ");
        self.digest.take(bytes);
        if self.aloud {
            let shown = &bytes[..bytes.len().min(SHOWN)];
            eprintln!("{now:>9} {what} {}", shown.escape_ascii());
        }
    }

    /// Ends the test: this must not happen.
    pub fn broken(&self, why: &str) -> ! {
        panic!("{why}, at {} µs of the simulation; TRACE=1 tells all", self.now.as_micros());
    }
}

/// A number that depends on all that it was given.
struct Digest(u64);

impl Digest {
    fn take(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let last = rest.iter().fold(rest.len() as u64, |all, byte| all << 8 | u64::from(*byte));
        for word in words.iter().map(|word| u64::from_le_bytes(*word)).chain([last]) {
            self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.take(text.as_bytes());
        Ok(())
    }
}
