//! What the owner of the machine knows of a connection.

use std::io::{self, Read};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use mcpx_core::driver::{CloseReason, ConnId};

use crate::process::Process;
use crate::socket::Socket;
use crate::workers::{BUFFER, Part, Reports, SMALL, Sink, reader, writer};

/// A connection or a process, in any state.
#[derive(Default)]
pub(crate) struct Conn {
    pub(crate) input: Option<Input>,
    pub(crate) output: Option<Output>,
    /// To wake the workers up when the connection is dropped.
    socket: Option<Socket>,
    /// Present until its end was reported.
    pub(crate) process: Option<Process>,
    /// It still has to be connected.
    pub(crate) pending: bool,
    /// The machine wants no input.
    pub(crate) paused: bool,
    /// The output shall end when all is written.
    pub(crate) finishing: bool,
    /// Writing has failed; until then the reader may bring last words.
    pub(crate) broken: Option<(CloseReason, Instant)>,
}

/// A reader.
pub(crate) struct Input {
    grant: SyncSender<Vec<u8>>,
    /// Its buffer when it rests, with as many bytes that the machine has not
    /// seen because it wants none.
    pub(crate) kept: Option<(Vec<u8>, usize)>,
}

impl Input {
    /// The reader's buffer is back, and what it has read is handled. It is as long
    /// as the last read makes likely for the next.
    pub(crate) fn rest(&mut self, mut buffer: Vec<u8>, len: usize) {
        if len == buffer.len() {
            buffer.resize(BUFFER, 0);
        } else if len <= SMALL && buffer.len() > SMALL {
            buffer.truncate(SMALL);
            buffer.shrink_to_fit();
        }
        self.kept = Some((buffer, 0));
    }
}

/// A writer.
pub(crate) struct Output {
    feed: SyncSender<Vec<u8>>,
    /// Its buffer, when it waits for work.
    idle: Option<Vec<u8>>,
}

impl Output {
    /// Whether nothing is being written.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle.is_some()
    }

    /// The writer is done with `buffer`.
    pub(crate) fn rest(&mut self, mut buffer: Vec<u8>) {
        if buffer.len() <= SMALL {
            buffer.clear();
            buffer.shrink_to(SMALL);
        }
        self.idle = Some(buffer);
    }

    /// Lets the writer write the beginning of `bytes`, if it is idle.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if let Some(mut buffer) = self.idle.take() {
            buffer.clear();
            buffer.extend_from_slice(&bytes[..bytes.len().min(BUFFER)]);
            // As for a reader.
            let _ = self.feed.try_send(buffer);
        }
    }
}

impl Conn {
    /// One that has to be connected.
    pub(crate) fn pending() -> Self {
        let mut conn = Self::default();
        conn.pending = true;
        conn
    }

    /// Starts the reader and the writer of a socket.
    pub(crate) fn open(&mut self, id: ConnId, socket: Socket, reports: &Reports) -> io::Result<()> {
        self.socket = Some(socket.clone());
        self.start(id, socket.clone(), socket, reports)
    }

    /// Lets a resting reader read, unless the machine wants no input.
    pub(crate) fn let_read(&mut self) {
        let Some(input) = &mut self.input else { return };
        if let Some((buffer, _)) = input.kept.take_if(|_| !self.paused) {
            // There is room, because the buffer is the only one. A reader that
            // is gone has said why.
            let _ = input.grant.try_send(buffer);
        }
    }

    /// Starts a reader, which rests at first, and a writer.
    pub(crate) fn start(
        &mut self,
        id: ConnId,
        source: impl Read + Send + 'static,
        sink: impl Sink + Send + 'static,
        reports: &Reports,
    ) -> io::Result<()> {
        self.pending = false;
        let feed = writer(id, sink, reports.clone())?;
        self.output = Some(Output { feed, idle: Some(Vec::new()) });
        let grant = reader(id, Part::Input, source, reports.clone())?;
        self.input = Some(Input { grant, kept: Some((vec![0; SMALL], 0)) });
        Ok(())
    }

    /// Drops the pipes of a process, and all of anything else.
    pub(crate) fn close(&mut self) {
        (self.input, self.output, self.broken) = (None, None, None);
        self.pending = false;
        if let Some(socket) = self.socket.take() {
            socket.close();
        }
    }

    /// Whether the machine keeps us from reading what may be there.
    pub(crate) fn is_held(&self) -> bool {
        self.paused && self.input.is_some()
    }

    /// Whether neither direction is left, and no process.
    pub(crate) fn is_over(&self) -> bool {
        !self.pending && self.input.is_none() && self.output.is_none() && self.process.is_none()
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.close();
    }
}
