//! A demo server with hosts at it, of every revision and on both wires, without
//! a runtime.

use std::time::Duration;

use mcpx_core::driver::{Action, ConnId, Input, ListenerId, Machine};
use mcpx_core::protocol::meta;
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::protocol::revision::{Era, Revision};
use mcpx_core::server::{Config, Listener};
use mcpx_core::time::Instant;
use serde_json::{Value, json};

use super::machine::Demo;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wire {
    Pipe,
    Http,
}

pub(super) struct Bench {
    pub(super) demo: Demo,
    now: Instant,
    conns: u64,
    ids: u64,
}

/// A host, with its session if it is a legacy one.
pub(super) struct Host {
    wire: Wire,
    revision: Revision,
    capabilities: Value,
    /// Its pipe, or the last connection of its session.
    pub(super) conn: ConnId,
    session: Option<String>,
    /// HTTP fields that go with each request besides.
    pub(super) fields: Vec<(&'static str, &'static str)>,
}

/// Every wire with every revision.
pub(super) fn everywhere() -> impl Iterator<Item = (Wire, Revision)> {
    [Wire::Pipe, Wire::Http]
        .into_iter()
        .flat_map(|wire| Revision::ALL.into_iter().map(move |revision| (wire, revision)))
}

impl Bench {
    pub(super) fn new() -> Self {
        let rules = OriginRules::new("127.0.0.1:1", None, None).unwrap();
        let config = Config {
            listeners: vec![Listener::Stdio, Listener::Http(rules), Listener::Ndjson],
            ..Config::default()
        };
        Self { demo: Demo::new(config, [7; 32]), now: Instant::from_micros(1), conns: 0, ids: 0 }
    }

    pub(super) fn input(&mut self, input: Input<'_>) {
        self.demo.handle(self.now, input);
    }

