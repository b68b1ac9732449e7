//! What machines want done.

use mcpx_core::driver::{Action, CloseReason, Command, ConnId, Input, ListenerId, Signal, Target};
use mcpx_core::event::Event;

use super::wire::{End, NodeId, WireId};
use super::world::{What, World};

impl World {
    /// Does what a machine wants, until it wants nothing more.
    pub(super) fn act(&mut self, node: NodeId) {
        while let Some(action) = self.nodes[node.0].machine.poll() {
            if self.nodes[node.0].over {
                self.broken(&format!("{} wants {action:?} after its end", node.0));
            }
            self.tell(format_args!("{} < {action:?}", node.0), b"");
            self.do_one(node, action);
        }
    }

    fn do_one(&mut self, node: NodeId, action: Action) {
        match action {
            Action::Flush(conn) => {
                let (wire, side) = self.side(node, conn);
                self.wake(wire, side);
            }
            Action::Pause(conn) => self.pause(node, conn, true),
            Action::Resume(conn) => self.pause(node, conn, false),
            Action::Finish(conn) => {
                let (wire, side) = self.side(node, conn);
                if let Some(wire) = self.wires.get_mut(&wire) {
                    wire.pipes[side].finishing = true;
                }
                self.wake(wire, side);
            }
            Action::Close(conn) => self.close(node, conn),
            Action::Connect { conn, to } => self.ask_for(node, conn, to),
            Action::Spawn { conn, command } => self.spawn(node, conn, &command),
            Action::Signal { conn, signal } => {
                if let Some(child) = self.children.get(&(node, conn)).copied() {
                    match signal {
                        Signal::Terminate => self.give(child, Input::Stop),
                        Signal::Kill => self.kill(child),
                    }
                }
            }
            Action::StopListening => self.stop_listening(node),
            Action::Event(event) => self.note(node, event),
            Action::Exit => self.leave(node),
        }
    }

    /// A connection that a machine speaks of must be one that it has.
    fn side(&self, node: NodeId, conn: ConnId) -> (WireId, usize) {
        match self.conns.get(&(node, conn)) {
            Some(found) => *found,
            None => self.broken(&format!("{} has no connection {conn:?}", node.0)),
        }
    }

    fn pause(&mut self, node: NodeId, conn: ConnId, paused: bool) {
        let (id, side) = self.side(node, conn);
        if let Some(wire) = self.wires.get_mut(&id) {
            wire.pipes[1 - side].paused = paused;
        }
        if !paused {
            self.arrive(id, 1 - side);
        }
    }

    /// A machine drops a connection.
    fn close(&mut self, node: NodeId, conn: ConnId) {
        let (id, side) = self.side(node, conn);
        self.conns.remove(&(node, conn));
        self.asked.remove(&(node, conn));
        if let Some(wire) = self.wires.get_mut(&id) {
            wire.ends[side] = End::Nobody;
        }
        self.hang_up(id, side);
        self.buried(node, conn);
    }

    fn claim(&mut self, node: NodeId, conn: ConnId) {
        if !conn.is_requested()
            || self.conns.contains_key(&(node, conn))
            || self.children.contains_key(&(node, conn))
        {
            self.broken(&format!("{} asks for {conn:?}, which is not new", node.0));
        }
        self.asked.insert((node, conn));
    }

    fn ask_for(&mut self, node: NodeId, conn: ConnId, to: Target) {
        self.claim(node, conn);
        let place = match to {
            Target::Tcp { host, port } => format!("{host}:{port}"),
            Target::Tls { host, port } => format!("tls {host}:{port}"),
            Target::Unix { path } => path,
        };
        let wire = self.add_wire([End::Node(node, conn), End::Nobody]);
        self.plan(What::Connect(wire, place));
    }

    fn spawn(&mut self, node: NodeId, conn: ConnId, command: &Command) {
        self.claim(node, conn);
        let seed = self.rng.seed();
        let Some(maker) = self.programs.get(&command.program) else {
            let wire = self.add_wire([End::Node(node, conn), End::Nobody]);
            self.wires.remove(&wire);
            return self.plan(What::Fail(node, conn, CloseReason::NotFound));
        };
        let machine = maker(&command.args, seed);
        let child = self.enter(machine, Some((node, conn)));
        self.children.insert((node, conn), child);
        let theirs = self.accepted(child);
        let wire = self.add_wire([End::Node(node, conn), End::Node(child, theirs)]);
        self.give(child, Input::Accepted { conn: theirs, listener: ListenerId(0), from: None });
        self.plan(What::Start(wire));
    }

    /// A process is killed, by its parent or by the test.
    pub fn kill(&mut self, node: NodeId) {
        if !self.is_over(node) {
            self.nodes[node.0].killed = true;
            self.leave(node);
        }
    }

    fn note(&mut self, node: NodeId, event: Event) {
        // What a process has to say goes to its standard error.
        if let (Event::Warning(text), Some((parent, conn))) = (&event, self.nodes[node.0].parent)
            && self.conns.contains_key(&(parent, conn))
        {
            let line = format!("{text}\n");
            self.give(parent, Input::Stderr { conn, bytes: line.as_bytes() });
        }
        self.nodes[node.0].events.push(event);
    }

    /// A machine has ended, with all its connections.
    fn leave(&mut self, node: NodeId) {
        self.nodes[node.0].over = true;
        self.stop_listening(node);
        let mine: Vec<ConnId> = self.conns_of(node);
        for conn in mine {
            if !self.nodes[node.0].killed {
                self.last_words(node, conn);
            }
            self.close(node, conn);
        }
        let orphans: Vec<NodeId> = self.children(node);
        if !self.nodes[node.0].killed && !orphans.is_empty() {
            self.broken(&format!("{} ended and left {orphans:?} behind", node.0));
        }
        self.children.retain(|(at, _), _| *at != node);
        if let Some((parent, conn)) = self.nodes[node.0].parent
            && !self.conns.contains_key(&(parent, conn))
        {
            self.plan(What::Exited(node));
        }
    }

    /// What is still queued when a machine exits is written.
    fn last_words(&mut self, node: NodeId, conn: ConnId) {
        let (id, side) = self.side(node, conn);
        let bytes = self.nodes[node.0].machine.outgoing(conn).to_vec();
        self.tell(format_args!("{} < {conn:?}", node.0), &bytes);
        if let Some(wire) = self.wires.get_mut(&id) {
            wire.pipes[side].bytes.extend(bytes);
        }
    }

    fn conns_of(&self, node: NodeId) -> Vec<ConnId> {
        self.conns.keys().filter(|(at, _)| *at == node).map(|(_, conn)| *conn).collect()
    }

    /// A parent hears of the end of its process.
    pub(super) fn exited(&mut self, child: NodeId) {
        let Some((parent, conn)) = self.nodes[child.0].parent else { return };
        if self.children.remove(&(parent, conn)).is_none() {
            return;
        }
        if let Some((wire, _)) = self.conns.remove(&(parent, conn)) {
            self.wires.remove(&wire);
        }
        self.asked.remove(&(parent, conn));
        let node = &self.nodes[child.0];
        let status = if node.killed {
            mcpx_core::driver::ExitStatus::Signal(9)
        } else {
            node.machine.status()
        };
        self.give(parent, Input::Exited { conn, status });
    }
}
