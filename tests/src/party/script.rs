//! What happens in one run: made by chance, or read from text.

use std::fmt;
use std::str::FromStr;

use mcpx_core::client::probe::Protocol;
use mcpx_core::protocol::revision::Revision;

use super::scene::Kind;
use crate::sim::Rng;

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// Decides in which pieces, how fast and in what order everything happens.
    pub seed: u64,
    /// The servers, and what they are taken to speak.
    pub(super) servers: Vec<(Kind, Protocol)>,
    /// What is done, in turn.
    pub deeds: Vec<Deed>,
}

/// Something that is done. What the numbers mean depends on the act; each is taken
/// modulo what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deed {
    /// What.
    pub act: Act,
    /// How.
    pub numbers: [u32; 3],
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// A host comes: the door, the revision.
    Host,
    /// Somebody calls a tool: who, of which server, what.
    Ask,
    /// Somebody wants to hear of a resource: who.
    Subscribe,
    /// Everybody hears what there is.
    Hear,
    /// Somebody cancels a call: who, which.
    Cancel,
    /// Somebody does not read for a while: who, how long.
    Nap,
    /// Somebody leaves without a word: who.
    Vanish,
    /// Everybody waits until everything is answered.
    Settle,
    /// A process of a server is killed: which.
    Kill,
    /// A connection to a server at a URL is reset: which.
    Reset,
    /// A connection of a host is cut: whose, which.
    Cut,
    /// A host says that it has no more to say: who.
    Finish,
    /// Time passes at once, as when a machine sleeps: seconds.
    Jump,
    /// Somebody comes who does not speak MCP: the door, what it says.
    Stranger,
}

const ACTS: [(Act, &str); 14] = [
    (Act::Host, "host"),
    (Act::Ask, "ask"),
    (Act::Subscribe, "subscribe"),
    (Act::Hear, "hear"),
    (Act::Cancel, "cancel"),
    (Act::Nap, "nap"),
    (Act::Vanish, "vanish"),
    (Act::Settle, "settle"),
    (Act::Kill, "kill"),
    (Act::Reset, "reset"),
    (Act::Cut, "cut"),
    (Act::Finish, "finish"),
    (Act::Jump, "jump"),
    (Act::Stranger, "stranger"),
];

/// What kind of runs are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// Everybody behaves; now and then a server is killed.
    Calm,
    /// Connections break, processes die, time jumps.
    Faults,
    /// Servers with bad manners, and strangers.
    Wild,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Calm, Self::Faults, Self::Wild];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Faults => "faults",
            Self::Wild => "wild",
        }
    }

    /// How often each act is done, in a thousand.
    fn weights(self) -> &'static [(Act, u64)] {
        match self {
            Self::Calm => &[
                (Act::Ask, 500),
                (Act::Subscribe, 50),
                (Act::Hear, 150),
                (Act::Cancel, 100),
                (Act::Nap, 120),
                (Act::Vanish, 40),
                (Act::Settle, 20),
                (Act::Kill, 20),
            ],
            Self::Faults | Self::Wild => &[
                (Act::Ask, 430),
                (Act::Subscribe, 50),
                (Act::Hear, 100),
                (Act::Cancel, 90),
                (Act::Nap, 90),
                (Act::Vanish, 40),
                (Act::Settle, 20),
                (Act::Kill, 30),
                (Act::Reset, 30),
                (Act::Cut, 40),
                (Act::Finish, 20),
                (Act::Jump, 20),
                (Act::Stranger, 40),
            ],
        }
    }
}

const PROTOCOLS: [Protocol; 4] =
    [Protocol::Auto, Protocol::Modern, Protocol::Legacy, Protocol::Exactly(Revision::R2025_03_26)];

