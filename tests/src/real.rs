//! The program itself on one of its runtimes, with real sockets and processes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use crate::net::{Door, LineId, Net, Upstream};

/// Nothing takes this long, unless it never happens.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes read at a time.
const PIECE: usize = 1 << 16;

/// A gateway process, and what is behind it.
pub struct Real {
    gateway: Child,
    server: Option<Child>,
    folder: PathBuf,
    ports: BTreeMap<&'static str, String>,
    stdio: Option<LineId>,
    lines: BTreeMap<LineId, Line>,
    heard: Receiver<(LineId, Heard)>,
    hears: Sender<(LineId, Heard)>,
    opened: u64,
}

enum Heard {
    Bytes(Vec<u8>),
    End,
}

struct Line {
    writer: Writer,
    gate: Arc<Gate>,
    inbox: Vec<u8>,
    ended: bool,
}

enum Writer {
    Tcp(TcpStream),
    Unix(UnixStream),
    Pipe(Option<ChildStdin>),
}

/// Keeps a reader from reading.
#[derive(Default)]
struct Gate {
    held: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn hold(&self, held: bool) {
        if let Ok(mut now) = self.held.lock() {
            *now = held;
        }
        self.changed.notify_all();
    }

    fn pass(&self) {
        if let Ok(held) = self.held.lock() {
            drop(self.changed.wait_while(held, |held| *held));
        }
    }
}

/// A program of this workspace, which stands beside the tests.
pub fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("where the tests are");
    let folder = tests.ancestors().nth(2).expect("the folder of the build").to_owned();
    let path = folder.join(name);
    if name == "mcpx" {
        // Tests of this package alone do not build it.
        static BUILT: Once = Once::new();
        BUILT.call_once(|| {
            if !path.exists() {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let done = Command::new(cargo).args(["build", "-p", "mcpx"]).status();
                assert!(done.is_ok_and(|status| status.success()), "mcpx cannot be built");
            }
        });
    }
    assert!(path.exists(), "{} is not built: cargo test --workspace builds it", path.display());
    path
}

fn spawn(command: &mut Command) -> Child {
    let (input, output) = (Stdio::piped(), Stdio::piped());
    let child = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn();
    child.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// The address in a line that says where somebody listens.
fn listening(errors: &mut impl BufRead) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        let n = errors.read_line(&mut line).unwrap_or(0);
        assert!(n > 0, "it ended before it listened");
        if let Some(address) = line.trim_end().strip_prefix("listening on ") {
            return address.to_owned();
        }
    }
}

/// Reads what nobody wants to read.
fn drain(errors: impl Read + Send + 'static) {
    let mut errors = errors;
    let aloud = std::env::var_os("TRACE").is_some();
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = errors.read(&mut piece) {
            if aloud {
                eprint!("{}", String::from_utf8_lossy(&piece[..n]));
            }
        }
    });
}

impl Real {
    /// A gateway on this runtime. At standard input and output if `serve`, at
    /// all the other doors if not.
    pub fn new(runtime: &str, upstream: Upstream, serve: bool) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short: paths of sockets have little room.
        let folder = std::env::temp_dir().join(format!("mcpx-e2e-{}-{n}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder of our own");
        let path = |name: &str| folder.join(name).display().to_string();
        let mcpx = program("mcpx");
        let mut command = Command::new(&mcpx);
        command.arg(if serve { "serve" } else { "daemon" }).args(["--runtime", runtime]);
        if !serve {
            let doors = [
                "127.0.0.1:0".to_owned(),
                format!("unix:{}", path("http")),
                "ndjson+tcp:127.0.0.1:0".to_owned(),
                format!("ndjson+unix:{}", path("lines")),
            ];
            command.args(doors.iter().flat_map(|door| ["--listen", door.as_str()]));
        }
        let mut server = None;
        match upstream {
            Upstream::Demo => command.arg("--demo"),
            Upstream::Child => command.arg("--").arg(&mcpx).args(["serve", "--demo"]),
            Upstream::Scripted => command.arg("--").arg(program("scripted")),
            Upstream::Missing => command.arg("--").arg("/nonexistent/server"),
            Upstream::Refused => command.args(["--url", "http://127.0.0.1:1/mcp"]),
            Upstream::Unresolved => command.args(["--url", "http://nowhere.invalid:9/mcp"]),
            Upstream::Url => {
                let listen = ["daemon", "--demo", "--listen", "127.0.0.1:0"];
                let mut demo = spawn(Command::new(&mcpx).args(listen));
                let mut errors = BufReader::new(demo.stderr.take().expect("its errors"));
                command.arg("--url").arg(listening(&mut errors));
                drain(errors);
                server = Some(demo);
                &mut command
            }
        };
        let mut gateway = spawn(&mut command);
        let mut errors = BufReader::new(gateway.stderr.take().expect("its errors"));
        let mut ports = BTreeMap::new();
        if !serve {
            let addresses: Vec<String> = (0..4).map(|_| listening(&mut errors)).collect();
            let port = |address: &str| {
                let rest = address.rsplit_once(':').map_or("", |(_, rest)| rest);
                let port = rest.split('/').next().unwrap_or_default();
                format!("127.0.0.1:{port}")
            };
            ports.insert("http", port(&addresses[0]));
            ports.insert("lines", port(&addresses[2]));
        }
        drain(errors);
        let (hears, heard) = channel();
        Self {
            gateway,
            server,
            folder,
            ports,
            stdio: None,
            lines: BTreeMap::new(),
            heard,
            hears,
            opened: 0,
        }
    }

