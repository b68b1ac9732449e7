//! Where there are no process groups and no signals.

use std::fs::File;
use std::io;
#[cfg(windows)]
use std::os::windows::io::AsHandle;
use std::process::{self, Child, Command};
use std::thread;
use std::time::Duration;

use mcpx_core::driver::{ExitStatus, Signal};

use super::UNKNOWN;
use crate::process::{Shared, lock};
use crate::workers::Reports;

/// How often we look whether a child has ended: waiting for it would keep
/// others from killing it.
const LOOK: Duration = Duration::from_millis(20);

/// There are no groups.
pub(crate) fn set_group(_: &mut Command) {}

/// Waits until the child has ended.
pub(crate) fn await_end(child: &Shared) {
    while let Ok(None) = lock(child).try_wait() {
        thread::sleep(LOOK);
    }
}

/// Every signal kills.
pub(crate) fn signal(child: &mut Child, _: Signal) {
    // A process that has just ended needs no signal.
    let _ = child.kill();
}

/// How the child ended.
pub(crate) fn exit_status(status: process::ExitStatus) -> ExitStatus {
    ExitStatus::Code(status.code().unwrap_or(UNKNOWN))
}

/// Copies of standard input and output.
#[cfg(windows)]
pub(crate) fn take_stdio() -> io::Result<(File, File)> {
    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// There is no way to have standard input and output as files.
#[cfg(not(windows))]
pub(crate) fn take_stdio() -> io::Result<(File, File)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no signals to report.
pub(crate) struct Stops;

impl Stops {
    pub(crate) fn new(_: Reports) -> io::Result<Self> {
        Ok(Self)
    }
}
