//! The scripted server of the end-to-end tests, on standard input and output.

use std::io::{BufRead, Write};

use mcpx_tests::scripted::{Deed, Script};

fn main() -> std::io::Result<()> {
    let mut script = Script::default();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        for deed in script.hear(&line?) {
            match deed {
                Deed::Say(line) => writeln!(output, "{line}")?,
                Deed::Mutter(line) => eprintln!("{line}"),
                Deed::Quit(code) => std::process::exit(code),
            }
        }
        output.flush()?;
    }
    Ok(())
}
