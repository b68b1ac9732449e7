//! Modern requests before a legacy server (requirements section 4, column ML).
//!
//! Those that cannot lead to a question go over the connection that nobody's
//! capabilities are declared on; `park` has the others, and `watch` what hosts
//! listen to.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use super::at::{At, Call, CallKind};
use super::drive::Driven;
use super::errors;
use super::rewrite;
use super::translate;
use crate::client::UpstreamId;
use crate::jsonrpc::{Message, get, get_path};
use crate::protocol::fault::Fault;
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, Outcome, Request, Route};

/// What a modern host says about log messages: none, or the lowest level, raw.
pub(super) fn level(params: Option<&str>) -> Option<&str> {
    get(meta::of(params?)?, meta::LOG_LEVEL)
}

/// A modern host's request to a legacy server.
#[derive(Debug)]
pub(super) struct Up {
    method: String,
    /// The lowest level of log messages that it wants, raw.
    pub(super) level: Option<String>,
}

/// What it says that it can do.
fn capabilities(params: Option<&str>) -> Option<&str> {
    get(meta::of(params?)?, meta::CLIENT_CAPABILITIES)
}

impl At<'_> {
    /// A modern request, over the connection that is open for nobody in particular.
    pub(super) fn serve(&mut self, id: UpstreamId, request: Request<'_>) {
        let params = request.message.params();
        match request.message.method() {
            method::DISCOVER => {
                let found = translate::discovered(self.server.shared.introduction());
                let result = rewrite::modern_result(&found);
                self.hub.endpoint.respond(request.exchange, Outcome::Result(&result));
            }
            method::LISTEN => self.watch(id, &request),
            method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ => {
                if let Err(fault) = self.check_fields(&request) {
                    return self.refuse(request.exchange, &fault);
                }
                let can = translate::capabilities_for_legacy(capabilities(params).unwrap_or("{}"));
                if params.is_some_and(|params| get(params, "requestState").is_some()) {
                    self.resume(&request);
                } else if can == "{}" {
                    self.relay_up(id, &request);
                } else {
                    self.call_for(&request, can);
                }
            }
            method::COMPLETE if !self.offers("completions") => {
                let fault = Fault::method_not_found(method::COMPLETE);
                self.refuse(request.exchange, &fault);
            }
            method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::COMPLETE => self.relay_up(id, &request),
            other => {
                let fault = Fault::method_not_found(other);
                self.refuse(request.exchange, &fault);
            }
        }
    }

    /// Whether the legacy server has this capability.
    fn offers(&self, name: &str) -> bool {
        get_path(self.server.shared.introduction(), &["capabilities", name]).is_some()
    }

    /// Sends a modern request to the legacy server, which cannot ask anything.
    fn relay_up(&mut self, id: UpstreamId, request: &Request<'_>) {
        let now = self.hub.now;
        let params = request.message.params();
        self.set_level(id, level(params));
        let Some(link) = self.server.links.get_mut(&id) else {
            return self.no_server(request.exchange);
        };
        let token = rewrite::progress_token(params).map(ToString::to_string);
        let ours = token.as_ref().map(|_| link.upstream.next_id().0.to_string());
        let method = request.message.method();
        let sent_params = translate::params_for_legacy(params, ours.as_deref());
        let speaks = link.upstream.revision();
        let older = translate::for_older_server(speaks, method, &sent_params);
        let sent_params = older.unwrap_or(sent_params);
        let driven = Driven::of(link, method, Some(&sent_params));
        let up = Up { method: method.to_string(), level: level(params).map(ToString::to_string) };
        let sent = link.upstream.request(&mut self.hub.wires, method, Some(&sent_params), &[]);
        let kind = CallKind::Up { exchange: request.exchange };
        let call = Call { token, driven, up: Some(Box::new(up)), ..Call::ours(kind, now) };
        link.calls.insert(sent, call);
        self.server.routes.insert(request.exchange, (id, sent));
        self.sweep_calls_later();
        self.touch(id);
    }

    /// A legacy server has answered a modern host's request.
    pub(super) fn answer_up(
        &mut self,
        exchange: ExchangeId,
        up: Option<&Up>,
        message: &Message<'_>,
    ) {
        let method = up.map_or("", |up| up.method.as_str());
        match message.result() {
            Some(result) => {
                let learnt =
                    (method == method::TOOLS_LIST).then(|| self.learn_tools(result)).flatten();
                let result = learnt.as_deref().unwrap_or(result);
                let result = translate::result_for_modern(method, result);
                let result = rewrite::modern_result(&result);
                self.hub.endpoint.respond(exchange, Outcome::Result(&result));
            }
            None => {
                let error = errors::error_for_modern(message.error().unwrap_or("{}"));
                self.hub.endpoint.respond(exchange, Outcome::Error(&error));
            }
        }
    }

    /// Makes the server send log messages of this level, if it does not yet.
    pub(super) fn set_level(&mut self, id: UpstreamId, wanted: Option<&str>) {
        let now = self.hub.now;
        let Some(wanted) = wanted else { return };
        let logs = self.offers("logging");
        let Some(link) = self.server.links.get_mut(&id).filter(|_| logs) else { return };
        let enough = |set: &String| translate::reaches(wanted, set);
        if translate::severity(wanted).is_none() || link.level.as_ref().is_some_and(enough) {
            return;
        }
        link.level = Some(wanted.to_string());
        let params = alloc::format!(r#"{{"level":{wanted}}}"#);
        let method = method::SET_LEVEL;
        let sent = link.upstream.request(&mut self.hub.wires, method, Some(&params), &[]);
        link.calls.insert(sent, Call::ours(CallKind::Restore, now));
    }

    /// A log message of a legacy server, for the modern request that it belongs to.
    pub(super) fn log_up(
        &mut self,
        exchange: ExchangeId,
        wanted: Option<&str>,
        params: Option<&str>,
    ) {
        let level = params.and_then(|params| get(params, "level")).unwrap_or_default();
        if wanted.is_some_and(|wanted| translate::reaches(level, wanted)) {
            self.hub.endpoint.notify(Route::Exchange(exchange), method::MESSAGE, params);
        }
    }
}
