//! Requests of a session, and what comes of them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::machine::{Event, Session, Stage};
use super::trouble::Trouble;
use crate::client::{Failure, RequestId};
use crate::jsonrpc::{Message, code, get, with_member};
use crate::protocol::fault::Fault;
use crate::protocol::{meta, method};
use crate::server::Outcome;
use crate::time::Instant;

/// Pages of a list that are read to learn what header fields a tool wants.
const PAGES: u32 = 100;

/// Names a request of a [`Session`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CallId(u64);

/// How a request is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether its progress is wanted.
    pub progress: bool,
    /// It is cancelled if it takes longer; `None` for ever.
    pub within: Option<Duration>,
}

/// A request that has no answer yet.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) call: CallId,
    method: String,
    params: Option<String>,
    options: Options,
    until: Option<Instant>,
    /// Whether it carries the header fields that its tool wants now.
    informed: bool,
}

/// A list that is read to learn that, and who waits for it, with their errors.
#[derive(Debug)]
pub(super) struct Relearning {
    request: RequestId,
    pages: u32,
    pub(super) waiting: Vec<(Running, String)>,
}

impl Session {
    /// Sends a request, as soon as the peers have agreed. Its answer comes as
    /// [`Event::Answer`], once. `params` is the JSON text of an object.
    pub fn request(&mut self, method: &str, params: Option<&str>, options: Options) -> CallId {
        let call = CallId(self.next);
        self.next += 1;
        let running = Running {
            call,
            method: method.into(),
            params: params.map(String::from),
            options,
            until: options.within.map(|within| self.now + within),
            informed: false,
        };
        match self.stage {
            Stage::Probing(_) | Stage::Initializing(..) => self.waiting.push_back(running),
            Stage::Open => self.send(running),
            Stage::Leaving | Stage::Over => {
                let outcome = Err(Trouble::Failure(Failure::Stopped));
                self.events.push_back(Event::Answer { call, outcome });
            }
        }
        self.settle();
        call
    }

    /// Sends a notification, if the peers have agreed.
    pub fn notify(&mut self, method: &str, params: Option<&str>) {
        if matches!(self.stage, Stage::Open) {
            self.server.notify(&mut self.wires, method, params);
        }
    }

    /// Answers a question of the server's.
    pub fn answer(&mut self, id: &str, outcome: Outcome<'_>) {
        self.server.answer(&mut self.wires, id, outcome);
        self.settle();
    }

    /// Gives up a request; its answer will not come.
    pub fn cancel(&mut self, call: CallId) {
        self.waiting.retain(|running| running.call != call);
        if let Some(relearning) = &mut self.relearning {
            relearning.waiting.retain(|(running, _)| running.call != call);
        }
        let found = self.running.iter().find(|(_, running)| running.call == call);
        if let Some((&request, _)) = found {
            self.running.remove(&request);
            self.server.cancel(&mut self.wires, request, None);
        }
        self.settle();
    }

    /// The peers have agreed.
    pub(super) fn open(&mut self) {
        self.stage = Stage::Open;
        self.events.push_back(Event::Ready);
        if self.config.listens && !self.is_modern() {
            self.server.listen(&mut self.wires);
        }
        for running in core::mem::take(&mut self.waiting) {
            self.send(running);
        }
    }

    /// The parameters of a request: a modern one says in each who we are and what we
    /// can do.
    fn params(&self, params: Option<&str>, token: Option<&str>) -> Option<String> {
        let modern = self.is_modern();
        if !modern && token.is_none() {
            return params.map(String::from);
        }
        let revision = self.revision.map(|revision| alloc::format!("\"{revision}\""));
        let said = |value| Some(value).filter(|_| modern);
        let mut edits = Vec::from([(meta::PROGRESS_TOKEN, token)]);
        for (name, value) in [
            (meta::PROTOCOL_VERSION, revision.as_deref().and_then(said)),
            (meta::CLIENT_INFO, said(meta::IDENTITY)),
            (meta::CLIENT_CAPABILITIES, said(&self.config.capabilities)),
        ] {
            if value.is_some() {
                edits.push((name, value));
            }
        }
        Some(meta::with(params, &edits))
    }

    fn send(&mut self, running: Running) {
        let token = running.options.progress.then(|| self.server.next_id().0.to_string());
        let params = self.params(running.params.as_deref(), token.as_deref());
        let fields = match running.method.as_str() {
            method::TOOLS_CALL if self.is_modern() => self.schemas.fields(params.as_deref(), &[]),
            _ => Vec::new(),
        };
        let (wires, method) = (&mut self.wires, &running.method);
        let request = self.server.request(wires, method, params.as_deref(), &fields);
        self.running.insert(request, running);
    }

    pub(super) fn on_answered(&mut self, request: RequestId, message: &Message<'_>) {
        if self.relearning.as_ref().is_some_and(|relearning| relearning.request == request) {
            return self.on_relearnt(message);
        }
        let Some(running) = self.running.remove(&request) else { return };
        let outcome = match message.result() {
            Some(result) if result.starts_with('{') => Ok(self.learn(&running.method, result)),
            Some(_) => Err(Trouble::Malformed(running.method)),
            None => {
                let error = message.error().unwrap_or("{}");
                let code = get(error, "code").and_then(|raw| raw.parse().ok());
                if code == Some(code::HEADER_MISMATCH)
                    && running.method == method::TOOLS_CALL
                    && self.is_modern()
                    && !running.informed
                {
                    return self.relearn(running, error);
                }
                Err(Trouble::Refused { method: running.method, error: error.into() })
            }
        };
        self.events.push_back(Event::Answer { call: running.call, outcome });
    }

