//! The tools.

use mcpx_core::jsonrpc::{code, get};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::revision::Revision;

use super::arguments::{Arguments, Unfit, sum};
use super::ask::{Ask, Think};
use super::fixtures;
use super::machine::Demo;
use super::requests::{Answer, Call, required};
use super::shapes::{self, Since};

/// The longest text that `big` gives.
const BIG: u32 = 16 << 20;

const TOOLS: &[&str] = &[
    r#"{"name":"echo","title":"Echo","description":"Gives back a message","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"What to give back"}},"required":["message"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"add","title":"Add","description":"Adds two numbers","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"count","title":"Count","description":"Counts up from one, and reports progress and a log message at each step","inputSchema":{"type":"object","properties":{"to":{"type":"integer","description":"Where to stop","minimum":1,"maximum":1000},"delay_ms":{"type":"integer","description":"Milliseconds before each step","minimum":0,"maximum":60000,"default":0}},"required":["to"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"big","title":"Big","description":"Gives a text of a certain length","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer","description":"The length of the text","minimum":0,"maximum":16777216}},"required":["bytes"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"ask","title":"Ask","description":"Asks the user for a name and says hello","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    r#"{"name":"think","title":"Think","description":"Asks the host's model a question","inputSchema":{"type":"object","properties":{"question":{"type":"string","description":"What to ask it"}},"required":["question"]},"annotations":{"readOnlyHint":true,"openWorldHint":true}}"#,
    r#"{"name":"touch","title":"Touch","description":"Adds one to demo://counter and tells those who have subscribed to it","inputSchema":{"type":"object","properties":{}},"annotations":{"destructiveHint":false,"openWorldHint":false}}"#,
];

const SINCE: &Since = &[
    ("annotations", Revision::R2025_03_26),
    ("title", Revision::R2025_06_18),
    ("outputSchema", Revision::R2025_06_18),
];

pub(super) fn list(revision: Revision) -> String {
    let fixtures = fixtures::tools(revision);
    let all = TOOLS.iter().copied().chain(fixtures.iter().map(String::as_str));
    shapes::list(revision, "tools", all, SINCE)
}

/// Why a tool did not even begin.
pub(super) enum Refused {
    Arguments(Unfit),
    Request(Fault),
}

impl From<Unfit> for Refused {
    fn from(unfit: Unfit) -> Self {
        Self::Arguments(unfit)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Request(fault)
    }
}

impl Demo {
    pub(super) fn call_tool(&mut self, call: &Call<'_>) -> Result<Answer, Fault> {
        let name = required(call.params, "name")?;
        let arguments = get(call.params, "arguments").unwrap_or("{}");
        if !arguments.starts_with('{') {
            return Err(Fault::new(code::INVALID_PARAMS, "`arguments` must be an object"));
        }
        self.run(call, &name, Arguments(arguments)).or_else(|refused| match refused {
            Refused::Request(fault) => Err(fault),
            // So that the model can see it and try again (SEP-1303).
            Refused::Arguments(Unfit(why)) if call.host.revision >= Revision::R2025_11_25 => {
                Ok(Answer::Now(shapes::failure(call.host.revision, &why)))
            }
            Refused::Arguments(Unfit(why)) => Err(Fault::new(code::INVALID_PARAMS, &why)),
        })
    }

    fn run(
        &mut self,
        call: &Call<'_>,
        name: &str,
        given: Arguments<'_>,
    ) -> Result<Answer, Refused> {
        let revision = call.host.revision;
        let result = match name {
            "echo" => shapes::text(revision, &format!("Echo: {}", given.text("message")?)),
            "add" => add(revision, given)?,
            "big" => {
                let bytes = given.integer("bytes", 0..=BIG)?;
                shapes::text(revision, &"x".repeat(bytes as usize))
            }
            "touch" => {
                self.touch();
                shapes::text(revision, &format!("The counter is at {}", self.counter))
            }
            "count" => return Ok(self.count(call, given)?),
            "ask" => return Ok(self.inquire(call, Box::new(Ask))?),
            "think" => {
                let question = given.text("question")?.into_owned();
                return Ok(self.inquire(call, Box::new(Think(question)))?);
            }
            _ => match fixtures::tool(revision, name) {
                Some(tool) => return tool.call(self, call, given),
                None => {
                    let why = format!("Unknown tool: {name}");
                    return Err(Fault::new(code::INVALID_PARAMS, &why).into());
                }
            },
        };
        Ok(Answer::Now(result))
    }
}

