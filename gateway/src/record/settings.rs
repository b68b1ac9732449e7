//! The first line of a recording: what the machine is made from.

use mcpx_core::client::probe::Protocol;
use mcpx_core::gateway::Expose;
use serde_json::{Map, Value, json};

use super::veil::Veil;
use crate::args::{Common, Source};
use crate::expand::expand;
use crate::listen::Door;
use crate::setup::Setup;
use crate::upstream::{self, Upstreams};
use crate::{access, config};

/// Which kind of recording this is.
const FORMAT: u64 = 1;
/// What stands in the place of configured secrets.
const HIDDEN: &str = "redacted";

/// What a recording says of its machine.
pub(super) struct Settings {
    /// The version of the program that made it.
    pub(super) version: String,
    pub(super) seed: [u8; 32],
    pub(super) setup: Setup,
    /// The servers; none if it is the built-in one itself.
    pub(super) upstreams: Option<Upstreams>,
    protocol: Option<Protocol>,
    expose: Option<Expose>,
}

/// The line, without its end.
pub(super) fn write(
    seed: [u8; 32],
    setup: &Setup,
    upstreams: Option<&Upstreams>,
    common: &Common,
    veil: Option<&Veil>,
) -> String {
    let doors = setup.doors.iter().map(|door| match door {
        Door::Http(bound) => json!({"http": bound}),
        Door::Ndjson => json!({"ndjson": true}),
        Door::Stdio => json!({"stdio": true}),
    });
    let tokens = setup.tokens.iter().map(|token| match veil {
        Some(veil) => veil.token(token),
        None => token.clone(),
    });
    let server = match &common.source {
        Source::Demo => json!({"demo": true}),
        Source::Url(address) => match veil {
            Some(_) => json!({"url": without_query(address)}),
            None => json!({"url": address}),
        },
        Source::Command { program, args } => json!({"command": program, "args": args}),
        Source::Config(_) => {
            let document = upstreams.and_then(|all| all.document.as_ref());
            json!({"config": document.map(|it| shown(it, veil.is_some()))})
        }
    };
    let seed: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "recording": FORMAT,
        "mcpx": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "listen": doors.collect::<Vec<_>>(),
        "legacySse": setup.access.legacy_sse,
        "origins": setup.access.origins,
        "hosts": setup.access.hosts,
        "tokens": tokens.collect::<Vec<_>>(),
        "server": server,
        "protocol": common.protocol.map(name_of),
        "expose": common.expose.map(|expose| match expose {
            Expose::All => "all",
            Expose::Search => "search",
        }),
    })
    .to_string()
}

fn name_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Auto => "auto",
        Protocol::Modern => "modern",
        Protocol::Legacy => "legacy",
        Protocol::Exactly(revision) => revision.as_str(),
    }
}

impl Settings {
    /// Reads the line; what is wrong, if it is none.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let said: Value = serde_json::from_str(line)
            .map_err(|_| "its first line is not JSON: it is no recording".to_owned())?;
        match said.get("recording").and_then(Value::as_u64) {
            Some(FORMAT) => {}
            Some(other) => {
                return Err(format!("its format is {other}, and this program knows {FORMAT}"));
            }
            None => return Err("it is no recording of mcpx".into()),
        }
        let texts = |name: &str| -> Vec<String> {
            let all = said.get(name).and_then(Value::as_array).into_iter().flatten();
            all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let text = |name: &str| said.get(name).and_then(Value::as_str);
        let seed = text("seed").and_then(seed).ok_or("its seed is not 64 hexadecimal digits")?;
        let doors = said.get("listen").and_then(Value::as_array).into_iter().flatten();
        let doors = doors.map(|door| match door.get("http").and_then(Value::as_str) {
            Some(bound) => Door::Http(bound.to_owned()),
            None if door.get("stdio").is_some() => Door::Stdio,
            None => Door::Ndjson,
        });
        let access = access::Options {
            legacy_sse: said.get("legacySse") == Some(&Value::Bool(true)),
            insecure: true,
            origins: texts("origins"),
            hosts: texts("hosts"),
            token_file: None,
        };
        let setup = Setup { doors: doors.collect(), access, tokens: texts("tokens") };
        let protocol = text("protocol").and_then(Protocol::parse);
        let expose = text("expose").and_then(config::parse_expose);
        let version = text("mcpx").unwrap_or("unknown").to_owned();
        let mut settings = Self { version, seed, setup, upstreams: None, protocol, expose };
        settings.upstreams = settings.servers(said.get("server").unwrap_or(&Value::Null))?;
        Ok(settings)
    }

    /// The servers that a recording names.
    fn servers(&self, said: &Value) -> Result<Option<Upstreams>, String> {
        let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
        let source = if let Some(document) = said.get("config") {
            return self.configured(document).map(Some);
        } else if let Some(address) = text("url") {
            Source::Url(address)
        } else if let Some(program) = text("command") {
            let args = said.get("args").and_then(Value::as_array).into_iter().flatten();
            let args = args.filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
            Source::Command { program, args }
        } else if self.expose.is_none() {
            return Ok(None);
        } else {
            Source::Demo
        };
        upstream::of(&source)
            .map(|found| Some(found.said(self.protocol, self.expose)))
            .map_err(|error| error.text().to_owned())
    }

    /// The servers of a configuration file as it was then.
    pub(super) fn configured(&self, document: &Value) -> Result<Upstreams, String> {
        let lookup = |_: &str| Ok(HIDDEN.to_owned());
        let read = config::read(document.to_string().as_bytes(), &lookup)?;
        Ok(Upstreams::from(read).said(self.protocol, self.expose))
    }
}

fn seed(text: &str) -> Option<[u8; 32]> {
    let mut seed = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (n, byte) in seed.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(seed)
}

/// A URL may carry a key after its `?`.
fn without_query(address: &str) -> String {
    match address.split_once('?') {
        Some((before, _)) => format!("{before}?{HIDDEN}"),
        None => address.to_owned(),
    }
}

/// A configuration file as it may be shown: without what is of no concern elsewhere,
/// and without secrets. Variables are put in, except where secrets are.
pub(super) fn shown(document: &Value, hidden: bool) -> Value {
    let mut document = document.clone();
    for key in ["mcpServers", "servers"] {
        let servers = document.get_mut(key).and_then(Value::as_object_mut);
        for server in servers.into_iter().flat_map(|all| all.values_mut()) {
            let Some(server) = server.as_object_mut() else { continue };
            show(server, hidden);
        }
    }
    document
}

fn show(server: &mut Map<String, Value>, hidden: bool) {
    for name in ["cwd", "tls"] {
        server.remove(name);
    }
    for (name, value) in server.iter_mut() {
        match name.as_str() {
            "env" | "headers" if hidden => {
                let values = value.as_object_mut();
                values.into_iter().flatten().for_each(|(_, value)| *value = HIDDEN.into());
            }
            "args" if hidden => {}
            "url" if hidden => {
                put_in(value);
                if let Some(address) = value.as_str() {
                    *value = without_query(address).into();
                }
            }
            _ => put_in(value),
        }
    }
}

/// Puts variables in the place of their names.
fn put_in(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Ok(full) = expand(text, &|name| std::env::var(name)) {
                *text = full;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(put_in),
        Value::Object(all) => all.values_mut().for_each(put_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
