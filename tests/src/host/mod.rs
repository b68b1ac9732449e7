//! A host of any revision, at any door: what it says is lawful, and what it is
//! told, it keeps until somebody asks for it.

mod reply;

use std::collections::{BTreeMap, VecDeque};

use mcpx_core::protocol::revision::{Era, Revision};
use serde_json::{Value, json};

use crate::net::{Door, LineId, Net};
pub use reply::Reply;

/// A host.
#[derive(Debug)]
pub struct Host {
    /// How it speaks.
    pub revision: Revision,
    /// Where it came in.
    pub door: Door,
    /// The session, if the door is one for HTTP and the revision has sessions.
    pub session: Option<String>,
    /// What `initialize` was answered with, or `server/discover`.
    pub welcome: Value,
    capabilities: Value,
    /// The connection, if the door is one for lines.
    line: Option<LineId>,
    unread: Vec<u8>,
    /// HTTP requests that run.
    posts: BTreeMap<LineId, Reply>,
    /// Connections for HTTP that nothing runs on.
    idle: Vec<LineId>,
    /// What was heard, and not asked for yet.
    heard: VecDeque<Value>,
    /// The last event of the stream that ended last.
    pub last_event: Option<String>,
    /// The statuses of requests that were answered without a message.
    pub bare: Vec<u16>,
    next: u64,
}

/// An answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer(
    /// The whole message.
    pub Value,
);

impl Answer {
    /// The result; anything else ends the test.
    pub fn result(&self) -> &Value {
        self.0.get("result").unwrap_or_else(|| panic!("no result: {}", self.0))
    }

    /// The error; anything else ends the test.
    pub fn error(&self) -> &Value {
        self.0.get("error").unwrap_or_else(|| panic!("no error: {}", self.0))
    }

    /// The error's code.
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap_or_default()
    }

    /// The text of a tool's result.
    pub fn text(&self) -> &str {
        let content = &self.result()["content"][0]["text"];
        content.as_str().unwrap_or_else(|| panic!("no text: {}", self.0))
    }
}

impl Host {
    /// A host that has not said anything yet.
    pub fn new(net: &mut dyn Net, door: Door, revision: Revision, capabilities: Value) -> Self {
        let line = (!door.is_http()).then(|| net.open(door));
        Self {
            revision,
            door,
            session: None,
            welcome: Value::Null,
            capabilities,
            line,
            unread: Vec::new(),
            posts: BTreeMap::new(),
            idle: Vec::new(),
            heard: VecDeque::new(),
            last_event: None,
            bare: Vec::new(),
            next: 0,
        }
    }

    /// A host that has shaken hands.
    pub fn connect(net: &mut dyn Net, door: Door, revision: Revision, capabilities: Value) -> Self {
        let mut host = Self::new(net, door, revision, capabilities);
        let answer = host.begin(net);
        host.welcome = answer.result().clone();
        if !host.is_modern() {
            assert_eq!(host.welcome["protocolVersion"], revision.as_str());
            host.notify(net, "notifications/initialized", json!({}));
        }
        host
    }

    /// Asks for what begins a conversation.
    pub fn begin(&mut self, net: &mut dyn Net) -> Answer {
        if self.is_modern() {
            return self.call(net, "server/discover", json!({}));
        }
        let params = json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        self.call(net, "initialize", params)
    }

    /// Whether it speaks a modern revision.
    pub fn is_modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Sends a request and gives its id.
    pub fn request(&mut self, net: &mut dyn Net, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.request_as(net, id.clone(), method, params);
        id
    }

    /// Sends a request of this id. The connection that it runs on, if its own.
    pub fn request_as(
        &mut self,
        net: &mut dyn Net,
        id: Value,
        method: &str,
        mut params: Value,
    ) -> Option<LineId> {
        if self.is_modern() {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision.as_str());
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(net, &message)
    }

