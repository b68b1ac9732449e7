//! The bridge between the eras: a test for each row of requirements section 4 and each
//! of its columns, `{row}_{column}`. The columns: `ll`, `lm`, `ml`, `mm`, the era of
//! the host and then of the server.

mod calls;
mod life;
mod lists;
mod questions;
mod shapes;
mod subscriptions;
mod telling;
mod wire;

use serde_json::{Map, Value, json};

use super::*;
use crate::client::probe::Protocol;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::{meta, method};

const R1: Revision = Revision::R2024_11_05;
const R2: Revision = Revision::R2025_03_26;
const R3: Revision = Revision::R2025_06_18;
const R4: Revision = Revision::R2025_11_25;
const R5: Revision = Revision::R2026_07_28;

/// The revisions of a host and of a server.
type Column = (Revision, Revision);
const LL: Column = (R4, R4);
const LM: Column = (R4, R5);
const ML: Column = (R5, R4);
const MM: Column = (R5, R5);

/// A host and a server that speak in lines.
struct Bridge {
    world: World,
    /// The host that acts.
    host: ConnId,
    /// The connection to the server that was heard last.
    server: ConnId,
    speaks: Column,
    /// What the host declares.
    can: Value,
    /// What the server declares, and how it introduces itself besides.
    offers: Value,
    introduction: Value,
    requests: u64,
    /// What we listen to for legacy hosts, as the server heard it last.
    listen: Value,
    /// The resources that the server tells nobody about.
    refuses: &'static str,
}

impl Bridge {
    /// A host that can do everything, before a server that offers everything.
    fn open(speaks: Column) -> Self {
        let can = json!({
            "roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
        });
        Self::between(speaks, can)
    }

    /// A host that can do this.
    fn between(speaks: Column, can: Value) -> Self {
        let offers = json!({
            "tools": {"listChanged": true}, "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true}, "logging": {}, "completions": {},
        });
        let mut bridge = Self::closed(speaks, can, offers);
        bridge.begin();
        bridge
    }

    /// The same, before either has said anything.
    fn closed(speaks: Column, can: Value, offers: Value) -> Self {
        let place = Place::Process(Command { program: "server".into(), ..Command::default() });
        Self::before(Server::new("server", place), speaks, can, offers)
    }

    fn before(server: Server, speaks: Column, can: Value, offers: Value) -> Self {
        let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
        let endpoint = server::Config {
            listeners: Vec::from([server::Listener::Ndjson, server::Listener::Http(rules)]),
            ..server::Config::default()
        };
        let protocol = match speaks.1.era() {
            Era::Legacy => Protocol::Legacy,
            Era::Modern => Protocol::Modern,
        };
        let server = Server { protocol, ..server };
        let mut world = World::with(Config::new(server, endpoint));
        let host = world.host();
        let introduction = json!({"serverInfo": {"name": "s", "version": "9"}});
        Self {
            world,
            host,
            server: host,
            speaks,
            can,
            offers,
            introduction,
            requests: 0,
            listen: Value::Null,
            refuses: "",
        }
    }

    /// The host introduces itself, or asks who is there.
    fn begin(&mut self) -> Value {
        let begun = match self.speaks.0.era() {
            Era::Legacy => self.initialize(),
            Era::Modern => {
                self.ask(method::DISCOVER, json!({}));
                self.introduce();
                self.down()
            }
        };
        begun["result"].clone()
    }

    fn initialize(&mut self) -> Value {
        let info = json!({"name": "h", "version": "1"});
        let revision = self.speaks.0.to_string();
        let params =
            json!({"protocolVersion": revision, "capabilities": self.can, "clientInfo": info});
        self.ask(method::INITIALIZE, params);
        self.introduce();
        let welcome = self.down();
        self.notify(method::INITIALIZED, json!({}));
        self.introduce();
        welcome
    }

    /// Another host of the same kind, which acts from now on.
    fn another(&mut self) -> ConnId {
        self.host = self.world.host();
        if self.speaks.0.era() == Era::Legacy {
            self.initialize();
        }
        self.host
    }

