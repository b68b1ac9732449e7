//! The prompt, and completion of what can be filled in.

use mcpx_core::jsonrpc::{code, get, string};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::revision::Revision;

use super::fixtures;
use super::machine::Demo;
use super::requests::{Answer, Call, required};
use super::resources::TEMPLATE;
use super::shapes::{self, Since};

const PROMPT: &str = "greet";

const PROMPTS: &[&str] = &[
    r#"{"name":"greet","title":"Greet","description":"Has the model greet somebody","arguments":[{"name":"name","description":"Whom to greet","required":true},{"name":"style","description":"How: formal, friendly or pirate","required":false}]}"#,
];

const SINCE: &Since = &[("title", Revision::R2025_06_18)];

const NAMES: &[&str] = &["Ada", "Alan", "Barbara", "Edsger", "Grace"];
const STYLES: &[&str] = &["formal", "friendly", "pirate"];

pub(super) fn list(revision: Revision) -> String {
    let fixtures = fixtures::prompts();
    let all = PROMPTS.iter().copied().chain(fixtures.iter().map(String::as_str));
    shapes::list(revision, "prompts", all, SINCE)
}

impl Demo {
    pub(super) fn get_prompt(&mut self, call: &Call<'_>) -> Result<Answer, Fault> {
        let name = required(call.params, "name")?;
        let arguments = get(call.params, "arguments").unwrap_or("{}");
        match fixtures::prompt(&name) {
            Some(prompt) => prompt.get(self, call, arguments),
            None if name == PROMPT => greet(call.host.revision, arguments).map(Answer::Now),
            None => Err(unfit(&format!("Unknown prompt: {name}"))),
        }
    }
}

fn greet(revision: Revision, arguments: &str) -> Result<String, Fault> {
    let name = required(arguments, "name")?;
    let mut wish = format!("Please greet {name}");
    if let Some(style) = get(arguments, "style") {
        let style = string(style).ok_or_else(|| unfit("`style` must be a string"))?;
        wish = format!("{wish} in a {style} style");
    }
    let wish = shapes::quoted(&(wish + "."));
    Ok(shapes::complete(
        revision,
        &format!(
            r#""description":"A greeting","messages":[{{"role":"user","content":{{"type":"text","text":{wish}}}}}]"#
        ),
    ))
}

/// The result of `completion/complete`.
pub(super) fn complete(revision: Revision, params: &str) -> Result<String, Fault> {
    let part = |name| get(params, name).unwrap_or_default();
    let (reference, argument) = (part("ref"), part("argument"));
    let (name, begun) = (required(argument, "name")?, required(argument, "value")?);
    let all = match &*required(reference, "type")? {
        "ref/prompt" => match (&*required(reference, "name")?, &*name) {
            (PROMPT, "name") => Some(NAMES),
            (PROMPT, "style") => Some(STYLES),
            (prompt, name) => fixtures::complete(prompt, name),
        },
        "ref/resource" if required(reference, "uri")? == TEMPLATE && name == "name" => Some(NAMES),
        _ => None,
    };
    let all = all.ok_or_else(|| unfit("There is nothing of this name to complete"))?;
    let fitting: Vec<String> = all
        .iter()
        .filter(|value| value.to_lowercase().starts_with(&begun.to_lowercase()))
        .map(|value| shapes::quoted(value))
        .collect();
    let (total, values) = (fitting.len(), fitting.join(","));
    Ok(shapes::complete(
        revision,
        &format!(r#""completion":{{"values":[{values}],"total":{total},"hasMore":false}}"#),
    ))
}

fn unfit(why: &str) -> Fault {
    Fault::new(code::INVALID_PARAMS, why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Bench, everywhere};
    use super::*;

    #[test]
    fn the_prompt_is_filled_in() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let mut wish = |arguments| {
                let params = json!({"name": "greet", "arguments": arguments});
                let result = bench.result(&host, "prompts/get", params);
                assert_eq!(result["messages"][0]["role"], "user");
                result["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
            };
            assert_eq!(wish(json!({"name": "Ada"})), "Please greet Ada.");
            let styled = wish(json!({"name": "Ada", "style": "formal"}));
            assert_eq!(styled, "Please greet Ada in a formal style.");
            for params in [
                json!({"name": "greet"}),
                json!({"name": "greet", "arguments": {"name": "Ada", "style": 1}}),
                json!({"name": "nonsense", "arguments": {"name": "Ada"}}),
            ] {
                assert_eq!(bench.error(&host, "prompts/get", params).0, -32602);
            }
        }
    }

    #[test]
    fn what_was_begun_is_completed() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let prompt = json!({"type": "ref/prompt", "name": "greet"});
            let template = json!({"type": "ref/resource", "uri": TEMPLATE});
            for (reference, name, begun, expected) in [
                (&prompt, "name", "a", json!(["Ada", "Alan"])),
                (&prompt, "style", "F", json!(["formal", "friendly"])),
                (&template, "name", "Gr", json!(["Grace"])),
                (&template, "name", "x", json!([])),
            ] {
                let argument = json!({"name": name, "value": begun});
                let params = json!({"ref": reference, "argument": argument});
                let completion =
                    bench.result(&host, "completion/complete", params)["completion"].take();
                assert_eq!(completion["values"], expected);
                assert_eq!(completion["total"], expected.as_array().unwrap().len());
                assert_eq!(completion["hasMore"], false);
            }
            for (reference, name) in [
                (&prompt, "no"),
                (&template, "style"),
                (&json!({"type": "ref/prompt", "name": "no"}), "name"),
                (&json!({"type": "ref/no"}), "name"),
            ] {
                let argument = json!({"name": name, "value": ""});
                let params = json!({"ref": reference, "argument": argument});
                assert_eq!(bench.error(&host, "completion/complete", params).0, -32602);
            }
        }
    }
}
