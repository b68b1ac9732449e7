//! The connections, by the machine's id and by their place in the loop.

use std::collections::HashMap;
use std::rc::Rc;

use mcpx_core::driver::ConnId;

use crate::connect::Attempt;
use crate::process::Process;
use crate::stream::{Handle, Sink, SinkKind, Source};

/// A connection or a process, in any state.
pub(crate) struct Conn {
    pub(crate) id: ConnId,
    /// Present until it is connected.
    pub(crate) attempt: Option<Attempt>,
    pub(crate) input: Option<Source>,
    pub(crate) output: Option<Sink>,
    /// Present until its end was reported.
    pub(crate) process: Option<Process>,
    /// The machine wants no input.
    pub(crate) paused: bool,
    /// The output shall end when all is written.
    pub(crate) finishing: bool,
    /// It stands in the loop's list of those that have input.
    pub(crate) queued: bool,
}

impl Conn {
    pub(crate) fn new(id: ConnId) -> Self {
        Self {
            id,
            attempt: None,
            input: None,
            output: None,
            process: None,
            paused: false,
            finishing: false,
            queued: false,
        }
    }

    /// Makes it a connected socket.
    pub(crate) fn open(&mut self, socket: Rc<Handle>) {
        self.attempt = None;
        self.input = Some(Source::new(Rc::clone(&socket)));
        self.output = Some(Sink::new(socket, SinkKind::Socket));
    }

    /// Whether a read may bring something.
    pub(crate) fn has_input(&self) -> bool {
        let output = self.input.as_ref().is_some_and(|source| source.ready && !self.paused);
        output || self.process.as_ref().is_some_and(Process::has_stderr)
    }

    /// Whether neither direction is left, and no process.
    pub(crate) fn is_over(&self) -> bool {
        self.attempt.is_none()
            && self.input.is_none()
            && self.output.is_none()
            && self.process.is_none()
    }
}

/// All connections. Places are reused, ids are not.
#[derive(Default)]
pub(crate) struct Table {
    places: Vec<Option<Conn>>,
    free: Vec<usize>,
    by_id: HashMap<ConnId, usize>,
}

impl Table {
    pub(crate) fn insert(&mut self, conn: Conn) -> usize {
        let id = conn.id;
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(conn);
                place
            }
            None => {
                self.places.push(Some(conn));
                self.places.len() - 1
            }
        };
        self.by_id.insert(id, place);
        place
    }

    pub(crate) fn get(&mut self, place: usize) -> Option<&mut Conn> {
        self.places.get_mut(place)?.as_mut()
    }

    /// The connection in the making at a place.
    pub(crate) fn attempt(&self, place: usize) -> Option<&Attempt> {
        self.places.get(place)?.as_ref()?.attempt.as_ref()
    }

    /// The process at a place.
    pub(crate) fn process(&self, place: usize) -> Option<&Process> {
        self.places.get(place)?.as_ref()?.process.as_ref()
    }

    pub(crate) fn find(&self, id: ConnId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn remove(&mut self, place: usize) {
        if let Some(conn) = self.places.get_mut(place).and_then(Option::take) {
            self.by_id.remove(&conn.id);
            self.free.push(place);
        }
    }

    /// All places, the empty ones included.
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        0..self.places.len()
    }
}
