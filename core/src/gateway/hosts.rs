//! What hosts ask and tell, on its way to the server.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::at::{At, Call, CallKind};
use super::drive::Driven;
use super::project::Projection;
use super::tasks::is_about_task;
use super::{rewrite, translate};
use crate::client::UpstreamId;
use crate::client::probe::Protocol;
use crate::jsonrpc::{Kind, Message, code, get};
use crate::protocol::fault::Fault;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, Outcome, PeerId, Request};

impl At<'_> {
    /// A request of a host.
    pub(super) fn on_host_request(&mut self, request: Request<'_>) {
        match request.revision.era() {
            Era::Modern => self.on_modern_request(request),
            Era::Legacy => self.on_legacy_request(request),
        }
    }

    /// A host is gone.
    pub(super) fn on_host_gone(&mut self, peer: PeerId) {
        self.server.lives.bury(peer);
        self.stop_hearing(peer);
        if let Some(id) = self.server.sessions.remove(&peer) {
            self.stop_link(id);
        }
    }

    fn on_legacy_request(&mut self, request: Request<'_>) {
        let begins = request.message.method() == method::INITIALIZE;
        let bridged = request.peer.is_some_and(|peer| self.server.bridged.contains_key(&peer));
        if bridged && !begins || self.is_only_modern() && (begins || request.peer.is_none()) {
            return self.on_session_request(request);
        }
        let Some(peer) = request.peer else { return self.on_shared_request(request) };
        let Some(request) = self.await_revival(request) else { return };
        let exchange = request.exchange;
        if request.message.method() == "tasks/list" && self.server.config.place.is_url() {
            // They would be those of all our hosts.
            return self.refuse(exchange, &Fault::method_not_found("tasks/list"));
        }
        let (id, kind) = if begins {
            if let Err(fault) = self.may_initialize() {
                return self.refuse(exchange, &fault);
            }
            let id = self.add_link(Some(peer));
            self.stop_hearing(peer);
            self.born(peer, &self.handshake(request.message.params(), None));
            if let Some(old) = self.server.sessions.insert(peer, id) {
                self.stop_link(old);
            }
            (id, CallKind::Initialize { exchange, host: request.revision })
        } else {
            match self.server.sessions.get(&peer) {
                Some(id) => (*id, CallKind::Relay { exchange, logs: true }),
                None => return self.begin_again(request),
            }
        };
        self.relay_legacy(id, &request, kind);
    }

    /// Sends a legacy request of a host to the server.
    pub(super) fn relay_legacy(&mut self, id: UpstreamId, request: &Request<'_>, kind: CallKind) {
        let now = self.hub.now;
        let spare = match kind {
            CallKind::Relay { .. } => self.spare(request),
            _ if self.server.config.protocol.era().is_none() => Some(Box::new(request.to_owned())),
            _ => None,
        };
        let protocol = self.server.config.protocol;
        let Some(link) = self.server.links.get_mut(&id) else {
            return self.no_server(request.exchange);
        };
        let params = request.message.params();
        let token = rewrite::progress_token(params).map(ToString::to_string);
        let ours = token.as_ref().map(|_| link.upstream.next_id().0.to_string());
        let rewritten = match kind {
            CallKind::Initialize { .. } => Some(handshake(protocol, params, ours.as_deref())),
            _ => ours
                .as_deref()
                .map(|ours| meta::with(params, &[(meta::PROGRESS_TOKEN, Some(ours))])),
        };
        let params = rewritten.as_deref().or(params);
        let method = request.message.method();
        let speaks = link.upstream.revision();
        let older = params.and_then(|params| translate::for_older_server(speaks, method, params));
        let params = older.as_deref().or(params);
        let knows = request.revision == Revision::NEWEST_LEGACY && !self.hub.merged;
        let driven = if knows { None } else { Driven::of(link, method, params) };
        let projection = Projection::of(speaks, request.revision, method);
        let sent = link.upstream.request(&mut self.hub.wires, method, params, &[]);
        let call = Call { token, projection, spare, driven, ..Call::ours(kind, now) };
        link.calls.insert(sent, call);
        self.server.routes.insert(request.exchange, (id, sent));
        self.sweep_calls_later();
        self.touch(id);
    }

    /// Sends a modern request of a host to the server.
    pub(super) fn relay_modern(&mut self, id: UpstreamId, request: Request<'_>) {
        let spare = match request.message.method() {
            method::LISTEN => Some(Box::new(request.to_owned())),
            _ => self.spare_call(&request),
        };
        self.send_modern(id, request, spare);
    }

    pub(super) fn send_modern(
        &mut self,
        id: UpstreamId,
        request: Request<'_>,
        spare: Option<Box<Request<'static>>>,
    ) {
        let now = self.hub.now;
        if let Err(fault) = self.check_fields(&request) {
            return self.refuse(request.exchange, &fault);
        }
        let message = &request.message;
        let digest = self.hub.digest(message.method(), message.params());
        let opened = match (message.method(), message.params()) {
            (method, Some(params)) if is_about_task(method) => {
                self.task_for_server(request.exchange, params).map(Some)
            }
            (method::LISTEN, Some(params)) => Ok(self.listen_for_server(request.exchange, params)),
            _ => self.open_state(&request, digest),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(fault) => return self.refuse(request.exchange, &fault),
        };
        let Some(link) = self.server.links.get_mut(&id) else {
            return self.no_server(request.exchange);
        };
        let params = opened.as_deref().or(message.params());
        let fields = match message.method() {
            method::TOOLS_CALL => {
                let theirs = request.fields.as_deref().unwrap_or_default();
                self.server.modern.schemas.fields(params, theirs)
            }
            _ => Vec::new(),
        };
        let token = rewrite::progress_token(params).map(ToString::to_string);
        let ours = token.as_ref().map(|_| link.upstream.next_id().0.to_string());
        let rewritten = rewrite::modern_request(params, ours.as_deref());
        let logs = params.and_then(meta::of).is_some_and(|m| get(m, meta::LOG_LEVEL).is_some());
        let kind = match message.method() {
            method::LISTEN => CallKind::Listen { exchange: request.exchange },
            method::TOOLS_LIST => CallKind::ListTools { exchange: request.exchange, logs },
            _ => CallKind::Relay { exchange: request.exchange, logs },
        };
        let method = message.method();
        let sent = link.upstream.request(&mut self.hub.wires, method, Some(&rewritten), &fields);
        link.calls.insert(sent, Call { token, spare, digest, ..Call::ours(kind, now) });
        self.server.modern.used = now;
        self.server.routes.insert(request.exchange, (id, sent));
        self.sweep_calls_later();
        self.touch(id);
    }

    /// Compares the `Mcp-Param-*` of a modern host's call with its body.
    pub(super) fn check_fields(&self, request: &Request<'_>) -> Result<(), Fault> {
        let theirs = match request.message.method() {
            method::TOOLS_CALL => request.fields.as_deref(),
            _ => None,
        };
        let Some(theirs) = theirs else { return Ok(()) };
        let checked = self.server.modern.schemas.check(request.message.params(), theirs);
        checked.map_err(|fault| Fault::new(code::HEADER_MISMATCH, &fault.to_string()))
    }

    pub(super) fn no_server(&mut self, exchange: ExchangeId) {
        self.fail(exchange, "its connection has ended");
    }

    /// Tells a host why its request fails: it is the server's fault, or the way's.
    pub(super) fn fail(&mut self, exchange: ExchangeId, why: impl fmt::Display) {
        let fault = self.fault(why);
        self.refuse(exchange, &fault);
    }

    /// The error that tells it.
    pub(super) fn fault(&self, why: impl fmt::Display) -> Fault {
        let why = alloc::format!("{}: {why}", self.server.config.name);
        Fault::new(code::INTERNAL_ERROR, &why)
    }

    pub(super) fn refuse(&mut self, exchange: ExchangeId, fault: &Fault) {
        // It may have been a subscription that was to be taken up again.
        self.server.modern.relistening.forget(exchange);
        if self.end_part(exchange) {
            return;
        }
        self.hub.endpoint.respond(exchange, Outcome::Error(&fault.object));
    }

    /// A notification of a host.
    pub(super) fn on_notification(&mut self, peer: PeerId, message: &Message<'_>) {
        if !self.may_notify(peer, message) {
            return;
        }
        if self.server.bridged.contains_key(&peer) {
            // Of lists, hosts hear from the catalogue.
            if message.method() == method::INITIALIZED && !self.hub.merged {
                self.hear(peer);
            }
            return;
        }
        let Some(&id) = self.server.sessions.get(&peer) else { return };
        let Some(link) = self.server.links.get_mut(&id) else { return };
        link.upstream.notify(&mut self.hub.wires, message.method(), message.params());
        if message.method() == method::INITIALIZED {
            link.upstream.listen(&mut self.hub.wires);
        }
        self.touch(id);
    }

    /// The answer of a host to a question of the server's, by its raw id.
    pub(super) fn on_answer_from_host(&mut self, id: UpstreamId, raw: &str, message: &Message<'_>) {
        let Some(link) = self.server.links.get_mut(&id) else { return };
        link.asked.remove(raw);
        let outcome = match message.kind() {
            Kind::Error => Outcome::Error(message.error().unwrap_or("{}")),
            _ => Outcome::Result(message.result().unwrap_or("{}")),
        };
        link.upstream.answer(&mut self.hub.wires, raw, outcome);
        self.touch(id);
    }

    /// Nobody waits for the answer to a host's request any more.
    pub(super) fn cancel_call(&mut self, exchange: ExchangeId, reason: Option<&str>) {
        self.server.modern.forget_waiting(exchange);
        self.server.shared.forget_waiting(exchange);
        self.server.lives.forget_waiting(exchange);
        if let Some(park) = self.server.exchanges.get(&exchange) {
            return self.drop_call(*park, reason);
        }
        if self.unwatch(exchange) {
            return;
        }
        for session in self.server.bridged.values_mut() {
            session.hearing.forget_waiting(exchange);
        }
        self.forget_round(exchange);
        let Some((id, request)) = self.server.routes.remove(&exchange) else { return };
        let Some(link) = self.server.links.get_mut(&id) else { return };
        // A handshake cannot be cancelled (CAN-04): its session just ends.
        let call = link.take(request);
        if !matches!(call, Some(Call { kind: CallKind::Initialize { .. }, .. })) {
            self.cancel_taken(id, request, call.as_ref(), reason);
        }
        self.touch(id);
    }

    /// Ends a connection to the server, and what waits for it.
    pub(super) fn stop_link(&mut self, id: UpstreamId) {
        let Some(link) = self.server.links.get_mut(&id) else { return };
        link.upstream.stop(&mut self.hub.wires);
        let asked = core::mem::take(&mut link.asked);
        for ask in asked.into_values() {
            self.hub.asks.remove(&ask);
            self.hub.endpoint.withdraw(ask, None);
        }
        self.touch(id);
    }
}

