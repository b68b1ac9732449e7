//! The thread that owns the machine: wait, hand in what happened, act.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mcpx_core::driver::{CloseReason, ConnId, Input, ListenerId, Machine};
use mcpx_core::event::Event;
use mcpx_core::time::Instant as Moment;
use polling::{Event as Ready, Events, Poller};

use crate::Listener;
use crate::accept::Acceptor;
use crate::conn::{self, Conn, Output};
use crate::process::GRACE;
use crate::socket::{Socket, Watched};
use crate::system;
use crate::workers::{BUFFER, Part, Report, Reports, reason};

/// How many reports and how many ready sockets are handed in, at most, before
/// the machine may act.
const BATCH: NonZeroUsize = NonZeroUsize::new(64).unwrap();
/// When writing has failed, how long we wait for what the other side said
/// before it left.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The owner of the machine.
pub(crate) struct Owner {
    pub(crate) reports: Reports,
    inbox: Receiver<Report>,
    /// More reports are there than were handed in.
    more: bool,
    poller: Arc<Poller>,
    events: Events,
    /// What was heard of sockets and not yet handed in.
    pub(crate) ready: Vec<Ready>,
    /// The room for a read.
    pub(crate) buffer: Vec<u8>,
    /// The connections by the keys of their sockets' events.
    pub(crate) keys: HashMap<usize, ConnId>,
    next_key: usize,
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
    /// Connections that may have to ask for what they wait for.
    pub(crate) resting: Vec<ConnId>,
    /// Connections that wait for a moment: a grace, or last words.
    waiting: Vec<ConnId>,
    _stops: Option<system::Stops>,
}

impl Owner {
    /// One that hears the user's signals if `stops` says so.
    pub(crate) fn new(listeners: Vec<Listener>, stops: bool) -> io::Result<Self> {
        let poller = Arc::new(Poller::new()?);
        let (reports, inbox) = Reports::new(Arc::clone(&poller));
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
            more: false,
            poller,
            events: Events::with_capacity(BATCH),
            ready: Vec::new(),
            buffer: vec![0; BUFFER],
            keys: HashMap::new(),
            next_key: 0,
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
        while self.turn(machine, None, observe)? {}
        Ok(())
    }

    /// One turn, which waits until then at most. `false` if it was the last.
    pub(crate) fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Moment>,
        observe: &mut impl FnMut(Event),
    ) -> io::Result<bool> {
        if self.act(machine, observe) {
            self.write_the_rest(machine, observe)?;
            return Ok(false);
        }
        self.ask(machine);
        self.wait(self.timeout(machine.deadline().into_iter().chain(until).min()))?;
        self.hand_in(machine);
        Ok(true)
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

    /// Lets those connections ask for more whose bytes the machine has had the
    /// chance to act on.
    pub(crate) fn ask<M: Machine>(&mut self, machine: &mut M) {
        let mut ids = mem::take(&mut self.resting);
        for id in ids.drain(..) {
            let asked = self.conns.get_mut(&id).map_or(Ok(()), Conn::ask);
            if let Err(error) = asked {
                self.lose(machine, id, reason(error.kind()));
            }
        }
        self.resting = ids;
    }

    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = if self.more { Some(Duration::ZERO) } else { timeout };
        self.events.clear();
        self.poller.wait(&mut self.events, timeout)?;
        self.ready.extend(self.events.iter());
        self.now = Instant::now();
        Ok(())
    }

    /// What a worker reports next, of `left` in this turn.
    pub(crate) fn report(&mut self, left: &mut usize) -> Option<Report> {
        self.more = *left == 0;
        *left = left.checked_sub(1)?;
        self.inbox.try_recv().ok()
    }

    // Handing in.

    fn hand_in<M: Machine>(&mut self, machine: &mut M) {
        while let Some(event) = self.ready.pop() {
            self.ready(machine, event);
        }
        let mut left = BATCH.get();
        while let Some(report) = self.report(&mut left) {
            self.tell(machine, report);
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
                let Some(conn::Input::Pipe(reader)) = &mut known.input else { return };
                if known.paused {
                    reader.kept = Some((buffer, len));
                } else {
                    machine.handle(now, Input::Received { conn, bytes: &buffer[..len] });
                    reader.rest(buffer, len);
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
                self.read_ended(machine, conn, error);
            }
            Report::ReadEnded { conn, part: Part::Stderr, .. } => {
                let process = self.conns.get_mut(&conn).and_then(|conn| conn.process.as_mut());
                if let Some(process) = process {
                    process.stderr = None;
                }
            }
            Report::Wrote { conn, buffer, len } => {
                let Some(known) = self.conns.get_mut(&conn) else { return };
                let Some(Output::Pipe(writer)) = &mut known.output else { return };
                writer.rest(buffer);
                machine.sent(now, conn, len);
                self.writable.push(conn);
            }
            Report::WriteFailed { conn, why } => self.write_failed(machine, conn, why),
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

    /// Nothing more will come of a connection.
    pub(crate) fn read_ended<M: Machine>(
        &mut self,
        machine: &mut M,
        id: ConnId,
        error: Option<CloseReason>,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if conn.input.take().is_none() {
            return;
        }
        match conn.broken.map(|(why, _)| why).or(error) {
            Some(why) => self.lose(machine, id, why),
            None => {
                machine.handle(self.moment(), Input::Finished { conn: id });
                self.forget_if_over(id);
            }
        }
    }

    /// Nothing more can be written to a connection.
    pub(crate) fn write_failed<M: Machine>(
        &mut self,
        machine: &mut M,
        id: ConnId,
        why: CloseReason,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if conn.output.take().is_none() {
            return;
        }
        if conn.input.is_none() || conn.paused {
            self.lose(machine, id, why);
        } else {
            conn.broken = Some((why, self.now + LAST_WORDS));
            self.waiting.push(id);
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
        // The machine need not hear of what the system cannot hold.
        if self.listening && self.open(id, socket).is_ok() {
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
        if !self.conns.contains_key(&id) {
            return;
        }
        let opened =
            outcome.and_then(|socket| self.open(id, socket).map_err(|error| reason(error.kind())));
        match opened {
            Ok(()) => {
                machine.handle(self.moment(), Input::Connected { conn: id });
                self.writable.push(id);
            }
            Err(why) => self.lose(machine, id, why),
        }
    }

    /// Takes a connected socket in.
    fn open(&mut self, id: ConnId, socket: Socket) -> io::Result<()> {
        // The last of all numbers is the poller's own.
        self.next_key = (self.next_key + 1) % usize::MAX;
        let socket = Watched::new(socket, &self.poller, self.next_key)?;
        self.keys.insert(self.next_key, id);
        self.conns.entry(id).or_default().open(socket);
        self.resting.push(id);
        Ok(())
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
        if self.conns.get(&id).is_some_and(Conn::is_over)
            && let Some(socket) = self.conns.remove(&id).and_then(|conn| conn.socket)
        {
            self.keys.remove(&socket.key());
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
