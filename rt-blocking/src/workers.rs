//! The threads that do the blocking work of a pipe, and what all threads report.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use mcpx_core::driver::{CloseReason, ConnId, ListenerId};
use polling::Poller;

use crate::socket::Socket;

/// The most that one read or write moves, and so the most that a pipe has under
/// way in each direction.
pub(crate) const BUFFER: usize = 64 * 1024;
/// The room that a pipe keeps while little comes and goes.
pub(crate) const SMALL: usize = 2 * 1024;
/// Bytes of a process's standard error that are read at once: mostly lines.
pub(crate) const STDERR: usize = 4 * 1024;
/// The stack of a worker: it calls the system and little else.
pub(crate) const STACK: usize = 128 * 1024;

/// How many reports may wait. A worker that has one more waits itself.
const REPORTS: usize = 256;

/// What a worker tells the owner of the machine.
pub(crate) enum Report {
    /// A listener has a connection.
    Accepted { listener: ListenerId, socket: Socket, from: Option<IpAddr> },
    /// An attempt to connect has come to its end.
    Connected(ConnId, Result<Socket, CloseReason>),
    /// A reader has filled its buffer so far, and waits to get it back.
    Read { conn: ConnId, part: Part, buffer: Vec<u8>, len: usize },
    /// A reader has reached the end, or an error, and has ended.
    ReadEnded { conn: ConnId, part: Part, error: Option<CloseReason> },
    /// A writer has written so much of its buffer, and waits to get it back.
    Wrote { conn: ConnId, buffer: Vec<u8>, len: usize },
    /// A writer could not write, and has ended.
    WriteFailed { conn: ConnId, why: CloseReason },
    /// A child has ended.
    Ended(ConnId),
    /// The user asks to stop.
    #[cfg(unix)]
    Stop,
}

/// Where reports go.
#[derive(Clone)]
pub(crate) struct Reports {
    sender: SyncSender<Report>,
    poller: Arc<Poller>,
}

/// The owner of the machine is gone.
pub(crate) struct Gone;

impl Reports {
    /// Those that wake up whoever waits with `poller`, and where they arrive.
    pub(crate) fn new(poller: Arc<Poller>) -> (Self, Receiver<Report>) {
        let (sender, inbox) = sync_channel(REPORTS);
        (Self { sender, poller }, inbox)
    }

    /// Sends `report` when there is room for it.
    pub(crate) fn send(&self, report: Report) -> Result<(), Gone> {
        self.sender.send(report).map_err(|_| Gone)?;
        self.poller.notify().map_err(|_| Gone)
    }
}

/// Which of a connection's inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The child's standard output, or our own standard input.
    Input,
    /// The child's standard error.
    Stderr,
}

/// Where a writer writes.
pub(crate) trait Sink: Write {
    /// Tells the other side that no more will come.
    fn finish(self);
}

impl Sink for ChildStdin {
    /// A pipe ends when it is closed.
    fn finish(self) {}
}

impl Sink for File {
    /// The same.
    fn finish(self) {}
}

/// Starts a thread that is small and has a name.
pub(crate) fn start(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(work).map(drop)
}

/// Starts a reader. It reads once for every buffer that it is sent, and ends
/// when there will be no more.
pub(crate) fn reader(
    conn: ConnId,
    part: Part,
    mut source: impl Read + Send + 'static,
    reports: Reports,
) -> io::Result<SyncSender<Vec<u8>>> {
    let (grant, grants) = sync_channel::<Vec<u8>>(1);
    start("read", STACK, move || {
        for mut buffer in grants {
            let report = match insist(|| source.read(&mut buffer)) {
                Ok(0) => Report::ReadEnded { conn, part, error: None },
                Ok(len) => Report::Read { conn, part, buffer, len },
                Err(error) => Report::ReadEnded { conn, part, error: Some(reason(error.kind())) },
            };
            let ended = matches!(report, Report::ReadEnded { .. });
            if reports.send(report).is_err() || ended {
                return;
            }
        }
    })?;
    Ok(grant)
}

/// Starts a writer. It writes once from every buffer that it is sent, and
/// finishes when there will be no more.
pub(crate) fn writer(
    conn: ConnId,
    mut sink: impl Sink + Send + 'static,
    reports: Reports,
) -> io::Result<SyncSender<Vec<u8>>> {
    let (feed, fed): (_, Receiver<Vec<u8>>) = sync_channel(1);
    start("write", STACK, move || {
        for buffer in fed {
            let report = match insist(|| sink.write(&buffer)) {
                Ok(len @ 1..) => Report::Wrote { conn, buffer, len },
                Ok(0) => Report::WriteFailed { conn, why: CloseReason::Reset },
                Err(error) => Report::WriteFailed { conn, why: reason(error.kind()) },
            };
            let failed = matches!(report, Report::WriteFailed { .. });
            if reports.send(report).is_err() || failed {
                return;
            }
        }
        sink.finish();
    })?;
    Ok(feed)
}

/// Does it again while a signal interrupts it.
pub(crate) fn insist(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
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