impl At<'_> {
    pub(super) fn sweep_calls_later(&mut self) {
        if self.server.call_sweep.is_none() {
            let limits = &self.server.config.limits;
            self.server.call_sweep = Some(self.hub.now + limits.call_idle.min(limits.call_total));
        }
    }

    /// Fails requests that have shown no sign of life for too long.
    pub(super) fn sweep_calls(&mut self) {
        if self.server.call_sweep.is_none_or(|at| at > self.hub.now) {
            return;
        }
        self.server.call_sweep = None;
        let (idle, total) =
            (self.server.config.limits.call_idle, self.server.config.limits.call_total);
        let (mut late, mut vain, mut next) = (Vec::new(), Vec::new(), None);
        let links = self.server.links.iter();
        let calls = links.flat_map(|(id, link)| link.calls.iter().map(|call| (*id, call)));
        for (id, (request, call)) in calls {
            let exchange = match call.kind {
                CallKind::Relay { exchange, .. }
                | CallKind::Up { exchange, .. }
                | CallKind::Down { exchange, .. }
                | CallKind::ListTools { exchange, .. }
                | CallKind::Initialize { exchange, .. } => Some(exchange),
                CallKind::Parked { park } => self.host_of(park).map(|(exchange, _)| exchange),
                _ => None,
            };
            let nobody = matches!(call.kind, CallKind::Restore | CallKind::Subscribe);
            if exchange.is_none() && !nobody {
                continue;
            }
            let at = (call.since + idle).min(call.sent + total);
            if at <= self.hub.now {
                match exchange {
                    Some(exchange) => late.push(exchange),
                    None => vain.push((id, *request)),
                }
            } else {
                next = Some(next.map_or(at, |before: crate::time::Instant| before.min(at)));
            }
        }
        self.server.call_sweep = next;
        for (id, request) in vain {
            let link = self.server.links.get_mut(&id);
            let call = link.and_then(|link| link.take(request));
            if call.is_some_and(|call| call.kind == CallKind::Subscribe) {
                self.on_subscribed(id, request, false);
            }
        }
        for exchange in late {
            self.cancel_call(exchange, Some(r#""timed out""#));
            self.fail(exchange, "it did not answer in time");
        }
    }
}

impl At<'_> {
    /// Whether a legacy session with the server may begin; why not, if not.
    pub(super) fn may_initialize(&self) -> Result<(), Fault> {
        match self.server.config.protocol.era() {
            Some(Era::Modern) => {
                let name = &self.server.config.name;
                let why =
                    alloc::format!("{name} is said to speak only {}", Revision::NEWEST_MODERN);
                Err(Fault::new(code::INTERNAL_ERROR, &why))
            }
            Some(Era::Legacy) | None => self.room(),
        }
    }

    /// A new connection on which we begin a session of our own, with these capabilities.
    pub(super) fn open_as(&mut self, capabilities: &str, kind: CallKind) -> UpstreamId {
        let id = self.add_link(None);
        let params = alloc::format!(
            r#"{{"protocolVersion":"{}","capabilities":{},"clientInfo":{}}}"#,
            Revision::NEWEST_LEGACY,
            self.declared(capabilities),
            meta::IDENTITY
        );
        let params = self.handshake(Some(&params), None);
        self.initialize(id, &params, kind);
        id
    }

    /// Sends an `initialize` of ours.
    pub(super) fn initialize(&mut self, id: UpstreamId, params: &str, kind: CallKind) {
        let now = self.hub.now;
        if let Some(link) = self.server.links.get_mut(&id) {
            let (wires, method) = (&mut self.hub.wires, method::INITIALIZE);
            let sent = link.upstream.request(wires, method, Some(params), &[]);
            link.calls.insert(sent, Call::ours(kind, now));
        }
        self.touch(id);
    }

    /// The parameters of `initialize` for the server.
    pub(super) fn handshake(&self, params: Option<&str>, token: Option<&str>) -> String {
        handshake(self.server.config.protocol, params, token)
    }
}

fn handshake(protocol: Protocol, params: Option<&str>, token: Option<&str>) -> String {
    let params = rewrite::initialize(params, token);
    match protocol {
        Protocol::Exactly(revision) => {
            rewrite::with(&params, "protocolVersion", &alloc::format!("\"{revision}\""))
        }
        Protocol::Auto | Protocol::Modern | Protocol::Legacy => params,
    }
}
