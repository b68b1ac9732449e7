//! What is printed of a replay: both sides, readable or as JSON lines, or only what is
//! otherwise than another build has it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mcpx_core::driver::{Action, ConnId, Signal, Target};
use mcpx_core::time::Instant;
use serde_json::{Map, Value, json};

use super::entry::{self, Entry, What};
use super::replay::Lines;
use crate::error::{Error, Exit};
use crate::listen::Door;
use crate::report::{self, escape};
use crate::show;

/// Differences that are shown.
const SHOWN: u64 = 10;

/// Something that a machine did.
pub(super) enum Out<'a> {
    /// It wrote these bytes.
    Wrote(ConnId, &'a [u8]),
    Did(&'a Action),
}

/// Where it all goes.
pub(super) enum Printer {
    Json,
    Text(Text),
    Diff(Diff),
}

/// A transcript for people.
pub(super) struct Text {
    doors: Vec<Door>,
    /// What each connection is called.
    names: BTreeMap<ConnId, String>,
}

/// A comparison.
pub(super) struct Diff {
    theirs: Lines,
    same: u64,
    other: u64,
}

impl Printer {
    pub(super) fn text(doors: Vec<Door>) -> Self {
        Self::Text(Text { doors, names: BTreeMap::new() })
    }

    pub(super) fn diff(theirs: Lines) -> Self {
        Self::Diff(Diff { theirs, same: 0, other: 0 })
    }

    /// Something happened to the machine.
    pub(super) fn happened(&mut self, at: Instant, what: &What) -> Result<(), Error> {
        match self {
            Self::Json => {
                let line = Entry { at, what: what.clone() }.write();
                show::print(&format!("{line}\n")).map(|_| ())
            }
            Self::Text(text) => text.happened(at, what),
            Self::Diff(_) => Ok(()),
        }
    }

    /// It did something.
    pub(super) fn did(&mut self, at: Instant, out: Out<'_>) -> Result<(), Error> {
        match self {
            Self::Json => show::print(&format!("{}\n", json(at, &out))).map(|_| ()),
            Self::Text(text) => text.did(at, &out),
            Self::Diff(diff) => diff.compare(&json(at, &out)),
        }
    }

    pub(super) fn end(self) -> Result<Exit, Error> {
        let Self::Diff(mut diff) = self else { return Ok(Exit::Done) };
        while let Some(theirs) = diff.next()? {
            diff.differ(Some(&theirs), None)?;
        }
        let (same, other) = (diff.same, diff.other);
        report::say(&format!("{same} actions are the same, {other} are not"));
        Ok(if other == 0 { Exit::Done } else { Exit::Failed })
    }
}

/// What a machine did, as a line of JSON.
pub(super) fn json(at: Instant, out: &Out<'_>) -> String {
    let act = |id: ConnId, name: &str| {
        let mut map = entry::conn(id);
        map.insert("do".into(), name.into());
        map
    };
    let bare = |name: &str| Map::from_iter([("do".to_owned(), Value::from(name))]);
    let with = |mut map: Map<String, Value>, key: &str, value: Value| {
        map.insert(key.into(), value);
        map
    };
    let map = match out {
        Out::Wrote(conn, bytes) => {
            let mut map = act(*conn, "write");
            entry::put(&mut map, bytes);
            map
        }
        Out::Did(action) => match action {
            Action::Flush(conn) => act(*conn, "flush"),
            Action::Pause(conn) => act(*conn, "pause"),
            Action::Resume(conn) => act(*conn, "resume"),
            Action::Finish(conn) => act(*conn, "finish"),
            Action::Close(conn) => act(*conn, "close"),
            Action::Connect { conn, to } => with(act(*conn, "connect"), "to", target(to).into()),
            Action::Spawn { conn, command } => {
                let words: Vec<&String> =
                    [&command.program].into_iter().chain(&command.args).collect();
                with(act(*conn, "spawn"), "command", json!(words))
            }
            Action::Signal { conn, signal } => {
                with(act(*conn, "signal"), "signal", signal_name(*signal).into())
            }
            Action::StopListening => bare("stop listening"),
            Action::Event(event) => with(bare("tell"), "event", report::shown(event).into()),
            Action::Exit => bare("exit"),
        },
    };
    entry::line(at, map).to_string()
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::Terminate => "terminate",
        Signal::Kill => "kill",
    }
}

fn target(target: &Target) -> String {
    match target {
        Target::Tcp { host, port } => format!("{host}:{port}"),
        Target::Tls { host, port } => format!("{host}:{port} with TLS"),
        Target::Unix { path } => path.clone(),
    }
}

