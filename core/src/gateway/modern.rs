//! The connection that modern requests share, and what the server speaks.
//!
//! Before the first modern request goes out, the server is asked with
//! `server/discover`; the answer is read by the table of `requirements.md`
//! section 2. Requests that come meanwhile wait.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::at::{At, Call, CallKind};
use super::errand::EXTENSION;
use super::relearn::Relearning;
use super::relisten::Relistening;
use crate::client::schemas::Schemas;
use crate::client::{Failure, UpstreamId, probe};
use crate::jsonrpc::{Message, code, get_path};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};
use crate::server::{ExchangeId, Request};
use crate::time::Instant;

/// What is known of the server's modern side.
#[derive(Debug, Default)]
pub(super) struct Modern {
    pub(super) verdict: Verdict,
    waiting: VecDeque<Request<'static>>,
    /// Whether the connection of the other era shall be there at once, if that is
    /// what it speaks.
    eager: bool,
    /// What it has answered to `server/discover`.
    pub(super) discovered: Option<Box<str>>,
    /// When anything was last sent to it.
    pub(super) used: Instant,
    /// Whether that offers tasks.
    pub(super) tasks: bool,
    /// It has refused `initialize`: until then it is believed to know none.
    pub(super) only: Option<Instant>,
    pub(super) schemas: Schemas,
    pub(super) relearning: Option<Relearning>,
    pub(super) relistening: Relistening,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Verdict {
    /// Nothing yet, or no longer.
    #[default]
    Unknown,
    /// It was asked.
    Asked {
        /// On this connection.
        id: UpstreamId,
        /// Until when.
        until: Instant,
        /// For the second time.
        again: bool,
    },
    /// It speaks a modern revision, on this connection.
    Modern(UpstreamId),
    /// It does not; believed until then.
    Legacy(Instant),
}

impl Modern {
    /// The end has begun: nobody waits for a verdict any more.
    pub(super) fn forget(&mut self) {
        self.verdict = Verdict::Unknown;
        self.waiting.clear();
        self.relearning = None;
        self.relistening.forget_all();
    }

    /// A request that waited is no longer wanted.
    pub(super) fn forget_waiting(&mut self, exchange: ExchangeId) {
        self.waiting.retain(|request| request.exchange != exchange);
        self.relistening.forget(exchange);
        if let Some(relearning) = &mut self.relearning {
            relearning.forget_waiting(exchange);
        }
    }

    /// The requests that wait for something.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        let waiting = self.waiting.iter().map(|request| request.exchange);
        let relearning = self.relearning.iter().flat_map(Relearning::exchanges);
        waiting.chain(relearning).chain(self.relistening.exchanges())
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let asked = match self.verdict {
            Verdict::Asked { until, .. } => Some(until),
            _ => None,
        };
        let relearning = self.relearning.as_ref().map(Relearning::deadline);
        asked.into_iter().chain(relearning).chain(self.relistening.deadline()).min()
    }
}

