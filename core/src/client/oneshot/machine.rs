//! The visit as a machine: its inputs, its time, its end.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::result::{Answer, Job, Listing, Trouble};
use super::work::Page;
use crate::client::probe::Protocol;
use crate::client::{self, Event, Failure, Place, RequestId, Upstream, UpstreamId, Wires};
use crate::driver::{Action, ConnId, Input, Machine};
use crate::jsonrpc::Message;
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::Era;
use crate::server::Outcome;
use crate::time::Instant;

/// What a visit is made with.
#[derive(Debug)]
pub struct Config {
    /// The server's name in messages to people.
    pub name: String,
    /// Where the server is.
    pub place: Place,
    /// What the server is taken to speak. Default: it is asked.
    pub protocol: Protocol,
    /// What a connection to the server may cost.
    pub upstream: client::Limits,
    /// The limits of the visit.
    pub limits: Limits,
}

impl Config {
    /// The defaults, for this server.
    pub fn new(name: &str, place: Place) -> Self {
        Self {
            name: name.into(),
            place,
            protocol: Protocol::Auto,
            upstream: client::Limits::default(),
            limits: Limits::default(),
        }
    }
}

/// Limits of a [`OneShot`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// A process that does not answer `server/discover` for this long is asked
    /// with `initialize` too. Default 5 s.
    pub probe: Duration,
    /// What the server speaks must be known and agreed on within this; for a
    /// process, after the probe's time. Default 60 s.
    pub handshake: Duration,
    /// All together, from the start, may take this long. Default 10 minutes.
    pub total: Duration,
    /// Pages of one list. Default 1,000.
    pub pages: usize,
    /// Bytes of all lists. Default 64 MiB.
    pub list_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(5),
            handshake: Duration::from_secs(60),
            total: Duration::from_secs(600),
            pages: 1000,
            list_bytes: 64 << 20,
        }
    }
}

/// One visit to a server. See the [module](super).
#[derive(Debug)]
pub struct OneShot {
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
    /// Whether requests carry the metadata of the modern revision.
    pub(super) modern: bool,
    /// What the server declares: a JSON object.
    pub(super) capabilities: Option<String>,
    /// What has been listed for the current job.
    pub(super) listing: Listing,
    /// The current job and those after it.
    pub(super) jobs: VecDeque<Job>,
    results: Vec<Result<Answer, Trouble>>,
    exit: bool,
    now: Instant,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Asked with `server/discover`, which has until then.
    Probing(Instant),
    /// Asked with `initialize`, which has until then.
    Initializing(RequestId, Instant),
    /// The current job is a call.
    Calling {
        request: RequestId,
        /// Whether the tool's declared header fields were sent along.
        informed: bool,
    },
    /// A list is being read: for the current job, or for what a call needs.
    Listing(RequestId, Page),
    /// The server is being ended.
    Leaving,
    Over,
}

impl OneShot {
    /// A visit for `jobs`, in their order.
    pub fn new(config: Config, jobs: Vec<Job>) -> Self {
        let server = Upstream::new(
            UpstreamId(1),
            &config.name,
            config.place.clone(),
            config.upstream.clone(),
        );
        let mut visit = Self {
            config,
            wires: Wires::default(),
            probe: None,
            asked_again: false,
            server,
            former: None,
            stage: Stage::Leaving,
            modern: true,
            capabilities: None,
            listing: Listing::default(),
            jobs: VecDeque::from(jobs),
            results: Vec::new(),
            exit: false,
            now: Instant::START,
        };
        match visit.config.protocol.era() {
            Some(Era::Legacy) => visit.initialize(),
            Some(Era::Modern) | None => visit.ask_for_revision(),
        }
        visit.settle();
        visit
    }

    /// What came of each job, in their order. All of them have a result once the
    /// machine has asked to exit.
    pub fn into_results(self) -> Vec<Result<Answer, Trouble>> {
        self.results
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn is_process(&self) -> bool {
        matches!(self.config.place, Place::Process(_))
    }

    /// The current job is done.
    pub(super) fn finish_job(&mut self, result: Result<Answer, Trouble>) {
        if self.jobs.pop_front().is_some() {
            self.results.push(result);
        }
        self.next_job();
    }

    /// Neither the current job nor any other can be done.
    pub(super) fn give_up(&mut self, trouble: &Trouble) {
        for _ in self.jobs.drain(..) {
            self.results.push(Err(trouble.clone()));
        }
        self.leave();
    }

    pub(super) fn leave(&mut self) {
        self.stage = Stage::Leaving;
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

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Answer { request, message } => self.on_answer(request, &message),
            Event::Failed { request, failure } => self.on_failure(request, failure),
            Event::Request { message, .. } => self.on_request(&message),
            Event::Notification { .. } | Event::Parted { .. } => {}
            Event::Ended { failure } => self.on_ended(failure),
        }
    }

