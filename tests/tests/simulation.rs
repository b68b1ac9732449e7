//! Many hosts that do whatever they like, while servers die and time jumps.
//!
//! Each run is decided by one seed: who comes, what they ask, in which pieces it
//! arrives. Whatever happens, every request is answered once, to the one who
//! made it, and nothing is left when all have gone. `SEEDS=FIRST..END` plays
//! others than the usual ones; `TRACE=1` tells everything that happens.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpx_core::client::probe::Protocol;
use mcpx_core::protocol::revision::Revision;
use mcpx_tests::host::Host;
use mcpx_tests::net::{Door, LineId, Net, Upstream};
use mcpx_tests::sim::{Rng, Sim};
use serde_json::{Value, json};

/// Runs, unless told otherwise.
const RUNS: u64 = 150;

/// What hosts do in one run.
const DEEDS: usize = 120;

/// The longest text that is asked for.
const LONG: usize = 100_000;

/// Longer than anything is kept for those who went away.
const AGES: Duration = Duration::from_secs(48 * 3600);

/// What servers may be taken to speak.
const PROTOCOLS: [Protocol; 4] =
    [Protocol::Auto, Protocol::Modern, Protocol::Legacy, Protocol::Exactly(Revision::R2025_03_26)];

const DOORS: [Door; 4] = [Door::Http, Door::HttpUnix, Door::Lines, Door::LinesUnix];

/// A host, and what it waits for.
struct Guest {
    name: usize,
    host: Host,
    asked: usize,
    waits: BTreeMap<String, Wait>,
    /// Requests that must not be answered any more.
    through: BTreeSet<String>,
    /// What it hears of a resource by: a listen, or nothing more.
    subscribed: Option<Option<String>>,
}

struct Wait {
    own: Option<LineId>,
    params: Value,
    /// The text that it must be answered with.
    text: String,
    /// The last progress that was heard.
    progress: u64,
}

struct Party {
    sim: Sim,
    /// What stands before the names of each server's tools.
    prefixes: Vec<String>,
    /// Servers that do not end when hosts do, and processes that may stay.
    elsewhere: usize,
    lasting: usize,
    chance: Rng,
    guests: Vec<Guest>,
    came: usize,
    seed: u64,
}

impl Party {
    fn new(seed: u64) -> Self {
        let mut chance = Rng::new(!seed);
        let kinds = [Upstream::Demo, Upstream::Child, Upstream::Url];
        let (sim, servers) = match chance.index(6) {
            one @ 0..3 => (Sim::new(seed, kinds[one]), vec![kinds[one]]),
            _ => {
                let many = 1 + chance.index(4);
                let servers: Vec<(Upstream, Protocol)> = (0..many)
                    .map(|_| (kinds[1 + chance.index(2)], PROTOCOLS[chance.index(4)]))
                    .collect();
                let sim = Sim::among(seed, &servers);
                (sim, servers.into_iter().map(|(upstream, _)| upstream).collect())
            }
        };
        let prefixes = match servers.len() {
            1 => vec![String::new()],
            many => (0..many).map(|n| format!("s{n}__")).collect(),
        };
        let count = |kind| servers.iter().filter(|upstream| **upstream == kind).count();
        // One that all hosts of its era share may stay.
        let (elsewhere, lasting) = (count(Upstream::Url), count(Upstream::Child));
        Self { sim, prefixes, elsewhere, lasting, chance, guests: Vec::new(), came: 0, seed }
    }

    fn welcome(&mut self) {
        let door = DOORS[self.chance.index(DOORS.len())];
        let revision = Revision::ALL[self.chance.index(Revision::ALL.len())];
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let host = Host::connect(&mut self.sim, door, revision, capabilities);
        self.came += 1;
        let (waits, through) = (BTreeMap::new(), BTreeSet::new());
        let subscribed = None;
        self.guests.push(Guest { name: self.came, host, asked: 0, waits, through, subscribed });
    }

