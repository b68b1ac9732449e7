//! Legacy hosts before a modern server (requirements section 4, column LM).
//!
//! Such a server knows no sessions: we keep what the host has said once, and say it
//! with each request. `rounds` has what the server asks, `hear` what it tells.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use super::at::{At, Call, CallKind};
use super::errors;
use super::hear::Hearing;
use super::modern::Verdict;
use super::project::Projection;
use super::rewrite;
use super::rounds::Round;
use super::translate::{self, Speaker};
use crate::client::UpstreamId;
use crate::jsonrpc::{Message, code, get};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};
use crate::server::{ExchangeId, Outcome, PeerId, Request};

/// A legacy session that the server knows nothing of.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) speaker: Speaker,
    pub(super) hearing: Hearing,
}

impl Session {
    /// One that has just begun.
    pub(super) fn new(speaker: Speaker) -> Self {
        Self { speaker, hearing: Hearing::default() }
    }
}

impl At<'_> {
    /// Whether the server is known to have no legacy side.
    pub(super) fn is_only_modern(&self) -> bool {
        let known = self.server.modern.only.is_some_and(|until| until > self.hub.now);
        known || self.server.config.protocol.era() == Some(Era::Modern)
    }

    /// The server has refused `initialize` as one that knows none.
    pub(super) fn note_only_modern(&mut self) {
        self.server.modern.only = Some(self.hub.now + self.server.config.limits.legacy_verdict);
    }

    /// A request of a legacy host, for a server without a legacy side.
    pub(super) fn on_session_request(&mut self, request: Request<'_>) {
        let introduced = request.message.method() != method::INITIALIZE
            || self.server.modern.discovered.is_some();
        match self.server.modern.verdict {
            Verdict::Modern(id) if introduced => self.translate_down(id, &request),
            Verdict::Modern(id) => self.wait_for_introduction(id, request),
            _ => self.wait_for_modern(request),
        }
    }

    fn translate_down(&mut self, id: UpstreamId, request: &Request<'_>) {
        let (exchange, params) = (request.exchange, request.message.params());
        let session = request.peer.and_then(|peer| self.server.bridged.get_mut(&peer));
        match request.message.method() {
            method::INITIALIZE => self.introduce(request),
            method::SET_LEVEL => {
                let level = params.and_then(|params| get(params, "level"));
                let known = level.filter(|level| translate::severity(level).is_some());
                let (Some(level), Some(session)) = (known, session) else {
                    let fault = Fault::new(code::INVALID_PARAMS, "level is not a level of logging");
                    return self.refuse(exchange, &fault);
                };
                session.speaker.level = Some(level.to_string());
                self.hub.endpoint.respond(exchange, Outcome::Result("{}"));
            }
            method::SUBSCRIBE => self.subscribe(request),
            method::UNSUBSCRIBE => self.unsubscribe(request),
            method::TOOLS_LIST
            | method::TOOLS_CALL
            | method::PROMPTS_LIST
            | method::PROMPTS_GET
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::RESOURCES_READ
            | method::COMPLETE => self.send_down(id, request, None, false),
            other => {
                let fault = Fault::method_not_found(other);
                self.refuse(exchange, &fault);
            }
        }
    }

    /// Answers `initialize` from what the server has said of itself.
    fn introduce(&mut self, request: &Request<'_>) {
        let Some(peer) = request.peer else { return };
        let host = request.revision;
        let speaker = Speaker::new(host, request.message.params());
        self.on_host_gone(peer);
        self.server.bridged.insert(peer, Session::new(speaker));
        let found = self.server.modern.discovered.as_deref().unwrap_or("{}");
        let result = translate::initialized(found, host);
        let result = rewrite::initialized(&result, host, host);
        self.hub.endpoint.respond(request.exchange, Outcome::Result(&result));
    }

    /// Who speaks, to a server that wants to know it with each request.
    pub(super) fn speaker(&self, peer: Option<PeerId>, revision: Revision) -> Speaker {
        let session = peer.and_then(|peer| self.server.bridged.get(&peer));
        session.map_or_else(|| Speaker::nobody(revision), |session| session.speaker.clone())
    }

    /// Sends a legacy request to the modern server, with answers if it has asked.
    /// `again` says that it has refused it once for its header fields.
    pub(super) fn send_down(
        &mut self,
        id: UpstreamId,
        request: &Request<'_>,
        answers: Option<&str>,
        again: bool,
    ) {
        let now = self.hub.now;
        let speaker = self.speaker(request.peer, request.revision);
        let tasks = self.server.modern.tasks && request.message.method() == method::TOOLS_CALL;
        let Some(link) = self.server.links.get_mut(&id) else {
            return self.no_server(request.exchange);
        };
        let (method, params) = (request.message.method(), request.message.params());
        let token = rewrite::progress_token(params).map(ToString::to_string);
        let ours = token.as_ref().map(|_| link.upstream.next_id().0.to_string());
        let speaker = if tasks { speaker.with_tasks() } else { speaker };
        let params = speaker.params(answers.or(params), ours.as_deref());
        let fields = match method {
            method::TOOLS_CALL => self.server.modern.schemas.fields(Some(&params), &[]),
            _ => alloc::vec::Vec::new(),
        };
        let sent = link.upstream.request(&mut self.hub.wires, method, Some(&params), &fields);
        let logs = speaker.level.is_some();
        let kind = CallKind::Down { exchange: request.exchange, logs, again };
        let call = Call {
            token,
            projection: Some(Projection { to: request.revision, result: None }),
            spare: Some(Box::new(request.to_owned())),
            shown: self
                .server
                .rounds
                .get(&request.exchange)
                .map_or(f64::NEG_INFINITY, Round::shown),
            ..Call::ours(kind, now)
        };
        link.calls.insert(sent, call);
        self.server.modern.used = now;
        self.server.routes.insert(request.exchange, (id, sent));
        self.sweep_calls_later();
        self.touch(id);
    }

    /// A modern server has answered a legacy host's request.
    pub(super) fn answer_down(
        &mut self,
        id: UpstreamId,
        exchange: ExchangeId,
        call: Call,
        message: &Message<'_>,
    ) {
        let Some(request) = call.spare else { return };
        let (method, host) = (request.message.method(), request.revision);
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}");
            let first = matches!(call.kind, CallKind::Down { again: false, .. });
            if first
                && !self.server.rounds.contains_key(&exchange)
                && let Some(copy) = self.spare_call(&request)
                && self.relearn(id, *copy, error)
            {
                return;
            }
            let outcome = match (get(error, "code"), method) {
                (Some("-32021"), method::TOOLS_CALL) => Ok(failed_call(error)),
                _ => Err(errors::error_for_legacy(method, error)),
            };
            return self.end_down(exchange, outcome);
        };
        match get(result, "resultType") {
            Some(r#""input_required""#) => return self.ask_host(request, result, call.shown),
            Some(r#""task""#) => return self.begin_errand(request, result, call.shown),
            _ => {}
        }
        let learnt = (method == method::TOOLS_LIST).then(|| self.learn_tools(result)).flatten();
        let result = learnt.as_deref().unwrap_or(result);
        let result = translate::result_for_legacy(method, result, host);
        self.end_down(exchange, Ok(result));
    }

    /// Answers a legacy host's request.
    pub(super) fn end_down(&mut self, exchange: ExchangeId, outcome: Result<String, String>) {
        self.forget_round(exchange);
        match outcome {
            Ok(result) => self.hub.endpoint.respond(exchange, Outcome::Result(&result)),
            Err(error) => self.hub.endpoint.respond(exchange, Outcome::Error(&error)),
        }
    }
}

/// The result of a call that has failed, with the server's reason for the model.
pub(super) fn failed_call(error: &str) -> String {
    let why = get(error, "message").unwrap_or(r#""The server refused the call""#);
    alloc::format!(r#"{{"content":[{{"type":"text","text":{why}}}],"isError":true}}"#)
}