impl Script {
    /// A run of so many deeds.
    pub fn of(seed: u64, scenario: Scenario, deeds: usize) -> Self {
        let mut chance = Rng::new(!seed);
        let servers = match (scenario, chance.index(6)) {
            (Scenario::Wild, few) => {
                let wild = (0..=few / 2).map(|_| {
                    let kinds = [Kind::WildLegacy, Kind::WildModern, Kind::Child];
                    (kinds[chance.index(3)], PROTOCOLS[chance.index(2) * 2])
                });
                wild.map(|(kind, protocol)| match kind {
                    // It must be able to speak what it is taken to.
                    Kind::WildModern => (kind, Protocol::Auto),
                    _ => (kind, protocol),
                })
                .collect()
            }
            (_, 0) => vec![(Kind::Demo, Protocol::Auto)],
            (_, 1) => vec![(Kind::Child, Protocol::Auto)],
            (_, 2) => vec![(Kind::Url, Protocol::Auto)],
            _ => {
                let many = 1 + chance.index(4);
                let kinds = [Kind::Child, Kind::Url];
                (0..many).map(|_| (kinds[chance.index(2)], PROTOCOLS[chance.index(4)])).collect()
            }
        };
        // Somebody must be there first.
        let mut all = vec![Deed { act: Act::Host, numbers: numbers(&mut chance) }];
        while all.len() < deeds {
            let hosts = all.iter().filter(|deed| deed.act == Act::Host).count();
            let act = match chance.index(8 + hosts * 4) {
                0..4 => Act::Host,
                _ => pick(scenario.weights(), &mut chance),
            };
            all.push(Deed { act, numbers: numbers(&mut chance) });
        }
        Self { seed, servers, deeds: all }
    }

    /// Whether anything may get lost in it without anybody's noticing: it is given up
    /// then after a while.
    pub(super) fn is_troubled(&self) -> bool {
        let loses = |act| matches!(act, Act::Cut | Act::Reset | Act::Jump | Act::Finish);
        self.servers.iter().any(|(kind, _)| matches!(kind, Kind::WildLegacy | Kind::WildModern))
            || self.deeds.iter().any(|deed| loses(deed.act))
    }
}

fn numbers(chance: &mut Rng) -> [u32; 3] {
    [0; 3].map(|_: u32| u32::try_from(chance.below(1000)).unwrap_or(0))
}

fn pick(weights: &[(Act, u64)], chance: &mut Rng) -> Act {
    let mut left = chance.below(weights.iter().map(|(_, weight)| weight).sum());
    for (act, weight) in weights {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return *act,
        }
    }
    Act::Hear
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (kind, protocol) in &self.servers {
            let protocol = match protocol {
                Protocol::Auto => "auto",
                Protocol::Modern => "modern",
                Protocol::Legacy => "legacy",
                Protocol::Exactly(revision) => revision.as_str(),
            };
            writeln!(f, "server {} {protocol}", kind.name())?;
        }
        for Deed { act, numbers: [a, b, c] } in &self.deeds {
            let name = ACTS.iter().find(|(known, _)| known == act).map_or("hear", |(_, name)| name);
            writeln!(f, "{name} {a} {b} {c}")?;
        }
        Ok(())
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut script = Self { seed: 0, servers: Vec::new(), deeds: Vec::new() };
        for (n, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let wrong = || format!("line {}: {line}", n + 1);
            let rest: Vec<&str> = words.collect();
            match (first, rest.as_slice()) {
                ("seed", [seed]) => script.seed = seed.parse().map_err(|_| wrong())?,
                ("server", [kind, protocol]) => {
                    let kind = Kind::find(kind).ok_or_else(wrong)?;
                    script.servers.push((kind, Protocol::parse(protocol).ok_or_else(wrong)?));
                }
                (name, given) => {
                    let act = ACTS.iter().find(|(_, known)| *known == name).ok_or_else(wrong)?.0;
                    let mut numbers = [0; 3];
                    for (number, word) in numbers.iter_mut().zip(given) {
                        *number = word.parse().map_err(|_| wrong())?;
                    }
                    script.deeds.push(Deed { act, numbers });
                }
            }
        }
        match script.servers.is_empty() {
            true => Err("there is no server in it".into()),
            false => Ok(script),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_again() {
        for scenario in Scenario::ALL {
            for seed in 0..20 {
                let script = Script::of(seed, scenario, 50);
                assert_eq!(script.to_string().parse(), Ok(script));
            }
        }
        for wrong in ["", "seed x", "server demo", "server none auto", "server demo auto\ndance 1"]
        {
            assert!(wrong.parse::<Script>().is_err(), "{wrong}");
        }
    }
}
