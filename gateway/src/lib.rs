//! The program `mcpx`, a gateway for the Model Context Protocol, and the server
//! that is built into it.
//!
//! | file | subject |
//! | --- | --- |
//! | `args`, `help` | the command line, and what it says about itself |
//! | `config`, `expand` | the configuration file, and `${…}` in it |
//! | `upstream` | which server, in words that the core understands |
//! | `tls` | TLS and proxies, between the core and a runtime |
//! | `listen`, `socket` | addresses, and sockets in the file system |
//! | `access` | who may use them |
//! | `run` | `mcpx daemon` and `mcpx serve` |
//! | `setup` | what a gateway is made from |
//! | `record` | writing down all that happens to it, and doing it again |
//! | `reload` | the configuration file, read again |
//! | `ask`, `show` | `mcpx call` and `mcpx ls`, and their results in print |
//! | `demo` | the server that is built in |
//! | `report`, `error` | what goes to standard error, and how we exit |
#![forbid(unsafe_code)]

mod access;
mod args;
mod ask;
mod config;
pub mod demo;
mod error;
mod expand;
mod help;
mod listen;
mod record;
mod reload;
mod report;
mod run;
mod setup;
mod show;
#[cfg(unix)]
mod socket;
mod tls;
mod upstream;

use std::process::ExitCode;

use args::Command;
use error::{Error, Exit};

/// Runs the program that the command line asks for.
pub fn main() -> ExitCode {
    let exit = args::parse(lexopt::Parser::from_env()).and_then(execute).unwrap_or_else(|error| {
        report::say(error.text());
        error.exit()
    });
    ExitCode::from(exit.code())
}

fn execute(command: Command) -> Result<Exit, Error> {
    match command {
        Command::Help(topic) => show::print(help::of(topic)),
        Command::Version => show::print(concat!("mcpx ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Daemon { listen, access, record, common } => {
            run::daemon(&listen, &access, record.as_ref(), &common)
        }
        Command::Serve { record, common } => run::serve(record.as_ref(), &common),
        Command::Replay(replay) => record::replay(&replay),
        Command::Call { tool, arguments, print, common } => {
            ask::call(tool, arguments.as_deref(), &print, &common)
        }
        Command::List { print, common } => ask::list(&print, &common),
    }
}
