//! One thing that happened to a machine, as a line of JSON.
//!
//! `t` is the moment in microseconds. `in` numbers a connection that came to us, `out`
//! one that we asked for, a process included. Bytes are `text`, or `base64` where they
//! are not UTF-8.

use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mcpx_core::driver::{CloseReason, ConnId, ExitStatus, Input, ListenerId};
use mcpx_core::time::Instant;
use serde_json::{Map, Value, json};

/// Something that happened, and when.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) what: What,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum What {
    Accepted(ConnId, ListenerId, Option<IpAddr>),
    Connected(ConnId),
    Received(ConnId, Vec<u8>),
    Finished(ConnId),
    Closed(ConnId, CloseReason),
    Stderr(ConnId, Vec<u8>),
    Exited(ConnId, ExitStatus),
    Tick,
    Stop,
    /// So many bytes were written.
    Sent(ConnId, usize),
    /// The servers are others from now on.
    Configured(Value),
    /// Nothing more is written down, and why.
    Cut(String),
}

const REASONS: [(CloseReason, &str); 8] = [
    (CloseReason::Reset, "reset"),
    (CloseReason::Refused, "refused"),
    (CloseReason::Unresolved, "unresolved"),
    (CloseReason::TimedOut, "timed out"),
    (CloseReason::NotFound, "not found"),
    (CloseReason::Denied, "denied"),
    (CloseReason::Untrusted, "untrusted"),
    (CloseReason::Failed, "failed"),
];

/// The members that name a connection.
pub(super) fn conn(id: ConnId) -> Map<String, Value> {
    let mut map = Map::new();
    let (key, number) = match id.is_requested() {
        true => ("out", id.as_u64() ^ ConnId::requested(0).as_u64()),
        false => ("in", id.as_u64()),
    };
    map.insert(key.into(), number.into());
    map
}

/// Adds bytes.
pub(super) fn put(map: &mut Map<String, Value>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => map.insert("text".into(), text.into()),
        Err(_) => map.insert("base64".into(), BASE64_STANDARD.encode(bytes).into()),
    };
}

fn bytes(map: &Map<String, Value>) -> Option<Vec<u8>> {
    match (map.get("text"), map.get("base64")) {
        (Some(Value::String(text)), None) => Some(text.as_bytes().to_vec()),
        (None, Some(Value::String(code))) => BASE64_STANDARD.decode(code).ok(),
        _ => None,
    }
}

impl What {
    /// What an input says.
    pub(super) fn of(input: &Input<'_>) -> Self {
        match *input {
            Input::Accepted { conn, listener, from } => Self::Accepted(conn, listener, from),
            Input::Connected { conn } => Self::Connected(conn),
            Input::Received { conn, bytes } => Self::Received(conn, bytes.to_vec()),
            Input::Finished { conn } => Self::Finished(conn),
            Input::Closed { conn, why } => Self::Closed(conn, why),
            Input::Stderr { conn, bytes } => Self::Stderr(conn, bytes.to_vec()),
            Input::Exited { conn, status } => Self::Exited(conn, status),
            Input::Tick => Self::Tick,
            Input::Stop => Self::Stop,
        }
    }

    /// The input, if it is one.
    pub(super) fn input(&self) -> Option<Input<'_>> {
        Some(match self {
            Self::Accepted(conn, listener, from) => {
                Input::Accepted { conn: *conn, listener: *listener, from: *from }
            }
            Self::Connected(conn) => Input::Connected { conn: *conn },
            Self::Received(conn, bytes) => Input::Received { conn: *conn, bytes },
            Self::Finished(conn) => Input::Finished { conn: *conn },
            Self::Closed(conn, why) => Input::Closed { conn: *conn, why: *why },
            Self::Stderr(conn, bytes) => Input::Stderr { conn: *conn, bytes },
            Self::Exited(conn, status) => Input::Exited { conn: *conn, status: *status },
            Self::Tick => Input::Tick,
            Self::Stop => Input::Stop,
            Self::Sent(..) | Self::Configured(_) | Self::Cut(_) => return None,
        })
    }

    fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Accepted(conn, ..)
            | Self::Connected(conn)
            | Self::Received(conn, _)
            | Self::Finished(conn)
            | Self::Closed(conn, _)
            | Self::Stderr(conn, _)
            | Self::Exited(conn, _)
            | Self::Sent(conn, _) => Some(*conn),
            Self::Tick | Self::Stop | Self::Configured(_) | Self::Cut(_) => None,
        }
    }
}