    /// Somebody does something.
    fn deed(&mut self) {
        let most = 1 + self.chance.index(6);
        if self.guests.len() < most {
            return self.welcome();
        }
        let who = self.chance.index(self.guests.len());
        match self.chance.below(100) {
            0..=49 => self.ask(who),
            50..=54 => self.subscribe(who),
            55..=69 => self.hear(),
            70..=79 => self.cancel(who),
            80..=91 => {
                // Somebody does not even read meanwhile.
                let lines = self.guests[who].host.lines();
                let time = self.chance.below(200_000);
                lines.iter().for_each(|line| self.sim.hold(*line, true));
                self.sim.world.pass(Duration::from_micros(time));
                lines.iter().for_each(|line| self.sim.hold(*line, false));
                self.hear();
            }
            92..=95 => {
                let mut guest = self.guests.swap_remove(who);
                guest.host.vanish(&mut self.sim);
            }
            96..=97 => self.everybody(),
            _ => self.kill(),
        }
    }

    fn ask(&mut self, who: usize) {
        let guest = &mut self.guests[who];
        if guest.waits.len() > 20 {
            return self.hear();
        }
        let id = guest.id();
        let (tool, arguments, text) = match self.chance.below(10) {
            0..=5 => {
                let message = format!("{id} says {}", self.chance.number());
                ("echo", json!({"message": message}), format!("Echo: {message}"))
            }
            6 => ("think", json!({"question": id}), format!("Because {id}")),
            7..=8 => {
                let to = 1 + self.chance.below(8);
                let delay = self.chance.below(40);
                let arguments = json!({"to": to, "delay_ms": delay});
                ("count", arguments, format!("Counted to {to}"))
            }
            _ => {
                let message = format!("{id}{}", "x".repeat(self.chance.index(LONG)));
                ("echo", json!({"message": message}), format!("Echo: {message}"))
            }
        };
        let tool = format!("{}{tool}", self.prefixes[self.chance.index(self.prefixes.len())]);
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        guest.request(&mut self.sim, id, params, text);
    }

    /// Somebody wants to hear of a resource.
    fn subscribe(&mut self, who: usize) {
        let guest = &mut self.guests[who];
        if guest.subscribed.is_some() {
            return;
        }
        let id = guest.id();
        let uri = "demo://counter";
        if guest.host.is_modern() {
            let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [uri]});
            let params = json!({"notifications": wanted});
            guest.host.request_as(&mut self.sim, json!(id), "subscriptions/listen", params);
            guest.subscribed = Some(Some(id));
        } else {
            let method = "resources/subscribe";
            let own = guest.host.request_as(&mut self.sim, json!(id), method, json!({"uri": uri}));
            guest.subscribed = Some(None);
            let wait = Wait { own, params: json!({}), text: String::new(), progress: 0 };
            guest.waits.insert(id, wait);
        }
    }

    fn cancel(&mut self, who: usize) {
        // A connection serves one request after another: what is answered must not
        // be taken for what runs on it now.
        self.hear();
        let guest = &mut self.guests[who];
        let at = self.chance.index(guest.waits.len());
        let Some(id) = guest.waits.keys().nth(at).cloned() else { return };
        let Some(wait) = guest.waits.remove(&id) else { return };
        guest.host.cancel(&mut self.sim, &json!(id), wait.own);
        guest.through.insert(id);
    }

    /// A server dies in the middle of everything. Those who waited are told, and
    /// start again.
    fn kill(&mut self) {
        let children = self.sim.world.children(self.sim.gateway);
        if children.is_empty() {
            return;
        }
        let child = children[self.chance.index(children.len())];
        self.sim.world.kill(child);
        self.wait(true);
        self.sim.until("its end is known", |sim| !sim.world.children(sim.gateway).contains(&child));
        for mut guest in std::mem::take(&mut self.guests) {
            guest.host.vanish(&mut self.sim);
        }
    }

    /// Everybody hears what there is.
    fn hear(&mut self) {
        for guest in &mut self.guests {
            guest.host.pump(&mut self.sim);
            guest.listen(&mut self.sim, false);
        }
    }

    /// Everybody waits until everything is answered.
    fn everybody(&mut self) {
        self.wait(false);
        self.sim.world.pass(Duration::from_secs(2));
        self.hear();
    }

    fn wait(&mut self, fails: bool) {
        for guest in &mut self.guests {
            guest.host.pump(&mut self.sim);
            guest.listen(&mut self.sim, fails);
            while !guest.waits.is_empty() {
                let lines = guest.host.lines();
                if lines.is_empty() {
                    assert!(fails, "{} was hung up on: {:?}", guest.name, guest.waits.keys());
                    break;
                }
                self.sim.wait(&lines);
                guest.host.pump(&mut self.sim);
                guest.listen(&mut self.sim, fails);
                guest.cut(fails);
            }
        }
    }

    /// All go, and nothing is left.
    fn end(mut self) -> u64 {
        self.everybody();
        for guest in &mut self.guests {
            guest.host.vanish(&mut self.sim);
        }
        self.sim.world.pass(AGES);
        let kept = self.sim.world.running() - self.elsewhere - 1;
        assert!(kept <= self.lasting, "{kept} processes are left");
        assert_eq!(self.sim.world.remembered(self.sim.gateway), BTreeSet::new());
        self.sim.stop();
        assert_eq!(self.sim.over(), 0);
        let elsewhere = self.elsewhere;
        self.sim.until("all processes end", |sim| sim.world.running() == elsewhere);
        self.sim.world.digest()
    }
}

