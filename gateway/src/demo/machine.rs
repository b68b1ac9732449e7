//! The demo server as a machine: every input to the endpoint, every event to
//! its answer, and the end in good order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcpx_core::driver::{Action, ConnId, Input, Machine};
use mcpx_core::entropy::Entropy;
use mcpx_core::jsonrpc::code;
use mcpx_core::protocol::fault::Fault;
use mcpx_core::server::{AskId, Config, Endpoint, Event, ExchangeId, Outcome, PeerId};
use mcpx_core::time::Instant;

use super::host::Session;
use super::inquiry::Pending;
use super::state::States;
use super::steps::Walk;
use super::watch::Listen;

/// Requests that run when we are asked to stop have this long.
const DRAIN: Duration = Duration::from_secs(3);

/// The demo server. See the [module](super).
///
/// Everything that it remembers belongs to a session or to a running request,
/// and the endpoint limits the number of both.
#[derive(Debug)]
pub struct Demo {
    pub(super) endpoint: Endpoint,
    /// What legacy sessions have agreed on.
    pub(super) sessions: BTreeMap<PeerId, Session>,
    /// Modern `subscriptions/listen` requests that run.
    pub(super) listens: BTreeMap<ExchangeId, Listen>,
    /// Calls that take their time.
    pub(super) walks: BTreeMap<ExchangeId, Walk>,
    /// When each of them takes its next step. Not a
    /// [`Timers`](mcpx_core::time::Timers): a cancelled call shall leave nothing
    /// behind.
    pub(super) steps: BTreeSet<(Instant, ExchangeId)>,
    /// Calls that wait for answers of a legacy host.
    pub(super) inquiries: BTreeMap<ExchangeId, Pending>,
    /// Which call each question belongs to.
    pub(super) asks: BTreeMap<AskId, ExchangeId>,
    /// Seals what modern hosts keep for us between two calls.
    pub(super) states: States,
    /// The number in `demo://counter`.
    pub(super) counter: u64,
    /// The moment of the input that is being handled.
    pub(super) now: Instant,
    phase: Phase,
}

/// How far the end has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It has not begun.
    Serving,
    /// Running requests may finish until then.
    Draining(Instant),
    /// Everybody is gone; [`Action::Exit`] comes after the last other action.
    Leaving,
    /// It is given.
    Over,
}

impl Demo {
    /// A server whose session ids and secrets come from `seed`.
    pub fn new(endpoint: Config, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(seed);
        Self {
            states: States::new(&mut entropy),
            endpoint: Endpoint::new(endpoint, entropy),
            sessions: BTreeMap::new(),
            listens: BTreeMap::new(),
            walks: BTreeMap::new(),
            steps: BTreeSet::new(),
            inquiries: BTreeMap::new(),
            asks: BTreeMap::new(),
            counter: 0,
            now: Instant::START,
            phase: Phase::Serving,
        }
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Request(request) => self.on_request(&request),
            // `notifications/initialized` and `notifications/roots/list_changed`:
            // neither changes what we do.
            Event::Notification { .. } => {}
            Event::Answer { ask, message } => self.on_answer(ask, &message),
            Event::Cancelled { exchange, .. } => self.forget(exchange),
            Event::Ended { peer } => {
                self.sessions.remove(&peer);
            }
        }
    }

    /// Nobody waits for this request any more.
    fn forget(&mut self, exchange: ExchangeId) {
        self.listens.remove(&exchange);
        self.stop_walking(exchange);
        self.stop_inquiring(exchange);
    }

    /// Handles what follows from an input until nothing does.
    fn settle(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.on_event(event);
        }
        // The endpoint stops reading from hosts that do not read. We have nothing
        // else to stop: no bytes pass through us from one side to another.
        while self.endpoint.take_swollen().is_some() {}
        match self.phase {
            Phase::Serving if self.endpoint.is_over() => self.leave(),
            Phase::Draining(until) if self.endpoint.running() == 0 || until <= self.now => {
                self.leave();
            }
            _ => {}
        }
    }

    /// The user asks to stop; the second time, at once.
    fn stop(&mut self) {
        match self.phase {
            Phase::Serving => {
                self.phase = Phase::Draining(self.now + DRAIN);
                self.endpoint.drain();
                self.end_listens();
            }
            Phase::Draining(_) => self.leave(),
            Phase::Leaving | Phase::Over => {}
        }
    }

    /// Answers what still runs, and ends every session and connection.
    fn leave(&mut self) {
        self.phase = Phase::Leaving;
        self.endpoint.drain();
        self.end_listens();
        let fault = Fault::new(code::INTERNAL_ERROR, "The server is stopping");
        let running = self.walks.keys().chain(self.inquiries.keys());
        for exchange in running.copied().collect::<Vec<_>>() {
            self.forget(exchange);
            self.endpoint.respond(exchange, Outcome::Error(&fault.object));
        }
        self.endpoint.shut_down();
        while let Some(event) = self.endpoint.poll_event() {
            self.on_event(event);
        }
    }
}

