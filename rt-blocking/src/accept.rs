//! A thread for each listener.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mcpx_core::driver::ListenerId;

use crate::Listener;
#[cfg(unix)]
use crate::credentials::ours;
use crate::socket::Socket;
use crate::workers::{Report, Reports, STACK, start};

/// How long a listener rests when the system has no descriptor or memory for
/// another connection.
const REST: Duration = Duration::from_millis(100);

/// A listener's thread, seen from outside.
pub(crate) struct Acceptor {
    stop: Arc<AtomicBool>,
    address: Address,
}

/// How to reach a listener.
#[derive(Clone)]
enum Address {
    Tcp(SocketAddr),
    #[cfg(unix)]
    Unix(net::SocketAddr),
}

impl Acceptor {
    /// Starts to listen. `None` for [`Listener::Stdio`], which nobody can
    /// connect to.
    pub(crate) fn start(
        listener: Listener,
        id: ListenerId,
        reports: Reports,
    ) -> io::Result<Option<Self>> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let address = match listener {
            Listener::Tcp(listener) => {
                let address = Address::Tcp(listener.local_addr()?);
                let accept = move |listener: &TcpListener| {
                    let (stream, from) = listener.accept()?;
                    Ok((stream.into(), Some(from.ip())))
                };
                start("accept", STACK, move || serve(listener, accept, &seen, id, &reports))?;
                address
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let address = Address::Unix(listener.local_addr()?);
                let accept = move |listener: &UnixListener| {
                    let (stream, _) = listener.accept()?;
                    Ok((ours(stream)?.into(), None))
                };
                start("accept", STACK, move || serve(listener, accept, &seen, id, &reports))?;
                address
            }
            Listener::Stdio => return Ok(None),
        };
        Ok(Some(Self { stop, address }))
    }
}

impl Drop for Acceptor {
    /// Ends the thread: tells it, and connects so that it wakes up, on a thread
    /// because connecting may take as long as the listener's queue is full. If
    /// that fails, the listener cannot be reached by anybody else either.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let address = self.address.clone();
        let _ = start("wake", STACK, move || address.touch());
    }
}

impl Address {
    /// Connects, for no other reason than that.
    fn touch(&self) {
        match self {
            Self::Tcp(address) => {
                let ip = match address.ip() {
                    IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                    IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                    ip => ip,
                };
                let _ = TcpStream::connect(SocketAddr::new(ip, address.port()));
            }
            #[cfg(unix)]
            Self::Unix(address) => {
                let _ = UnixStream::connect_addr(address);
            }
        }
    }
}

fn serve<L>(
    listener: L,
    accept: impl Fn(&L) -> io::Result<(Socket, Option<IpAddr>)>,
    stop: &AtomicBool,
    id: ListenerId,
    reports: &Reports,
) {
    loop {
        let accepted = accept(&listener);
        if stop.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok((socket, from)) => {
                if reports.send(Report::Accepted { listener: id, socket, from }).is_err() {
                    return;
                }
            }
            Err(error) => match error.kind() {
                // The peer went away while it waited, or is none of ours.
                io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                _ => thread::sleep(REST),
            },
        }
    }
}
