//! Finds out whom a message belongs to without keeping it.

use alloc::string::String;

use memchr::memchr2;
use smallvec::SmallVec;

use super::id::is_id;
use super::text::string;

/// A name longer than this many bytes is none that matters, however escaped.
const NAME: usize = 64;
/// The longest id, in bytes, that is found.
const ID: usize = 256;

/// Looks through a message that comes in pieces and is thrown away: too long
/// to keep, or not readable. Uses constant memory, and never fails; what it says
/// about something that is not JSON is a guess.
#[derive(Debug, Default)]
pub struct Skimmer {
    state: State,
    /// How many arrays and objects are open.
    depth: usize,
    member: Member,
    /// The current name or id, as far as it fits.
    kept: SmallVec<[u8; NAME]>,
    ids: usize,
    found: Skimmed,
}

/// What a [`Skimmer`] found among the members of the outermost object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skimmed {
    /// The raw `id`, if there is exactly one, it is a string or an integer, and
    /// it is not longer than 256 bytes.
    pub id: Option<String>,
    /// Whether there is a `method`: it is a request or a notification.
    pub method: bool,
    /// Whether there is a `result` or an `error`.
    pub answer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Before the outermost object.
    #[default]
    Start,
    /// Between strings.
    Tokens,
    String,
    Escape,
    /// After the outermost object, or it is none.
    Ended,
}

/// Where in a member of the outermost object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Member {
    #[default]
    Name,
    Id,
    Value,
}

impl Skimmer {
    /// The next piece of the message.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            match self.state {
                State::Ended => return,
                State::String => {
                    let end = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    let (inside, from) = rest.split_at(end);
                    self.keep(inside);
                    rest = match from.split_first() {
                        Some((&byte, after)) => {
                            self.keep(&[byte]);
                            self.state = if byte == b'"' { State::Tokens } else { State::Escape };
                            after
                        }
                        None => from,
                    };
                    continue;
                }
                State::Escape => {
                    self.keep(&[byte]);
                    self.state = State::String;
                }
                State::Start => match byte {
                    b'{' => {
                        self.depth = 1;
                        self.state = State::Tokens;
                    }
                    b' ' | b'\t' | b'\r' | b'\n' => {}
                    _ => self.state = State::Ended,
                },
                State::Tokens => self.token(byte),
            }
            rest = after;
        }
    }

    /// What was found. A message that was cut off counts as far as it came.
    pub fn finish(self) -> Skimmed {
        self.found
    }

    fn token(&mut self, byte: u8) {
        match (byte, self.depth) {
            (b':', 1) => return self.end_name(),
            (b',', 1) => return self.end_value(),
            (b'}', 1) => {
                self.end_value();
                self.state = State::Ended;
                return;
            }
            (b'{' | b'[', _) => self.depth += 1,
            (b'}' | b']', 2..) => self.depth -= 1,
            (b'"', _) => self.state = State::String,
            (b' ' | b'\t' | b'\r' | b'\n', _) => return,
            _ => {}
        }
        self.keep(&[byte]);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let limit = match self.member {
            Member::Name => NAME,
            Member::Id => ID,
            Member::Value => return,
        };
        // One byte more than fits tells that it did not fit.
        let room = (limit + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn kept(&self, limit: usize) -> Option<&str> {
        core::str::from_utf8(&self.kept).ok().filter(|kept| kept.len() <= limit)
    }

    fn end_name(&mut self) {
        if self.member != Member::Name {
            return;
        }
        let mut member = Member::Value;
        match self.kept(NAME).and_then(string).as_deref() {
            Some("id") => member = Member::Id,
            Some("method") => self.found.method = true,
            Some("result" | "error") => self.found.answer = true,
            _ => {}
        }
        self.member = member;
        self.kept.clear();
    }

    fn end_value(&mut self) {
        if self.member == Member::Id {
            self.ids += 1;
            let id = self.kept(ID).filter(|raw| self.ids == 1 && is_id(raw)).map(String::from);
            self.found.id = id;
        }
        self.member = Member::Name;
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    /// Skims in one piece, byte by byte and in two pieces: always the same.
    fn skim(text: &str) -> (Option<String>, bool, bool) {
        let run = |cuts: &[&[u8]]| {
            let mut skimmer = Skimmer::default();
            cuts.iter().for_each(|piece| skimmer.feed(piece));
            skimmer.finish()
        };
        let whole = run(&[text.as_bytes()]);
        for cut in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(run(&[left, right]), whole, "{text} cut at {cut}");
        }
        let mut skimmer = Skimmer::default();
        text.bytes().for_each(|byte| skimmer.feed(&[byte]));
        assert_eq!(skimmer.finish(), whole, "{text}");
        (whole.id, whole.method, whole.answer)
    }

    fn some(id: &str) -> Option<String> {
        Some(String::from(id))
    }

    #[test]
    fn finds_the_id_wherever_it_is() {
        assert_eq!(skim(r#"{"id":1,"method":"m","params":{"id":2}}"#), (some("1"), true, false));
        assert_eq!(
            skim(r#" {"params":{"id":2,"x":[{"id":3}]} , "id" : "a\"}" }"#).0,
            some(r#""a\"}""#)
        );
        assert_eq!(skim(r#"{"result":"\\","\u0069d":7}"#), (some("7"), false, true));
        assert_eq!(skim(r#"{"error":{"code":1},"id":-5}"#), (some("-5"), false, true));
        assert_eq!(skim(r#"{"id":9,"method":"cut off"#), (some("9"), true, false));
    }

    #[test]
    fn finds_no_id_that_is_none() {
        for text in [
            "",
            "[1]",
            "{}",
            "x{\"id\":1}",
            r#"{"id":null}"#,
            r#"{"id":{"id":1}}"#,
            r#"{"id":[1]}"#,
            r#"{"id":1.5}"#,
            r#"{"id":1,"id":2}"#,
            r#"{"id":1,"id":1,"id":1}"#,
            r#"{"x":{"id":1}}"#,
            r#"{"x":"id","y":1}"#,
            r#"{"id":1"#,
            r#"[{"id":1}]"#,
            r#"{"id" 1 "id":2"#,
        ] {
            assert_eq!(skim(text).0, None, "{text}");
        }
        assert_eq!(skim("{}{\"id\":1}").0, None);
    }

    #[test]
    fn long_names_and_ids_are_not_kept() {
        let long = format!("{{\"{}\":1,\"id\":\"{}\"}}", "n".repeat(1000), "i".repeat(254));
        assert_eq!(skim(&long).0.map(|id| id.len()), Some(256));
        let longer = format!("{{\"id\":\"{}\",\"method\":1}}", "i".repeat(255));
        assert_eq!(skim(&longer), (None, true, false));
        let spaced = format!("{{{0}\"id\"{0}:{0}1{0},{0}\"method\":1}}", " ".repeat(300));
        assert_eq!(skim(&spaced), (some("1"), true, false));
    }
}