impl Machine for Demo {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.now = now;
        self.endpoint.at(now);
        match input {
            Input::Accepted { conn, listener, from } => {
                self.endpoint.accepted(conn, listener, from);
            }
            Input::Received { conn, mut bytes } => {
                while let Some(event) = self.endpoint.receive(conn, &mut bytes) {
                    self.on_event(event);
                }
            }
            Input::Finished { conn } => self.endpoint.finished(conn),
            Input::Closed { conn, .. } => self.endpoint.closed(conn),
            Input::Tick => {
                self.endpoint.sweep();
                self.take_steps();
            }
            Input::Stop => self.stop(),
            // Only what a machine has asked for is connected, writes to a standard
            // error or exits, and this one asks for nothing.
            Input::Connected { .. } | Input::Stderr { .. } | Input::Exited { .. } => {}
        }
        self.settle();
    }

    fn poll(&mut self) -> Option<Action> {
        if let Some(action) = self.endpoint.poll() {
            return Some(action);
        }
        if self.phase != Phase::Leaving {
            return None;
        }
        self.phase = Phase::Over;
        Some(Action::Exit)
    }

    fn deadline(&self) -> Option<Instant> {
        let step = self.steps.first().map(|(at, _)| *at);
        let end = match self.phase {
            Phase::Draining(until) => Some(until),
            _ => None,
        };
        [self.endpoint.deadline(), step, end].into_iter().flatten().min()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.endpoint.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.now = now;
        self.endpoint.at(now);
        self.endpoint.sent(conn, n);
        // A pipe may have ended with its last byte.
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use mcpx_core::protocol::meta;
    use mcpx_core::protocol::revision::Revision;
    use serde_json::json;

    use super::super::testing::{Bench, Wire, everywhere};
    use super::*;

    const COUNT: &str = r#"{"name":"count","arguments":{"to":2,"delay_ms":1000}}"#;

    #[test]
    fn idle_costs_no_ticks() {
        let mut bench = Bench::new();
        assert_eq!(bench.deadline(), None);
        let host = bench.host(Wire::Pipe, Revision::R2025_11_25, json!({}));
        bench.call(&host, "echo", json!({"message": "x"}));
        assert_eq!(bench.deadline(), None);
    }

    #[test]
    fn a_stop_ends_listens_gracefully_and_lets_calls_finish() {
        for wire in [Wire::Pipe, Wire::Http] {
            let mut bench = Bench::new();
            let host = bench.host(wire, Revision::R2026_07_28, json!({}));
            let stream = bench.start(&host, "subscriptions/listen", json!({"notifications": {}}));
            let id = bench.last_id();
            bench.read(stream);
            let running = bench.start(&host, "tools/call", serde_json::from_str(COUNT).unwrap());
            bench.input(Input::Stop);
            let last = bench.read(stream).pop().unwrap();
            let expected = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: id}});
            assert_eq!((&last["id"], &last["result"]), (&json!(id), &expected));
            assert!(bench.actions().contains(&Action::StopListening));
            bench.wait(Duration::from_millis(1999));
            assert!(!bench.actions().contains(&Action::Exit));
            bench.wait(Duration::from_millis(1));
            assert_eq!(bench.read(running).pop().unwrap()["result"]["content"][0]["type"], "text");
            assert_eq!(bench.actions().pop(), Some(Action::Exit));
            assert!(bench.actions().is_empty());
        }
    }

    #[test]
    fn calls_that_take_too_long_fail_at_a_stop() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({"sampling": {}}));
            let arguments = json!({"to": 9, "delay_ms": 1000});
            let running =
                bench.start(&host, "tools/call", json!({"name": "count", "arguments": arguments}));
            bench.input(Input::Stop);
            bench.wait(DRAIN);
            assert_eq!(bench.read(running).pop().unwrap()["error"]["code"], -32603);
            assert_eq!(bench.actions().pop(), Some(Action::Exit));
        }
    }

    #[test]
    fn a_second_stop_does_not_wait() {
        let mut bench = Bench::new();
        let host = bench.host(Wire::Pipe, Revision::R2025_11_25, json!({"sampling": {}}));
        let thought = json!({"name": "think", "arguments": {"question": "?"}});
        bench.start(&host, "tools/call", thought);
        bench.input(Input::Stop);
        assert_ne!(bench.actions().pop(), Some(Action::Exit));
        bench.input(Input::Stop);
        assert_eq!(bench.read(host.conn).pop().unwrap()["error"]["code"], -32603);
        assert_eq!(bench.actions().pop(), Some(Action::Exit));
    }

    #[test]
    fn the_end_of_standard_input_is_the_end() {
        let mut bench = Bench::new();
        let stdio = bench.connect(0);
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        bench.input(Input::Received { conn: stdio, bytes: ping });
        bench.input(Input::Finished { conn: stdio });
        assert_eq!(bench.read(stdio).len(), 1);
        assert_eq!(bench.actions().pop(), Some(Action::Exit));
    }

    #[test]
    fn sessions_are_forgotten_with_their_end() {
        let mut bench = Bench::new();
        for wire in [Wire::Pipe, Wire::Http] {
            bench.host(wire, Revision::R2025_06_18, json!({}));
        }
        assert_eq!(bench.demo.sessions.len(), 2);
        bench.wait(Duration::from_secs(3600));
        assert_eq!(bench.demo.sessions.len(), 1);
    }

    #[test]
    fn chunking_changes_nothing() {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;
        let count = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count","arguments":{"to":3},"_meta":{"progressToken":1}}}"#;
        let echo = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}"#;
        let script = format!("{initialize}\n{count}\n{echo}\n");
        let said = |size: usize| {
            let mut bench = Bench::new();
            let conn = bench.connect(2);
            for bytes in script.as_bytes().chunks(size) {
                bench.input(Input::Received { conn, bytes });
            }
            bench.read_text(conn)
        };
        let whole = said(script.len());
        assert_eq!(whole.lines().count(), 6);
        for size in [1, 2, 7, 64, 300] {
            assert_eq!(said(size), whole);
        }
    }
}
