//! `ask` and `think`: calls that ask the user, or the host's model.

use mcpx_core::jsonrpc::{get, string};

use super::host::Host;
use super::inquiry::{Answers, Inquiry, Next, Senseless};
use super::question::{Form, Question, said};
use super::shapes;

/// The name of the only question.
const KEY: &str = "answer";

const NAME: &str =
    r#"{"name":{"type":"string","title":"Name","description":"Used to say hello, and not kept"}}"#;

/// The most tokens that a thought may take.
const THOUGHT: u32 = 200;

/// Asks the user for a name.
#[derive(Debug)]
pub(super) struct Ask;

impl Inquiry for Ask {
    fn next(&self, host: &Host, answers: &Answers) -> Result<Next, Senseless> {
        let Some(answer) = answers.get(KEY) else {
            return Ok(Next::Ask(vec![Question::form(host, KEY, "What is your name?", NAME)]));
        };
        let text = match Form::read(answer).ok_or(Senseless)? {
            Form::Accepted(content) => {
                let name = get(content, "name").and_then(string).ok_or(Senseless)?;
                format!("Hello, {name}!")
            }
            Form::Declined => "The user does not tell.".to_owned(),
            Form::Cancelled => "The user was asked and did not answer.".to_owned(),
        };
        Ok(Next::Result(shapes::text(host.revision, &text)))
    }
}

/// Asks the host's model a question.
#[derive(Debug)]
pub(super) struct Think(pub(super) String);

impl Inquiry for Think {
    fn next(&self, host: &Host, answers: &Answers) -> Result<Next, Senseless> {
        let Some(answer) = answers.get(KEY) else {
            return Ok(Next::Ask(vec![Question::sample(KEY, &self.0, THOUGHT)]));
        };
        let text = said(answer).ok_or(Senseless)?;
        Ok(Next::Result(shapes::text(host.revision, &text)))
    }
}

#[cfg(test)]
mod tests {
    use mcpx_core::driver::ConnId;
    use mcpx_core::protocol::revision::{Era, Revision};
    use serde_json::{Value, json};

    use super::super::testing::{self, Bench, Wire, everywhere, text};

    /// Calls a tool that asks, answers, and gives the last message and what was
    /// asked.
    fn converse(
        bench: &mut Bench,
        host: &testing::Host,
        tool: &str,
        answer: &Value,
    ) -> (Value, Value) {
        let params = json!({"name": tool, "arguments": {"question": "Why?"}});
        let (last, asked) = bench.converse(host, "tools/call", params, |_| answer.clone());
        assert_eq!(asked.len(), 1);
        (last, asked[0].clone())
    }

    fn asked(bench: &mut Bench, host: &testing::Host, params: Value) -> (ConnId, Value) {
        let conn = bench.start(host, "tools/call", params);
        let mut messages = bench.read(conn);
        assert_eq!(messages.len(), 1);
        (conn, messages.remove(0))
    }

