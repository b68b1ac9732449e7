//! What goes to standard error: one line for each thing.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use mcpx_core::driver::ExitStatus;
use mcpx_core::event::Event;

/// Says something to the user: `mcpx: text`.
pub(crate) fn say(text: &str) {
    write(&line(None, text));
}

/// Writes a line without our name before it.
pub(crate) fn write(line: &str) {
    let mut line = line.to_string();
    line.push('\n');
    // If nobody reads, nobody misses it.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Reports the events of a machine.
///
/// A reader of standard error that does not read must not stop the machine:
/// lines that it has no room for are dropped and counted.
pub(crate) struct Reporter {
    quiet: bool,
    dropped: u64,
}

impl Reporter {
    /// One that leaves out what servers write to their standard error, if
    /// `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, dropped: 0 }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        if self.quiet && matches!(event, Event::Stderr { .. }) {
            return;
        }
        if !has_room() {
            self.dropped += 1;
            return;
        }
        if self.dropped > 0 {
            say(&format!("{} messages were dropped: nobody read them", self.dropped));
            self.dropped = 0;
            // One at a time: the room may be used up.
            if !has_room() {
                self.dropped = 1;
                return;
            }
        }
        write(&shown(event));
    }
}

/// Bytes that a pipe takes at once when it says that it takes any.
const ROOM: usize = 4096;

/// Whether standard error takes [`ROOM`] bytes without waiting.
#[cfg(unix)]
fn has_room() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let stderr = io::stderr();
    let mut polled = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
fn has_room() -> bool {
    true
}

/// An event as a line.
pub(crate) fn shown(event: &Event) -> String {
    match event {
        // Our own program, as a server.
        Event::Stderr { upstream, line: text }
            if upstream == "mcpx" && text.starts_with("mcpx: ") =>
        {
            let mut line = String::new();
            escape(text, &mut line);
            line
        }
        Event::Stderr { upstream, line: text } => line(Some(upstream), text),
        Event::Noise { upstream, line: text } => {
            line(Some(upstream), &format!("skipped what is not MCP: {text}"))
        }
        Event::Exited { upstream, status } => line(Some(upstream), &exited(*status)),
        Event::Warning(text) => line(None, text),
    }
}

fn exited(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("exited with code {code}"),
        ExitStatus::Signal(signal) => format!("was killed by signal {signal}"),
    }
}

/// A line that is one line, whatever is in it, and not too long to be written
/// at once.
fn line(upstream: Option<&str>, text: &str) -> String {
    let mut line = String::from("mcpx: ");
    if let Some(upstream) = upstream {
        line.push('[');
        escape(upstream, &mut line);
        line.push_str("] ");
    }
    escape(text, &mut line);
    if line.len() >= ROOM {
        let end = (0..=ROOM - 4).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}

/// Appends `text` with its control characters written out, so that it cannot
/// speak to the terminal.
pub(crate) fn escape(text: &str, out: &mut String) {
    for char in text.chars() {
        if char.is_control() || is_direction(char) {
            let _ = write!(out, "{}", char.escape_default());
        } else {
            out.push(char);
        }
    }
}

/// Characters that change the order in which others are shown.
fn is_direction(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_single_lines() {
        let upstream = String::from("a\n");
        for (event, expected) in [
            (
                Event::Stderr { upstream: upstream.clone(), line: "\u{1b}[31mé\t\u{202e}".into() },
                r"mcpx: [a\n] \u{1b}[31mé\t\u{202e}",
            ),
            (
                Event::Noise { upstream: upstream.clone(), line: "hi".into() },
                r"mcpx: [a\n] skipped what is not MCP: hi",
            ),
            (
                Event::Exited { upstream, status: ExitStatus::Code(3) },
                r"mcpx: [a\n] exited with code 3",
            ),
            (Event::Warning("a: b".into()), "mcpx: a: b"),
        ] {
            assert_eq!(shown(&event), expected);
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let cut = line(Some("é"), &"é\u{1}".repeat(4000));
        assert!(cut.len() < ROOM && cut.ends_with('…'));
    }
}
