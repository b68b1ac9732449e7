//! Looking up names and trying addresses, until one answers (RFC 8305: both families
//! of addresses in turn, the next as soon as one fails or takes its time).

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use mcpx_core::driver::{CloseReason, ConnId, in_turn};
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

/// How long an address is tried alone (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// A connection in the making.
pub(crate) struct Attempt {
    token: Token,
    /// The addresses that are being tried.
    current: Vec<Socket>,
    rest: IntoIter<SocketAddr>,
    /// When the next of them joins.
    pub(crate) next_at: Option<Instant>,
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
        Self { token, current: Vec::new(), rest, next_at: None, why: CloseReason::Unresolved }
    }

    /// Tries these addresses.
    pub(crate) fn tcp(
        &mut self,
        registry: &Registry,
        now: Instant,
        addresses: Vec<SocketAddr>,
    ) -> Progress {
        self.rest = in_turn(addresses).into_iter();
        self.next(registry, now)
    }

    /// Tries a Unix socket.
    pub(crate) fn unix(&mut self, registry: &Registry, now: Instant, path: &str) -> Progress {
        let connected = UnixStream::connect(path).and_then(|mut stream| {
            registry.register(&mut stream, self.token, BOTH)?;
            Ok(Socket::Unix(stream))
        });
        match connected {
            Ok(socket) => self.current.push(socket),
            // A queue that is full: as a TCP host would, it refuses.
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.why = CloseReason::Refused,
            Err(error) => self.why = reason(error.kind()),
        }
        self.next(registry, now)
    }

    /// An edge came, or the time for the next address.
    pub(crate) fn proceed(&mut self, registry: &Registry, now: Instant) -> Progress {
        let mut at = 0;
        while let Some(socket) = self.current.get(at) {
            let outcome = match socket {
                Socket::Tcp(stream) => {
                    outcome(stream.take_error(), || stream.peer_addr().map(drop))
                }
                Socket::Unix(stream) => {
                    outcome(stream.take_error(), || stream.peer_addr().map(drop))
                }
            };
            match outcome {
                Ok(false) => at += 1,
                Ok(true) => {
                    return Progress::Done(match self.current.swap_remove(at) {
                        Socket::Tcp(stream) => {
                            // Small messages shall not wait for each other.
                            let _ = stream.set_nodelay(true);
                            stream.into()
                        }
                        Socket::Unix(stream) => stream.into(),
                    });
                }
                Err(why) => {
                    self.why = why;
                    self.current.remove(at);
                    self.next_at = Some(now);
                }
            }
        }
        if self.next_at.is_some_and(|at| at > now) && !self.current.is_empty() {
            return Progress::Waiting;
        }
        self.next(registry, now)
    }

    /// Starts with the next address.
    fn next(&mut self, registry: &Registry, now: Instant) -> Progress {
        self.next_at = None;
        for address in self.rest.by_ref() {
            let started = TcpStream::connect(address).and_then(|mut stream| {
                registry.register(&mut stream, self.token, BOTH)?;
                Ok(Socket::Tcp(stream))
            });
            match started {
                Ok(socket) => {
                    self.current.push(socket);
                    break;
                }
                Err(error) => self.why = reason(error.kind()),
            }
        }
        if self.rest.len() > 0 {
            self.next_at = Some(now + HEAD_START);
        }
        if self.current.is_empty() { Progress::Failed(self.why) } else { Progress::Waiting }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The first address is one of nobody (RFC 5737): it is silent, or unreachable.
    #[test]
    fn an_address_that_leads_nowhere_is_not_waited_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let nowhere = SocketAddr::from(([192, 0, 2, 1], 9));
        let mut poll = mio::Poll::new().unwrap();
        let mut events = mio::Events::with_capacity(8);
        let mut attempt = Attempt::new(Token(1));
        let mut progress = attempt.tcp(poll.registry(), Instant::now(), vec![nowhere, there]);
        let socket = loop {
            match progress {
                Progress::Done(socket) => break socket,
                Progress::Failed(why) => panic!("{why:?}"),
                Progress::Waiting => {
                    let until = attempt.next_at.map(|at| at - Instant::now().min(at));
                    poll.poll(&mut events, until).unwrap();
                    progress = attempt.proceed(poll.registry(), Instant::now());
                }
            }
        };
        let stream = std::net::TcpStream::from(socket);
        assert_eq!(stream.peer_addr().unwrap(), there);
    }
}
