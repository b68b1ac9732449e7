//! What the command line says about itself.

use std::fmt;

/// What there is help about: the program, and each command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    Mcpx,
    Daemon,
    Serve,
    Call,
    Ls,
    Replay,
}

impl Topic {
    const ALL: [Self; 6] =
        [Self::Mcpx, Self::Daemon, Self::Serve, Self::Call, Self::Ls, Self::Replay];

    fn name(self) -> &'static str {
        match self {
            Self::Mcpx => "mcpx",
            Self::Daemon => "daemon",
            Self::Serve => "serve",
            Self::Call => "call",
            Self::Ls => "ls",
            Self::Replay => "replay",
        }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The help about `topic`.
pub(crate) fn of(topic: Topic) -> &'static str {
    match topic {
        Topic::Mcpx => include_str!("help/mcpx.txt"),
        Topic::Daemon => include_str!("help/daemon.txt"),
        Topic::Serve => include_str!("help/serve.txt"),
        Topic::Call => include_str!("help/call.txt"),
        Topic::Ls => include_str!("help/ls.txt"),
        Topic::Replay => include_str!("help/replay.txt"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_a_terminal() {
        for topic in Topic::ALL {
            assert_eq!(Topic::find(topic.name()), Some(topic));
            for line in of(topic).lines() {
                assert!(line.chars().count() <= 80, "{topic}: {line}");
            }
        }
    }
}
