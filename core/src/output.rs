//! What a machine has decided and not yet handed over: actions, and the bytes
//! queued for each connection.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::buffer::ByteQueue;
use crate::driver::{Action, ConnId};
use crate::event::Event;

/// Actions and outgoing bytes of one side of a machine.
#[derive(Debug, Default)]
pub struct Output {
    actions: VecDeque<Action>,
    /// Connections whose queue has passed the mark since they were last asked for.
    swollen: Vec<ConnId>,
    queues: BTreeMap<ConnId, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: ByteQueue,
    /// Whether the connection can be written to yet.
    open: bool,
    /// Whether a flush was asked for since the queue was last empty.
    flushing: bool,
    /// Whether it has passed the mark, and not fallen to half of it since.
    swollen: bool,
    /// Why reading from the connection is paused, one bit a reason.
    paused: u8,
}

/// Why a connection is not read from. It is read from again when no reason is
/// left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PauseReason {
    /// It works on something and has sent enough for later.
    Busy = 1,
    /// It does not read what is queued for it.
    Unread = 2,
    /// What it sent fills the queue of another.
    Feeding = 4,
}

/// A queue longer than this many bytes is swollen: whoever feeds it should be
/// paused until it has fallen to half.
pub const SWOLLEN: usize = 1 << 20;

impl Output {
    /// Begins a queue for a connection that can be written to at once.
    pub fn open(&mut self, conn: ConnId) {
        let queue = self.queues.entry(conn).or_default();
        queue.open = true;
        if !queue.bytes.is_empty() && !queue.flushing {
            queue.flushing = true;
            self.actions.push_back(Action::Flush(conn));
        }
    }

    /// Begins a queue for a connection that is being made. Its bytes wait for
    /// [`open`](Self::open).
    pub fn prepare(&mut self, conn: ConnId) {
        self.queues.insert(conn, Queue::default());
    }

    /// Forgets a connection and what was queued for it.
    pub fn forget(&mut self, conn: ConnId) {
        self.queues.remove(&conn);
    }

    /// Queues what `write` appends. Nothing happens if there is no such
    /// connection any more.
    pub fn write(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(queue) = self.queues.get_mut(&conn) else { return };
        write(queue.bytes.tail());
        if queue.open && !queue.flushing && !queue.bytes.is_empty() {
            queue.flushing = true;
            self.actions.push_back(Action::Flush(conn));
        }
        if !queue.swollen && queue.bytes.len() > SWOLLEN {
            queue.swollen = true;
            self.swollen.push(conn);
        }
    }

    /// A connection whose queue became swollen since this was last asked.
    pub fn take_swollen(&mut self) -> Option<ConnId> {
        self.swollen.pop()
    }

    /// Whether a connection's queue is swollen.
    pub fn is_swollen(&self, conn: ConnId) -> bool {
        self.queues.get(&conn).is_some_and(|queue| queue.swollen)
    }

    /// The bytes queued for a connection.
    pub fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.queues.get(&conn).map(|queue| queue.bytes.as_slice()).unwrap_or_default()
    }

    /// How many bytes are queued for a connection.
    pub fn queued(&self, conn: ConnId) -> usize {
        self.queues.get(&conn).map_or(0, |queue| queue.bytes.len())
    }

    /// `n` bytes were written. Returns how many are left.
    pub fn sent(&mut self, conn: ConnId, n: usize) -> usize {
        let Some(queue) = self.queues.get_mut(&conn) else { return 0 };
        queue.bytes.take(n);
        queue.flushing = !queue.bytes.is_empty();
        queue.swollen &= queue.bytes.len() > SWOLLEN / 2;
        queue.bytes.len()
    }

    /// Stops reading from a connection.
    pub fn pause(&mut self, conn: ConnId, why: PauseReason) {
        let Some(queue) = self.queues.get_mut(&conn) else { return };
        let before = queue.paused;
        queue.paused |= why as u8;
        if before == 0 {
            self.actions.push_back(Action::Pause(conn));
        }
    }

    /// Takes back a reason not to read from a connection.
    pub fn resume(&mut self, conn: ConnId, why: PauseReason) {
        let Some(queue) = self.queues.get_mut(&conn) else { return };
        let before = queue.paused;
        queue.paused &= !(why as u8);
        if before != 0 && queue.paused == 0 {
            self.actions.push_back(Action::Resume(conn));
        }
    }

    /// Whether anything keeps a connection from being read.
    pub fn is_paused(&self, conn: ConnId) -> bool {
        self.queues.get(&conn).is_some_and(|queue| queue.paused != 0)
    }

    /// Queues an action.
    pub fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Queues an event for the embedder.
    pub fn tell(&mut self, event: Event) {
        self.actions.push_back(Action::Event(event));
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_once_until_sent() {
        let conn = ConnId::accepted(1);
        let mut output = Output::default();
        output.open(conn);
        output.write(conn, |tail| tail.extend_from_slice(b"ab"));
        output.write(conn, |tail| tail.extend_from_slice(b"cd"));
        assert_eq!(output.poll(), Some(Action::Flush(conn)));
        assert_eq!(output.poll(), None);
        assert_eq!(output.sent(conn, 3), 1);
        output.write(conn, |tail| tail.push(b'e'));
        assert_eq!(output.poll(), None);
        assert_eq!(output.sent(conn, 2), 0);
        output.write(conn, |tail| tail.push(b'f'));
        assert_eq!(output.poll(), Some(Action::Flush(conn)));
    }

    #[test]
    fn reads_again_when_no_reason_is_left() {
        let conn = ConnId::accepted(1);
        let mut output = Output::default();
        output.open(conn);
        output.pause(conn, PauseReason::Busy);
        output.pause(conn, PauseReason::Feeding);
        output.pause(conn, PauseReason::Busy);
        assert_eq!((output.poll(), output.poll()), (Some(Action::Pause(conn)), None));
        output.resume(conn, PauseReason::Busy);
        assert_eq!(output.poll(), None);
        output.resume(conn, PauseReason::Feeding);
        output.resume(conn, PauseReason::Unread);
        assert_eq!((output.poll(), output.poll()), (Some(Action::Resume(conn)), None));
    }

    #[test]
    fn holds_back_until_open() {
        let conn = ConnId::requested(1);
        let mut output = Output::default();
        output.prepare(conn);
        output.write(conn, |tail| tail.push(b'x'));
        assert_eq!(output.poll(), None);
        output.open(conn);
        assert_eq!(output.poll(), Some(Action::Flush(conn)));
        output.forget(conn);
        output.write(conn, |tail| tail.push(b'x'));
        assert_eq!((output.poll(), output.queued(conn)), (None, 0));
    }
}
