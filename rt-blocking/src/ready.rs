//! Sockets that can be read or written, which the owner of the machine does
//! itself.

use std::io::{ErrorKind, Read, Write};

use mcpx_core::driver::{CloseReason, ConnId, Input, Machine};
use polling::Event;

use crate::conn::Output;
use crate::turn::Owner;
use crate::workers::{insist, reason};

impl Owner {
    /// Does what a socket is ready for. It asks for its next event before the
    /// owner waits again.
    pub(crate) fn ready<M: Machine>(&mut self, machine: &mut M, event: Event) {
        let Some(&id) = self.keys.get(&event.key) else { return };
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if let Some(Output::Socket { full }) = &mut conn.output
            && event.writable
        {
            *full = false;
            self.writable.push(id);
        }
        if event.readable && !conn.paused && conn.input.is_some() {
            self.read(machine, id);
        }
        self.resting.push(id);
    }

    fn read<M: Machine>(&mut self, machine: &mut M, id: ConnId) {
        let socket = self.conns.get_mut(&id).and_then(|conn| conn.socket.as_mut());
        let Some(socket) = socket else { return };
        match insist(|| socket.read(&mut self.buffer)) {
            Ok(0) => self.read_ended(machine, id, None),
            Ok(len) => {
                let bytes = &self.buffer[..len];
                machine.handle(self.moment(), Input::Received { conn: id, bytes });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => self.read_ended(machine, id, Some(reason(error.kind()))),
        }
    }

    /// Writes what there is, until the socket is full.
    pub(crate) fn write<M: Machine>(&mut self, machine: &mut M, id: ConnId) {
        loop {
            let Some(conn) = self.conns.get_mut(&id) else { return };
            let Some(Output::Socket { full: full @ false }) = &mut conn.output else { return };
            let Some(socket) = &mut conn.socket else { return };
            let bytes = machine.outgoing(id);
            if bytes.is_empty() {
                if conn.finishing {
                    socket.finish();
                    conn.output = None;
                    self.forget_if_over(id);
                }
                return;
            }
            match insist(|| socket.write(bytes)) {
                Ok(0) => return self.write_failed(machine, id, CloseReason::Reset),
                Ok(len) => machine.sent(self.moment(), id, len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    *full = true;
                    return self.resting.push(id);
                }
                Err(error) => return self.write_failed(machine, id, reason(error.kind())),
            }
        }
    }
}
