//! One server, with what all of them share.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::Hasher as _;

use siphasher::sip::SipHasher;

use super::config::Server as Config;
use super::drive::Driven;
use super::many::{Attention, Catalogue, List, Listens};
use super::modern::{Modern, Verdict};
use super::park::{Lease, ParkId, Parking};
use super::project::Projection;
use super::revive::Lives;
use super::rounds::Round;
use super::serve::Up;
use super::session::Session;
use super::shared::Shared;
use super::starts::Starts;
use super::watch::Watches;
use crate::client::{RequestId, Upstream, UpstreamId, Wires};
use crate::entropy::Entropy;
use crate::event;
use crate::output::Output;
use crate::protocol::revision::Revision;
use crate::seal::{NONCE, Sealer};
use crate::server::{self, AskId, Endpoint, ExchangeId, PeerId, Request};
use crate::time::{Instant, Timers};

/// Names a server of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ServerId(pub(super) u64);

/// What all servers share.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) endpoint: Endpoint,
    pub(super) wires: Wires,
    pub(super) output: Output,
    /// Who asked each question to a host.
    pub(super) asks: BTreeMap<AskId, Asker>,
    /// The server that each connection leads to.
    pub(super) owners: BTreeMap<UpstreamId, ServerId>,
    /// Connections whose deadline may have changed since it was last looked at.
    pub(super) touched: BTreeSet<UpstreamId>,
    pub(super) timed: BTreeMap<UpstreamId, Instant>,
    /// Servers with calls whose hosts are still to be told what is asked.
    pub(super) untold: BTreeSet<ServerId>,
    /// What modern hosts listen to that many servers have parts of.
    pub(super) listens: Listens,
    /// Whether hosts see one catalogue of what all servers offer; if not, there is one
    /// server and they see that.
    pub(super) merged: bool,
    /// Whether it has several servers in it.
    pub(super) several: bool,
    /// Whether any host would hear of changes of it.
    pub(super) attentive: bool,
    /// Whether more of it may be known than was looked at.
    pub(super) catalogue_changed: bool,
    /// Which lists of any server have changed since it was looked at.
    pub(super) changed: [bool; 4],
    /// Which of them a server has said to have changed.
    pub(super) announced: [bool; 4],
    pub(super) digest_key: [u8; 16],
    sealer: Sealer,
    entropy: Entropy,
    pub(super) now: Instant,
    /// Whether standard output has ended because the server did.
    pub(super) deserted: bool,
    next: u64,
}

impl Hub {
    /// One whose secrets come from `seed`.
    pub(super) fn new(endpoint: server::Config, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(seed);
        let ours = Entropy::new(entropy.bytes());
        Self {
            endpoint: Endpoint::new(endpoint, ours),
            sealer: Sealer::new(entropy.bytes()),
            digest_key: entropy.bytes(),
            entropy,
            untold: BTreeSet::new(),
            listens: Listens::default(),
            merged: false,
            several: false,
            attentive: false,
            catalogue_changed: false,
            changed: [false; 4],
            announced: [false; 4],
            wires: Wires::default(),
            output: Output::default(),
            asks: BTreeMap::new(),
            owners: BTreeMap::new(),
            touched: BTreeSet::new(),
            timed: BTreeMap::new(),
            now: Instant::START,
            deserted: false,
            next: 1,
        }
    }

    /// It is `now`, until told otherwise.
    pub(super) fn at(&mut self, now: Instant) {
        self.now = now;
        self.endpoint.at(now);
        self.wires.at(now);
    }

    /// A token that holds `content`, for this purpose.
    pub(super) fn seal(&mut self, purpose: &str, content: &[u8]) -> Option<String> {
        self.sealer.seal(&mut self.entropy, purpose, content)
    }

