//! The configuration file: `mcpServers`, as hosts have it.
//!
//! Values may be secrets. No message shows one: only names of fields, of
//! servers and of variables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpx_core::client::Place;
use mcpx_core::client::probe::Protocol;
use mcpx_core::driver;
use mcpx_core::gateway;
use serde_json::{Map, Value};

use crate::expand::{Lookup, expand};
use crate::tls;
use crate::upstream::{self, Upstream};

/// What a file says.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) upstream: Upstream,
    /// Sentences about what was ignored.
    pub(crate) warnings: Vec<String>,
}

/// Reads the one server of the configuration file at `path`.
pub(crate) fn load(path: &Path) -> Result<Read, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    read(&bytes, &|name| std::env::var(name)).map_err(|why| format!("{shown}: {why}"))
}

fn read(bytes: &[u8], lookup: Lookup<'_>) -> Result<Read, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let file: Value = serde_json::from_slice(bytes).map_err(|error| {
        // Its own text ends in the place, and never shows what is there.
        format!("it is not valid JSON: {error}")
    })?;
    let Value::Object(file) = file else {
        return Err("it must hold an object with \"mcpServers\"".into());
    };
    let mut reader = Reader { lookup, warnings: Vec::new() };
    reader.ignore(&file, "", &["mcpServers", "servers", "$schema"]);
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
    match enabled.as_slice() {
        [] => Err(format!("\"{key}\" has no enabled server: add one")),
        [(name, server, at)] => {
            let place = reader.place(server, at)?;
            let upstream = Upstream {
                tls: reader.tls(server.get("tls"), &format!("{at}.tls"))?,
                protocol: reader.protocol(server.get("protocol"), &format!("{at}.protocol"))?,
                eager: reader.eager(server.get("start"), &format!("{at}.start"))?,
                limits: limits(server, at)?,
                ..Upstream::new(name.to_string(), place)
            };
            Ok(Read { upstream, warnings: reader.warnings })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, ..)| name.as_str()).collect();
            Err(format!(
                "it has {} enabled servers ({}), and merging servers is not supported yet: \
                 use a file with one, or set \"disabled\": true on the others",
                names.len(),
                names.join(", ")
            ))
        }
    }
}

struct Reader<'a> {
    lookup: Lookup<'a>,
    warnings: Vec<String>,
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
    "timeout",
    "maxTimeout",
    "resetTimeoutOnProgress",
];

impl Reader<'_> {
    fn ignore(&mut self, object: &Map<String, Value>, at: &str, known: &[&str]) {
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
        let args = match server.get("args") {
            None => Vec::new(),
            Some(Value::Array(args)) => args
                .iter()
                .enumerate()
                .map(|(n, arg)| self.text(arg, &format!("{at}.args[{n}]")))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(format!("{at}.args must be an array of strings")),
        };
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

    /// An object of strings.
    fn pairs(&self, value: Option<&Value>, at: &str) -> Result<Vec<(String, String)>, String> {
        let Some(value) = value else { return Ok(Vec::new()) };
        object(value, at)?
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.text(value, &format!("{at}.{name}"))?)))
            .collect()
    }

    fn text(&self, value: &Value, at: &str) -> Result<String, String> {
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

fn object<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{at} must be an object"))
}

