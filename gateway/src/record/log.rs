//! Writing a recording, while the machine works.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use mcpx_core::driver::{Action, ConnId, Input, Machine};
use mcpx_core::gateway::Gateway;
use mcpx_core::time::Instant;

use super::entry::{Entry, What};
use super::settings;
use super::veil::Veil;
use crate::args::Common;
use crate::error::Error;
use crate::report;
use crate::setup::Setup;
use crate::upstream::Upstreams;

/// What the command line says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) path: PathBuf,
    /// Bytes that the file may have.
    pub(crate) limit: u64,
    /// Whether secrets are in it.
    pub(crate) secrets: bool,
}

impl Options {
    /// Bytes that a recording may have if nothing is said: 256 MiB.
    pub(crate) const LIMIT: u64 = 256 << 20;
}

/// A recording that is being written.
pub(crate) struct Log {
    out: BufWriter<File>,
    path: PathBuf,
    /// Bytes that it may still have.
    left: u64,
    veil: Option<Veil>,
}

impl Log {
    /// Begins a recording. Nobody else may read it.
    pub(crate) fn new(
        options: &Options,
        seed: [u8; 32],
        setup: &Setup,
        upstreams: Option<&Upstreams>,
        common: &Common,
    ) -> Result<Self, Error> {
        let shown = options.path.display();
        let failed = |error: io::Error| Error::failed(format!("--record {shown}: {error}"));
        let file = create(&options.path).map_err(failed)?;
        let veil = (!options.secrets).then(Veil::new);
        let first = settings::write(seed, setup, upstreams, common, veil.as_ref());
        let (path, left) = (options.path.clone(), options.limit);
        let mut log = Self { out: BufWriter::new(file), path, left, veil };
        log.line(&first).and_then(|()| log.out.flush()).map_err(failed)?;
        Ok(log)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.left = self.left.saturating_sub(line.len() as u64 + 1);
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Writes something down. Says whether more can be.
    fn note(&mut self, at: Instant, mut what: What) -> bool {
        if let Some(veil) = &mut self.veil {
            match &mut what {
                What::Received(conn, bytes) => veil.hide(*conn, bytes),
                What::Closed(conn, _) | What::Exited(conn, _) => veil.forget(*conn),
                _ => {}
            }
        }
        let line = Entry { at, what }.write();
        let why = if line.len() as u64 >= self.left {
            let cut = Entry { at, what: What::Cut("the file is full".into()) };
            // Nothing follows, whether this fits or not.
            let _ = self.line(&cut.write()).and_then(|()| self.out.flush());
            "it is as large as it may be (--record-limit)".to_owned()
        } else {
            match self.line(&line) {
                Ok(()) => return true,
                Err(error) => error.to_string(),
            }
        };
        self.end(&why);
        false
    }

    fn end(&self, why: &str) {
        report::say(&format!("{}: nothing more is recorded: {why}", self.path.display()));
    }
}

#[cfg(unix)]
fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // It may have been there before.
    if file.metadata()?.is_file() {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// A machine, and the recording of what happens to it, if there is one.
pub(crate) struct Recorded<M> {
    pub(crate) machine: M,
    log: Option<Log>,
}

impl<M: Machine> Recorded<M> {
    pub(crate) fn new(machine: M, log: Option<Log>) -> Self {
        Self { machine, log }
    }

    fn note(&mut self, now: Instant, what: impl FnOnce() -> What) {
        self.log.take_if(|log| !log.note(now, what()));
    }
}

impl Recorded<Gateway> {
    /// Puts other servers in the place of those that there are.
    pub(crate) fn configure(&mut self, now: Instant, found: Upstreams) {
        let hidden = self.log.as_ref().is_none_or(|log| log.veil.is_some());
        if let Some(document) = &found.document {
            self.note(now, || What::Configured(settings::shown(document, hidden)));
        }
        self.machine.configure(now, found.servers(), found.catalogue);
    }
}

impl<M: Machine> Machine for Recorded<M> {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.note(now, || What::of(&input));
        self.machine.handle(now, input);
    }

    fn poll(&mut self) -> Option<Action> {
        let action = self.machine.poll();
        if let Some(log) = &mut self.log {
            match &action {
                Some(Action::Close(conn)) => {
                    if let Some(veil) = &mut log.veil {
                        veil.forget(*conn);
                    }
                }
                // It is to be there if we are not any more.
                None => {
                    if let Err(error) = log.out.flush() {
                        log.end(&error.to_string());
                        self.log = None;
                    }
                }
                _ => {}
            }
        }
        action
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.machine.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.note(now, || What::Sent(conn, n));
        self.machine.sent(now, conn, n);
    }
}
