//! The addresses of `mcpx daemon`.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(unix)]
use std::path::PathBuf;

use crate::access;
use crate::error::Error;
#[cfg(unix)]
use crate::socket::{self, SocketFile};

/// Where we listen if nothing is said.
pub(crate) const DEFAULT: &str = "127.0.0.1:8808";
/// The path of the HTTP endpoint.
pub(crate) const PATH: &str = "/mcp";

/// What a client speaks at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speech {
    Http,
    Ndjson,
}

/// One `--listen`.
#[derive(PartialEq, Eq, Debug)]
enum Address {
    Tcp { speech: Speech, host: String, port: u16 },
    Unix { speech: Speech, path: String },
}

/// What hosts speak at a socket, and at which address if they may be misled to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Door {
    Http(String),
    Ndjson,
    Stdio,
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// All that we listen on.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// The sockets, in the order of `doors`.
    pub(crate) sockets: Vec<Socket>,
    pub(crate) doors: Vec<Door>,
    /// One line about each.
    pub(crate) lines: Vec<String>,
    /// Removed at the end.
    #[cfg(unix)]
    pub(crate) files: Vec<SocketFile>,
}

/// Listens on all `addresses`. Addresses that other machines can reach need tokens,
/// or the user's word.
pub(crate) fn bind(addresses: &[String], access: &access::Options) -> Result<Listening, Error> {
    let mut listening = Listening::default();
    let given = addresses.iter().map(String::as_str);
    let default = [DEFAULT].into_iter().filter(|_| addresses.is_empty());
    for text in given.chain(default) {
        let wrong = |why: String| Error::usage(format!("--listen {text}: {why}"));
        match parse(text).map_err(wrong)? {
            Address::Tcp { speech, host, port } => {
                let resolved = resolve(&host, port)
                    .map_err(|why| Error::failed(format!("--listen {text}: {why}")))?;
                let guarded = access.insecure || access.has_tokens() && speech == Speech::Http;
                if !guarded && resolved.iter().any(|address| !address.ip().is_loopback()) {
                    return Err(wrong(exposed(speech).into()));
                }
                for socket in tcp(&resolved).map_err(|error| {
                    let hint = match error.kind() {
                        io::ErrorKind::AddrInUse => {
                            "stop what listens there, or choose another port"
                        }
                        io::ErrorKind::PermissionDenied => "choose a port above 1023",
                        _ => "choose another address",
                    };
                    Error::failed(format!("--listen {text}: {error}; {hint}"))
                })? {
                    listening.add_tcp(speech, socket).map_err(Error::failed)?;
                }
            }
            Address::Unix { speech, path } => listening.add_unix(speech, path, text)?,
        }
    }
    Ok(listening)
}

fn parse(text: &str) -> Result<Address, String> {
    let (speech, rest) = match text.strip_prefix("ndjson+") {
        Some(rest) => (Speech::Ndjson, rest),
        None => (Speech::Http, text),
    };
    if let Some(path) = rest.strip_prefix("unix:") {
        if path.is_empty() || path.contains('\0') {
            return Err("write unix:PATH, with the path of the socket".into());
        }
        return Ok(Address::Unix { speech, path: path.to_string() });
    }
    let place = match speech {
        Speech::Http => Some(rest),
        Speech::Ndjson => rest.strip_prefix("tcp:"),
    };
    place
        .and_then(host_and_port)
        .map(|(host, port)| Address::Tcp { speech, host, port })
        .ok_or_else(|| {
            "write HOST:PORT, unix:PATH, ndjson+tcp:HOST:PORT or ndjson+unix:PATH".to_string()
        })
}

/// IPv6 addresses stand in brackets.
pub(crate) fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|address| address.contains(':'))?,
        None if host.is_empty() || host.contains([':', '/', '@']) => return None,
        None => host,
    };
    Some((host.to_string(), port))
}

/// `localhost` is both loopback addresses, whatever the system says about it.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![([127, 0, 0, 1], port).into(), ([0u16, 0, 0, 0, 0, 0, 0, 1], port).into()]);
    }
    let mut all: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|_| format!("the name {host} has no address: check it"))?
        .collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// How often another free port is tried, when one is free on one loopback
/// address and taken on the other.
const TRIES: usize = 16;

/// Listens on all of `addresses`, on the same port. Not having IPv6 at all is
/// no error if another address works.
fn tcp(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let mut tries = 0;
    loop {
        tries += 1;
        match tcp_once(addresses) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && addresses.first().is_some_and(|first| first.port() == 0)
                    && tries < TRIES => {}
            other => return other,
        }
    }
}

