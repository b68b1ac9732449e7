//! Connections over TCP and Unix sockets.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mcpx_core::driver::{Action, CloseReason, ConnId, Input, ListenerId, Target};

use super::puppet::{Hands, Heard, drive, echo, pattern};
use crate::runtime::Listener;

const MIB: usize = 1 << 20;
const FIRST: ConnId = ConnId::requested(1);

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A path for a socket that nobody else uses.
fn socket_path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mcpx-{name}-{}.sock", std::process::id()));
    // One may be left over from a process with the same number.
    let _ = fs::remove_file(&path);
    path
}

fn connect_tcp(hands: &mut Hands, host: &str, port: u16) {
    let to = Target::Tcp { host: host.to_owned(), port };
    hands.act(Action::Connect { conn: FIRST, to });
}

/// Why a connection to there fails.
fn failure(to: Target) -> CloseReason {
    let mut failed = None;
    drive(
        Vec::new(),
        |hands| hands.act(Action::Connect { conn: FIRST, to }),
        |hands, heard| match heard {
            Heard::Input(Input::Closed { conn: FIRST, why }) => {
                failed = Some(why);
                hands.act(Action::Exit);
            }
            other => panic!("{other:?}"),
        },
    );
    failed.unwrap()
}

#[test]
fn echoes_to_several_clients_over_tcp_and_unix() {
    const CLIENTS: usize = 8;
    let (tcp, address) = listen();
    let path = socket_path("echo");
    let unix = UnixListener::bind(&path).unwrap();
    let message = pattern(300_000);

    thread::scope(|scope| {
        for client in 0..2 * CLIENTS {
            let (message, path) = (&message, &path);
            scope.spawn(move || {
                let check = |mut stream: Box<dyn ReadWrite>| {
                    stream.write_all(b"small").unwrap();
                    let mut small = [0; 5];
                    stream.read_exact(&mut small).unwrap();
                    assert_eq!(&small, b"small");
                    stream.write_all(message).unwrap();
                    stream.end();
                    let mut all = Vec::new();
                    stream.read_to_end(&mut all).unwrap();
                    assert!(all == *message);
                };
                if client % 2 == 0 {
                    check(Box::new(TcpStream::connect(address).unwrap()));
                } else {
                    check(Box::new(UnixStream::connect(path).unwrap()));
                }
            });
        }
        let (mut from, mut finished) = ([0; 2], 0);
        drive(
            vec![Listener::Tcp(tcp), Listener::Unix(unix)],
            |_| {},
            |hands, heard| {
                echo(hands, &heard);
                match heard {
                    Heard::Input(Input::Accepted { listener: ListenerId(n), from: ip, .. }) => {
                        assert_eq!(ip, [Some(Ipv4Addr::LOCALHOST.into()), None][n as usize]);
                        from[n as usize] += 1;
                    }
                    Heard::Input(Input::Finished { .. }) => {
                        finished += 1;
                        if finished == 2 * CLIENTS {
                            hands.act(Action::Exit);
                        }
                    }
                    _ => {}
                }
            },
        );
        assert_eq!(from, [CLIENTS; 2]);
    });
    fs::remove_file(&path).unwrap();
}

/// A stream whose writing can end.
trait ReadWrite: Read + Write {
    fn end(&self);
}

