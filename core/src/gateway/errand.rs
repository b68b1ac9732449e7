//! Tasks of modern servers for legacy hosts, which do not know them (SEP-2663, D10): we
//! look how far the task is, have the host answer what the server wants to know, and
//! answer the call when it is done.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use core::time::Duration;

use super::at::{At, Call, CallKind};
use super::errors;
use super::modern::Verdict;
use super::rewrite::with;
use super::translate;
use crate::jsonrpc::{Message, get, members, string};
use crate::protocol::revision::Revision;
use crate::server::{ExchangeId, Request};

/// The extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How often a server is asked that does not say so, and at most and at least.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);

/// A task that we wait for.
#[derive(Debug)]
pub(super) struct Errand {
    /// Its id, raw.
    task: Box<str>,
    interval: Duration,
    /// What the host has been asked, by the keys that the server gave: raw.
    asked: BTreeSet<String>,
}

fn interval(task: &str) -> Duration {
    let told = get(task, "pollIntervalMs").and_then(|raw| raw.parse().ok());
    told.map_or(INTERVAL, Duration::from_millis).clamp(SHORTEST, LONGEST)
}

impl At<'_> {
    /// The server has made a task of a call.
    pub(super) fn begin_errand(&mut self, request: Box<Request<'static>>, task: &str, shown: f64) {
        let id = get(task, "taskId").unwrap_or("\"\"").into();
        let interval = interval(task);
        let again = self.hub.now + interval;
        let round = self.round(request, shown);
        round.errand = Some(Errand { task: id, interval, asked: BTreeSet::new() });
        round.again = Some(again);
    }

    /// Looks how far a task is.
    pub(super) fn poll_task(&mut self, exchange: ExchangeId) {
        self.go_on_errand(exchange, "tasks/get", None, CallKind::Poll { exchange });
    }

    /// Hands in what the host has answered.
    pub(super) fn update_task(&mut self, exchange: ExchangeId, answers: &str) {
        self.go_on_errand(exchange, "tasks/update", Some(answers), CallKind::Restore);
        let now = self.hub.now;
        if let Some(round) = self.server.rounds.get_mut(&exchange) {
            round.answers.clear();
            round.again = round.errand.as_ref().map(|errand| now + errand.interval);
        }
    }

    fn go_on_errand(
        &mut self,
        exchange: ExchangeId,
        method: &str,
        answers: Option<&str>,
        kind: CallKind,
    ) {
        let Some(round) = self.server.rounds.remove(&exchange) else { return };
        let sent = round.errand.as_ref().is_some_and(|errand| {
            self.errand_request(&round.request, errand, method, answers, kind)
        });
        self.server.rounds.insert(exchange, round);
        if !sent {
            self.abort(exchange, "its connection has ended");
        }
    }

    /// Asks the server for something about a task. Says whether it can be asked.
    pub(super) fn errand_request(
        &mut self,
        request: &Request<'_>,
        errand: &Errand,
        method: &str,
        answers: Option<&str>,
        kind: CallKind,
    ) -> bool {
        let now = self.hub.now;
        let Verdict::Modern(id) = self.server.modern.verdict else { return false };
        let mut params = with("{}", "taskId", &errand.task);
        if let Some(answers) = answers {
            params = with(&params, "inputResponses", answers);
        }
        let speaker = self.speaker(request.peer, request.revision).with_tasks();
        let params = speaker.params(Some(&params), None);
        let Some(link) = self.server.links.get_mut(&id) else { return false };
        let sent = link.upstream.request(&mut self.hub.wires, method, Some(&params), &[]);
        link.calls.insert(sent, Call::ours(kind, now));
        self.touch(id);
        true
    }

    /// The server has said how far a task is.
    pub(super) fn on_polled(&mut self, exchange: ExchangeId, message: &Message<'_>) {
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
        let host = round.request.revision;
        let method = round.request.message.method().to_string();
        let Some(task) = message.result() else {
            round.errand = None;
            let error = message.error().unwrap_or("{}");
            let error = errors::error_for_legacy(&method, error);
            return self.end_down(exchange, Err(error));
        };
        let status = get(task, "status").and_then(string).unwrap_or_default();
        let outcome = match &*status {
            "completed" => {
                let result = get(task, "result").unwrap_or("{}");
                Ok(translate::result_for_legacy(&method, result, host))
            }
            "failed" => {
                let error = get(task, "error").unwrap_or("{}");
                Err(errors::error_for_legacy(&method, error))
            }
            "cancelled" => {
                round.errand = None;
                return self.abort(exchange, "the server has cancelled the task");
            }
            _ => return self.on_working(exchange, host, task),
        };
        round.errand = None;
        self.end_down(exchange, outcome);
    }

    /// A task goes on, perhaps when its host has answered something.
    fn on_working(&mut self, exchange: ExchangeId, host: Revision, task: &str) {
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
        if let Some(errand) = &mut round.errand {
            errand.interval = interval(task);
        }
        let requests = get(task, "inputRequests").unwrap_or("{}");
        for (key, entry) in members(requests) {
            let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
            let Some(errand) = &mut round.errand else { return };
            if !errand.asked.insert(key.raw().to_string()) {
                continue;
            }
            let method = get(entry, "method").and_then(string).unwrap_or_default();
            let asked = self.ask_one(exchange, host, key.raw(), &method, get(entry, "params"));
            if let Err(why) = asked {
                return self.abort(exchange, &why);
            }
        }
        let (now, idle) = (self.hub.now, self.server.config.limits.call_idle);
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
        let asked = !round.open.is_empty();
        if !asked && !round.answers.is_empty() {
            return self.go_on(exchange);
        }
        let pause = round.errand.as_ref().map_or(INTERVAL, |errand| errand.interval);
        round.again = Some(now + if asked { idle } else { pause });
    }
}

/// The capabilities of a host as those of one that knows tasks.
pub(super) fn with_extension(capabilities: &str) -> String {
    with(capabilities, "extensions", &alloc::format!(r#"{{"{EXTENSION}":{{}}}}"#))
}