fn tcp_once(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let mut sockets: Vec<TcpListener> = Vec::new();
    let mut absent = None;
    for address in addresses {
        let mut address = *address;
        if let Some(first) = sockets.first() {
            address.set_port(first.local_addr()?.port());
        }
        match TcpListener::bind(address) {
            Ok(socket) => sockets.push(socket),
            Err(error) if addresses.len() > 1 && is_absent(&error) => absent = Some(error),
            Err(error) => return Err(error),
        }
    }
    match absent {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok(sockets),
    }
}

/// Whether this machine has no such address.
fn is_absent(error: &io::Error) -> bool {
    #[cfg(unix)]
    let no_family = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
    #[cfg(not(unix))]
    let no_family = false;
    no_family || error.kind() == io::ErrorKind::AddrNotAvailable
}

impl Listening {
    fn add_tcp(&mut self, speech: Speech, socket: TcpListener) -> Result<(), String> {
        let bound = socket.local_addr().map_err(|error| error.to_string())?;
        match speech {
            Speech::Http => {
                self.doors.push(Door::Http(bound.to_string()));
                self.lines.push(format!("listening on http://{bound}{PATH}"));
            }
            Speech::Ndjson => {
                self.doors.push(Door::Ndjson);
                self.lines.push(format!("listening on ndjson+tcp:{bound}"));
            }
        }
        self.sockets.push(Socket::Tcp(socket));
        Ok(())
    }

    #[cfg(unix)]
    fn add_unix(&mut self, speech: Speech, path: String, text: &str) -> Result<(), Error> {
        let failed = |why: String| Error::failed(format!("--listen {text}: {why}"));
        let (socket, file) = socket::bind(&PathBuf::from(&path)).map_err(failed)?;
        self.files.push(file);
        match speech {
            Speech::Http => {
                self.lines.push(format!("listening on unix:{path}"));
                self.doors.push(Door::Http(path));
            }
            Speech::Ndjson => {
                self.doors.push(Door::Ndjson);
                self.lines.push(format!("listening on ndjson+unix:{path}"));
            }
        }
        self.sockets.push(Socket::Unix(socket));
        Ok(())
    }

    #[cfg(not(unix))]
    fn add_unix(&mut self, _: Speech, _: String, text: &str) -> Result<(), Error> {
        Err(Error::usage(format!("--listen {text}: there are no Unix sockets on this system")))
    }
}

/// Why an address is refused that other machines can reach.
fn exposed(speech: Speech) -> &'static str {
    match speech {
        Speech::Http => {
            "other machines could use the server there: ask them for a token with --token-file \
             FILE, listen on 127.0.0.1, or add --insecure if everybody may"
        }
        Speech::Ndjson => {
            "other machines could use the server there, and lines carry no token: use HTTP with \
             --token-file, listen on 127.0.0.1, or add --insecure if everybody may"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = |speech, host: &str, port| Address::Tcp { speech, host: host.into(), port };
        let unix = |speech, path: &str| Address::Unix { speech, path: path.into() };
        for (text, address) in [
            ("127.0.0.1:80", tcp(Speech::Http, "127.0.0.1", 80)),
            ("localhost:0", tcp(Speech::Http, "localhost", 0)),
            ("[::1]:8808", tcp(Speech::Http, "::1", 8808)),
            ("ndjson+tcp:[::1]:1", tcp(Speech::Ndjson, "::1", 1)),
            ("unix:/run/a:1", unix(Speech::Http, "/run/a:1")),
            ("ndjson+unix:a.sock", unix(Speech::Ndjson, "a.sock")),
        ] {
            assert_eq!(parse(text), Ok(address), "{text}");
        }
        for text in [
            "",
            "8808",
            ":8808",
            "a:",
            "a:65536",
            "a:+1",
            "::1:80",
            "[::1]",
            "[a]:1",
            "http://a:1",
            "https:1/",
            "ndjson+a:1",
            "ndjson+http:a:1",
            "unix:",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn localhost_is_both_addresses_on_one_port() {
        let sockets = tcp(&resolve("LocalHost", 0).unwrap()).unwrap();
        let ports: Vec<u16> = sockets.iter().map(|s| s.local_addr().unwrap().port()).collect();
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0), "{ports:?}");
    }

    #[test]
    fn sec_03_other_machines_are_kept_out() {
        for text in ["0.0.0.0:0", "[::]:0", "ndjson+tcp:0.0.0.0:0"] {
            let error = bind(&[text.into()], &access::Options::default()).unwrap_err();
            assert!(error.text().contains("--insecure"), "{text}: {}", error.text());
        }
        let everybody = access::Options { insecure: true, ..access::Options::default() };
        assert_eq!(bind(&["0.0.0.0:0".into()], &everybody).unwrap().sockets.len(), 1);
        let guarded =
            access::Options { token_file: Some("tokens".into()), ..access::Options::default() };
        assert_eq!(bind(&["0.0.0.0:0".into()], &guarded).unwrap().sockets.len(), 1);
        assert!(bind(&["ndjson+tcp:0.0.0.0:0".into()], &guarded).is_err());
    }
}
