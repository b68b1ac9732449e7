//! The program is in the library, so that its tests can have parts of it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    mcpx::main()
}
