//! Looking up names and trying addresses, until one answers.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::vec::IntoIter;

use mcpx_core::driver::{CloseReason, ConnId};
use mio::net::{TcpStream, UnixStream};
use mio::{Registry, Token, Waker};

use crate::stream::{BOTH, reason};

/// The stack of a thread that looks up a name. The system's resolver keeps
/// answers on it.
const RESOLVER_STACK: usize = 256 * 1024;

type Addresses = Result<Vec<SocketAddr>, CloseReason>;

/// Looks up names, each on a thread that ends with the answer. There are never
/// more of them than connections that the machine waits for.
pub(crate) struct Resolver {
    waker: Arc<Waker>,
    sender: Sender<(ConnId, Addresses)>,
    answers: Receiver<(ConnId, Addresses)>,
}

impl Resolver {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let (sender, answers) = channel();
        Ok(Self { waker: Arc::new(Waker::new(registry, token)?), sender, answers })
    }

    /// Starts to look up a name. The answer wakes the loop.
    pub(crate) fn look_up(&self, conn: ConnId, host: String, port: u16) -> io::Result<()> {
        let (waker, sender) = (Arc::clone(&self.waker), self.sender.clone());
        let look_up = move || {
            let found = (host.as_str(), port).to_socket_addrs();
            let found = found.map(Iterator::collect).map_err(|_| CloseReason::Unresolved);
            // Nobody waits any longer if these fail.
            let _ = sender.send((conn, found));
            let _ = waker.wake();
        };
        thread::Builder::new()
            .name("resolve".to_owned())
            .stack_size(RESOLVER_STACK)
            .spawn(look_up)
            .map(drop)
    }

    /// The next answer, if there is one.
    pub(crate) fn answer(&self) -> Option<(ConnId, Addresses)> {
        self.answers.try_recv().ok()
    }
}

/// The address, if `host` needs no looking up.
pub(crate) fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}

/// How an attempt stands.
pub(crate) enum Progress {
    /// An edge will come.
    Waiting,
    /// It is connected.
    Done(OwnedFd),
    /// There is nothing left to try.
    Failed(CloseReason),
}

/// A connection in the making.
pub(crate) struct Attempt {
    token: Token,
    current: Option<Socket>,
    rest: IntoIter<SocketAddr>,
    /// What became of the last address.
    why: CloseReason,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Attempt {
    /// One that has no address yet.
    pub(crate) fn new(token: Token) -> Self {
        let rest = Vec::new().into_iter();
        Self { token, current: None, rest, why: CloseReason::Unresolved }
    }

    /// Tries these addresses in turn.
    pub(crate) fn tcp(&mut self, registry: &Registry, addresses: Vec<SocketAddr>) -> Progress {
        self.rest = addresses.into_iter();
        self.next(registry)
    }

    /// Tries a Unix socket.
    pub(crate) fn unix(&mut self, registry: &Registry, path: &str) -> Progress {
        let connected = UnixStream::connect(path).and_then(|mut stream| {
            registry.register(&mut stream, self.token, BOTH)?;
            Ok(Socket::Unix(stream))
        });
        match connected {
            Ok(socket) => self.current = Some(socket),
            // A queue that is full: as a TCP host would, it refuses.
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.why = CloseReason::Refused,
            Err(error) => self.why = reason(error.kind()),
        }
        self.next(registry)
    }

    /// An edge came.
    pub(crate) fn proceed(&mut self, registry: &Registry) -> Progress {
        let Some(socket) = self.current.take() else { return Progress::Waiting };
        let outcome = match &socket {
            Socket::Tcp(stream) => outcome(stream.take_error(), || stream.peer_addr().map(drop)),
            Socket::Unix(stream) => outcome(stream.take_error(), || stream.peer_addr().map(drop)),
        };
        match outcome {
            Ok(true) => match socket {
                Socket::Tcp(stream) => {
                    // Small messages shall not wait for each other.
                    let _ = stream.set_nodelay(true);
                    Progress::Done(stream.into())
                }
                Socket::Unix(stream) => Progress::Done(stream.into()),
            },
            Ok(false) => {
                self.current = Some(socket);
                Progress::Waiting
            }
            Err(why) => {
                self.why = why;
                self.next(registry)
            }
        }
    }

    /// Goes on with the next address if none is being tried.
    fn next(&mut self, registry: &Registry) -> Progress {
        while self.current.is_none() {
            let Some(address) = self.rest.next() else { return Progress::Failed(self.why) };
            let started = TcpStream::connect(address).and_then(|mut stream| {
                registry.register(&mut stream, self.token, BOTH)?;
                Ok(Socket::Tcp(stream))
            });
            match started {
                Ok(socket) => self.current = Some(socket),
                Err(error) => self.why = reason(error.kind()),
            }
        }
        Progress::Waiting
    }
}

/// Whether a socket is connected by now.
fn outcome(
    error: io::Result<Option<io::Error>>,
    peer: impl FnOnce() -> io::Result<()>,
) -> Result<bool, CloseReason> {
    match error {
        Err(error) | Ok(Some(error)) => Err(reason(error.kind())),
        Ok(None) => match peer() {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(reason(error.kind())),
        },
    }
}