    fn on_answer(&mut self, request: RequestId, message: &Message<'_>) {
        match self.stage {
            Stage::Probing(_) if Some(request) == self.probe => self.on_discovered(message),
            Stage::Initializing(..) if Some(request) == self.probe => {
                self.on_discovered_late(message)
            }
            Stage::Initializing(current, _) if request == current => self.on_initialized(message),
            Stage::Calling { request: current, informed } if request == current => {
                self.on_called(message, informed);
            }
            Stage::Listing(current, ref page) if request == current => {
                let page = page.clone();
                self.on_listed(message, page);
            }
            // Late: nobody waits for it.
            _ => {}
        }
    }

    fn on_failure(&mut self, request: RequestId, failure: Failure) {
        match self.stage {
            Stage::Probing(_) if Some(request) == self.probe => self.on_probe_failure(failure),
            Stage::Initializing(..) if Some(request) == self.probe => {}
            Stage::Leaving | Stage::Over => {}
            _ => self.give_up(&Trouble::Failure(failure)),
        }
    }

    fn on_ended(&mut self, failure: Failure) {
        if !matches!(self.stage, Stage::Leaving | Stage::Over) {
            self.give_up(&Trouble::Failure(failure));
        }
    }

    /// We have declared no capability, so that only `ping` may be asked.
    fn on_request(&mut self, message: &Message<'_>) {
        let id = message.id().unwrap_or("null");
        if message.method() == method::PING {
            self.server.answer(&mut self.wires, id, Outcome::Result("{}"));
        } else {
            let fault = Fault::method_not_found(message.method());
            self.server.answer(&mut self.wires, id, Outcome::Error(&fault.object));
        }
    }

    /// The user asks to stop; the second time, at once.
    fn stop(&mut self) {
        match self.stage {
            Stage::Over => return,
            Stage::Leaving => return self.server.kill(&mut self.wires),
            Stage::Calling { request, .. } | Stage::Listing(request, _) => {
                self.server.cancel(&mut self.wires, request, Some(r#""interrupted""#));
            }
            // A handshake cannot be cancelled (2025-11-25 `basic/utilities/cancellation`).
            Stage::Probing(_) | Stage::Initializing(..) => {}
        }
        self.give_up(&Trouble::Interrupted);
    }

    fn tick(&mut self) {
        self.server.tick(&mut self.wires);
        if let Some(former) = &mut self.former {
            former.tick(&mut self.wires);
        }
        let now = self.now;
        match self.stage {
            Stage::Leaving | Stage::Over => {}
            _ if self.end() <= now => {
                let limit = self.config.limits.total;
                if let Stage::Calling { request, .. } | Stage::Listing(request, _) = self.stage {
                    self.server.cancel(&mut self.wires, request, Some(r#""timed out""#));
                }
                self.give_up(&Trouble::OutOfTime(limit));
            }
            Stage::Probing(until) if until <= now => self.on_probe_silence(),
            Stage::Initializing(_, until) if until <= now => {
                let limit = self.config.limits.handshake;
                self.give_up(&Trouble::Silent(method::INITIALIZE, limit));
            }
            _ => {}
        }
    }

    /// When all must be done.
    fn end(&self) -> Instant {
        Instant::START + self.config.limits.total
    }

    fn settle(&mut self) {
        while let Some(event) = self.server.poll_event() {
            self.on_event(event);
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
        while self.wires.owner(conn) == Some(self.server.core.id) {
            let Some(event) = self.server.receive(&mut self.wires, conn, &mut input) else { break };
            self.on_event(event);
        }
    }

    fn pass_on(&mut self, conn: ConnId, act: impl FnOnce(&mut Upstream, &mut Wires)) {
        let Some(owner) = self.wires.owner(conn) else { return };
        let mut all = self.former.iter_mut().chain([&mut self.server]);
        if let Some(upstream) = all.find(|upstream| upstream.core.id == owner) {
            act(upstream, &mut self.wires);
        }
    }
}

impl Machine for OneShot {
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
            Input::Stop => self.stop(),
        }
        self.settle();
    }

    fn poll(&mut self) -> Option<Action> {
        let action = self.wires.poll();
        action.or_else(|| core::mem::take(&mut self.exit).then_some(Action::Exit))
    }

    fn deadline(&self) -> Option<Instant> {
        let own = match self.stage {
            Stage::Probing(until) | Stage::Initializing(_, until) => Some(until.min(self.end())),
            Stage::Calling { .. } | Stage::Listing(..) => Some(self.end()),
            Stage::Leaving | Stage::Over => None,
        };
        let upstreams = self.former.iter().chain([&self.server]);
        own.into_iter().chain(upstreams.filter_map(Upstream::deadline)).min()
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
