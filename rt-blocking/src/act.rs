//! Doing what the machine wants.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use mcpx_core::driver::{Action, Command, ConnId, Input, Machine};
use mcpx_core::event::Event;

use crate::conn::{self, Conn, Output};
use crate::connect;
use crate::process::{GRACE, Process};
use crate::turn::Owner;
use crate::workers::{Report, reason};

/// How long queued bytes are still written after the machine has ended.
const LAST_WRITES: Duration = Duration::from_secs(1);

impl Owner {
    /// Does what the machine wants. True if it wants to end.
    pub(crate) fn act<M: Machine>(
        &mut self,
        machine: &mut M,
        observe: &mut impl FnMut(Event),
    ) -> bool {
        loop {
            while let Some(action) = machine.poll() {
                match action {
                    Action::Flush(id) => self.writable.push(id),
                    Action::Pause(id) => self.with(id, |conn| conn.paused = true),
                    Action::Resume(id) => self.resume(machine, id),
                    Action::Finish(id) => {
                        self.with(id, |conn| conn.finishing = true);
                        self.writable.push(id);
                    }
                    Action::Close(id) => self.close(id),
                    Action::Connect { conn, to } => {
                        self.conns.insert(conn, Conn::pending());
                        if let Err(error) = connect::attempt(conn, to, self.reports.clone()) {
                            self.lose(machine, conn, reason(error.kind()));
                        }
                    }
                    Action::Spawn { conn, command } => self.spawn(machine, conn, &command),
                    Action::Signal { conn, signal } => self.with(conn, |conn| {
                        if let Some(process) = &conn.process {
                            process.signal(signal);
                        }
                    }),
                    Action::StopListening => {
                        self.listening = false;
                        self.listeners.clear();
                    }
                    Action::Event(event) => observe(event),
                    Action::Exit => return true,
                }
            }
            if self.writable.is_empty() {
                return false;
            }
            let mut ids = mem::take(&mut self.writable);
            for id in ids.drain(..) {
                self.flush(machine, id);
            }
            // Nothing was added meanwhile, so the memory can go back.
            self.writable = ids;
        }
    }

    fn with(&mut self, id: ConnId, change: impl FnOnce(&mut Conn)) {
        if let Some(conn) = self.conns.get_mut(&id) {
            change(conn);
        }
    }

    fn resume<M: Machine>(&mut self, machine: &mut M, id: ConnId) {
        let now = self.moment();
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.paused = false;
        if let Some(process) = &mut conn.process
            && let Some(grace) = &mut process.grace
        {
            // What the child wrote can only come from now on.
            *grace = self.now + GRACE;
        }
        if let Some(conn::Input::Pipe(reader)) = &mut conn.input
            && let Some((buffer, len)) = reader.kept.take_if(|(_, len)| *len > 0)
        {
            machine.handle(now, Input::Received { conn: id, bytes: &buffer[..len] });
            reader.rest(buffer, len);
        }
        self.resting.push(id);
    }

    fn spawn<M: Machine>(&mut self, machine: &mut M, id: ConnId, command: &Command) {
        let mut conn = Conn::default();
        let started = Process::spawn(id, command, &self.reports).and_then(|spawned| {
            let (process, stdin, stdout) = spawned;
            conn.process = Some(process);
            conn.start(id, stdout, stdin, &self.reports)
        });
        match started {
            Ok(()) => {
                self.conns.insert(id, conn);
                self.resting.push(id);
                machine.handle(self.moment(), Input::Connected { conn: id });
            }
            Err(error) => {
                drop(conn);
                self.lose(machine, id, reason(error.kind()));
            }
        }
    }

    /// Writes what there is, or gives it to the writer, or ends the output.
    fn flush<M: Machine>(&mut self, machine: &mut M, id: ConnId) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let writer = match &mut conn.output {
            Some(Output::Pipe(writer)) if writer.is_idle() => writer,
            Some(Output::Socket { .. }) => return self.write(machine, id),
            _ => return,
        };
        let bytes = machine.outgoing(id);
        if !bytes.is_empty() {
            writer.feed(bytes);
        } else if conn.finishing {
            conn.output = None;
            self.forget_if_over(id);
        }
    }

    /// Writes what is still queued when the machine has ended.
    pub(crate) fn write_the_rest<M: Machine>(
        &mut self,
        machine: &mut M,
        observe: &mut impl FnMut(Event),
    ) -> io::Result<()> {
        self.listening = false;
        self.listeners.clear();
        let until = Instant::now() + LAST_WRITES;
        self.writable.extend(self.conns.keys());
        loop {
            for id in mem::take(&mut self.writable) {
                self.flush(machine, id);
            }
            while let Some(action) = machine.poll() {
                match action {
                    Action::Event(event) => observe(event),
                    Action::Flush(id) => self.writable.push(id),
                    _ => {}
                }
            }
            if !self.writable.is_empty() {
                continue;
            }
            let mut outputs = self.conns.values().filter_map(|conn| conn.output.as_ref());
            let left = until.saturating_duration_since(Instant::now());
            if outputs.all(|output| output.is_idle()) || left.is_zero() {
                return Ok(());
            }
            self.ask(machine);
            self.wait(Some(left))?;
            while let Some(event) = self.ready.pop() {
                self.ready(machine, event);
            }
            let mut left = usize::MAX;
            while let Some(report) = self.report(&mut left) {
                match report {
                    Report::Wrote { .. } => self.tell(machine, report),
                    Report::WriteFailed { conn, .. } => {
                        self.with(conn, |conn| conn.output = None);
                    }
                    // The rest comes too late.
                    _ => {}
                }
            }
        }
    }
}
