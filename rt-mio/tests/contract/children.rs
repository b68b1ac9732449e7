//! Child processes.

use std::fs;
use std::time::Duration;

use mcpx_core::driver::{Action, CloseReason, Command, ConnId, ExitStatus, Input, Signal};
use rustix::process::{Pid, kill_process, test_kill_process};

use super::puppet::{Heard, drive, pattern};

const CHILD: ConnId = ConnId::requested(1);

/// All that a child let us hear, in order; bytes are joined.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    output: Vec<u8>,
    errors: Vec<u8>,
    finished: bool,
    closed: Option<CloseReason>,
    exited: Option<ExitStatus>,
}

impl Story {
    fn note(&mut self, heard: &Heard<'_>) {
        assert_eq!(self.exited, None, "nothing follows the end: {heard:?}");
        match *heard {
            Heard::Input(Input::Received { bytes, .. }) => {
                assert!(!bytes.is_empty() && !self.finished);
                self.output.extend_from_slice(bytes);
            }
            Heard::Input(Input::Stderr { bytes, .. }) => {
                assert!(!bytes.is_empty());
                self.errors.extend_from_slice(bytes);
            }
            Heard::Input(Input::Finished { .. }) => self.finished = true,
            Heard::Input(Input::Closed { why, .. }) => self.closed = Some(why),
            Heard::Input(Input::Exited { status, .. }) => self.exited = Some(status),
            _ => {}
        }
    }
}

/// Runs a shell script without input, until it exits.
fn story(script: &str) -> Story {
    let mut story = Story::default();
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, script),
        |hands, heard| {
            story.note(&heard);
            if story.exited.is_some() {
                hands.act(Action::Exit);
            }
        },
    );
    story
}

#[test]
fn relays_through_a_child() {
    let message = pattern(5 << 20);
    let (mut story, mut connected) = (Story::default(), false);
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, "exec cat"),
        |hands, heard| {
            story.note(&heard);
            match heard {
                Heard::Input(Input::Connected { conn: CHILD }) => {
                    connected = true;
                    hands.send(CHILD, &message);
                    hands.act(Action::Finish(CHILD));
                }
                Heard::Input(Input::Exited { .. }) => hands.act(Action::Exit),
                _ => {}
            }
        },
    );
    assert!(connected && story.finished && story.closed.is_none());
    assert!(story.output == message);
    assert_eq!(story.exited, Some(ExitStatus::Code(0)));
}

#[test]
fn all_that_a_child_wrote_comes_before_its_end() {
    for _ in 0..20 {
        let story = story("echo out; echo err >&2; head -c 50000 /dev/zero; exit 3");
        assert_eq!(story.output.len(), 4 + 50_000);
        assert_eq!(story.errors, b"err\n");
        assert_eq!(story.exited, Some(ExitStatus::Code(3)));
        assert!(story.finished);
    }
}

#[test]
fn a_paused_child_loses_nothing_by_ending() {
    let (mut story, mut ticked) = (Story::default(), false);
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, "head -c 50000 /dev/zero"),
        |hands, heard| {
            story.note(&heard);
            match heard {
                Heard::Input(Input::Connected { .. }) => {
                    hands.act(Action::Pause(CHILD));
                    hands.wake_after(Duration::from_millis(1500));
                }
                Heard::Input(Input::Tick) => {
                    ticked = true;
                    hands.act(Action::Resume(CHILD));
                }
                Heard::Input(Input::Exited { .. }) => hands.act(Action::Exit),
                _ => {}
            }
        },
    );
    assert!(ticked);
    assert_eq!(story.output.len(), 50_000);
}

#[test]
fn has_its_arguments_variables_and_directory() {
    let command = Command {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), r#"printf '%s|%s|%s' "$1" "$MCPX_TEST" "$PWD""#.to_owned()]
            .into_iter()
            .chain(["name".to_owned(), "an argument".to_owned()])
            .collect(),
        env: vec![("MCPX_TEST".to_owned(), "a value".to_owned())],
        cwd: Some("/".to_owned()),
    };
    let mut story = Story::default();
    drive(
        Vec::new(),
        |hands| hands.act(Action::Spawn { conn: CHILD, command }),
        |hands, heard| {
            story.note(&heard);
            if story.exited.is_some() {
                hands.act(Action::Exit);
            }
        },
    );
    assert_eq!(story.output, b"an argument|a value|/");
}

