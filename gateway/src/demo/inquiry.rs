//! `ask` and `think`: calls that need an answer from the host before they can
//! be answered themselves.
//!
//! A legacy host is sent a request, and the call waits. A modern host gets the
//! question as the result of its call and calls again with the answer; nothing is
//! kept meanwhile.

use mcpx_core::jsonrpc::{Message, code, elements, get, string};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::method;
use mcpx_core::protocol::revision::{Era, Revision};
use mcpx_core::server::{AskId, ExchangeId, Outcome, Route};

use super::host::Host;
use super::machine::Demo;
use super::requests::{Answer, Call};
use super::shapes;

/// The name of the only question in a modern `inputRequests`.
const KEY: &str = "answer";

/// What a host is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// The user's name.
    Name,
    /// What its model thinks about this.
    Thought(String),
}

/// A call that waits for a legacy host's answer.
#[derive(Debug)]
pub(super) struct Inquiry {
    exchange: ExchangeId,
    revision: Revision,
    question: Question,
}

impl Question {
    fn method(&self) -> &'static str {
        match self {
            Self::Name => method::ELICIT,
            Self::Thought(_) => method::SAMPLE,
        }
    }

    fn params(&self, revision: Revision) -> String {
        match self {
            Self::Name => {
                let mode = match revision {
                    Revision::R2025_11_25 | Revision::R2026_07_28 => r#""mode":"form","#,
                    _ => "",
                };
                format!(
                    r#"{{{mode}"message":"What is your name?","requestedSchema":{{"type":"object","properties":{{"name":{{"type":"string","title":"Name","description":"Used to say hello, and not kept"}}}},"required":["name"]}}}}"#
                )
            }
            Self::Thought(question) => {
                let question = shapes::quoted(question);
                format!(
                    r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{question}}}}}],"maxTokens":200}}"#
                )
            }
        }
    }

    /// The capability that a host needs to be asked.
    fn capability(&self) -> &'static str {
        match self {
            Self::Name => "elicitation",
            Self::Thought(_) => "sampling",
        }
    }

    fn suits(&self, host: &Host) -> bool {
        match self {
            Self::Name => host.elicits,
            Self::Thought(_) => host.samples,
        }
    }

    /// What a host's answer means for the call. Nothing if it makes no sense.
    fn conclude(&self, answer: &str) -> Option<String> {
        match self {
            Self::Name => {
                let action = get(answer, "action").and_then(string)?;
                Some(match &*action {
                    "accept" => {
                        let name = get(get(answer, "content")?, "name").and_then(string)?;
                        format!("Hello, {name}!")
                    }
                    "decline" => "The user does not tell.".to_owned(),
                    "cancel" => "The user was asked and did not answer.".to_owned(),
                    _ => return None,
                })
            }
            Self::Thought(_) => {
                let content = get(answer, "content")?;
                // One block, or several (2025-11-25).
                let text = |block| get(block, "text").and_then(string);
                let found = text(content).or_else(|| elements(content).find_map(text))?;
                Some(found.into_owned())
            }
        }
    }
}

impl Demo {
    pub(super) fn inquire(&mut self, call: &Call<'_>, question: Question) -> Result<Answer, Fault> {
        match call.host.revision.era() {
            Era::Legacy => Ok(self.ask(call, question)),
            Era::Modern => require(call, &question).map(Answer::Now),
        }
    }

    fn ask(&mut self, call: &Call<'_>, question: Question) -> Answer {
        let (exchange, revision) = (call.exchange, call.host.revision);
        let capability = question.capability();
        if !question.suits(&call.host) {
            let why = format!("The host has not declared the capability `{capability}`");
            return Answer::Now(shapes::failure(revision, &why));
        }
        let params = question.params(revision);
        let asked = self.endpoint.ask(Route::Exchange(exchange), question.method(), Some(&params));
        let Ok(ask) = asked else {
            return Answer::Now(shapes::failure(revision, "The host cannot be asked now"));
        };
        self.inquiries.insert(ask, Inquiry { exchange, revision, question });
        self.inquiring.insert(exchange, ask);
        Answer::Later
    }

