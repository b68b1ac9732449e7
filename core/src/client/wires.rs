//! The connections that we asked for, and who owns each.

use alloc::collections::BTreeMap;

use super::upstream::UpstreamId;
use crate::driver::{Action, Command, ConnId, Target};
use crate::output::{Output, PauseReason};
use crate::time::Instant;

/// The connections of all upstreams of a machine.
#[derive(Debug, Default)]
pub struct Wires {
    pub(super) output: Output,
    owners: BTreeMap<ConnId, UpstreamId>,
    next: u64,
    pub(super) now: Instant,
}

impl Wires {
    /// It is `now`, until told otherwise. Call before anything else for an input.
    pub fn at(&mut self, now: Instant) {
        self.now = now;
    }

    /// The upstream that a connection belongs to.
    pub fn owner(&self, conn: ConnId) -> Option<UpstreamId> {
        self.owners.get(&conn).copied()
    }

    /// The next action for the runtime.
    pub fn poll(&mut self) -> Option<Action> {
        self.output.poll()
    }

    /// Bytes queued for a server.
    pub fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.output.outgoing(conn)
    }

    /// How many they are.
    pub fn queued(&self, conn: ConnId) -> usize {
        self.output.queued(conn)
    }

    /// Bytes were written. Returns how many are left.
    pub fn sent(&mut self, conn: ConnId, n: usize) -> usize {
        self.output.sent(conn, n)
    }

    /// A connection whose queue became [swollen](crate::output::SWOLLEN).
    pub fn take_swollen(&mut self) -> Option<ConnId> {
        self.output.take_swollen()
    }

    /// Whether a connection's queue is swollen.
    pub fn is_swollen(&self, conn: ConnId) -> bool {
        self.output.is_swollen(conn)
    }

    /// Stops or resumes reading from a connection, for what it sends fills the
    /// queue of another.
    pub fn hold(&mut self, conn: ConnId, hold: bool) {
        match hold {
            true => self.output.pause(conn, PauseReason::Feeding),
            false => self.output.resume(conn, PauseReason::Feeding),
        }
    }

    pub(super) fn connect(&mut self, owner: UpstreamId, to: Target) -> ConnId {
        let conn = self.reserve(owner);
        self.output.act(Action::Connect { conn, to });
        conn
    }

    pub(super) fn spawn(&mut self, owner: UpstreamId, command: Command) -> ConnId {
        let conn = self.reserve(owner);
        self.output.act(Action::Spawn { conn, command });
        conn
    }

    fn reserve(&mut self, owner: UpstreamId) -> ConnId {
        self.next += 1;
        let conn = ConnId::requested(self.next);
        self.owners.insert(conn, owner);
        self.output.prepare(conn);
        conn
    }

    /// Drops a connection of ours.
    pub(super) fn close(&mut self, conn: ConnId) {
        if self.owners.contains_key(&conn) {
            self.output.act(Action::Close(conn));
            self.forget(conn);
        }
    }

    /// Forgets a connection that is gone.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.owners.remove(&conn);
        self.output.forget(conn);
    }
}
