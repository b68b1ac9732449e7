//! Children, and a thread that waits for each of them.

use std::io;
use std::process::{self, Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcpx_core::driver::{Command, ConnId, ExitStatus, Signal};

use crate::system;
use crate::workers::{Part, Report, Reports, STACK, STDERR, reader, start};

/// How long we wait for a dead child's pipes to end. A process that it has left
/// behind may hold them open.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// A child that two threads know.
pub(crate) type Shared = Arc<Mutex<Child>>;

/// The child, whatever became of the other thread.
pub(crate) fn lock(child: &Shared) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child, and on Unix its process group.
pub(crate) struct Process {
    child: Shared,
    /// Buffers for the reader of its standard error; `None` at its end.
    pub(crate) stderr: Option<SyncSender<Vec<u8>>>,
    /// Its end was seen; what it wrote is awaited until then.
    pub(crate) grace: Option<Instant>,
    reaped: bool,
}

impl Process {
    /// Starts `command` and the threads for its errors and its end.
    pub(crate) fn spawn(
        conn: ConnId,
        command: &Command,
        reports: &Reports,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut builder = process::Command::new(&command.program);
        builder
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = &command.cwd {
            builder.current_dir(cwd);
        }
        system::set_group(&mut builder);
        let mut child = builder.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let mut process =
            Self { child: Arc::clone(&child), stderr: None, grace: None, reaped: false };
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let grant = reader(conn, Part::Stderr, errors, reports.clone())?;
        // The channel is new and has room.
        let _ = grant.try_send(vec![0; STDERR]);
        process.stderr = Some(grant);
        let reports = reports.clone();
        start("wait", STACK, move || {
            system::await_end(&child);
            let _ = reports.send(Report::Ended(conn));
        })?;
        Ok((process, input, output))
    }

    /// Signals it, or for [`Signal::Kill`] its whole group. A process that has
    /// just ended needs none, so a failure means nothing.
    pub(crate) fn signal(&self, signal: Signal) {
        system::signal(&mut lock(&self.child), signal);
    }

    /// How it ended. Waits for that, so ask when it has.
    pub(crate) fn reap(&mut self) -> ExitStatus {
        self.reaped = true;
        match lock(&self.child).wait() {
            Ok(status) => system::exit_status(status),
            Err(_) => ExitStatus::Code(system::UNKNOWN),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(Signal::Kill);
            self.reap();
        }
    }
}
