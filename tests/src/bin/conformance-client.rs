//! What the official conformance suite has clients do, done by our own client: run by
//! the suite with the URL of its server, and the scenario's name in
//! `MCP_CONFORMANCE_SCENARIO`. `--runtime mio|blocking` comes before the URL.

use std::env;
use std::error::Error as AnyError;
use std::time::Duration;

use mcpx_core::client::oneshot::Kind;
use mcpx_core::client::probe::Protocol;
use mcpx_core::client::session::{Config, Options};
use mcpx_core::client::{Client, Drive, Place};
use mcpx_core::wire::http1::Url;
use serde_json::{Map, Value, json};

type Done<T = ()> = Result<T, Box<dyn AnyError>>;

fn main() -> Done {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--runtime", "mio", url] | [url] => play::<mcpx_mio::Driver>(url),
        ["--runtime", "blocking", url] => play::<mcpx_blocking::Driver>(url),
        _ => Err("say [--runtime mio|blocking] URL".into()),
    }
}

fn play<D: Drive<Error = std::io::Error> + 'static>(url: &str) -> Done {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let place = Place::Url { url: Url::parse(url)?, fields: Vec::new() };
    let legacy = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION")
        .is_ok_and(|version| version.as_str() < "2026-07-28");
    let protocol = if legacy || scenario == "json-schema-ref-no-deref" {
        Protocol::Legacy
    } else {
        Protocol::Auto
    };
    let capabilities =
        r#"{"elicitation":{"form":{"applyDefaults":true}},"sampling":{},"roots":{}}"#;
    let config =
        Config { protocol, capabilities: capabilities.into(), ..Config::new("suite", place) };
    let mut client = Client::<D>::connect(config)?;
    let confirms = scenario == "sep-2322-client-request-state";
    client.answer_with(move |method, params| answer(method, params, confirms));
    let mut host = Host { client };
    match scenario.as_str() {
        "tools_call" | "request-metadata" => {
            host.tools()?;
            host.call("add_numbers", &json!({"a": 5, "b": 3}))?;
        }
        "sse-retry" => {
            host.tools()?;
            host.call("test_reconnection", &json!({}))?;
        }
        "elicitation-sep1034-client-defaults" => {
            host.tools()?;
            host.call("test_client_elicitation_defaults", &json!({}))?;
        }
        "json-schema-2020-12-preservation" => {
            let tools = host.tools()?;
            let focal = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool");
            let schema = focal.ok_or("the tool is not there")?["inputSchema"].clone();
            host.call("json_schema_echo", &json!({"schema": schema}))?;
        }
        "http-standard-headers" => host.touch_everything()?,
        "http-invalid-tool-headers" => {
            for tool in host.tools()? {
                // What the server says to it is not the question.
                let _ = host.call(text(&tool, "name"), &stub(&tool));
            }
        }
        "http-custom-headers" => {
            let tools = host.tools()?;
            let context: Value = serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?;
            for call in context["toolCalls"].as_array().into_iter().flatten() {
                if tools.iter().any(|tool| tool["name"] == call["name"]) {
                    let _ = host.call(text(call, "name"), &call["arguments"]);
                }
            }
        }
        "sep-2322-client-request-state" => {
            host.tools()?;
            for tool in ["echo_state", "unrelated", "no_state", "no_result_type"] {
                host.call(&format!("test_mrtr_{tool}"), &json!({}))?;
            }
        }
        _ => drop(host.tools()?),
    }
    Ok(host.client.close()?)
}

struct Host<D: Drive> {
    client: Client<D>,
}

impl<D: Drive<Error = std::io::Error> + 'static> Host<D> {
    fn list(&mut self, kind: Kind) -> Done<Vec<Value>> {
        let items = self.client.list(kind)?;
        Ok(items.iter().map(|item| serde_json::from_str(item)).collect::<Result<_, _>>()?)
    }

    fn tools(&mut self) -> Done<Vec<Value>> {
        self.list(Kind::Tools)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Done<String> {
        let minute = Some(Duration::from_secs(60));
        let arguments = if arguments.is_null() { "{}".into() } else { arguments.to_string() };
        Ok(self.client.call(tool, &arguments, minute, |_| {})?)
    }

    fn touch_everything(&mut self) -> Done {
        if let Some(tool) = self.tools()?.first() {
            self.call(text(tool, "name"), &stub(tool))?;
        }
        if let Some(resource) = self.list(Kind::Resources)?.first() {
            self.client.read(text(resource, "uri"))?;
        }
        if let Some(prompt) = self.list(Kind::Prompts)?.first() {
            let params = json!({"name": prompt["name"]}).to_string();
            self.client.request("prompts/get", Some(&params), Options::default(), |_| {})?;
        }
        Ok(())
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Arguments with what a tool requires.
fn stub(tool: &Value) -> Value {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("integer" | "number") => json!(0),
        Some("boolean") => json!(false),
        Some("object") => json!({}),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => json!("x"),
    };
    Value::Object(required.map(|name| (name.to_owned(), value(name))).collect::<Map<_, _>>())
}

/// Accepts what is asked, with the defaults of its schema.
fn answer(method: &str, params: Option<&str>, confirms: bool) -> Result<String, String> {
    let params: Value = serde_json::from_str(params.unwrap_or("{}")).unwrap_or_default();
    Ok(match method {
        "elicitation/create" if confirms => {
            json!({"action": "accept", "content": {"confirmed": true}})
        }
        "elicitation/create" => {
            let properties = params["requestedSchema"]["properties"].as_object();
            let defaults = properties.into_iter().flatten();
            let content: Map<String, Value> = defaults
                .filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())))
                .collect();
            json!({"action": "accept", "content": content})
        }
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": ""}, "model": "none"})
        }
        "roots/list" => json!({"roots": []}),
        _ => return Err(json!({"code": -32601, "message": "Not known here"}).to_string()),
    }
    .to_string())
}