impl At<'_> {
    /// A modern request of a host.
    pub(super) fn on_modern_request(&mut self, request: Request<'_>) {
        match self.server.modern.verdict {
            Verdict::Modern(id) => self.relay_modern(id, request),
            _ => self.wait_for_modern(request),
        }
    }

    /// A request for the modern side of the server, or for what is there instead.
    pub(super) fn wait_for_modern(&mut self, request: Request<'_>) {
        match self.server.modern.verdict {
            Verdict::Modern(_) => self.on_host_request(request),
            Verdict::Legacy(until) if self.hub.now < until => self.fall_back(request),
            Verdict::Asked { .. } => self.wait(request),
            Verdict::Unknown | Verdict::Legacy(_) => match self.room() {
                _ if self.server.config.protocol.era() == Some(Era::Legacy) => {
                    self.fall_back(request);
                }
                Ok(()) if self.server.config.protocol.era() == Some(Era::Modern) => {
                    self.presume_modern();
                    self.on_host_request(request);
                }
                Ok(()) => {
                    self.wait(request);
                    self.probe();
                }
                Err(fault) => self.refuse(request.exchange, &fault),
            },
        }
    }

    /// The server has no modern side.
    fn fall_back(&mut self, request: Request<'_>) {
        if request.revision.era() == Era::Modern {
            return self.on_shared_request(request);
        }
        // It has refused that, or it would have been asked.
        self.server.modern.only = None;
        if let Some(peer) = request.peer {
            self.stop_hearing(peer);
        }
        self.fail(request.exchange, "it answers neither initialize nor server/discover");
    }

    /// Makes sure that the modern side of the server is there, or will be.
    pub(super) fn want_modern(&mut self) {
        if self.server.modern.verdict == Verdict::Unknown && self.room().is_ok() {
            self.probe();
        }
    }

    /// Asks the server to introduce itself, for a host that wants to know it.
    pub(super) fn wait_for_introduction(&mut self, id: UpstreamId, request: Request<'_>) {
        self.wait(request);
        self.ask(id, false);
    }

    fn wait(&mut self, request: Request<'_>) {
        if self.server.modern.waiting.len() >= self.server.config.limits.waiting {
            return self.too_many_waiting(request.exchange);
        }
        self.server.modern.waiting.push_back(request.into_owned());
    }

    /// It speaks a modern revision, for the configuration says so.
    pub(super) fn presume_modern(&mut self) -> UpstreamId {
        let id = self.add_link(None);
        if let Some(link) = self.server.links.get_mut(&id) {
            link.upstream.speak(Revision::NEWEST_MODERN);
        }
        self.server.modern.verdict = Verdict::Modern(id);
        self.server.modern.used = self.hub.now;
        id
    }

    /// What is to be done before anybody asks for it.
    pub(super) fn begin(&mut self) {
        if !core::mem::take(&mut self.server.eager) {
            return;
        }
        if self.hub.merged {
            return self.want_catalogue();
        }
        // Nobody waits for it yet.
        let _ = self.introduce_it();
    }

    /// Makes the server introduce itself, in the era that it speaks.
    pub(super) fn introduce_it(&mut self) -> Result<(), Fault> {
        match self.server.modern.verdict {
            Verdict::Modern(id) => self.ask(id, false),
            Verdict::Asked { .. } => self.server.modern.eager = true,
            Verdict::Legacy(until) if self.hub.now < until => return self.want_shared(),
            Verdict::Unknown | Verdict::Legacy(_) => match self.server.config.protocol.era() {
                Some(Era::Legacy) => return self.want_shared(),
                Some(Era::Modern) => {
                    self.room()?;
                    let id = self.presume_modern();
                    self.ask(id, false);
                }
                None => {
                    self.room()?;
                    self.server.modern.eager = true;
                    self.probe();
                }
            },
        }
        Ok(())
    }

    fn probe(&mut self) {
        let id = self.add_link(None);
        if let Some(link) = self.server.links.get_mut(&id) {
            link.upstream.speak(Revision::NEWEST_MODERN);
        }
        self.ask(id, false);
    }

    fn ask(&mut self, id: UpstreamId, again: bool) {
        let now = self.hub.now;
        if let Some(link) = self.server.links.get_mut(&id) {
            let params = probe::params();
            let request =
                link.upstream.request(&mut self.hub.wires, method::DISCOVER, Some(&params), &[]);
            link.calls.insert(request, Call::ours(CallKind::Probe, now));
        }
        self.touch(id);
        let until = now + self.server.config.limits.probe;
        self.server.modern.verdict = Verdict::Asked { id, until, again };
    }

    /// The server has answered the probe.
    pub(super) fn on_probe_answer(&mut self, id: UpstreamId, message: &Message<'_>) {
        let again = matches!(self.server.modern.verdict, Verdict::Asked { again: true, .. });
        let name = &self.server.config.name;
        match probe::judge(message) {
            probe::Verdict::Modern => self.judge_modern(id, message.result().unwrap_or("{}")),
            probe::Verdict::Again if !again => self.ask(id, true),
            probe::Verdict::Legacy if self.is_said_to_be_modern() => {
                self.hub.warn(alloc::format!("{name}: it does not say what it can do"));
                self.judge_modern(id, "{}");
            }
            probe::Verdict::Legacy => {
                self.judge_legacy(id, self.server.config.limits.legacy_verdict)
            }
            probe::Verdict::Later => {
                let ours = Revision::NEWEST_MODERN;
                let why = alloc::format!("{name}: it speaks only what came after MCP {ours}");
                self.give_up_modern(id, &why);
            }
            probe::Verdict::Again | probe::Verdict::Refused => {
                let error = message.error().unwrap_or("{}");
                let why = alloc::format!("{name}: it refused server/discover: {error}");
                self.give_up_modern(id, &why);
            }
        }
    }

    /// The probe was not answered.
    pub(super) fn on_probe_failure(&mut self, id: UpstreamId, failure: &Failure) {
        let pipe = !self.server.config.place.is_url();
        let judged = probe::judge_failure(failure, pipe).filter(|_| !self.is_said_to_be_modern());
        match judged {
            Some(_) if pipe => self.judge_legacy(id, self.server.config.limits.legacy_guess),
            Some(_) => self.judge_legacy(id, self.server.config.limits.legacy_verdict),
            None => {
                let why = alloc::format!("{}: {failure}", self.server.config.name);
                self.give_up_modern(id, &why);
            }
        }
    }

    /// The time for the answer to the probe has passed.
    pub(super) fn check_probe(&mut self) {
        let Verdict::Asked { id, until, .. } = self.server.modern.verdict else { return };
        if until > self.hub.now {
            return;
        }
        if !self.server.config.place.is_url() && !self.is_said_to_be_modern() {
            self.judge_legacy(id, self.server.config.limits.legacy_guess);
        } else {
            let why = alloc::format!("{}: it does not answer", self.server.config.name);
            self.give_up_modern(id, &why);
        }
    }

    /// Whether the configuration says that it is.
    fn is_said_to_be_modern(&self) -> bool {
        self.server.config.protocol.era() == Some(Era::Modern)
    }

    fn judge_modern(&mut self, id: UpstreamId, discovered: &str) {
        self.started(id);
        self.server.modern.discovered = Some(discovered.into());
        let path = ["capabilities", "extensions", EXTENSION];
        self.server.modern.tasks = get_path(discovered, &path).is_some();
        self.server.modern.verdict = Verdict::Modern(id);
        self.server.modern.used = self.hub.now;
        self.server.modern.eager = false;
        for request in core::mem::take(&mut self.server.modern.waiting) {
            self.on_host_request(request);
        }
        self.on_met(id);
    }

    fn judge_legacy(&mut self, id: UpstreamId, believed: Duration) {
        self.server.modern.verdict = Verdict::Legacy(self.hub.now + believed);
        if let Some(link) = self.server.links.get_mut(&id) {
            // Whatever became of it then says nothing of how it starts.
            link.works = true;
        }
        self.stop_link(id);
        if core::mem::take(&mut self.server.modern.eager)
            && let Err(fault) = self.want_shared()
        {
            self.on_not_met(&fault.object);
        }
        for request in core::mem::take(&mut self.server.modern.waiting) {
            self.on_host_request(request);
        }
    }

    /// No verdict: the next request asks again.
    fn give_up_modern(&mut self, id: UpstreamId, why: &str) {
        self.server.modern.verdict = Verdict::Unknown;
        self.stop_link(id);
        self.server.modern.eager = false;
        let fault = Fault::new(code::INTERNAL_ERROR, why);
        for request in core::mem::take(&mut self.server.modern.waiting) {
            self.refuse(request.exchange, &fault);
        }
        self.on_not_met(why);
    }
}
