//! Doing what a script says, and looking whether all is as it must be.

use std::collections::BTreeSet;
use std::time::Duration;

use mcpx_core::protocol::revision::Revision;
use serde_json::json;

use super::guest::Guest;
use super::scene::{self, Kind};
use super::script::{Act, Deed, Script};
use crate::net::{Door, LineId, Net as _};
use crate::sim::{NodeId, Sim};

const DOORS: [Door; 4] = [Door::Http, Door::HttpUnix, Door::Lines, Door::LinesUnix];

/// Hosts at a time.
const MOST: usize = 6;
/// Calls of one host that run at a time.
const WAITS: usize = 20;
/// Longer than anything is kept for those who went away.
const AGES: Duration = Duration::from_secs(48 * 3600);

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Played {
    /// A number that depends on every byte and every moment.
    pub digest: u64,
    /// Things that happened.
    pub steps: u64,
}

/// Plays a script. Panics if anything is not as it must be.
pub fn play(script: &Script) -> Played {
    let mut party = Party::new(script);
    for deed in &script.deeds {
        party.act(*deed);
    }
    party.end()
}

struct Party {
    sim: Sim,
    /// What stands before the names of each server's tools.
    prefixes: Vec<String>,
    /// Servers that do not end when hosts do, and processes that may stay.
    elsewhere: usize,
    lasting: usize,
    guests: Vec<Guest>,
    came: usize,
    /// Connections of those who do not speak MCP.
    strangers: Vec<LineId>,
    /// Whether errors are to be expected: something was broken on purpose.
    amiss: bool,
}

impl Party {
    fn new(script: &Script) -> Self {
        let kinds: Vec<Kind> = script.servers.iter().map(|(kind, _)| *kind).collect();
        let prefixes = match kinds.len() {
            1 => vec![String::new()],
            many => (0..many).map(|n| format!("s{n}__")).collect(),
        };
        Self {
            sim: scene::build(script),
            prefixes,
            elsewhere: kinds.iter().filter(|kind| **kind == Kind::Url).count(),
            lasting: kinds.iter().filter(|kind| kind.lasts()).count(),
            guests: Vec::new(),
            came: 0,
            strangers: Vec::new(),
            amiss: script.is_troubled(),
        }
    }

    fn act(&mut self, Deed { act, numbers }: Deed) {
        let [a, b, c] = numbers.map(|number| number as usize);
        if act == Act::Host {
            return self.welcome(a, b);
        }
        match act {
            Act::Hear => return self.hear(),
            Act::Settle => return self.everybody(),
            Act::Kill => return self.kill(a),
            Act::Reset => return self.reset(a),
            Act::Jump => return self.jump(a),
            Act::Stranger => return self.stranger(a, b),
            _ => {}
        }
        let Some(who) = a.checked_rem(self.guests.len()) else { return };
        match act {
            Act::Ask => self.ask(who, b, c),
            Act::Subscribe if self.guests[who].subscribed.is_none() => {
                self.guests[who].subscribe(&mut self.sim, "demo://counter");
            }
            Act::Cancel => {
                // A connection serves one request after another: what is answered must
                // not be taken for what runs on it now.
                self.hear();
                let guest = &mut self.guests[who];
                if let Some(at) = b.checked_rem(guest.waits.len()) {
                    guest.cancel(&mut self.sim, at);
                }
            }
            Act::Nap => {
                let lines = self.guests[who].host.lines();
                lines.iter().for_each(|line| self.sim.hold(*line, true));
                self.sim.world.pass(Duration::from_micros(b as u64 * 200));
                lines.iter().for_each(|line| self.sim.hold(*line, false));
                self.hear();
            }
            Act::Vanish => {
                let mut guest = self.guests.swap_remove(who);
                guest.host.vanish(&mut self.sim);
            }
            Act::Cut => {
                let lines = self.guests[who].host.lines();
                if let Some(at) = b.checked_rem(lines.len()) {
                    self.guests[who].cut(&mut self.sim, lines[at]);
                }
                self.leave_if_alone(who);
            }
            Act::Finish => {
                for line in self.guests[who].host.lines() {
                    self.sim.finish(line);
                }
                let mut guest = self.guests.swap_remove(who);
                self.sim.world.pass(Duration::from_micros(b as u64));
                guest.host.vanish(&mut self.sim);
            }
            _ => {}
        }
    }

    fn welcome(&mut self, door: usize, revision: usize) {
        if self.guests.len() >= MOST {
            return self.hear();
        }
        let door = DOORS[door % DOORS.len()];
        let revision = Revision::ALL[revision % Revision::ALL.len()];
        self.came += 1;
        let guest = Guest::come(&mut self.sim, self.came, door, revision, self.amiss);
        self.guests.extend(guest);
    }

