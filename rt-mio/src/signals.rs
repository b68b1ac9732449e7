//! What the user and the children tell us by signals, as edges for the loop.

use std::io::{self, Read};
use std::os::unix::net::UnixStream as Pair;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

/// The signals we listen to. Each kind writes a byte into a socket of its own.
pub(crate) struct Signals {
    stop: UnixStream,
    child: UnixStream,
    ids: Vec<SigId>,
}

impl Signals {
    /// What asks us to stop is heard only if `stops` says so.
    pub(crate) fn new(
        registry: &Registry,
        stop: Token,
        child: Token,
        stops: bool,
    ) -> io::Result<Self> {
        let mut ids = Vec::new();
        let heard: &[i32] = if stops { &[SIGINT, SIGTERM] } else { &[] };
        let stop = listen(registry, stop, heard, &mut ids)?;
        let child = listen(registry, child, &[SIGCHLD], &mut ids)?;
        Ok(Self { stop, child, ids })
    }

    /// How often we were asked to stop since the last call.
    pub(crate) fn stops(&mut self) -> usize {
        drain(&mut self.stop)
    }

    /// Whether a child may have ended since the last call.
    pub(crate) fn child_ended(&mut self) -> bool {
        drain(&mut self.child) > 0
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            unregister(id);
        }
    }
}

fn listen(
    registry: &Registry,
    token: Token,
    signals: &[i32],
    ids: &mut Vec<SigId>,
) -> io::Result<UnixStream> {
    let (reader, writer) = Pair::pair()?;
    reader.set_nonblocking(true)?;
    for signal in signals {
        ids.push(pipe::register(*signal, writer.try_clone()?)?);
    }
    let mut reader = UnixStream::from_std(reader);
    registry.register(&mut reader, token, Interest::READABLE)?;
    Ok(reader)
}

/// Takes all the bytes and counts them.
fn drain(reader: &mut UnixStream) -> usize {
    let mut buffer = [0; 64];
    let mut count = 0;
    while let Ok(n @ 1..) = reader.read(&mut buffer) {
        count += n;
    }
    count
}
