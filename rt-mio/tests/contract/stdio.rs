//! Our own standard input and output, signals and limits; each in a process of
//! its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::puppet::pattern;
use super::roles::{FAREWELL, POOR, READY, Role};

/// Starts a role with pipes.
fn start(role: Role) -> (Child, BufReader<ChildStdout>) {
    let mut child = role.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = Vec::new();
    while !line.ends_with(READY) {
        assert_ne!(output.read_until(b'\n', &mut line).unwrap(), 0, "{role:?} did not start");
    }
    (child, output)
}

#[test]
fn echoes_from_pipe_to_pipe() {
    let message = pattern(1 << 20);
    let (mut child, mut output) = start(Role::Echo);
    let mut input = child.stdin.take().unwrap();
    let sent = message.clone();
    let writer = thread::spawn(move || input.write_all(&sent).unwrap());
    let mut all = Vec::new();
    output.read_to_end(&mut all).unwrap();
    writer.join().unwrap();
    assert!(all == message);
    assert!(child.wait().unwrap().success());
}

#[test]
fn echoes_from_file_to_file() {
    let message = pattern(1 << 20);
    let base = std::env::temp_dir().join(format!("mcpx-file-{}", std::process::id()));
    let (input, output) = (base.with_extension("in"), base.with_extension("out"));
    fs::write(&input, &message).unwrap();
    let status = Role::Echo
        .command()
        .stdin(File::open(&input).unwrap())
        .stdout(File::create(&output).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let all = fs::read(&output).unwrap();
    let start = all.windows(READY.len()).position(|part| part == READY).unwrap() + READY.len();
    assert!(all[start..] == message);
    fs::remove_file(&input).unwrap();
    fs::remove_file(&output).unwrap();
}

#[test]
fn a_slow_reader_gets_all_that_was_said_before_the_exit() {
    let (mut child, mut output) = start(Role::Farewell);
    // By now the pipe is full and the process waits for us.
    thread::sleep(Duration::from_millis(200));
    let mut all = Vec::new();
    output.read_to_end(&mut all).unwrap();
    assert!(all == pattern(FAREWELL), "{} bytes", all.len());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_signal_asks_to_stop_each_time() {
    let (mut child, mut output) = start(Role::Echo);
    let pid = Pid::from_child(&child);
    for signal in [Signal::TERM, Signal::INT, Signal::TERM] {
        kill_process(pid, signal).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "stop\n");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_full_table_of_descriptors_passes() {
    let (mut child, mut output) = start(Role::Poor);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = (Ipv4Addr::LOCALHOST, line.trim().parse().unwrap());
    let many = (0..2 * POOR).map(|_| TcpStream::connect(address).unwrap()).collect::<Vec<_>>();
    thread::sleep(Duration::from_millis(300));
    drop(many);
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"and now").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"and now");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
