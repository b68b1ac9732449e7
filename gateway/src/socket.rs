//! Unix sockets in the file system: only for our user, never in the place of
//! one that is in use, and gone when we are.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// The file of a socket that we listen on. Removed when this is dropped, unless
/// another has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Listens on `path`, which nobody but our user can connect to.
///
/// The file mode is limited through the process's mask, so that there is no
/// moment with another one; nothing else may create files meanwhile.
pub(crate) fn bind(path: &Path) -> Result<(UnixListener, SocketFile), String> {
    make_way(path)?;
    let mask = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(mask);
    let listener = bound.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "its directory does not exist: create it first".to_string(),
        io::ErrorKind::PermissionDenied => "its directory may not be written to".to_string(),
        _ => error.to_string(),
    })?;
    let identity = identity(path).map_err(|error| error.to_string())?;
    Ok((listener, SocketFile { path: path.to_path_buf(), identity }))
}

/// Removes a socket that a program left behind.
fn make_way(path: &Path) -> Result<(), String> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
        Ok(found) if !found.file_type().is_socket() => {
            return Err("there is a file that is not a socket: choose another path".into());
        }
        Ok(_) => {}
    }
    match connect(path) {
        Err(Errno::CONNREFUSED) => {
            fs::remove_file(path).map_err(|error| format!("the old socket stays: {error}"))
        }
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::ACCESS | Errno::PERM) => {
            Err("there is a socket of another user: choose another path".into())
        }
        // Anything else means that somebody is there, be they busy or not.
        _ => Err("another program listens there: stop it, or choose another path".into()),
    }
}

/// Tries to connect, without waiting for somebody whose queue is full.
fn connect(path: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::net::connect(&socket, &address)
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