    /// The same, alike each time for the same content.
    pub(super) fn seal_alike(&self, purpose: &str, content: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE];
        for (n, part) in nonce.chunks_exact_mut(8).enumerate() {
            let mut hasher = SipHasher::new_with_key(&self.digest_key);
            hasher.write_usize(n);
            hasher.write(purpose.as_bytes());
            hasher.write(content);
            part.copy_from_slice(&hasher.finish().to_be_bytes());
        }
        self.sealer.seal_with(nonce, purpose, content)
    }

    /// What a token of ours holds.
    pub(super) fn unseal(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        self.sealer.open(purpose, token)
    }

    /// The kinds of things that are remembered of hosts.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("questions", self.asks.is_empty()),
            ("subscriptions", self.listens.is_empty()),
            ("questions that are to be told", self.untold.is_empty()),
        ];
        present(all)
    }

    pub(super) fn number(&mut self) -> u64 {
        let n = self.next;
        self.next += 1;
        n
    }

    pub(super) fn warn(&mut self, text: String) {
        self.output.tell(event::Event::Warning(text));
    }
}

/// The kinds of which it is not said that there are none.
pub(super) fn present<const N: usize>(
    all: [(&'static str, bool); N],
) -> impl Iterator<Item = &'static str> {
    all.into_iter().filter(|(_, none)| !none).map(|(kind, _)| kind)
}

/// Who asks a host.
#[derive(Debug)]
pub(super) enum Asker {
    /// A legacy server on a connection of it, with this raw id.
    Link(UpstreamId, String),
    /// A modern server in the middle of a request, with this raw key.
    Round(ServerId, ExchangeId, String),
}

/// All that is known of one server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) config: Config,
    /// Whether it is still to be started before anybody needs it.
    pub(super) eager: bool,
    pub(super) links: BTreeMap<UpstreamId, Box<Link>>,
    /// Its session for each legacy session.
    pub(super) sessions: BTreeMap<PeerId, UpstreamId>,
    pub(super) modern: Modern,
    pub(super) shared: Shared,
    pub(super) lives: Lives,
    pub(super) starts: Starts,
    pub(super) parking: Parking,
    pub(super) watches: Watches,
    /// Legacy sessions that it knows nothing of, for it is a modern one.
    pub(super) bridged: BTreeMap<PeerId, Session>,
    /// Their calls in the middle of which it asks.
    pub(super) rounds: BTreeMap<ExchangeId, Round>,
    /// The running requests of hosts that may be parked.
    pub(super) exchanges: BTreeMap<ExchangeId, ParkId>,
    /// The connections on which a modern host's capabilities are declared.
    pub(super) leases: BTreeSet<UpstreamId>,
    /// The legacy sessions for which we shall listen again.
    pub(super) hear_again: Timers<PeerId>,
    /// Where each running request of a host has gone.
    pub(super) routes: BTreeMap<ExchangeId, (UpstreamId, RequestId)>,
    pub(super) call_sweep: Option<Instant>,
    /// What it offers, if that is shown with what others do.
    pub(super) catalogue: Catalogue,
    pub(super) attention: Attention,
}

impl Server {
    pub(super) fn new(id: ServerId, config: Config) -> Self {
        Self {
            id,
            eager: config.eager,
            config,
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            modern: Modern::default(),
            shared: Shared::default(),
            lives: Lives::default(),
            starts: Starts::default(),
            parking: Parking::default(),
            watches: Watches::default(),
            bridged: BTreeMap::new(),
            rounds: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            leases: BTreeSet::new(),
            hear_again: Timers::default(),
            routes: BTreeMap::new(),
            call_sweep: None,
            catalogue: Catalogue::default(),
            attention: Attention::default(),
        }
    }

