//! Which server is meant, in words that the core understands.

use std::path::Path;

use mcpx_core::client::Place;
use mcpx_core::client::probe::Protocol;
use mcpx_core::driver::{Command, Target};
use mcpx_core::gateway;
use mcpx_core::wire::http1::Url;

use crate::args::Source;
use crate::config;
use crate::error::Error;
use crate::listen::host_and_port;
use crate::{report, tls};

/// A server, and what to call it in messages.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) tls: tls::Options,
    pub(crate) protocol: Protocol,
    /// Whether it is started before anybody needs it.
    pub(crate) eager: bool,
    pub(crate) limits: gateway::Limits,
}

impl Upstream {
    /// A server of which nothing more is said.
    pub(crate) fn new(name: String, place: Place) -> Self {
        Self {
            name,
            place,
            tls: tls::Options::default(),
            protocol: Protocol::Auto,
            eager: false,
            limits: gateway::Limits::default(),
        }
    }

    /// What TLS needs, if it is reached by that.
    pub(crate) fn tls(&self) -> Result<tls::Settings, Error> {
        match &self.place {
            Place::Url { url, .. } if url.is_secure() => {
                if self.tls.insecure {
                    report::say(&format!(
                        "{}: its certificate is not checked, so anybody could answer for it",
                        self.name
                    ));
                }
                let variable = |name: &str| std::env::var(name).ok();
                tls::Settings::new(url.host(), url.port(), &self.tls, variable)
                    .map_err(|why| Error::usage(format!("{}: {why}", self.name)))
            }
            Place::Url { .. } => tls::Settings::plain(|name| std::env::var(name).ok())
                .map_err(|why| Error::usage(format!("{}: {why}", self.name))),
            Place::Process(_) | Place::Socket(_) => Ok(tls::Settings::default()),
        }
    }
}

/// The server that the command line names. The built-in one is a process of
/// our own program.
pub(crate) fn find(source: &Source, protocol: Option<Protocol>) -> Result<Upstream, Error> {
    let upstream = named(source)?;
    Ok(Upstream { protocol: protocol.unwrap_or(upstream.protocol), ..upstream })
}

fn named(source: &Source) -> Result<Upstream, Error> {
    match source {
        Source::Demo => demo(),
        Source::Url(address) => {
            let place =
                at(address, Vec::new()).map_err(|why| Error::usage(format!("--url: {why}")))?;
            let name = match &place {
                Place::Url { url, .. } => url.authority().to_string(),
                _ => address.clone(),
            };
            Ok(Upstream::new(name, place))
        }
        Source::Config(path) => {
            let read = config::load(path).map_err(Error::usage)?;
            for warning in &read.warnings {
                report::say(&format!("{}: {warning}", path.display()));
            }
            Ok(read.upstream)
        }
        Source::Command { program, args } => {
            let command =
                Command { program: program.clone(), args: args.clone(), ..Command::default() };
            let (name, place) = (base_name(program), Place::Process(command));
            Ok(Upstream::new(name, place))
        }
    }
}

fn demo() -> Result<Upstream, Error> {
    let program = std::env::current_exe()
        .map_err(|error| Error::failed(format!("our own program cannot be found: {error}")))?
        .into_os_string()
        .into_string()
        .map_err(|_| Error::failed("the path of our own program is not Unicode text"))?;
    let args = vec!["serve".into(), "--demo".into()];
    let command = Command { program, args, ..Command::default() };
    let (name, place) = ("demo".into(), Place::Process(command));
    Ok(Upstream::new(name, place))
}

/// Where a server is that listens: at a URL, which is sent `fields`, or at a socket.
/// The message about a wrong address does not show it: it may hold a key.
pub(crate) fn at(address: &str, fields: Vec<(String, String)>) -> Result<Place, String> {
    let Some(socket) = address.strip_prefix("ndjson+") else {
        let url =
            Url::parse(address).map_err(|error| format!("{error}: write https://HOST/PATH"))?;
        return Ok(Place::Url { url, fields });
    };
    if !fields.is_empty() {
        return Err("it is a socket, where there are no header fields".into());
    }
    let tcp = socket.strip_prefix("tcp:").and_then(host_and_port);
    let unix = socket.strip_prefix("unix:").filter(|path| !path.is_empty());
    let target = match (tcp, unix) {
        (Some((host, port)), _) => Target::Tcp { host, port },
        (None, Some(path)) => Target::Unix { path: path.into() },
        (None, None) => return Err("write ndjson+tcp:HOST:PORT or ndjson+unix:PATH".into()),
    };
    Ok(Place::Socket(target))
}

fn base_name(program: &str) -> String {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    name.unwrap_or(program).to_string()
}
