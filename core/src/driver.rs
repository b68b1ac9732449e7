//! The contract between a machine and the runtime that drives it.
//!
//! A machine decides; a runtime moves bytes, starts processes and keeps time.
//! Both speak of connections, processes and moments, never of MCP:
//!
//! ```text
//! loop {
//!     wait for sockets, pipes, processes, signals, or machine.deadline();
//!     for everything that happened { machine.handle(now, input); }
//!     while let Some(action) = machine.poll() { do it; }
//!     for every connection that Flush named {
//!         n = write(machine.outgoing(conn)); machine.sent(now, conn, n);
//!     }
//! }
//! ```
//!
//! **A child process is a connection**: its standard input and output are the
//! two directions, its standard error arrives as [`Input::Stderr`], and its end
//! as [`Input::Exited`]. So are our own standard input and output, which a
//! runtime reports as accepted from a listener.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use crate::event::Event;
use crate::time::Instant;

/// Names a connection for as long as a machine lives; never used twice.
///
/// Those that the runtime accepts and those that the machine asks for are
/// numbered apart, so that each side can count by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ConnId(u64);

impl ConnId {
    const REQUESTED: u64 = 1 << 63;

    /// The `n`th connection that the runtime accepted.
    pub const fn accepted(n: u64) -> Self {
        Self(n & !Self::REQUESTED)
    }

    /// The `n`th connection that the machine asked for.
    pub const fn requested(n: u64) -> Self {
        Self(n | Self::REQUESTED)
    }

    /// Whether the machine asked for it.
    pub const fn is_requested(self) -> bool {
        self.0 & Self::REQUESTED != 0
    }

    /// A number that no other connection has.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// The place of a listener in the list that the runtime was given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ListenerId(pub u32);

/// Something happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input<'a> {
    /// A listener accepted a connection. Its id is the runtime's choice.
    Accepted {
        /// The new connection.
        conn: ConnId,
        /// The listener.
        listener: ListenerId,
        /// The other side's address, if it came by TCP.
        from: Option<IpAddr>,
    },
    /// A connection or process that the machine asked for is there.
    Connected {
        /// Which.
        conn: ConnId,
    },
    /// Bytes came. The machine keeps what it needs.
    Received {
        /// From where.
        conn: ConnId,
        /// Never empty.
        bytes: &'a [u8],
    },
    /// The other side will send no more. Writing may still work.
    Finished {
        /// Which.
        conn: ConnId,
    },
    /// The connection is gone, or never came to be: the runtime has dropped
    /// it. For a process only its pipes are; [`Input::Exited`] follows if it
    /// had been started.
    Closed {
        /// Which.
        conn: ConnId,
        /// What broke it.
        why: CloseReason,
    },
    /// A process wrote to its standard error.
    Stderr {
        /// Which.
        conn: ConnId,
        /// Never empty; not split at lines.
        bytes: &'a [u8],
    },
    /// A process has ended, and all that it wrote has been handed over. The
    /// last word about its connection, [`Input::Finished`] included.
    Exited {
        /// Which.
        conn: ConnId,
        /// How.
        status: ExitStatus,
    },
    /// [`Machine::deadline`] has come.
    Tick,
    /// The user asks for a graceful stop (SIGINT, SIGTERM). A second one asks
    /// for a prompt stop.
    Stop,
}

/// Why a connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The other side reset it, or closed it while we were writing.
    Reset,
    /// Nobody listens there.
    Refused,
    /// The host name has no address.
    Unresolved,
    /// No answer in the operating system's time.
    TimedOut,
    /// The program, or the socket's path, does not exist.
    NotFound,
    /// The operating system does not allow it.
    Denied,
    /// The certificate of the other side is not trusted.
    Untrusted,
    /// Anything else that the operating system reports, or that is no TLS.
    Failed,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// With this code.
    Code(i32),
    /// Killed by this signal (Unix).
    Signal(i32),
}