    fn unix(&self, name: &str) -> UnixStream {
        let path: &Path = &self.folder.join(name);
        UnixStream::connect(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn tcp(&self, name: &str) -> TcpStream {
        let stream = TcpStream::connect(&self.ports[name]).expect("a connection to the gateway");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    fn line(&mut self, line: LineId) -> &mut Line {
        self.lines.get_mut(&line).unwrap_or_else(|| panic!("{line:?} is closed"))
    }

    /// Reads in a thread of its own, for as long as there is something.
    fn add(&mut self, writer: Writer, mut reader: impl Read + Send + 'static) -> LineId {
        self.opened += 1;
        let id = LineId(self.opened);
        let gate = Arc::new(Gate::default());
        let (hears, passes) = (self.hears.clone(), gate.clone());
        thread::spawn(move || {
            let mut piece = vec![0; PIECE];
            loop {
                passes.pass();
                let heard = match reader.read(&mut piece) {
                    Ok(n @ 1..) => Heard::Bytes(piece[..n].to_vec()),
                    _ => Heard::End,
                };
                let ended = matches!(heard, Heard::End);
                if hears.send((id, heard)).is_err() || ended {
                    return;
                }
            }
        });
        self.lines.insert(id, Line { writer, gate, inbox: Vec::new(), ended: false });
        id
    }

    fn take_in(&mut self, line: LineId, heard: Heard) {
        let Some(line) = self.lines.get_mut(&line) else { return };
        match heard {
            Heard::Bytes(bytes) => line.inbox.extend_from_slice(&bytes),
            Heard::End => line.ended = true,
        }
    }

    fn ready(&self, line: LineId) -> bool {
        self.lines.get(&line).is_none_or(|line| line.ended || !line.inbox.is_empty())
    }
}

impl Net for Real {
    fn open(&mut self, door: Door) -> LineId {
        let copied = "a second handle";
        match door {
            Door::Http | Door::Lines => {
                let stream = self.tcp(if door == Door::Http { "http" } else { "lines" });
                let reader = stream.try_clone().expect(copied);
                self.add(Writer::Tcp(stream), reader)
            }
            Door::HttpUnix | Door::LinesUnix => {
                let stream = self.unix(if door == Door::HttpUnix { "http" } else { "lines" });
                let reader = stream.try_clone().expect(copied);
                self.add(Writer::Unix(stream), reader)
            }
            Door::Stdio => {
                let input = self.gateway.stdin.take();
                let output = self.gateway.stdout.take().expect("standard output, once");
                let line = self.add(Writer::Pipe(input), output);
                self.stdio = Some(line);
                line
            }
        }
    }

    fn write(&mut self, line: LineId, bytes: &[u8]) {
        // That nobody reads shows when nothing is answered.
        let _ = match &mut self.line(line).writer {
            Writer::Tcp(stream) => stream.write_all(bytes),
            Writer::Unix(stream) => stream.write_all(bytes),
            Writer::Pipe(Some(pipe)) => pipe.write_all(bytes),
            Writer::Pipe(None) => Ok(()),
        };
    }

    fn finish(&mut self, line: LineId) {
        let _ = match &mut self.line(line).writer {
            Writer::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Writer::Unix(stream) => stream.shutdown(Shutdown::Write),
            Writer::Pipe(pipe) => {
                *pipe = None;
                Ok(())
            }
        };
    }

    fn close(&mut self, line: LineId) {
        let Some(line) = self.lines.remove(&line) else { return };
        let _ = match &line.writer {
            Writer::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Writer::Unix(stream) => stream.shutdown(Shutdown::Both),
            Writer::Pipe(_) => Ok(()),
        };
        line.gate.hold(false);
    }

    fn hold(&mut self, line: LineId, held: bool) {
        self.line(line).gate.hold(held);
    }

    fn wait(&mut self, lines: &[LineId]) {
        let until = Instant::now() + PATIENCE;
        while let Ok((line, heard)) = self.heard.try_recv() {
            self.take_in(line, heard);
        }
        while !lines.iter().any(|line| self.ready(*line)) {
            let left = until.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok((line, heard)) => self.take_in(line, heard),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("nothing came on any of {lines:?}");
                }
            }
        }
    }

    fn read(&mut self, line: LineId) -> Vec<u8> {
        self.lines.get_mut(&line).map(|line| std::mem::take(&mut line.inbox)).unwrap_or_default()
    }

    fn ended(&mut self, line: LineId) -> bool {
        self.lines.get(&line).is_none_or(|line| line.ended && line.inbox.is_empty())
    }

    fn kill_servers(&mut self) -> usize {
        let ps = Command::new("ps").args(["-e", "-o", "pid=,ppid="]).output().expect("a list");
        let gateway = self.gateway.id().to_string();
        let list = String::from_utf8_lossy(&ps.stdout).into_owned();
        let pairs = list.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        let children = pairs.filter(|(_, parent)| parent.trim() == gateway);
        let mut killed = 0;
        for (child, _) in children {
            let kill = Command::new("kill").args(["-KILL", child]).status();
            killed += usize::from(kill.is_ok_and(|status| status.success()));
        }
        killed
    }

    fn stop(&mut self) {
        let pid = self.gateway.id().to_string();
        let done = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(done.is_ok_and(|status| status.success()), "a signal");
    }

    fn over(&mut self) -> i32 {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.gateway.try_wait().expect("its status") {
                return status.code().unwrap_or(-1);
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("the gateway does not end");
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        for line in self.lines.values() {
            line.gate.hold(false);
        }
        for child in [Some(&mut self.gateway), self.server.as_mut()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