    pub(super) fn on_failed(&mut self, request: RequestId, failure: Failure) {
        if self.relearning.as_ref().is_some_and(|relearning| relearning.request == request) {
            return self.end_relearning(false);
        }
        if let Some(Running { call, .. }) = self.running.remove(&request) {
            let outcome = Err(Trouble::Failure(failure));
            self.events.push_back(Event::Answer { call, outcome });
        }
    }

    /// Remembers what tools mirror into header fields. A client of a URL must hide
    /// those that declare it wrongly.
    fn learn(&mut self, method: &str, result: &str) -> String {
        let learnt = match method {
            method::TOOLS_LIST if self.is_modern() => self.schemas.learn(result),
            _ => None,
        };
        match learnt {
            Some((list, _)) if !self.is_pipe() => list,
            _ => result.into(),
        }
    }

    /// The server wants other header fields than those that we know of: its tools say
    /// which.
    fn relearn(&mut self, running: Running, error: &str) {
        let waiting = (Running { informed: true, ..running }, String::from(error));
        match &mut self.relearning {
            Some(relearning) => relearning.waiting.push(waiting),
            None => {
                let waiting = Vec::from([waiting]);
                let request = self.list_tools(None);
                self.relearning = Some(Relearning { request, pages: 1, waiting });
            }
        }
    }

    fn list_tools(&mut self, cursor: Option<&str>) -> RequestId {
        let mut params = self.params(None, None).unwrap_or_else(|| "{}".into());
        if cursor.is_some() {
            let mut paged = String::new();
            with_member(&params, "cursor", cursor, &mut paged);
            params = paged;
        }
        self.server.request(&mut self.wires, method::TOOLS_LIST, Some(&params), &[])
    }

    fn on_relearnt(&mut self, message: &Message<'_>) {
        let Some(result) = message.result() else { return self.end_relearning(false) };
        let _ = self.schemas.learn(result);
        let more = self.relearning.as_ref().is_some_and(|it| it.pages < PAGES);
        match get(result, "nextCursor").filter(|cursor| more && cursor.starts_with('"')) {
            Some(cursor) => {
                let request = self.list_tools(Some(cursor));
                if let Some(relearning) = &mut self.relearning {
                    relearning.request = request;
                    relearning.pages += 1;
                }
            }
            None => self.end_relearning(true),
        }
    }

    fn end_relearning(&mut self, well: bool) {
        let Some(Relearning { waiting, .. }) = self.relearning.take() else { return };
        for (running, error) in waiting {
            if well {
                self.send(running);
            } else {
                let outcome = Err(Trouble::Refused { method: running.method, error });
                self.events.push_back(Event::Answer { call: running.call, outcome });
            }
        }
    }

    pub(super) fn on_request(&mut self, message: &Message<'_>) {
        let id = message.id().unwrap_or("null");
        if message.method() == method::PING {
            self.server.answer(&mut self.wires, id, Outcome::Result("{}"));
        } else if self.config.capabilities == "{}" {
            let fault = Fault::method_not_found(message.method());
            self.server.answer(&mut self.wires, id, Outcome::Error(&fault.object));
        } else {
            self.events.push_back(Event::Question {
                id: id.into(),
                method: message.method().into(),
                params: message.params().map(String::from),
            });
        }
    }

    pub(super) fn on_notification(&mut self, message: &Message<'_>, during: Option<RequestId>) {
        let params = message.params().map(String::from);
        if message.method() == method::PROGRESS {
            let token = params.as_deref().and_then(|params| get(params, "progressToken"));
            let request = token.and_then(|raw| raw.parse().ok()).map(RequestId);
            let running = request.and_then(|request| self.running.get(&request));
            if let (Some(Running { call, .. }), Some(params)) = (running, params) {
                self.events.push_back(Event::Progress { call: *call, params });
            }
            return;
        }
        let subscription = params.as_deref().and_then(meta::of);
        let subscription = subscription.and_then(|m| get(m, meta::SUBSCRIPTION_ID)?.parse().ok());
        let request = subscription.map(RequestId).or(during);
        let call = request.and_then(|request| self.running.get(&request)).map(|it| it.call);
        let method = message.method().into();
        self.events.push_back(Event::Notification { method, params, call });
    }

    pub(super) fn calls_deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().filter_map(|running| running.until);
        waiting.chain(self.running.values().filter_map(|running| running.until)).min()
    }

    /// Fails requests whose time is up.
    pub(super) fn check_calls(&mut self) {
        let now = self.now;
        let late = |running: &Running| running.until.is_some_and(|until| until <= now);
        let mut over: Vec<Running> = Vec::new();
        while let Some(at) = self.waiting.iter().position(late) {
            over.extend(self.waiting.remove(at));
        }
        while let Some((&request, _)) = self.running.iter().find(|(_, running)| late(running)) {
            over.extend(self.running.remove(&request));
            self.server.cancel(&mut self.wires, request, Some(r#""timed out""#));
        }
        for Running { call, options, .. } in over {
            let outcome = Err(Trouble::OutOfTime(options.within.unwrap_or_default()));
            self.events.push_back(Event::Answer { call, outcome });
        }
    }
}
