//! `count`: a call that takes its time.

use std::time::Duration;

use super::arguments::{Arguments, Unfit};
use super::machine::Demo;
use super::requests::{Answer, Call};
use super::steps::{Course, Then, Voice};

/// The furthest that it counts.
const FURTHEST: u32 = 1000;
/// The longest wait for a step, in milliseconds.
const LONGEST: u32 = 60_000;

#[derive(Debug)]
struct Count {
    to: u32,
    delay: Duration,
}

impl Course for Count {
    fn step(&self, number: u32, voice: &mut Voice<'_>) -> Then {
        let message = format!("{number} of {}", self.to);
        voice.progress(number, self.to, &message);
        voice.log("count", &message);
        if number < self.to {
            return Then::Wait(self.delay);
        }
        Then::Finish(format!("Counted to {}", self.to))
    }
}

impl Demo {
    pub(super) fn count(&mut self, call: &Call<'_>, given: Arguments<'_>) -> Result<Answer, Unfit> {
        let to = given.integer("to", 1..=FURTHEST)?;
        let delay = given.optional("delay_ms", 0..=LONGEST)?;
        let delay = Duration::from_millis(delay.into());
        Ok(self.walk(call, Box::new(Count { to, delay }), delay))
    }
}

#[cfg(test)]
mod tests {
    use mcpx_core::driver::{CloseReason, Input};
    use mcpx_core::protocol::meta;
    use mcpx_core::protocol::revision::{Era, Revision};
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
            assert!(bench.demo.walks.is_empty());
            assert!(bench.read(conn).is_empty());
            if wire == Wire::Pipe {
                assert_eq!(bench.deadline(), None);
            }
        }
    }
}
