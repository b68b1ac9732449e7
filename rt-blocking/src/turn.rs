//! The thread that owns the machine: wait, hand in what happened, act.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use mcpx_core::driver::{CloseReason, ConnId, Input, ListenerId, Machine};
use mcpx_core::event::Event;
use mcpx_core::time::Instant as Moment;

use crate::Listener;
use crate::accept::Acceptor;
use crate::conn::Conn;
use crate::process::GRACE;
use crate::socket::Socket;
use crate::system;
use crate::workers::{Part, Report, Reports, reason};

/// How many reports may wait. A worker that has one more waits itself.
const REPORTS: usize = 256;
/// How many reports are handed in, at most, before the machine may act.
const BATCH: usize = 64;
/// When writing has failed, how long we wait for what the other side said
/// before it left.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The owner of the machine.
pub(crate) struct Owner {
    pub(crate) reports: Reports,
    inbox: Receiver<Report>,
    started: Instant,
    /// The moment of this turn.
    pub(crate) now: Instant,
    pub(crate) listeners: Vec<Option<Acceptor>>,
    /// Those listeners that are our own standard input and output.
    stdio: Vec<ListenerId>,
    pub(crate) listening: bool,
    accepted: u64,
    pub(crate) conns: HashMap<ConnId, Conn>,
    /// Connections that may have something to write.
    pub(crate) writable: Vec<ConnId>,
    /// Connections whose readers may go on unless the machine pauses them.
    pub(crate) resting: Vec<ConnId>,
    /// Connections that wait for a moment: a grace, or last words.
    waiting: Vec<ConnId>,
    _stops: Option<system::Stops>,
}

