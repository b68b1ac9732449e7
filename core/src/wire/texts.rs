//! JSON texts one after another: where each of them ends.
//!
//! Some servers answer with several messages, a line each, in a response that
//! calls itself `application/json`. White space between texts is theirs (RFC
//! 8259), and a text may span lines: only its brackets say how far it goes.

/// Finds the ends of objects and arrays in bytes that come in pieces.
///
/// It does not judge: what is no JSON ends somewhere, too, and whoever reads it
/// sees what it is. Anything else than an object or array ends with its line.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    place: Place,
    /// Brackets that are open.
    depth: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Before,
    Inside,
    String,
    /// After a backslash.
    Escape,
    Scrap,
}

impl Splitter {
    /// How many of these bytes belong to the text, if it ends in them; otherwise
    /// they all do.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            self.place = match (self.place, byte) {
                (Place::Before, b' ' | b'\t' | b'\r' | b'\n') => Place::Before,
                (Place::Before | Place::Inside, b'{' | b'[') => {
                    self.depth = self.depth.saturating_add(1);
                    Place::Inside
                }
                (Place::Before, _) => Place::Scrap,
                (Place::Inside, b'"') => Place::String,
                (Place::Inside, b'}' | b']') => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.place = Place::Before;
                        return Some(at);
                    }
                    Place::Inside
                }
                (Place::Inside, _) => Place::Inside,
                (Place::String, b'"') => Place::Inside,
                (Place::String, b'\\') => Place::Escape,
                (Place::String, _) => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    Place::String
                }
                (Place::Escape, _) => Place::String,
                (Place::Scrap, b'\n') => {
                    self.place = Place::Before;
                    return Some(at);
                }
                (Place::Scrap, _) => Place::Scrap,
            };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn split<'a>(pieces: &[&'a str]) -> (Vec<alloc::string::String>, Splitter) {
        let mut splitter = Splitter::default();
        let (mut texts, mut text) = (Vec::new(), alloc::string::String::new());
        for piece in pieces {
            let mut rest: &'a str = piece;
            while let Some(n) = splitter.feed(rest.as_bytes()) {
                text.push_str(&rest[..n]);
                texts.push(core::mem::take(&mut text));
                rest = &rest[n..];
            }
            text.push_str(rest);
        }
        texts.push(text);
        (texts, splitter)
    }

    #[test]
    fn texts_end_with_their_brackets() {
        let cases: [(&str, &[&str]); 6] = [
            ("{}\n{}\n", &["{}", "\n{}", "\n"]),
            (r#"{"a":{"b":[1,"]}"]}}[]"#, &[r#"{"a":{"b":[1,"]}"]}}"#, "[]", ""]),
            ("{\n \"a\": 1\n}\n", &["{\n \"a\": 1\n}", "\n"]),
            (r#"{"\"}\\":"\\\"{"}{"x""#, &[r#"{"\"}\\":"\\\"{"}"#, r#"{"x""#]),
            ("oops {}\n{}", &["oops {}\n", "{}", ""]),
            ("]}\n", &["]}\n", ""]),
        ];
        for (whole, expected) in cases {
            assert_eq!(split(&[whole]).0, expected, "{whole}");
            for at in 0..whole.len() {
                assert_eq!(split(&[&whole[..at], &whole[at..]]).0, expected, "{whole} at {at}");
            }
        }
    }
}
