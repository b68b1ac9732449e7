//! The configuration file: `mcpServers`, as hosts have it.
//!
//! Values may be secrets. No message shows one: only names of fields, of
//! servers and of variables.

use std::path::Path;

use mcpx_core::gateway;
use serde_json::{Map, Value};

use super::server::{Reader, object};
use super::view;
use crate::expand::Lookup;
use crate::upstream::Upstream;

/// What a file says.
#[derive(Debug)]
pub(crate) struct Read {
    /// The servers, in the order of the file.
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) catalogue: gateway::Catalogue,
    /// All of it.
    pub(crate) document: Map<String, Value>,
    /// Sentences about what was ignored.
    pub(crate) warnings: Vec<String>,
}

/// Reads the servers of the configuration file at `path`.
pub(crate) fn load(path: &Path) -> Result<Read, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    read(&bytes, &|name| std::env::var(name)).map_err(|why| format!("{shown}: {why}"))
}

/// Reads the servers of a configuration file.
pub(crate) fn read(bytes: &[u8], lookup: Lookup<'_>) -> Result<Read, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let file: Value = serde_json::from_slice(bytes).map_err(|error| {
        // Its own text ends in the place, and never shows what is there.
        format!("it is not valid JSON: {error}")
    })?;
    let Value::Object(file) = file else {
        return Err("it must hold an object with \"mcpServers\"".into());
    };
    let mut reader = Reader { lookup, warnings: Vec::new() };
    reader.ignore(&file, "", &["mcpServers", "servers", "names", "expose", "$schema"]);
    let key = match (file.contains_key("mcpServers"), file.contains_key("servers")) {
        (true, false) => "mcpServers",
        // As VS Code has it.
        (false, true) => "servers",
        (true, true) => return Err("it has both \"mcpServers\" and \"servers\": keep one".into()),
        (false, false) => return Err("it has no \"mcpServers\": put your server there".into()),
    };
    let servers = object(&file[key], key)?;
    let mut enabled = Vec::new();
    for (name, server) in servers {
        let at = format!("{key}.{name}");
        let server = object(server, &at)?;
        match server.get("disabled") {
            Some(Value::Bool(true)) => {}
            None | Some(Value::Bool(false)) => enabled.push((name, server, at)),
            Some(_) => return Err(format!("{at}.disabled must be true or false")),
        }
    }
    if enabled.is_empty() {
        return Err(format!("\"{key}\" has no enabled server: add one"));
    }
    let mut upstreams: Vec<Upstream> = Vec::new();
    for (name, server, at) in enabled {
        let upstream = reader.server(name, server, &at)?;
        let same = |other: &&Upstream| gateway::prefix(&other.server.name) == gateway::prefix(name);
        if let Some(other) = upstreams.iter().find(same) {
            let (a, b) = (&other.server.name, name);
            return Err(format!("{key}: \"{a}\" and \"{b}\" would look the same: rename one"));
        }
        upstreams.push(upstream);
    }
    let naming = view::naming(&mut reader, file.get("names"))?;
    let expose = view::expose(&reader, file.get("expose"))?;
    let catalogue = gateway::Catalogue { naming, expose, ..gateway::Catalogue::default() };
    let warnings = reader.warnings;
    Ok(Read { upstreams, catalogue, document: file, warnings })
}