impl Guest {
    fn id(&mut self) -> String {
        self.asked += 1;
        format!("{}/{}", self.name, self.asked)
    }

    fn request(&mut self, sim: &mut Sim, id: String, params: Value, text: String) {
        let own = self.host.request_as(sim, json!(id), "tools/call", params.clone());
        self.waits.insert(id, Wait { own, params, text, progress: 0 });
    }

    /// Takes in what its host has heard.
    fn listen(&mut self, sim: &mut Sim, fails: bool) {
        while let Some(message) = self.host.take(|_| true) {
            if message.get("method").is_some() {
                self.told(sim, &message);
                continue;
            }
            lawful(self.host.revision, &message);
            let Some(id) = message["id"].as_str() else {
                assert!(fails, "{}: {message}", self.name);
                continue;
            };
            if self.subscribed.as_ref().is_some_and(|it| it.as_deref() == Some(id)) {
                assert!(fails && message.get("error").is_some(), "{}: {message}", self.name);
                self.subscribed = None;
                continue;
            }
            let Some(wait) = self.waits.remove(id) else {
                // What was cancelled may have been answered already: once.
                assert!(self.through.remove(id), "{} has not asked: {message}", self.name);
                continue;
            };
            let result = &message["result"];
            if wait.text.is_empty() {
                // It was no call.
                assert!(fails || *result == json!({}), "{}: {message}", self.name);
            } else if message.get("error").is_some() {
                assert!(fails, "{}: {message}", self.name);
            } else if result["resultType"] == "input_required" {
                self.go_on(sim, wait, result);
            } else if result["isError"] == true {
                assert!(fails, "{}: {message}", self.name);
            } else {
                assert_eq!(result["content"][0]["text"], wait.text, "{}", self.name);
            }
        }
    }

    /// Asks again, with the answers to what the server wants to know.
    fn go_on(&mut self, sim: &mut Sim, wait: Wait, result: &Value) {
        let mut params = wait.params;
        let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        params["requestState"] = result["requestState"].clone();
        params["inputResponses"] = json!({key: think(question)});
        let id = self.id();
        params["_meta"]["progressToken"] = json!(id);
        self.request(sim, id, params, wait.text);
    }