/// What the runtime shall do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// There are [outgoing](Machine::outgoing) bytes. Given when the first byte
    /// is queued; not again before all of them are [sent](Machine::sent).
    Flush(ConnId),
    /// Stop reading from the connection (for a process, its standard output).
    Pause(ConnId),
    /// Read from it again.
    Resume(ConnId),
    /// When the outgoing bytes are written, end this direction: shut down
    /// writing on a socket, close a process's standard input.
    Finish(ConnId),
    /// Drop the connection now, unsent bytes included. For a process, its
    /// pipes; it goes on until it exits. No further input about it but
    /// [`Input::Exited`] matters.
    Close(ConnId),
    /// Open a connection. Answered by [`Input::Connected`] or [`Input::Closed`].
    Connect {
        /// Its id, the machine's choice.
        conn: ConnId,
        /// Where.
        to: Target,
    },
    /// Start a process in a process group of its own. Answered by
    /// [`Input::Connected`] or [`Input::Closed`].
    Spawn {
        /// Its id, the machine's choice.
        conn: ConnId,
        /// What.
        command: Command,
    },
    /// Send a signal to the process and, for [`Signal::Kill`], its whole group.
    Signal {
        /// The process.
        conn: ConnId,
        /// The signal.
        signal: Signal,
    },
    /// Close all listeners.
    StopListening,
    /// Tell the embedder.
    Event(Event),
    /// The machine has ended: write what is still queued, as far as it is read
    /// within a moment, and return.
    Exit,
}

/// Where to connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A TCP port. Every address of the host is tried, [in turn](in_turn): the next as
    /// soon as one fails or takes its time (RFC 8305).
    Tcp {
        /// A name or an address (IPv6 without brackets).
        host: String,
        /// The port.
        port: u16,
    },
    /// A TCP port behind TLS. Runtimes move bytes as they are: a layer between
    /// them and the machine does the rest, and asks them for [`Target::Tcp`].
    Tls {
        /// A name or an address (IPv6 without brackets), as the certificate has it.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix {
        /// Its path.
        path: String,
    },
}

/// A program to start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// The program: a path, or a name looked up in `PATH`.
    pub program: String,
    /// Its arguments, itself not counted.
    pub args: Vec<String>,
    /// Variables on top of our own environment.
    pub env: Vec<(String, String)>,
    /// Its working directory, if not ours.
    pub cwd: Option<String>,
}

/// A signal to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Please stop: SIGTERM. Where there is no such thing, the same as `Kill`.
    Terminate,
    /// Stop now: SIGKILL, to the whole process group.
    Kill,
}

/// A state machine that a runtime can drive. See the [module](self).
///
/// It is deterministic: the same construction and the same inputs give the
/// same actions and the same bytes, however the incoming bytes were cut.
pub trait Machine {
    /// Something happened.
    fn handle(&mut self, now: Instant, input: Input<'_>);

    /// What to do next. Call until `None` after every round of inputs.
    fn poll(&mut self) -> Option<Action>;

    /// When to hand in [`Input::Tick`] if nothing else happens before.
    fn deadline(&self) -> Option<Instant>;

    /// The bytes waiting for a connection. They stay until [sent](Self::sent).
    fn outgoing(&self, conn: ConnId) -> &[u8];

    /// The first `n` of them are written. Actions may follow.
    fn sent(&mut self, now: Instant, conn: ConnId, n: usize);
}

/// The addresses of a host as a runtime tries them: of both families in turn, in the
/// system's order otherwise.
pub fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (one, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first);
    let mut mixed = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    loop {
        let pair = (one.next(), other.next());
        mixed.extend(pair.0.into_iter().chain(pair.1));
        if pair == (None, None) {
            return mixed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let all = ["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1"].map(address);
        let mixed = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address);
        assert_eq!(in_turn(all.to_vec()), mixed);
        assert_eq!(in_turn(Vec::new()), []);
    }
}
