//! Connections of the simulated world: two ends, and a pipe each way.

use std::collections::VecDeque;

use mcpx_core::driver::ConnId;

/// Names a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WireId(pub u64);

/// Names a machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub usize);

/// Who is at an end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// A machine, by the name that it knows the connection by.
    Node(NodeId, ConnId),
    /// The test.
    Outside,
    /// Whoever it was has closed it.
    Nobody,
}

/// A connection. Side 0 asked for it.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) ends: [End; 2],
    /// What each side has written and the other has not read.
    pub(super) pipes: [Pipe; 2],
    /// Both sides know of it.
    pub(super) open: bool,
    pub(super) outside: Outside,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub(super) bytes: VecDeque<u8>,
    /// The least length of most pieces, so that what is long does not take more
    /// turns than a test has time for.
    pub(super) grain: usize,
    /// Its writer has more than fits, or is yet to be asked.
    pub(super) writing: bool,
    /// A piece is on its way.
    pub(super) moving: bool,
    /// Its reader does not read.
    pub(super) paused: bool,
    /// It ends as soon as its writer has nothing more to write.
    pub(super) finishing: bool,
    /// Nothing follows what is in it.
    pub(super) finished: bool,
    /// Its reader knows that.
    pub(super) told: bool,
}

/// What the test wants to write, and has read.
#[derive(Debug, Default)]
pub(super) struct Outside {
    pub(super) outbox: VecDeque<u8>,
    pub(super) inbox: Vec<u8>,
    pub(super) ended: bool,
}

impl Wire {
    pub(super) fn new(ends: [End; 2]) -> Self {
        Self { ends, pipes: Default::default(), open: false, outside: Outside::default() }
    }
}
