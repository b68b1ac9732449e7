//! One direction of a connection: whether it is ready, reading, writing.
//!
//! Edges are remembered as readiness, which only an exhausted read or write
//! takes back. A read that fills less than the buffer has exhausted a socket or
//! a pipe, and a write that takes less than all has filled it, so neither needs
//! a second call to find out.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use mcpx_core::driver::CloseReason;
use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::Shutdown;

/// What a socket is watched for, from the first to the last.
pub(crate) const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// A file descriptor that gets its flags back before it is closed, because
/// others may share them.
pub(crate) struct Handle {
    pub(crate) fd: OwnedFd,
    pub(crate) restore: Option<OFlags>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(flags) = self.restore {
            // There is nobody left to tell of a failure.
            let _ = rustix::fs::fcntl_setfl(&self.fd, flags);
        }
    }
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, restore: None }
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Handle {
    /// Asks for edges. False if the file has none because it never blocks, as
    /// a regular file.
    pub(crate) fn watch(
        &self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> std::io::Result<bool> {
        match registry.register(&mut SourceFd(&self.fd.as_raw_fd()), token, interest) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What came of a read.
pub(crate) enum Read {
    /// This many bytes, at least one.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// There will never be more.
    End,
}

/// Where bytes come from.
pub(crate) struct Source {
    fd: Rc<Handle>,
    pub(crate) ready: bool,
    /// The end was announced: read until it is seen, there is no other edge.
    ending: bool,
    /// Whether a read that fills less than the buffer has taken everything:
    /// true for sockets and pipes, not for terminals and files.
    short_is_all: bool,
}

impl Source {
    /// A socket or a pipe.
    pub(crate) fn new(fd: Rc<Handle>) -> Self {
        Self { fd, ready: false, ending: false, short_is_all: true }
    }

    /// Something else. `ready` says that it never blocks.
    pub(crate) fn peculiar(fd: Rc<Handle>, ready: bool) -> Self {
        Self { fd, ready, ending: false, short_is_all: false }
    }

    pub(crate) fn note(&mut self, event: &Event) {
        let ending = event.is_read_closed() || event.is_error();
        self.ready |= event.is_readable() || ending;
        self.ending |= ending;
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Read, Errno> {
        let room = buffer.len();
        match retry_on_intr(|| rustix::io::read(&*self.fd, &mut *buffer)) {
            Ok(0) => Ok(Read::End),
            Ok(n) => {
                self.ready = n == room || self.ending || !self.short_is_all;
                Ok(Read::Bytes(n))
            }
            Err(Errno::AGAIN) => {
                self.ready = false;
                Ok(Read::Nothing)
            }
            Err(error) => Err(error),
        }
    }
}

/// Where bytes go.
pub(crate) struct Sink {
    fd: Rc<Handle>,
    pub(crate) ready: bool,
    kind: SinkKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinkKind {
    /// Ends by being shut down; the other direction lives on.
    Socket,
    /// Ends by being closed.
    Pipe,
    /// As a pipe, but never full.
    File,
}

impl Sink {
    pub(crate) fn new(fd: Rc<Handle>, kind: SinkKind) -> Self {
        Self { fd, ready: true, kind }
    }

    pub(crate) fn note(&mut self, event: &Event) {
        self.ready |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    /// Writes what fits. Zero if nothing does for now.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match retry_on_intr(|| rustix::io::write(&*self.fd, bytes)) {
            Ok(n) => {
                self.ready = n == bytes.len() || self.kind == SinkKind::File;
                Ok(n)
            }
            Err(Errno::AGAIN) => {
                self.ready = false;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells the other side that no more will come.
    pub(crate) fn finish(self) {
        if self.kind == SinkKind::Socket {
            // It fails only when the connection is broken, which reading tells.
            let _ = rustix::net::shutdown(&*self.fd, Shutdown::Write);
        }
    }
}

/// The machine's word for an error.
pub(crate) fn reason(kind: ErrorKind) -> CloseReason {
    match kind {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            CloseReason::Reset
        }
        ErrorKind::ConnectionRefused => CloseReason::Refused,
        ErrorKind::TimedOut => CloseReason::TimedOut,
        ErrorKind::NotFound => CloseReason::NotFound,
        ErrorKind::PermissionDenied => CloseReason::Denied,
        _ => CloseReason::Failed,
    }
}
