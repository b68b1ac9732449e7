//! No child outlives us, however we end.
//!
//! Whoever ends well ends its children first. Who is killed cannot: then their
//! standard input ends, at which a server should leave, and on Linux the system
//! asks them to with SIGTERM. Programs that only start others, such as `npx`, pass
//! that on.
#![allow(unsafe_code)]

use std::process::Command;

/// Has the child asked to end when the thread that starts it does.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn prevent(command: &mut Command) {
    use std::io;
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // We may have ended before that.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between `fork` and `exec` only what is async-signal-safe may be done.
    // `ask` makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(ask);
    }
}

/// Elsewhere the end of standard input has to do.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn prevent(_: &mut Command) {}
