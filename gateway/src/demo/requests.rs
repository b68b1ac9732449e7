//! Requests on their way to whoever answers them, and the two ways in which a
//! conversation begins.

use mcpx_core::jsonrpc::{code, get, string};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::revision::{Era, Revision};
use mcpx_core::protocol::{meta, method};
use mcpx_core::server::{ExchangeId, Outcome, PeerId, Request};

use super::host::{Host, Level, Session};
use super::machine::Demo;
use super::{prompts, resources, shapes, tools};

const INSTRUCTIONS: &str = "A server to try things with: tools that echo, add, count, ask and \
    think, resources of several kinds, and a prompt. What is named `test` is there for test \
    suites. Nothing here has an effect on anything else.";

/// A request, as far as whoever answers it wants to know.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) exchange: ExchangeId,
    /// The legacy session that it belongs to.
    pub(super) peer: Option<PeerId>,
    pub(super) host: Host,
    pub(super) method: &'a str,
    /// An object; empty if the request has no parameters.
    pub(super) params: &'a str,
    /// The `Mcp-Param-*` fields that came with it, if it came over HTTP.
    pub(super) fields: Option<&'a [(String, String)]>,
}

/// What becomes of a request that is not refused.
#[derive(Debug)]
pub(super) enum Answer {
    /// This is its result.
    Now(String),
    /// Whoever has it will answer it.
    Later,
}

impl Demo {
    pub(super) fn on_request(&mut self, request: &Request<'_>) {
        let outcome = self.answer(request);
        self.conclude(request.exchange, outcome);
    }

    /// Answers a request, if that can be done now.
    pub(super) fn conclude(&mut self, exchange: ExchangeId, outcome: Result<Answer, Fault>) {
        match outcome {
            Ok(Answer::Now(result)) => self.endpoint.respond(exchange, Outcome::Result(&result)),
            Ok(Answer::Later) => {}
            Err(fault) => self.endpoint.respond(exchange, Outcome::Error(&fault.object)),
        }
    }

    fn answer(&mut self, request: &Request<'_>) -> Result<Answer, Fault> {
        let method = request.message.method();
        let params = request.message.params().unwrap_or("{}");
        if let (method::INITIALIZE, Some(peer)) = (method, request.peer) {
            return self.initialize(peer, params).map(Answer::Now);
        }
        let host = match (request.peer, request.revision.era()) {
            (None, Era::Modern) => Host::of_request(params)?,
            (None, Era::Legacy) => Host::unknown(request.revision),
            (Some(peer), _) => self
                .sessions
                .get(&peer)
                .map(|session| session.host)
                .ok_or_else(|| Fault::new(code::INVALID_REQUEST, "Send initialize first"))?,
        };
        let revision = host.revision;
        let (exchange, peer, fields) = (request.exchange, request.peer, request.fields.as_deref());
        let call = Call { exchange, peer, host, method, params, fields };
        let result = match method {
            method::DISCOVER => discover(revision),
            method::LISTEN => return self.listen(&call),
            method::TOOLS_CALL => return self.call_tool(&call),
            method::TOOLS_LIST => one_page(params, || tools::list(revision))?,
            method::RESOURCES_LIST => one_page(params, || resources::list(revision))?,
            method::TEMPLATES_LIST => one_page(params, || resources::templates(revision))?,
            method::RESOURCES_READ => resources::read(revision, params, self.counter)?,
            method::SUBSCRIBE => self.subscribe(&call, true)?,
            method::UNSUBSCRIBE => self.subscribe(&call, false)?,
            method::PROMPTS_LIST => one_page(params, || prompts::list(revision))?,
            method::PROMPTS_GET => return self.get_prompt(&call),
            method::COMPLETE => prompts::complete(revision, params)?,
            method::SET_LEVEL => self.set_level(&call)?,
            _ => return Err(Fault::method_not_found(method)),
        };
        Ok(Answer::Now(result))
    }

    /// Begins a legacy session.
    fn initialize(&mut self, peer: PeerId, params: &str) -> Result<String, Fault> {
        let host = Host::of_initialize(params)?;
        self.sessions.insert(peer, Session { host, watches: false });
        let (revision, identity) = (host.revision, meta::IDENTITY);
        let capabilities = capabilities(revision);
        Ok(shapes::complete(
            revision,
            &format!(
                r#""protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":{identity},"instructions":"{INSTRUCTIONS}""#
            ),
        ))
    }

    fn set_level(&mut self, call: &Call<'_>) -> Result<String, Fault> {
        let level = get(call.params, "level").and_then(Level::parse).ok_or_else(Level::unknown)?;
        if let Some(session) = call.peer.and_then(|peer| self.sessions.get_mut(&peer)) {
            session.host.level = Some(level);
        }
        Ok(shapes::complete(call.host.revision, ""))
    }
}

/// The modern counterpart of `initialize`, which begins nothing.
fn discover(revision: Revision) -> String {
    let (versions, capabilities) = (Revision::MODERN_LIST, capabilities(revision));
    shapes::cacheable(
        revision,
        &format!(
            r#""supportedVersions":{versions},"capabilities":{capabilities},"instructions":"{INSTRUCTIONS}""#
        ),
        shapes::STABLE,
    )
}

fn capabilities(revision: Revision) -> &'static str {
    match revision {
        // It could complete, but had no name for that.
        Revision::R2024_11_05 => {
            r#"{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true},"tools":{"listChanged":true}}"#
        }
        _ => {
            r#"{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true},"tools":{"listChanged":true}}"#
        }
    }
}