    /// Sends a notification.
    pub fn notify(&mut self, net: &mut dyn Net, method: &str, params: Value) {
        self.say(net, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request.
    pub fn reply(&mut self, net: &mut dyn Net, request: &Value, result: Value) {
        let id = &request["id"];
        self.say(net, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Sends a message.
    pub fn say(&mut self, net: &mut dyn Net, message: &Value) -> Option<LineId> {
        if let Some(line) = self.line {
            net.write(line, format!("{message}\n").as_bytes());
            return None;
        }
        let mut fields = String::new();
        if self.is_modern() && message.get("id").is_some() {
            let method = message["method"].as_str().unwrap_or_default();
            fields = format!("Mcp-Method: {method}\r\n");
            let params = &message["params"];
            let name = params["name"].as_str().or_else(|| params["uri"].as_str());
            if let Some(name) =
                name.filter(|_| matches!(method, "tools/call" | "prompts/get" | "resources/read"))
            {
                fields = format!("{fields}Mcp-Name: {name}\r\n");
            }
        }
        Some(self.http(net, "POST", &fields, message.to_string().as_bytes()))
    }

    /// Sends an HTTP request.
    pub fn http(&mut self, net: &mut dyn Net, method: &str, fields: &str, body: &[u8]) -> LineId {
        // The gateway may have closed what it found idle.
        self.idle.retain(|line| !net.ended(*line));
        let line = self.idle.pop().unwrap_or_else(|| net.open(self.door));
        let mut head = format!("{method} /mcp HTTP/1.1\r\nHost: localhost:8808\r\n{fields}");
        head.push_str(match method {
            "GET" => "Accept: text/event-stream\r\n",
            _ => "Accept: application/json, text/event-stream\r\n",
        });
        if let Some(session) = &self.session {
            head = format!("{head}Mcp-Session-Id: {session}\r\n");
        }
        if self.is_modern() || self.session.is_some() && self.revision >= Revision::R2025_06_18 {
            head = format!("{head}MCP-Protocol-Version: {}\r\n", self.revision);
        }
        if method == "POST" {
            let length = body.len();
            head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        bytes.extend_from_slice(body);
        self.posts.insert(line, Reply::default());
        net.write(line, &bytes);
        line
    }

    /// Opens the stream on which a legacy session hears what belongs to no
    /// request.
    pub fn listen(&mut self, net: &mut dyn Net) {
        if self.is_modern() || !self.door.is_http() {
            return;
        }
        let line = self.http(net, "GET", "", b"");
        self.until(net, "the stream begins", |host| {
            host.posts.get(&line).is_some_and(|reply| reply.status == 200).then_some(())
        });
    }

    /// The whole reply to an HTTP request whose messages do not matter.
    pub fn status(&mut self, net: &mut dyn Net, line: LineId) -> u16 {
        let mut status = 0;
        while self.posts.contains_key(&line) {
            net.wait(&[line]);
            let (found, _) = self.drain(net, line);
            status = found.unwrap_or(status);
        }
        status
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, net: &mut dyn Net, method: &str, params: Value) -> Answer {
        let id = self.request(net, method, params);
        self.answer(net, &id)
    }

    /// Calls a tool.
    pub fn tool(&mut self, net: &mut dyn Net, name: &str, arguments: Value) -> Answer {
        self.call(net, "tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Waits for the answer to a request.
    pub fn answer(&mut self, net: &mut dyn Net, id: &Value) -> Answer {
        self.until(net, &format!("an answer to {id}"), |host| host.take_answer(id))
    }

    /// Waits for a request or notification.
    pub fn hear(&mut self, net: &mut dyn Net, method: &str) -> Value {
        self.until(net, method, |host| host.take(|message| message["method"] == method))
    }

    /// The answer to a request, if it is there.
    pub fn take_answer(&mut self, id: &Value) -> Option<Answer> {
        self.take(|message| message.get("method").is_none() && message["id"] == *id).map(Answer)
    }

    /// Something that was heard.
    pub fn take(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let at = self.heard.iter().position(wanted)?;
        self.heard.remove(at)
    }

    /// Everything that was heard and nobody has asked for.
    pub fn rest(&self) -> &VecDeque<Value> {
        &self.heard
    }

    fn until<T>(
        &mut self,
        net: &mut dyn Net,
        what: &str,
        mut found: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            let lines = self.lines();
            assert!(
                !lines.is_empty(),
                "everything has ended before {what}; heard: {:?}, statuses: {:?}",
                self.heard,
                self.bare
            );
            net.wait(&lines);
            self.pump(net);
        }
    }

    /// The connections on which something may come.
    pub fn lines(&self) -> Vec<LineId> {
        self.line.into_iter().chain(self.posts.keys().copied()).collect()
    }

    /// Reads what has come.
    pub fn pump(&mut self, net: &mut dyn Net) {
        for line in self.lines() {
            self.drain(net, line);
        }
    }

    /// Reads what has come on one connection: the status, if a reply is
    /// complete, and whether the connection has ended.
    fn drain(&mut self, net: &mut dyn Net, line: LineId) -> (Option<u16>, bool) {
        let bytes = net.read(line);
        let ended = net.ended(line);
        if self.line == Some(line) {
            self.read_lines(&bytes);
            if ended {
                self.line = None;
            }
            return (None, ended);
        }
        let Some(reply) = self.posts.get_mut(&line) else { return (None, ended) };
        let mut messages = reply.receive(&bytes);
        if ended {
            messages.extend(reply.end());
        }
        if let Some(session) = reply.field("Mcp-Session-Id") {
            self.session = Some(session.to_owned());
        }
        let (status, done) = (reply.status, reply.done);
        if let (true, Some(id)) = (done, reply.event_ids.last()) {
            self.last_event = Some(id.clone());
        }
        if done && messages.is_empty() {
            self.bare.push(status);
        }
        self.heard.extend(messages);
        if done || ended {
            self.posts.remove(&line);
        }
        if done && !ended {
            self.idle.push(line);
        }
        ((done || ended).then_some(status), ended)
    }

    fn read_lines(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.unread.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                continue;
            }
            match serde_json::from_slice(&self.unread) {
                Ok(message) => self.heard.push_back(message),
                Err(error) => panic!("{error}: {}", self.unread.escape_ascii()),
            }
            self.unread.clear();
        }
    }

    /// Waits until all responses have come to their ends.
    pub fn settle(&mut self, net: &mut dyn Net) {
        while self.door.is_http() && !self.posts.is_empty() {
            net.wait(&self.lines());
            self.pump(net);
        }
    }

    /// The connection of a host at a door for lines.
    pub fn line(&self) -> LineId {
        self.line.unwrap_or_else(|| panic!("this host has no line"))
    }

    /// Cancels a request as the revision and the door have it; `own` is the
    /// connection that it runs on.
    pub fn cancel(&mut self, net: &mut dyn Net, id: &Value, own: Option<LineId>) {
        match own {
            Some(line) if self.is_modern() => {
                self.posts.remove(&line);
                net.close(line);
            }
            _ => self.notify(net, "notifications/cancelled", json!({"requestId": id})),
        }
    }

    /// One of its connections is gone, without its having been told.
    pub fn lost(&mut self, line: LineId) {
        self.posts.remove(&line);
        self.idle.retain(|idle| *idle != line);
        self.line = self.line.filter(|own| *own != line);
    }

    /// Leaves without a word.
    pub fn vanish(&mut self, net: &mut dyn Net) {
        let lines: Vec<LineId> = self.lines().into_iter().chain(self.idle.drain(..)).collect();
        for line in lines {
            net.close(line);
        }
        self.line = None;
        self.posts.clear();
    }
}
