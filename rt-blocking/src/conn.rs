//! What the owner of the machine knows of a connection.

use std::io::{self, Read};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use mcpx_core::driver::{CloseReason, ConnId};

use crate::process::Process;
use crate::socket::Watched;
use crate::workers::{BUFFER, Part, Reports, SMALL, Sink, reader, writer};

/// A connection or a process, in any state.
#[derive(Default)]
pub(crate) struct Conn {
    pub(crate) input: Option<Input>,
    pub(crate) output: Option<Output>,
    /// What both directions are, unless they are pipes.
    pub(crate) socket: Option<Watched>,
    /// Present until its end was reported.
    pub(crate) process: Option<Process>,
    /// It still has to be connected.
    pub(crate) pending: bool,
    /// The machine wants no input.
    pub(crate) paused: bool,
    /// The output shall end when all is written.
    pub(crate) finishing: bool,
    /// Writing has failed; until then reading may bring last words.
    pub(crate) broken: Option<(CloseReason, Instant)>,
}

/// Where bytes come from.
pub(crate) enum Input {
    Socket,
    Pipe(Reader),
}

/// Where bytes go.
pub(crate) enum Output {
    /// `full` if it takes nothing for now.
    Socket {
        full: bool,
    },
    Pipe(Writer),
}

/// A thread that reads.
pub(crate) struct Reader {
    grant: SyncSender<Vec<u8>>,
    /// Its buffer when it rests, with as many bytes that the machine has not
    /// seen because it wants none.
    pub(crate) kept: Option<(Vec<u8>, usize)>,
}

impl Reader {
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

/// A thread that writes.
pub(crate) struct Writer {
    feed: SyncSender<Vec<u8>>,
    /// Its buffer, when it waits for work.
    idle: Option<Vec<u8>>,
}

impl Writer {
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

impl Output {
    /// Whether all that it was given is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::Socket { full } => !full,
            Self::Pipe(writer) => writer.is_idle(),
        }
    }
}

impl Conn {
    /// One that has to be connected.
    pub(crate) fn pending() -> Self {
        Self { pending: true, ..Self::default() }
    }

    /// Makes it a connected socket.
    pub(crate) fn open(&mut self, socket: Watched) {
        self.pending = false;
        self.socket = Some(socket);
        self.input = Some(Input::Socket);
        self.output = Some(Output::Socket { full: false });
    }

    /// Starts a reader, which rests at first, and a writer.
    pub(crate) fn start(
        &mut self,
        id: ConnId,
        source: impl Read + Send + 'static,
        sink: impl Sink + Send + 'static,
        reports: &Reports,
    ) -> io::Result<()> {
        let feed = writer(id, sink, reports.clone())?;
        self.output = Some(Output::Pipe(Writer { feed, idle: Some(Vec::new()) }));
        let grant = reader(id, Part::Input, source, reports.clone())?;
        self.input = Some(Input::Pipe(Reader { grant, kept: Some((vec![0; SMALL], 0)) }));
        Ok(())
    }

    /// Asks for what it waits for: input, unless the machine wants none, and room.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        let wanted = !self.paused;
        if let Some(Input::Pipe(reader)) = &mut self.input
            && let Some((buffer, _)) = reader.kept.take_if(|_| wanted)
        {
            // There is room, because the buffer is the only one. A reader that
            // is gone has said why.
            let _ = reader.grant.try_send(buffer);
        }
        let readable = wanted && self.input.is_some();
        let writable = matches!(self.output, Some(Output::Socket { full: true }));
        match &self.socket {
            Some(socket) if readable || writable => socket.ask(readable, writable),
            _ => Ok(()),
        }
    }

    /// Drops the pipes of a process. Anything else is over by that.
    pub(crate) fn close(&mut self) {
        (self.input, self.output, self.broken) = (None, None, None);
        self.pending = false;
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
