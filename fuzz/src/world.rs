//! A runtime without an operating system: connections, processes and time are
//! what the fuzzer says they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpx_core::driver::{
    Action, CloseReason, ConnId, ExitStatus, Input, ListenerId, Machine, Signal,
};
use mcpx_core::gateway::Gateway;
use mcpx_core::time::Instant;

/// A connection as the runtime knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Accepted: the listener.
    pub listener: Option<u32>,
    /// Asked for as a process.
    pub process: bool,
    /// Asked for, and there.
    pub connected: bool,
    /// Dropped, but for a process that has yet to exit.
    pub dropped: bool,
    /// Reading is paused.
    pub paused: bool,
    /// The other side does not read: nothing can be written.
    pub stuck: bool,
}

/// What a run has shown, however its bytes were cut.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// All bytes written to each connection.
    pub written: BTreeMap<ConnId, Vec<u8>>,
    /// The connections that the machine dropped or ended.
    pub ended: BTreeSet<ConnId>,
    /// Whether the machine has ended.
    pub exited: bool,
}

/// The machine and all that is around it.
pub struct World {
    pub gateway: Gateway,
    pub links: BTreeMap<ConnId, Link>,
    pub shown: Shown,
    /// The newest session id that a host was given.
    pub session: Option<String>,
    /// Whether what is written is kept for comparison.
    keep: bool,
    now: Instant,
    accepted: u64,
    /// Whether everything that happens is printed: if `TRACE` is set.
    trace: bool,
}

impl World {
    pub fn new(gateway: Gateway, keep: bool) -> Self {
        Self {
            gateway,
            links: BTreeMap::new(),
            shown: Shown::default(),
            session: None,
            keep,
            now: Instant::START,
            accepted: 0,
            trace: std::env::var_os("TRACE").is_some(),
        }
    }

    /// The `n`th of the connections that `wanted` picks.
    pub fn pick(&self, n: usize, wanted: impl Fn(&Link) -> bool) -> Option<(ConnId, Link)> {
        let found: Vec<_> = self.links.iter().filter(|(_, link)| wanted(link)).collect();
        let (conn, link) = found.get(n % found.len().max(1))?;
        Some((**conn, **link))
    }

    pub fn handle(&mut self, input: Input<'_>) {
        if self.shown.exited {
            return;
        }
        self.tell(|| match input {
            Input::Received { conn, bytes } => format!("> {conn:?} \"{}\"", bytes.escape_ascii()),
            other => format!("> {other:?}"),
        });
        self.gateway.handle(self.now, input);
        self.work();
    }

    fn tell(&self, what: impl Fn() -> String) {
        if self.trace {
            eprintln!("{:>8} ms {}", self.now.as_micros() / 1000, what());
        }
    }

    pub fn accept(&mut self, listener: u32) {
        self.accepted += 1;
        let conn = ConnId::accepted(self.accepted);
        self.links.insert(conn, Link { listener: Some(listener), ..LINK });
        self.handle(Input::Accepted { conn, listener: ListenerId(listener), from: None });
    }

