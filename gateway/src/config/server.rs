//! One server of the configuration file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpx_core::client::Place;
use mcpx_core::client::probe::Protocol;
use mcpx_core::driver;
use mcpx_core::gateway::{self, Instances};
use serde_json::{Map, Value};

use super::view;
use crate::expand::{Lookup, expand};
use crate::tls;
use crate::upstream::{self, Upstream};

/// Reads servers, and collects sentences about what is ignored.
pub(super) struct Reader<'a> {
    pub(super) lookup: Lookup<'a>,
    pub(super) warnings: Vec<String>,
}

/// The longest that a request may be allowed to take: a week, in seconds.
const LONGEST: f64 = 7.0 * 86_400.0;

/// The members of a server that mean something here. What else hosts write is
/// ignored, with a warning.
const KNOWN: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "tls",
    "type",
    "disabled",
    "protocol",
    "start",
    "instances",
    "roots",
    "idle",
    "timeout",
    "maxTimeout",
    "resetTimeoutOnProgress",
    "tools",
    "prompts",
    "resources",
];

impl Reader<'_> {
    /// The server `name`, which is at `at` in the file.
    pub(super) fn server(
        &mut self,
        name: &str,
        server: &Map<String, Value>,
        at: &str,
    ) -> Result<Upstream, String> {
        let place = self.place(server, at)?;
        let tls = self.tls(server.get("tls"), &format!("{at}.tls"))?;
        let server = gateway::Server {
            protocol: self.protocol(server.get("protocol"), &format!("{at}.protocol"))?,
            eager: self.eager(server.get("start"), &format!("{at}.start"))?,
            instances: self.instances(server.get("instances"), &format!("{at}.instances"))?,
            roots: self.roots(server.get("roots"), &format!("{at}.roots"))?,
            limits: limits(server, at)?,
            view: view::view(self, server, at)?,
            ..gateway::Server::new(name, place)
        };
        Ok(Upstream { server, tls })
    }

    pub(super) fn ignore(&mut self, object: &Map<String, Value>, at: &str, known: &[&str]) {
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            let dot = if at.is_empty() { "" } else { "." };
            self.warnings.push(format!("{at}{dot}{name} is not known here, and ignored"));
        }
    }

    fn place(&mut self, server: &Map<String, Value>, at: &str) -> Result<Place, String> {
        self.ignore(server, at, KNOWN);
        match (server.get("command"), server.get("url")) {
            (Some(command), None) => {
                self.ignore_beside(server, at, "command", &["headers", "tls"]);
                self.process(server, command, at).map(Place::Process)
            }
            (None, Some(url)) => {
                self.ignore_beside(server, at, "url", &["args", "env", "cwd"]);
                self.remote(server, url, at)
            }
            (Some(_), Some(_)) => Err(format!("{at} has both \"command\" and \"url\": keep one")),
            (None, None) => Err(format!("{at} has neither \"command\" nor \"url\": add one")),
        }
    }

    fn ignore_beside(
        &mut self,
        server: &Map<String, Value>,
        at: &str,
        beside: &str,
        names: &[&str],
    ) {
        for name in names.iter().filter(|name| server.contains_key(**name)) {
            self.warnings
                .push(format!("{at}.{name} means nothing beside {beside}, and is ignored"));
        }
    }

    fn process(
        &self,
        server: &Map<String, Value>,
        command: &Value,
        at: &str,
    ) -> Result<driver::Command, String> {
        let program = self.text(command, &format!("{at}.command"))?;
        if program.is_empty() {
            return Err(format!("{at}.command is empty: name a program"));
        }
        let args = self.texts(server.get("args"), &format!("{at}.args"))?;
        let env = self.pairs(server.get("env"), &format!("{at}.env"))?;
        if let Some((name, _)) = env.iter().find(|(name, _)| name.is_empty() || name.contains('='))
        {
            return Err(format!("{at}.env has \"{name}\", which cannot be a variable's name"));
        }
        let cwd = match server.get("cwd") {
            None => None,
            Some(cwd) => Some(self.text(cwd, &format!("{at}.cwd"))?),
        };
        if cwd.as_ref().is_some_and(|cwd| !Path::new(cwd).is_dir()) {
            return Err(format!("{at}.cwd is not a directory that exists"));
        }
        let strings = args.iter().chain(env.iter().map(|(_, value)| value)).chain([&program]);
        if strings.chain(&cwd).any(|string| string.contains('\0')) {
            return Err(format!("{at} has a string with a NUL character"));
        }
        Ok(driver::Command { program, args, env, cwd })
    }

    fn remote(
        &self,
        server: &Map<String, Value>,
        address: &Value,
        at: &str,
    ) -> Result<Place, String> {
        let address = self.text(address, &format!("{at}.url"))?;
        let of_url = format!("{at}.url");
        let at = format!("{at}.headers");
        let fields = self.pairs(server.get("headers"), &at)?;
        for (name, value) in &fields {
            if !is_token(name) {
                return Err(format!("{at} has \"{name}\", which cannot be a header's name"));
            }
            if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
                return Err(format!("{at}.{name} has a line break or another control character"));
            }
        }
        upstream::at(&address, fields).map_err(|why| format!("{of_url}: {why}"))
    }

    fn tls(&mut self, value: Option<&Value>, at: &str) -> Result<tls::Options, String> {
        let Some(value) = value else { return Ok(tls::Options::default()) };
        let options = object(value, at)?;
        self.ignore(options, at, &["ca", "cert", "key", "insecure"]);
        let file = |name: &str| {
            let text = options.get(name).map(|file| self.text(file, &format!("{at}.{name}")));
            text.transpose().map(|path| path.map(PathBuf::from))
        };
        let identity = match (file("cert")?, file("key")?) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(format!("{at} needs both \"cert\" and \"key\", or neither")),
        };
        let insecure = match options.get("insecure") {
            None => false,
            Some(Value::Bool(insecure)) => *insecure,
            Some(_) => return Err(format!("{at}.insecure must be true or false")),
        };
        Ok(tls::Options { ca: file("ca")?, identity, insecure })
    }

    fn protocol(&self, value: Option<&Value>, at: &str) -> Result<Protocol, String> {
        let Some(value) = value else { return Ok(Protocol::Auto) };
        Protocol::parse(&self.text(value, at)?)
            .ok_or_else(|| format!("{at} must be auto, modern, legacy, or a revision of MCP"))
    }

    fn eager(&self, value: Option<&Value>, at: &str) -> Result<bool, String> {
        match value.map(|value| self.text(value, at)).transpose()?.as_deref() {
            None | Some("lazy") => Ok(false),
            Some("eager") => Ok(true),
            Some(_) => Err(format!("{at} must be lazy or eager")),
        }
    }

    fn instances(&self, value: Option<&Value>, at: &str) -> Result<Instances, String> {
        match value.map(|value| self.text(value, at)).transpose()?.as_deref() {
            None | Some("shared") => Ok(Instances::Shared),
            Some("token") => Ok(Instances::PerToken),
            Some(_) => Err(format!("{at} must be shared or token")),
        }
    }

    fn roots(&self, value: Option<&Value>, at: &str) -> Result<Vec<String>, String> {
        let roots = self.texts(value, at)?;
        match roots.iter().position(|root| !root.starts_with("file://")) {
            None => Ok(roots),
            Some(n) => Err(format!("{at}[{n}] must be a URI that begins with file://")),
        }
    }

    /// An array of strings.
    pub(super) fn texts(&self, value: Option<&Value>, at: &str) -> Result<Vec<String>, String> {
        let texts = match value {
            None => return Ok(Vec::new()),
            Some(Value::Array(texts)) => texts.iter().enumerate(),
            Some(_) => return Err(format!("{at} must be an array of strings")),
        };
        texts.map(|(n, text)| self.text(text, &format!("{at}[{n}]"))).collect()
    }

    /// An object of strings.
    pub(super) fn pairs(
        &self,
        value: Option<&Value>,
        at: &str,
    ) -> Result<Vec<(String, String)>, String> {
        let Some(value) = value else { return Ok(Vec::new()) };
        object(value, at)?
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.text(value, &format!("{at}.{name}"))?)))
            .collect()
    }

    pub(super) fn text(&self, value: &Value, at: &str) -> Result<String, String> {
        let text = value.as_str().ok_or_else(|| format!("{at} must be a string"))?;
        expand(text, self.lookup).map_err(|why| format!("{at}: {why}"))
    }
}

/// How long requests to the server may take.
fn limits(server: &Map<String, Value>, at: &str) -> Result<gateway::Limits, String> {
    let mut limits = gateway::Limits::default();
    if let Some(timeout) = seconds(server, "timeout", at)? {
        limits.call_idle = timeout;
    }
    if let Some(most) = seconds(server, "maxTimeout", at)? {
        limits.call_total = most;
    }
    if let Some(idle) = seconds(server, "idle", at)? {
        limits.idle = idle;
    }
    match server.get("resetTimeoutOnProgress") {
        None => {}
        Some(Value::Bool(counts)) => limits.progress_counts = *counts,
        Some(_) => return Err(format!("{at}.resetTimeoutOnProgress must be true or false")),
    }
    Ok(limits)
}

fn seconds(server: &Map<String, Value>, name: &str, at: &str) -> Result<Option<Duration>, String> {
    let Some(value) = server.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.001..=LONGEST).contains(seconds));
    seconds
        .map(|seconds| Some(Duration::from_secs_f64(seconds)))
        .ok_or_else(|| format!("{at}.{name} must be a number of seconds, at most a week"))
}

pub(super) fn object<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{at} must be an object"))
}

/// RFC 9110 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
