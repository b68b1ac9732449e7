//! Calls that take their time: they report on the way, and can be cancelled.
//! They are made of deadlines alone.

use std::fmt::Debug;
use std::time::Duration;

use mcpx_core::jsonrpc::get;
use mcpx_core::protocol::revision::Revision;
use mcpx_core::protocol::{meta, method};
use mcpx_core::server::{Endpoint, ExchangeId, Outcome, PeerId, Route};
use mcpx_core::time::Instant;

use super::host::{Host, Level};
use super::machine::Demo;
use super::requests::{Answer, Call};
use super::shapes;

/// What a call does, step by step.
pub(super) trait Course: Debug + Send {
    /// Takes a step, the first of which is number one.
    fn step(&self, number: u32, voice: &mut Voice<'_>) -> Then;
}

/// What follows a step.
#[derive(Debug)]
pub(super) enum Then {
    /// The next one, after this time.
    Wait(Duration),
    /// The result of the call, in words.
    Finish(String),
}

/// A call that runs.
#[derive(Debug)]
pub(super) struct Walk {
    peer: Option<PeerId>,
    host: Host,
    /// What to report progress under, as raw JSON.
    token: Option<String>,
    course: Box<dyn Course>,
    taken: u32,
    /// When the next step is due.
    next: Instant,
}

/// How a call speaks on its way.
#[derive(Debug)]
pub(super) struct Voice<'a> {
    endpoint: &'a mut Endpoint,
    exchange: ExchangeId,
    host: Host,
    token: Option<&'a str>,
}

impl Voice<'_> {
    /// Reports progress, if the host wants to hear of it.
    pub(super) fn progress(&mut self, done: u32, total: u32, message: &str) {
        let Some(token) = self.token else { return };
        let message = match self.host.revision {
            Revision::R2024_11_05 => String::new(),
            _ => format!(r#","message":{}"#, shapes::quoted(message)),
        };
        let params =
            format!(r#"{{"progressToken":{token},"progress":{done},"total":{total}{message}}}"#);
        self.endpoint.notify(Route::Exchange(self.exchange), method::PROGRESS, Some(&params));
    }

    /// Lets go of the host's connection, if it can come back for the answer.
    pub(super) fn part(&mut self) {
        self.endpoint.part(self.exchange);
    }

    /// Logs for information, if the host wants to hear of that.
    pub(super) fn log(&mut self, logger: &str, message: &str) {
        if !self.host.hears(Level::Info) {
            return;
        }
        let (logger, message) = (shapes::quoted(logger), shapes::quoted(message));
        let params = format!(r#"{{"level":"info","logger":{logger},"data":{message}}}"#);
        self.endpoint.notify(Route::Exchange(self.exchange), method::MESSAGE, Some(&params));
    }
}

impl Demo {
    /// Begins a call whose first step is taken after `delay`.
    pub(super) fn walk(
        &mut self,
        call: &Call<'_>,
        course: Box<dyn Course>,
        delay: Duration,
    ) -> Answer {
        let (peer, host, token) = (call.peer, call.host, progress_token(call.params));
        let walk = Walk { peer, host, token, course, taken: 0, next: self.now + delay };
        self.walks.insert(call.exchange, walk);
        self.go_on(call.exchange);
        Answer::Later
    }

    /// Takes the steps that are due, of all calls.
    pub(super) fn take_steps(&mut self) {
        while let Some(&(at, exchange)) = self.steps.first()
            && at <= self.now
        {
            self.steps.pop_first();
            self.go_on(exchange);
        }
    }

    /// Takes the steps of a call that are due.
    fn go_on(&mut self, exchange: ExchangeId) {
        while let Some(walk) = self.walks.get_mut(&exchange) {
            if self.now < walk.next {
                self.steps.insert((walk.next, exchange));
                return;
            }
            walk.taken += 1;
            // A session may have changed its level meanwhile.
            let session = walk.peer.and_then(|peer| self.sessions.get(&peer));
            let host = session.map_or(walk.host, |session| session.host);
            let (endpoint, token) = (&mut self.endpoint, walk.token.as_deref());
            let mut voice = Voice { endpoint, exchange, host, token };
            match walk.course.step(walk.taken, &mut voice) {
                Then::Wait(delay) => walk.next = self.now + delay,
                Then::Finish(text) => {
                    self.walks.remove(&exchange);
                    let result = shapes::text(host.revision, &text);
                    self.endpoint.respond(exchange, Outcome::Result(&result));
                }
            }
        }
    }

    /// Nobody waits for this call any more, if it is one with steps.
    pub(super) fn stop_walking(&mut self, exchange: ExchangeId) {
        if let Some(walk) = self.walks.remove(&exchange) {
            self.steps.remove(&(walk.next, exchange));
        }
    }
}

/// A string or an integer; other tokens are as good as none.
fn progress_token(params: &str) -> Option<String> {
    let token = get(meta::of(params)?, meta::PROGRESS_TOKEN)?;
    let fits = token.starts_with('"') || token.parse::<i64>().is_ok();
    fits.then(|| token.to_owned())
}