    #[test]
    fn a_name_is_asked_for_and_used() {
        for (wire, revision) in everywhere().filter(|(_, r)| *r >= Revision::R2025_06_18) {
            for (answer, expected) in [
                (json!({"action": "accept", "content": {"name": "Ada"}}), "Hello, Ada!"),
                (json!({"action": "decline"}), "The user does not tell."),
                (json!({"action": "cancel"}), "The user was asked and did not answer."),
            ] {
                let mut bench = Bench::new();
                let host = bench.host(wire, revision, json!({"elicitation": {}}));
                let (last, asked) = converse(&mut bench, &host, "ask", &answer);
                assert_eq!(asked["method"], "elicitation/create");
                let worded = asked["params"].get("mode").is_some();
                assert_eq!(worded, revision >= Revision::R2025_11_25);
                assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["name"]));
                assert_eq!(text(&last["result"]), expected);
            }
        }
    }

    #[test]
    fn the_model_is_asked_and_quoted() {
        for (wire, revision) in everywhere() {
            let block = json!({"type": "text", "text": "Because."});
            for content in [block.clone(), json!([{"type": "image"}, block])] {
                let mut bench = Bench::new();
                let host = bench.host(wire, revision, json!({"sampling": {}}));
                let answer = json!({"role": "assistant", "model": "m", "content": content});
                let (last, asked) = converse(&mut bench, &host, "think", &answer);
                assert_eq!(asked["method"], "sampling/createMessage");
                assert_eq!(asked["params"]["messages"][0]["content"]["text"], "Why?");
                assert_eq!(text(&last["result"]), "Because.");
            }
        }
    }

    #[test]
    fn who_cannot_answer_is_not_asked() {
        for (wire, revision) in everywhere() {
            for (tool, capability) in [("ask", "elicitation"), ("think", "sampling")] {
                let mut bench = Bench::new();
                let host = bench.host(wire, revision, json!({"roots": {}}));
                let params = json!({"name": tool, "arguments": {"question": "Why?"}});
                if revision.era() == Era::Modern {
                    let (code, data) = bench.error(&host, "tools/call", params);
                    assert_eq!(code, -32021);
                    assert_eq!(data, json!({"requiredCapabilities": {capability: {}}}));
                } else {
                    let result = bench.result(&host, "tools/call", params);
                    assert_eq!(result["isError"], true);
                    assert!(text(&result).contains(capability));
                }
            }
        }
    }

    #[test]
    fn answers_without_sense_fail_the_call() {
        for (wire, revision) in everywhere().filter(|(_, r)| *r >= Revision::R2025_06_18) {
            for answer in [json!({}), json!({"action": "accept"}), json!({"action": "x"})] {
                let mut bench = Bench::new();
                let host = bench.host(wire, revision, json!({"elicitation": {}}));
                let (last, _) = converse(&mut bench, &host, "ask", &answer);
                match revision.era() {
                    Era::Legacy => assert_eq!(last["result"]["isError"], true),
                    Era::Modern => assert_eq!(last["error"]["code"], -32602),
                }
            }
        }
    }

    #[test]
    fn a_refusal_fails_the_call() {
        for wire in [Wire::Pipe, Wire::Http] {
            let mut bench = Bench::new();
            let host = bench.host(wire, Revision::R2024_11_05, json!({"sampling": {}}));
            let params = json!({"name": "think", "arguments": {"question": "Why?"}});
            let (conn, asked) = asked(&mut bench, &host, params);
            let error = json!({"code": -1, "message": "no mood"});
            bench.send(&host, &json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
            let last = bench.read(conn).pop().unwrap();
            assert_eq!(last["result"]["isError"], true);
            assert!(text(&last["result"]).ends_with("no mood"));
        }
    }

    #[test]
    fn a_cancelled_call_withdraws_its_question() {
        let mut bench = Bench::new();
        let host = bench.host(Wire::Pipe, Revision::R2025_11_25, json!({"elicitation": {}}));
        let (conn, asked) = asked(&mut bench, &host, json!({"name": "ask"}));
        let params = json!({"requestId": bench.last_id()});
        let method = "notifications/cancelled";
        bench.send(&host, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
        let messages = bench.read(conn);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0]["method"], method);
        assert_eq!(messages[0]["params"]["requestId"], asked["id"]);
        assert!(bench.demo.inquiries.is_empty());
        // An answer that crosses the withdrawal is dropped.
        bench.send(&host, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}));
        assert!(bench.read(conn).is_empty());
    }

    #[test]
    fn a_modern_host_is_asked_until_it_answers_what_it_was_asked() {
        for wire in [Wire::Pipe, Wire::Http] {
            let mut bench = Bench::new();
            let capabilities = json!({"elicitation": {}, "sampling": {}});
            let host = bench.host(wire, Revision::R2026_07_28, capabilities);
            let first = bench.call(&host, "ask", json!({}));
            let state = first["requestState"].clone();
            let mut params = json!({"name": "ask", "requestState": state, "inputResponses": {}});
            let again = bench.result(&host, "tools/call", params.clone());
            assert_eq!(again["inputRequests"], first["inputRequests"]);
            params["requestState"] = json!("forged");
            assert_eq!(bench.error(&host, "tools/call", params).0, -32602);
            let other =
                json!({"name": "think", "arguments": {"question": "?"}, "requestState": state});
            assert_eq!(bench.error(&host, "tools/call", other).0, -32602);
        }
    }
}
