//! TCP and Unix sockets as one type, which a reader and a writer share.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::workers::Sink;

/// A connected socket.
#[derive(Clone)]
pub(crate) enum Socket {
    Tcp(Arc<TcpStream>),
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        // Small messages shall not wait for each other.
        let _ = stream.set_nodelay(true);
        Self::Tcp(Arc::new(stream))
    }
}

#[cfg(unix)]
impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(Arc::new(stream))
    }
}

impl Socket {
    /// Ends the connection, so that whoever reads or writes it wakes up.
    pub(crate) fn close(&self) {
        self.shutdown(Shutdown::Both);
    }

    fn shutdown(&self, how: Shutdown) {
        // It fails only when the connection is broken, which reading tells.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            #[cfg(unix)]
            Self::Unix(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&**stream).read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => (&**stream).read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&**stream).write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => (&**stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Socket {
    fn finish(self) {
        self.shutdown(Shutdown::Write);
    }
}
