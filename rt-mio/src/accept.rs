//! Listeners.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};

use crate::Listener;
use crate::credentials::ours;

/// How long a listener rests when the system has no descriptor or memory for
/// another connection.
const REST: Duration = Duration::from_millis(100);

/// A listener in the loop.
pub(crate) struct Acceptor {
    socket: Socket,
    pub(crate) ready: bool,
    /// It rests until then.
    pub(crate) rests: Option<Instant>,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
    /// `None` for [`Listener::Stdio`], which nobody can connect to.
    pub(crate) fn new(
        listener: Listener,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Option<Self>> {
        let socket = match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                let mut listener = TcpListener::from_std(listener);
                registry.register(&mut listener, token, Interest::READABLE)?;
                Socket::Tcp(listener)
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                let mut listener = UnixListener::from_std(listener);
                registry.register(&mut listener, token, Interest::READABLE)?;
                Socket::Unix(listener)
            }
            Listener::Stdio => return Ok(None),
        };
        Ok(Some(Self { socket, ready: false, rests: None }))
    }

    /// The next connection, if one waits.
    pub(crate) fn accept(&mut self, now: Instant) -> Option<(OwnedFd, Option<IpAddr>)> {
        if self.rests.is_some_and(|until| now < until) {
            return None;
        }
        self.rests = None;
        while self.ready {
            let accepted = match &self.socket {
                Socket::Tcp(listener) => listener.accept().map(|(stream, from)| {
                    // Small messages shall not wait for each other.
                    let _ = stream.set_nodelay(true);
                    (stream.into(), Some(from.ip()))
                }),
                Socket::Unix(listener) => listener
                    .accept()
                    .and_then(|(stream, _)| ours(stream))
                    .map(|stream| (stream.into(), None)),
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.ready = false,
                    // The peer went away while it waited, or is none of ours.
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                    _ => {
                        self.rests = Some(now + REST);
                        return None;
                    }
                },
            }
        }
        None
    }
}
