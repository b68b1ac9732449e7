//! A strict RFC 8259 scanner: it checks and measures, and builds nothing.

use smallvec::SmallVec;

/// A piece of a text, by its byte offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// The piece. Empty if it is not one of this text's.
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Why a text cannot be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It breaks the grammar.
    Syntax,
    /// It nests deeper than allowed.
    TooDeep,
}

/// Walks over a text once. Nesting costs a byte a level, never stack.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// Objects entered by [`object`](Self::object) and not left yet.
    depth: usize,
    limit: usize,
}

impl<'t> Scanner<'t> {
    /// At the beginning of `text`; arrays and objects may nest `limit` deep.
    pub(super) fn new(text: &'t str, limit: usize) -> Self {
        Self { text, at: 0, depth: 0, limit }
    }

    /// The offset of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space.
    pub(super) fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips white space, after which the text must end.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// Reads an object. After each name (quotes included), `each` has to read
    /// the value.
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &'t str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(b'{')?;
        if self.depth == self.limit {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        self.space();
        if !self.eat(b'}') {
            loop {
                let name = self.name()?;
                self.space();
                each(self, name)?;
                self.space();
                if self.eat(b'}') {
                    break;
                }
                self.expect(b',')?;
                self.space();
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads a value of any kind.
    pub(super) fn value(&mut self) -> Result<(), Fault> {
        // The bytes that will close what is open.
        let mut open: SmallVec<[u8; 64]> = SmallVec::new();
        loop {
            self.space();
            match self.peek() {
                Some(first @ (b'{' | b'[')) => {
                    let close = if first == b'{' { b'}' } else { b']' };
                    self.at += 1;
                    if self.depth + open.len() >= self.limit {
                        return Err(Fault::TooDeep);
                    }
                    self.space();
                    if !self.eat(close) {
                        open.push(close);
                        if close == b'}' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(Fault::Syntax),
            }
            // A value has ended, and maybe what holds it.
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                self.space();
                if self.eat(close) {
                    open.pop();
                    continue;
                }
                self.expect(b',')?;
                if close == b'}' {
                    self.space();
                    self.name()?;
                }
                break;
            }
        }
    }

    /// A member's name and its colon.
    fn name(&mut self) -> Result<&'t str, Fault> {
        let start = self.at;
        self.string()?;
        let name = Span { start, end: self.at }.of(self.text);
        self.space();
        self.expect(b':')?;
        Ok(name)
    }

    /// A string, its quotes included.
    pub(super) fn string(&mut self) -> Result<(), Fault> {
        self.expect(b'"')?;
        loop {
            self.at += plain(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.next() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => match self.next() {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                    Some(b'u') => {
                        for _ in 0..4 {
                            self.next().filter(u8::is_ascii_hexdigit).ok_or(Fault::Syntax)?;
                        }
                    }
                    _ => return Err(Fault::Syntax),
                },
                _ => return Err(Fault::Syntax),
            }
        }
    }

    /// A number.
    pub(super) fn number(&mut self) -> Result<(), Fault> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Fault::Syntax) }
    }

    fn literal(&mut self, word: &str) -> Result<(), Fault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(Fault::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.eat(byte) { Ok(()) } else { Err(Fault::Syntax) }
    }
}

/// How many bytes of a string come before the first one that means something:
/// a quote, a backslash, or a control character (which may not stand there).
fn plain(bytes: &[u8]) -> usize {
    /// Most strings end within so many bytes.
    const SHORT: usize = 16;
    /// Looked at in one go, which the compiler turns into vector instructions.
    const BLOCK: usize = 32;

    // Without branches, so that a block is compared as a whole.
    let special = |byte: &u8| (*byte == b'"') | (*byte == b'\\') | (*byte < 0x20);
    let (short, long) = bytes.split_at(bytes.len().min(SHORT));
    if let Some(n) = short.iter().position(special) {
        return n;
    }
    let clean = |block: &&[u8]| !block.iter().fold(false, |any, byte| any | special(byte));
    let clean = long.chunks_exact(BLOCK).take_while(clean).count() * BLOCK;
    let rest = long.get(clean..).unwrap_or_default();
    short.len() + clean + rest.iter().position(special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use super::*;

    fn scan(text: &str, limit: usize) -> Result<(), Fault> {
        let mut scanner = Scanner::new(text, limit);
        scanner.value()?;
        scanner.end()
    }

    #[test]
    fn takes_what_the_grammar_allows() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            r#"{"":{"a":[1,-0,0.5,1E+2,2e-7,true,false,null,"\u00e9\"\\\/\b\f\n\r\t"]}}"#,
            r#"["\ud800", 1e400, 123456789012345678901234567890]"#,
            "[[[]],{}]",
        ] {
            assert_eq!(scan(text, 8), Ok(()), "{text}");
        }
    }

    #[test]
    fn refuses_what_it_does_not() {
        for text in [
            "",
            " ",
            "nul",
            "nulll",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[",
            "]",
            "[}",
            r#"{"a":1]"#,
            r#"{"a":1,}"#,
            r#"{"a"}"#,
            r#"{"a":}"#,
            "{1:1}",
            "{,}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "0x1",
            "NaN",
            "\"",
            "\"\\",
            r#""\x""#,
            r#""\u12g4""#,
            "\"\u{1f}\"",
            "'a'",
            "[1]x",
            "\u{feff}1",
            "\u{a0}1",
        ] {
            assert_eq!(scan(text, 8), Err(Fault::Syntax), "{text}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        assert_eq!(scan("[[{\"a\":[]}]]", 4), Ok(()));
        assert_eq!(scan("[[{\"a\":[[]]}]]", 4), Err(Fault::TooDeep));
        assert_eq!(scan(&"[".repeat(100_000), 128), Err(Fault::TooDeep));
        assert_eq!(scan("1", 0), Ok(()));
    }

    #[test]
    fn a_string_ends_where_it_ends() {
        for length in 0..100 {
            let clean = "x".repeat(length);
            assert_eq!(plain(clean.as_bytes()), length);
            for special in ["\"", "\\", "\n", "\0"] {
                let text = format!("{clean}{special}{}", "y".repeat(50));
                assert_eq!(plain(text.as_bytes()), length);
            }
            assert_eq!(scan(&format!("\"{clean}é\\n{clean}\""), 1), Ok(()));
            assert_eq!(scan(&format!("\"{clean}\u{1}{clean}\""), 1), Err(Fault::Syntax));
        }
    }

    #[test]
    fn objects_hand_out_their_names() {
        let mut names = String::new();
        let mut scanner = Scanner::new(r#" { "a" : [1] , "b":{"c":2}}"#, 8);
        scanner.space();
        let read = scanner.object(|scanner, name| {
            names.push_str(name);
            scanner.value()
        });
        assert_eq!((read, scanner.end(), names.as_str()), (Ok(()), Ok(()), r#""a""b""#));
    }
}
