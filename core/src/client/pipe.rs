//! A server that is spoken to in lines: a child process, or one behind a socket. Its
//! start, its lines, its last words, its end.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use serde::de::IgnoredAny;
use smallvec::SmallVec;

use super::failure::Failure;
use super::limits::Limits;
use super::upstream::NOISE;
use super::upstream::{Core, Event, RequestId};
use super::wires::Wires;
use crate::driver::{Action, CloseReason, Command, ConnId, ExitStatus, Signal, Target};
use crate::event;
use crate::jsonrpc::{self, Envelope, Incoming, Message};
use crate::time::Instant;
use crate::wire::ndjson::{Decoder, Line, looks_like_message};

#[derive(Debug)]
pub(super) struct Pipe {
    start: Start,
    state: State,
    decoder: Decoder,
    /// The line of standard error that is being written.
    words: Vec<u8>,
    last_words: Tail,
    started: bool,
}

/// How it begins.
#[derive(Debug)]
pub(super) enum Start {
    Spawn(Command),
    Connect(Target),
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Not started yet: the first message starts it.
    Idle,
    Running(ConnId),
    /// Its standard input is closed; at the moment given, harder means follow.
    Stopping(ConnId, Means, Instant),
    Gone,
}

#[derive(Clone, Copy, Debug)]
enum Means {
    Terminate,
    Kill,
    Nothing,
}

impl Pipe {
    pub(super) fn new(start: Start, limits: &Limits) -> Self {
        Self {
            start,
            state: State::Idle,
            decoder: Decoder::new(limits.message_bytes),
            words: Vec::new(),
            last_words: Tail::default(),
            started: false,
        }
    }

    pub(super) fn connected(&mut self) {
        self.started = true;
    }

    pub(super) fn send(&mut self, core: &mut Core, wires: &mut Wires, envelope: &Envelope<'_>) {
        let conn = match self.state {
            State::Running(conn) => conn,
            State::Idle => {
                let conn = match &self.start {
                    Start::Spawn(command) => wires.spawn(core.id, command.clone()),
                    Start::Connect(target) => wires.connect(core.id, target.clone()),
                };
                self.state = State::Running(conn);
                conn
            }
            // Its exit says what became of everything that is still open.
            State::Stopping(..) => return,
            State::Gone => {
                core.fail_all(&Failure::Gone);
                return;
            }
        };
        wires.output.write(conn, |tail| envelope.write_line(tail));
    }

    pub(super) fn receive<'a>(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        input: &mut &'a [u8],
    ) -> Option<Event<'a>> {
        loop {
            match self.decoder.next(input)? {
                Line::Text(line) => {
                    if let Some(event) = read_line(core, wires, line) {
                        return Some(event);
                    }
                }
                Line::TooLong { skimmed, .. } => {
                    let request = skimmed.id.and_then(|id| id.parse().ok()).map(RequestId);
                    if let (false, Some(request)) = (skimmed.method, request) {
                        core.fail(request, Failure::TooLong);
                    }
                }
            }
        }
    }

    pub(super) fn stderr(&mut self, core: &Core, wires: &mut Wires, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.take_words(core, line);
            self.say_words(core, wires);
            rest = after.get(1..).unwrap_or_default();
        }
        self.take_words(core, rest);
    }

    fn take_words(&mut self, core: &Core, bytes: &[u8]) {
        let room = core.limits.stderr_line.saturating_sub(self.words.len());
        self.words.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn say_words(&mut self, core: &Core, wires: &mut Wires) {
        let line = String::from_utf8_lossy(&self.words);
        let line = line.trim_end();
        if !line.is_empty() {
            self.last_words.push(line, core.limits.stderr_tail);
            let upstream = core.name.clone();
            wires.output.tell(event::Event::Stderr { upstream, line: String::from(line) });
        }
        self.words.clear();
    }

    /// It closed its standard output: no answer can come any more.
    pub(super) fn finished(&mut self, core: &mut Core, wires: &mut Wires) {
        match self.decoder.finish() {
            // Half a message means that it died: its exit is what counts.
            Some(Line::Text(line)) if serde_json::from_slice::<IgnoredAny>(&line).is_err() => {
                core.report_noise(wires, &line);
            }
            Some(Line::Text(line)) => {
                let event = read_line(core, wires, line);
                core.events.extend(event);
            }
            Some(Line::TooLong { .. }) | None => {}
        }
        if self.is_socket() {
            return self.lose(core, wires, Failure::Broken);
        }
        // Its exit, with a status, follows at once if it has one.
        if let State::Running(conn) = self.state {
            wires.output.act(Action::Finish(conn));
            let until = wires.now + core.limits.exit_grace;
            self.state = State::Stopping(conn, Means::Terminate, until);
        }
    }

    pub(super) fn closed(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        why: CloseReason,
    ) {
        if matches!(self.state, State::Idle | State::Gone) {
            return;
        }
        if self.is_socket() {
            let failure = if self.started { Failure::Broken } else { Failure::NotConnected(why) };
            return self.lose(core, wires, failure);
        }
        if !self.started {
            self.state = State::Gone;
            wires.forget(conn);
            core.end(Failure::NotStarted(why));
            return;
        }
        // It broke its pipes: its exit is still to come.
        if let State::Running(_) = self.state {
            let until = wires.now + core.limits.exit_grace;
            self.state = State::Stopping(conn, Means::Terminate, until);
        }
    }

    pub(super) fn exited(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        status: ExitStatus,
    ) {
        self.say_words(core, wires);
        self.state = State::Gone;
        wires.forget(conn);
        if !core.ended {
            let upstream = core.name.clone();
            wires.output.tell(event::Event::Exited { upstream, status });
        }
        core.end(Failure::Exited(status, core::mem::take(&mut self.last_words).quoted()));
    }

    pub(super) fn stop(&mut self, core: &Core, wires: &mut Wires) {
        match self.state {
            State::Running(conn) => {
                wires.output.act(Action::Finish(conn));
                let until = wires.now + core.limits.exit_grace;
                self.state = State::Stopping(conn, Means::Terminate, until);
            }
            State::Idle => self.state = State::Gone,
            State::Stopping(..) | State::Gone => {}
        }
    }

    fn is_socket(&self) -> bool {
        matches!(self.start, Start::Connect(_))
    }

    /// A socket is of no more use.
    fn lose(&mut self, core: &mut Core, wires: &mut Wires, failure: Failure) {
        self.drop_socket(wires);
        core.end(failure);
    }

    fn drop_socket(&mut self, wires: &mut Wires) {
        if let State::Running(conn) | State::Stopping(conn, ..) = self.state {
            wires.close(conn);
        }
        self.state = State::Gone;
    }

    pub(super) fn kill(&mut self, wires: &mut Wires) {
        if self.is_socket() {
            return self.drop_socket(wires);
        }
        match self.state {
            State::Running(conn) | State::Stopping(conn, ..) => {
                wires.output.act(Action::Signal { conn, signal: Signal::Kill });
                self.state = State::Stopping(conn, Means::Nothing, NEVER);
            }
            State::Idle | State::Gone => self.state = State::Gone,
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Idle | State::Gone)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Stopping(_, Means::Terminate | Means::Kill, at) => Some(at),
            _ => None,
        }
    }

    pub(super) fn tick(&mut self, core: &Core, wires: &mut Wires) {
        let State::Stopping(conn, means, at) = self.state else { return };
        if at > wires.now {
            return;
        }
        if self.is_socket() {
            return self.drop_socket(wires);
        }
        match means {
            Means::Terminate => {
                wires.output.act(Action::Signal { conn, signal: Signal::Terminate });
                let until = wires.now + core.limits.term_grace;
                self.state = State::Stopping(conn, Means::Kill, until);
            }
            Means::Kill => self.kill(wires),
            Means::Nothing => {}
        }
    }
}

