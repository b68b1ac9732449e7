//! Servers with whatever manners a test gives them, in the simulated world: a closure
//! sees each message and says what is done about it.

use std::collections::{BTreeMap, VecDeque};

use mcpx_core::driver::{Action, ConnId, ExitStatus, Input, Machine};
use mcpx_core::event::Event;
use mcpx_core::time::Instant;
use mcpx_core::wire::http1::{self, Part, RequestHead, RequestReader};
use serde_json::Value;

use crate::sim::Program;

/// Something that reached a server.
pub struct Heard {
    /// The verb of an HTTP request; empty on a pipe.
    pub verb: String,
    /// Its target.
    pub target: String,
    /// `Mcp-Session-Id`.
    pub session: Option<String>,
    /// `Last-Event-ID`.
    pub after: Option<String>,
    /// The message, if there is one.
    pub message: Value,
}

impl Heard {
    /// The method of the message.
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// Its id.
    pub fn id(&self) -> Value {
        self.message["id"].clone()
    }
}

/// What a server does about it.
pub enum Deed {
    /// Says a line on the pipe, or sends these bytes, a response or more of one.
    Say(String),
    /// Writes to standard error.
    Mutter(String),
    /// Ends the connection when all is written.
    HangUp,
    /// Ends the process, with this code.
    Quit(i32),
}

/// The manners of a server.
pub type Manners = Box<dyn FnMut(&Heard) -> Vec<Deed>>;

/// Such a server. See the [module](self).
pub struct Odd {
    manners: Manners,
    http: bool,
    conns: BTreeMap<ConnId, Conn>,
    actions: VecDeque<Action>,
    code: Option<i32>,
}

#[derive(Default)]
struct Conn {
    reader: Option<RequestReader>,
    head: Option<RequestHead>,
    body: Vec<u8>,
    says: Vec<u8>,
    ends: bool,
}

impl Odd {
    /// One that speaks in lines.
    pub fn on_pipe(manners: Manners) -> Self {
        Self { manners, http: false, conns: BTreeMap::new(), actions: VecDeque::new(), code: None }
    }

    /// One that speaks HTTP.
    pub fn on_http(manners: Manners) -> Self {
        Self { http: true, ..Self::on_pipe(manners) }
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let mut heard = Vec::new();
        let Some(state) = self.conns.get_mut(&conn) else { return };
        match &mut state.reader {
            None => {
                state.body.extend_from_slice(bytes);
                while let Some(end) = state.body.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = state.body.drain(..=end).collect();
                    let message = serde_json::from_slice(&line).unwrap_or_default();
                    let (verb, target) = (String::new(), String::new());
                    heard.push(Heard { verb, target, session: None, after: None, message });
                }
            }
            Some(reader) => {
                let mut input = bytes;
                while let Ok(Some(part)) = reader.next(&mut input) {
                    match part {
                        Part::Head(head) => state.head = Some(head),
                        Part::Data(data) => state.body.extend_from_slice(data),
                        Part::End(_) => {
                            let body = std::mem::take(&mut state.body);
                            heard.extend(state.head.take().map(|head| read(&head, &body)));
                        }
                        Part::Interim(never) => match never {},
                    }
                }
            }
        }
        for heard in heard {
            for deed in (self.manners)(&heard) {
                self.act(conn, deed);
            }
        }
    }

    fn act(&mut self, conn: ConnId, deed: Deed) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        match deed {
            // It has made up its mind.
            _ if self.code.is_some() => {}
            Deed::Say(text) => {
                if state.says.is_empty() {
                    self.actions.push_back(Action::Flush(conn));
                }
                state.says.extend_from_slice(text.as_bytes());
                if !self.http {
                    state.says.push(b'\n');
                }
            }
            Deed::Mutter(text) => self.actions.push_back(Action::Event(Event::Warning(text))),
            Deed::HangUp => {
                state.ends = true;
                self.end_if_said(conn);
            }
            Deed::Quit(code) => {
                self.code = Some(code);
                self.end_if_said(conn);
            }
        }
    }

    fn end_if_said(&mut self, conn: ConnId) {
        let Some(state) = self.conns.get(&conn) else { return };
        if !state.says.is_empty() {
            return;
        }
        if self.code.is_some() {
            self.actions.push_back(Action::Exit);
        } else if state.ends {
            self.actions.push_back(Action::Close(conn));
            self.conns.remove(&conn);
        }
    }
}

fn read(head: &RequestHead, body: &[u8]) -> Heard {
    let field = |name: &str| head.fields.get_str(name).map(str::to_owned);
    Heard {
        verb: head.method().to_owned(),
        target: head.target().to_owned(),
        session: field("mcp-session-id"),
        after: field("last-event-id"),
        message: serde_json::from_slice(body).unwrap_or_default(),
    }
}

impl Machine for Odd {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if self.code.is_some() {
            return;
        }
        match input {
            Input::Accepted { conn, .. } => {
                let reader = self.http.then(|| RequestReader::new(http1::Limits::default()));
                self.conns.insert(conn, Conn { reader, ..Conn::default() });
            }
            Input::Received { conn, bytes } => self.received(conn, bytes),
            Input::Finished { conn } if self.http => self.act(conn, Deed::HangUp),
            Input::Finished { conn } => self.act(conn, Deed::Quit(0)),
            Input::Closed { conn, .. } => {
                self.conns.remove(&conn);
                if !self.http {
                    self.code = Some(0);
                    self.actions.push_back(Action::Exit);
                }
            }
            Input::Stop => {
                if let Some(&conn) = self.conns.keys().next() {
                    self.act(conn, Deed::Quit(0));
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.conns.get(&conn).map(|state| state.says.as_slice()).unwrap_or_default()
    }

    fn sent(&mut self, _: Instant, conn: ConnId, n: usize) {
        if let Some(state) = self.conns.get_mut(&conn) {
            state.says.drain(..n);
        }
        self.end_if_said(conn);
    }
}

impl Program for Odd {
    fn status(&self) -> ExitStatus {
        ExitStatus::Code(self.code.unwrap_or(0))
    }
}
