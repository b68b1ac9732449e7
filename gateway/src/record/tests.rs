use std::path::{Path, PathBuf};

use mcpx_core::driver::{Action, ConnId, ExitStatus, Input, ListenerId, Machine};
use mcpx_core::gateway::{self, Gateway};
use mcpx_core::time::Instant;

use super::entry::Entry;
use super::log::{Log, Options, Recorded};
use super::replay::Again;
use super::settings::Settings;
use super::transcript::{self, Out};
use crate::args::{Common, Runtime, Source};
use crate::demo::Demo;
use crate::listen::Door;
use crate::setup::Setup;
use crate::upstream::{self, Upstreams};
use crate::{access, config};

const TOKEN: &str = "a-t0ken-of-s3cret-length";
const SEED: [u8; 32] = [3; 32];

/// A file that is gone afterwards.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let name = format!("mcpx-{}-{name}.jsonl", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn options(&self) -> Options {
        Options { path: self.0.clone(), limit: Options::LIMIT, secrets: false }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn common(source: Source) -> Common {
    Common { source, runtime: Runtime::default(), protocol: None, expose: None, quiet: false }
}

fn setup() -> Setup {
    let access =
        access::Options { origins: vec!["https://a.example".into()], ..Default::default() };
    let doors = vec![Door::Http("127.0.0.1:8808".into()), Door::Ndjson];
    Setup { doors, access, tokens: vec![TOKEN.into()] }
}

fn upstreams(document: &str) -> Upstreams {
    let lookup = |name: &str| Ok(format!("s3cret-{name}"));
    Upstreams::from(config::read(document.as_bytes(), &lookup).unwrap())
}

/// A machine at work, and all that it did.
struct Work<M> {
    recorded: Recorded<M>,
    now: u64,
    done: Vec<String>,
}

impl<M: Machine> Work<M> {
    fn new(machine: M, log: Log) -> Self {
        Self { recorded: Recorded::new(machine, Some(log)), now: 0, done: Vec::new() }
    }

    fn give(&mut self, input: Input<'_>) {
        self.now += 10;
        let now = Instant::from_micros(self.now);
        self.recorded.handle(now, input);
        let mut full = Vec::new();
        loop {
            while let Some(action) = self.recorded.poll() {
                match action {
                    Action::Flush(conn) => full.push(conn),
                    other => self.done.push(transcript::json(now, &Out::Did(&other))),
                }
            }
            let Some(conn) = full.pop() else { break };
            self.write(now, conn);
        }
    }

    /// In pieces.
    fn write(&mut self, now: Instant, conn: ConnId) {
        while !self.recorded.outgoing(conn).is_empty() {
            let bytes = self.recorded.outgoing(conn);
            let bytes = bytes[..bytes.len().div_ceil(2)].to_vec();
            self.done.push(transcript::json(now, &Out::Wrote(conn, &bytes)));
            self.recorded.sent(now, conn, bytes.len());
        }
    }
}

/// What a new machine makes of a recording.
fn again(recording: &str) -> Vec<String> {
    let mut lines = recording.lines();
    let mut again = Again::new(Settings::read(lines.next().unwrap()).unwrap()).unwrap();
    let mut all = Vec::new();
    for entry in lines.map(|line| Entry::read(line).unwrap()) {
        let at = entry.at;
        let told = again.happen(entry, |out| {
            all.push(transcript::json(at, &out));
            Ok(())
        });
        told.unwrap().unwrap();
    }
    assert_eq!(again.strayed, 0);
    all
}

