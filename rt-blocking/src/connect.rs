//! A thread for each attempt to connect: it looks the name up and tries the
//! addresses in turn. There are never more of them than connections that the
//! machine waits for.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use mcpx_core::driver::{CloseReason, ConnId, Target};

use crate::socket::Socket;
use crate::workers::{Report, Reports, reason, start};

/// The stack of such a thread. The system's resolver keeps answers on it.
const STACK: usize = 256 * 1024;

/// Starts an attempt, which ends with a report.
pub(crate) fn attempt(conn: ConnId, to: Target, reports: Reports) -> io::Result<()> {
    start("connect", STACK, move || {
        // Nobody waits any longer if this fails.
        let _ = reports.send(Report::Connected(conn, connect(&to)));
    })
}

fn connect(to: &Target) -> Result<Socket, CloseReason> {
    match to {
        Target::Tcp { host, port } => {
            let mut why = CloseReason::Unresolved;
            for address in (host.as_str(), *port).to_socket_addrs().map_err(|_| why)? {
                match TcpStream::connect(address) {
                    Ok(stream) => return Ok(stream.into()),
                    Err(error) => why = reason(error.kind()),
                }
            }
            Err(why)
        }
        Target::Tls { .. } => Err(CloseReason::Failed),
        #[cfg(unix)]
        Target::Unix { path } => {
            UnixStream::connect(path).map(Socket::from).map_err(|error| reason(error.kind()))
        }
        #[cfg(not(unix))]
        Target::Unix { .. } => Err(CloseReason::Failed),
    }
}
