//! Talks to an MCP server: `cargo run --example client -- COMMAND ARGS...`
#![allow(clippy::print_stdout)]

use std::time::Duration;

use mcpx_core::client::oneshot::Kind;
use mcpx_core::client::session::Config;
use mcpx_core::client::{Error, Place};
use mcpx_core::driver::Command;
use mcpx_mio::Client;

fn main() -> Result<(), Error<std::io::Error>> {
    let mut words = std::env::args().skip(1);
    let program = words.next().expect("the command of a server");
    let command = Command { program, args: words.collect(), ..Command::default() };
    // Or `Place::Url`, for a server at an http URL.
    let mut client = Client::connect(Config::new("example", Place::Process(command)))?;
    println!("it speaks {:?}", client.revision());
    for tool in client.list(Kind::Tools)? {
        println!("{tool}");
    }
    let minute = Some(Duration::from_secs(60));
    let progress = |params: &str| println!("so far: {params}");
    println!("{}", client.call("echo", r#"{"message": "hi"}"#, minute, progress)?);
    for resource in client.list(Kind::Resources)? {
        println!("{resource}");
    }
    client.subscribe(&[])?;
    while let Some(told) = client.next(Some(Duration::from_secs(1)))? {
        println!("{} {:?}", told.method, told.params);
    }
    client.close()
}
