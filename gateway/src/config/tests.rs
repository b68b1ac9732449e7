use std::env::VarError;
use std::time::Duration;

use mcpx_core::client::Place;
use mcpx_core::client::probe::Protocol;
use mcpx_core::driver;
use mcpx_core::gateway::{self, Instances};

use super::file::{self, Read};
use crate::tls;

fn lookup(name: &str) -> Result<String, VarError> {
    match name {
        "KEY" => Ok("s3cret".into()),
        "BREAK" => Ok("s3cret\n".into()),
        _ => Err(VarError::NotPresent),
    }
}

fn read(text: &str) -> Result<Read, String> {
    file::read(text.as_bytes(), &lookup)
}

/// The only server.
fn one(text: &str) -> gateway::Server {
    read(text).unwrap().upstreams.pop().unwrap().server
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
    assert_eq!(read.unwrap().upstreams[0].tls, expected);
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
    assert_eq!(read.upstreams[0].server.name, "on");
    assert_eq!(read.warnings.len(), 1);
    assert!(read.warnings[0].starts_with("mcpServers.on.autoApprove "));
    let Place::Process(command) = read.upstreams.into_iter().next().unwrap().server.place else {
        panic!()
    };
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
        let mut read = read(&text).unwrap();
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        read.upstreams.remove(0).server
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
    assert_eq!(server.limits.idle, Duration::from_secs(600));
    assert!(server.instances == Instances::Shared && server.roots.is_empty());
    let server = read(r#", "instances": "token", "roots": ["file:///a"], "idle": 30"#);
    assert!(server.instances == Instances::PerToken && server.roots == ["file:///a"]);
    assert_eq!(server.limits.idle, Duration::from_secs(30));
    assert_eq!(read(r#", "protocol": "2026-07-28""#).protocol, Protocol::Modern);
}

#[test]
fn a_url_is_read() {
    let text = r#"{"servers": {"r": {"type": "http", "url": "http://a:1/mcp",
                   "headers": {"Authorization": "Bearer ${KEY}"}}}}"#;
    let Place::Url { url, fields } = one(text).place else { panic!() };
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
            r#"{"mcpServers":{"a.b":{"command":"x"},"a_b":{"command":"x"}}}"#.to_string(),
            "\"a.b\" and \"a_b\" would look the same",
        ),
        (
            r#"{"mcpServers":{"a":{"command":"x"}},"names":{"prefix":"s3cret"}}"#.to_string(),
            "names.prefix must be",
        ),
        (
            r#"{"mcpServers":{"a":{"command":"x"}},"names":{"separator":":"}}"#.to_string(),
            "names.separator must be",
        ),
        (
            r#"{"mcpServers":{"a":{"command":"x"}},"expose":"s3cret"}"#.to_string(),
            "expose must be all or search",
        ),
        (server(r#""command":"a","tools":{"allow":"s3cret"}"#), "s.tools.allow must be an array"),
        (server(r#""command":"a","tools":{"alias":{"a":"b c"}}"#), "hosts do not accept"),
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
        (server(r#""command":"a","instances":"s3cret""#), "s.instances must be shared or token"),
        (server(r#""command":"a","roots":["s3cret"]"#), "s.roots[0] must be a URI that begins"),
        (server(r#""command":"a","idle":-1"#), "s.idle must be a number"),
        (server(r#""command":"a","timeout":0"#), "s.timeout must be a number"),
        (server(r#""command":"a","maxTimeout":"9""#), "s.maxTimeout must be a number"),
        (server(r#""url":"http://a/","headers":{"A b":"s3cret"}"#), "header's name"),
        (server(r#""url":"http://a/","headers":{"A":"${BREAK}"}"#), "headers.A has a line break"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains("s3cret") && !error.contains('\n'), "{text}: {error}");
    }
}
