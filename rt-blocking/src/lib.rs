//! A runtime for any [`Machine`]: threads and blocking calls, on every system
//! that the standard library knows.
//!
//! One thread owns the machine. It reads and writes sockets itself when they are
//! ready, and waits for them, with the machine's deadline as the longest wait.
//! Every other thread does one blocking thing and reports it on a bounded channel,
//! which wakes that thread up:
//!
//! | file | subject |
//! | --- | --- |
//! | `turn` | the thread that owns the machine: wait, and hand in what happened |
//! | `act` | doing what the machine wants |
//! | `driver` | the same, turned by hand |
//! | `conn` | what that thread knows of a connection |
//! | `socket` | TCP and Unix sockets as one type, and how one is watched |
//! | `ready` | sockets that can be read or written |
//! | `workers` | the reader and the writer of a pipe |
//! | `accept` | a thread for each listener |
//! | `credentials` | whose Unix sockets are let in |
//! | `connect` | a thread for each attempt to connect |
//! | `process` | children, and a thread that waits for each |
//! | `orphan` | children after our own end |
//! | `system` | what differs between operating systems |
//!
//! A worker never has more than one buffer under way. Whoever gets a buffer may
//! work, and whoever waits for one rests: pausing a reader is keeping its
//! buffer. The owner of the machine therefore never blocks on a worker.
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod accept;
mod act;
mod conn;
mod connect;
#[cfg(unix)]
mod credentials;
mod driver;
#[cfg(unix)]
mod orphan;
mod process;
mod ready;
mod socket;
mod system;
mod turn;
mod workers;

use std::io;
use std::net::TcpListener;
#[cfg(unix)]
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
    #[cfg(unix)]
    Unix(UnixListener),
    /// Our own standard input and output: one connection, there from the start.
    ///
    /// On Unix the runtime takes them over: in their place comes `/dev/null`,
    /// so that a stray print cannot mix with the machine's bytes.
    Stdio,
}

/// Drives `machine` until it asks to exit.
///
/// The `i`th of `listeners` is `ListenerId(i)`. `observe` gets every event.
/// Moments are microseconds since the call. On Unix, SIGINT and SIGTERM become
/// `Input::Stop`; their handlers stay, without effect, after the return.
///
/// What is queued for connections at the end is still written for up to a
/// second. Processes that are still alive then are killed, on Unix with their
/// groups. A thread that reads our own standard input is left behind.
///
/// # Errors
///
/// The operating system's, while setting up. What befalls a single connection
/// goes to the machine.
pub fn run<M: Machine>(
    machine: &mut M,
    listeners: Vec<Listener>,
    mut observe: impl FnMut(Event),
) -> io::Result<()> {
    turn::Owner::new(listeners, true)?.run(machine, &mut observe)
}
