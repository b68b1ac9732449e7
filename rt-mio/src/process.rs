//! Children: how they start, are signalled, and end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Child, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use mcpx_core::driver::{Command, ExitStatus, Signal};
use mio::{Interest, Registry, Token};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::orphan;
use crate::stream::{Handle, Sink, SinkKind, Source};

/// How long we wait for a dead child's pipes to end. A process that it has left
/// behind may hold them open.
const GRACE: Duration = Duration::from_millis(500);

/// A child, and its process group.
///
/// It is not reaped before its end is reported, so that until then its number
/// can mean nothing but it and its group.
pub(crate) struct Process {
    child: Child,
    pub(crate) stderr: Option<Source>,
    /// Its end was seen; what it wrote is awaited until then.
    pub(crate) grace: Option<Instant>,
    reaped: bool,
}

impl Process {
    /// Starts `command`. The tokens are for its output, input and errors.
    pub(crate) fn spawn(
        command: &Command,
        registry: &Registry,
        [stdout, stdin, stderr]: [Token; 3],
    ) -> io::Result<(Self, Source, Sink)> {
        let mut builder = process::Command::new(&command.program);
        builder
            .args(&command.args)
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(cwd) = &command.cwd {
            builder.current_dir(cwd);
        }
        orphan::prevent(&mut builder);
        let mut child = builder.spawn()?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let mut process = Self { child, stderr: None, grace: None, reaped: false };
        let (Some(output), Some(input), Some(errors)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let output = pipe(output, registry, stdout, Interest::READABLE)?;
        let input = pipe(input, registry, stdin, Interest::WRITABLE)?;
        let errors = pipe(errors, registry, stderr, Interest::READABLE)?;
        process.stderr = Some(Source::new(errors));
        Ok((process, Source::new(output), Sink::new(input, SinkKind::Pipe)))
    }

    /// Whether its standard error may have something.
    pub(crate) fn has_stderr(&self) -> bool {
        self.stderr.as_ref().is_some_and(|source| source.ready)
    }

    /// Signals it, or for [`Signal::Kill`] its whole group. A process that has
    /// just ended needs none, so a failure means nothing.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        let _ = match signal {
            Signal::Terminate => kill_process(pid, rustix::process::Signal::TERM),
            Signal::Kill => kill_process_group(pid, rustix::process::Signal::KILL),
        };
    }

    /// Whether it has ended since the last call.
    pub(crate) fn ended(&mut self, now: Instant) -> bool {
        if self.grace.is_some() {
            return false;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = match waitid(WaitId::Pid(Pid::from_child(&self.child)), options) {
            Ok(status) => status.is_some(),
            Err(error) => error == Errno::CHILD,
        };
        if ended {
            self.grace = Some(now + GRACE);
        }
        ended
    }

    /// How it ended. Waits for that, so ask when it has.
    pub(crate) fn reap(&mut self) -> ExitStatus {
        self.reaped = true;
        match self.child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => ExitStatus::Code(code),
                (None, Some(signal)) => ExitStatus::Signal(signal),
                (None, None) => ExitStatus::Code(UNKNOWN),
            },
            Err(_) => ExitStatus::Code(UNKNOWN),
        }
    }
}

/// Reported if somebody else has taken the exit status.
const UNKNOWN: i32 = -1;

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(Signal::Kill);
            self.reap();
        }
    }
}

fn pipe(
    end: impl Into<OwnedFd>,
    registry: &Registry,
    token: Token,
    interest: Interest,
) -> io::Result<Rc<Handle>> {
    let handle = Handle::from(end.into());
    ioctl_fionbio(&handle, true)?;
    handle.watch(registry, token, interest)?;
    Ok(Rc::new(handle))
}