    /// A request of the host: its id.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = json!(format!("host/{}", self.requests));
        let params = self.signed(params);
        self.host_says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Parameters as the host says them.
    fn signed(&self, mut params: Value) -> Value {
        if self.speaks.0.era() == Era::Modern {
            let own = json!({
                meta::PROTOCOL_VERSION: self.speaks.0.to_string(),
                meta::CLIENT_INFO: {"name": "h", "version": "1"},
                meta::CLIENT_CAPABILITIES: self.can,
            });
            let all = params.as_object_mut().unwrap().entry("_meta").or_insert(json!({}));
            all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        }
        params
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.host_says(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn host_says(&mut self, message: &Value) {
        self.world.say(self.host, &message.to_string());
    }

    /// The host answers a question.
    fn reply(&mut self, question: &Value, result: Value) {
        let id = &question["id"];
        self.host_says(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// The server introduces itself on each connection that asks it to, and tells
    /// those who listen for legacy hosts that it will tell them.
    fn introduce(&mut self) {
        for conn in self.world.spawned.clone() {
            while let Some(line) = self.world.lines.get(&conn).and_then(|lines| lines.first()) {
                let message: Value = serde_json::from_str(line).unwrap();
                let mut own = self.introduction.clone();
                own["capabilities"] = self.offers.clone();
                match message["method"].as_str() {
                    Some(method::INITIALIZE) => {
                        own["protocolVersion"] = json!(self.speaks.1.to_string())
                    }
                    Some(method::DISCOVER) => {
                        own["supportedVersions"] = json!([self.speaks.1.to_string()]);
                        own["resultType"] = json!("complete");
                    }
                    Some(method::INITIALIZED) => own = Value::Null,
                    Some(method::LISTEN) if self.speaks.0.era() == Era::Legacy => {
                        self.world.hear(conn);
                        self.server = conn;
                        self.acknowledge(message);
                        continue;
                    }
                    _ => break,
                }
                self.world.hear(conn);
                self.server = conn;
                if !own.is_null() {
                    self.answer(&message, own);
                }
            }
        }
    }

    fn acknowledge(&mut self, listen: Value) {
        let mut granted = listen["params"]["notifications"].clone();
        if let Some(uris) = granted.get_mut("resourceSubscriptions") {
            uris.as_array_mut().unwrap().retain(|uri| uri != self.refuses);
        }
        self.tell(method::ACKNOWLEDGED, tagged(&listen, json!({"notifications": granted})));
        self.listen = listen;
    }

    /// The next thing that the server hears, on whatever connection.
    fn up(&mut self) -> Value {
        self.introduce();
        let mut all = self.world.spawned.iter().copied();
        let conn =
            all.find(|conn| self.world.lines.get(conn).is_some_and(|lines| !lines.is_empty()));
        self.server = conn.expect("the server heard nothing");
        serde_json::from_str(&self.world.hear(self.server)).unwrap()
    }

    /// The same, which is a request or notification of this method.
    fn up_is(&mut self, method: &str) -> Value {
        let heard = self.up();
        assert_eq!(heard["method"], method, "{heard}");
        heard
    }

    /// What the host hears next.
    fn down(&mut self) -> Value {
        self.introduce();
        serde_json::from_str(&self.world.hear(self.host)).unwrap()
    }

    fn down_is(&mut self, method: &str) -> Value {
        let heard = self.down();
        assert_eq!(heard["method"], method, "{heard}");
        heard
    }

    /// The host hears an error of this code next.
    fn refused(&mut self, code: i32) -> Value {
        let heard = self.down();
        assert_eq!(heard["error"]["code"], code, "{heard}");
        self.quiet();
        heard
    }

    fn server_says(&mut self, message: &Value) {
        self.world.say(self.server, &message.to_string());
    }

    fn answer(&mut self, asked: &Value, result: Value) {
        let id = &asked["id"];
        self.server_says(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn fail(&mut self, asked: &Value, error: Value) {
        let id = &asked["id"];
        self.server_says(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// The server tells something.
    fn tell(&mut self, method: &str, params: Value) {
        self.server_says(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The server asks, as one of a legacy revision does.
    fn question(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = json!(format!("server/{}", self.requests));
        self.server_says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Nobody has heard anything else.
    fn quiet(&mut self) {
        self.introduce();
        for (conn, lines) in &self.world.lines {
            assert!(lines.is_empty(), "{conn:?} heard {lines:?}");
        }
    }

    /// A request and its answer: what the server was asked, and what the host was told.
    fn relay(&mut self, method: &str, params: Value, result: Value) -> (Value, Value) {
        let id = self.ask(method, params);
        let asked = self.up_is(method);
        self.answer(&asked, result);
        let told = self.down();
        assert_eq!(told["id"], id, "{told}");
        (asked["params"].clone(), told["result"].clone())
    }

    /// A call, and what the server was asked.
    fn call(&mut self, name: &str) -> (Value, Value) {
        let id = self.ask(method::TOOLS_CALL, json!({"name": name, "arguments": {}}));
        (id, self.up_is(method::TOOLS_CALL))
    }

    /// A POST on a connection of its own, which acts from now on. A modern host's says
    /// what it must in its header.
    fn post(&mut self, method: &str, params: Value, fields: &[&str]) -> ConnId {
        let params = self.signed(params);
        self.requests += 1;
        let id = self.requests;
        let body =
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let mut head = String::from(
            "POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        );
        if self.speaks.0.era() == Era::Modern {
            head += &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                head += &format!("Mcp-Name: {name}\r\n");
            }
        }
        for field in fields {
            head += &format!("{field}\r\n");
        }
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        self.world.hosts += 1;
        self.host = ConnId::accepted(self.world.hosts);
        let listener = ListenerId(1);
        self.world.handle(Input::Accepted { conn: self.host, listener, from: None });
        self.world.handle(Input::Received { conn: self.host, bytes: request.as_bytes() });
        self.host
    }

    /// What the host has got over HTTP: the status, the head, and what is a message of
    /// the rest.
    fn response(&mut self) -> (u16, String, Vec<Value>) {
        let lines = self.world.lines.remove(&self.host).unwrap_or_default();
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let end = lines.iter().position(String::is_empty).unwrap();
        let bodies = lines[end..].iter().map(|line| line.trim_start_matches("data:").trim());
        let messages = bodies.filter_map(|body| serde_json::from_str(body).ok());
        (status, lines[..end].join("\n"), messages.filter(Value::is_object).collect())
    }

    /// Time passes.
    fn pass(&mut self, time: Duration) {
        self.world.now = self.world.now + time;
        self.world.handle(Input::Tick);
    }
}

/// The members of a result but for `_meta`.
fn bare(result: &Value) -> Value {
    let members = result.as_object().unwrap().iter().filter(|(name, _)| *name != "_meta");
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// A message that a modern server marks as one of a subscription.
fn tagged(listen: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({meta::SUBSCRIPTION_ID: listen["id"]});
    params
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The same, as a modern server says it.
fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result
}
