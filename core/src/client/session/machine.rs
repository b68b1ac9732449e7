//! The session as a machine: its inputs, its time, its end.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use core::time::Duration;

use super::calls::{CallId, Relearning, Running};
use super::trouble::Trouble;
use crate::client::probe::Protocol;
use crate::client::schemas::Schemas;
use crate::client::upstream::Event as Heard;
use crate::client::{self, Failure, Place, RequestId, Upstream, UpstreamId, Wires};
use crate::driver::{Action, ConnId, Input, Machine};
use crate::jsonrpc::Message;
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};
use crate::time::Instant;

/// What a session is made with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server's name in messages to people.
    pub name: String,
    /// Where the server is.
    pub place: Place,
    /// What the server is taken to speak. Default: it is asked.
    pub protocol: Protocol,
    /// What we can do for the server: the JSON text of an object. Default `{}`.
    pub capabilities: String,
    /// Whether a legacy server at a URL is listened to for what belongs to no
    /// request. Default `false`.
    pub listens: bool,
    /// What a connection to the server may cost.
    pub upstream: client::Limits,
    /// The limits of the session.
    pub limits: Limits,
}

impl Config {
    /// The defaults, for this server.
    pub fn new(name: &str, place: Place) -> Self {
        Self {
            name: name.into(),
            place,
            protocol: Protocol::Auto,
            capabilities: "{}".into(),
            listens: false,
            upstream: client::Limits::default(),
            limits: Limits::default(),
        }
    }
}

/// Limits of a [`Session`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// A process that does not answer `server/discover` for this long is asked
    /// with `initialize` too. Default 5 s.
    pub probe: Duration,
    /// What the server speaks must be known and agreed on within this; for a
    /// process, after the probe's time. Default 60 s.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { probe: Duration::from_secs(5), handshake: Duration::from_secs(60) }
    }
}

/// What happens in a session. Params and results are JSON text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The peers have agreed: requests go out now.
    Ready,
    /// What came of a request.
    Answer {
        /// Which.
        call: CallId,
        /// Its result, an object.
        outcome: Result<String, Trouble>,
    },
    /// A request shows progress.
    Progress {
        /// Which.
        call: CallId,
        /// The parameters of the notification.
        params: String,
    },
    /// The server tells.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Option<String>,
        /// The request that it belongs to, if that is known.
        call: Option<CallId>,
    },
    /// The server asks; answer with [`Session::answer`]. Only what the
    /// [capabilities](Config::capabilities) allow; all else is refused.
    Question {
        /// Its id, as raw JSON.
        id: String,
        /// The method.
        method: String,
        /// The parameters.
        params: Option<String>,
    },
    /// It is over. All requests have been answered with the same.
    Ended(Trouble),
}

/// A conversation with one server. See the [module](super).
#[derive(Debug)]
pub struct Session {
    pub(super) config: Config,
    pub(super) wires: Wires,
    pub(super) server: Upstream,
    /// The process that did not survive the probe.
    former: Option<Upstream>,
    pub(super) stage: Stage,
    /// Our `server/discover`, which may be answered late; none if the process
    /// that got it has ended.
    pub(super) probe: Option<RequestId>,
    pub(super) asked_again: bool,
    pub(super) revision: Option<Revision>,
    /// What the server declares: a JSON object.
    pub(super) capabilities: Option<String>,
    /// Requests that wait for the handshake.
    pub(super) waiting: VecDeque<Running>,
    pub(super) running: BTreeMap<RequestId, Running>,
    pub(super) schemas: Schemas,
    pub(super) relearning: Option<Relearning>,
    pub(super) events: VecDeque<Event>,
    pub(super) next: u64,
    exit: bool,
    pub(super) now: Instant,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Asked with `server/discover`, which has until then.
    Probing(Instant),
    /// Asked with `initialize`, which has until then.
    Initializing(RequestId, Instant),
    /// Agreed.
    Open,
    /// The server is being ended.
    Leaving,
    Over,
}

