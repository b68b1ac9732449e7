//! Roles that a test plays in a process of its own: whatever touches the
//! process's standard streams, signals or limits. The test runs this very
//! program again, with one "test" that plays the role.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use mcpx_core::driver::{Action, ConnId, Input};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::puppet::{Heard, drive, echo, pattern};
use crate::runtime::Listener;

const ROLE: &str = "MCPX_TEST_ROLE";
/// Comes after whatever the test harness has to say.
pub(crate) const READY: &[u8] = b"READY\n";
/// How much [`Role::Farewell`] says.
pub(crate) const FAREWELL: usize = 200 * 1024;
/// How many descriptors [`Role::Poor`] has.
pub(crate) const POOR: u64 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Echoes standard input to standard output, and says when it is stopped.
    Echo,
    /// Says a lot and exits.
    Farewell,
    /// Echoes over TCP and has few descriptors. Says its port.
    Poor,
}

impl Role {
    const ALL: [Self; 3] = [Self::Echo, Self::Farewell, Self::Poor];

    /// A command that plays this role.
    pub(crate) fn command(self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "contract::roles::play", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, format!("{self:?}"));
        command
    }
}

/// Plays a role, if there is one to play.
#[test]
fn play() {
    let Some(name) = std::env::var_os(ROLE) else { return };
    let name = name.into_string().unwrap();
    let role = Role::ALL.into_iter().find(|role| format!("{role:?}") == name).unwrap();
    let mut listeners = vec![Listener::Stdio];
    let mut first = READY.to_vec();
    if role == Role::Poor {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        first.extend_from_slice(format!("{}\n", listener.local_addr().unwrap().port()).as_bytes());
        listeners.push(Listener::Tcp(listener));
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(POOR);
        setrlimit(Resource::Nofile, limit).unwrap();
    }
    let mut stdio: Option<ConnId> = None;
    drive(
        listeners,
        |_| {},
        |hands, heard| {
            echo(hands, &heard);
            match heard {
                Heard::Input(Input::Accepted { conn, .. }) if stdio.is_none() => {
                    stdio = Some(conn);
                    hands.send(conn, &first);
                    if role == Role::Farewell {
                        hands.send(conn, &pattern(FAREWELL));
                        hands.act(Action::Exit);
                    }
                }
                Heard::Input(Input::Finished { conn }) if Some(conn) == stdio => {
                    hands.act(Action::Exit);
                }
                Heard::Input(Input::Stop) => hands.send(stdio.unwrap(), b"stop\n"),
                _ => {}
            }
        },
    );
    std::process::exit(0);
}
