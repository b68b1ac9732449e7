//! A host, and what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use mcpx_core::protocol::revision::Revision;
use serde_json::{Value, json};

use super::law;
use crate::host::Host;
use crate::net::{Door, LineId, Net as _};
use crate::sim::Sim;

/// A host.
pub(super) struct Guest {
    pub(super) name: usize,
    pub(super) host: Host,
    asked: usize,
    pub(super) waits: BTreeMap<String, Wait>,
    /// Requests that must not be answered any more, or need not be.
    through: BTreeSet<String>,
    /// What it hears of a resource by: a listen, or nothing more.
    pub(super) subscribed: Option<Option<String>>,
}

pub(super) struct Wait {
    pub(super) own: Option<LineId>,
    method: &'static str,
    params: Value,
    /// The text that it must be answered with.
    text: String,
    /// The last progress that was heard.
    progress: u64,
}

impl Guest {
    /// A host that has shaken hands. None if it was turned away, which is wrong unless
    /// something is amiss.
    pub(super) fn come(
        sim: &mut Sim,
        name: usize,
        door: Door,
        revision: Revision,
        amiss: bool,
    ) -> Option<Self> {
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let host = Host::new(sim, door, revision, capabilities.clone());
        let (waits, through) = (BTreeMap::new(), BTreeSet::new());
        let mut guest = Self { name, host, asked: 0, waits, through, subscribed: None };
        let method = if guest.host.is_modern() { "server/discover" } else { "initialize" };
        let params = match guest.host.is_modern() {
            true => json!({}),
            false => json!({
                "protocolVersion": revision.as_str(), "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        };
        let id = json!(guest.id());
        guest.host.request_as(sim, id.clone(), method, params);
        let answer = loop {
            if let Some(answer) = guest.host.take_answer(&id) {
                break Some(answer.0);
            }
            let lines = guest.host.lines();
            if lines.is_empty() {
                break None;
            }
            sim.wait(&lines);
            guest.host.pump(sim);
        };
        let welcome = answer.as_ref().filter(|answer| answer.get("result").is_some());
        if let Some(answer) = &answer {
            law::to_host(revision, answer, Some(method));
        }
        let Some(welcome) = welcome else {
            assert!(amiss, "{name} is turned away: {answer:?}");
            guest.host.vanish(sim);
            return None;
        };
        if !guest.host.is_modern() {
            assert_eq!(welcome["result"]["protocolVersion"], revision.as_str());
            guest.host.notify(sim, "notifications/initialized", json!({}));
        }
        Some(guest)
    }

    pub(super) fn id(&mut self) -> String {
        self.asked += 1;
        format!("{}/{}", self.name, self.asked)
    }

    /// Calls a tool that must give this text.
    pub(super) fn call(&mut self, sim: &mut Sim, tool: &str, arguments: Value, text: String) {
        let id = self.id();
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.request(sim, id, "tools/call", params, text);
    }

    fn request(
        &mut self,
        sim: &mut Sim,
        id: String,
        method: &'static str,
        params: Value,
        text: String,
    ) {
        let own = self.host.request_as(sim, json!(id), method, params.clone());
        self.waits.insert(id, Wait { own, method, params, text, progress: 0 });
    }

    /// Wants to hear of a resource.
    pub(super) fn subscribe(&mut self, sim: &mut Sim, uri: &str) {
        let id = self.id();
        if self.host.is_modern() {
            let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [uri]});
            let params = json!({"notifications": wanted});
            self.host.request_as(sim, json!(id), "subscriptions/listen", params);
            self.subscribed = Some(Some(id));
        } else {
            self.subscribed = Some(None);
            self.request(sim, id, "resources/subscribe", json!({"uri": uri}), String::new());
        }
    }

    pub(super) fn cancel(&mut self, sim: &mut Sim, at: usize) {
        let Some(id) = self.waits.keys().nth(at).cloned() else { return };
        let Some(wait) = self.waits.remove(&id) else { return };
        self.host.cancel(sim, &json!(id), wait.own);
        self.through.insert(id);
    }

    /// One of its connections is gone, and what ran on it need not be answered.
    pub(super) fn cut(&mut self, sim: &mut Sim, line: LineId) {
        sim.close(line);
        self.host.lost(line);
        let door = self.host.door;
        let gone: Vec<String> = self
            .waits
            .iter()
            .filter(|(_, wait)| !door.is_http() || wait.own == Some(line))
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.waits.remove(&id);
            self.through.insert(id);
        }
    }