#[test]
fn a_missing_program_is_not_found() {
    let command = Command { program: "/nonexistent/program".to_owned(), ..Command::default() };
    let mut closed = None;
    drive(
        Vec::new(),
        |hands| hands.act(Action::Spawn { conn: CHILD, command }),
        |hands, heard| match heard {
            Heard::Input(Input::Closed { conn: CHILD, why }) => {
                closed = Some(why);
                hands.act(Action::Exit);
            }
            other => panic!("{other:?}"),
        },
    );
    assert_eq!(closed, Some(CloseReason::NotFound));
}

#[test]
fn signals_arrive() {
    for (signal, number) in [(Signal::Terminate, 15), (Signal::Kill, 9)] {
        let mut story = Story::default();
        drive(
            Vec::new(),
            |hands| hands.shell(CHILD, "echo ready; exec sleep 1000"),
            |hands, heard| {
                story.note(&heard);
                match heard {
                    Heard::Input(Input::Received { .. }) => {
                        hands.act(Action::Signal { conn: CHILD, signal });
                    }
                    Heard::Input(Input::Exited { .. }) => hands.act(Action::Exit),
                    _ => {}
                }
            },
        );
        assert_eq!(story.exited, Some(ExitStatus::Signal(number)));
    }
}

#[test]
fn a_kill_takes_the_grandchildren_along() {
    let mut story = Story::default();
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, "sleep 1000 & echo ready; wait"),
        |hands, heard| {
            story.note(&heard);
            match heard {
                Heard::Input(Input::Received { .. }) => {
                    hands.act(Action::Signal { conn: CHILD, signal: Signal::Kill });
                }
                Heard::Input(Input::Exited { .. }) => hands.act(Action::Exit),
                _ => {}
            }
        },
    );
    assert_eq!(story.exited, Some(ExitStatus::Signal(9)));
    assert!(story.finished, "a grandchild holds the pipe");
}

#[test]
fn a_grandchild_does_not_hide_the_end() {
    let story = story("sleep 1000 & echo $!; exit 4");
    let pid = String::from_utf8(story.output).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    assert_eq!((story.exited, story.finished), (Some(ExitStatus::Code(4)), false));
}

#[test]
fn last_words_are_heard_though_writing_fails() {
    let mut story = Story::default();
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, "echo last words; exec <&-; sleep 0.1; exit 1"),
        |hands, heard| {
            story.note(&heard);
            match heard {
                Heard::Input(Input::Connected { .. }) => hands.send(CHILD, &[b'x'; 1 << 20]),
                Heard::Input(Input::Exited { .. }) => hands.act(Action::Exit),
                _ => {}
            }
        },
    );
    assert_eq!(story.output, b"last words\n");
    assert_eq!(story.closed, Some(CloseReason::Reset));
    assert_eq!(story.exited, Some(ExitStatus::Code(1)));
}

#[test]
fn a_closed_child_is_still_reaped() {
    let mut story = Story::default();
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, "echo ready; cat; exit 5"),
        |hands, heard| {
            story.note(&heard);
            match heard {
                Heard::Input(Input::Received { .. }) => hands.act(Action::Close(CHILD)),
                Heard::Input(Input::Exited { .. }) => hands.act(Action::Exit),
                _ => {}
            }
        },
    );
    assert_eq!(story.exited, Some(ExitStatus::Code(5)));
}

#[test]
fn no_child_outlives_the_run() {
    let mut pids = Vec::new();
    drive(
        Vec::new(),
        |hands| hands.shell(CHILD, "sleep 1000 & echo $$ $!; exec sleep 1000"),
        |hands, heard| {
            if let Heard::Input(Input::Received { bytes, .. }) = heard {
                pids.extend_from_slice(bytes);
                if pids.ends_with(b"\n") {
                    hands.act(Action::Exit);
                }
            }
        },
    );
    let pids = String::from_utf8(pids).unwrap();
    for pid in pids.split_whitespace() {
        // The grandchild is reaped by somebody else, in their time.
        while test_kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap()).is_ok() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
