//! A runtime for any [`Machine`]: one thread, an event loop on [mio], Unix.
//!
//! It moves bytes, starts processes and keeps time; what they mean is the
//! machine's business. Nothing in here blocks: a name is looked up on a thread
//! of its own, and everything else is edge-triggered and non-blocking.
//!
//! A turn of the loop hands in all that happened, does what the machine wants,
//! and then writes, so that a busy connection costs one read and one write for
//! each small message, and many connections share one wait:
//!
//! | file | subject |
//! | --- | --- |
//! | `turn` | the loop: wait, and hand in what happened |
//! | `act` | doing what the machine wants, and writing |
//! | `driver` | the loop, turned by hand |
//! | `table` | the connections, by id and by place |
//! | `stream` | one direction of a connection: readiness, reading, writing |
//! | `accept` | listeners |
//! | `credentials` | whose Unix sockets are let in |
//! | `connect` | looking up names and trying addresses |
//! | `process` | children: start, signal, end |
//! | `orphan` | children after our own end |
//! | `stdio` | our own standard input and output |
//! | `signals` | what the user and the children tell us |
#![cfg(unix)]
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod accept;
mod act;
mod connect;
mod credentials;
mod driver;
mod orphan;
mod process;
mod signals;
mod stdio;
mod stream;
mod table;
mod turn;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

pub use driver::Driver;
use mcpx_core::driver::Machine;
use mcpx_core::event::Event;

/// A session with an MCP server, for programs that wait for its answers.
///
/// ```no_run
#[doc = include_str!("../examples/client.rs")]
/// ```
pub type Client = mcpx_core::client::Client<Driver>;

/// Where connections come from.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A Unix socket. Its file is left behind when listening ends.
    Unix(UnixListener),
    /// Our own standard input and output: one connection, there from the start.
    ///
    /// The runtime takes them over: in their place comes `/dev/null`, so that
    /// a stray print cannot mix with the machine's bytes.
    Stdio,
}

/// Drives `machine` until it asks to exit.
///
/// The `i`th of `listeners` is `ListenerId(i)`. `observe` gets every event.
/// Moments are microseconds since the call. SIGINT and SIGTERM become
/// `Input::Stop`; their handlers stay, without effect, after the return.
///
/// What is queued for connections at the end is still written for up to a
/// second. Processes that are still alive then are killed with their groups.
///
/// # Errors
///
/// The operating system's, while setting up or waiting. What befalls a single
/// connection goes to the machine.
pub fn run<M: Machine>(
    machine: &mut M,
    listeners: Vec<Listener>,
    mut observe: impl FnMut(Event),
) -> io::Result<()> {
    turn::Loop::new(listeners, true)?.run(machine, &mut observe)
}
