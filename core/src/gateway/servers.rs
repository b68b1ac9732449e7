//! What the server answers, asks and tells, on its way to a host.

use alloc::string::{String, ToString};

use super::at::{Asker, At, Call, CallKind};
use super::many::List;
use super::modern::Verdict;
use super::question::{Question, question};
use super::{drive, project, rewrite, translate};
use crate::client::{Event, Failure, RequestId, UpstreamId};
use crate::jsonrpc::{Message, code, get};
use crate::protocol::fault::Fault;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::shape::Shape;
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, NotAsked, Outcome, PeerId, Route};

impl At<'_> {
    pub(super) fn on_server_event(&mut self, id: UpstreamId, event: Event<'_>) {
        match event {
            Event::Answer { request, message } => self.on_answer(id, request, &message),
            Event::Parted { request } => self.on_parted(id, request),
            Event::Failed { request, failure } => self.on_failure(id, request, &failure),
            Event::Request { message, during } => self.on_request(id, &message, during),
            Event::Notification { message, during } => self.on_server_notice(id, &message, during),
            Event::Ended { failure } => self.on_server_ended(id, &failure),
        }
    }

    fn take_call(&mut self, id: UpstreamId, request: RequestId) -> Option<Call> {
        let call = self.server.links.get_mut(&id)?.take(request)?;
        if let Some(exchange) = call.kind.exchange() {
            self.server.routes.remove(&exchange);
        }
        Some(call)
    }

    /// A server that wants to be polled for an answer has reasons that hold for the
    /// way to the host as well.
    fn on_parted(&mut self, id: UpstreamId, request: RequestId) {
        let call = self.server.links.get(&id).and_then(|link| link.calls.get(&request));
        if let Some(exchange) = call.and_then(|call| call.kind.exchange()) {
            self.hub.endpoint.part(exchange);
        }
    }

    fn on_answer(&mut self, id: UpstreamId, request: RequestId, message: &Message<'_>) {
        let Some(call) = self.take_call(id, request) else { return };
        if let Some(call) = self.drive(id, request, call, message) {
            self.answered(id, request, call, message);
        }
    }

    fn answered(&mut self, id: UpstreamId, request: RequestId, call: Call, message: &Message<'_>) {
        let modern = self.is_modern(id);
        if modern && message.result().is_some() {
            self.works(id);
        }
        match (call.kind, message.result()) {
            (CallKind::Probe, _) => self.on_probe_answer(id, message),
            (CallKind::Open, _) => self.on_shared_opened(id, message),
            (CallKind::Revive { peer }, _) => self.on_revived(id, peer, message),
            (CallKind::Restore, _) => {}
            (CallKind::Relearn, _) => self.on_relearnt(message),
            (CallKind::List { list }, _) => self.on_page(id, request, list, message),
            (CallKind::TaskResult { call }, _) => {
                if let Some(state) = self.take_call(id, call) {
                    self.answered(id, call, state, message);
                }
            }
            (CallKind::Poll { exchange }, _) => self.on_polled(exchange, message),
            (CallKind::Attend, result) => self.on_unattended(id, request, result.is_none()),
            (CallKind::OpenLease, _) => self.on_lease_opened(id, message),
            (CallKind::Parked { park }, _) => self.on_call_answered(park, message),
            (CallKind::Subscribe, result) => self.on_subscribed(id, request, result.is_some()),
            (CallKind::Hear { peer }, _) => self.on_hearing_ended(id, request, peer),
            (CallKind::Down { exchange, .. }, _) => {
                self.answer_down(id, exchange, call, message);
            }
            (CallKind::Up { exchange, .. }, _) => {
                self.answer_up(exchange, call.up.as_deref(), message);
            }
            (CallKind::Initialize { exchange, host }, Some(result)) => {
                self.on_initialized(id, exchange, host, result);
            }
            (CallKind::Initialize { exchange, .. }, None) => {
                let error = message.error().unwrap_or("{}");
                self.server.sessions.retain(|_, link| *link != id);
                self.stop_link(id);
                match call.spare.filter(|_| refuses_handshakes(error)) {
                    Some(request) => {
                        self.note_only_modern();
                        self.on_host_request(*request);
                    }
                    None => self.hub.endpoint.respond(exchange, Outcome::Error(error)),
                }
            }
            (CallKind::ListTools { exchange, .. }, Some(result)) => {
                let learnt = self.learn_tools(result);
                let result = rewrite::modern_result(learnt.as_deref().unwrap_or(result));
                self.hub.endpoint.respond(exchange, Outcome::Result(&result));
            }
            (CallKind::Relay { exchange, .. }, Some(result)) if modern => {
                let seen = rewrite::seen(result);
                let changed = match (seen.kind, seen.task) {
                    (Some(r#""input_required""#), None) => {
                        Some(self.asked_by(exchange, call.digest, result))
                    }
                    // Of a call only what says so; of what is about tasks, all.
                    (kind, Some(own)) if kind == Some(r#""task""#) || call.digest == 0 => {
                        self.task_for_host(exchange, own, result)
                    }
                    _ => None,
                };
                let result = rewrite::modern_result(changed.as_deref().unwrap_or(result));
                self.hub.endpoint.respond(exchange, Outcome::Result(&result));
            }
            (CallKind::Relay { exchange, .. }, Some(result)) => {
                if let Some(request) = &call.spare {
                    self.remember(request);
                }
                let projected = call.projection.and_then(|projection| projection.result(result));
                let result = projected.as_deref().unwrap_or(result);
                let legacy = translate::without_kind(result);
                let result = legacy.as_deref().unwrap_or(result);
                self.hub.endpoint.respond(exchange, Outcome::Result(result));
            }
            (CallKind::Listen { exchange }, Some(result)) => {
                self.server.modern.relistening.forget(exchange);
                if self.end_part(exchange) {
                    return;
                }
                let theirs = self.hub.endpoint.id_of(exchange).unwrap_or("null");
                let result = rewrite::modern_result(&meta::with(
                    Some(result),
                    &[(meta::SUBSCRIPTION_ID, Some(theirs))],
                ));
                self.hub.endpoint.respond(exchange, Outcome::Result(&result));
            }
            (
                CallKind::Relay { exchange, .. }
                | CallKind::ListTools { exchange, .. }
                | CallKind::Listen { exchange },
                None,
            ) => {
                self.server.modern.relistening.forget(exchange);
                let error = message.error().unwrap_or("{}");
                if let Some(request) = call.spare.filter(|_| modern)
                    && self.relearn(id, *request, error)
                {
                    return;
                }
                if self.end_part(exchange) {
                    return;
                }
                let in_words = if modern { None } else { self.visits_in_words(id, error) };
                let error = in_words.as_deref().unwrap_or(error);
                self.hub.endpoint.respond(exchange, Outcome::Error(error));
            }
        }
    }

    /// Learns what tools mirror into header fields. A client of a URL must hide
    /// those that declare it wrongly: gives the list without them.
    pub(super) fn learn_tools(&mut self, result: &str) -> Option<String> {
        let (list, dropped) = self.server.modern.schemas.learn(result)?;
        if !self.server.config.place.is_url() {
            return None;
        }
        for tool in dropped {
            let name = &self.server.config.name;
            self.hub
                .warn(alloc::format!("{name}: tool {tool} is hidden: its x-mcp-header is invalid"));
        }
        Some(list)
    }

    /// Whether a connection is the one of modern requests.
    fn is_modern(&self, id: UpstreamId) -> bool {
        let revision = self.server.links.get(&id).and_then(|link| link.upstream.revision());
        revision.is_some_and(|revision| revision.era() == Era::Modern)
    }

    fn on_initialized(&mut self, id: UpstreamId, exchange: ExchangeId, host: Revision, said: &str) {
        let revision = rewrite::agreed(said);
        let (Some(revision), Some(link)) = (revision, self.server.links.get_mut(&id)) else {
            let fault = self.unknown_version();
            self.hub.endpoint.respond(exchange, Outcome::Error(&fault.object));
            self.server.sessions.retain(|_, link| *link != id);
            self.stop_link(id);
            return;
        };
        link.upstream.speak(revision);
        self.note_tasks(id, said);
        self.started(id);
        self.opened(id);
        let url = self.server.config.place.is_url();
        let listless = if url { drive::without_list(said) } else { None };
        let result = rewrite::initialized(listless.as_deref().unwrap_or(said), revision, host);
        self.hub.endpoint.respond(exchange, Outcome::Result(&result));
    }

    fn on_failure(&mut self, id: UpstreamId, request: RequestId, failure: &Failure) {
        let Some(mut call) = self.take_call(id, request) else { return };
        if *failure == Failure::SessionLost
            && let Some(request) = call.spare.take()
            && self.send_again(id, *request)
        {
            return;
        }
        if let CallKind::Listen { exchange } = call.kind
            && failure.is_passing()
            && self.server.modern.relistening.knows(exchange)
            && let Some(request) = call.spare.take()
        {
            return self.relisten_later(request, failure);
        }
        let Some(exchange) = call.kind.exchange() else {
            return match call.kind {
                CallKind::Open => self.on_shared_failure(id, &failure.to_string()),
                CallKind::Revive { peer } => {
                    self.on_revival_failure(peer, &failure.to_string(), true)
                }
                CallKind::Restore => {}
                CallKind::Relearn => self.relearnt(false),
                CallKind::List { list } => self.on_page_failed(id, request, list),
                CallKind::Attend => self.on_unattended(id, request, false),
                CallKind::TaskResult { call } => self.on_failure(id, call, failure),
                CallKind::Poll { exchange } => self.abort(exchange, &failure.to_string()),
                CallKind::OpenLease => self.on_lease_failure(id, failure),
                CallKind::Parked { park } => self.on_call_failed(park, failure),
                CallKind::Subscribe => self.on_subscribed(id, request, false),
                CallKind::Hear { peer } => self.on_hearing_ended(id, request, peer),
                _ => self.on_probe_failure(id, failure),
            };
        };
        self.forget_round(exchange);
        self.fail(exchange, failure);
        if matches!(call.kind, CallKind::Initialize { .. }) {
            self.server.sessions.retain(|_, link| *link != id);
            self.stop_link(id);
        } else if *failure == Failure::SessionLost {
            self.on_server_ended(id, failure);
        }
    }

    /// The server, or its session, is gone, and with it the host's session: the
    /// host begins anew.
    fn on_server_ended(&mut self, id: UpstreamId, failure: &Failure) {
        if *failure != Failure::Stopped {
            self.hub.warn(alloc::format!("{}: {failure}", self.server.config.name));
        }
        if self.server.modern.verdict == Verdict::Modern(id) {
            self.server.modern.verdict = Verdict::Unknown;
            self.on_parted_with(id);
        }
        self.count_start(id, failure);
        self.on_shared_ended(id);
        let peer = self.server.links.get(&id).and_then(|link| link.peer);
        if let Some(peer) = peer
            && self.server.sessions.get(&peer) == Some(&id)
            && !self.lost(peer, failure)
        {
            self.server.sessions.remove(&peer);
            self.hub.deserted |= self.hub.endpoint.is_on_stdio(peer);
            self.hub.endpoint.end_peer(peer);
        }
        self.stop_link(id);
    }

    fn on_request(&mut self, id: UpstreamId, message: &Message<'_>, during: Option<RequestId>) {
        let raw = message.id().unwrap_or("null");
        let signed = self.signed(message.method(), message.params());
        let Some(link) = self.server.links.get_mut(&id) else { return };
        if message.method() == method::PING {
            link.upstream.answer(&mut self.hub.wires, raw, Outcome::Result("{}"));
            return;
        }
        if link.lease.is_some() {
            return self.on_question(id, message);
        }
        let Some(peer) = link.peer else {
            if link.upstream.revision().is_none_or(|revision| revision.era() == Era::Legacy) {
                return self.answer_for_nobody(id, message);
            }
            let name = &self.server.config.name;
            self.hub.warn(alloc::format!(
                "{name}: it sent a request, {}, which 2026-07-28 does not allow; dropped",
                message.method()
            ));
            return;
        };
        let exchange = during.and_then(|request| link.calls.get(&request)?.kind.exchange());
        let speaks = link.upstream.revision();
        let route = exchange.or_else(|| self.running_in(peer).next());
        let route = route.map_or(Route::Peer(peer), Route::Exchange);
        let (method, params) = (message.method(), signed.as_deref().or(message.params()));
        let older = self
            .hub
            .endpoint
            .revision_of(peer)
            .filter(|host| speaks.is_some_and(|server| server > *host));
        let question = older.map_or(Question::Same, |host| question(method, params, host));
        let asked = match question {
            Question::Same => self.hub.endpoint.ask(route, method, params),
            Question::Changed(params) => self.hub.endpoint.ask(route, method, Some(&params)),
            Question::Refused(fault) => Err(NotAsked::Undeclared(fault)),
            Question::Answered(answer) => {
                if let Some(link) = self.server.links.get_mut(&id) {
                    link.upstream.answer(&mut self.hub.wires, raw, Outcome::Result(answer));
                }
                let name = &self.server.config.name;
                self.hub.warn(alloc::format!("{name}: {method}: the host's MCP cannot express it"));
                return;
            }
        };
        let Some(link) = self.server.links.get_mut(&id) else { return };
        match asked {
            Ok(ask) => {
                link.asked.insert(raw.to_string(), ask);
                self.hub.asks.insert(ask, Asker::Link(id, raw.to_string()));
            }
            Err(NotAsked::Undeclared(fault)) => {
                link.upstream.answer(&mut self.hub.wires, raw, Outcome::Error(&fault.object));
            }
            Err(NotAsked::NoWay) => {
                let fault = Fault::new(code::INTERNAL_ERROR, "The host cannot be asked now");
                link.upstream.answer(&mut self.hub.wires, raw, Outcome::Error(&fault.object));
            }
        }
    }

    fn on_server_notice(
        &mut self,
        id: UpstreamId,
        message: &Message<'_>,
        during: Option<RequestId>,
    ) {
        let params = message.params();
        match message.method() {
            method::PROGRESS => self.on_progress(id, params),
            method::CANCELLED => self.on_cancelled_by_server(id, params),
            name => {
                let peer = self.server.links.get(&id).and_then(|link| link.peer);
                match peer {
                    // Hosts are told when it is in the catalogue.
                    _ if self.hub.merged && List::changed_by(name).is_some() => {
                        self.on_list_changed(name);
                    }
                    Some(peer) => self.tell_session(id, peer, name, params, during),
                    None if self.is_modern(id) => self.tell_modern(id, name, params, during),
                    None if name == method::MESSAGE => self.tell_log(id, params, during),
                    None if self.server.shared.link() == Some(id) => {
                        self.tell_watches(name, params);
                    }
                    None => {}
                }
            }
        }
    }

    fn on_progress(&mut self, id: UpstreamId, params: Option<&str>) {
        let Some(params) = params else { return };
        let request = get(params, "progressToken").and_then(|raw| raw.parse().ok()).map(RequestId);
        let (now, counts) = (self.hub.now, self.server.config.limits.progress_counts);
        let calls = &self.server.parking.calls;
        let call = self.server.links.get_mut(&id).and_then(|link| link.calls.get_mut(&request?));
        let call = call.and_then(|call| {
            if counts {
                call.since = now;
            }
            let value = get(params, "progress").and_then(|raw| raw.parse().ok());
            let rounds = matches!(call.kind, CallKind::Down { .. } | CallKind::Parked { .. });
            if let Some(value) = value.filter(|_| rounds) {
                // Each round may begin anew (PRG-02).
                if value <= call.shown {
                    return None;
                }
                call.shown = value;
            }
            let older = call.projection.map(|projection| projection.to);
            let exchange = match call.kind {
                CallKind::Parked { park } => calls.get(&park)?.exchange,
                kind => kind.exchange(),
            };
            Some((exchange?, call.token.as_deref()?, older))
        });
        // Late ones are dropped (PRG-03).
        let Some((exchange, token, older)) = call else { return };
        let params = rewrite::with(params, "progressToken", token);
        let params = match older {
            Some(to) => project::project(&params, Shape::Progress, to),
            None => params,
        };
        self.hub.endpoint.notify(Route::Exchange(exchange), method::PROGRESS, Some(&params));
    }

    /// The server withdraws a question, or ends a subscription.
    fn on_cancelled_by_server(&mut self, id: UpstreamId, params: Option<&str>) {
        let Some(params) = params else { return };
        let Some(raw) = get(params, "requestId") else { return };
        if self.on_question_withdrawn(id, raw) {
            return;
        }
        let Some(link) = self.server.links.get_mut(&id) else { return };
        if let Some(ask) = link.asked.remove(raw) {
            self.hub.asks.remove(&ask);
            self.hub.endpoint.withdraw(ask, get(params, "reason"));
            return;
        }
        let heard = raw.parse().ok().map(RequestId);
        if let Some(request) = heard
            && let Some(Call { kind: CallKind::Hear { peer }, .. }) = link.calls.get(&request)
        {
            let peer = *peer;
            link.take(request);
            return self.on_hearing_ended(id, request, peer);
        }
        if let Some(request) = heard
            && let Some(Call { kind: CallKind::Attend, .. }) = link.calls.get(&request)
        {
            link.take(request);
            return self.on_unattended(id, request, false);
        }
        let listen = raw.parse().ok().map(RequestId).filter(|request| {
            matches!(link.calls.get(request), Some(Call { kind: CallKind::Listen { .. }, .. }))
        });
        if let Some(request) = listen
            && let Some(Call { kind: CallKind::Listen { exchange }, spare, .. }) =
                self.take_call(id, request)
        {
            if self.server.modern.relistening.knows(exchange)
                && let Some(request) = spare
            {
                return self.relisten_later(request, &Failure::Broken);
            }
            if self.end_part(exchange) {
                return;
            }
            let theirs = self.hub.endpoint.id_of(exchange).unwrap_or("null");
            let id = [(meta::SUBSCRIPTION_ID, Some(theirs))];
            let result = rewrite::modern_result(&meta::with(None, &id));
            self.hub.endpoint.respond(exchange, Outcome::Result(&result));
        }
    }

    /// Something for a legacy session. What belongs to a request travels with
    /// it; what does not, by the session's own stream.
    fn tell_session(
        &mut self,
        id: UpstreamId,
        peer: PeerId,
        method: &str,
        params: Option<&str>,
        during: Option<RequestId>,
    ) {
        if method == method::ELICITED
            && self.hub.endpoint.revision_of(peer) < Some(Revision::R2025_11_25)
        {
            return;
        }
        let owner = during
            .and_then(|request| self.server.links.get(&id)?.calls.get(&request)?.kind.exchange());
        let route = match owner {
            Some(exchange) => Route::Exchange(exchange),
            None if method == method::MESSAGE => self.route_log(peer),
            None => Route::Peer(peer),
        };
        self.hub.endpoint.notify(route, method, params);
    }

    /// The requests of a session that this server works on, the newest first.
    fn running_in(&self, peer: PeerId) -> impl Iterator<Item = ExchangeId> {
        let routes = &self.server.routes;
        self.hub.endpoint.running_in(peer).filter(|exchange| routes.contains_key(exchange))
    }

    /// A log message of a server that does not say for which request: the only
    /// one that runs, or the session's stream, or the newest that runs.
    fn route_log(&self, peer: PeerId) -> Route {
        let mut running = self.running_in(peer);
        match (running.next(), running.next()) {
            (Some(only), None) => Route::Exchange(only),
            (Some(newest), Some(_)) if !self.hub.endpoint.has_stream(peer) => {
                Route::Exchange(newest)
            }
            _ => Route::Peer(peer),
        }
    }

    /// A log message of a legacy server that no session owns: for the modern request
    /// that it belongs to, if that can be told (LOG-04).
    fn tell_log(&mut self, id: UpstreamId, params: Option<&str>, during: Option<RequestId>) {
        let Some(link) = self.server.links.get(&id) else { return };
        let called = match (&link.lease, during) {
            (Some(lease), _) => lease.call.and_then(|park| self.host_of(park)),
            (None, Some(request)) => link.calls.get(&request).and_then(wanted),
            (None, None) => {
                let mut running = link.calls.values().filter_map(wanted);
                running.next().filter(|_| running.next().is_none())
            }
        };
        if let Some((exchange, level)) = called {
            self.log_up(exchange, level.as_deref(), params);
        }
    }

    /// Something from the connection that modern hosts share: to the
    /// subscription, or the request, that it belongs to; to nobody by guess
    /// (LOG-04).
    fn tell_modern(
        &mut self,
        id: UpstreamId,
        method: &str,
        params: Option<&str>,
        during: Option<RequestId>,
    ) {
        let Some(link) = self.server.links.get(&id) else { return };
        let tagged = params.and_then(meta::of).and_then(|m| get(m, meta::SUBSCRIPTION_ID));
        if let Some(tagged) = tagged {
            // Some servers make a string of our number.
            let number = tagged.trim_matches('"').parse().ok();
            let call = number.and_then(|n| link.calls.get(&RequestId(n)));
            if let (Some(number), Some(Call { kind: CallKind::Hear { peer }, .. })) = (number, call)
            {
                let peer = *peer;
                return self.on_heard(id, RequestId(number), peer, method, params);
            }
            let Some(Call { kind: CallKind::Listen { exchange }, .. }) = call else { return };
            let exchange = *exchange;
            let named = params.and_then(|params| self.told_for_host(exchange, params));
            let params = named.as_deref().or(params);
            if method == method::ACKNOWLEDGED
                && (self.is_relistened(exchange, params) || self.acknowledge_part(exchange, params))
            {
                return;
            }
            return self.hub.tell_listen(exchange, method, params);
        }
        let owner = during.and_then(|request| link.calls.get(&request)?.kind.exchange());
        let owner = owner.or_else(|| {
            let mut logging = link.calls.values().filter_map(|call| match call.kind {
                CallKind::Relay { exchange, logs: true }
                | CallKind::Down { exchange, logs: true, .. }
                | CallKind::ListTools { exchange, logs: true } => Some(exchange),
                _ => None,
            });
            let first = logging.next();
            first.filter(|_| method == method::MESSAGE && logging.next().is_none())
        });
        if let Some(exchange) = owner {
            self.hub.endpoint.notify(Route::Exchange(exchange), method, params);
        }
    }
}

/// The host of a call for a modern one, and the level of log messages that it wants.
fn wanted(call: &Call) -> Option<(ExchangeId, Option<String>)> {
    let CallKind::Up { exchange, .. } = call.kind else { return None };
    Some((exchange, call.up.as_ref()?.level.clone()))
}

/// Whether a server that refuses `initialize` so knows none: it speaks only modern
/// revisions.
pub(super) fn refuses_handshakes(error: &str) -> bool {
    let code = get(error, "code").and_then(|raw| raw.parse().ok());
    matches!(code, Some(code::METHOD_NOT_FOUND | code::UNSUPPORTED_VERSION | code::HEADER_MISMATCH))
}
