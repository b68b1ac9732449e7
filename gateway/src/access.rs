//! Who may use the addresses of `mcpx daemon`, and how.

use std::fs;
use std::path::{Path, PathBuf};

use mcpx_core::protocol::origin::OriginRules;

use crate::error::Error;

/// What the command line says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// HTTP+SSE of 2024-11-05 is served as well.
    pub(crate) legacy_sse: bool,
    /// Addresses that other machines can reach are fine without tokens.
    pub(crate) insecure: bool,
    /// Origins whose pages may use the endpoint, besides the loopback names.
    pub(crate) origins: Vec<String>,
    /// Names that `Host` may have, besides the loopback names.
    pub(crate) hosts: Vec<String>,
    /// A file with tokens, one of which every request must have.
    pub(crate) token_file: Option<PathBuf>,
}

/// A token shorter than this is guessed too soon.
const SHORTEST: usize = 16;

impl Options {
    /// Whether whoever comes by HTTP must have a token.
    pub(crate) fn has_tokens(&self) -> bool {
        self.token_file.is_some()
    }

    /// The tokens of the file.
    pub(crate) fn tokens(&self) -> Result<Vec<String>, Error> {
        let Some(path) = &self.token_file else { return Ok(Vec::new()) };
        tokens(path).map_err(|why| Error::usage(format!("--token-file {}: {why}", path.display())))
    }

    /// The rules of a listener for HTTP.
    pub(crate) fn rules(&self, bind: &str) -> Result<OriginRules, String> {
        let with = |given: &[String], own: &[&str]| -> Option<Vec<String>> {
            let own = own.iter().map(|entry| (*entry).to_owned());
            (!given.is_empty()).then(|| given.iter().cloned().chain(own).collect())
        };
        let hosts = with(&self.hosts, &["localhost:*", "127.0.0.1:*", "[::1]:*"]);
        let origins = with(
            &self.origins,
            &[
                "http://localhost:*",
                "http://127.0.0.1:*",
                "http://[::1]:*",
                "https://localhost:*",
                "https://127.0.0.1:*",
                "https://[::1]:*",
            ],
        );
        OriginRules::new(bind, hosts.as_deref(), origins.as_deref())
            .map_err(|error| error.to_string())
    }
}

/// The tokens of a file: one a line; blank lines and those with `#` do not count.
fn tokens(path: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    check_mode(path)?;
    let lines = text.lines().map(str::trim);
    let tokens: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    // The messages never show a token.
    if tokens.is_empty() {
        return Err("there is no token in it: write one a line".to_owned());
    }
    for (place, token) in tokens.iter().enumerate() {
        let place = place + 1;
        if token.len() < SHORTEST {
            return Err(format!(
                "token {place} is shorter than {SHORTEST} characters: make one with \
                 `openssl rand -hex 32`"
            ));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("token {place} has characters that a header cannot carry"));
        }
    }
    Ok(tokens)
}

#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
    if mode & 0o007 == 0 {
        return Ok(());
    }
    Err("everybody on this machine may read it: take that away with `chmod 600`".to_owned())
}

#[cfg(not(unix))]
fn check_mode(_: &Path) -> Result<(), String> {
    Ok(())
}
