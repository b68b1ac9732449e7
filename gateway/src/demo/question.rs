//! What a host can be asked, and what its answers say.

use std::borrow::Cow;

use mcpx_core::jsonrpc::{elements, get, members, string};
use mcpx_core::protocol::method;
use mcpx_core::protocol::revision::Revision;

use super::host::Host;
use super::shapes;

/// A question: a request to a legacy host, a part of a result for a modern one.
#[derive(Debug)]
pub(super) struct Question {
    /// Its name among the questions of one call.
    pub(super) key: &'static str,
    pub(super) method: &'static str,
    /// Raw JSON.
    pub(super) params: String,
}

impl Question {
    /// Has the user fill in a form. Its fields are the `properties` of a schema,
    /// as raw JSON, and all of them are required.
    pub(super) fn form(host: &Host, key: &'static str, message: &str, fields: &str) -> Self {
        let mode = match host.revision {
            Revision::R2025_11_25 | Revision::R2026_07_28 => r#""mode":"form","#,
            _ => "",
        };
        let required: Vec<&str> = members(fields).map(|(name, _)| name.raw()).collect();
        let (message, required) = (shapes::quoted(message), required.join(","));
        let params = format!(
            r#"{{{mode}"message":{message},"requestedSchema":{{"type":"object","properties":{fields},"required":[{required}]}}}}"#
        );
        Self { key, method: method::ELICIT, params }
    }

    /// Has the host's model answer a prompt, with so many tokens at most.
    pub(super) fn sample(key: &'static str, prompt: &str, most: u32) -> Self {
        let prompt = shapes::quoted(prompt);
        let params = format!(
            r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{prompt}}}}}],"maxTokens":{most}}}"#
        );
        Self { key, method: method::SAMPLE, params }
    }

    /// Asks which places the user works in.
    pub(super) fn roots(key: &'static str) -> Self {
        Self { key, method: method::LIST_ROOTS, params: "{}".to_owned() }
    }

    /// The capability that a host needs to be asked.
    pub(super) fn capability(&self) -> &'static str {
        match self.method {
            method::ELICIT => "elicitation",
            method::SAMPLE => "sampling",
            _ => "roots",
        }
    }

    pub(super) fn suits(&self, host: &Host) -> bool {
        match self.method {
            method::ELICIT => host.elicits,
            method::SAMPLE => host.samples,
            _ => host.has_roots,
        }
    }
}

/// What has become of a form.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Form<'a> {
    /// Filled in: the raw JSON object.
    Accepted(&'a str),
    Declined,
    Cancelled,
}

impl<'a> Form<'a> {
    /// Reads the raw answer to a form. Nothing if it makes no sense.
    pub(super) fn read(answer: &'a str) -> Option<Self> {
        Some(match &*get(answer, "action").and_then(string)? {
            "accept" => Self::Accepted(get(answer, "content").filter(|raw| raw.starts_with('{'))?),
            "decline" => Self::Declined,
            "cancel" => Self::Cancelled,
            _ => return None,
        })
    }
}

/// What a model has said: the first text in its raw answer.
pub(super) fn said(answer: &str) -> Option<Cow<'_, str>> {
    let content = get(answer, "content")?;
    // One block, or several (2025-11-25).
    let text = |block| get(block, "text").and_then(string);
    text(content).or_else(|| elements(content).find_map(text))
}

/// The number of roots in a raw answer.
pub(super) fn roots(answer: &str) -> Option<usize> {
    let roots = get(answer, "roots").filter(|raw| raw.starts_with('['))?;
    Some(elements(roots).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read() {
        let read = Form::read;
        assert_eq!(read(r#"{"action":"accept","content":{}}"#), Some(Form::Accepted("{}")));
        assert_eq!(read(r#"{"action":"decline"}"#), Some(Form::Declined));
        assert_eq!(read(r#"{"action":"cancel","content":1}"#), Some(Form::Cancelled));
        for senseless in ["1", "{}", r#"{"action":1}"#, r#"{"action":"accept","content":1}"#] {
            assert_eq!(read(senseless), None, "{senseless}");
        }
    }

    #[test]
    fn roots_are_counted() {
        assert_eq!(roots(r#"{"roots":[{},{}]}"#), Some(2));
        assert_eq!(roots(r#"{"roots":{}}"#), None);
        assert_eq!(roots("7"), None);
    }
}