    /// Takes in what its host has heard. If something is amiss, it may be errors.
    pub(super) fn listen(&mut self, sim: &mut Sim, amiss: bool) {
        while let Some(message) = self.host.take(|_| true) {
            self.hear(sim, &message, amiss);
        }
    }

    fn hear(&mut self, sim: &mut Sim, message: &Value, amiss: bool) {
        let revision = self.host.revision;
        if message.get("method").is_some() {
            law::to_host(revision, message, None);
            return self.told(sim, message, amiss);
        }
        let id = message["id"].as_str();
        let wait = id.and_then(|id| self.waits.remove(id));
        let asked = wait.as_ref().map(|wait| wait.method);
        law::to_host(revision, message, asked);
        let Some(id) = id else {
            return assert!(amiss, "{}: {message}", self.name);
        };
        if self.subscribed.as_ref().is_some_and(|it| it.as_deref() == Some(id)) {
            assert!(amiss, "{}: {message}", self.name);
            self.subscribed = None;
            return;
        }
        let Some(wait) = wait else {
            // What was cancelled may have been answered already: once.
            let once = self.through.remove(id);
            return assert!(once, "{} has not asked: {message}", self.name);
        };
        let result = &message["result"];
        if message.get("error").is_some() {
            assert!(amiss, "{}: {message}", self.name);
        } else if wait.text.is_empty() {
            // It was no call.
            assert_eq!(*result, json!({}), "{}", self.name);
        } else if result["resultType"] == "input_required" {
            self.go_on(sim, wait, result);
        } else if result["isError"] == true {
            assert!(amiss, "{}: {message}", self.name);
        } else {
            assert_eq!(result["content"][0]["text"], wait.text, "{}", self.name);
        }
    }

    /// Asks again, with the answers to what the server wants to know.
    fn go_on(&mut self, sim: &mut Sim, wait: Wait, result: &Value) {
        let mut params = wait.params;
        let asked = result["inputRequests"].as_object();
        let answers = asked.into_iter().flatten().map(|(key, question)| {
            let whose = question["params"]["messages"][0]["content"]["text"].as_str();
            self.is_mine(whose, question);
            (key.clone(), think(question))
        });
        let answers: serde_json::Map<String, Value> = answers.collect();
        params["requestState"] = result["requestState"].clone();
        params["inputResponses"] = Value::Object(answers);
        let id = self.id();
        params["_meta"]["progressToken"] = json!(id);
        self.request(sim, id, wait.method, params, wait.text);
    }

    /// What is asked about names who is asked.
    fn is_mine(&self, whose: Option<&str>, question: &Value) {
        if let Some(whose) = whose {
            assert!(whose.starts_with(&format!("{}/", self.name)), "{}: {question}", self.name);
        }
    }

    /// A question, or news.
    fn told(&mut self, sim: &mut Sim, message: &Value, amiss: bool) {
        let method = message["method"].as_str().unwrap_or_default();
        if message.get("id").is_none() {
            return self.notice(method, message, amiss);
        }
        self.is_mine(message["params"]["messages"][0]["content"]["text"].as_str(), message);
        self.host.reply(sim, message, think(message));
    }

    fn notice(&mut self, method: &str, message: &Value, amiss: bool) {
        if method == "notifications/resources/updated" {
            let Some(listen) = self.subscribed.clone() else {
                return assert!(amiss, "{}: {message}", self.name);
            };
            let id = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_str();
            return assert_eq!(id.map(str::to_owned), listen, "{}", self.name);
        }
        if method != "notifications/progress" {
            return;
        }
        let token = message["params"]["progressToken"].as_str().unwrap_or_default();
        let Some(wait) = self.waits.get_mut(token) else {
            return assert!(self.through.contains(token), "{}: {message}", self.name);
        };
        let progress = message["params"]["progress"].as_u64().unwrap_or_default();
        assert!(progress > wait.progress, "{}: {message}", self.name);
        wait.progress = progress;
    }

    /// Requests whose connections have ended without an answer.
    pub(super) fn forget_lost(&mut self, amiss: bool) {
        if !self.host.door.is_http() {
            return;
        }
        let lines = self.host.lines();
        let name = self.name;
        self.waits.retain(|id, wait| {
            let there = wait.own.is_none_or(|own| lines.contains(&own));
            assert!(there || amiss, "{name} got no answer to {id}");
            there
        });
    }
}

/// What a host says to a question.
fn think(request: &Value) -> Value {
    if request["method"] == "roots/list" {
        return json!({"roots": []});
    }
    let question = request["params"]["messages"][0]["content"]["text"].as_str().unwrap_or_default();
    let content = json!({"type": "text", "text": format!("Because {question}")});
    json!({"role": "assistant", "model": "m", "content": content})
}
