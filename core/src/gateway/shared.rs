//! The connection that requests which stand alone share: legacy ones without a session,
//! and modern ones before a legacy server (requirements D3 and D7).
//!
//! We begin it ourselves, for nobody in particular: it declares no capabilities
//! of a host, so that the server has nothing to ask. It is kept while it is
//! used; when it has died, the next request begins another.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::at::{At, CallKind};
use super::config::Limits;
use super::rewrite;
use super::servers::refuses_handshakes;
use crate::client::UpstreamId;
use crate::jsonrpc::{Message, code, get, string};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::Era;
use crate::server::{ExchangeId, Request};
use crate::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: State,
    /// What the server has answered to `initialize`.
    introduction: Option<Box<str>>,
    /// Requests that came before it was ready.
    waiting: VecDeque<Request<'static>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// There is none.
    #[default]
    Absent,
    /// `initialize` is sent, and has until then.
    Opening(UpstreamId, Instant),
    /// Last used then.
    Open(UpstreamId, Instant),
}

impl Shared {
    /// The end has begun: nobody waits for it any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The server's answer to `initialize`, if the connection has ever been open.
    pub(super) fn introduction(&self) -> &str {
        self.introduction.as_deref().unwrap_or("{}")
    }

    /// The connection, if it is open.
    pub(super) fn link(&self) -> Option<UpstreamId> {
        match self.state {
            State::Open(id, _) => Some(id),
            State::Absent | State::Opening(..) => None,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.state == State::Absent
    }

    /// When a handshake has taken too long, or what nobody uses shall end.
    pub(super) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        match self.state {
            State::Absent => None,
            State::Opening(_, until) => Some(until),
            State::Open(_, used) => Some(used + limits.idle),
        }
    }

    /// The requests that wait for it.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.waiting.iter().map(|request| request.exchange)
    }

    /// A request that waited is no longer wanted.
    pub(super) fn forget_waiting(&mut self, exchange: ExchangeId) {
        self.waiting.retain(|request| request.exchange != exchange);
    }
}

impl At<'_> {
    /// A request that stands alone: a legacy one without a session, or a modern one.
    pub(super) fn on_shared_request(&mut self, request: Request<'_>) {
        match self.server.shared.state {
            State::Open(id, _) => self.relay_shared(id, request),
            State::Opening(..) => self.wait_for_shared(request),
            State::Absent => match self.may_initialize() {
                Ok(()) => {
                    self.wait_for_shared(request);
                    self.open_shared();
                }
                Err(fault) => self.refuse(request.exchange, &fault),
            },
        }
    }

    fn wait_for_shared(&mut self, request: Request<'_>) {
        if self.server.shared.waiting.len() >= self.server.config.limits.waiting {
            return self.too_many_waiting(request.exchange);
        }
        self.server.shared.waiting.push_back(request.into_owned());
    }

    fn relay_shared(&mut self, id: UpstreamId, request: Request<'_>) {
        self.server.shared.state = State::Open(id, self.hub.now);
        if request.revision.era() == Era::Modern {
            return self.serve(id, request);
        }
        let kind = CallKind::Relay { exchange: request.exchange, logs: false };
        self.relay_legacy(id, &request, kind);
    }

    /// Begins the connection, if there is none.
    pub(super) fn want_shared(&mut self) -> Result<(), Fault> {
        if self.server.shared.is_absent() {
            self.may_initialize()?;
            self.open_shared();
        }
        Ok(())
    }

    pub(super) fn open_shared(&mut self) {
        let id = self.open_as("{}", CallKind::Open);
        let until = self.hub.now + self.server.config.limits.handshake;
        self.server.shared.state = State::Opening(id, until);
    }

    /// The server has answered our `initialize`.
    pub(super) fn on_shared_opened(&mut self, id: UpstreamId, message: &Message<'_>) {
        if !matches!(self.server.shared.state, State::Opening(opening, _) if opening == id) {
            return;
        }
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}");
            let name = &self.server.config.name;
            let why = alloc::format!("{name}: it refuses initialize");
            let fault = Fault::with_data(code::INTERNAL_ERROR, &why, error);
            if refuses_handshakes(error) {
                self.note_only_modern();
                // Those of legacy hosts can go another way.
                let waiting = core::mem::take(&mut self.server.shared.waiting);
                let (legacy, modern) =
                    waiting.into_iter().partition(|it| it.revision.era() == Era::Legacy);
                self.server.shared.waiting = modern;
                self.give_up_shared(&fault);
                let legacy: VecDeque<Request<'static>> = legacy;
                for request in legacy {
                    self.on_host_request(request);
                }
                return;
            }
            return self.give_up_shared(&fault);
        };
        let revision = rewrite::agreed(result);
        let (Some(revision), Some(link)) = (revision, self.server.links.get_mut(&id)) else {
            let fault = self.unknown_version();
            return self.give_up_shared(&fault);
        };
        link.upstream.speak(revision);
        link.upstream.notify(&mut self.hub.wires, method::INITIALIZED, None);
        self.started(id);
        self.note_tasks(id, result);
        self.server.shared.state = State::Open(id, self.hub.now);
        self.server.shared.introduction = Some(result.into());
        self.watch_again(id);
        for request in core::mem::take(&mut self.server.shared.waiting) {
            self.relay_shared(id, request);
        }
        self.on_met(id);
    }

    /// Our `initialize` will not be answered.
    pub(super) fn on_shared_failure(&mut self, id: UpstreamId, why: &str) {
        if matches!(self.server.shared.state, State::Opening(opening, _) if opening == id) {
            let fault = self.fault(why);
            self.give_up_shared(&fault);
        }
    }

    /// A connection has ended. The next request begins another.
    pub(super) fn on_shared_ended(&mut self, id: UpstreamId) {
        if matches!(self.server.shared.state, State::Open(open, _) if open == id) {
            self.server.shared.state = State::Absent;
            self.watch_again_later();
            self.on_parted_with(id);
        }
    }

    fn give_up_shared(&mut self, fault: &Fault) {
        if let State::Opening(id, _) = core::mem::take(&mut self.server.shared.state) {
            self.stop_link(id);
        }
        for request in core::mem::take(&mut self.server.shared.waiting) {
            self.refuse(request.exchange, fault);
        }
        self.watch_again_later();
        let why = get(&fault.object, "message").and_then(string).unwrap_or_default();
        self.on_not_met(&why);
    }

    /// Gives up a handshake that takes too long, and ends what nobody uses.
    pub(super) fn check_shared(&mut self) {
        let due = self.server.shared.deadline(&self.server.config.limits);
        if due.is_none_or(|at| at > self.hub.now) {
            return;
        }
        match self.server.shared.state {
            State::Absent => {}
            State::Opening(id, _) => self.on_shared_failure(id, "it does not answer"),
            State::Open(id, _) => {
                if self.is_used(id) || !self.server.watches.is_empty() {
                    self.server.shared.state = State::Open(id, self.hub.now);
                    return;
                }
                self.server.shared.state = State::Absent;
                self.stop_link(id);
            }
        }
    }

    pub(super) fn unknown_version(&self) -> Fault {
        self.fault("it answered initialize with an unknown protocolVersion")
    }

    pub(super) fn too_many_waiting(&mut self, exchange: ExchangeId) {
        self.fail(exchange, "too many requests wait for it to start");
    }
}
