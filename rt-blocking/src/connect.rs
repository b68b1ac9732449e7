//! A thread for each attempt to connect: it looks the name up and tries the
//! addresses (RFC 8305: both families in turn, the next as soon as one fails or
//! takes its time).

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use mcpx_core::driver::{CloseReason, ConnId, Target, in_turn};

use crate::socket::Socket;
use crate::workers::{Report, Reports, reason, start};

/// The stack of such a thread. The system's resolver keeps answers on it.
const STACK: usize = 256 * 1024;
/// How long an address is tried alone (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Starts an attempt, which ends with a report.
pub(crate) fn attempt(conn: ConnId, to: Target, reports: Reports) -> io::Result<()> {
    start("connect", STACK, move || {
        // Nobody waits any longer if this fails.
        let _ = reports.send(Report::Connected(conn, connect(&to)));
    })
}

/// Tries addresses, the next as soon as one fails or takes its time, each on a thread of
/// its own if there are several. What loses is dropped when it is there.
fn race(addresses: Vec<SocketAddr>) -> Result<TcpStream, CloseReason> {
    let why = |error: io::Error| reason(error.kind());
    if let [only] = addresses[..] {
        return TcpStream::connect(only).map_err(why);
    }
    let (sender, outcomes) = channel();
    let (mut rest, mut running, mut last) = (addresses.into_iter(), 0, CloseReason::Unresolved);
    loop {
        let next = rest.next();
        match next {
            Some(address) => {
                let sender = sender.clone();
                let attempt = move || drop(sender.send(TcpStream::connect(address)));
                start("connect", STACK, attempt).map_err(why)?;
                running += 1;
            }
            None if running == 0 => return Err(last),
            None => {}
        }
        let outcome = match next {
            Some(_) if rest.len() > 0 => outcomes.recv_timeout(HEAD_START).ok(),
            // We hold a sender ourselves, so the channel cannot be closed.
            _ => outcomes.recv().ok(),
        };
        match outcome {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => (running, last) = (running - 1, reason(error.kind())),
            None => {}
        }
    }
}

fn connect(to: &Target) -> Result<Socket, CloseReason> {
    match to {
        Target::Tcp { host, port } => {
            let found = (host.as_str(), *port).to_socket_addrs();
            let found = found.map_err(|_| CloseReason::Unresolved)?.collect();
            race(in_turn(found)).map(Socket::from)
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The first address is one of nobody (RFC 5737): it is silent, or unreachable.
    #[test]
    fn an_address_that_leads_nowhere_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let nowhere = SocketAddr::from(([192, 0, 2, 1], 9));
        let stream = race(vec![nowhere, there]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
        drop(listener);
        assert_eq!(race(vec![there, there]).err(), Some(CloseReason::Refused));
        assert_eq!(race(Vec::new()).err(), Some(CloseReason::Unresolved));
    }
}
