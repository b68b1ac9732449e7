//! The loop: wait, hand in what happened, act.

use std::io::{self, ErrorKind};
use std::mem;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mcpx_core::driver::{CloseReason, ConnId, Input, ListenerId, Machine};
use mcpx_core::event::Event;
use mcpx_core::time::Instant as Moment;
use mio::{Events, Poll, Token};
use rustix::io::Errno;

use crate::Listener;
use crate::accept::Acceptor;
use crate::connect::{Attempt, Resolver};
use crate::signals::Signals;
use crate::stdio;
use crate::stream::{BOTH, Handle, Read, reason};
use crate::table::{Conn, Table};

/// How many edges one wait brings at most.
pub(crate) const EVENTS: usize = 256;
/// The buffer that all reads share. A connection gets one read in a turn, so
/// this is also what comes at most between a machine's wish to pause and the
/// pause.
const READ: usize = 64 * 1024;
/// How many connections a listener accepts in one turn.
const ACCEPTS: usize = 64;

const WAKE: Token = Token(0);
const STOP: Token = Token(1);
const CHILD: Token = Token(2);
const LISTENERS: usize = 3;

/// What of a connection an edge is about.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Socket,
    Input,
    Output,
    Stderr,
}

impl Part {
    const ALL: [Self; 4] = [Self::Socket, Self::Input, Self::Output, Self::Stderr];
}

/// The event loop and all that it watches.
pub(crate) struct Loop {
    pub(crate) poll: Poll,
    started: Instant,
    /// The moment of this turn.
    pub(crate) now: Instant,
    pub(crate) listeners: Vec<Option<Acceptor>>,
    /// Those listeners that are our own standard input and output.
    stdio: Vec<ListenerId>,
    first_place: usize,
    accepted: u64,
    pub(crate) conns: Table,
    pub(crate) resolver: Resolver,
    signals: Signals,
    stops: usize,
    child_ended: bool,
    /// Places that have input.
    readable: Vec<usize>,
    /// The list that `readable` was in the last turn, for its memory.
    spare: Vec<usize>,
    /// Places that have something to write.
    pub(crate) writable: Vec<usize>,
    /// Places of processes whose end was seen and is not yet reported.
    ending: Vec<usize>,
    /// Places of connections in the making that have more addresses to try.
    pub(crate) attempts: Vec<usize>,
    buffer: Box<[u8]>,
}

