//! Our own standard input and output, as a connection.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use mio::{Interest, Registry, Token};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

use crate::stream::{Handle, Sink, SinkKind, Source};

/// Descriptors below are the standard ones.
const FIRST_FREE: i32 = 3;

/// Takes standard input and output over and leaves `/dev/null` in their place.
pub(crate) fn take(registry: &Registry, input: Token, output: Token) -> io::Result<(Source, Sink)> {
    // Both flags are looked up before either is set: a terminal has one set.
    let (in_flags, out_flags) = (fcntl_getfl(stdin())?, fcntl_getfl(stdout())?);
    let source = nonblocking(stdin(), in_flags)?;
    let mut sink = nonblocking(stdout(), out_flags)?;
    let nothing: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;

    let (in_stat, out_stat) = (fstat(&source)?, fstat(&sink)?);
    if (in_stat.st_dev, in_stat.st_ino) == (out_stat.st_dev, out_stat.st_ino) {
        // Reading shall not begin to block when only writing has ended.
        sink.restore = None;
    }
    let kind = FileType::from_raw_mode(in_stat.st_mode);
    let watched = source.watch(registry, input, Interest::READABLE)?;
    let source = match kind {
        FileType::Fifo | FileType::Socket => Source::new(Rc::new(source)),
        _ => Source::peculiar(Rc::new(source), !watched),
    };
    let watched = sink.watch(registry, output, Interest::WRITABLE)?;
    let kind = if watched { SinkKind::Pipe } else { SinkKind::File };
    Ok((source, Sink::new(Rc::new(sink), kind)))
}

fn nonblocking(fd: BorrowedFd<'_>, flags: OFlags) -> io::Result<Handle> {
    let handle = Handle { fd: fcntl_dupfd_cloexec(fd, FIRST_FREE)?, restore: Some(flags) };
    fcntl_setfl(&handle, flags | OFlags::NONBLOCK)?;
    Ok(handle)
}
