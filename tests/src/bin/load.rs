//! Puts load on a Streamable HTTP endpoint and says what it cost.
//!
//! ```text
//! load URL [--clients N] [--seconds N] [--tool NAME] [--arguments JSON] [--pid PID]
//! ```
//!
//! Each client has a legacy session and one kept-alive connection, and calls the
//! tool again and again. With `--pid`, the processor time of that process (not
//! of its children) is read from `/proc` before and after. One line of figures
//! goes to standard output.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Options {
    host: String,
    path: String,
    clients: usize,
    seconds: u64,
    tool: String,
    arguments: String,
    pid: Option<u32>,
}

struct Client {
    reader: BufReader<TcpStream>,
    head: String,
    session: Option<String>,
    body: Vec<u8>,
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let done = AtomicBool::new(false);
    let requests = AtomicU64::new(0);
    let slowest = AtomicU64::new(0);
    let mut clients = Vec::new();
    for _ in 0..options.clients {
        clients.push(Client::open(&options)?);
    }
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{}","arguments":{}}}}}"#,
        options.tool, options.arguments
    );
    let before = options.pid.map(cpu_time).transpose()?;
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<(), Failure> {
        let workers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| -> Result<(), Failure> {
                    while !done.load(Ordering::Relaxed) {
                        let sent = Instant::now();
                        let answer = client.post(&call)?;
                        if !answer.windows(8).any(|w| w == b"\"result\"") {
                            return Err(
                                format!("no result: {}", String::from_utf8_lossy(&answer)).into()
                            );
                        }
                        requests.fetch_add(1, Ordering::Relaxed);
                        slowest.fetch_max(sent.elapsed().as_micros() as u64, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(Duration::from_secs(options.seconds));
        done.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().map_err(|_| "a client panicked")??;
        }
        Ok(())
    })?;
    let wall = start.elapsed().as_secs_f64();
    let count = requests.load(Ordering::Relaxed) as f64;
    let mut line = format!(
        "requests={count} per_second={:.0} slowest_ms={:.1}",
        count / wall,
        slowest.load(Ordering::Relaxed) as f64 / 1000.0
    );
    if let (Some(pid), Some(before)) = (options.pid, before) {
        let cpu = cpu_time(pid)? - before;
        line += &format!(" cpu_seconds={cpu:.2} per_cpu_second={:.0}", count / cpu);
    }
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

fn options() -> Result<Options, Failure> {
    let mut args = std::env::args().skip(1);
    let url = args.next().ok_or(
        "usage: load URL [--clients N] [--seconds N] [--tool NAME] [--arguments JSON] [--pid PID]",
    )?;
    let rest = url.strip_prefix("http://").ok_or("the URL must begin with http://")?;
    let (host, path) = rest.split_once('/').ok_or("the URL must have a path")?;
    let mut options = Options {
        host: host.into(),
        path: format!("/{path}"),
        clients: 16,
        seconds: 5,
        tool: "echo".into(),
        arguments: r#"{"message":"hello"}"#.into(),
        pid: None,
    };
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--clients" => options.clients = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--tool" => options.tool = value,
            "--arguments" => options.arguments = value,
            "--pid" => options.pid = Some(value.parse()?),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}

impl Client {
    fn open(options: &Options) -> Result<Self, Failure> {
        let stream = TcpStream::connect(&options.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            options.path, options.host
        );
        let mut client =
            Self { reader: BufReader::new(stream), head, session: None, body: Vec::new() };
        client.post(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#)?;
        client.head += "MCP-Protocol-Version: 2025-11-25\r\n";
        if let Some(session) = &client.session {
            client.head += &format!("Mcp-Session-Id: {session}\r\n");
        }
        client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(client)
    }

    /// Sends one message and reads the whole response.
    fn post(&mut self, message: &str) -> Result<Vec<u8>, Failure> {
        let request = format!("{}Content-Length: {}\r\n\r\n{message}", self.head, message.len());
        self.reader.get_mut().write_all(request.as_bytes())?;
        let (mut length, mut chunked) = (0, false);
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err("the connection was closed".into());
            }
            let field = line.trim_end().to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            chunked |= field == "transfer-encoding: chunked";
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("mcp-session-id")
            {
                self.session = Some(value.trim().into());
            }
        }
        self.body.clear();
        if !chunked {
            self.body.resize(length, 0);
            self.reader.read_exact(&mut self.body)?;
            return Ok(self.body.clone());
        }
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16)?;
            let start = self.body.len();
            self.body.resize(start + size + 2, 0);
            self.reader.read_exact(self.body.get_mut(start..).unwrap_or_default())?;
            self.body.truncate(start + size);
            if size == 0 {
                return Ok(self.body.clone());
            }
        }
    }
}

/// User and system time of a process, in seconds.
fn cpu_time(pid: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 =
        fields.get(11..13).unwrap_or_default().iter().filter_map(|f| f.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