    /// The kinds of things that are remembered of hosts.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("connections for sessions", self.links.values().all(|link| link.peer.is_none())),
            ("questions of a server", self.links.values().all(|link| link.asked.is_empty())),
            ("requests for a modern server", self.modern.exchanges().next().is_none()),
            ("requests without a session", self.shared.exchanges().next().is_none()),
            ("leased connections", self.leases.is_empty()),
            ("sessions", self.sessions.is_empty()),
            ("sessions that can begin again", self.lives.is_empty()),
            ("parked calls", self.parking.calls.is_empty() && self.exchanges.is_empty()),
            ("subscriptions at a legacy server", self.watches.is_empty()),
            ("sessions before a modern server", self.bridged.is_empty()),
            ("calls in rounds", self.rounds.is_empty()),
            ("requests", self.routes.is_empty()),
        ];
        present(all)
    }

    /// When something of it is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let due = [
            self.modern.deadline(),
            self.shared.deadline(&self.config.limits),
            self.lives.deadline(),
            self.parking.deadline(),
            self.watches.deadline(),
            self.lease_deadline(),
            self.idle_deadline(),
            self.hear_again.next(),
            self.rounds.values().filter_map(Round::deadline).min(),
            self.call_sweep,
            self.catalogue.deadline(),
            self.attention.deadline(),
            self.eager.then_some(Instant::START),
        ];
        due.into_iter().flatten().min()
    }

    /// When the process of a modern server ends if nobody uses it, or our subscription
    /// at a URL.
    pub(super) fn idle_deadline(&self) -> Option<Instant> {
        let (modern, config) = (&self.modern, &self.config);
        let costs = !config.place.is_url() || self.attention.is_there();
        let stays = config.eager || modern.tasks || !costs;
        let is_there = matches!(modern.verdict, Verdict::Modern(_));
        (is_there && !stays).then(|| modern.used + config.limits.idle)
    }

    fn lease_deadline(&self) -> Option<Instant> {
        let links = self.leases.iter().filter_map(|id| self.links.get(id));
        let leases =
            links.filter(|link| !link.upstream.has_ended()).filter_map(|it| it.lease.as_ref());
        leases.filter_map(|lease| lease.due(self.config.limits.idle)).min()
    }
}

/// One server at work.
#[derive(Debug)]
pub(super) struct At<'a> {
    pub(super) server: &'a mut Server,
    pub(super) hub: &'a mut Hub,
}

impl At<'_> {
    /// A new connection to the server, not used yet.
    pub(super) fn add_link(&mut self, peer: Option<PeerId>) -> UpstreamId {
        let id = UpstreamId(self.hub.number());
        let config = &self.server.config;
        let upstream =
            Upstream::new(id, &config.name, config.place.clone(), config.upstream.clone());
        let link = Link {
            upstream,
            peer,
            lease: None,
            level: None,
            works: false,
            tasks: false,
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
        };
        self.server.links.insert(id, Box::new(link));
        self.hub.owners.insert(id, self.server.id);
        id
    }

    pub(super) fn touch(&mut self, id: UpstreamId) {
        self.hub.touched.insert(id);
    }

    /// Forgets a connection of which nothing is left.
    pub(super) fn bury(&mut self, id: UpstreamId) {
        let Some(link) = self.server.links.get(&id) else { return };
        if link.upstream.has_ended() && link.upstream.is_gone() && link.calls.is_empty() {
            self.server.links.remove(&id);
            self.server.leases.remove(&id);
            self.hub.owners.remove(&id);
            self.hub.timed.remove(&id);
        }
    }

    /// Does what is due.
    pub(super) fn tick(&mut self) {
        self.begin();
        self.sweep_calls();
        self.check_probe();
        self.check_shared();
        self.check_idle();
        self.check_revivals();
        self.check_relearning();
        self.check_relistening();
        self.check_parking();
        self.check_watches();
        self.check_rounds();
        self.check_hearing();
        self.check_catalogue();
        self.check_attention();
    }
}

/// A connection, or session, with the server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) upstream: Upstream,
    /// The legacy session that it is for; none if it is shared.
    pub(super) peer: Option<PeerId>,
    /// What a modern host can be asked on it, if that is declared.
    pub(super) lease: Option<Box<Lease>>,
    /// The level of log messages that we have set on it for modern hosts, raw.
    pub(super) level: Option<String>,
    /// Whether a handshake has succeeded on it.
    pub(super) works: bool,
    /// Whether the server makes tasks of calls there, in the legacy way.
    pub(super) tasks: bool,
    pub(super) calls: BTreeMap<RequestId, Call>,
    /// Questions of the server that are with the host, by their raw ids.
    pub(super) asked: BTreeMap<String, AskId>,
}