    fn ask(&mut self, who: usize, server: usize, what: usize) {
        let guest = &mut self.guests[who];
        if guest.waits.len() > WAITS {
            return self.hear();
        }
        let (name, number) = (guest.name, what / 10);
        let asked = format!("{name}/ says {number}");
        let (tool, arguments, text) = match what % 10 {
            0..=5 => ("echo", json!({"message": asked}), format!("Echo: {asked}")),
            6 => ("think", json!({"question": asked}), format!("Because {asked}")),
            7..=8 => {
                let (to, delay) = (1 + number % 8, number % 40);
                let arguments = json!({"to": to, "delay_ms": delay});
                ("count", arguments, format!("Counted to {to}"))
            }
            _ => {
                let message = format!("{asked}{}", "x".repeat(number * 1000));
                ("echo", json!({"message": message}), format!("Echo: {message}"))
            }
        };
        let tool = format!("{}{tool}", self.prefixes[server % self.prefixes.len()]);
        guest.call(&mut self.sim, &tool, arguments, text);
    }

    /// A server dies in the middle of everything.
    fn kill(&mut self, which: usize) {
        let children = self.sim.world.children(self.sim.gateway);
        let Some(at) = which.checked_rem(children.len()) else { return };
        self.amiss = true;
        let child = children[at];
        self.sim.world.kill(child);
        self.sim.until("its end is known", |sim| !sim.world.children(sim.gateway).contains(&child));
    }

    /// A connection between the gateway and a server is reset.
    fn reset(&mut self, which: usize) {
        let gateway: NodeId = self.sim.gateway;
        let wires = self.sim.world.requested(gateway);
        let Some(at) = which.checked_rem(wires.len()) else { return };
        self.amiss = true;
        self.sim.world.reset(wires[at]);
    }

    /// Everything stands still for a while, and is late then.
    fn jump(&mut self, seconds: usize) {
        self.amiss = true;
        self.sim.world.jump(Duration::from_secs(seconds as u64 * 5));
        self.hear();
    }

    fn stranger(&mut self, door: usize, what: usize) {
        let said: [&[u8]; 12] = [
            b"",
            b"GET / HTTP/1.1\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nContent-Le",
            b"POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nContent-Length: 99999999999\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"a\"",
            b"POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nContent-Type: application/json\r\nMcp-Session-Id: nobody\r\nContent-Length: 46\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n",
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},7]\n",
            b"\xff\xfe\x00\n\n\r\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"1999-01-01\",\"capabilities\":{},\"clientInfo\":{\"name\":\"h\",\"version\":\"1\"}}}\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n",
        ];
        let line = self.sim.open(DOORS[door % DOORS.len()]);
        self.sim.write(line, said[what % said.len()]);
        if what >= 500 {
            self.sim.finish(line);
        }
        self.strangers.push(line);
    }

    /// Everybody hears what there is.
    fn hear(&mut self) {
        for guest in &mut self.guests {
            guest.host.pump(&mut self.sim);
            guest.listen(&mut self.sim, self.amiss);
            guest.forget_lost(self.amiss);
        }
        self.drop_alone();
    }

    /// Hosts at doors for lines whose connection has ended are gone.
    fn drop_alone(&mut self) {
        for who in (0..self.guests.len()).rev() {
            self.leave_if_alone(who);
        }
    }

    fn leave_if_alone(&mut self, who: usize) {
        let guest = &self.guests[who];
        if !guest.host.door.is_http() && guest.host.lines().is_empty() {
            self.guests.swap_remove(who);
        }
    }

    /// Everybody waits until everything is answered.
    fn everybody(&mut self) {
        for guest in &mut self.guests {
            guest.host.pump(&mut self.sim);
            guest.listen(&mut self.sim, self.amiss);
            guest.forget_lost(self.amiss);
            while !guest.waits.is_empty() {
                let lines = guest.host.lines();
                if lines.is_empty() {
                    let waits = guest.waits.keys();
                    assert!(self.amiss, "{} was hung up on: {waits:?}", guest.name);
                    break;
                }
                self.sim.wait(&lines);
                guest.host.pump(&mut self.sim);
                guest.listen(&mut self.sim, self.amiss);
                guest.forget_lost(self.amiss);
            }
        }
        self.sim.world.pass(Duration::from_secs(2));
        self.hear();
    }

    /// All go, and nothing is left.
    fn end(mut self) -> Played {
        self.everybody();
        for guest in &mut self.guests {
            guest.host.vanish(&mut self.sim);
        }
        for line in std::mem::take(&mut self.strangers) {
            self.sim.close(line);
        }
        self.sim.world.pass(AGES);
        let kept = self.sim.world.running() - self.elsewhere - 1;
        assert!(kept <= self.lasting, "{kept} processes are left");
        assert_eq!(self.sim.world.remembered(self.sim.gateway), BTreeSet::new());
        self.sim.stop();
        assert_eq!(self.sim.over(), 0);
        let elsewhere = self.elsewhere;
        self.sim.until("all processes end", |sim| sim.world.running() == elsewhere);
        Played { digest: self.sim.world.digest(), steps: self.sim.world.steps() }
    }
}
