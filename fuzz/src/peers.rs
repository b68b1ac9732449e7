//! What hosts and servers say: mostly MCP, so that the fuzzer gets behind the
//! first refusal, and anything else now and then.

use std::fmt::Write as _;

use crate::input::Source;

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;

fn request(id: usize, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#)
}

fn raw(source: &mut Source<'_>) -> String {
    String::from_utf8_lossy(source.bytes()).into_owned()
}

/// A message of a host, and the fields that must go with it over HTTP.
fn host_message(source: &mut Source<'_>) -> (String, String) {
    let kind = source.below(18);
    let id = source.below(6);
    let mut fields = String::new();
    let mut modern = |method: &str, params: &str| {
        fields = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
        if method == "tools/call" {
            fields.push_str("Mcp-Name: t\r\n");
        }
        request(id, method, &format!("{MODERN}{params}"))
    };
    let message = match kind {
        0 | 1 => {
            let version = ["2025-11-25", "2025-03-26", "2026-07-28", ""][source.below(4)];
            let params = format!(
                r#""protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"h","version":"1"}}"#
            );
            request(id, "initialize", &params)
        }
        2 => notification("notifications/initialized", ""),
        3 => request(id, "ping", ""),
        4 => request(id, "tools/list", ""),
        5 => request(id, "tools/call", r#""name":"t","_meta":{"progressToken":"p"}"#),
        6 => modern("server/discover", "}"),
        7 => modern("tools/call", r#","progressToken":7},"name":"t","arguments":{"a":"é"}"#),
        8 => modern("tools/list", "}"),
        9 => modern("subscriptions/listen", r#"},"notifications":{"toolsListChanged":true}"#),
        10 => {
            let about = source.below(6);
            notification("notifications/cancelled", &format!(r#""requestId":{about},"reason":"r""#))
        }
        11 => {
            let about = source.byte();
            format!(r#"{{"jsonrpc":"2.0","id":"mcpx-{about}","result":{{}}}}"#)
        }
        12 => format!("[{}]", raw(source)),
        13 => request(id, "tools/call", &raw(source)),
        14 => request(id, "tools/call", &format!(r#""x":"{}""#, "y".repeat(300))),
        15 => notification("notifications/roots/list_changed", ""),
        16 => request(id, "tools/call", &format!(r#""a":{}{}"#, "[".repeat(140), "]".repeat(140))),
        _ => raw(source),
    };
    (message, fields)
}

/// Bytes of a host on a listener that speaks HTTP, or lines.
pub fn host(source: &mut Source<'_>, http: bool, session: Option<&str>) -> Vec<u8> {
    let shape = source.below(12);
    if shape == 0 {
        return source.bytes().to_vec();
    }
    let (message, fields) = host_message(source);
    if !http {
        return format!("{message}{}", ["\n", "\r\n", "\n\n", ""][shape % 4]).into_bytes();
    }
    let mut head = String::new();
    let verb = match shape {
        1 => "GET",
        2 => "DELETE",
        _ => "POST",
    };
    let version = if shape == 3 { "1.0" } else { "1.1" };
    let _ = write!(head, "{verb} /mcp HTTP/{version}\r\nHost: localhost:8808\r\n");
    head.push_str("Accept: application/json, text/event-stream\r\n");
    head.push_str(&fields);
    if let Some(session) = session {
        let _ = write!(head, "Mcp-Session-Id: {session}\r\n");
    }
    if verb != "POST" {
        head.push_str("\r\n");
        return head.into_bytes();
    }
    head.push_str("Content-Type: application/json\r\n");
    match shape {
        4 => {
            let _ = write!(head, "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", message.len());
            head.push_str(&message);
            head.push_str("\r\n0\r\n\r\n");
        }
        5 => {
            let _ = write!(head, "Connection: close\r\nContent-Length: {}\r\n\r\n", message.len());
            head.push_str(&message);
        }
        6 => {
            let length = message.len();
            let _ = write!(head, "Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n");
            head.push_str(&message);
        }
        _ => {
            let _ = write!(head, "Content-Length: {}\r\n\r\n{message}", message.len());
        }
    }
    head.into_bytes()
}

fn server_message(source: &mut Source<'_>) -> String {
    let kind = source.below(16);
    let id = source.below(12);
    let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    match kind {
        0 | 1 => result(
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
        ),
        2 | 3 => result(
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
        ),
        4 => result(
            r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}"#,
        ),
        5 => result("{ \"content\": [] }"),
        6 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#),
        7 => {
            notification("notifications/progress", &format!(r#""progressToken":{id},"progress":1"#))
        }
        8 => notification("notifications/message", r#""level":"info","data":"d""#),
        9 => notification(
            "notifications/tools/list_changed",
            &format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#),
        ),
        10 => request(id, "sampling/createMessage", r#""messages":[],"maxTokens":1"#),
        11 => request(id, "ping", ""),
        12 => notification("notifications/cancelled", &format!(r#""requestId":{id}"#)),
        13 => format!("[{}]", raw(source)),
        14 => result(&format!(r#""{}""#, "z".repeat(600))),
        _ => raw(source),
    }
}

/// Bytes of a server: lines of a process, or a response with one message.
pub fn server(source: &mut Source<'_>, process: bool) -> Vec<u8> {
    let shape = source.below(12);
    if shape == 0 {
        return source.bytes().to_vec();
    }
    let message = server_message(source);
    if process {
        return format!("{message}{}", ["\n", "\r\n", "\n\n", ""][shape % 4]).into_bytes();
    }
    let event = format!("id: {shape}\ndata: {message}\n\n");
    let session = if shape.is_multiple_of(2) { "Mcp-Session-Id: s1\r\n" } else { "" };
    let sse = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let chunk = |bytes: &str| format!("{:x}\r\n{bytes}\r\n", bytes.len());
    match shape {
        1 => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".into(),
        2 => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(),
        3 => format!("{sse}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk(&event)),
        4 => format!("{sse}{session}Transfer-Encoding: chunked\r\n\r\n{}", chunk(&event)),
        5 => chunk(&event),
        6 => "0\r\n\r\n".into(),
        7 => format!("{sse}\r\nretry: 5\n{event}"),
        8 => "HTTP/1.1 307 T\r\nLocation: http://b:2/x\r\nContent-Length: 0\r\n\r\n".into(),
        9 => "HTTP/1.1 500 E\r\nContent-Length: 1\r\n\r\nx".into(),
        10 => {
            let message = message.replacen('{', "{\n", 1);
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{message}", message.len())
        }
        _ => format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n{message}",
            message.len()
        ),
    }
    .into_bytes()
}
