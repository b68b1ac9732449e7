//! What hosts say to a demo server, and all that it says to them.

use std::time::Duration;

use mcpx::demo::Demo;
use mcpx_core::driver::{Action, ConnId, Input, ListenerId, Machine};
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::server::{Config, Listener};
use mcpx_core::time::Instant;

/// A host that can do everything.
const CAPABILITIES: &str = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;

/// Who says something, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// HTTP of 2026-07-28, with these fields besides.
    Modern(&'static str),
    /// HTTP of 2026-07-28, by a host without capabilities.
    Plain,
    /// A pipe of 2026-07-28.
    ModernPipe,
    /// The HTTP session at this revision.
    Session(&'static str),
    /// The pipe at this revision.
    Pipe(&'static str),
    /// HTTP without fields of any revision.
    Raw,
}

pub(crate) const MODERN: At = At::Modern("");

pub(crate) struct Talk {
    demo: Demo,
    now: Instant,
    conns: u64,
    ids: u64,
    open: Vec<ConnId>,
    session: Option<String>,
    pipe: Option<ConnId>,
    /// The last state that a modern host was to keep.
    state: String,
    /// The last event id of a stream.
    event: String,
}

impl Talk {
    pub(crate) fn new() -> Self {
        let rules = OriginRules::new("127.0.0.1:1", None, None).unwrap();
        let config = Config {
            listeners: vec![Listener::Http(rules), Listener::Ndjson],
            ..Config::default()
        };
        Self {
            demo: Demo::new(config, [7; 32]),
            now: Instant::from_micros(1),
            conns: 0,
            ids: 0,
            open: Vec::new(),
            session: None,
            pipe: None,
            state: String::new(),
            event: String::new(),
        }
    }

    /// Says it, and gives all that is said on any connection before time passes.
    pub(crate) fn say(&mut self, at: At, said: &str) -> String {
        let said = said.replace("{state}", &self.state).replace("{event}", &self.event);
        match said.split_once(' ').unwrap_or((&said, "")) {
            ("~", time) => self.wait(Duration::from_millis(time.parse().unwrap())),
            ("hang", _) => {
                let conn = self.open.pop().unwrap();
                self.input(Input::Finished { conn });
                self.input(Input::Closed { conn, why: mcpx_core::driver::CloseReason::Reset });
            }
            ("stop", _) => self.input(Input::Stop),
            ("GET", fields) => {
                let session = self.session(at);
                let fields = fields.replace('|', "\r\n");
                self.http(&format!(
                    "GET /mcp HTTP/1.1\r\nHost: localhost:1\r\nAccept: text/event-stream\r\n{session}{fields}\r\n"
                ));
            }
            (method, params) => self.message(at, method, params, &said),
        }
        self.heard()
    }

    fn message(&mut self, at: At, method: &str, params: &str, said: &str) {
        let capabilities = if at == At::Plain { "{}" } else { CAPABILITIES };
        let body = if said.starts_with('{') {
            said.to_owned()
        } else {
            self.ids += 1;
            let params = params.trim().strip_prefix('{').unwrap_or("}");
            let meta = match at {
                At::Modern(_) | At::Plain | At::ModernPipe => {
                    let given = r#""_meta":{"#;
                    let meta = format!(
                        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"t","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{capabilities}"#
                    );
                    match params.split_once(given) {
                        Some((before, after)) => format!("{{{before}{meta},{after}"),
                        None if params == "}" => format!("{{{meta}}}}}"),
                        None => format!("{{{meta}}},{params}"),
                    }
                }
                _ => format!("{{{params}"),
            };
            let id = self.ids;
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{meta}}}"#)
        };
        match at {
            At::Modern(fields) => self.post_modern(method, fields, &body),
            At::Plain => self.post_modern(method, "", &body),
            At::Session(_) => {
                let session = self.session(at);
                self.post(&session, &body);
            }
            At::ModernPipe | At::Pipe(_) => {
                let conn = self.pipe(at);
                self.input(Input::Received { conn, bytes: format!("{body}\n").as_bytes() });
            }
            At::Raw => self.post("", &body),
        }
    }

    fn post_modern(&mut self, method: &str, fields: &str, body: &str) {
        let member = |name| {
            mcpx_core::jsonrpc::get(body, "params")
                .and_then(|params| mcpx_core::jsonrpc::get(params, name))
                .and_then(mcpx_core::jsonrpc::string)
        };
        let name = match member("name").or_else(|| member("uri")) {
            Some(name) => format!("Mcp-Name: {name}\r\n"),
            None => String::new(),
        };
        let fields = fields.replace('|', "\r\n");
        self.post(
            &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}{fields}"),
            body,
        );
    }

    fn post(&mut self, fields: &str, body: &str) {
        let length = body.len();
        self.http(&format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        ));
    }

    fn http(&mut self, request: &str) {
        let conn = self.connect(0);
        self.input(Input::Received { conn, bytes: request.as_bytes() });
    }

    fn connect(&mut self, listener: u32) -> ConnId {
        self.conns += 1;
        let conn = ConnId::accepted(self.conns);
        self.input(Input::Accepted { conn, listener: ListenerId(listener), from: None });
        self.open.push(conn);
        conn
    }

    /// The header field of the session, which begins when there is none.
    fn session(&mut self, at: At) -> String {
        let At::Session(version) = at else { return String::new() };
        if self.session.is_none() {
            self.post("", &initialize(version));
            let answer = self.heard();
            let id = answer.split_once("Mcp-Session-Id: ").unwrap().1;
            self.session = Some(id.lines().next().unwrap().to_owned());
        }
        format!("Mcp-Session-Id: {}\r\n", self.session.as_deref().unwrap())
    }

    fn pipe(&mut self, at: At) -> ConnId {
        if let Some(conn) = self.pipe {
            return conn;
        }
        let conn = self.connect(1);
        self.pipe = Some(conn);
        if let At::Pipe(version) = at {
            let line = format!("{}\n", initialize(version));
            self.input(Input::Received { conn, bytes: line.as_bytes() });
            self.heard();
        }
        conn
    }

    fn input(&mut self, input: Input<'_>) {
        self.demo.handle(self.now, input);
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.demo.deadline()
            && at <= end
        {
            self.now = self.now.max(at);
            self.input(Input::Tick);
        }
        self.now = end;
    }

    fn heard(&mut self) -> String {
        let mut heard = String::new();
        for conn in self.open.clone() {
            let text = String::from_utf8(self.demo.outgoing(conn).to_vec()).unwrap();
            self.demo.sent(self.now, conn, text.len());
            heard += &text;
        }
        while let Some(action) = self.demo.poll() {
            match action {
                Action::Finish(conn) | Action::Close(conn) => {
                    self.open.retain(|open| *open != conn);
                    heard += "(closed)";
                }
                Action::Exit => heard += "(exit)",
                Action::Event(event) => heard += &format!("({event:?})"),
                _ => {}
            }
        }
        if let Some((_, after)) = heard.split_once(r#""requestState":""#) {
            self.state = after.split('"').next().unwrap().to_owned();
        }
        if let Some((_, after)) = heard.rsplit_once("id: ")
            && let Some(event) = after.lines().next()
            && !event.is_empty()
        {
            self.event = event.to_owned();
        }
        heard
    }
}

fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{CAPABILITIES},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

/// Whether this came of what was said.
pub(crate) fn check(said: &str, heard: &str, expected: &[&str]) {
    assert_eq!(heard.is_empty(), expected.is_empty(), "{said}: {heard}");
    for part in expected {
        match part.strip_prefix('!') {
            Some(part) => assert!(!heard.contains(part), "{said}: {part} is in {heard}"),
            None => assert!(heard.contains(part), "{said}: {part} is not in {heard}"),
        }
    }
}