/// A list that has one page: every cursor is one that we never gave out.
fn one_page(params: &str, list: impl FnOnce() -> String) -> Result<String, Fault> {
    match get(params, "cursor") {
        None | Some("null") => Ok(list()),
        Some(_) => Err(Fault::new(code::INVALID_PARAMS, "Invalid cursor")),
    }
}

/// The member `name` of parameters, which must be a string.
pub(super) fn required<'a>(
    params: &'a str,
    name: &str,
) -> Result<std::borrow::Cow<'a, str>, Fault> {
    get(params, name).and_then(string).ok_or_else(|| {
        Fault::new(code::INVALID_PARAMS, &format!("`{name}` is missing or no string"))
    })
}

/// The code for a resource that does not exist.
pub(super) fn not_found(revision: Revision, uri: &str) -> Fault {
    let code = match revision.era() {
        Era::Legacy => code::RESOURCE_NOT_FOUND,
        Era::Modern => code::INVALID_PARAMS,
    };
    let data = format!(r#"{{"uri":{}}}"#, shapes::quoted(uri));
    Fault::with_data(code, "Resource not found", &data)
}

#[cfg(test)]
mod tests {
    use mcpx_core::driver::Input;
    use serde_json::json;

    use super::super::testing::{Bench, Wire, everywhere};
    use super::*;

    #[test]
    fn every_legacy_revision_is_agreed_to_and_others_are_countered() {
        for wire in [Wire::Pipe, Wire::Http] {
            for asked in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "x"]
            {
                let mut bench = Bench::new();
                let mut host = bench.host(wire, Revision::R2025_11_25, json!({}));
                host.conn = bench.connect(if wire == Wire::Http { 1 } else { 2 });
                let result = bench.initialize(&mut host, asked);
                let agreed = Revision::parse_legacy(asked).unwrap_or(Revision::R2025_11_25);
                assert_eq!(result["protocolVersion"], agreed.as_str());
                assert_eq!(result["serverInfo"]["name"], "mcpx");
                let completes = result["capabilities"].get("completions").is_some();
                assert_eq!(completes, agreed >= Revision::R2025_03_26);
                assert_eq!(result["capabilities"]["resources"], json!({"subscribe": true}));
                assert!(result["instructions"].is_string());
                assert!(result.get("resultType").is_none());
            }
        }
    }

    #[test]
    fn discovery_tells_what_a_handshake_would() {
        for wire in [Wire::Pipe, Wire::Http] {
            let mut bench = Bench::new();
            let host = bench.host(wire, Revision::R2026_07_28, json!({}));
            let result = bench.result(&host, "server/discover", json!({}));
            assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
            assert_eq!(result["resultType"], "complete");
            assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public");
            assert_eq!(result["_meta"][meta::SERVER_INFO]["name"], "mcpx");
            assert!(result["capabilities"]["completions"].is_object());
        }
    }

    #[test]
    fn each_era_has_its_methods() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let (absent, present) = match revision.era() {
                Era::Legacy => (vec!["server/discover", "subscriptions/listen"], "ping"),
                Era::Modern => (vec!["ping", "logging/setLevel", "initialize"], "server/discover"),
            };
            for method in absent.into_iter().chain(["tasks/list", "nonsense"]) {
                assert_eq!(bench.error(&host, method, json!({})).0, -32601, "{method}");
            }
            bench.result(&host, present, json!({}));
        }
    }

    #[test]
    fn a_legacy_request_needs_no_session() {
        for (field, titled) in [("", false), ("MCP-Protocol-Version: 2025-06-18\r\n", true)] {
            let mut bench = Bench::new();
            let conn = bench.connect(1);
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            let length = body.len();
            let request = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{field}Content-Length: {length}\r\n\r\n{body}"
            );
            bench.input(Input::Received { conn, bytes: request.as_bytes() });
            let answer = bench.read_text(conn);
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("inputSchema"));
            assert_eq!(answer.contains(r#""title":"#), titled, "{answer}");
        }
    }

    #[test]
    fn lists_have_one_page() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            for (method, name) in [
                ("tools/list", "tools"),
                ("prompts/list", "prompts"),
                ("resources/list", "resources"),
                ("resources/templates/list", "resourceTemplates"),
            ] {
                let result = bench.result(&host, method, json!({}));
                let items = result[name].as_array().unwrap();
                assert!(!items.is_empty() && result.get("nextCursor").is_none());
                let titled = items.iter().any(|item| item.get("title").is_some());
                assert_eq!(titled, revision >= Revision::R2025_06_18, "{method} {revision}");
                let modern = revision.era() == Era::Modern;
                assert_eq!(result["resultType"] == "complete", modern);
                assert_eq!(result["ttlMs"].is_u64() && result["cacheScope"] == "public", modern);
                assert_eq!(bench.error(&host, method, json!({"cursor": "2"})).0, -32602);
                assert_eq!(bench.result(&host, method, json!({})), result);
            }
        }
    }

    #[test]
    fn an_unknown_log_level_is_refused() {
        for (wire, revision) in everywhere() {
            let mut bench = Bench::new();
            let host = bench.host(wire, revision, json!({}));
            let (code, _) = match revision.era() {
                Era::Legacy => bench.error(&host, "logging/setLevel", json!({"level": "loud"})),
                Era::Modern => {
                    let params = json!({"_meta": {meta::LOG_LEVEL: "loud"}});
                    bench.error(&host, "tools/list", params)
                }
            };
            assert_eq!(code, -32602);
        }
    }
}
