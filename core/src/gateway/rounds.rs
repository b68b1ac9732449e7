//! Questions of a modern server to a legacy host, and the calls that go on with the
//! answers (requirements MRT rows, column LM).
//!
//! The host sees one call, in the middle of which it is asked; the server sees the
//! same call again and again, each time with more answers.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::time::Duration;

use super::at::{Asker, At, CallKind};
use super::errand::Errand;
use super::modern::Verdict;
use super::question::{Question, question};
use super::rewrite::with;
use super::session::failed_call;
use super::translate::without;
use crate::jsonrpc::{Kind, Message, get, members, string};
use crate::protocol::method;
use crate::protocol::revision::Revision;
use crate::server::{AskId, ExchangeId, Request, Route};
use crate::time::{Instant, backoff};

/// The longest pause before a call that waits for something else is tried again.
const LONGEST: Duration = Duration::from_secs(10);

/// A call in the middle of which a modern server has asked.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) request: Box<Request<'static>>,
    /// The server's own state, raw.
    state: Option<String>,
    /// What is with the host, by the keys that the server gave: raw.
    pub(super) open: BTreeMap<String, Asked>,
    pub(super) answers: BTreeMap<String, String>,
    count: u32,
    /// The progress that the host was told last.
    shown: f64,
    /// URLs, raw, that the host has led its user to, and under what ids.
    visited: BTreeMap<String, String>,
    /// When the call is tried again, or given up if the host still has to answer.
    pub(super) again: Option<Instant>,
    /// The task that the server has made of it.
    pub(super) errand: Option<Errand>,
    /// When it began.
    began: Instant,
}

#[derive(Debug)]
pub(super) struct Asked {
    ask: AskId,
    method: String,
    /// The URL, if it is one to visit.
    url: Option<String>,
}

impl Round {
    pub(super) fn shown(&self) -> f64 {
        self.shown
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.again
    }
}

