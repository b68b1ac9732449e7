//! Doing what the machine wants, and writing.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mcpx_core::driver::{Action, CloseReason, Command, ConnId, Input, Machine, Target};
use mcpx_core::event::Event;
use mio::Events;

use crate::connect::{Attempt, Progress, literal};
use crate::process::Process;
use crate::stream::{Handle, reason};
use crate::table::Conn;
use crate::turn::{Loop, Part};

/// When writing has failed, how often we still read what the other side said
/// before it left.
const LAST_READS: usize = 16;
/// How long queued bytes are still written after the machine has ended.
const LAST_WRITES: Duration = Duration::from_secs(1);

impl Loop {
    /// Does what the machine wants. True if it wants to end.
    pub(crate) fn act<M: Machine>(
        &mut self,
        machine: &mut M,
        observe: &mut impl FnMut(Event),
    ) -> bool {
        loop {
            while let Some(action) = machine.poll() {
                match action {
                    Action::Flush(id) => self.writable.extend(self.conns.find(id)),
                    Action::Pause(id) => self.with(id, |conn| conn.paused = true),
                    Action::Resume(id) => {
                        self.with(id, |conn| conn.paused = false);
                        if let Some(place) = self.conns.find(id) {
                            self.queue(place);
                        }
                    }
                    Action::Finish(id) => {
                        self.with(id, |conn| conn.finishing = true);
                        self.writable.extend(self.conns.find(id));
                    }
                    Action::Close(id) => {
                        if let Some(place) = self.conns.find(id) {
                            self.close(place);
                        }
                    }
                    Action::Connect { conn, to } => self.connect(machine, conn, to),
                    Action::Spawn { conn, command } => self.spawn(machine, conn, &command),
                    Action::Signal { conn, signal } => self.with(conn, |conn| {
                        if let Some(process) = &conn.process {
                            process.signal(signal);
                        }
                    }),
                    Action::StopListening => {
                        self.listeners.iter_mut().for_each(|slot| *slot = None)
                    }
                    Action::Event(event) => observe(event),
                    Action::Exit => return true,
                }
            }
            if self.writable.is_empty() {
                return false;
            }
            let mut places = mem::take(&mut self.writable);
            for place in places.drain(..) {
                self.flush(machine, place);
            }
            // Nothing was added meanwhile, so the memory can go back.
            self.writable = places;
        }
    }

    fn with(&mut self, id: ConnId, change: impl FnOnce(&mut Conn)) {
        if let Some(conn) = self.conns.find(id).and_then(|place| self.conns.get(place)) {
            change(conn);
        }
    }

    fn connect<M: Machine>(&mut self, machine: &mut M, id: ConnId, to: Target) {
        let place = self.conns.insert(Conn::new(id));
        let attempt = Attempt::new(self.token(place, Part::Socket));
        self.with(id, |conn| conn.attempt = Some(attempt));
        match to {
            Target::Unix { path } => {
                self.advance(machine, place, |attempt, registry, now| {
                    attempt.unix(registry, now, &path)
                });
            }
            Target::Tls { .. } => self.lose(machine, place, CloseReason::Failed),
            Target::Tcp { host, port } => match literal(&host, port) {
                Some(address) => self.advance(machine, place, |attempt, registry, now| {
                    attempt.tcp(registry, now, vec![address])
                }),
                None => {
                    if let Err(error) = self.resolver.look_up(id, host, port) {
                        self.lose(machine, place, reason(error.kind()));
                    }
                }
            },
        }
    }

    /// Takes a step of an attempt to connect.
    pub(crate) fn advance<M: Machine>(
        &mut self,
        machine: &mut M,
        place: usize,
        step: impl FnOnce(&mut Attempt, &mio::Registry, Instant) -> Progress,
    ) {
        let Some(conn) = self.conns.get(place) else { return };
        let Some(attempt) = &mut conn.attempt else { return };
        match step(attempt, self.poll.registry(), self.now) {
            Progress::Waiting => {
                if attempt.next_at.is_some() && !self.attempts.contains(&place) {
                    self.attempts.push(place);
                }
            }
            Progress::Failed(why) => self.lose(machine, place, why),
            Progress::Done(socket) => self.connected(machine, place, socket),
        }
    }

    fn connected<M: Machine>(&mut self, machine: &mut M, place: usize, socket: OwnedFd) {
        self.open(place, Handle::from(socket));
        let Some(conn) = self.conns.get(place) else { return };
        let id = conn.id;
        // The edge that told of the connection may have told of bytes as well.
        if let Some(source) = &mut conn.input {
            source.ready = true;
        }
        self.queue(place);
        self.writable.push(place);
        machine.handle(self.moment(), Input::Connected { conn: id });
    }

    fn spawn<M: Machine>(&mut self, machine: &mut M, id: ConnId, command: &Command) {
        let place = self.conns.insert(Conn::new(id));
        let tokens = [Part::Input, Part::Output, Part::Stderr].map(|part| self.token(place, part));
        match Process::spawn(command, self.poll.registry(), tokens) {
            Ok((process, source, sink)) => {
                self.with(id, |conn| {
                    (conn.input, conn.output) = (Some(source), Some(sink));
                    conn.process = Some(process);
                });
                machine.handle(self.moment(), Input::Connected { conn: id });
            }
            Err(error) => self.lose(machine, place, reason(error.kind())),
        }
    }

    /// Writes what a connection takes.
    fn flush<M: Machine>(&mut self, machine: &mut M, place: usize) {
        let now = self.moment();
        let Some(conn) = self.conns.get(place) else { return };
        let Some(sink) = &mut conn.output else { return };
        loop {
            let bytes = machine.outgoing(conn.id);
            if bytes.is_empty() {
                break;
            }
            if !sink.ready {
                return;
            }
            match sink.write(bytes) {
                Ok(n) => machine.sent(now, conn.id, n),
                Err(error) => return self.give_up(machine, place, reason(error.kind())),
            }
        }
        if conn.finishing {
            if let Some(sink) = conn.output.take() {
                sink.finish();
            }
            if conn.is_over() {
                self.conns.remove(place);
            }
        }
    }

    /// Drops a connection that cannot be written to, after its last words.
    fn give_up<M: Machine>(&mut self, machine: &mut M, place: usize, why: CloseReason) {
        let Some(conn) = self.conns.get(place) else { return };
        conn.output = None;
        if let Some(source) = &mut conn.input {
            source.ready = true;
        }
        for _ in 0..LAST_READS {
            if !matches!(self.receive(machine, place), Ok(true)) {
                break;
            }
        }
        self.lose(machine, place, why);
    }

    /// Writes what is still queued when the machine has ended.
    pub(crate) fn write_the_rest<M: Machine>(
        &mut self,
        machine: &mut M,
        observe: &mut impl FnMut(Event),
        events: &mut Events,
    ) -> io::Result<()> {
        let until = Instant::now() + LAST_WRITES;
        loop {
            let mut waiting = false;
            for place in self.conns.places() {
                self.flush(machine, place);
                let conn = self.conns.get(place).filter(|conn| conn.output.is_some());
                waiting |= conn.is_some_and(|conn| !machine.outgoing(conn.id).is_empty());
            }
            while let Some(action) = machine.poll() {
                if let Action::Event(event) = action {
                    observe(event);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if !waiting || left.is_zero() {
                return Ok(());
            }
            self.wait(events, Some(left))?;
        }
    }
}
