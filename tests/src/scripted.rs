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

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::odd::Deed;

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
    /// What it does about a message.
    pub fn hear(&mut self, message: &Value) -> Vec<Deed> {
        let id = &message["id"];
        let result = match message["method"].as_str() {
            None => return self.answered(id, message),
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