    pub fn connected(&mut self, conn: ConnId) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.connected = true;
            self.handle(Input::Connected { conn });
        }
    }

    pub fn receive(&mut self, conn: ConnId, bytes: &[u8]) {
        if !bytes.is_empty() && self.links.get(&conn).is_some_and(|link| !link.dropped) {
            self.handle(Input::Received { conn, bytes });
        }
    }

    pub fn close(&mut self, conn: ConnId, why: CloseReason) {
        self.drop_link(conn);
        self.handle(Input::Closed { conn, why });
    }

    pub fn exit(&mut self, conn: ConnId, status: ExitStatus) {
        self.links.remove(&conn);
        self.handle(Input::Exited { conn, status });
    }

    /// Lets time pass, with a tick at every deadline.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut at_once = 0;
        while !self.shown.exited
            && let Some(at) = self.gateway.deadline().filter(|at| *at <= until)
        {
            at_once = if at > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 8, "the deadline stays in the past");
            self.now = self.now.max(at);
            self.handle(Input::Tick);
        }
        self.now = until;
    }

    /// The other side reads `n` bytes, or as many as there are.
    pub fn write(&mut self, conn: ConnId, n: usize) {
        let bytes = self.gateway.outgoing(conn);
        let bytes = &bytes[..n.min(bytes.len())];
        if bytes.is_empty() {
            return;
        }
        if let Some(session) = session_id(bytes) {
            self.session = Some(session);
        }
        self.tell(|| format!("< {conn:?} \"{}\"", bytes.escape_ascii()));
        let n = bytes.len();
        if self.keep {
            self.shown.written.entry(conn).or_default().extend_from_slice(bytes);
        }
        self.gateway.sent(self.now, conn, n);
    }

    fn work(&mut self) {
        loop {
            while let Some(action) = self.gateway.poll() {
                assert!(!self.shown.exited, "{action:?} after the end");
                self.act(action);
            }
            let open = |link: &Link| !link.dropped && !link.stuck && link.connected;
            let waiting = self
                .links
                .iter()
                .find(|(conn, link)| open(link) && !self.gateway.outgoing(**conn).is_empty());
            let Some((&conn, _)) = waiting else { return };
            self.write(conn, usize::MAX);
        }
    }

    fn act(&mut self, action: Action) {
        self.tell(|| format!("< {action:?}"));
        match action {
            Action::Connect { conn, .. } => self.ask_for(conn, false),
            Action::Spawn { conn, .. } => self.ask_for(conn, true),
            Action::Pause(conn) => self.set(conn, |link| link.paused = true),
            Action::Resume(conn) => self.set(conn, |link| link.paused = false),
            Action::Close(conn) => {
                self.note_end(conn);
                self.drop_link(conn);
            }
            Action::Finish(conn) => self.note_end(conn),
            Action::Signal { conn, signal: Signal::Kill } => {
                self.set(conn, |link| link.stuck = true);
            }
            Action::Exit => self.shown.exited = true,
            Action::Flush(_) | Action::Signal { .. } => {}
            Action::StopListening | Action::Event(_) => {}
        }
    }

    fn note_end(&mut self, conn: ConnId) {
        if self.keep {
            self.shown.ended.insert(conn);
        }
    }

    fn ask_for(&mut self, conn: ConnId, process: bool) {
        assert!(conn.is_requested());
        let before = self.links.insert(conn, Link { process, connected: false, ..LINK });
        assert!(before.is_none(), "{conn:?} is asked for twice");
    }

    fn drop_link(&mut self, conn: ConnId) {
        match self.links.get_mut(&conn) {
            Some(link) if link.process && link.connected => link.dropped = true,
            _ => drop(self.links.remove(&conn)),
        }
    }

    fn set(&mut self, conn: ConnId, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.links.get_mut(&conn) {
            change(link);
        }
    }

    /// Everybody leaves, and time passes until nothing is due.
    pub fn desert(&mut self) {
        for _ in 0..10_000 {
            if self.shown.exited {
                return;
            }
            match self.links.first_key_value() {
                Some((&conn, link)) if link.process && link.connected => {
                    self.exit(conn, ExitStatus::Code(0));
                }
                Some((&conn, _)) => self.close(conn, CloseReason::Refused),
                None => {
                    self.pass(Duration::from_secs(3600));
                    if self.links.is_empty() {
                        return;
                    }
                }
            }
        }
        panic!("it never rests: {:?}", self.links);
    }
}

const LINK: Link = Link {
    listener: None,
    process: false,
    connected: true,
    dropped: false,
    paused: false,
    stuck: false,
};

fn session_id(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (_, after) = text.rsplit_once("Mcp-Session-Id: ")?;
    Some(after.split('\r').next()?.into())
}