/// RFC 9110 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use super::*;

    fn lookup(name: &str) -> Result<String, VarError> {
        match name {
            "KEY" => Ok("s3cret".into()),
            "BREAK" => Ok("s3cret\n".into()),
            _ => Err(VarError::NotPresent),
        }
    }

    fn read(text: &str) -> Result<Read, String> {
        super::read(text.as_bytes(), &lookup)
    }

    #[test]
    fn tls_is_read() {
        let read = read(
            r#"{"mcpServers": {"s": {"url": "https://a/", "tls":
                {"ca": "${KEY}/ca.pem", "cert": "c", "key": "k", "insecure": true}}}}"#,
        );
        let expected = tls::Options {
            ca: Some("s3cret/ca.pem".into()),
            identity: Some(("c".into(), "k".into())),
            insecure: true,
        };
        assert_eq!(read.unwrap().upstream.tls, expected);
    }

    #[test]
    fn a_command_is_read() {
        let read = read(
            "\u{feff}{\"mcpServers\": {\"off\": {\"disabled\": true, \"command\": 1}, \"on\": {
                \"type\": \"stdio\", \"disabled\": false, \"command\": \"npx\",
                \"args\": [\"-y\", \"${MISSING:-pkg}\"], \"env\": {\"TOKEN\": \"${env:KEY}\"},
                \"cwd\": \".\", \"autoApprove\": []}}}",
        )
        .unwrap();
        assert_eq!(read.upstream.name, "on");
        assert_eq!(read.warnings.len(), 1);
        assert!(read.warnings[0].starts_with("mcpServers.on.autoApprove "));
        let Place::Process(command) = read.upstream.place else { panic!() };
        let expected = driver::Command {
            program: "npx".into(),
            args: vec!["-y".into(), "pkg".into()],
            env: vec![("TOKEN".into(), "s3cret".into())],
            cwd: Some(".".into()),
        };
        assert_eq!(command, expected);
    }

    #[test]
    fn what_a_server_speaks_and_how_long_it_takes_is_read() {
        let read = |members: &str| {
            let text = format!(r#"{{"mcpServers": {{"s": {{"command": "x"{members}}}}}}}"#);
            let read = read(&text).unwrap();
            assert!(read.warnings.is_empty(), "{:?}", read.warnings);
            read.upstream
        };
        let server = read("");
        assert!(server.protocol == Protocol::Auto && !server.eager);
        let members = r#", "protocol": "2025-03-26", "start": "eager", "timeout": 1.5, "maxTimeout": 60,
                 "resetTimeoutOnProgress": false"#;
        let server = read(members);
        assert!(!server.limits.progress_counts);
        assert!(server.eager && server.protocol.offer().as_str() == "2025-03-26");
        assert_eq!(server.limits.call_idle, Duration::from_millis(1500));
        assert_eq!(server.limits.call_total, Duration::from_secs(60));
        assert_eq!(read(r#", "protocol": "2026-07-28""#).protocol, Protocol::Modern);
    }

    #[test]
    fn a_url_is_read() {
        let text = r#"{"servers": {"r": {"type": "http", "url": "http://a:1/mcp",
                       "headers": {"Authorization": "Bearer ${KEY}"}}}}"#;
        let Place::Url { url, fields } = read(text).unwrap().upstream.place else { panic!() };
        assert_eq!(url.to_string(), "http://a:1/mcp");
        assert_eq!(fields, [("Authorization".into(), "Bearer s3cret".into())]);
    }

    #[test]
    fn mistakes_are_named_and_secrets_are_not() {
        let server = |members: &str| format!(r#"{{"mcpServers":{{"s":{{{members}}}}}}}"#);
        for (text, part) in [
            ("{\n  \"mcpServers\": {,}\n}".to_string(), "line 2 column 18"),
            ("[]".to_string(), "must hold an object"),
            ("{}".to_string(), "no \"mcpServers\""),
            (r#"{"mcpServers":{},"servers":{}}"#.to_string(), "both"),
            (r#"{"mcpServers":{}}"#.to_string(), "no enabled server"),
            (r#"{"mcpServers":{"s":"s3cret"}}"#.to_string(), "mcpServers.s must be an object"),
            (
                r#"{"mcpServers":{"b":{"command":"x"},"a":{"command":"x"}}}"#.to_string(),
                "2 enabled servers (a, b)",
            ),
            (server(""), "neither"),
            (server(r#""command":"a","url":"b""#), "both"),
            (server(r#""command":"""#), "mcpServers.s.command is empty"),
            (server(r#""command":["s3cret"]"#), "mcpServers.s.command must be a string"),
            (server(r#""command":"a","args":"s3cret""#), "mcpServers.s.args must be an array"),
            (server(r#""command":"a","args":["x",7]"#), "mcpServers.s.args[1] must be a string"),
            (server(r#""command":"a","env":{"K":8}"#), "mcpServers.s.env.K must be a string"),
            (
                server(r#""command":"a","env":{"K":"${NONE}"}"#),
                "mcpServers.s.env.K: the environment variable NONE is not set",
            ),
            (server(r#""command":"a","env":{"K=":"s3cret"}"#), "variable's name"),
            (server(r#""command":"a\u0000""#), "NUL"),
            (server(r#""command":"a","cwd":"/no/such/place""#), "mcpServers.s.cwd"),
            (server(r#""command":"a","disabled":"yes""#), "mcpServers.s.disabled"),
            (server(r#""url":"ftp://a/?k=s3cret""#), "neither http nor https"),
            (server(r#""url":"https://a/","tls":{"cert":"c"}"#), "both \"cert\" and \"key\""),
            (server(r#""url":"https://a/","tls":{"insecure":1}"#), "tls.insecure must be true"),
            (server(r#""url":"https://a/","tls":"s3cret""#), "tls must be an object"),
            (server(r#""url":"http://u:s3cret@a/""#), "user name or password"),
            (server(r#""url":"http://a/","protocol":"2025""#), "s.protocol must be auto"),
            (server(r#""command":"a","start":"now""#), "s.start must be lazy"),
            (server(r#""command":"a","timeout":0"#), "s.timeout must be a number"),
            (server(r#""command":"a","maxTimeout":"9""#), "s.maxTimeout must be a number"),
            (server(r#""url":"http://a/","headers":{"A b":"s3cret"}"#), "header's name"),
            (
                server(r#""url":"http://a/","headers":{"A":"${BREAK}"}"#),
                "headers.A has a line break",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains("s3cret") && !error.contains('\n'), "{text}: {error}");
        }
    }
}