impl Text {
    fn happened(&mut self, at: Instant, what: &What) -> Result<(), Error> {
        let (name, said) = match what {
            What::Accepted(conn, listener, from) => {
                let door = usize::try_from(listener.0).ok().and_then(|n| self.doors.get(n));
                let door = match door {
                    Some(Door::Http(bound)) => format!("http {bound}"),
                    Some(Door::Ndjson) => "ndjson".into(),
                    Some(Door::Stdio) => "standard input and output".into(),
                    None => "an unknown address".into(),
                };
                let number = conn.as_u64();
                self.names.insert(*conn, format!("host {number}"));
                let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
                (self.name(*conn), format!("comes to {door}{from}"))
            }
            What::Connected(conn) => (self.name(*conn), "is there".into()),
            What::Received(conn, bytes) => return self.bytes(at, *conn, '>', bytes),
            What::Finished(conn) => (self.name(*conn), "has no more to say".into()),
            What::Closed(conn, why) => (self.name(*conn), format!("is lost: {why:?}")),
            What::Stderr(conn, bytes) => return self.bytes(at, *conn, '!', bytes),
            What::Exited(conn, status) => (self.name(*conn), format!("has ended: {status:?}")),
            What::Tick | What::Sent(..) => return Ok(()),
            What::Stop => ("the user".into(), "asks to stop".into()),
            What::Configured(_) => ("the user".into(), "has changed the configuration".into()),
            What::Cut(why) => ("the recording".into(), format!("ends here: {why}")),
        };
        print(at, &name, &said)
    }

    fn did(&mut self, at: Instant, out: &Out<'_>) -> Result<(), Error> {
        let (conn, said) = match out {
            Out::Wrote(conn, bytes) => return self.bytes(at, *conn, '<', bytes),
            Out::Did(Action::Connect { conn, to }) => {
                let to = target(to);
                self.names.insert(*conn, format!("server {}", self.number()));
                (conn, format!("is connected to at {to}"))
            }
            Out::Did(Action::Spawn { conn, command }) => {
                self.names.insert(*conn, format!("server {}", self.number()));
                (conn, format!("is started: {} {}", command.program, command.args.join(" ")))
            }
            Out::Did(Action::Finish(conn)) => (conn, "is told no more".into()),
            Out::Did(Action::Close(conn)) => (conn, "is dropped".into()),
            Out::Did(Action::Pause(conn)) => (conn, "is not read".into()),
            Out::Did(Action::Resume(conn)) => (conn, "is read again".into()),
            Out::Did(Action::Signal { conn, signal }) => {
                (conn, format!("is sent a signal: {}", signal_name(*signal)))
            }
            Out::Did(Action::Event(event)) => {
                let shown = report::shown(event);
                return print(at, "log", shown.strip_prefix("mcpx: ").unwrap_or(&shown));
            }
            Out::Did(Action::StopListening) => return print(at, "mcpx", "lets nobody in any more"),
            Out::Did(Action::Exit) => return print(at, "mcpx", "exits"),
            Out::Did(Action::Flush(_)) => return Ok(()),
        };
        print(at, &self.name(*conn), &said)
    }

    fn number(&self) -> usize {
        1 + self.names.keys().filter(|conn| conn.is_requested()).count()
    }

    fn name(&self, conn: ConnId) -> String {
        self.names.get(&conn).cloned().unwrap_or_else(|| "somebody".into())
    }

    /// What came from a connection (`>`), or its standard error (`!`), or was written to
    /// it (`<`): line by line.
    fn bytes(&self, at: Instant, conn: ConnId, mark: char, bytes: &[u8]) -> Result<(), Error> {
        let text = String::from_utf8_lossy(bytes);
        let mut out = String::new();
        for (n, line) in text.split_terminator('\n').enumerate() {
            let name = if n == 0 { self.name(conn) } else { String::new() };
            let time = if n == 0 { moment(at) } else { String::new() };
            let _ = write!(out, "{time:>12} {name:<10} {mark} ");
            escape(line.trim_end_matches('\r'), &mut out);
            out.push('\n');
        }
        show::print(&out).map(|_| ())
    }
}

/// Seconds.
fn moment(at: Instant) -> String {
    let micros = at.as_micros();
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn print(at: Instant, who: &str, what: &str) -> Result<(), Error> {
    let mut out = format!("{:>12} {who:<10} - ", moment(at));
    escape(what, &mut out);
    out.push('\n');
    show::print(&out).map(|_| ())
}

impl Diff {
    /// The next action of the other build.
    fn next(&mut self) -> Result<Option<String>, Error> {
        while let Some(line) = self.theirs.next()? {
            let line = line.trim_end();
            let said: Value = serde_json::from_str(line)
                .map_err(|_| self.theirs.wrong("it is not what `mcpx replay --json` prints"))?;
            if said.get("do").is_some() {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    fn compare(&mut self, ours: &str) -> Result<(), Error> {
        let theirs = self.next()?;
        if theirs.as_deref() == Some(ours) {
            self.same += 1;
            return Ok(());
        }
        self.differ(theirs.as_deref(), Some(ours))
    }

    fn differ(&mut self, theirs: Option<&str>, ours: Option<&str>) -> Result<(), Error> {
        self.other += 1;
        if self.other > SHOWN {
            return Ok(());
        }
        let mut out = format!("line {}\n", self.theirs.number);
        for (mark, line) in [('-', theirs), ('+', ours)] {
            if let Some(line) = line {
                let _ = writeln!(out, "{mark} {line}");
            }
        }
        show::print(&out).map(|_| ())
    }
}
