//! Where scenarios are played.

use mcpx_core::protocol::revision::Revision;
use mcpx_tests::host::Host;
use mcpx_tests::net::{Door, Net, Upstream};
use mcpx_tests::real::Real;
use mcpx_tests::sim::Sim;
use serde_json::{Value, json};

/// Weathers that the simulator plays each combination in, unless told otherwise.
const WEATHERS: u64 = 3;

/// A gateway, and whom the scenario is about.
pub(crate) struct Stage<'n> {
    pub(crate) net: &'n mut dyn Net,
    pub(crate) door: Door,
    pub(crate) revision: Revision,
    pub(crate) upstream: Upstream,
}

impl Stage<'_> {
    /// A host that can do everything.
    pub(crate) fn host(&mut self) -> Host {
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        self.host_with(capabilities)
    }

    pub(crate) fn host_with(&mut self, capabilities: Value) -> Host {
        Host::connect(self.net, self.door, self.revision, capabilities)
    }

    /// One that has not shaken hands.
    pub(crate) fn stranger(&mut self) -> Host {
        Host::new(self.net, self.door, self.revision, json!({}))
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision == Revision::R2026_07_28
    }
}

/// A scenario, and what it is played with.
#[derive(Clone, Copy)]
pub(crate) struct Cast {
    pub(crate) doors: &'static [Door],
    pub(crate) upstreams: &'static [Upstream],
    pub(crate) revisions: &'static [Revision],
    pub(crate) play: fn(&mut Stage<'_>),
}

/// Says which of the many it was that failed.
struct Playing(String);

impl Drop for Playing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it failed with {}", self.0);
        }
    }
}

fn range(seeds: &str) -> std::ops::Range<u64> {
    let ends = seeds.split_once("..").map(|(first, end)| (first.parse(), end.parse()));
    let Some((Ok(first), Ok(end))) = ends else { panic!("SEEDS={seeds} is not FIRST..END") };
    first..end
}

impl Cast {
    fn each(self, revisions: &[Revision], mut play: impl FnMut(Door, Upstream, Revision)) {
        for &door in self.doors {
            for &upstream in self.upstreams {
                for &revision in revisions {
                    play(door, upstream, revision);
                }
            }
        }
    }

    fn perform(self, net: &mut dyn Net, door: Door, upstream: Upstream, revision: Revision) {
        let mut stage = Stage { net, door, revision, upstream };
        (self.play)(&mut stage);
    }

    /// Plays it on the simulator: every combination in still air and in a few
    /// weathers that are its own, or with the seeds `SEEDS=first..end`.
    pub(crate) fn simulated(self) {
        let told = std::env::var("SEEDS").ok().map(|seeds| range(&seeds));
        let mut next = 1;
        self.each(self.revisions, |door, upstream, revision| {
            let own = next..next + WEATHERS;
            next = own.end;
            for seed in told.clone().unwrap_or(own).chain(told.is_none().then_some(0)) {
                let _playing = Playing(format!("{door:?} {upstream:?} {revision} seed {seed}"));
                let mut sim = Sim::new(seed, upstream);
                self.perform(&mut sim, door, upstream, revision);
                sim.stop();
                sim.stop();
                sim.over();
                let servers = usize::from(sim.server.is_some());
                sim.until("all processes end", |sim| sim.world.running() == servers);
            }
        });
    }

    /// Plays it with the program, in the newest revision of each era: what the
    /// older ones change is decided in the core, which does not know the runtime.
    pub(crate) fn real(self, runtime: &str) {
        let newest: Vec<Revision> = self
            .revisions
            .iter()
            .copied()
            .filter(|revision| *revision >= Revision::R2025_11_25)
            .collect();
        self.each(&newest, |door, upstream, revision| {
            let _playing = Playing(format!("{door:?} {upstream:?} {revision} on {runtime}"));
            let mut real = Real::new(runtime, upstream, door == Door::Stdio);
            self.perform(&mut real, door, upstream, revision);
        });
    }
}

macro_rules! scenarios {
    ($($module:ident::$name:ident: $doors:expr, $upstreams:expr, $revisions:expr;)*) => {
        $(mod $name {
            use super::*;

            const CAST: Cast = Cast {
                doors: $doors,
                upstreams: $upstreams,
                revisions: $revisions,
                play: $module::$name,
            };

            #[test]
            fn simulated() {
                CAST.simulated();
            }

            #[test]
            fn on_mio() {
                CAST.real("mio");
            }

            #[test]
            fn on_blocking() {
                CAST.real("blocking");
            }
        })*
    };
}