fn post(token: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost:8808\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;

#[test]
fn the_built_in_server_does_the_same_again_without_the_secrets() {
    let file = Temporary::new("demo");
    let (setup, common) = (setup(), common(Source::Demo));
    let log = Log::new(&file.options(), SEED, &setup, None, &common).unwrap();
    let mut work = Work::new(Demo::new(setup.endpoint().unwrap(), SEED), log);
    let (first, second) = (ConnId::accepted(1), ConnId::accepted(2));
    let from = "127.0.0.1".parse().ok();
    work.give(Input::Accepted { conn: first, listener: ListenerId(0), from });
    // The token arrives in pieces.
    for piece in post(TOKEN, INITIALIZE).as_bytes().chunks(7) {
        work.give(Input::Received { conn: first, bytes: piece });
    }
    work.give(Input::Accepted { conn: second, listener: ListenerId(0), from });
    let wrong = post("another-t0ken-of-length", INITIALIZE);
    work.give(Input::Received { conn: second, bytes: wrong.as_bytes() });
    work.give(Input::Finished { conn: second });
    work.give(Input::Tick);
    work.give(Input::Stop);
    let (done, recording) = (work.done, file.text());
    assert!(done.iter().any(|line| line.contains("HTTP/1.1 200 OK")), "{done:?}");
    assert!(done.iter().any(|line| line.contains("HTTP/1.1 401")), "{done:?}");
    assert!(!recording.contains("t0ken"), "{recording}");
    // Headers that we write are the same, down to the session.
    assert_eq!(again(&recording), done);
}

#[test]
fn a_gateway_does_the_same_again_and_its_configuration_is_hidden() {
    let file = Temporary::new("gateway");
    let document = r#"{"mcpServers": {
        "a": {"command": "run-a", "args": ["--key", "${KEY}"], "env": {"K": "${KEY}", "L": "s3cret-l"}, "cwd": "/"},
        "b": {"url": "http://b.example/mcp?key=s3cret-q", "headers": {"X-Key": "s3cret-h"}}}}"#;
    let later = r#"{"mcpServers": {"a": {"command": "run-a"}}}"#;
    let source = Source::Config(Path::new("servers.json").into());
    let (setup, common, found) = (setup(), common(source), upstreams(document));
    let log = Log::new(&file.options(), SEED, &setup, Some(&found), &common).unwrap();
    let config = gateway::Config::of(found.servers(), setup.endpoint().unwrap());
    let mut work = Work::new(Gateway::new(config, SEED), log);
    let host = ConnId::accepted(1);
    work.give(Input::Accepted { conn: host, listener: ListenerId(1), from: None });
    let list = INITIALIZE.to_owned() + "\n";
    work.give(Input::Received { conn: host, bytes: list.as_bytes() });
    let child = work.done.iter().find(|line| line.contains("spawn")).unwrap();
    assert!(child.contains("run-a"), "{child}");
    let conns: Vec<ConnId> = (1..9).map(ConnId::requested).collect();
    let child =
        *conns.iter().find(|conn| !work.recorded.outgoing(**conn).is_empty()).unwrap_or(&conns[0]);
    work.give(Input::Stderr { conn: child, bytes: b"oh\n" });
    work.give(Input::Exited { conn: child, status: ExitStatus::Code(1) });
    // Its file is looked at when time passes.
    let then = Instant::from_micros(work.now + 10);
    work.recorded.configure(then, upstreams(later));
    work.give(Input::Tick);
    work.give(Input::Stop);
    let recording = file.text();
    assert!(!recording.contains("s3cret"), "{recording}");
    for kept in ["run-a", "--key", "http://b.example/mcp?redacted", "X-Key", "configured"] {
        assert!(recording.contains(kept), "{kept}: {recording}");
    }
    // What the servers are sent differs by what is hidden, and by nothing else.
    let hide = |lines: Vec<String>| -> Vec<String> {
        let hide = |line: String| line.replace("s3cret-KEY", "redacted");
        lines.into_iter().map(hide).filter(|line| !line.contains("b.example")).collect()
    };
    assert_eq!(hide(again(&recording)), hide(work.done));
}

#[test]
fn a_recording_grows_no_larger_than_it_may() {
    let file = Temporary::new("limit");
    let (setup, common) = (setup(), common(Source::Demo));
    let options = Options { limit: 2000, ..file.options() };
    let log = Log::new(&options, SEED, &setup, None, &common).unwrap();
    let mut work = Work::new(Demo::new(setup.endpoint().unwrap(), SEED), log);
    for _ in 0..200 {
        work.give(Input::Tick);
    }
    let recording = file.text();
    assert!(recording.len() < 2100 && recording.ends_with("\"cut\":\"the file is full\"}\n"));
    again(&recording);
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = Temporary::new("mode");
    std::fs::write(&file.0, "before").unwrap();
    Log::new(&file.options(), SEED, &setup(), None, &common(Source::Demo)).unwrap();
    let mode = std::fs::metadata(&file.0).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn settings_are_read_again() {
    let file = Temporary::new("settings");
    for (source, secrets) in [
        (Source::Url("http://h.example/mcp?k=s3cret".into()), false),
        (Source::Url("http://h.example/mcp?k=s3cret".into()), true),
        (Source::Command { program: "run".into(), args: vec!["-x".into()] }, false),
    ] {
        let common = common(source);
        let found = upstream::find(&common).unwrap();
        let options = Options { secrets, ..file.options() };
        Log::new(&options, SEED, &setup(), Some(&found), &common).unwrap();
        let text = file.text();
        assert_eq!(text.contains("s3cret"), secrets, "{text}");
        let read = Settings::read(text.trim_end()).unwrap();
        assert_eq!((read.seed, read.setup.doors), (SEED, setup().doors));
        assert_eq!(read.upstreams.unwrap().all.len(), 1);
    }
    for (line, part) in [
        ("", "not JSON"),
        ("{}", "no recording"),
        (r#"{"recording":2}"#, "its format is 2"),
        (r#"{"recording":1,"seed":"00"}"#, "its seed"),
    ] {
        let Err(why) = Settings::read(line) else { panic!("{line}") };
        assert!(why.contains(part), "{line}: {why}");
    }
}
