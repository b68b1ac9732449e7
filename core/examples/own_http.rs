//! MCP from a program's own HTTP loop: its own HTTP (here `tiny_http`), and all
//! decisions by the core. Try it with `mcpx ls --url http://127.0.0.1:8809/mcp`.

use std::borrow::Cow;
use std::io::Cursor;
use std::net::SocketAddr;

use mcpx_core::driver::{Action, ConnId, ListenerId};
use mcpx_core::entropy::Entropy;
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::server::{Config, Endpoint, Event, Listener, Outcome, Route};
use mcpx_core::time::Instant;
use mcpx_core::wire::http1::RequestHead;
use tiny_http::{Header, Request, Response, Server};

const US: &str = r#""capabilities":{"tools":{}},"serverInfo":{"name":"own","version":"1"}"#;
const TOOLS: &str = r#"{"tools":[{"name":"hello","inputSchema":{"type":"object"}}],
    "resultType":"complete","ttlMs":0,"cacheScope":"public"}"#;
const HELLO: &str = r#"{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}"#;

fn answer(endpoint: &mut Endpoint, event: &Event<'_>) {
    let Event::Request(request) = event else { return };
    let result = match request.message.method() {
        "initialize" => format!(r#"{{"protocolVersion":"{}",{US}}}"#, request.revision),
        "server/discover" => format!(r#"{{"supportedVersions":["2026-07-28"],{US}}}"#),
        "tools/list" => TOOLS.to_owned(),
        "tools/call" => {
            // What comes before the result makes it an event stream.
            let log = r#"{"level":"info","data":"on its way"}"#;
            let route = Route::Exchange(request.exchange);
            endpoint.notify(route, "notifications/message", Some(log));
            HELLO.to_owned()
        }
        _ => {
            let error = r#"{"code":-32601,"message":"Method not found"}"#;
            return endpoint.respond(request.exchange, Outcome::Error(error));
        }
    };
    endpoint.respond(request.exchange, Outcome::Result(&result));
}

fn serve_one(endpoint: &mut Endpoint, conn: ConnId, mut request: Request) -> std::io::Result<()> {
    let mut body = Vec::new();
    request.as_reader().read_to_end(&mut body)?;
    let from = request.remote_addr().map(SocketAddr::ip);
    let fields = request.headers().iter();
    let fields = fields.map(|it| (it.field.as_str().as_str(), it.value.as_str().as_bytes()));
    let head = RequestHead::from_parts(request.method().as_str(), request.url(), fields);
    let Ok(head) = head else { return request.respond(Response::empty(400)) };
    let mut next = endpoint.request(conn, ListenerId(0), from, head, Cow::Owned(body));
    while let Some(event) = next.take().or_else(|| endpoint.poll_event()) {
        answer(endpoint, &event);
    }
    // Nothing here takes long, so all of the response is there already.
    while endpoint.poll().is_some_and(|action| !matches!(action, Action::Finish(_))) {}
    let Some(head) = endpoint.take_head(conn) else { return Ok(()) };
    let fields = head.fields.iter().map(|(name, value)| format!("{name}: {value}"));
    let fields = fields.filter_map(|field| field.parse::<Header>().ok()).collect();
    let body = endpoint.outgoing(conn).to_vec();
    let length = head.length.map(|_| body.len());
    request.respond(Response::new(head.status.into(), fields, Cursor::new(body), length, None))
}

/// Serves whatever comes.
pub(crate) fn serve(server: &Server, rules: OriginRules) {
    let config = Config { listeners: vec![Listener::Http(rules)], ..Config::default() };
    // In earnest: 32 bytes of the operating system's.
    let mut endpoint = Endpoint::new(config, Entropy::new([7; 32]));
    let start = std::time::Instant::now();
    for (n, request) in (1..).zip(server.incoming_requests()) {
        endpoint.at(Instant::from_micros(start.elapsed().as_micros() as u64));
        let conn = ConnId::accepted(n);
        let _ = serve_one(&mut endpoint, conn, request);
        endpoint.closed(conn);
    }
}

fn main() {
    let server = Server::http("127.0.0.1:8809").expect("port 8809 is free");
    serve(&server, OriginRules::new("127.0.0.1:8809", None, None).expect("well formed"));
}