impl Session {
    /// A session that begins at once.
    pub fn new(config: Config) -> Self {
        let server = Upstream::new(
            UpstreamId(1),
            &config.name,
            config.place.clone(),
            config.upstream.clone(),
        );
        let mut session = Self {
            config,
            wires: Wires::default(),
            server,
            former: None,
            stage: Stage::Leaving,
            probe: None,
            asked_again: false,
            revision: None,
            capabilities: None,
            waiting: VecDeque::new(),
            running: BTreeMap::new(),
            schemas: Schemas::default(),
            relearning: None,
            events: VecDeque::new(),
            next: 1,
            exit: false,
            now: Instant::START,
        };
        match session.config.protocol.era() {
            Some(Era::Legacy) => session.initialize(),
            Some(Era::Modern) | None => session.ask_for_revision(),
        }
        session.settle();
        session
    }

    /// What happened. Call until `None` after every input.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What the peers have agreed on; `None` before.
    pub fn revision(&self) -> Option<Revision> {
        self.revision.filter(|_| matches!(self.stage, Stage::Open))
    }

    /// What the server declares that it can do: a JSON object.
    pub fn capabilities(&self) -> Option<&str> {
        self.capabilities.as_deref()
    }

    /// It is `now`, until told otherwise: for requests that are made long after the last
    /// input.
    pub fn at(&mut self, now: Instant) {
        self.now = now;
        self.wires.at(now);
    }

    /// The moment of the last input.
    pub fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision.is_some_and(|revision| revision.era() == Era::Modern)
    }

    pub(in crate::client) fn is_pipe(&self) -> bool {
        !self.config.place.is_url()
    }

    /// Ends the session: requests that run fail with `trouble`. The second time, at
    /// once.
    pub fn end(&mut self, trouble: &Trouble) {
        match self.stage {
            Stage::Over => {}
            Stage::Leaving => self.server.kill(&mut self.wires),
            _ => self.give_up(trouble),
        }
        self.settle();
    }

    /// Nothing that was asked will be answered.
    pub(super) fn give_up(&mut self, trouble: &Trouble) {
        let open = matches!(self.stage, Stage::Open);
        self.stage = Stage::Leaving;
        let relearning = self.relearning.take();
        let lists = relearning.into_iter().flat_map(|relearning| relearning.waiting);
        let mut lost: alloc::vec::Vec<CallId> = lists.map(|(running, _)| running.call).collect();
        for (request, running) in core::mem::take(&mut self.running) {
            if open {
                let reason = trouble.reason();
                self.server.cancel(&mut self.wires, request, reason);
            }
            lost.push(running.call);
        }
        lost.extend(core::mem::take(&mut self.waiting).into_iter().map(|running| running.call));
        for call in lost {
            self.events.push_back(Event::Answer { call, outcome: Err(trouble.clone()) });
        }
        self.events.push_back(Event::Ended(trouble.clone()));
        self.server.stop(&mut self.wires);
    }

    /// Takes a new process in place of one that has ended.
    pub(super) fn start_again(&mut self) {
        let fresh = Upstream::new(
            UpstreamId(2),
            &self.config.name,
            self.config.place.clone(),
            self.config.upstream.clone(),
        );
        let mut former = core::mem::replace(&mut self.server, fresh);
        former.kill(&mut self.wires);
        self.former = Some(former);
        self.probe = None;
    }

    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Answer { request, message } => self.on_answer(request, &message),
            Heard::Failed { request, failure } => self.on_failure(request, failure),
            Heard::Request { message, .. } => self.on_request(&message),
            Heard::Notification { message, during } => self.on_notification(&message, during),
            Heard::Parted { .. } => {}
            Heard::Ended { failure } => {
                if !matches!(self.stage, Stage::Leaving | Stage::Over) {
                    self.give_up(&Trouble::Failure(failure));
                }
            }
        }
    }

    fn on_answer(&mut self, request: RequestId, message: &Message<'_>) {
        match self.stage {
            Stage::Probing(_) if Some(request) == self.probe => self.on_discovered(message),
            Stage::Initializing(..) if Some(request) == self.probe => {
                self.on_discovered_late(message);
            }
            Stage::Initializing(current, _) if request == current => self.on_initialized(message),
            Stage::Open => self.on_answered(request, message),
            // Late: nobody waits for it.
            _ => {}
        }
    }

    fn on_failure(&mut self, request: RequestId, failure: Failure) {
        match self.stage {
            Stage::Probing(_) if Some(request) == self.probe => self.on_probe_failure(failure),
            Stage::Initializing(..) if Some(request) == self.probe => {}
            // The question may have been too much for it, though it took its time to end.
            Stage::Initializing(..) if self.probe.is_some() && failure.is_end() => {
                self.start_again();
                self.initialize();
            }
            Stage::Open => self.on_failed(request, failure),
            Stage::Leaving | Stage::Over => {}
            _ => self.give_up(&Trouble::Failure(failure)),
        }
    }

    fn tick(&mut self) {
        self.server.tick(&mut self.wires);
        if let Some(former) = &mut self.former {
            former.tick(&mut self.wires);
        }
        match self.stage {
            Stage::Probing(until) if until <= self.now => self.on_probe_silence(),
            Stage::Initializing(_, until) if until <= self.now => {
                let limit = self.config.limits.handshake;
                self.give_up(&Trouble::Silent(method::INITIALIZE, limit));
            }
            _ => {}
        }
        self.check_calls();
    }

    pub(super) fn settle(&mut self) {
        while let Some(heard) = self.server.poll_event() {
            self.hear(heard);
        }
        if let Some(former) = &mut self.former {
            // What it had to say was heard.
            while former.poll_event().is_some() {}
        }
        let gone = self.former.iter().chain([&self.server]).all(Upstream::is_gone);
        if matches!(self.stage, Stage::Leaving) && gone {
            self.stage = Stage::Over;
            self.exit = true;
        }
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let mut input = bytes;
        while self.wires.owner(conn) == Some(self.server.id()) {
            let Some(heard) = self.server.receive(&mut self.wires, conn, &mut input) else { break };
            self.hear(heard);
        }
    }

    fn pass_on(&mut self, conn: ConnId, act: impl FnOnce(&mut Upstream, &mut Wires)) {
        let Some(owner) = self.wires.owner(conn) else { return };
        let mut all = self.former.iter_mut().chain([&mut self.server]);
        if let Some(upstream) = all.find(|upstream| upstream.id() == owner) {
            act(upstream, &mut self.wires);
        }
    }
}

