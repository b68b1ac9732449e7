//! What sessions and streams cost in memory, kernel apart: counted, not guessed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpx_core::client::{self, Place};
use mcpx_core::driver::{Action, ConnId, Input, ListenerId, Machine};
use mcpx_core::gateway::{self, Gateway};
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::server::{self, Listener};
use mcpx_core::time::Instant;
use mcpx_core::wire::http1::Url;

static HELD: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is passed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a host","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}}}"#;

/// A machine, and the connections of its hosts.
struct Bench<M> {
    machine: M,
    now: Instant,
    conns: u64,
    spawned: Vec<ConnId>,
}

fn endpoint() -> server::Config {
    let rules = OriginRules::new("127.0.0.1:8808", None, None).unwrap();
    let limits = server::Limits { sessions: 20_000, connections: 20_000, ..Default::default() };
    server::Config { listeners: vec![Listener::Http(rules)], limits, ..Default::default() }
}

impl<M: Machine> Bench<M> {
    fn new(machine: M) -> Self {
        Self { machine, now: Instant::from_micros(1), conns: 0, spawned: Vec::new() }
    }

    fn give(&mut self, input: Input<'_>) {
        self.machine.handle(self.now, input);
        while let Some(action) = self.machine.poll() {
            if let Action::Connect { conn, .. } = action {
                self.spawned.push(conn);
                self.machine.handle(self.now, Input::Connected { conn });
            }
        }
    }

    /// What was queued for a connection.
    fn take(&mut self, conn: ConnId) -> String {
        let text = String::from_utf8(self.machine.outgoing(conn).to_vec()).unwrap();
        self.machine.sent(self.now, conn, text.len());
        text
    }

    fn post(&mut self, fields: &str, body: &str) -> ConnId {
        self.conns += 1;
        let conn = ConnId::accepted(self.conns);
        self.give(Input::Accepted { conn, listener: ListenerId(0), from: None });
        let length = body.len();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nUser-Agent: a-host/1.0\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        );
        self.give(Input::Received { conn, bytes: request.as_bytes() });
        conn
    }

    /// The servers at the URL answer what they are asked.
    fn serve(&mut self, result: &str) {
        for conn in self.spawned.clone() {
            let asked = self.take(conn);
            let Some((_, body)) = asked.split_once("\r\n\r\n").filter(|(_, body)| !body.is_empty())
            else {
                continue;
            };
            let answer = match mcpx_core::jsonrpc::get(body, "id") {
                Some(id) => {
                    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                    let length = body.len();
                    format!(
                        "HTTP/1.1 200 OK\r\nMcp-Session-Id: 0123456789abcdef0123456789abcdef\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
                    )
                }
                None => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            self.give(Input::Received { conn, bytes: answer.as_bytes() });
        }
    }

    fn session(&mut self, serve: bool) {
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"a host","version":"1.0.0"}}}"#;
        let conn = self.post("", initialize);
        if serve {
            self.serve(r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"a server","version":"1.0.0"}}"#);
        }
        let answer = self.take(conn);
        assert!(answer.contains("Mcp-Session-Id: "), "{answer}");
        self.give(Input::Finished { conn });
    }

    fn listen(&mut self, n: usize) -> ConnId {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["demo://counter"]}},{META}}}}}"#
        );
        let fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
        self.post(fields, &body)
    }
}

/// Bytes that each of `count` things holds, after some that come for free.
fn each(count: usize, mut make: impl FnMut(usize)) -> usize {
    for n in 0..count / 10 {
        make(n);
    }
    let before = HELD.load(Ordering::Relaxed);
    for n in 0..count {
        make(count + n);
    }
    HELD.load(Ordering::Relaxed).saturating_sub(before) / count
}

fn web() -> Gateway {
    let url = Url::parse("http://localhost:1/mcp").unwrap();
    let limits = gateway::Limits { servers: 20_000, ..Default::default() };
    let upstream = client::Limits { connections: 20_000, ..Default::default() };
    let place = Place::Url { url, fields: Vec::new() };
    let server = gateway::Server { upstream, limits, ..gateway::Server::new("server", place) };
    Gateway::new(gateway::Config::new(server, endpoint()), [1; 32])
}

/// All in one test: others at the same time would be counted as well.
#[test]
fn sessions_and_streams_are_cheap() {
    let mut demo = Bench::new(mcpx::demo::Demo::new(endpoint(), [1; 32]));
    let own = each(10_000, |_| demo.session(false));
    let mut demo = Bench::new(mcpx::demo::Demo::new(endpoint(), [1; 32]));
    let listens = each(1_000, |n| {
        let conn = demo.listen(n);
        assert!(demo.take(conn).contains("acknowledged"));
    });
    let mut web = Bench::new(web());
    let behind = each(10_000, |_| {
        web.session(true);
        // The server does not keep idle connections for ever.
        for conn in std::mem::take(&mut web.spawned) {
            web.give(Input::Finished { conn });
        }
    });
    println!("a session: {own} bytes, before a URL {behind}; a listen stream: {listens}");
    assert!(own < 1024 && listens < 8192, "too much");
    // With the session that it has there: our own side and a client.
    assert!(behind < 2560, "too much");
}
