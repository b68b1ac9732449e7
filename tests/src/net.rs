//! The gateway and its surroundings as hosts see them, on whatever runtime.

/// Where hosts come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// HTTP over TCP.
    Http,
    /// HTTP over a Unix socket.
    HttpUnix,
    /// Newline-delimited JSON over TCP.
    Lines,
    /// Newline-delimited JSON over a Unix socket.
    LinesUnix,
    /// The gateway's own standard input and output.
    Stdio,
}

impl Door {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Http, Self::HttpUnix, Self::Lines, Self::LinesUnix, Self::Stdio];

    /// Whether it is one for HTTP.
    pub fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::HttpUnix)
    }
}

/// What the gateway stands before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upstream {
    /// Nothing: it is the demo server itself.
    Demo,
    /// The demo server as a child process.
    Child,
    /// The demo server behind a URL.
    Url,
    /// The [scripted](crate::scripted) server as a child process.
    Scripted,
    /// A program that does not exist.
    Missing,
    /// A URL where nobody listens.
    Refused,
    /// A URL whose host has no address.
    Unresolved,
}

/// Names a connection of the test to the gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineId(pub u64);

/// One gateway, what is behind it, and the connections of the test to it.
///
/// What cannot happen any more, or not in reasonable time, ends the test.
pub trait Net {
    /// Opens a connection.
    fn open(&mut self, door: Door) -> LineId;

    /// Writes, sooner or later.
    fn write(&mut self, line: LineId, bytes: &[u8]);

    /// Says that no more will be written.
    fn finish(&mut self, line: LineId);

    /// Drops a connection.
    fn close(&mut self, line: LineId);

    /// Reads nothing from a connection until told otherwise.
    fn hold(&mut self, line: LineId, held: bool);

    /// Waits until one of `lines` has something to read or has ended.
    fn wait(&mut self, lines: &[LineId]);

    /// What has come, and was not read yet.
    fn read(&mut self, line: LineId) -> Vec<u8>;

    /// Whether the gateway has ended a connection, and everything is read.
    fn ended(&mut self, line: LineId) -> bool;

    /// Kills every process that the gateway has started. Gives how many they were.
    fn kill_servers(&mut self) -> usize;

    /// Asks the gateway to stop.
    fn stop(&mut self);

    /// Waits for the gateway's end and gives its exit code.
    fn over(&mut self) -> i32;
}
