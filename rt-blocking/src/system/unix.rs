//! Unix: process groups, signals, `waitid`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Child, Command};

use mcpx_core::driver::{ExitStatus, Signal};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use super::UNKNOWN;
use crate::orphan;
use crate::process::{Shared, lock};
use crate::workers::{Report, Reports, STACK, start};

/// Gives the child a process group of its own, which does not outlive us.
pub(crate) fn set_group(command: &mut Command) {
    command.process_group(0);
    orphan::prevent(command);
}

/// Waits until the child has ended. It is not reaped by that, so until its end
/// is reported its number can mean nothing but it and its group.
pub(crate) fn await_end(child: &Shared) {
    let pid = Pid::from_child(&lock(child));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    // It fails if somebody has reaped it, which is an end as well.
    let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), options));
}

/// Signals the child, or its group.
pub(crate) fn signal(child: &mut Child, signal: Signal) {
    let pid = Pid::from_child(child);
    let _ = match signal {
        Signal::Terminate => kill_process(pid, rustix::process::Signal::TERM),
        Signal::Kill => kill_process_group(pid, rustix::process::Signal::KILL),
    };
}

/// How the child ended.
pub(crate) fn exit_status(status: process::ExitStatus) -> ExitStatus {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Code(UNKNOWN),
    }
}

/// Takes standard input and output over and leaves `/dev/null` in their place.
pub(crate) fn take_stdio() -> io::Result<(File, File)> {
    let input = blocking(io::stdin().as_fd())?;
    let output = blocking(io::stdout().as_fd())?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    Ok((input, output))
}

/// A copy of the descriptor. Whoever shared it may have made it non-blocking.
fn blocking(fd: BorrowedFd<'_>) -> io::Result<File> {
    let fd: OwnedFd = fd.try_clone_to_owned()?;
    let flags = fcntl_getfl(&fd)?;
    if flags.contains(OFlags::NONBLOCK) {
        fcntl_setfl(&fd, flags - OFlags::NONBLOCK)?;
    }
    Ok(fd.into())
}

/// Reports SIGINT and SIGTERM as long as it lives.
pub(crate) struct Stops {
    ids: Vec<SigId>,
}

impl Stops {
    pub(crate) fn new(reports: Reports) -> io::Result<Self> {
        let (mut reader, writer) = UnixStream::pair()?;
        let mut stops = Self { ids: Vec::new() };
        for signal in [SIGINT, SIGTERM] {
            stops.ids.push(pipe::register(signal, writer.try_clone()?)?);
        }
        // Each signal is a byte. They end when the handlers are unregistered.
        start("signals", STACK, move || {
            let mut byte = [0; 1];
            while reader.read_exact(&mut byte).is_ok() && reports.send(Report::Stop).is_ok() {}
        })?;
        Ok(stops)
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            unregister(id);
        }
    }
}