impl Machine for Session {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.now = now;
        self.wires.at(now);
        match input {
            // There are no listeners.
            Input::Accepted { .. } => {}
            Input::Received { conn, bytes } => self.received(conn, bytes),
            Input::Connected { conn } => {
                self.pass_on(conn, |upstream, wires| upstream.connected(wires, conn));
            }
            Input::Finished { conn } => {
                self.pass_on(conn, |upstream, wires| upstream.finished(wires, conn));
            }
            Input::Closed { conn, why } => {
                self.pass_on(conn, |upstream, wires| upstream.closed(wires, conn, why));
            }
            Input::Stderr { conn, bytes } => {
                self.pass_on(conn, |upstream, wires| upstream.stderr(wires, bytes));
            }
            Input::Exited { conn, status } => {
                self.pass_on(conn, |upstream, wires| upstream.exited(wires, conn, status));
            }
            Input::Tick => self.tick(),
            Input::Stop => self.end(&Trouble::Interrupted),
        }
        self.settle();
    }

    fn poll(&mut self) -> Option<Action> {
        let action = self.wires.poll();
        action.or_else(|| core::mem::take(&mut self.exit).then_some(Action::Exit))
    }

    fn deadline(&self) -> Option<Instant> {
        let own = match self.stage {
            Stage::Probing(until) | Stage::Initializing(_, until) => Some(until),
            Stage::Open | Stage::Leaving | Stage::Over => None,
        };
        let upstreams = self.former.iter().chain([&self.server]);
        let upstreams = upstreams.filter_map(Upstream::deadline);
        own.into_iter().chain(upstreams).chain(self.calls_deadline()).min()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.wires.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.now = now;
        self.wires.at(now);
        self.wires.sent(conn, n);
    }
}