/// The last lines of standard error, within a limit.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Tail {
    fn push(&mut self, line: &str, limit: usize) {
        let end = line.char_indices().map(|(at, _)| at).take_while(|at| *at <= limit).last();
        let line = if line.len() > limit { line.get(..end.unwrap_or(0)) } else { Some(line) };
        let line = line.unwrap_or_default();
        self.bytes += line.len();
        self.lines.push_back(line.into());
        while self.bytes > limit {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |line| line.len());
        }
    }

    /// As one line.
    fn quoted(self) -> String {
        let mut quoted = String::with_capacity(self.bytes);
        for (n, line) in self.lines.iter().enumerate() {
            if n > 0 {
                quoted.push_str(" | ");
            }
            quoted.push_str(line.trim());
        }
        quoted
    }
}

const NEVER: Instant = Instant::from_micros(u64::MAX);

/// A line that is no message is skipped and reported (TR-01). A message right
/// after a banner without a line end is still found.
fn read_line<'a>(core: &mut Core, wires: &mut Wires, line: Cow<'a, [u8]>) -> Option<Event<'a>> {
    if !looks_like_message(&line) {
        let start = memchr::memmem::find(&line, b"{\"").unwrap_or(line.len());
        let (banner, rest) = line.split_at_checked(start)?;
        core.report_noise(wires, banner);
        let message = Message::parse(Cow::Owned(rest.to_vec()), &jsonrpc::Limits::DEFAULT);
        return match message {
            Ok(Incoming::Message(message)) => core.event(message, None),
            Ok(Incoming::Batch(_)) | Err(_) => None,
        };
    }
    let beginning: SmallVec<[u8; NOISE]> =
        SmallVec::from_slice(line.get(..NOISE.min(line.len())).unwrap_or_default());
    match Message::parse(line, &jsonrpc::Limits::DEFAULT) {
        Ok(Incoming::Message(message)) => core.event(message, None),
        Ok(Incoming::Batch(batch)) => {
            core.split(wires, &batch, None);
            None
        }
        Err(rejected) => {
            // A broken answer must not leave its request waiting.
            if let Some(request) = rejected.id.and_then(|id| id.parse().ok()).map(RequestId) {
                core.fail(request, Failure::NotMcp(alloc::format!("{}", rejected.reason)));
            }
            core.report_noise(wires, &beginning);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_quoted_as_far_as_there_is_room() {
        let mut tail = Tail::default();
        assert_eq!(Tail::default().quoted(), "");
        for line in ["Traceback:", "  File \"x\"", "KeyError: 'é'"] {
            tail.push(line, 30);
        }
        assert_eq!(tail.quoted(), "File \"x\" | KeyError: 'é'");
        let mut tail = Tail::default();
        tail.push("ééé", 5);
        assert_eq!(tail.quoted(), "éé");
    }
}
