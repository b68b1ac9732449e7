//! Two tools in the place of all, for hosts that can show few: one that finds tools,
//! one that calls what was found.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::catalogue::List;
use super::consult::complete;
use crate::gateway::machine::Gateway;
use crate::gateway::rewrite::with;
use crate::jsonrpc::{get, get_path, quote, string};
use crate::protocol::method;
use crate::server::{Outcome, Request};

/// What hosts see of the tools of servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expose {
    /// All of them.
    #[default]
    All,
    /// `mcpx_search` and `mcpx_call`.
    Search,
}

pub(super) const SEARCH: &str = "mcpx_search";
pub(super) const CALL: &str = "mcpx_call";

/// What is found at a time, unless it is asked for more or less.
const FOUND: usize = 10;
/// At most.
const MOST: usize = 50;

/// The two, as `tools/list` has them.
pub(super) const TOOLS: &str = r#"[{"name":"mcpx_search","description":"Finds tools by what they do. Gives their names, descriptions and input schemas; call them with mcpx_call.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"Words that say what the tool shall do. Empty for all tools."},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many to give. Default 10."}},"required":["query"]}},{"name":"mcpx_call","description":"Calls a tool that mcpx_search has found.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool."},"arguments":{"type":"object","description":"Its arguments, by its input schema."}},"required":["name"]}}]"#;

/// Whether a request is a call of `mcpx_search`.
pub(super) fn is_search(expose: Expose, request: &Request<'_>) -> bool {
    let params = request.message.params().unwrap_or("{}");
    expose == Expose::Search
        && request.message.method() == method::TOOLS_CALL
        && get(params, "name").and_then(string).as_deref() == Some(SEARCH)
}

/// The parameters of the call that is meant by a call of `mcpx_call`.
pub(super) fn inner(params: &str) -> Option<String> {
    let name = get_path(params, &["arguments", "name"]).filter(|name| name.starts_with('"'))?;
    let arguments = get_path(params, &["arguments", "arguments"]).unwrap_or("{}");
    Some(with(&with(params, "name", name), "arguments", arguments))
}

/// How well a tool fits words, all in small letters: better in its name than in what
/// it says of itself.
fn score(words: &[String], name: &str, raw: &str) -> usize {
    let text = |member| get(raw, member).and_then(string).unwrap_or_default().to_lowercase();
    let (name, title, description) = (name.to_lowercase(), text("title"), text("description"));
    let of = |word: &String| {
        let word = word.as_str();
        let whole = name.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
        8 * usize::from(whole)
            + 4 * usize::from(name.contains(word))
            + 2 * usize::from(title.contains(word))
            + usize::from(description.contains(word))
    };
    words.iter().map(of).sum()
}

impl Gateway {
    /// Answers a call of `mcpx_search`.
    pub(super) fn search(&mut self, request: &Request<'_>) {
        self.refresh(List::Tools);
        let params = request.message.params().unwrap_or("{}");
        let argument = |name| get_path(params, &["arguments", name]);
        let query = argument("query").and_then(string).unwrap_or_default().to_lowercase();
        let limit = argument("limit").and_then(|raw| raw.parse().ok()).unwrap_or(FOUND);
        let words: Vec<String> = query
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(ToString::to_string)
            .collect();
        let servers = self.servers();
        let tools = self.many.merged.all(List::Tools, &servers);
        let mut found: Vec<(usize, &str, &str)> = tools
            .map(|(name, raw)| (score(&words, name, raw), name, raw))
            .filter(|(score, ..)| words.is_empty() || *score > 0)
            .collect();
        // Those that fit equally well stay in the order of the list.
        found.sort_by_key(|(score, ..)| Reverse(*score));
        let total = found.len();
        let mut text = String::from("[");
        for (n, (_, name, raw)) in found.iter().take(limit.clamp(1, MOST)).enumerate() {
            text.push_str(if n > 0 { ",\n" } else { "" });
            text.push_str(r#"{"name":"#);
            quote(name, &mut text);
            for member in ["description", "inputSchema"] {
                if let Some(value) = get(raw, member) {
                    text.push_str(",\"");
                    text.push_str(member);
                    text.push_str("\":");
                    text.push_str(value);
                }
            }
            text.push('}');
        }
        text.push(']');
        let shown = total.min(limit.clamp(1, MOST));
        let head = alloc::format!("{shown} of {total} tools:\n{text}");
        let mut result = String::from(r#"{"content":[{"type":"text","text":"#);
        quote(&head, &mut result);
        result.push_str("}]}");
        let result = complete(request.revision, &result);
        self.hub.endpoint.respond(request.exchange, Outcome::Result(&result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_out_of_calls() {
        let params =
            r#"{"name":"mcpx_call","arguments":{"name":"a__b","arguments":{"x":1}},"_meta":{}}"#;
        let expected = r#"{"name":"a__b","arguments":{"x":1},"_meta":{}}"#;
        assert_eq!(inner(params).as_deref(), Some(expected));
        assert_eq!(inner(r#"{"name":"mcpx_call","arguments":{}}"#), None);
    }

    #[test]
    fn names_count_more_than_descriptions() {
        let words = ["read".to_string()];
        let of = |name: &str, raw: &str| score(&words, name, raw);
        let name = of("a__read_file", "{}");
        let part = of("a__thread", "{}");
        let said = of("x", r#"{"description":"Reads."}"#);
        assert!(name > part && part > said && said > 0 && of("x", "{}") == 0);
    }
}
