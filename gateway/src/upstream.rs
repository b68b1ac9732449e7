//! Which server is meant, in words that the core understands.

use std::path::Path;

use mcpx_core::client::Place;
use mcpx_core::client::probe::Protocol;
use mcpx_core::driver::{Command, Target};
use mcpx_core::gateway::{self, Expose};
use mcpx_core::wire::http1::Url;
use serde_json::Value;

use crate::args::{Common, Source};
use crate::config::{self, Read};
use crate::error::Error;
use crate::listen::host_and_port;
use crate::{report, tls};

/// A server, and what is needed to reach it.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) server: gateway::Server,
    pub(crate) tls: tls::Options,
}

/// The servers behind us, and how hosts see them.
#[derive(Debug)]
pub(crate) struct Upstreams {
    pub(crate) all: Vec<Upstream>,
    pub(crate) catalogue: gateway::Catalogue,
    /// What the configuration file says, if they are from one.
    pub(crate) document: Option<Value>,
}

impl Upstream {
    /// A server of which nothing more is said.
    fn new(name: &str, place: Place) -> Self {
        Self { server: gateway::Server::new(name, place), tls: tls::Options::default() }
    }

    /// Adds what is needed to reach it, if it is at a URL.
    fn add_tls(&self, settings: &mut tls::Settings) -> Result<(), Error> {
        let Place::Url { url, .. } = &self.server.place else { return Ok(()) };
        let variable = |name: &str| std::env::var(name).ok();
        let (host, port) = (url.host(), url.port());
        let added = if url.is_secure() {
            settings.add(host, port, &self.tls, variable)
        } else {
            settings.add_plain(host, port, variable)
        };
        added.map_err(|why| Error::usage(format!("{}: {why}", self.server.name)))?;
        if url.is_secure() && self.tls.insecure {
            report::say(&format!(
                "{}: its certificate is not checked, so anybody could answer for it",
                self.server.name
            ));
        }
        Ok(())
    }
}

impl Upstreams {
    /// What the core has to know of them.
    pub(crate) fn servers(&self) -> Vec<gateway::Server> {
        self.all.iter().map(|upstream| upstream.server.clone()).collect()
    }

    /// The same with what the command line says, whatever the configuration does.
    pub(crate) fn said(mut self, protocol: Option<Protocol>, expose: Option<Expose>) -> Self {
        if let Some(protocol) = protocol {
            self.all.iter_mut().for_each(|upstream| upstream.server.protocol = protocol);
        }
        if let Some(expose) = expose {
            self.catalogue.expose = expose;
        }
        self
    }

    /// What is needed to reach them.
    pub(crate) fn tls(&self) -> Result<tls::Settings, Error> {
        let mut settings = tls::Settings::default();
        for upstream in &self.all {
            upstream.add_tls(&mut settings)?;
        }
        Ok(settings)
    }
}

/// The servers that the command line names. The built-in one is a process of our own
/// program.
pub(crate) fn find(common: &Common) -> Result<Upstreams, Error> {
    Ok(of(&common.source)?.said(common.protocol, common.expose))
}

/// The servers of a source.
pub(crate) fn of(source: &Source) -> Result<Upstreams, Error> {
    let one = |upstream| Upstreams {
        all: vec![upstream],
        catalogue: gateway::Catalogue::default(),
        document: None,
    };
    Ok(match source {
        Source::Config(path) => file(path)?,
        Source::Demo => one(ourselves("demo", vec!["serve".into(), "--demo".into()])?),
        Source::Url(address) => {
            let place =
                at(address, Vec::new()).map_err(|why| Error::usage(format!("--url: {why}")))?;
            let name = match &place {
                Place::Url { url, .. } => url.authority().to_string(),
                _ => address.clone(),
            };
            one(Upstream::new(&name, place))
        }
        Source::Command { program, args } => {
            let command =
                Command { program: program.clone(), args: args.clone(), ..Command::default() };
            one(Upstream::new(&base_name(program), Place::Process(command)))
        }
    })
}

/// The same as one server. Many of them are what we serve ourselves.
pub(crate) fn find_one(common: &Common) -> Result<Upstreams, Error> {
    let mut found = find(common)?;
    let plain = found.catalogue.expose == Expose::All
        && matches!(found.all.as_slice(), [one] if one.server.view == gateway::View::default());
    let Source::Config(path) = &common.source else { return Ok(found) };
    if !plain {
        let path = path.to_str().ok_or_else(|| Error::usage("--config is not Unicode text"))?;
        let mut args: Vec<String> = vec!["serve".into(), "--config".into(), path.into()];
        if found.catalogue.expose == Expose::Search {
            args.extend(["--expose".into(), "search".into()]);
        }
        found.all = vec![ourselves("mcpx", args)?];
    }
    Ok(found)
}

fn file(path: &Path) -> Result<Upstreams, Error> {
    let read = config::load(path).map_err(Error::usage)?;
    for warning in &read.warnings {
        report::say(&format!("{}: {warning}", path.display()));
    }
    Ok(read.into())
}

impl From<Read> for Upstreams {
    fn from(read: Read) -> Self {
        let document = Some(Value::Object(read.document));
        Self { all: read.upstreams, catalogue: read.catalogue, document }
    }
}

/// A process of our own program.
fn ourselves(name: &str, args: Vec<String>) -> Result<Upstream, Error> {
    let program = std::env::current_exe()
        .map_err(|error| Error::failed(format!("our own program cannot be found: {error}")))?
        .into_os_string()
        .into_string()
        .map_err(|_| Error::failed("the path of our own program is not Unicode text"))?;
    let command = Command { program, args, ..Command::default() };
    Ok(Upstream::new(name, Place::Process(command)))
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
