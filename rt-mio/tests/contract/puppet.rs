//! A machine that a test moves by hand.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mcpx_core::buffer::ByteQueue;
use mcpx_core::driver::{Action, Command, ConnId, Input, Machine};
use mcpx_core::time::Instant;

use crate::runtime::{Listener, run};

/// How long a test may take. Generous: it only decides how a failure looks.
const LIMIT: Duration = Duration::from_secs(60);

/// What a reaction can do.
#[derive(Default)]
pub(crate) struct Hands {
    actions: VecDeque<Action>,
    queues: BTreeMap<ConnId, ByteQueue>,
    /// When to tick.
    pub(crate) deadline: Option<Instant>,
    /// The moment of the last input.
    pub(crate) now: Instant,
    /// The longest that a queue has been.
    pub(crate) longest: usize,
}

impl Hands {
    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(crate) fn send(&mut self, conn: ConnId, bytes: &[u8]) {
        let queue = self.queues.entry(conn).or_default();
        let was_empty = queue.is_empty();
        queue.tail().extend_from_slice(bytes);
        self.longest = self.longest.max(queue.len());
        if was_empty && !bytes.is_empty() {
            self.act(Action::Flush(conn));
        }
    }

    pub(crate) fn queued(&self, conn: ConnId) -> usize {
        self.queues.get(&conn).map_or(0, ByteQueue::len)
    }

    pub(crate) fn wake_after(&mut self, wait: Duration) {
        self.deadline = Some(self.now + wait);
    }

    /// Starts a shell.
    pub(crate) fn shell(&mut self, conn: ConnId, script: &str) {
        let command = Command {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            ..Command::default()
        };
        self.act(Action::Spawn { conn, command });
    }
}

/// What a reaction hears: the runtime's inputs, and that bytes were sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard<'a> {
    Input(Input<'a>),
    Sent(ConnId),
}

struct Puppet<R> {
    hands: Hands,
    react: R,
}

impl<R: FnMut(&mut Hands, Heard<'_>)> Machine for Puppet<R> {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        assert!(now >= self.hands.now, "the clock went back");
        self.hands.now = now;
        if input == Input::Tick {
            let deadline = self.deadline().unwrap();
            assert!(now >= deadline, "a tick before its time");
            assert!(now < Instant::START + LIMIT, "the test hangs");
            self.hands.deadline = None;
        }
        (self.react)(&mut self.hands, Heard::Input(input));
    }

    fn poll(&mut self) -> Option<Action> {
        self.hands.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        let limit = Instant::START + LIMIT;
        Some(self.hands.deadline.map_or(limit, |at| at.min(limit)))
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.hands.queues.get(&conn).map_or(&[], |queue| queue.as_slice())
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        assert!(now >= self.hands.now, "the clock went back");
        self.hands.now = now;
        self.hands.queues.get_mut(&conn).unwrap().take(n);
        (self.react)(&mut self.hands, Heard::Sent(conn));
    }
}

/// Runs a machine that begins with `begin` and then does what `react` does,
/// until it asks to exit.
pub(crate) fn drive(
    listeners: Vec<Listener>,
    begin: impl FnOnce(&mut Hands),
    react: impl FnMut(&mut Hands, Heard<'_>),
) -> Hands {
    let mut puppet = Puppet { hands: Hands::default(), react };
    begin(&mut puppet.hands);
    run(&mut puppet, listeners, |_| {}).unwrap();
    puppet.hands
}

/// Bytes that show when some are lost, doubled or swapped.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(len)
    .collect()
}

/// Sends back what comes, and ends its own direction when the other one ends.
pub(crate) fn echo(hands: &mut Hands, heard: &Heard<'_>) {
    match *heard {
        Heard::Input(Input::Received { conn, bytes }) => hands.send(conn, bytes),
        Heard::Input(Input::Finished { conn }) => hands.act(Action::Finish(conn)),
        _ => {}
    }
}