impl Link {
    /// A call is over. While none runs no room is kept for any: most sessions are
    /// idle.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Call> {
        let call = self.calls.remove(&request);
        if self.calls.is_empty() {
            self.calls = BTreeMap::new();
        }
        call
    }
}

/// A request of ours to the server.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: CallKind,
    /// The host's progress token, as raw JSON.
    pub(super) token: Option<String>,
    /// What its host gets, if that speaks an older revision.
    pub(super) projection: Option<Projection>,
    /// What the answer to a modern host's request depends on, before a legacy server.
    pub(super) up: Option<Box<Up>>,
    /// What it needs if it must be made as a task.
    pub(super) driven: Option<Box<Driven>>,
    /// The request, if it may have to be sent again.
    pub(super) spare: Option<Box<Request<'static>>>,
    /// When it was sent.
    pub(super) sent: Instant,
    /// The same, or when it last showed progress.
    pub(super) since: Instant,
    /// The progress that its host was told last.
    pub(super) shown: f64,
    /// What tells a modern host's request from others: [`Hub::digest`].
    pub(super) digest: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallKind {
    /// For a host.
    Relay { exchange: ExchangeId, logs: bool },
    /// A modern host's `tools/list`.
    ListTools { exchange: ExchangeId, logs: bool },
    /// A host's `initialize`, and what it will speak.
    Initialize { exchange: ExchangeId, host: Revision },
    /// A host's `subscriptions/listen`.
    Listen { exchange: ExchangeId },
    /// For a modern host, of a legacy server that cannot ask anything.
    Up { exchange: ExchangeId },
    /// The same, and it can.
    Parked { park: ParkId },
    /// Our own `initialize`, for such a call.
    OpenLease,
    /// For a legacy host, of a modern server; perhaps after it was refused once.
    Down { exchange: ExchangeId, logs: bool, again: bool },
    /// Our own `subscriptions/listen`, for a legacy session.
    Hear { peer: PeerId },
    /// Our own `resources/subscribe`, for modern hosts that listen.
    Subscribe,
    /// Our own `server/discover`.
    Probe,
    /// Our own `initialize`.
    Open,
    /// Our own `initialize`, for a session that begins again.
    Revive { peer: PeerId },
    /// What nobody waits for: what a host had set in a session that has begun again.
    Restore,
    /// Our own `tools/list`.
    Relearn,
    /// Our own, for the catalogue.
    List { list: List },
    /// Our own `subscriptions/listen`, for the catalogue.
    Attend,
    /// Our own `tasks/result`, for a call that was made as a task.
    TaskResult { call: RequestId },
    /// Our own `tasks/get`, for a legacy host's call.
    Poll { exchange: ExchangeId },
}

impl Call {
    /// One that no host waits for.
    pub(super) fn ours(kind: CallKind, now: Instant) -> Self {
        Self {
            kind,
            token: None,
            projection: None,
            up: None,
            driven: None,
            spare: None,
            sent: now,
            since: now,
            shown: f64::NEG_INFINITY,
            digest: 0,
        }
    }
}

impl CallKind {
    pub(super) fn exchange(self) -> Option<ExchangeId> {
        match self {
            Self::Relay { exchange, .. }
            | Self::Up { exchange, .. }
            | Self::Down { exchange, .. }
            | Self::ListTools { exchange, .. }
            | Self::Initialize { exchange, .. }
            | Self::Listen { exchange } => Some(exchange),
            Self::Parked { .. }
            | Self::OpenLease
            | Self::Subscribe
            | Self::Hear { .. }
            | Self::Probe
            | Self::Open
            | Self::Revive { .. }
            | Self::Restore
            | Self::Relearn
            | Self::List { .. }
            | Self::Attend
            | Self::TaskResult { .. }
            | Self::Poll { .. } => None,
        }
    }
}
