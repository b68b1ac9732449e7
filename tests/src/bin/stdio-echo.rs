//! The least server that can be measured behind a gateway: on its standard
//! input and output, it answers `initialize`, and any other request with the
//! same text. What it costs is what the measured gateway cannot help.

use std::io::{BufRead, Write};

use mcpx_core::jsonrpc::{Envelope, Incoming, Kind, Limits, Message};

fn main() -> std::io::Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut line, mut answer) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Ok(Incoming::Message(message)) = Message::parse((&line[..]).into(), &Limits::DEFAULT)
            && let (Kind::Request, Some(id)) = (message.kind(), message.id())
        {
            let result = match message.method() {
                "initialize" => {
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stdio-echo","version":"1"}}"#
                }
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
