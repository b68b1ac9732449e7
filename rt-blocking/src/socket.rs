//! TCP and Unix sockets as one type, and how one is watched.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use polling::{Event, Poller};

/// A connected socket.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        // Small messages shall not wait for each other.
        let _ = stream.set_nodelay(true);
        Self::Tcp(stream)
    }
}

#[cfg(unix)]
impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

/// A socket that tells, once each time that it is asked, when it can be read or
/// written. Neither waits.
pub(crate) struct Watched {
    socket: Socket,
    poller: Arc<Poller>,
    key: usize,
}

impl Watched {
    /// Its events will bear `key`.
    #[allow(unsafe_code)]
    pub(crate) fn new(socket: Socket, poller: &Arc<Poller>, key: usize) -> io::Result<Self> {
        let nothing = Event::none(key);
        // SAFETY: the socket has to be deleted from the poller before it is
        // closed. Nobody else owns it, and `drop` below does that first.
        unsafe {
            match &socket {
                Socket::Tcp(stream) => {
                    stream.set_nonblocking(true)?;
                    poller.add(stream, nothing)?;
                }
                #[cfg(unix)]
                Socket::Unix(stream) => {
                    stream.set_nonblocking(true)?;
                    poller.add(stream, nothing)?;
                }
            }
        }
        Ok(Self { socket, poller: Arc::clone(poller), key })
    }

    /// What its events bear.
    pub(crate) fn key(&self) -> usize {
        self.key
    }

    /// Asks for the next event, of the two kinds or of either.
    pub(crate) fn ask(&self, readable: bool, writable: bool) -> io::Result<()> {
        let event = Event::new(self.key, readable, writable);
        match &self.socket {
            Socket::Tcp(stream) => self.poller.modify(stream, event),
            #[cfg(unix)]
            Socket::Unix(stream) => self.poller.modify(stream, event),
        }
    }

    /// Tells the other side that no more will come.
    pub(crate) fn finish(&self) {
        // It fails only when the connection is broken, which reading tells.
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // It was added, so there is nothing that could fail.
        let _ = match &self.socket {
            Socket::Tcp(stream) => self.poller.delete(stream),
            #[cfg(unix)]
            Socket::Unix(stream) => self.poller.delete(stream),
        };
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