    /// A question, or news.
    fn told(&mut self, sim: &mut Sim, message: &Value) {
        let method = message["method"].as_str().unwrap();
        lawful(self.host.revision, message);
        if method != "sampling/createMessage" {
            return self.notice(method, message);
        }
        let whose = message["params"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(whose.starts_with(&format!("{}/", self.name)), "{}: {message}", self.name);
        self.host.reply(sim, message, think(message));
    }

    fn notice(&mut self, method: &str, message: &Value) {
        if method == "notifications/resources/updated" {
            let listen = self.subscribed.clone().unwrap_or_else(|| panic!("{message}"));
            let id = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_str();
            return assert_eq!(id.map(str::to_owned), listen, "{}", self.name);
        }
        if method != "notifications/progress" {
            return assert!(method.starts_with("notifications/"), "{}: {message}", self.name);
        }
        let token = message["params"]["progressToken"].as_str().unwrap();
        let Some(wait) = self.waits.get_mut(token) else {
            return assert!(self.through.contains(token), "{}: {message}", self.name);
        };
        let progress = message["params"]["progress"].as_u64().unwrap();
        assert!(progress > wait.progress, "{}: {message}", self.name);
        wait.progress = progress;
    }

    /// Requests whose connections have ended without an answer.
    fn cut(&mut self, fails: bool) {
        if !self.host.door.is_http() {
            return;
        }
        let lines = self.host.lines();
        let name = self.name;
        self.waits.retain(|id, wait| {
            let there = wait.own.is_none_or(|own| lines.contains(&own));
            assert!(there || fails, "{name} got no answer to {id}");
            there
        });
    }
}

/// Nothing is said to a host that its revision does not know.
fn lawful(revision: Revision, message: &Value) {
    let modern = revision == Revision::R2026_07_28;
    let known: &[&str] = match (modern, message.get("id").is_some()) {
        (_, true) if message.get("method").is_none() => {
            let result = &message["result"];
            let typed = result.get("resultType").is_some();
            let lasts = result.get("ttlMs").is_some();
            let good = if modern { result.is_null() || typed } else { !typed && !lasts };
            return assert!(good, "{revision}: {message}");
        }
        (true, true) => &[],
        (false, true) => &["ping", "sampling/createMessage", "roots/list", "elicitation/create"],
        (true, false) => &[
            "notifications/progress",
            "notifications/message",
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ],
        (false, false) => &[
            "notifications/progress",
            "notifications/message",
            "notifications/cancelled",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ],
    };
    let method = message["method"].as_str().unwrap_or_default();
    assert!(known.contains(&method), "{revision}: {message}");
    let told = !matches!(method, "notifications/progress" | "notifications/message");
    let tag = message["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId");
    assert_eq!(tag.is_some(), modern && told, "{revision}: {message}");
}

/// What a host's model says to a question.
fn think(request: &Value) -> Value {
    let question = request["params"]["messages"][0]["content"]["text"].as_str().unwrap();
    let content = json!({"type": "text", "text": format!("Because {question}")});
    json!({"role": "assistant", "model": "m", "content": content})
}

fn play(seed: u64) -> u64 {
    struct Playing(u64);
    impl Drop for Playing {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("it failed with SEEDS={}..{}", self.0, self.0 + 1);
            }
        }
    }
    let mut party = Party::new(seed);
    let _playing = Playing(party.seed);
    for _ in 0..DEEDS {
        party.deed();
    }
    party.end()
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(told) = std::env::var("SEEDS") else { return 1..1 + RUNS };
    let (first, end) = told.split_once("..").unwrap();
    first.parse().unwrap()..end.parse().unwrap()
}

#[test]
fn whatever_happens_every_request_is_answered_once() {
    for seed in seeds() {
        play(seed);
    }
}

#[test]
fn a_seed_repeats_itself() {
    for seed in seeds().take(3) {
        assert_eq!(play(seed), play(seed), "seed {seed}");
    }
}
