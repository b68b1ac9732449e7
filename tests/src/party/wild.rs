//! Servers with bad manners: they print what is no message, answer twice or never, die
//! in the middle, and ask too much.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::odd::{Deed, Heard, Manners};
use crate::sim::Rng;

/// The manners of one process.
pub(super) fn manners(modern: bool, chance: Rng) -> Manners {
    let mut wild = Wild { modern, chance, met: false, asked: 0, waiting: BTreeMap::new() };
    Box::new(move |heard| wild.hear(heard))
}

struct Wild {
    modern: bool,
    chance: Rng,
    /// Whether it has said anything.
    met: bool,
    asked: u64,
    /// The calls, and their texts, that wait for the answer to a question.
    waiting: BTreeMap<String, (Value, String)>,
}

fn say(message: Value) -> Deed {
    Deed::Say(message.to_string())
}

impl Wild {
    fn hear(&mut self, heard: &Heard) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if !std::mem::replace(&mut self.met, true) {
            match self.chance.below(20) {
                0 => return vec![Deed::Mutter("no luck today".into()), Deed::Quit(1)],
                1..4 => deeds.push(Deed::Say("Welcome to the wild server!".into())),
                _ => {}
            }
        }
        let id = heard.id();
        let params = &heard.message["params"];
        deeds.extend(match heard.method() {
            "" => self.answered(&id),
            "initialize" if self.modern => vec![Self::refuse(&id)],
            "initialize" => vec![self.result(
                &id,
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "wild", "version": "1"},
                }),
            )],
            "server/discover" if !self.modern => vec![Self::refuse(&id)],
            "server/discover" => vec![self.result(
                &id,
                json!({
                    "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                    "capabilities": {"tools": {"listChanged": true}},
                }),
            )],
            "subscriptions/listen" if self.modern => vec![self.listen(&id, params)],
            "tools/list" => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let tools = ["echo", "think", "count"].map(tool);
                let mut list = json!({"tools": tools});
                if self.modern {
                    (list["ttlMs"], list["cacheScope"]) = (json!(0), json!("private"));
                }
                vec![self.result(&id, list)]
            }
            "tools/call" => self.call(&id, params),
            "ping" => vec![self.result(&id, json!({}))],
            _ if id.is_null() => Vec::new(),
            _ => vec![Self::refuse(&id)],
        });
        deeds
    }

    fn result(&self, id: &Value, mut result: Value) -> Deed {
        if self.modern {
            result["resultType"] = json!("complete");
        }
        say(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn refuse(id: &Value) -> Deed {
        let error = json!({"code": -32601, "message": "not here"});
        say(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    fn listen(&self, id: &Value, params: &Value) -> Deed {
        let tag = json!({"io.modelcontextprotocol/subscriptionId": id});
        let granted = json!({"notifications": params["notifications"], "_meta": tag});
        let method = "notifications/subscriptions/acknowledged";
        say(json!({"jsonrpc": "2.0", "method": method, "params": granted}))
    }

    fn text(&self, id: &Value, text: &str) -> Deed {
        self.result(id, json!({"content": [{"type": "text", "text": text}]}))
    }

    fn call(&mut self, id: &Value, params: &Value) -> Vec<Deed> {
        let arguments = &params["arguments"];
        let said = match params["name"].as_str().unwrap_or_default() {
            "echo" => format!("Echo: {}", arguments["message"].as_str().unwrap_or_default()),
            "think" => format!("Because {}", arguments["question"].as_str().unwrap_or_default()),
            _ => format!("Counted to {}", arguments["to"]),
        };
        let answer = self.text(id, &said);
        let noise = |text: &str| Deed::Say(text.to_owned());
        match self.chance.below(40) {
            0 => Vec::new(),
            1 => vec![Deed::Mutter("out of luck".into()), Deed::Quit(3)],
            2 => vec![Deed::Quit(0)],
            3 => vec![answer, self.text(id, "again")],
            4 => vec![self.text(&json!(987_654_321), "whose?"), answer],
            5 => vec![
                noise("{\"jsonrpc\":\"2.0\",\"id\":"),
                noise("[]"),
                noise(r#"{"jsonrpc":"1.0","id":1,"result":{}}"#),
                answer,
            ],
            6 => {
                let flood = (0..20).map(|n| Deed::Mutter(format!("{n} {}", "!".repeat(2000))));
                flood.chain([answer]).collect()
            }
            7 => {
                let method = "notifications/tools/list_changed";
                vec![say(json!({"jsonrpc": "2.0", "method": method})), answer]
            }
            8 => {
                let told = json!({"progressToken": "nobody's", "progress": 1});
                let method = "notifications/progress";
                vec![say(json!({"jsonrpc": "2.0", "method": method, "params": told})), answer]
            }
            9 => {
                let told = json!({"level": "error", "data": "it is all wrong"});
                let method = "notifications/message";
                vec![say(json!({"jsonrpc": "2.0", "method": method, "params": told})), answer]
            }
            10 => {
                let told = json!({"requestId": id});
                let method = "notifications/cancelled";
                vec![say(json!({"jsonrpc": "2.0", "method": method, "params": told})), answer]
            }
            11..16 if !self.modern => self.ask(id, said),
            _ => vec![answer],
        }
    }

    /// Asks for roots before it answers.
    fn ask(&mut self, id: &Value, said: String) -> Vec<Deed> {
        self.asked += 1;
        let question = format!("wild/{}", self.asked);
        self.waiting.insert(question.clone(), (id.clone(), said));
        vec![say(json!({"jsonrpc": "2.0", "id": question, "method": "roots/list"}))]
    }

    fn answered(&mut self, id: &Value) -> Vec<Deed> {
        let call = id.as_str().and_then(|question| self.waiting.remove(question));
        call.map(|(id, said)| self.text(&id, &said)).into_iter().collect()
    }
}
