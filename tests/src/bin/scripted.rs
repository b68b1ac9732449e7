//! The scripted server of the end-to-end tests, on standard input and output.

use std::io::{BufRead, Write};

use mcpx_tests::odd::Deed;
use mcpx_tests::scripted::Script;

fn main() -> std::io::Result<()> {
    let mut script = Script::default();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str(&line?) else { continue };
        for deed in script.hear(&message) {
            match deed {
                Deed::Say(line) => writeln!(output, "{line}")?,
                Deed::Mutter(line) => eprintln!("{line}"),
                Deed::HangUp => return Ok(()),
                Deed::Quit(code) => std::process::exit(code),
            }
        }
        output.flush()?;
    }
    Ok(())
}
