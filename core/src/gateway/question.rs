//! Questions of a server on their way to a host of an older revision
//! (requirements sections 4 and 5).

use alloc::string::String;

use super::at::At;
use super::rewrite::{quoted, with};
use crate::jsonrpc::{code, elements, get, members, string, with_member};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::Revision;
use crate::server::ExchangeId;

/// What becomes of a question.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// It passes as it came.
    Same,
    /// It is asked with these parameters.
    Changed(String),
    /// Nobody can be asked that: this is the answer.
    Answered(&'static str),
    /// It must not be asked.
    Refused(Fault),
}

/// What becomes of a question to a host that speaks `to`.
pub(super) fn question(method: &str, params: Option<&str>, to: Revision) -> Question {
    let Some(params) = params else { return Question::Same };
    match method {
        method::SAMPLE if to < Revision::R2025_03_26 && has_audio(params) => {
            let why = "The host speaks an MCP that does not know audio";
            Question::Refused(Fault::new(code::INVALID_PARAMS, why))
        }
        method::ELICIT
            if to < Revision::R2025_11_25
                && get(params, "mode").and_then(string).as_deref() == Some("url") =>
        {
            let why = "The host speaks an MCP that does not know elicitation with URLs";
            Question::Refused(Fault::new(code::INVALID_PARAMS, why))
        }
        method::ELICIT if to < Revision::R2025_11_25 => match form(params) {
            Some(params) => Question::Changed(params),
            None => Question::Answered(r#"{"action":"cancel"}"#),
        },
        _ => Question::Same,
    }
}

impl At<'_> {
    /// The parameters of a question with the name of the server that asks, if hosts could
    /// not tell otherwise (MRT-17).
    pub(super) fn signed(&self, method: &str, params: Option<&str>) -> Option<String> {
        let params = params.filter(|_| self.hub.several && method == method::ELICIT)?;
        let message = get(params, "message").and_then(string).unwrap_or_default();
        let signed = alloc::format!("[{}] {message}", self.server.config.name);
        Some(with(params, "message", &quoted(&signed)))
    }

    /// A result of a modern server that asks: with its name, and its state sealed.
    pub(super) fn asked_by(&mut self, exchange: ExchangeId, digest: u64, result: &str) -> String {
        let mut out = String::from(result);
        if let Some(requests) = get(result, "inputRequests").filter(|_| self.hub.several) {
            let mut changed = String::from(requests);
            for (key, entry) in members(requests) {
                let method = get(entry, "method").and_then(string).unwrap_or_default();
                let signed = self.signed(&method, get(entry, "params"));
                if let (Some(key), Some(signed)) = (key.decoded(), signed) {
                    changed = with(&changed, &key, &with(entry, "params", &signed));
                }
            }
            out = with(&out, "inputRequests", &changed);
        }
        self.seal_state(exchange, digest, &out).unwrap_or(out)
    }
}

fn has_audio(params: &str) -> bool {
    let audio = |block| get(block, "type").and_then(string).as_deref() == Some("audio");
    let messages = get(params, "messages").unwrap_or_default();
    elements(messages).filter_map(|message| get(message, "content")).any(audio)
}

/// A form as 2025-06-18 knows it. `None` if it wants several choices at once.
fn form(params: &str) -> Option<String> {
    let mut out = String::with_capacity(params.len());
    with_member(params, "mode", None, &mut out);
    let Some(schema) = get(params, "requestedSchema") else { return Some(out) };
    let mut properties = String::from("{");
    for (name, property) in members(get(schema, "properties").unwrap_or_default()) {
        if properties.len() > 1 {
            properties.push(',');
        }
        properties.push_str(name.raw());
        properties.push(':');
        properties.push_str(&field(property)?);
    }
    properties.push('}');
    Some(with(&out, "requestedSchema", &with(schema, "properties", &properties)))
}

fn field(property: &str) -> Option<String> {
    let kind = get(property, "type").and_then(string).unwrap_or_default();
    if kind == "array" {
        return None;
    }
    let mut out = String::with_capacity(property.len());
    if kind == "boolean" {
        out.push_str(property);
        return Some(out);
    }
    with_member(property, "default", None, &mut out);
    let Some(choices) = get(property, "oneOf") else { return Some(out) };
    let list = |name| {
        let values: alloc::vec::Vec<&str> =
            elements(choices).map(|choice| get(choice, name).unwrap_or("\"\"")).collect();
        alloc::format!("[{}]", values.join(","))
    };
    let mut titled = String::with_capacity(property.len());
    with_member(&out, "oneOf", None, &mut titled);
    Some(with(&with(&titled, "enum", &list("const")), "enumNames", &list("title")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25};

    #[test]
    fn audio_is_not_for_the_first_revision() {
        let audio = r#"{"messages":[{"role":"user","content":{"type":"text","text":"audio"}},{"role":"user","content":{"type":"audio"}}]}"#;
        let Question::Refused(fault) = question(method::SAMPLE, Some(audio), R2024_11_05) else {
            panic!("not refused")
        };
        assert_eq!(fault.code, -32602);
        assert_eq!(question(method::SAMPLE, Some(audio), R2025_03_26), Question::Same);
        let text = audio.replace(r#"type":"audio"#, r#"type":"text"#);
        assert_eq!(question(method::SAMPLE, Some(&text), R2024_11_05), Question::Same);
        assert_eq!(question(method::LIST_ROOTS, None, R2024_11_05), Question::Same);
    }

    #[test]
    fn forms_are_put_in_the_words_of_2025_06_18() {
        let params = r#"{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"s":{"type":"string","default":"x","title":"t"},"n":{"type":"integer","default":1},"b":{"type":"boolean","default":true},"e":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"}},"required":["s"]}}"#;
        let expected = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"s":{"type":"string","title":"t"},"n":{"type":"integer"},"b":{"type":"boolean","default":true},"e":{"type":"string","enum":["a","b"],"enumNames":["A","B"]}},"required":["s"]}}"#;
        assert_eq!(
            question(method::ELICIT, Some(params), R2025_06_18),
            Question::Changed(expected.into())
        );
        assert_eq!(question(method::ELICIT, Some(params), R2025_11_25), Question::Same);
    }

    #[test]
    fn several_choices_at_once_cannot_be_asked() {
        let params = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"m":{"type":"array","items":{"type":"string","enum":["a"]}}}}}"#;
        assert_eq!(
            question(method::ELICIT, Some(params), R2025_06_18),
            Question::Answered(r#"{"action":"cancel"}"#)
        );
    }
}
