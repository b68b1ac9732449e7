//! One TLS connection: a tunnel if there is a proxy, the handshake, the bytes.

use std::io::{Read, Write};

use mcpx_core::buffer::ByteQueue;
use mcpx_core::driver::{Action, CloseReason, ConnId, Target};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::settings::Settings;
use super::tunnel::Tunnel;

/// Encrypted bytes that may wait to be sent; the rest waits in the clear, where
/// the machine sees it.
const WINDOW: usize = 64 * 1024;

/// As much as fits into one record.
const RECORD: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) host: String,
    pub(super) port: u16,
    tunnel: Option<Tunnel>,
    tls: ClientConnection,
    out: ByteQueue,
    /// The runtime knows that there is something to send.
    flushing: bool,
    /// The machine knows that the connection is there.
    ready: bool,
    /// The machine will send no more.
    finishing: bool,
    /// That has been said to the other side.
    finished: bool,
    /// The other side has said so.
    ended: bool,
}

/// What came of some bytes.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// The handshake is over.
    pub(super) ready: bool,
    /// In the clear.
    pub(super) bytes: Vec<u8>,
    /// Nothing follows.
    pub(super) end: bool,
}

/// The connection is of no use any more.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) why: CloseReason,
    /// For the log, if that says more.
    pub(super) text: Option<String>,
}

impl Broken {
    fn new(why: CloseReason, text: String) -> Self {
        Self { why, text: Some(text) }
    }
}

impl From<rustls::Error> for Broken {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::new(
                CloseReason::Untrusted,
                format!(
                    "its certificate is not trusted ({error}): if you trust it, name its \
                     authority as \"tls\": {{\"ca\": FILE}} in the configuration"
                ),
            ),
            error => Self::new(CloseReason::Failed, format!("TLS failed: {error}")),
        }
    }
}

impl Session {
    /// A session with a server, and where to connect for it.
    pub(super) fn new(
        settings: &Settings,
        host: &str,
        port: u16,
    ) -> Result<(Self, Target), String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| "a certificate cannot be for such a host".to_owned())?;
        let config = settings.config(host, port)?;
        let tls = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let (tunnel, to) = match settings.proxy(host, port) {
            Some(proxy) => (Some(Tunnel::new(proxy, host, port)), proxy.target()),
            None => (None, Target::Tcp { host: host.to_owned(), port }),
        };
        let session = Self {
            host: host.to_owned(),
            port,
            tunnel,
            tls,
            out: ByteQueue::default(),
            flushing: false,
            ready: false,
            finishing: false,
            finished: false,
            ended: false,
        };
        Ok((session, to))
    }

    /// The connection below is there.
    pub(super) fn start(&mut self) {
        match &self.tunnel {
            Some(tunnel) => self.out.tail().extend_from_slice(tunnel.request()),
            None => self.write_records(),
        }
    }

    /// Takes in some of `bytes`.
    pub(super) fn receive(&mut self, bytes: &mut &[u8]) -> Result<Received, Broken> {
        let mut received = Received::default();
        if let Some(tunnel) = &mut self.tunnel {
            let through = tunnel.receive(bytes);
            if through.map_err(|why| Broken::new(CloseReason::Failed, why))? {
                self.tunnel = None;
                self.write_records();
            }
            return Ok(received);
        }
        if self.ended {
            *bytes = &[];
            return Ok(received);
        }
        let taken = self.tls.read_tls(bytes);
        taken.map_err(|error| Broken::new(CloseReason::Failed, format!("TLS failed: {error}")))?;
        let state = self.tls.process_new_packets()?;
        self.write_records();
        if !self.ready && !self.tls.is_handshaking() {
            self.ready = true;
            received.ready = true;
        }
        received.bytes.resize(state.plaintext_bytes_to_read(), 0);
        let read = self.tls.reader().read_exact(&mut received.bytes);
        debug_assert!(read.is_ok(), "rustls has what it says");
        self.ended = state.peer_has_closed();
        received.end = self.ended;
        Ok(received)
    }

    /// What it means that no more bytes come, if more should have.
    pub(super) fn cut_off(&self) -> Option<Broken> {
        match (self.ended, self.ready) {
            (true, _) => None,
            (false, true) => Some(Broken { why: CloseReason::Reset, text: None }),
            (false, false) => {
                let during = if self.tunnel.is_some() { "the proxy" } else { "it" };
                let text = format!("{during} hung up during the handshake");
                Some(Broken::new(CloseReason::Failed, text))
            }
        }
    }

    /// Whether it has not come further than to the proxy.
    pub(super) fn is_in_tunnel(&self) -> bool {
        self.tunnel.is_some()
    }

    /// Whether more may be encrypted.
    pub(super) fn has_room(&self) -> bool {
        self.ready && !self.finished && self.out.len() < WINDOW
    }

    /// Encrypts the beginning of `bytes`, and says how much.
    pub(super) fn encrypt(&mut self, bytes: &[u8]) -> usize {
        let piece = bytes.get(..RECORD).unwrap_or(bytes);
        if piece.is_empty() {
            return 0;
        }
        let n = self.tls.writer().write(piece).unwrap_or(0);
        self.write_records();
        n
    }

    /// The machine will send no more.
    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }

    pub(super) fn outgoing(&self) -> &[u8] {
        self.out.as_slice()
    }

    pub(super) fn sent(&mut self, n: usize) {
        self.out.take(n);
        self.flushing &= !self.out.is_empty();
    }

    /// What the runtime is to do; `all` if the machine has nothing left to send.
    pub(super) fn actions(&mut self, conn: ConnId, all: bool) -> impl Iterator<Item = Action> {
        let finish = all && self.finishing && !self.finished;
        if finish {
            self.finished = true;
            self.tls.send_close_notify();
            self.write_records();
        }
        let flush = !self.flushing && !self.out.is_empty();
        self.flushing |= flush;
        let flush = flush.then_some(Action::Flush(conn));
        flush.into_iter().chain(finish.then_some(Action::Finish(conn)))
    }

    fn write_records(&mut self) {
        while self.tls.wants_write() {
            // Memory takes everything.
            if self.tls.write_tls(self.out.tail()).is_err() {
                break;
            }
        }
    }
}
