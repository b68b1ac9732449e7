//! The example that serves MCP from its own HTTP loop, as clients see it.
#![allow(clippy::unwrap_used)]

#[path = "../../core/examples/own_http.rs"]
#[allow(dead_code)]
mod own_http;

use mcpx_core::protocol::origin::OriginRules;

#[test]
fn it_serves_both_eras() {
    let server = tiny_http::Server::http("127.0.0.1:0").unwrap();
    let address = server.server_addr().to_string();
    let rules = OriginRules::new(&address, None, None).unwrap();
    std::thread::spawn(move || own_http::serve(&server, rules));
    let send = |fields: &[(&str, &str)], body: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let fields: String =
            fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        write!(stream, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{fields}Content-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let hello = send(
        &[],
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    let session = hello.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: ")).unwrap();
    assert!(hello.contains(r#""protocolVersion":"2025-11-25""#), "{hello}");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}"#;
    let called = send(&[("Mcp-Session-Id", session)], call);
    assert!(called.contains("text/event-stream") && called.contains("on its way"), "{called}");
    assert!(called.contains(r#""text":"hello""#), "{called}");
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let list = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{{meta}}}}}"#);
    let fields = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    assert!(send(&fields, &list).contains(r#""resultType":"complete""#));
    assert!(send(&[("Origin", "http://evil.example")], call).starts_with("HTTP/1.1 403"));
}