impl At<'_> {
    /// The server wants answers before it answers.
    pub(super) fn ask_host(&mut self, request: Box<Request<'static>>, result: &str, shown: f64) {
        let exchange = request.exchange;
        let most = self.server.config.limits.rounds;
        let host = request.revision;
        let round = self.round(request, shown);
        round.count += 1;
        round.state = get(result, "requestState").map(ToString::to_string);
        round.answers.clear();
        if round.count > most {
            return self.abort(exchange, "the server asks again and again");
        }
        let pause = backoff(Duration::from_secs(1), round.count - 1, LONGEST);
        for (key, entry) in members(get(result, "inputRequests").unwrap_or("{}")) {
            let method = get(entry, "method").and_then(string).unwrap_or_default();
            let params = get(entry, "params");
            if let Err(why) = self.ask_one(exchange, host, key.raw(), &method, params) {
                return self.abort(exchange, &why);
            }
        }
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
        let pause = if round.open.is_empty() { pause } else { self.server.config.limits.call_idle };
        round.again = Some(self.hub.now + pause);
    }

    /// The round of a request, which may have begun.
    pub(super) fn round(&mut self, request: Box<Request<'static>>, shown: f64) -> &mut Round {
        let now = self.hub.now;
        let round = self.server.rounds.entry(request.exchange).or_insert_with(|| Round {
            request,
            state: None,
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            count: 0,
            shown,
            visited: BTreeMap::new(),
            again: None,
            errand: None,
            began: now,
        });
        round.shown = shown;
        round
    }

    pub(super) fn ask_one(
        &mut self,
        exchange: ExchangeId,
        host: Revision,
        key: &str,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), String> {
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return Ok(()) };
        let url = (method == method::ELICIT)
            .then(|| params.and_then(|params| get(params, "url")))
            .flatten()
            .map(ToString::to_string);
        if url.as_ref().is_some_and(|url| round.visited.contains_key(url)) {
            // Its user is there already: the server shall look again in a while.
            round.answers.insert(key.to_string(), String::from(r#"{"action":"accept"}"#));
            return Ok(());
        }
        if !matches!(method, method::ELICIT | method::SAMPLE | method::LIST_ROOTS) {
            return Err(alloc::format!("the server asks for {method}, which hosts do not know"));
        }
        let id = url.as_ref().map(|_| alloc::format!("\"mcpx-{}\"", self.hub.number()));
        let changed = match question(method, params, host) {
            Question::Same => None,
            Question::Changed(params) => Some(params),
            Question::Answered(answer) => {
                let Some(round) = self.server.rounds.get_mut(&exchange) else { return Ok(()) };
                round.answers.insert(key.to_string(), answer.to_string());
                return Ok(());
            }
            Question::Refused(fault) => return Err(fault.object),
        };
        let params = changed.as_deref().or(params);
        let signed = self.signed(method, params);
        let params = signed.as_deref().or(params);
        let named = id.as_ref().map(|id| with(params.unwrap_or("{}"), "elicitationId", id));
        let params = named.as_deref().or(params);
        let asked = self.hub.endpoint.ask(Route::Exchange(exchange), method, params);
        let ask = asked
            .map_err(|_| String::from("the host cannot be asked what the server wants to know"))?;
        let asker = Asker::Round(self.server.id, exchange, key.to_string());
        self.hub.asks.insert(ask, asker);
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return Ok(()) };
        if let (Some(url), Some(id)) = (&url, id) {
            round.visited.insert(url.clone(), id);
        }
        round.open.insert(key.to_string(), Asked { ask, method: method.to_string(), url });
        Ok(())
    }

    /// The host has answered.
    pub(super) fn on_answer_in_round(
        &mut self,
        exchange: ExchangeId,
        key: &str,
        message: &Message<'_>,
    ) {
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
        let Some(asked) = round.open.remove(key) else { return };
        let answer = match (message.kind(), asked.method.as_str()) {
            (Kind::Error, method::ELICIT) => String::from(r#"{"action":"cancel"}"#),
            (Kind::Error, method) => {
                let why = alloc::format!("the host refused {method}");
                return self.abort(exchange, &why);
            }
            (_, method::SAMPLE) => message.result().unwrap_or("{}").to_string(),
            _ => without(message.result().unwrap_or("{}"), "_meta"),
        };
        let gone = get(&answer, "action") != Some(r#""accept""#);
        if let Some(url) = asked.url.filter(|_| gone) {
            round.visited.remove(&url);
        }
        round.answers.insert(key.to_string(), answer);
        if round.open.is_empty() {
            self.go_on(exchange);
        }
    }

    /// Sends the call again, with what the host has answered.
    pub(super) fn go_on(&mut self, exchange: ExchangeId) {
        let Verdict::Modern(id) = self.server.modern.verdict else {
            return self.abort(exchange, "its connection has ended");
        };
        let Some(round) = self.server.rounds.get_mut(&exchange) else { return };
        round.again = None;
        let mut answers = String::from("{");
        for (key, answer) in &round.answers {
            let comma = if answers.len() > 1 { "," } else { "" };
            let _ = write!(answers, "{comma}{key}:{answer}");
        }
        answers.push('}');
        if round.errand.is_some() {
            return self.update_task(exchange, &answers);
        }
        let mut params = round.request.message.params().unwrap_or("{}").to_string();
        if !round.answers.is_empty() {
            params = with(&params, "inputResponses", &answers);
        }
        if let Some(state) = &round.state {
            params = with(&params, "requestState", state);
        }
        let request = round.request.to_owned();
        self.send_down(id, &request, Some(&params), false);
    }

    /// The call cannot go on (MRT-14).
    pub(super) fn abort(&mut self, exchange: ExchangeId, why: &str) {
        let Some(round) = self.server.rounds.get(&exchange) else { return };
        let error = self.fault(why).object;
        let outcome = match round.request.message.method() {
            method::TOOLS_CALL => Ok(failed_call(&error)),
            _ => Err(error),
        };
        self.end_down(exchange, outcome);
    }

    /// A call is over: what was asked for it is withdrawn, and what its user did
    /// elsewhere is done (2025-11-25 `client/elicitation`).
    pub(super) fn forget_round(&mut self, exchange: ExchangeId) {
        let Some(round) = self.server.rounds.remove(&exchange) else { return };
        if let Some(errand) = &round.errand {
            self.errand_request(&round.request, errand, "tasks/cancel", None, CallKind::Restore);
        }
        for asked in round.open.into_values() {
            self.hub.asks.remove(&asked.ask);
            self.hub.endpoint.withdraw(asked.ask, None);
        }
        if round.request.revision == Revision::R2025_11_25 {
            for id in round.visited.into_values() {
                let params = alloc::format!(r#"{{"elicitationId":{id}}}"#);
                let route = Route::Exchange(exchange);
                self.hub.endpoint.notify(route, method::ELICITED, Some(&params));
            }
        }
    }

    /// Tries again what is due.
    pub(super) fn check_rounds(&mut self) {
        let now = self.hub.now;
        let rounds = self.server.rounds.iter();
        let due: Vec<ExchangeId> = rounds
            .filter(|(_, round)| round.again.is_some_and(|at| at <= now))
            .map(|(exchange, _)| *exchange)
            .collect();
        for exchange in due {
            let total = self.server.config.limits.call_total;
            let Some(round) = self.server.rounds.get_mut(&exchange) else { continue };
            round.again = None;
            let (asked, errand) = (!round.open.is_empty(), round.errand.is_some());
            if asked {
                self.abort(exchange, "the host did not answer in time");
            } else if round.began + total <= now {
                self.abort(exchange, "it did not answer in time");
            } else if errand {
                self.poll_task(exchange);
            } else {
                self.go_on(exchange);
            }
        }
    }
}
