//! Which server is meant, in words that the core understands.

use std::path::Path;

use mcpx_core::client::Place;
use mcpx_core::driver::Command;
use mcpx_core::wire::http1::{Url, UrlError};

use crate::args::Source;
use crate::config;
use crate::error::Error;
use crate::report;

/// A server, and what to call it in messages.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) place: Place,
}

/// The server that the command line names. The built-in one is a process of
/// our own program.
pub(crate) fn find(source: &Source) -> Result<Upstream, Error> {
    match source {
        Source::Demo => demo(),
        Source::Url(address) => {
            let url = url(address).map_err(|why| Error::usage(format!("--url: {why}")))?;
            let name = url.authority().to_string();
            Ok(Upstream { name, place: Place::Url { url, fields: Vec::new() } })
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
            Ok(Upstream { name: base_name(program), place: Place::Process(command) })
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
    Ok(Upstream { name: "demo".into(), place: Place::Process(command) })
}

/// Reads an address. The message about a wrong one does not show it: it may
/// hold a key.
pub(crate) fn url(address: &str) -> Result<Url, String> {
    Url::parse(address).map_err(|error| match error {
        UrlError::TlsUnsupported => {
            "TLS is not built in yet: use an http:// URL for now, or a local proxy that adds TLS"
                .into()
        }
        error => format!("{error}: write http://HOST:PORT/PATH"),
    })
}

fn base_name(program: &str) -> String {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    name.unwrap_or(program).to_string()
}