    pub(super) fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.demo.poll()).collect()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.demo.deadline()
    }

    /// Lets time pass, with a tick whenever the machine wants one.
    pub(super) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.demo.deadline()
            && at <= end
        {
            self.now = self.now.max(at);
            self.input(Input::Tick);
        }
        self.now = end;
    }

    pub(super) fn connect(&mut self, listener: u32) -> ConnId {
        self.conns += 1;
        let conn = ConnId::accepted(self.conns);
        self.input(Input::Accepted { conn, listener: ListenerId(listener), from: None });
        conn
    }

    /// A host with these capabilities, ready to send requests.
    pub(super) fn host(&mut self, wire: Wire, revision: Revision, capabilities: Value) -> Host {
        let conn = self.connect(if wire == Wire::Http { 1 } else { 2 });
        let mut host =
            Host { wire, revision, capabilities, conn, session: None, fields: Vec::new() };
        if revision.era() == Era::Legacy {
            let result = self.initialize(&mut host, revision.as_str());
            assert_eq!(result["protocolVersion"], revision.as_str());
        }
        host
    }

    /// Sends `initialize` and what follows it. Gives its result.
    pub(super) fn initialize(&mut self, host: &mut Host, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": host.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let conn = self.start(host, "initialize", params);
        let text = self.read_text(conn);
        host.session = text
            .lines()
            .find_map(|line| line.strip_prefix("Mcp-Session-Id: "))
            .map(|id| id.trim().into());
        let result = messages(&text).remove(0)["result"].take();
        self.send(host, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    /// Sends a message that is complete. Gives the connection that it went to.
    pub(super) fn send(&mut self, host: &Host, message: &Value) -> ConnId {
        if host.wire == Wire::Pipe {
            let line = format!("{message}\n");
            self.input(Input::Received { conn: host.conn, bytes: line.as_bytes() });
            return host.conn;
        }
        let conn = self.connect(1);
        let body = message.to_string();
        let mut head = String::from("POST /mcp HTTP/1.1\r\nHost: localhost:1\r\n");
        let mut field = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
        field("Content-Type", "application/json");
        field("Accept", "application/json, text/event-stream");
        field("Content-Length", &body.len().to_string());
        field("MCP-Protocol-Version", host.revision.as_str());
        if let Some(session) = &host.session {
            field("Mcp-Session-Id", session);
        }
        if host.revision.era() == Era::Modern {
            field("Mcp-Method", message["method"].as_str().unwrap());
            let name = message["params"]["name"].as_str();
            if let Some(name) = name.or(message["params"]["uri"].as_str()) {
                field("Mcp-Name", name);
            }
        }
        for (name, value) in &host.fields {
            field(name, value);
        }
        let request = head + "\r\n" + &body;
        self.input(Input::Received { conn, bytes: request.as_bytes() });
        conn
    }

    /// Sends a request with a fresh id. Gives the connection that it went to.
    pub(super) fn start(&mut self, host: &Host, method: &str, mut params: Value) -> ConnId {
        self.ids += 1;
        if host.revision.era() == Era::Modern {
            params["_meta"][meta::PROTOCOL_VERSION] = host.revision.as_str().into();
            params["_meta"][meta::CLIENT_CAPABILITIES] = host.capabilities.clone();
            params["_meta"][meta::CLIENT_INFO] = json!({"name": "test", "version": "1"});
        }
        let message = json!({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params});
        self.send(host, &message)
    }

    /// The id of the last request.
    pub(super) fn last_id(&self) -> u64 {
        self.ids
    }

    /// The stream of a legacy session on HTTP for what belongs to no request; a
    /// pipe is its own.
    pub(super) fn stream(&mut self, host: &Host) -> ConnId {
        if host.wire == Wire::Pipe {
            return host.conn;
        }
        self.get(host, "")
    }

    /// Takes a stream up again after an event.
    pub(super) fn resume(&mut self, host: &Host, event: &str) -> ConnId {
        self.get(host, &format!("Last-Event-ID: {event}\r\n"))
    }

    fn get(&mut self, host: &Host, fields: &str) -> ConnId {
        let conn = self.connect(1);
        let session = host.session.as_deref().unwrap();
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost:1\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n{fields}\r\n"
        );
        self.input(Input::Received { conn, bytes: request.as_bytes() });
        conn
    }

    pub(super) fn read_text(&mut self, conn: ConnId) -> String {
        let text = String::from_utf8(self.demo.outgoing(conn).to_vec()).unwrap();
        self.demo.sent(self.now, conn, text.len());
        text
    }

    /// The messages that have come since the last time.
    pub(super) fn read(&mut self, conn: ConnId) -> Vec<Value> {
        messages(&self.read_text(conn))
    }

    /// A request and all that comes until its answer, which is the last.
    pub(super) fn request(&mut self, host: &Host, method: &str, params: Value) -> Vec<Value> {
        let conn = self.start(host, method, params);
        let messages = self.read(conn);
        assert_eq!(messages.last().map(|last| &last["id"]), Some(&self.ids.into()));
        messages
    }

    pub(super) fn result(&mut self, host: &Host, method: &str, params: Value) -> Value {
        let mut answer = self.request(host, method, params).pop().unwrap();
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The error code and data of a request that is refused.
    pub(super) fn error(&mut self, host: &Host, method: &str, params: Value) -> (i64, Value) {
        let mut answer = self.request(host, method, params).pop().unwrap();
        let code = answer["error"]["code"].as_i64();
        (code.unwrap_or_else(|| panic!("{method}: {answer}")), answer["error"]["data"].take())
    }

    /// A request that asks back, whose questions are answered by their methods.
    /// Gives the last message and the questions.
    pub(super) fn converse(
        &mut self,
        host: &Host,
        method: &str,
        mut params: Value,
        answer: impl Fn(&str) -> Value,
    ) -> (Value, Vec<Value>) {
        let mut asked = Vec::new();
        let mut conn = self.start(host, method, params.clone());
        for _ in 0..9 {
            let messages = self.read(conn);
            if let Some(Value::Object(questions)) = messages[0]["result"].get("inputRequests") {
                assert_eq!(messages[0]["result"]["resultType"], "input_required");
                assert!(messages[0]["result"].get("ttlMs").is_none());
                params["inputResponses"] = json!({"other": 1});
                for (key, question) in questions {
                    asked.push(question.clone());
                    let answer = answer(question["method"].as_str().unwrap());
                    params["inputResponses"][key] = answer;
                }
                params.as_object_mut().unwrap().remove("requestState");
                if let Some(state) = messages[0]["result"].get("requestState") {
                    params["requestState"] = state.clone();
                }
                conn = self.start(host, method, params.clone());
                continue;
            }
            for message in messages {
                let Some(method) = message["method"].as_str() else {
                    return (message, asked);
                };
                let answer = answer(method);
                self.send(host, &json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}));
                asked.push(message);
            }
        }
        panic!("{asked:?}");
    }

    pub(super) fn call(&mut self, host: &Host, tool: &str, arguments: Value) -> Value {
        self.result(host, "tools/call", json!({"name": tool, "arguments": arguments}))
    }
}

fn messages(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line))
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The text of a tool's result.
pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}