impl Owner {
    /// One that hears the user's signals if `stops` says so.
    pub(crate) fn new(listeners: Vec<Listener>, stops: bool) -> io::Result<Self> {
        let (reports, inbox) = sync_channel(REPORTS);
        let stops = stops.then(|| system::Stops::new(reports.clone())).transpose()?;
        let mut acceptors = Vec::with_capacity(listeners.len());
        let mut stdio = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let id = ListenerId(u32::try_from(index).unwrap_or(u32::MAX));
            if matches!(listener, Listener::Stdio) {
                stdio.push(id);
            }
            acceptors.push(Acceptor::start(listener, id, reports.clone())?);
        }
        let started = Instant::now();
        Ok(Self {
            reports,
            inbox,
            started,
            now: started,
            listeners: acceptors,
            stdio,
            listening: true,
            accepted: 0,
            conns: HashMap::new(),
            writable: Vec::new(),
            resting: Vec::new(),
            waiting: Vec::new(),
            _stops: stops,
        })
    }

    pub(crate) fn run<M: Machine>(
        mut self,
        machine: &mut M,
        observe: &mut impl FnMut(Event),
    ) -> io::Result<()> {
        self.open_stdio(machine)?;
        while self.turn(machine, None, observe) {}
        Ok(())
    }

    /// One turn, which waits until then at most. `false` if it was the last.
    pub(crate) fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Moment>,
        observe: &mut impl FnMut(Event),
    ) -> bool {
        if self.act(machine, observe) {
            self.write_the_rest(machine, observe);
            return false;
        }
        self.let_read();
        let first = self.wait(self.timeout(machine.deadline().into_iter().chain(until).min()));
        self.hand_in(machine, first);
        true
    }

    /// Says what time it is, if nobody has waited for long.
    pub(crate) fn look_at_the_clock(&mut self) {
        self.now = Instant::now();
    }

    pub(crate) fn moment(&self) -> Moment {
        let micros = self.now.duration_since(self.started).as_micros();
        Moment::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    // Waiting.

    /// How long nothing happens by itself; `None` for ever.
    fn timeout(&self, deadline: Option<Moment>) -> Option<Duration> {
        let deadline = deadline.map(|at| at.since(self.moment()));
        let moments = self.waiting.iter().filter_map(|id| {
            let conn = self.conns.get(id)?;
            let grace = conn.process.as_ref().and_then(|process| process.grace);
            // Nothing ends while its output is paused.
            let grace = grace.filter(|_| !conn.is_held());
            conn.broken.map(|(_, until)| until).into_iter().chain(grace).min()
        });
        let waits = moments.map(|until| until.saturating_duration_since(self.now));
        deadline.into_iter().chain(waits).min()
    }

    /// Lets those readers go on whose bytes the machine has had the chance to
    /// act on.
    fn let_read(&mut self) {
        for id in self.resting.drain(..) {
            if let Some(conn) = self.conns.get_mut(&id) {
                conn.let_read();
            }
        }
    }

    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Option<Report> {
        let report = match timeout {
            // We hold a sender ourselves, so the channel cannot be closed.
            None => self.inbox.recv().ok(),
            Some(timeout) => self.inbox.recv_timeout(timeout).ok(),
        };
        self.now = Instant::now();
        report
    }

    // Handing in.

    fn hand_in<M: Machine>(&mut self, machine: &mut M, first: Option<Report>) {
        let mut next = first;
        for _ in 0..BATCH {
            let Some(report) = next.or_else(|| self.inbox.try_recv().ok()) else { break };
            self.tell(machine, report);
            next = None;
        }
        self.settle(machine);
        if machine.deadline().is_some_and(|at| at <= self.moment()) {
            machine.handle(self.moment(), Input::Tick);
        }
    }

    /// Tells the machine what a worker reports.
    pub(crate) fn tell<M: Machine>(&mut self, machine: &mut M, report: Report) {
        let now = self.moment();
        match report {
            Report::Accepted { listener, socket, from } => {
                self.accept(machine, listener, socket, from);
            }
            Report::Connected(id, outcome) => self.connected(machine, id, outcome),
            Report::Read { conn, part: Part::Input, buffer, len } => {
                let Some(known) = self.conns.get_mut(&conn) else { return };
                let Some(input) = &mut known.input else { return };
                if known.paused {
                    input.kept = Some((buffer, len));
                } else {
                    machine.handle(now, Input::Received { conn, bytes: &buffer[..len] });
                    input.rest(buffer, len);
                    self.resting.push(conn);
                }
            }
            Report::Read { conn, part: Part::Stderr, buffer, len } => {
                let process = self.conns.get(&conn).and_then(|conn| conn.process.as_ref());
                if let Some(grant) = process.and_then(|process| process.stderr.as_ref()) {
                    machine.handle(now, Input::Stderr { conn, bytes: &buffer[..len] });
                    // There is room for the only buffer.
                    let _ = grant.try_send(buffer);
                }
            }
            Report::ReadEnded { conn, part: Part::Input, error } => {
                let Some(known) = self.conns.get_mut(&conn) else { return };
                if known.input.take().is_none() {
                    return;
                }
                match known.broken.map(|(why, _)| why).or(error) {
                    Some(why) => self.lose(machine, conn, why),
                    None => {
                        machine.handle(now, Input::Finished { conn });
                        self.forget_if_over(conn);
                    }
                }
            }
            Report::ReadEnded { conn, part: Part::Stderr, .. } => {
                let process = self.conns.get_mut(&conn).and_then(|conn| conn.process.as_mut());
                if let Some(process) = process {
                    process.stderr = None;
                }
            }
            Report::Wrote { conn, buffer, len } => {
                let Some(known) = self.conns.get_mut(&conn) else { return };
                let Some(output) = &mut known.output else { return };
                output.rest(buffer);
                machine.sent(now, conn, len);
                self.writable.push(conn);
            }
            Report::WriteFailed { conn, why } => {
                let Some(known) = self.conns.get_mut(&conn) else { return };
                if known.output.take().is_none() {
                    return;
                }
                if known.input.is_none() || known.paused {
                    self.lose(machine, conn, why);
                } else {
                    known.broken = Some((why, self.now + LAST_WORDS));
                    self.waiting.push(conn);
                }
            }
            Report::Ended(conn) => {
                let known = self.conns.get_mut(&conn);
                if let Some(process) = known.and_then(|conn| conn.process.as_mut()) {
                    process.grace = Some(self.now + GRACE);
                    self.waiting.push(conn);
                }
            }
            #[cfg(unix)]
            Report::Stop => machine.handle(now, Input::Stop),
        }
    }

    fn next_accepted(&mut self) -> ConnId {
        self.accepted += 1;
        ConnId::accepted(self.accepted)
    }

    fn open_stdio<M: Machine>(&mut self, machine: &mut M) -> io::Result<()> {
        for listener in mem::take(&mut self.stdio) {
            let (source, sink) = system::take_stdio()?;
            let id = self.next_accepted();
            let mut conn = Conn::default();
            conn.start(id, source, sink, &self.reports)?;
            self.conns.insert(id, conn);
            self.resting.push(id);
            machine.handle(self.moment(), Input::Accepted { conn: id, listener, from: None });
        }
        Ok(())
    }

    fn accept<M: Machine>(
        &mut self,
        machine: &mut M,
        listener: ListenerId,
        socket: Socket,
        from: Option<IpAddr>,
    ) {
        let id = self.next_accepted();
        let mut conn = Conn::default();
        // The machine need not hear of what the system cannot hold.
        if self.listening && conn.open(id, socket, &self.reports).is_ok() {
            self.conns.insert(id, conn);
            self.resting.push(id);
            machine.handle(self.moment(), Input::Accepted { conn: id, listener, from });
        }
    }

    fn connected<M: Machine>(
        &mut self,
        machine: &mut M,
        id: ConnId,
        outcome: Result<Socket, CloseReason>,
    ) {
        // Unless the machine has closed it meanwhile.
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let opened = outcome.and_then(|socket| {
            conn.open(id, socket, &self.reports).map_err(|error| reason(error.kind()))
        });
        match opened {
            Ok(()) => {
                machine.handle(self.moment(), Input::Connected { conn: id });
                self.resting.push(id);
                self.writable.push(id);
            }
            Err(why) => self.lose(machine, id, why),
        }
    }

    /// Drops a broken connection.
    pub(crate) fn lose<M: Machine>(&mut self, machine: &mut M, id: ConnId, why: CloseReason) {
        self.close(id);
        machine.handle(self.moment(), Input::Closed { conn: id, why });
    }

    pub(crate) fn close(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.close();
            self.forget_if_over(id);
        }
    }

    pub(crate) fn forget_if_over(&mut self, id: ConnId) {
        if self.conns.get(&id).is_some_and(Conn::is_over) {
            self.conns.remove(&id);
        }
    }

    /// Reports what was only waiting for a last word.
    fn settle<M: Machine>(&mut self, machine: &mut M) {
        let mut waiting = mem::take(&mut self.waiting);
        waiting.retain(|id| {
            let Some(conn) = self.conns.get_mut(id) else { return false };
            if let Some((why, until)) = conn.broken
                && until <= self.now
            {
                self.lose(machine, *id, why);
            }
            let Some(conn) = self.conns.get_mut(id) else { return false };
            let held = conn.is_held();
            let Some(process) = &mut conn.process else { return conn.broken.is_some() };
            let Some(grace) = process.grace else { return conn.broken.is_some() };
            let drained = conn.input.is_none() && process.stderr.is_none();
            let late = grace <= self.now && !held;
            if !drained && !late {
                return true;
            }
            let status = process.reap();
            self.conns.remove(id);
            machine.handle(self.moment(), Input::Exited { conn: *id, status });
            false
        });
        self.waiting = waiting;
    }
}
