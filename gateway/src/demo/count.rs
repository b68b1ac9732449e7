//! `count`: a call that takes its time, reports on the way, and can be
//! cancelled. It is made of deadlines alone.

use std::time::Duration;

use mcpx_core::jsonrpc::get;
use mcpx_core::protocol::revision::Revision;
use mcpx_core::protocol::{meta, method};
use mcpx_core::server::{ExchangeId, Outcome, PeerId, Route};
use mcpx_core::time::Instant;

use super::arguments::{Arguments, Unfit};
use super::host::{Host, Level};
use super::machine::Demo;
use super::requests::{Answer, Call};
use super::shapes;

/// The furthest that it counts.
const FURTHEST: u32 = 1000;
/// The longest wait for a step, in milliseconds.
const LONGEST: u32 = 60_000;

/// A call of `count` that runs.
#[derive(Debug)]
pub(super) struct Count {
    peer: Option<PeerId>,
    host: Host,
    /// What to report progress under, as raw JSON.
    token: Option<String>,
    done: u32,
    to: u32,
    delay: Duration,
    /// When the next step is due.
    next: Instant,
}

impl Demo {
    pub(super) fn count(&mut self, call: &Call<'_>, given: Arguments<'_>) -> Result<Answer, Unfit> {
        let to = given.integer("to", 1..=FURTHEST)?;
        let delay = given.optional("delay_ms", 0..=LONGEST)?;
        let delay = Duration::from_millis(delay.into());
        let next = self.now + delay;
        let (peer, host, token) = (call.peer, call.host, progress_token(call.params));
        let count = Count { peer, host, token, done: 0, to, delay, next };
        self.counts.insert(call.exchange, count);
        if delay > Duration::ZERO {
            self.steps.insert((next, call.exchange));
        } else {
            while self.counts.contains_key(&call.exchange) {
                self.step(call.exchange);
            }
        }
        Ok(Answer::Later)
    }

    /// Takes the steps that are due.
    pub(super) fn take_steps(&mut self) {
        while let Some(&(at, exchange)) = self.steps.first()
            && at <= self.now
        {
            self.steps.pop_first();
            self.step(exchange);
            if let Some(count) = self.counts.get_mut(&exchange) {
                count.next = self.now + count.delay;
                self.steps.insert((count.next, exchange));
            }
        }
    }

    fn step(&mut self, exchange: ExchangeId) {
        let Some(count) = self.counts.get_mut(&exchange) else { return };
        count.done += 1;
        let (done, to, revision) = (count.done, count.to, count.host.revision);
        let route = Route::Exchange(exchange);
        if let Some(token) = &count.token {
            let message = match revision {
                Revision::R2024_11_05 => String::new(),
                _ => format!(r#","message":"{done} of {to}""#),
            };
            let params =
                format!(r#"{{"progressToken":{token},"progress":{done},"total":{to}{message}}}"#);
            self.endpoint.notify(route, method::PROGRESS, Some(&params));
        }
        // A session may have changed its level meanwhile.
        let session = count.peer.and_then(|peer| self.sessions.get(&peer));
        if session.map_or(&count.host, |session| &session.host).hears(Level::Info) {
            let params = format!(r#"{{"level":"info","logger":"count","data":"{done} of {to}"}}"#);
            self.endpoint.notify(route, method::MESSAGE, Some(&params));
        }
        if done == to {
            self.counts.remove(&exchange);
            let result = shapes::text(revision, &format!("Counted to {to}"));
            self.endpoint.respond(exchange, Outcome::Result(&result));
        }
    }

    /// Nobody waits for this call any more, if it is one of `count`.
    pub(super) fn stop_counting(&mut self, exchange: ExchangeId) {
        if let Some(count) = self.counts.remove(&exchange) {
            self.steps.remove(&(count.next, exchange));
        }
    }
}

/// A string or an integer; other tokens are as good as none.
fn progress_token(params: &str) -> Option<String> {
    let token = get(meta::of(params)?, meta::PROGRESS_TOKEN)?;
    let fits = token.starts_with('"') || token.parse::<i64>().is_ok();
    fits.then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use mcpx_core::driver::{CloseReason, Input};
    use mcpx_core::protocol::revision::Era;
    use serde_json::{Value, json};

    use super::super::testing::{Bench, Wire, everywhere, text};
    use super::*;

    fn count(to: u32, delay_ms: u32) -> Value {
        json!({"name": "count", "arguments": {"to": to, "delay_ms": delay_ms}})
    }

    #[test]
    fn progress_is_reported_to_who_wants_it() {
        for (wire, revision) in everywhere() {
            for token in [json!("t"), json!(7)] {
                let mut bench = Bench::new();
                let host = bench.host(wire, revision, json!({}));
                let mut params = count(3, 0);
                params["_meta"] = json!({"progressToken": token});
                let messages = bench.request(&host, "tools/call", params);
                assert_eq!(messages.len(), 4);
                for (n, message) in (1..).zip(&messages[..3]) {
                    assert_eq!(message["method"], "notifications/progress");
                    let params = &message["params"];
                    assert_eq!(params["progressToken"], token);
                    assert_eq!((&params["progress"], &params["total"]), (&json!(n), &json!(3)));
                    let worded = params.get("message").is_some();
                    assert_eq!(worded, revision >= Revision::R2025_03_26);
                }
                assert_eq!(text(&messages[3]["result"]), "Counted to 3");
            }
        }
    }

    #[test]
    fn logs_are_sent_at_the_level_that_was_asked_for() {
        for (wire, revision) in everywhere() {
            for (level, heard) in [(None, 0), (Some("info"), 2), (Some("error"), 0)] {
                let mut bench = Bench::new();
                let host = bench.host(wire, revision, json!({}));
                let mut params = count(2, 0);
                match (revision.era(), level) {
                    (_, None) => {}
                    (Era::Legacy, Some(level)) => {
                        bench.result(&host, "logging/setLevel", json!({"level": level}));
                    }
                    (Era::Modern, Some(level)) => {
                        params["_meta"] = json!({meta::LOG_LEVEL: level});
                    }
                }
                let messages = bench.request(&host, "tools/call", params);
                assert_eq!(messages.len(), heard + 1);
                for message in &messages[..heard] {
                    assert_eq!(message["method"], "notifications/message");
                    assert_eq!(message["params"]["level"], "info");
                }
            }
        }
    }

    #[test]
    fn steps_take_their_time() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let mut params = count(2, 100);
            params["_meta"] = json!({"progressToken": 1});
            let conn = bench.start(&host, "tools/call", params);
            bench.wait(Duration::from_millis(99));
            assert!(bench.read(conn).is_empty());
            bench.wait(Duration::from_millis(1));
            assert_eq!(bench.read(conn).len(), 1);
            bench.wait(Duration::from_millis(100));
            assert_eq!(bench.read(conn).len(), 2);
        }
    }

    #[test]
    fn a_cancelled_count_leaves_nothing_behind() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let conn = bench.start(&host, "tools/call", count(1000, 1000));
            bench.wait(Duration::from_millis(2500));
            if (wire, revision.era()) == (Wire::Http, Era::Modern) {
                bench.input(Input::Closed { conn, why: CloseReason::Reset });
            } else {
                let params = json!({"requestId": bench.last_id()});
                let method = "notifications/cancelled";
                bench.send(&host, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
            assert!(bench.demo.counts.is_empty());
            assert!(bench.read(conn).is_empty());
            if wire == Wire::Pipe {
                assert_eq!(bench.deadline(), None);
            }
        }
    }
}