impl ReadWrite for TcpStream {
    fn end(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl ReadWrite for UnixStream {
    fn end(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

#[test]
fn a_slow_reader_stops_the_writer() {
    const LEN: usize = 5 * MIB;
    const FULL: usize = 256 * 1024;
    /// What may still come after a pause, in every runtime.
    const AHEAD: usize = 128 * 1024;
    // A Unix socket holds little by itself.
    let path = socket_path("slow");
    let listener = UnixListener::bind(&path).unwrap();
    let message = pattern(LEN);
    let (has_paused, wait_for_pause) = mpsc::channel();
    thread::scope(|scope| {
        let mut client = UnixStream::connect(&path).unwrap();
        let mut writer = client.try_clone().unwrap();
        let message = &message;
        scope.spawn(move || {
            writer.write_all(message).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        scope.spawn(move || {
            wait_for_pause.recv().unwrap();
            let mut all = Vec::new();
            client.read_to_end(&mut all).unwrap();
            assert!(all == *message);
        });
        let mut paused = false;
        let hands = drive(
            vec![Listener::Unix(listener)],
            |_| {},
            |hands, heard| {
                echo(hands, &heard);
                match heard {
                    Heard::Input(Input::Received { conn, .. })
                        if !paused && hands.queued(conn) > FULL =>
                    {
                        paused = true;
                        hands.act(Action::Pause(conn));
                        // Fails when the reader has begun.
                        let _ = has_paused.send(());
                    }
                    Heard::Sent(conn) if paused && hands.queued(conn) < FULL / 4 => {
                        paused = false;
                        hands.act(Action::Resume(conn));
                    }
                    Heard::Input(Input::Finished { .. }) => hands.act(Action::Exit),
                    _ => {}
                }
            },
        );
        assert!(hands.longest <= FULL + AHEAD, "{}", hands.longest);
    });
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_pause_loses_nothing() {
    let (listener, address) = listen();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"while you slept").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let (mut paused, mut all, mut accepted) = (true, Vec::new(), None);
    drive(
        vec![Listener::Tcp(listener)],
        |_| {},
        |hands, heard| match heard {
            Heard::Input(Input::Accepted { conn, .. }) => {
                accepted = Some(conn);
                hands.act(Action::Pause(conn));
                hands.wake_after(Duration::from_millis(100));
            }
            Heard::Input(Input::Tick) => {
                paused = false;
                hands.act(Action::Resume(accepted.unwrap()));
            }
            Heard::Input(Input::Received { bytes, .. }) => all.extend_from_slice(bytes),
            Heard::Input(Input::Finished { .. }) => hands.act(Action::Exit),
            other => panic!("{other:?}"),
        },
    );
    assert_eq!((paused, all.as_slice()), (false, &b"while you slept"[..]));
}

#[test]
fn connects_by_address_and_by_name() {
    for host in ["127.0.0.1", "localhost"] {
        let (listener, address) = listen();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(b"heard").unwrap();
            all
        });
        let (mut connected, mut answer) = (false, Vec::new());
        drive(
            Vec::new(),
            |hands| {
                connect_tcp(hands, host, address.port());
                // Before it is connected.
                hands.send(FIRST, b"early");
                hands.act(Action::Finish(FIRST));
            },
            |hands, heard| match heard {
                Heard::Input(Input::Connected { conn: FIRST }) => connected = true,
                Heard::Input(Input::Received { conn: FIRST, bytes }) => {
                    answer.extend_from_slice(bytes);
                }
                Heard::Input(Input::Finished { conn: FIRST }) => hands.act(Action::Exit),
                Heard::Sent(FIRST) => assert!(connected),
                other => panic!("{other:?}"),
            },
        );
        assert_eq!((connected, answer.as_slice()), (true, &b"heard"[..]));
        assert_eq!(server.join().unwrap(), b"early");
    }
}

#[test]
fn connects_to_a_unix_socket() {
    let path = socket_path("connect");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let (mut heard_all, to) =
        (Vec::new(), Target::Unix { path: path.to_str().unwrap().to_owned() });
    drive(
        Vec::new(),
        |hands| hands.act(Action::Connect { conn: FIRST, to }),
        |hands, heard| match heard {
            Heard::Input(Input::Received { bytes, .. }) => heard_all.extend_from_slice(bytes),
            Heard::Input(Input::Finished { .. }) => hands.act(Action::Exit),
            Heard::Input(Input::Connected { conn: FIRST }) => {}
            other => panic!("{other:?}"),
        },
    );
    server.join().unwrap();
    assert_eq!(heard_all, b"hello");
    fs::remove_file(&path).unwrap();
}

#[test]
fn says_why_a_connection_failed() {
    // Bound and closed: nobody listens there.
    let port = listen().1.port();
    for host in ["127.0.0.1", "localhost"] {
        let to = Target::Tcp { host: host.to_owned(), port };
        assert_eq!(failure(to), CloseReason::Refused, "{host}");
    }
    let to = Target::Tcp { host: "no such host".to_owned(), port };
    assert_eq!(failure(to), CloseReason::Unresolved);
    let to = Target::Unix { path: "/nonexistent/socket".to_owned() };
    assert_eq!(failure(to), CloseReason::NotFound);
}

#[test]
fn close_drops_the_connection_and_late_actions_are_ignored() {
    let (listener, address) = listen();
    let client = thread::spawn(move || {
        let mut client = TcpStream::connect(address).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    });
    drive(
        vec![Listener::Tcp(listener)],
        |_| {},
        |hands, heard| match heard {
            Heard::Input(Input::Accepted { conn, .. }) => {
                hands.act(Action::Close(conn));
                hands.act(Action::Pause(conn));
                hands.act(Action::Resume(conn));
                hands.act(Action::Finish(conn));
                hands.act(Action::Flush(conn));
                hands.act(Action::Close(conn));
                hands.wake_after(Duration::from_millis(50));
            }
            Heard::Input(Input::Tick) => hands.act(Action::Exit),
            other => panic!("{other:?}"),
        },
    );
    client.join().unwrap();
}

#[test]
fn a_reset_is_told() {
    let (listener, address) = listen();
    let client = thread::spawn(move || {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        // Unread bytes make the system reset.
        thread::sleep(Duration::from_millis(50));
    });
    let mut closed = None;
    drive(
        vec![Listener::Tcp(listener)],
        |_| {},
        |hands, heard| match heard {
            Heard::Input(Input::Received { conn, .. }) => hands.send(conn, &[7; 8 * MIB]),
            Heard::Input(Input::Closed { why, .. }) => {
                closed = Some(why);
                hands.act(Action::Exit);
            }
            _ => {}
        },
    );
    assert_eq!(closed, Some(CloseReason::Reset));
    client.join().unwrap();
}

#[test]
fn stop_listening_keeps_connections() {
    let (listener, address) = listen();
    let client = thread::spawn(move || {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"stop").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
        // The listener closes soon after, if not before.
        while let Ok(other) = TcpStream::connect(address) {
            drop(other);
            thread::sleep(Duration::from_millis(5));
        }
        client.write_all(b"still").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"still");
    });
    let mut first = None;
    drive(
        vec![Listener::Tcp(listener)],
        |_| {},
        |hands, heard| {
            echo(hands, &heard);
            match heard {
                Heard::Input(Input::Received { conn, bytes: b"stop" }) => {
                    first = Some(conn);
                    hands.act(Action::StopListening);
                }
                Heard::Input(Input::Finished { conn }) if Some(conn) == first => {
                    hands.act(Action::Exit);
                }
                _ => {}
            }
        },
    );
    client.join().unwrap();
}

#[test]
fn what_is_queued_at_the_exit_arrives() {
    const LEN: usize = 8 * MIB;
    let (listener, address) = listen();
    let client = thread::spawn(move || {
        let mut client = TcpStream::connect(address).unwrap();
        let mut all = Vec::new();
        match client.read_to_end(&mut all) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert!(all == pattern(LEN), "{} bytes", all.len());
    });
    drive(
        vec![Listener::Tcp(listener)],
        |_| {},
        |hands, heard| {
            if let Heard::Input(Input::Accepted { conn, .. }) = heard {
                hands.send(conn, &pattern(LEN));
                hands.act(Action::Exit);
            }
        },
    );
    client.join().unwrap();
}