impl Entry {
    /// The line, without its end.
    pub(super) fn write(&self) -> String {
        let mut map = Map::new();
        map.insert("t".into(), self.at.as_micros().into());
        if let Some(id) = self.what.conn() {
            map.extend(conn(id));
        }
        let (key, value) = match &self.what {
            What::Accepted(_, listener, from) => {
                if let Some(from) = from {
                    map.insert("from".into(), from.to_string().into());
                }
                ("accepted", listener.0.into())
            }
            What::Connected(_) => ("connected", true.into()),
            What::Received(_, bytes) => {
                put(&mut map, bytes);
                ("received", bytes.len().into())
            }
            What::Finished(_) => ("finished", true.into()),
            What::Closed(_, why) => {
                let name = REASONS.iter().find(|(reason, _)| reason == why);
                ("closed", name.map_or("failed", |(_, name)| name).into())
            }
            What::Stderr(_, bytes) => {
                put(&mut map, bytes);
                ("stderr", bytes.len().into())
            }
            What::Exited(_, ExitStatus::Code(code)) => ("exited", (*code).into()),
            What::Exited(_, ExitStatus::Signal(signal)) => ("killed", (*signal).into()),
            What::Tick => ("tick", true.into()),
            What::Stop => ("stop", true.into()),
            What::Sent(_, n) => ("sent", (*n).into()),
            What::Configured(said) => ("configured", said.clone()),
            What::Cut(why) => ("cut", why.as_str().into()),
        };
        map.insert(key.into(), value);
        Value::Object(map).to_string()
    }

    /// What a line says. Nothing if it is none.
    pub(super) fn read(line: &str) -> Option<Self> {
        let Value::Object(map) = serde_json::from_str(line).ok()? else { return None };
        let at = Instant::from_micros(map.get("t")?.as_u64()?);
        let number = |key: &str| map.get(key).and_then(Value::as_u64);
        let conn = number("in").map(ConnId::accepted);
        let conn = conn.or_else(|| number("out").map(ConnId::requested));
        let small = |key: &str| map.get(key)?.as_i64().and_then(|it| i32::try_from(it).ok());
        let has = |key: &str| map.contains_key(key);
        let what = if has("accepted") {
            let from = match map.get("from") {
                None => None,
                Some(from) => Some(from.as_str()?.parse().ok()?),
            };
            let listener = u32::try_from(number("accepted")?).ok()?;
            What::Accepted(conn?, ListenerId(listener), from)
        } else if has("connected") {
            What::Connected(conn?)
        } else if has("received") {
            What::Received(conn?, bytes(&map)?)
        } else if has("finished") {
            What::Finished(conn?)
        } else if let Some(why) = map.get("closed") {
            let why = REASONS.iter().find(|(_, name)| *name == *why)?;
            What::Closed(conn?, why.0)
        } else if has("stderr") {
            What::Stderr(conn?, bytes(&map)?)
        } else if has("exited") {
            What::Exited(conn?, ExitStatus::Code(small("exited")?))
        } else if has("killed") {
            What::Exited(conn?, ExitStatus::Signal(small("killed")?))
        } else if has("tick") {
            What::Tick
        } else if has("stop") {
            What::Stop
        } else if has("sent") {
            What::Sent(conn?, usize::try_from(number("sent")?).ok()?)
        } else if let Some(said) = map.get("configured") {
            What::Configured(said.clone())
        } else {
            What::Cut(map.get("cut")?.as_str()?.to_owned())
        };
        Some(Self { at, what })
    }
}

/// The same members, in an object, with the moment before them.
pub(super) fn line(at: Instant, members: Map<String, Value>) -> Value {
    let mut map = Map::new();
    map.insert("t".into(), json!(at.as_micros()));
    map.extend(members);
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let (a, b) = (ConnId::accepted(7), ConnId::requested(9));
        let from = Some("::1".parse().unwrap());
        let mut all = vec![
            What::Accepted(a, ListenerId(2), from),
            What::Accepted(a, ListenerId(0), None),
            What::Connected(b),
            What::Received(a, b"POST / HTTP/1.1\r\n\xc3\xa9".to_vec()),
            What::Received(b, b"\xff\x00".to_vec()),
            What::Finished(a),
            What::Stderr(b, b"oh\n".to_vec()),
            What::Exited(b, ExitStatus::Code(-3)),
            What::Exited(b, ExitStatus::Signal(9)),
            What::Tick,
            What::Stop,
            What::Sent(a, 12),
            What::Configured(json!({"a": [1]})),
            What::Cut("it is full".into()),
        ];
        all.extend(REASONS.map(|(why, _)| What::Closed(a, why)));
        for what in all {
            let entry = Entry { at: Instant::from_micros(5), what };
            let line = entry.write();
            assert!(line.starts_with(r#"{"t":5"#) && !line.contains('\n'), "{line}");
            assert_eq!(Entry::read(&line), Some(entry), "{line}");
        }
        for line in ["", "{}", "[]", r#"{"t":1}"#, r#"{"t":1,"received":1,"in":1}"#] {
            assert_eq!(Entry::read(line), None, "{line}");
        }
    }
}