fn add(revision: Revision, given: Arguments<'_>) -> Result<String, Unfit> {
    let (a, b) = (given.number("a")?, given.number("b")?);
    let sum = sum(a, b).ok_or_else(|| Unfit("The sum is too large".into()))?;
    Ok(shapes::structured(revision, &format!(r#"{{"sum":{sum}}}"#)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Bench, everywhere, text};
    use super::*;

    #[test]
    fn tools_are_described_as_the_revision_has_them() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let result = bench.result(&host, "tools/list", json!({}));
            let names: Vec<&str> = result["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            assert_eq!(names[..7], ["echo", "add", "count", "big", "ask", "think", "touch"]);
            assert!(names[7..].iter().all(|name| name.contains("test_") || name.contains("_tool")));
            let add = &result["tools"][1];
            assert_eq!(add["inputSchema"]["type"], "object");
            assert_eq!(add.get("annotations").is_some(), revision >= Revision::R2025_03_26);
            assert_eq!(add.get("outputSchema").is_some(), revision >= Revision::R2025_06_18);
        }
    }

    #[test]
    fn echo_gives_a_message_back() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let result = bench.call(&host, "echo", json!({"message": "a \"b\" é\n😀"}));
            assert_eq!(text(&result), "Echo: a \"b\" é\n😀");
            assert!(result.get("isError").is_none());
        }
    }

    #[test]
    fn sums_are_structured_where_that_is_known() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let result = bench.call(&host, "add", json!({"a": 1.5, "b": 2}));
            assert_eq!(text(&result), r#"{"sum":3.5}"#);
            let structured = result.get("structuredContent").cloned();
            let expected = (revision >= Revision::R2025_06_18).then(|| json!({"sum": 3.5}));
            assert_eq!(structured, expected);
        }
    }

    #[test]
    fn big_is_as_long_as_asked() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            for bytes in [0, 1, 100_000] {
                let result = bench.call(&host, "big", json!({"bytes": bytes}));
                assert_eq!(text(&result).len(), bytes);
            }
        }
    }

    #[test]
    fn bad_arguments_are_for_the_model_where_it_can_see_them() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            for (tool, arguments) in [
                ("echo", json!({})),
                ("echo", json!({"message": 1})),
                ("add", json!({"a": "1", "b": 2})),
                ("big", json!({"bytes": 16777217})),
                ("big", json!({"bytes": -1})),
                ("count", json!({"to": 0})),
                ("think", json!({})),
            ] {
                let params = json!({"name": tool, "arguments": arguments});
                if revision >= Revision::R2025_11_25 {
                    let result = bench.result(&host, "tools/call", params);
                    assert_eq!(result["isError"], true, "{tool}");
                } else {
                    assert_eq!(bench.error(&host, "tools/call", params).0, -32602, "{tool}");
                }
            }
        }
    }

    #[test]
    fn fea_04_names_are_of_the_letters_that_hosts_accept() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let list = bench.result(&host, "tools/list", json!({}));
            for tool in list["tools"].as_array().unwrap() {
                let name = tool["name"].as_str().unwrap();
                let accepted = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
                assert!((1..=128).contains(&name.len()) && name.chars().all(accepted), "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_call_of_a_tool_is_refused() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let unknown = json!({"name": "nonsense", "arguments": {}});
            assert_eq!(bench.error(&host, "tools/call", unknown).0, -32602);
            let shapeless = json!({"name": "echo", "arguments": []});
            assert_eq!(bench.error(&host, "tools/call", shapeless).0, -32602);
        }
    }
}