impl Loop {
    /// A loop that hears the user's signals if `stops` says so.
    pub(crate) fn new(listeners: Vec<Listener>, stops: bool) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let resolver = Resolver::new(registry, WAKE)?;
        let signals = Signals::new(registry, STOP, CHILD, stops)?;
        let mut acceptors = Vec::with_capacity(listeners.len());
        let mut stdio = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            if matches!(listener, Listener::Stdio) {
                stdio.push(listener_id(index));
            }
            acceptors.push(Acceptor::new(listener, registry, Token(LISTENERS + index))?);
        }
        let started = Instant::now();
        Ok(Self {
            poll,
            started,
            now: started,
            first_place: LISTENERS + acceptors.len(),
            listeners: acceptors,
            stdio,
            accepted: 0,
            conns: Table::default(),
            resolver,
            signals,
            stops: 0,
            child_ended: false,
            readable: Vec::new(),
            spare: Vec::new(),
            writable: Vec::new(),
            ending: Vec::new(),
            attempts: Vec::new(),
            buffer: vec![0; READ].into_boxed_slice(),
        })
    }

    pub(crate) fn run<M: Machine>(
        mut self,
        machine: &mut M,
        observe: &mut impl FnMut(Event),
    ) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        self.open_stdio(machine)?;
        while self.turn(machine, None, observe, &mut events)? {}
        Ok(())
    }

    /// One turn, which waits until then at most. `false` if it was the last.
    pub(crate) fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Moment>,
        observe: &mut impl FnMut(Event),
        events: &mut Events,
    ) -> io::Result<bool> {
        if self.act(machine, observe) {
            self.write_the_rest(machine, observe, events)?;
            return Ok(false);
        }
        let timeout = self.timeout(machine.deadline().into_iter().chain(until).min());
        self.wait(events, timeout)?;
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

    pub(crate) fn token(&self, place: usize, part: Part) -> Token {
        Token(self.first_place + place * Part::ALL.len() + part as usize)
    }

    // Waiting.

    /// How long nothing happens by itself; `None` for ever.
    fn timeout(&self, deadline: Option<Moment>) -> Option<Duration> {
        let waits = |listener: &Acceptor| listener.ready && listener.rests.is_none();
        if !self.readable.is_empty() || self.listeners.iter().flatten().any(waits) {
            return Some(Duration::ZERO);
        }
        let deadline = deadline.map(|at| at.since(self.moment()));
        let rests = self.listeners.iter().flatten().filter_map(|listener| listener.rests);
        let graces = self.ending.iter().filter_map(|place| self.conns.process(*place)?.grace);
        // A grace that is over says nothing: the machine has paused the output.
        let graces = graces.filter(|until| *until > self.now);
        let attempts = self.attempts.iter().filter_map(|place| self.conns.attempt(*place)?.next_at);
        let until = rests
            .chain(graces)
            .chain(attempts)
            .map(|until| until.saturating_duration_since(self.now));
        deadline.into_iter().chain(until).min()
    }

    /// Waits for edges and notes them.
    pub(crate) fn wait(
        &mut self,
        events: &mut Events,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            other => other?,
        }
        self.now = Instant::now();
        for event in &*events {
            match event.token() {
                // The resolver is asked in every turn.
                WAKE => {}
                STOP => self.stops += self.signals.stops(),
                CHILD => self.child_ended |= self.signals.child_ended(),
                Token(token) if token < self.first_place => {
                    if let Some(Some(listener)) = self.listeners.get_mut(token - LISTENERS) {
                        listener.ready = true;
                    }
                }
                Token(token) => self.note(token - self.first_place, event),
            }
        }
        Ok(())
    }

    /// Notes an edge of a connection.
    fn note(&mut self, offset: usize, event: &mio::event::Event) {
        let (place, part) = (offset / Part::ALL.len(), Part::ALL[offset % Part::ALL.len()]);
        let Some(conn) = self.conns.get(place) else { return };
        if let (Part::Socket | Part::Input, Some(source)) = (part, &mut conn.input) {
            source.note(event);
        }
        if let (Part::Socket | Part::Output, Some(sink)) = (part, &mut conn.output) {
            let was_full = !sink.ready;
            sink.note(event);
            if was_full && sink.ready {
                self.writable.push(place);
            }
        }
        let stderr = conn.process.as_mut().and_then(|process| process.stderr.as_mut());
        if let (Part::Stderr, Some(source)) = (part, stderr) {
            source.note(event);
        }
        if conn.attempt.is_some() || conn.has_input() {
            self.queue(place);
        }
    }

    /// Puts a place on the list of those that have input.
    pub(crate) fn queue(&mut self, place: usize) {
        if let Some(conn) = self.conns.get(place)
            && !mem::replace(&mut conn.queued, true)
        {
            self.readable.push(place);
        }
    }

    // Handing in.

    fn hand_in<M: Machine>(&mut self, machine: &mut M) {
        while let Some((id, found)) = self.resolver.answer() {
            // Unless the machine has closed it meanwhile.
            if let Some(place) = self.conns.find(id) {
                let found = found.unwrap_or_default();
                self.advance(machine, place, |attempt, registry, now| {
                    attempt.tcp(registry, now, found)
                });
            }
        }
        self.try_next_addresses(machine);
        self.accept(machine);
        let spare = mem::take(&mut self.spare);
        let mut places = mem::replace(&mut self.readable, spare);
        for place in places.drain(..) {
            self.read(machine, place);
        }
        self.spare = places;
        for _ in 0..mem::take(&mut self.stops) {
            machine.handle(self.moment(), Input::Stop);
        }
        self.report_ends(machine);
        if machine.deadline().is_some_and(|at| at <= self.moment()) {
            machine.handle(self.moment(), Input::Tick);
        }
    }

    /// Takes the next address of those attempts whose last one takes its time.
    fn try_next_addresses<M: Machine>(&mut self, machine: &mut M) {
        for place in mem::take(&mut self.attempts) {
            match self.conns.attempt(place).and_then(|attempt| attempt.next_at) {
                Some(at) if at <= self.now => self.advance(machine, place, Attempt::proceed),
                Some(_) => self.attempts.push(place),
                None => {}
            }
        }
    }

    fn open_stdio<M: Machine>(&mut self, machine: &mut M) -> io::Result<()> {
        for listener in mem::take(&mut self.stdio) {
            let conn = self.next_accepted();
            let place = self.conns.insert(Conn::new(conn));
            let (input, output) = (self.token(place, Part::Input), self.token(place, Part::Output));
            let (source, sink) = stdio::take(self.poll.registry(), input, output)?;
            if let Some(conn) = self.conns.get(place) {
                (conn.input, conn.output) = (Some(source), Some(sink));
            }
            // A file has no edges.
            self.queue(place);
            machine.handle(self.moment(), Input::Accepted { conn, listener, from: None });
        }
        Ok(())
    }

    fn next_accepted(&mut self) -> ConnId {
        self.accepted += 1;
        ConnId::accepted(self.accepted)
    }

    fn accept<M: Machine>(&mut self, machine: &mut M) {
        for index in 0..self.listeners.len() {
            for _ in 0..ACCEPTS {
                let Some(Some(listener)) = self.listeners.get_mut(index) else { break };
                let Some((socket, from)) = listener.accept(self.now) else { break };
                let conn = self.next_accepted();
                let place = self.conns.insert(Conn::new(conn));
                let socket = Handle::from(socket);
                match socket.watch(self.poll.registry(), self.token(place, Part::Socket), BOTH) {
                    Ok(_) => self.open(place, socket),
                    // The machine need not hear of what the system cannot hold.
                    Err(_) => {
                        self.conns.remove(place);
                        continue;
                    }
                }
                let listener = listener_id(index);
                machine.handle(self.moment(), Input::Accepted { conn, listener, from });
            }
        }
    }

    pub(crate) fn open(&mut self, place: usize, socket: Handle) {
        if let Some(conn) = self.conns.get(place) {
            conn.open(Rc::new(socket));
        }
    }

    /// Takes one read from everything that a connection has to say.
    fn read<M: Machine>(&mut self, machine: &mut M, place: usize) {
        let Some(conn) = self.conns.get(place) else { return };
        conn.queued = false;
        if conn.attempt.is_some() {
            return self.advance(machine, place, Attempt::proceed);
        }
        if let Err(error) = self.receive(machine, place) {
            self.lose(machine, place, reason(error.kind()));
        }
        self.receive_stderr(machine, place);
        let Some(conn) = self.conns.get(place) else { return };
        if conn.is_over() {
            self.conns.remove(place);
        } else if conn.has_input() {
            self.queue(place);
        }
    }

    /// Hands in one read. Says whether there may be more.
    pub(crate) fn receive<M: Machine>(
        &mut self,
        machine: &mut M,
        place: usize,
    ) -> Result<bool, Errno> {
        let now = self.moment();
        let Some(conn) = self.conns.get(place) else { return Ok(false) };
        let source = match &mut conn.input {
            Some(source) if source.ready && !conn.paused => source,
            _ => return Ok(false),
        };
        match source.read(&mut self.buffer)? {
            Read::Bytes(n) => {
                let more = source.ready;
                let bytes = &self.buffer[..n];
                machine.handle(now, Input::Received { conn: conn.id, bytes });
                Ok(more)
            }
            Read::Nothing => Ok(false),
            Read::End => {
                conn.input = None;
                machine.handle(now, Input::Finished { conn: conn.id });
                Ok(false)
            }
        }
    }

    fn receive_stderr<M: Machine>(&mut self, machine: &mut M, place: usize) {
        let now = self.moment();
        let Some(conn) = self.conns.get(place) else { return };
        let Some(process) = conn.process.as_mut().filter(|process| process.has_stderr()) else {
            return;
        };
        let Some(source) = &mut process.stderr else { return };
        match source.read(&mut self.buffer) {
            Ok(Read::Bytes(n)) => {
                let bytes = &self.buffer[..n];
                machine.handle(now, Input::Stderr { conn: conn.id, bytes });
            }
            Ok(Read::Nothing) => {}
            Ok(Read::End) | Err(_) => process.stderr = None,
        }
    }

    /// Drops a broken connection.
    pub(crate) fn lose<M: Machine>(&mut self, machine: &mut M, place: usize, why: CloseReason) {
        let Some(conn) = self.conns.get(place) else { return };
        let id = conn.id;
        self.close(place);
        machine.handle(self.moment(), Input::Closed { conn: id, why });
    }

    /// Drops the pipes of a process, and all of anything else.
    pub(crate) fn close(&mut self, place: usize) {
        let Some(conn) = self.conns.get(place) else { return };
        (conn.attempt, conn.input, conn.output) = (None, None, None);
        if conn.is_over() {
            self.conns.remove(place);
        }
    }

    /// Reports the processes that have ended and have nothing left to say.
    fn report_ends<M: Machine>(&mut self, machine: &mut M) {
        if mem::take(&mut self.child_ended) {
            for place in self.conns.places() {
                let conn = self.conns.get(place);
                let process = conn.and_then(|conn| conn.process.as_mut());
                if process.is_some_and(|process| process.ended(self.now)) {
                    self.ending.push(place);
                }
            }
        }
        let mut ending = mem::take(&mut self.ending);
        ending.retain(|place| {
            let Some(conn) = self.conns.get(*place) else { return false };
            let Some(process) = &mut conn.process else { return false };
            let drained = conn.input.is_none() && process.stderr.is_none();
            let late = process.grace.is_some_and(|until| until <= self.now);
            let silent = !process.has_stderr()
                && conn.input.as_ref().is_none_or(|source| !source.ready && !conn.paused);
            let over = drained || (late && silent);
            if !over {
                return true;
            }
            let (conn, status) = (conn.id, process.reap());
            self.conns.remove(*place);
            machine.handle(self.moment(), Input::Exited { conn, status });
            false
        });
        self.ending = ending;
    }
}

fn listener_id(index: usize) -> ListenerId {
    ListenerId(u32::try_from(index).unwrap_or(u32::MAX))
}
