//! A legacy server on standard input and output that does, when one of its
//! tools is called, what servers should not, or seldom, do.
//!
//! | tool | what it does |
//! | --- | --- |
//! | `echo` | gives `message` back |
//! | `roots` | asks for the host's roots and says how many there are |
//! | `change` | says that its tools have changed, and answers |
//! | `noise` | prints what is no message at all, and answers |
//! | `twice` | answers twice |
//! | `stranger` | answers a request that nobody made, and then this one |
//! | `silent` | shows progress, if that is wanted, and never answers |
//! | `quit` | says so on standard error and exits with code 3 |

use std::collections::{BTreeMap, VecDeque};

use mcpx_core::driver::{Action, ConnId, ExitStatus, Input, Machine};
use mcpx_core::event::Event;
use mcpx_core::time::Instant;
use serde_json::{Value, json};

use crate::sim::Program;

/// What the server does about a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Prints this line.
    Say(String),
    /// Prints this line to standard error.
    Mutter(String),
    /// Exits with this code.
    Quit(i32),
}

/// What it knows.
#[derive(Debug, Default)]
pub struct Script {
    asked: u64,
    /// The calls that wait for the answer to a question.
    waiting: BTreeMap<String, Value>,
}

fn text(id: &Value, text: &str) -> Deed {
    let result = json!({"content": [{"type": "text", "text": text}]});
    Deed::Say(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

impl Script {
    /// What it does about a line of its input.
    pub fn hear(&mut self, line: &str) -> Vec<Deed> {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        let id = &message["id"];
        let result = match message["method"].as_str() {
            None => return self.answered(id, &message),
            Some("tools/call") => return self.call(id, &message["params"]),
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }),
            Some("ping") => json!({}),
            Some("tools/list") => json!({
                "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
            }),
            Some(_) if id.is_null() => return Vec::new(),
            Some(method) => {
                let error = json!({"code": -32601, "message": format!("no {method} here")});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                return vec![Deed::Say(answer.to_string())];
            }
        };
        vec![Deed::Say(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())]
    }

    fn call(&mut self, id: &Value, params: &Value) -> Vec<Deed> {
        let say = |text: &str| Deed::Say(text.to_owned());
        match params["name"].as_str().unwrap_or_default() {
            "echo" => {
                vec![text(id, params["arguments"]["message"].as_str().unwrap_or_default())]
            }
            "roots" => {
                self.asked += 1;
                let question = format!("roots-{}", self.asked);
                self.waiting.insert(question.clone(), id.clone());
                vec![say(
                    &json!({"jsonrpc": "2.0", "id": question, "method": "roots/list"}).to_string()
                )]
            }
            "change" => {
                let method = "notifications/tools/list_changed";
                let notice = json!({"jsonrpc": "2.0", "method": method});
                vec![say(&notice.to_string()), text(id, "changed")]
            }
            "noise" => vec![
                say("Welcome to the server!"),
                say(""),
                say("{\"jsonrpc\":\"2.0\",\"id\":"),
                say("[]"),
                say("null"),
                say(r#"{"jsonrpc":"1.0","id":1,"result":{}}"#),
                text(id, "heard"),
            ],
            "twice" => vec![text(id, "once"), text(id, "again")],
            "stranger" => vec![text(&json!(987_654), "whose?"), text(id, "yours")],
            "silent" => {
                let token = params["_meta"].get("progressToken");
                let method = "notifications/progress";
                let begun = token.map(|token| json!({"progressToken": token, "progress": 1}));
                let notice = |params| json!({"jsonrpc": "2.0", "method": method, "params": params});
                begun.map(|params| say(&notice(params).to_string())).into_iter().collect()
            }
            "quit" => vec![Deed::Mutter("out of luck".to_owned()), Deed::Quit(3)],
            name => {
                let error = json!({"code": -32602, "message": format!("Unknown tool: {name}")});
                vec![say(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())]
            }
        }
    }

    fn answered(&mut self, id: &Value, message: &Value) -> Vec<Deed> {
        let call = id.as_str().and_then(|question| self.waiting.remove(question));
        let Some(call) = call else { return Vec::new() };
        let roots = message["result"]["roots"].as_array().map_or(0, Vec::len);
        vec![text(&call, &format!("{roots} roots"))]
    }
}

/// The same as a machine on one pipe.
#[derive(Debug, Default)]
pub struct Scripted {
    script: Script,
    pipe: Option<ConnId>,
    heard: Vec<u8>,
    says: Vec<u8>,
    actions: VecDeque<Action>,
    code: i32,
    quits: bool,
}

impl Scripted {
    fn hear(&mut self, conn: ConnId) {
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            for deed in self.script.hear(&String::from_utf8_lossy(&line)) {
                match deed {
                    Deed::Say(line) => {
                        if self.says.is_empty() {
                            self.actions.push_back(Action::Flush(conn));
                        }
                        self.says.extend_from_slice(line.as_bytes());
                        self.says.push(b'\n');
                    }
                    Deed::Mutter(line) => {
                        self.actions.push_back(Action::Event(Event::Warning(line)));
                    }
                    Deed::Quit(code) => {
                        self.code = code;
                        self.quit();
                    }
                }
            }
        }
    }

    fn quit(&mut self) {
        self.quits = true;
        if self.says.is_empty() {
            self.actions.push_back(Action::Exit);
        }
    }
}

impl Machine for Scripted {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if self.quits {
            return;
        }
        match input {
            Input::Accepted { conn, .. } => self.pipe = Some(conn),
            Input::Received { conn, bytes } => {
                self.heard.extend_from_slice(bytes);
                self.hear(conn);
            }
            Input::Closed { .. } => {
                self.says.clear();
                self.quit();
            }
            Input::Finished { .. } | Input::Stop => self.quit(),
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
        if self.pipe == Some(conn) { &self.says } else { &[] }
    }

    fn sent(&mut self, _: Instant, _: ConnId, n: usize) {
        self.says.drain(..n);
        if self.quits && self.says.is_empty() {
            self.actions.push_back(Action::Exit);
        }
    }
}

impl Program for Scripted {
    fn status(&self) -> ExitStatus {
        ExitStatus::Code(self.code)
    }
}
