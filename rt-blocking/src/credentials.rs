//! Who is at the other end of a Unix socket.

use std::io;
use std::os::fd::AsFd;

/// A connection of our own user, or of root: nobody else is let in, whatever the mode
/// of the socket's file is.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn ours<S: AsFd>(stream: S) -> io::Result<S> {
    let user = rustix::net::sockopt::socket_peercred(&stream)?.uid;
    if user == rustix::process::geteuid() || user.is_root() {
        return Ok(stream);
    }
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Elsewhere the mode of the socket's file has to keep others out.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn ours<S: AsFd>(stream: S) -> io::Result<S> {
    Ok(stream)
}