    /// A legacy host has answered.
    pub(super) fn on_answer(&mut self, ask: AskId, message: &Message<'_>) {
        let Some(Inquiry { exchange, revision, question }) = self.inquiries.remove(&ask) else {
            return;
        };
        self.inquiring.remove(&exchange);
        let result = match message.result().map(|answer| question.conclude(answer)) {
            Some(Some(text)) => shapes::text(revision, &text),
            Some(None) => shapes::failure(revision, "The host's answer makes no sense"),
            None => {
                let why = message.error().and_then(|error| get(error, "message")).and_then(string);
                let why = why.unwrap_or_default();
                shapes::failure(revision, &format!("The host refused to be asked: {why}"))
            }
        };
        self.endpoint.respond(exchange, Outcome::Result(&result));
    }

    /// Nobody waits for this call any more, if it is one that asks.
    pub(super) fn stop_inquiring(&mut self, exchange: ExchangeId) {
        if let Some(ask) = self.inquiring.remove(&exchange) {
            self.inquiries.remove(&ask);
            self.endpoint.withdraw(ask, None);
        }
    }
}

/// The result of a modern call: the question, until an answer comes with it.
fn require(call: &Call<'_>, question: &Question) -> Result<String, Fault> {
    let (revision, capability) = (call.host.revision, question.capability());
    if !question.suits(&call.host) {
        let data = format!(r#"{{"requiredCapabilities":{{"{capability}":{{}}}}}}"#);
        let why = format!("This tool needs the client capability `{capability}`");
        return Err(Fault::with_data(code::MISSING_CAPABILITY, &why, &data));
    }
    // It decides nothing but which question was asked, so a forged one can only
    // fail, and it needs no seal.
    let asked = question.method();
    let state = get(call.params, "requestState");
    if state.is_some_and(|state| string(state).as_deref() != Some(asked)) {
        return Err(Fault::new(code::INVALID_PARAMS, "`requestState` is not of this request"));
    }
    let answer = get(call.params, "inputResponses").and_then(|all| get(all, KEY));
    match answer.filter(|_| state.is_some()) {
        Some(answer) => {
            let text = question.conclude(answer).ok_or_else(|| {
                Fault::new(code::INVALID_PARAMS, "The answer in `inputResponses` makes no sense")
            })?;
            Ok(shapes::text(revision, &text))
        }
        None => {
            let params = question.params(revision);
            let requests = format!(r#"{{"{KEY}":{{"method":"{asked}","params":{params}}}}}"#);
            Ok(shapes::input_required(&requests, asked))
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpx_core::driver::ConnId;
    use serde_json::{Value, json};

    use super::super::testing::{self, Bench, Wire, everywhere, text};
    use super::*;

    /// Calls a tool that asks, answers, and gives the last message and what was
    /// asked.
    fn converse(
        bench: &mut Bench,
        host: &testing::Host,
        revision: Revision,
        tool: &str,
        answer: &Value,
    ) -> (Value, Value) {
        let mut params = json!({"name": tool, "arguments": {"question": "Why?"}});
        if revision.era() == Era::Modern {
            let required = bench.result(host, "tools/call", params.clone());
            assert_eq!(required["resultType"], "input_required");
            assert!(required.get("ttlMs").is_none());
            params["requestState"] = required["requestState"].clone();
            params["inputResponses"] = json!({"answer": answer, "other": 1});
            let last = bench.request(host, "tools/call", params).pop().unwrap();
            return (last, required["inputRequests"]["answer"].clone());
        }
        let (conn, asked) = asked(bench, host, params);
        bench.send(host, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        (bench.read(conn).pop().unwrap(), asked)
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
                let (last, asked) = converse(&mut bench, &host, revision, "ask", &answer);
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
                let (last, asked) = converse(&mut bench, &host, revision, "think", &answer);
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
                let (last, _) = converse(&mut bench, &host, revision, "ask", &answer);
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
            assert_eq!(bench.result(&host, "tools/call", params.clone()), first);
            params["requestState"] = json!("forged");
            assert_eq!(bench.error(&host, "tools/call", params).0, -32602);
            let other =
                json!({"name": "think", "arguments": {"question": "?"}, "requestState": state});
            assert_eq!(bench.error(&host, "tools/call", other).0, -32602);
        }
    }
}
