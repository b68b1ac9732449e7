//! The requirements on servers, row by row: bytes in, bytes out. Each test is
//! named after its row; what needs more than one exchange is elsewhere.

use super::*;

/// Where something is said.
#[derive(Clone, Copy)]
enum To {
    /// An HTTP connection.
    Http,
    /// An HTTP connection, with the header field of a session at this revision for
    /// `{session}`, and its id for `{token}`.
    Session(&'static str),
    /// A pipe on which nothing was said yet.
    Pipe,
    /// A pipe that is initialized at this revision.
    PipeAt(&'static str),
}

/// What is answered, if every request that comes in gets the result `{"ok":1}`.
fn told(to: To, said: &[u8]) -> String {
    let mut world = World::new();
    let mut said = said.to_vec();
    let conn = match to {
        To::Http => world.connect(0),
        To::Session(version) => {
            let (_, fields) = world.session_at(version);
            let field = fields.lines().next().unwrap();
            let token = field.split_once(": ").unwrap().1;
            let text = String::from_utf8(said).unwrap();
            said = text.replace("{session}", field).replace("{token}", token).into_bytes();
            world.connect(0)
        }
        To::Pipe => world.connect(1),
        To::PipeAt(version) => {
            let conn = world.connect(1);
            world.say(conn, &format!("{INITIALIZE}\n"));
            let (exchange, ..) = world.requests.remove(0);
            world.respond(exchange, Outcome::Result(&INITIALIZED.replace("2025-11-25", version)));
            world.take(conn);
            conn
        }
    };
    world.say_bytes(conn, &said);
    while !world.requests.is_empty() {
        let (exchange, ..) = world.requests.remove(0);
        world.respond(exchange, Outcome::Result(r#"{"ok":1}"#));
    }
    world.take(conn)
}

/// What must be in an answer, or after a `!`, must not be. Nothing: no answer.
fn check(answer: &str, expected: &[&str]) {
    assert_eq!(answer.is_empty(), expected.is_empty(), "{answer}");
    for part in expected {
        match part.strip_prefix('!') {
            Some(part) => assert!(!answer.contains(part), "{part} is in {answer}"),
            None => assert!(answer.contains(part), "{part} is not in {answer}"),
        }
    }
}

macro_rules! rows {
    ($($row:ident { $($to:expr, $said:expr => [$($expected:expr),*];)+ })*) => {
        $(#[test]
        fn $row() {
            $(check(&told($to, $said.as_ref()), &[$($expected),*]);)+
        })*
    };
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const NOTICE: &str = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const IN_SESSION: &str = "{session}\r\n";
const R5: &str = "MCP-Protocol-Version: 2026-07-28\r\n";
const R4: To = To::Session("2025-11-25");

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// A modern request with these fields besides its version and method.
fn modern_with(fields: &str, method: &str, params: &str) -> String {
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{META}}}}}"#);
    post(&format!("{R5}Mcp-Method: {method}\r\n{fields}"), &body)
}

fn get(fields: &str) -> String {
    format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

fn delete(fields: &str) -> String {
    format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

rows! {
    rpc_01 {
        To::Pipe, line(r#"{"id":1,"method":"ping"}"#) => ["-32600", "\"id\":1"];
        To::Pipe, line(r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#) => ["-32600"];
        To::Pipe, line(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#) => [];
        To::Pipe, line("1") => ["-32600"];
    }
    rpc_02 {
        To::Pipe, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n" => ["-32700"];
    }
    rpc_03 {
        To::Pipe, line(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#) => ["-32600"];
        To::Pipe, line(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#) => ["-32600"];
        To::Pipe, line(r#"{"jsonrpc":"2.0","id":98765432109876543210,"method":"ping"}"#)
            => [r#""id":98765432109876543210,"#];
    }
    rpc_06 {
        To::Pipe, line(r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#) => [r#""id":"1","#];
        R4, post(IN_SESSION, LIST) => [r#""id":1,"#];
    }
    rpc_07 {
        To::PipeAt("2025-06-18"), line("{") => [r#""id":null"#];
        To::PipeAt("2025-11-25"), line("{") => ["-32700", "!\"id\""];
        To::Http, post("", "{") => ["-32700", "!\"id\""];
    }
    rpc_09 {
        To::PipeAt("2025-11-25"), line(NOTICE) => [];
        R4, post(IN_SESSION, NOTICE) => ["HTTP/1.1 202 ", "!{"];
    }
    std_01 {
        To::Pipe, "\r\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n"
            => ["{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"];
    }
    http_01 {
        R4, post(IN_SESSION, LIST) => ["HTTP/1.1 200 "];
        R4, get("{session}\r\n") => ["HTTP/1.1 200 "];
        R4, get("{session}\r\n").replace("/mcp", "/x") => ["HTTP/1.1 404 "];
    }
    http_04 {
        R4, post(IN_SESSION, LIST).replace("application/json, text/event-stream", "*/*")
            => ["HTTP/1.1 200 "];
        R4, post(IN_SESSION, LIST).replace("application/json, text/event-stream", "text/html")
            => ["HTTP/1.1 406 "];
    }
    http_07 {
        To::Http, post("", ANSWER) => ["HTTP/1.1 400 ", "-32600", "!\"id\""];
        R4, post(IN_SESSION, ANSWER) => ["HTTP/1.1 400 ", "-32600", "!\"id\""];
    }
    http_08 {
        R4, post(IN_SESSION, NOTICE) => ["HTTP/1.1 202 ", "content-length: 0"];
        To::Http, post("", NOTICE) => ["HTTP/1.1 202 "];
    }
    http_09 {
        To::Http, post("", "[") => ["HTTP/1.1 400 ", "application/json", "\"error\":{"];
    }
    http_10 {
        To::Http, post("", &format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,{META}}}}}"#
        )) => ["HTTP/1.1 202 "];
        To::Http, post(R5, NOTICE) => ["HTTP/1.1 202 "];
    }
    http_11 {
        To::Http, modern_with("", "tools/list", "") => ["application/json", "{\"ok\":1}"];
    }
    http_17_and_19 {
        R4, get("{session}\r\nAccept: text/event-stream\r\n")
            => ["HTTP/1.1 200 ", "text/event-stream"];
        R4, get("{session}\r\nAccept: application/json\r\n") => ["HTTP/1.1 406 "];
        To::Http, get("Accept: text/event-stream\r\n") => ["HTTP/1.1 405 ", "Allow: "];
    }
    http_22 {
        R4, get("{session}\r\n") => ["X-Accel-Buffering: no", "Cache-Control: no-cache"];
    }
    sse_04 {
        R4, get("{session}\r\nLast-Event-ID: 9.9\r\n") => ["HTTP/1.1 400 ", "!404"];
    }
    sse_05 {
        R4, get("{session}\r\n") => ["id: ", "data: \n\n"];
        To::Session("2025-06-18"), get("{session}\r\n") => ["!data"];
    }
    sse_08 {
        To::Http, modern_with("Last-Event-ID: 9.9\r\n", "tools/list", "") => ["HTTP/1.1 200 "];
    }
    ses_01 {
        To::Http, post("", INITIALIZE) => ["HTTP/1.1 200 ", "Mcp-Session-Id: "];
        To::Pipe, line(INITIALIZE) => ["!Session"];
    }
    ses_06 {
        To::Http, post("Mcp-Session-Id: x\r\n", LIST) => ["HTTP/1.1 404 ", "\"id\":1"];
        To::Http, get("Mcp-Session-Id: x\r\n") => ["HTTP/1.1 404 "];
        To::Http, delete("Mcp-Session-Id: x\r\n") => ["HTTP/1.1 404 "];
    }
    ses_08 {
        R4, format!("{}{}", delete(IN_SESSION), post(IN_SESSION, LIST))
            => ["HTTP/1.1 204 ", "HTTP/1.1 404 "];
    }
    ses_11 {
        R4, modern_with(IN_SESSION, "tools/list", "") => ["HTTP/1.1 200 ", "!Mcp-Session-Id"];
        To::Http, modern_with("Mcp-Session-Id: x\r\n", "tools/list", "")
            => ["HTTP/1.1 200 ", "!Mcp-Session-Id"];
    }
    ses_15 {
        R4, post("MCP-SESSION-ID: {token}\r\n", LIST) => ["HTTP/1.1 200 "];
        R4, post("mcp-session-id: {token}\r\n", LIST) => ["HTTP/1.1 200 "];
    }
    ver_08 {
        R4, post("{session}\r\nMCP-Protocol-Version: 1999-01-01\r\n", LIST)
            => ["HTTP/1.1 400 ", "-32022", r#""supported":["2026-07-28"]"#];
        To::Http, post("MCP-Protocol-Version: 1999-01-01\r\n", INITIALIZE) => ["HTTP/1.1 200 "];
    }
    ver_10 {
        To::Http, modern_with("", "tools/list", "").replace("n: 2026", "n: 2025")
            => ["HTTP/1.1 400 ", "-32020", "\"id\":1"];
    }
    ver_11 {
        To::Http, modern_with("", "tools/list", "").replace("2026-07-28", "2025-11-25")
            => ["HTTP/1.1 400 ", "-32022", r#""supported":["2026-07-28"],"requested":"2025-11-25""#];
        To::Pipe, line(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#
        ).replace("2026-07-28", "2099-01-01")) => ["-32022", "2099-01-01"];
    }
    ver_12 {
        To::Http, modern_with("", "tools/list", "").replace(R5, "")
            => ["HTTP/1.1 400 ", "-32020"];
    }
    ver_14 {
        To::PipeAt("2025-11-25"), line(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#
        )) => ["{\"ok\":1}"];
        To::Pipe, line(LIST) => ["-32600"];
        To::PipeAt("2025-11-25"), line(INITIALIZE) => ["-32600"];
    }
    dsc_01 {
        R4, post(IN_SESSION, &LIST.replace("tools/list", "server/discover"))
            => ["HTTP/1.1 200 ", "-32601"];
        To::Http, modern_with("", "server/discover", "") => ["HTTP/1.1 200 ", "!Mcp-Session-Id"];
    }
    hdr_06 {
        To::Http, modern_with("Mcp-Name: =?base64?w6k=?=\r\n", "tools/call", "\"name\":\"é\",")
            => ["HTTP/1.1 200 "];
        To::Http, modern_with("Mcp-Name: =?base64?*?=\r\n", "tools/call", "\"name\":\"é\",")
            => ["HTTP/1.1 400 ", "-32020"];
    }
    hdr_07 {
        To::Http, modern_with("mCP-nAME: n\r\n", "tools/call", "\"name\":\"n\",")
            => ["HTTP/1.1 200 "];
        To::Http, modern_with("Mcp-Name: N\r\n", "tools/call", "\"name\":\"n\",")
            => ["HTTP/1.1 400 ", "-32020"];
    }
    hdr_08 {
        To::Http, modern_with("", "tools/call", "\"name\":\"n\",")
            => ["HTTP/1.1 400 ", "-32020", "\"id\":1"];
        To::Http, modern_with("Mcp-Method: tools/list\r\n", "tools/list", "")
            => ["HTTP/1.1 400 ", "-32020"];
        R4, post("{session}\r\nMcp-Method: nonsense\r\n", LIST) => ["HTTP/1.1 200 "];
    }
    sec_01_and_02 {
        To::Http, post("Origin: https://evil.example\r\n", LIST) => ["HTTP/1.1 403 ", "!\"id\""];
        To::Http, get("Origin: null\r\n") => ["HTTP/1.1 403 "];
        R4, delete("{session}\r\nOrigin: https://evil.example\r\n") => ["HTTP/1.1 403 "];
    }
    sec_04 {
        To::Http, post("", LIST).replace("localhost", "evil.example") => ["HTTP/1.1 403 "];
        To::Http, post("", LIST).replace("Type: application/json", "Type: text/plain")
            => ["HTTP/1.1 415 "];
    }
    can_02 {
        To::PipeAt("2025-11-25"), line(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#
        ) => [];
        R4, post(IN_SESSION, r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#)
            => ["HTTP/1.1 202 "];
    }
    png_01 {
        To::Pipe, line(&LIST.replace("tools/list", "ping")) => [r#""result":{}"#];
        R4, post(IN_SESSION, &LIST.replace("tools/list", "ping")) => [r#""result":{}"#];
    }
    png_03_and_err_01 {
        To::Http, modern_with("", "ping", "") => ["HTTP/1.1 404 ", "-32601", "\"id\":1"];
        To::Http, modern_with("", "initialize", "") => ["HTTP/1.1 404 ", "-32601"];
        To::Http, modern_with("", "logging/setLevel", "") => ["HTTP/1.1 404 ", "-32601"];
    }
    err_02 {
        R4, post(IN_SESSION, &LIST.replace("tools/list", "subscriptions/listen"))
            => ["HTTP/1.1 200 ", "-32601"];
    }
    err_03 {
        To::Http, modern_with("", "tools/list", "").replace("clientCapabilities", "clientCapabilitieX")
            => ["HTTP/1.1 400 ", "-32602", "\"id\":1"];
        To::Http, post(R5, LIST) => ["HTTP/1.1 400 ", "-32602"];
    }
}
