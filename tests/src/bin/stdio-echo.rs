//! The least server that can be measured behind a gateway: on its standard
//! input and output, it answers `initialize`, and any other request with the
//! same text. What it costs is what the measured gateway cannot help.
//!
//! ```text
//! stdio-echo [TOOLS]
//! ```
//!
//! With a number, it lists so many tools.

use std::io::{BufRead, Write};

use mcpx_core::jsonrpc::{Envelope, Incoming, Kind, Limits, Message};

fn main() -> std::io::Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut line, mut answer) = (Vec::new(), Vec::new());
    let tools = std::env::args().nth(1).and_then(|tools| tools.parse().ok()).unwrap_or(0);
    let tools = list(tools);
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Ok(Incoming::Message(message)) = Message::parse((&line[..]).into(), &Limits::DEFAULT)
            && let (Kind::Request, Some(id)) = (message.kind(), message.id())
        {
            let result = match message.method() {
                "initialize" => {
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stdio-echo","version":"1"}}"#
                }
                "tools/list" => &tools,
                _ => r#"{"content":[{"type":"text","text":"Echo: hello"}]}"#,
            };
            answer.clear();
            Envelope::Result { id, result }.write_line(&mut answer);
            output.write_all(&answer)?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn list(tools: usize) -> String {
    let tool = |n| {
        format!(
            r#"{{"name":"tool_{n}","description":"The tool of number {n}, which says hello as all the others do, and takes a text that it does not look at.","inputSchema":{{"type":"object","properties":{{"message":{{"type":"string","description":"Anything."}}}},"required":["message"]}}}}"#
        )
    };
    format!(r#"{{"tools":[{}]}}"#, (0..tools).map(tool).collect::<Vec<_>>().join(","))
}
