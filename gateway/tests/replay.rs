//! What `--record` writes down on a real runtime, `mcpx replay` does again.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcpx");

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcpx-replay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mcpx(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn conversation() -> String {
    let info = r#""clientInfo":{"name":"h","version":"1"}"#;
    [
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},{info}}}}}"#),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"method":"nobody/knows"}"#.to_owned(),
        String::new(),
    ]
    .join("\n")
}

fn recorded(runtime: &str) {
    let folder = Folder::new(runtime);
    let (file, said) = (folder.path("recording"), folder.path("said"));
    let args = ["serve", "--runtime", runtime, "--record", &file, "--", PROGRAM, "serve", "--demo"];
    let live = mcpx(&args, &conversation());
    assert!(live.status.success(), "{live:?}");
    let told = String::from_utf8(live.stdout).unwrap();
    assert_eq!(told.lines().count(), 3, "{told}");

    let again = mcpx(&["replay", &file, "--json"], "");
    assert!(again.status.success(), "{again:?}");
    let again = String::from_utf8(again.stdout).unwrap();
    let lines: Vec<Value> = again.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told_again: String = lines
        .iter()
        .filter(|line| line["do"] == "write" && line.get("in").is_some())
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(told_again, told);
    assert!(lines.iter().any(|line| line["do"] == "spawn"), "{again}");

    // Another build would be compared like this.
    std::fs::write(&said, &again).unwrap();
    let same = mcpx(&["replay", &file, "--diff", &said], "");
    assert!(same.status.success() && same.stdout.is_empty(), "{same:?}");
    std::fs::write(&said, again.replace("mcpx", "xpcm")).unwrap();
    let other = mcpx(&["replay", &file, "--diff", &said], "");
    let shown = String::from_utf8(other.stdout).unwrap();
    assert_eq!(other.status.code(), Some(1), "{shown}");
    assert!(shown.contains("\n- {") && shown.contains("\n+ {"), "{shown}");

    let read = mcpx(&["replay", &file], "");
    let read = String::from_utf8(read.stdout).unwrap();
    for part in ["host 1", "server 1   - is started: ", "> {\"jsonrpc\"", "< {\"jsonrpc\""] {
        assert!(read.contains(part), "{part}: {read}");
    }
    let none = mcpx(&["replay", &file, "--until", "0"], "");
    assert!(none.stdout.len() < read.len());
}

#[test]
fn a_recording_of_mio_replays() {
    recorded("mio");
}

#[test]
fn a_recording_of_blocking_replays() {
    recorded("blocking");
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Folder::new("none");
    let file = folder.path("file");
    std::fs::write(&file, "{}\n").unwrap();
    let refused = mcpx(&["replay", &file], "");
    let why = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(why.contains("line 1: it is no recording of mcpx"), "{why}");
}
