//! The program from outside: what it prints, where, and how it exits.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// A legacy server in a shell, whose ids are those that we send.
const SERVER: &str = r#"
echo "ready, $NAME" >&2
while read -r line; do
    id=${line#*'"id":'}; id=${id%%,*}
    result=; error=
    case $line in
    *'"method":"initialize"'*)
        result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*)
        result='{"tools":[{"name":"say","description":"Says it.\nTwice."},{"name":"break-it","title":"Breaks"}]}' ;;
    *'"name":"say"'*)
        text=${line#*'"text":"'}; text=${text%%'"'*}
        result='{"content":[{"type":"text","text":"'$text'"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}' ;;
    *'"name":"break-it"'*)
        result='{"content":[{"type":"text","text":"broken"}],"isError":true}' ;;
    *'"name":"quit"'*) exit 9 ;;
    *'"method":"notifications/'*) continue ;;
    *) error='{"code":-32601,"message":"no such thing"}' ;;
    esac
    if [ "$result" ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    else
        printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$error"
    fi
done
"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A folder for one test, gone when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        // Short: paths of sockets have little room.
        let path = std::env::temp_dir().join(format!("mcpx-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Done {
    code: i32,
    out: String,
    err: String,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
    command.args(args).env("NAME", "sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program until it ends by itself.
fn run(args: &[&str], input: &str) -> Done {
    let mut child = command(args).spawn().unwrap();
    // It may well not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code().expect("ended by a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The same, with the server of this test behind it.
fn with_server(args: &[&str], input: &str) -> Done {
    let all: Vec<&str> = args.iter().copied().chain(["--", "sh", "-c", SERVER]).collect();
    run(&all, input)
}

#[track_caller]
fn assert_fails(done: &Done, code: i32, part: &str) {
    assert_eq!((done.code, done.out.as_str()), (code, ""), "{}", done.err);
    assert!(done.err.starts_with("mcpx: "), "{}", done.err);
    assert!(done.err.contains(part), "{part} is not in: {}", done.err);
}

/// A daemon that is killed when the test ends.
struct Daemon {
    child: Child,
    err: BufReader<ChildStderr>,
    /// What follows `listening on`.
    places: Vec<String>,
}

impl Daemon {
    fn start(args: &[&str], places: usize) -> Self {
        let all: Vec<&str> = ["daemon"].into_iter().chain(args.iter().copied()).collect();
        let mut child = command(&all).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let mut daemon = Self { child, err, places: Vec::new() };
        while daemon.places.len() < places {
            let mut line = String::new();
            assert_ne!(daemon.err.read_line(&mut line).unwrap(), 0, "it did not start");
            let place = line.trim_end().strip_prefix("listening on ");
            daemon.places.push(place.unwrap_or_else(|| panic!("{line}")).to_string());
        }
        daemon
    }

    /// Ends it as a service manager does. Returns the exit code and the rest of
    /// what it said.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn help_is_on_standard_output() {
    for (args, part) in [
        (&["--help"][..], "Exit codes:"),
        (&["-h"], "mcpx daemon"),
        (&["help"], "mcpx daemon"),
        (&["help", "daemon"], "--listen"),
        (&["daemon", "--help"], "mcpServers"),
        (&["serve", "--help"], "standard input"),
        (&["call", "-h"], "--json"),
        (&["help", "ls"], "mcpx ls"),
        (&["--version"], concat!("mcpx ", env!("CARGO_PKG_VERSION"), "\n")),
    ] {
        let done = run(args, "");
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{args:?}");
        assert!(done.out.contains(part), "{args:?}: {}", done.out);
    }
}

#[test]
fn bad_usage_is_one_sentence_and_code_2() {
    for (args, part) in [
        (&[][..], "mcpx --help"),
        (&["frob"], "`frob`"),
        (&["--frob"], "--frob"),
        (&["daemon"], "which server?"),
        (&["serve", "--demo", "--url", "http://a/"], "more than one server"),
        (&["serve", "--url", "ftp://a/"], "neither http nor https"),
        (&["serve", "--url", "a:80"], "https://HOST/PATH"),
        (&["serve", "--config", "/no/such/file"], "/no/such/file"),
        (&["daemon", "--listen", "8808", "--", "x"], "--listen 8808: write HOST:PORT"),
        (&["daemon", "--listen", "0.0.0.0:0", "--", "x"], "--insecure"),
        (&["daemon", "--listen", "ndjson+tcp:[::]:0", "--", "x"], "--insecure"),
        (&["call", "--", "x"], "which tool?"),
        (&["call", "t", "{", "--", "x"], "not JSON"),
        (&["call", "t", "[]", "--", "x"], "no object"),
        (&["call", "t", "@/no/such/file", "--", "x"], "/no/such/file"),
    ] {
        let done = run(args, "");
        assert_fails(&done, 2, part);
        assert_eq!(done.err.lines().count(), 1, "{args:?}: {}", done.err);
    }
}

#[test]
fn bad_configuration_is_explained_without_secrets() {
    let folder = Folder::new("conf");
    for (text, part) in [
        ("{\n  \"mcpServers\": {,}\n}", "line 2 column 18"),
        ("{}", "mcpServers"),
        (r#"{"mcpServers":{"a b":{"command":"x"},"a_b":{"url":"http://b/"}}}"#, "rename one"),
        (r#"{"mcpServers":{"a":{"command":"x","disabled":true}}}"#, "no enabled server"),
        (
            r#"{"mcpServers":{"a":{"command":"x","env":{"K":"s3cret${MCPX_NOT_SET}"}}}}"#,
            "mcpServers.a.env.K: the environment variable MCPX_NOT_SET",
        ),
        (r#"{"mcpServers":{"a":{"url":"http://a/","headers":{"K":["s3cret"]}}}}"#, "headers.K"),
        (r#"{"mcpServers":{"a":{"url":"ftp://s3cret/"}}}"#, "neither http nor https"),
    ] {
        let path = folder.file("c.json", text);
        let done = run(&["ls", "--config", &path], "");
        assert_fails(&done, 2, part);
        assert!(done.err.contains(&path), "{}", done.err);
        assert!(!done.err.contains("s3cret"), "{}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    }
}

#[test]
fn a_configuration_starts_its_server() {
    let folder = Folder::new("good");
    let mut script = String::new();
    for char in SERVER.chars() {
        match char {
            '"' | '\\' => script.extend(['\\', char]),
            '\n' => script.push_str("\\n"),
            char => script.push(char),
        }
    }
    // The shell's own ${...#...} and ${...%%...} are none of ours.
    let text = format!(
        "\u{feff}{{\"mcpServers\": {{\"off\": {{\"disabled\": true}}, \"shell\": {{
            \"type\": \"stdio\", \"command\": \"sh\", \"args\": [\"-c\", \"{script}\"],
            \"env\": {{\"NAME\": \"${{MCPX_NONE:-from the file}}\"}}, \"icon\": \"x\"}}}}}}"
    );
    let path = folder.file("c.json", &text);
    let done = run(&["call", "say", r#"{"text":"hi"}"#, "-c", &path], "");
    assert_eq!((done.code, done.out.as_str()), (0, "hi\n[image: image/png, 3 bytes]\n"));
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(lines[0].contains("mcpServers.shell.icon is not known here"), "{}", done.err);
    assert_eq!(lines[1..], ["mcpx: [shell] ready, from the file"]);
}

#[test]
fn results_of_calls_are_printed() {
    for runtime in ["mio", "blocking"] {
        let say = |arguments: &str, input: &str| {
            let args = ["call", "--quiet", "--runtime", runtime, "say", arguments];
            with_server(&args, input)
        };
        let expected = "hi\n[image: image/png, 3 bytes]\n";
        let done = say(r#"{"text":"hi"}"#, "");
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, expected, ""));
        let done = say("-", r#" {"text":"hi"} "#);
        assert_eq!((done.code, done.out.as_str()), (0, expected), "{}", done.err);
    }
    let folder = Folder::new("args");
    let file = format!("@{}", folder.file("a.json", r#"{"text":"hi"}"#));
    let done = with_server(&["call", "--json", "say", &file], "");
    let expected = r#"{"content":[{"type":"text","text":"hi"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#;
    assert_eq!((done.code, done.out.trim_end()), (0, expected));
    assert_eq!(done.err, "mcpx: [sh] ready, sh\n");
}

#[test]
fn failed_calls_have_codes_of_their_own() {
    let done = with_server(&["call", "-q", "break-it"], "");
    assert_eq!((done.code, done.out.as_str()), (3, "broken\n"));
    assert_eq!(done.err, "mcpx: sh: the tool break-it reported an error\n");
    assert_fails(&with_server(&["call", "-q", "none"], ""), 1, "no such thing (-32601)");
    assert_fails(&with_server(&["call", "-q", "quit"], ""), 1, "it exited with code 9");
    assert_fails(&run(&["ls", "--", "/no/such/program"], ""), 1, "was not found");
}

#[test]
fn lists_are_aligned() {
    let done = with_server(&["ls", "-q"], "");
    let expected = "tool  say       Says it.\ntool  break-it  Breaks\n";
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, expected, ""));
    let done = with_server(&["ls", "-q", "--json"], "");
    let expected = r#"{"tools":[{"name":"say","description":"Says it.\nTwice."},{"name":"break-it","title":"Breaks"}],"resources":[],"resourceTemplates":[],"prompts":[]}"#;
    assert_eq!((done.code, done.out.trim_end()), (0, expected));
}

#[test]
fn the_built_in_server_is_there_to_try() {
    for runtime in ["mio", "blocking"] {
        let demo = ["--demo", "--runtime", runtime];
        let with_demo = |args: &[&str]| run(&[args, &demo[..]].concat(), "");
        let done = with_demo(&["call", "add", r#"{"a": 2, "b": 3}"#]);
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "{\"sum\":5}\n", ""));
        let done = with_demo(&["ls"]);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        for kind in ["tool ", "resource ", "template ", "prompt "] {
            assert!(done.out.lines().any(|line| line.starts_with(kind)), "{kind}: {}", done.out);
        }
        let done = with_demo(&["call", "no-such-tool"]);
        assert_ne!(done.code, 0, "{}", done.out);

        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let args = [&["serve"], &demo[..]].concat();
        let done = run(&args, &format!("{INITIALIZE}\n{list}\n"));
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert_eq!(done.out.lines().count(), 2, "{}", done.out);
        assert!(done.out.contains(r#""name":"add""#), "{}", done.out);

        let args = [&["-l", "127.0.0.1:0"], &demo[..]].concat();
        let daemon = Daemon::start(&args, 1);
        let url = daemon.places[0].clone();
        let done = run(&["call", "echo", r#"{"message":"hi"}"#, "--url", &url], "");
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "Echo: hi\n", ""));
        assert_eq!(daemon.stop(), (Some(0), String::new()));
    }
}

#[test]
fn an_interrupted_call_says_so() {
    // The server reports that it was asked, and never answers.
    let script = "while read -r line; do echo asked >&2; done";
    let mut child = command(&["ls", "--", "sh", "-c", script]).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert_eq!(line, "mcpx: [sh] asked\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    line.clear();
    err.read_to_string(&mut line).unwrap();
    assert_eq!((child.wait().unwrap().code(), line.as_str()), (Some(130), "mcpx: interrupted\n"));
}

#[test]
fn serving_ends_with_standard_input() {
    for runtime in ["mio", "blocking"] {
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let input = format!("{INITIALIZE}\n{list}\n");
        let done = with_server(&["serve", "--runtime", runtime], &input);
        let lines: Vec<&str> = done.out.lines().collect();
        assert_eq!((done.code, lines.len()), (0, 2), "{} {}", done.out, done.err);
        assert!(lines[0].contains(r#""id":"i","result""#), "{}", lines[0]);
        assert!(lines[1].contains(r#""name":"break-it""#), "{}", lines[1]);
        assert_eq!(done.err, "mcpx: [sh] ready, sh\n");
        let done = with_server(&["serve", "--runtime", runtime], "");
        assert_eq!((done.code, done.out.as_str()), (0, ""));
    }
}

/// However much it is, it is read, and none of it gets among the messages.
#[test]
fn std_03_servers_may_say_what_they_like_on_standard_error() {
    const LOUD: &str = "yes é 2>/dev/null | head -c 1000000 >&2; ";
    for runtime in ["mio", "blocking"] {
        let script = format!("{LOUD}{SERVER}");
        let args = ["serve", "--quiet", "--runtime", runtime, "--", "sh", "-c", script.as_str()];
        let done = run(&args, &format!("{INITIALIZE}\n"));
        assert_eq!((done.code, done.out.lines().count()), (0, 1), "{} {}", done.out, done.err);
        assert!(done.out.contains(r#""id":"i","result""#), "{}", done.out);
    }
}

#[test]
fn serving_goes_on_when_its_server_ends() {
    let ask = |id, method: &str, params: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
    };
    let mut child = command(&["serve", "--", "sh", "-c", SERVER]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut heard = |text: &str| {
        input.write_all(text.as_bytes()).unwrap();
        output.next().unwrap().unwrap()
    };
    assert!(heard(&format!("{INITIALIZE}\n")).contains("\"result\""));
    for id in [2, 4] {
        let failed = heard(&ask(id, "tools/call", r#"{"name":"quit"}"#));
        assert!(failed.contains("\"error\"") && failed.contains("ready, sh"), "{failed}");
        let listed = heard(&ask(id + 1, "tools/list", "{}"));
        assert!(listed.contains(r#""name":"break-it""#), "{listed}");
    }
    drop(input);
    let done = child.wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{err}");
    assert!(err.contains("code 9"), "{err}");
}

#[test]
fn servers_behind_sockets_are_reached() {
    let folder = Folder::new("sockets");
    let path = folder.path("s");
    let unix = format!("ndjson+unix:{path}");
    let args = ["--demo", "--listen", &unix, "--listen", "ndjson+tcp:127.0.0.1:0"];
    let daemon = Daemon::start(&args, 2);
    for place in daemon.places.clone() {
        for runtime in ["mio", "blocking"] {
            let args = ["call", "add", r#"{"a":1,"b":2}"#, "--runtime", runtime, "--url", &place];
            let done = run(&args, "");
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{place}");
            assert!(done.out.contains("{\"sum\":3}"), "{}", done.out);
            let done = run(&["serve", "--url", &place], &format!("{INITIALIZE}\n"));
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{place}");
            assert!(done.out.contains("\"id\":\"i\",\"result\""), "{}", done.out);
        }
    }
    drop(daemon);
    assert_fails(&run(&["ls", "--url", &unix], ""), 1, &path);
    assert_fails(&run(&["ls", "--url", "ndjson+http://a"], ""), 2, "ndjson+tcp:HOST:PORT");
}

/// A server that ignores the end of its standard input.
#[cfg(target_os = "linux")]
#[test]
fn no_server_outlives_a_killed_gateway() {
    for runtime in ["mio", "blocking"] {
        let folder = Folder::new(&format!("orphan-{runtime}"));
        let file = folder.path("pid");
        let server = format!("echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000");
        let args = ["serve", "--runtime", runtime, "--", "sh", "-c", &server];
        let mut child = command(&args).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(format!("{INITIALIZE}\n").as_bytes()).unwrap();
        let soon = |what: &str, done: &dyn Fn() -> bool| {
            let waited = (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                done()
            });
            assert!(waited, "{what}");
        };
        soon("it starts", &|| fs::exists(&file).unwrap());
        let pid = fs::read_to_string(&file).unwrap().trim().to_string();
        child.kill().unwrap();
        child.wait().unwrap();
        // A zombie is not alive: whoever adopts it may take its time.
        soon("it ends", &|| match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        });
    }
}

#[test]
fn port_0_is_told_and_works() {
    for runtime in ["mio", "blocking"] {
        let server = ["--", "sh", "-c", SERVER];
        let args = ["--runtime", runtime, "-q", "--listen", "localhost:0"];
        let args: Vec<&str> = args.into_iter().chain(server).collect();
        let daemon = Daemon::start(&args, 1);
        let url = daemon.places[0].clone();
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp"));
        assert!(port.unwrap().parse::<u16>().is_ok_and(|port| port != 0), "{url}");
        let done = run(&["call", "say", r#"{"text":"hi"}"#, "--url", &url], "");
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{runtime}");
        assert!(done.out.starts_with("hi\n"), "{}", done.out);
        assert_eq!(daemon.stop().0, Some(0));
    }
}

/// A configuration file with servers of our own program.
fn demos(names: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_mcpx");
    let servers: Vec<String> = names
        .iter()
        .map(|name| format!(r#""{name}":{{"command":"{program}","args":["serve","--demo"]}}"#))
        .collect();
    format!(r#"{{"mcpServers":{{{}}}}}"#, servers.join(","))
}

#[test]
fn several_servers_are_one() {
    let folder = Folder::new("several");
    let path = folder.file("c.json", &demos(&["one", "two"]));
    let all = run(&["ls", "--config", &path], "");
    assert_eq!(all.code, 0, "{}", all.err);
    let first = all.out.find("one__echo").unwrap();
    assert!(all.out.find("two__echo").unwrap() > first, "{}", all.out);
    let call = ["call", "two__echo", r#"{"message":"hi"}"#, "--config", &path];
    assert_eq!(run(&call, "").out, "Echo: hi\n");
    let unknown = run(&["call", "echo", "--config", &path], "");
    assert_fails(&unknown, 1, "Unknown tool: echo");
    let few = run(&["ls", "--expose", "search", "--config", &path], "");
    assert!(few.out.contains("mcpx_search") && !few.out.contains("__echo"), "{}", few.out);
    let inner = r#"{"name":"one__add","arguments":{"a":2,"b":3}}"#;
    let call = ["call", "mcpx_call", inner, "--expose", "search", "--config", &path];
    assert!(run(&call, "").out.contains('5'));
    assert_fails(&run(&["ls", "--expose", "x", "--demo"], ""), 2, "--expose x");
}

#[test]
fn a_changed_configuration_is_read_again() {
    for runtime in ["mio", "blocking"] {
        let folder = Folder::new(&format!("again-{runtime}"));
        let path = folder.file("c.json", &demos(&["one"]));
        let args = ["--runtime", runtime, "-q", "--listen", "127.0.0.1:0", "--config", &path];
        let mut daemon = Daemon::start(&args, 1);
        let url = daemon.places[0].clone();
        let next = |daemon: &mut Daemon, part: &str| loop {
            let mut line = String::new();
            assert_ne!(daemon.err.read_line(&mut line).unwrap(), 0, "{part}");
            if line.contains(part) {
                break;
            }
        };
        assert!(run(&["ls", "--url", &url], "").out.contains("tool      echo"));
        folder.file("c.json", &demos(&["one", "three"]));
        next(&mut daemon, "read again: 2 servers");
        let listed = run(&["ls", "--url", &url], "").out;
        assert!(listed.contains("one__echo") && listed.contains("three__echo"), "{listed}");
        folder.file("c.json", "{");
        next(&mut daemon, "all stays as it was");
        let call = ["call", "three__echo", r#"{"message":"hi"}"#, "--url", &url];
        assert_eq!(run(&call, "").out, "Echo: hi\n");
        folder.file("c.json", &demos(&["three"]));
        next(&mut daemon, "read again: 1 servers");
        let pid = rustix::process::Pid::from_child(&daemon.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        next(&mut daemon, "read again: 1 servers");
        let listed = run(&["ls", "--url", &url], "").out;
        assert!(listed.contains("tool      echo") && !listed.contains("__"), "{listed}");
        assert_eq!(daemon.stop().0, Some(0));
    }
}

#[test]
fn tokens_are_asked_for() {
    let folder = Folder::new("token");
    let token = "0123456789abcdef0123456789abcdef";
    let file =
        folder.file("tokens", &format!("# for tests\n\n  {token} \nanother-token-of-ours\n"));
    let private = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    private(0o604);
    let done = run(&["daemon", "--demo", "--token-file", &file], "");
    assert_fails(&done, 2, "chmod 600");
    private(0o600);
    for (text, part) in [
        ("# none\n", "no token"),
        ("short", "token 1 is shorter"),
        ("é123456789abcdefgh", "token 1 has"),
    ] {
        let path = folder.file("bad", text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let done = run(&["daemon", "--demo", "--token-file", &path], "");
        assert_fails(&done, 2, part);
        assert!(!done.err.contains("short,") && !done.err.contains("123456789abc"), "{}", done.err);
    }
    let args = ["--demo", "--token-file", &file, "--listen", "0.0.0.0:0"];
    let daemon = Daemon::start(&args, 1);
    let place = daemon.places[0].strip_prefix("http://0.0.0.0:").unwrap();
    let url = format!("http://127.0.0.1:{place}");
    let done = run(&["ls", "--url", &url], "");
    assert_fails(&done, 1, "it wants authorization");
    let config = format!(
        r#"{{"mcpServers":{{"s":{{"url":"{url}","headers":{{"Authorization":"Bearer {token}"}}}}}}}}"#
    );
    let done = run(&["ls", "--config", &folder.file("c.json", &config)], "");
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(daemon.stop().0, Some(0));
}

#[test]
fn all_addresses_are_told() {
    let folder = Folder::new("all");
    let unix = format!("unix:{}", folder.path("h"));
    let ndjson = format!("ndjson+unix:{}", folder.path("n"));
    let tcp = "ndjson+tcp:127.0.0.1:0";
    let listen = ["-l", "127.0.0.1:0", "-l", tcp, "-l", &unix, "-l", &ndjson];
    let args: Vec<&str> = listen.into_iter().chain(["--", "x"]).collect();
    let daemon = Daemon::start(&args, 4);
    assert!(daemon.places[0].starts_with("http://127.0.0.1:"), "{:?}", daemon.places);
    assert!(daemon.places[1].starts_with("ndjson+tcp:127.0.0.1:"), "{:?}", daemon.places);
    assert_eq!(daemon.places[2..], [unix, ndjson]);
}

#[test]
fn a_port_in_use_is_explained() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let done = run(&["daemon", "--listen", &place, "--", "x"], "");
    assert_fails(&done, 1, "choose another port");
    assert!(done.err.contains(&place), "{}", done.err);
}

fn mode(path: &str) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn unix_sockets_are_private_and_leave_nothing_behind() {
    let folder = Folder::new("unix");
    let path = folder.path("s");
    let place = format!("unix:{path}");
    let daemon = Daemon::start(&["-q", "-l", &place, "--", "sh", "-c", SERVER], 1);
    assert_eq!(mode(&path), 0o600);

    // One that is in use is not taken over.
    let done = run(&["daemon", "-l", &place, "--", "x"], "");
    assert_fails(&done, 1, "another program listens there");

    let body = INITIALIZE;
    let mut stream = UnixStream::connect(&path).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.contains("dev.mcpx/serverInfo"), "{response}");

    assert_eq!(daemon.stop(), (Some(0), String::new()));
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_stale_socket_is_replaced_and_a_file_is_not() {
    let folder = Folder::new("stale");
    let path = folder.path("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    let place = format!("ndjson+unix:{path}");
    let daemon = Daemon::start(&["-l", &place, "--", "x"], 1);
    UnixStream::connect(&path).unwrap();
    assert_eq!(mode(&path), 0o600);

    // Whatever has come in its place meanwhile is not ours to remove.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

    let done = run(&["daemon", "-l", &place, "--", "x"], "");
    assert_fails(&done, 1, "not a socket");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let nowhere = format!("unix:{}", folder.path("no/such"));
    assert_fails(&run(&["daemon", "-l", &nowhere, "--", "x"], ""), 1, "create it first");
}
