//! Arguments of tools, checked one by one.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use mcpx_core::jsonrpc::{get, string};

/// What a tool was called with: the raw text of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a>(pub(super) &'a str);

/// An argument does not fit; says why, in words for the model.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Unfit(pub(super) String);

impl<'a> Arguments<'a> {
    /// A string.
    pub(super) fn text(self, name: &str) -> Result<Cow<'a, str>, Unfit> {
        string(self.given(name)?).ok_or_else(|| Unfit(format!("`{name}` must be a string")))
    }

    /// A number, as it was written.
    pub(super) fn number(self, name: &str) -> Result<&'a str, Unfit> {
        let raw = self.given(name)?;
        value(raw).map(|_| raw).ok_or_else(|| Unfit(format!("`{name}` must be a number")))
    }

    /// An integer within a range.
    pub(super) fn integer(self, name: &str, range: RangeInclusive<u32>) -> Result<u32, Unfit> {
        let (least, most) = (*range.start(), *range.end());
        value(self.given(name)?)
            .filter(|value| value.fract() == 0.0)
            .filter(|value| (f64::from(least)..=f64::from(most)).contains(value))
            .map(|value| value as u32)
            .ok_or_else(|| Unfit(format!("`{name}` must be an integer between {least} and {most}")))
    }

    /// The same; zero if it is not given.
    pub(super) fn optional(self, name: &str, range: RangeInclusive<u32>) -> Result<u32, Unfit> {
        match get(self.0, name) {
            None => Ok(0),
            Some(_) => self.integer(name, range),
        }
    }

    fn given(self, name: &str) -> Result<&'a str, Unfit> {
        get(self.0, name).ok_or_else(|| Unfit(format!("`{name}` is missing")))
    }
}

/// The value of a raw JSON number; nothing for other JSON, and for numbers that
/// are too large.
fn value(raw: &str) -> Option<f64> {
    raw.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The sum of two raw JSON numbers as one, exact if they are integers of 64 bits.
/// Nothing if it is too large.
pub(super) fn sum(a: &str, b: &str) -> Option<String> {
    if let (Ok(a), Ok(b)) = (a.parse::<i64>(), b.parse::<i64>()) {
        return Some((i128::from(a) + i128::from(b)).to_string());
    }
    let sum = value(a)? + value(b)?;
    sum.is_finite().then(|| sum.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let given = Arguments(r#"{"s":"a","n":1.5,"i":1e2,"t":true,"big":1e400}"#);
        assert_eq!(given.text("s").as_deref(), Ok("a"));
        assert_eq!(given.number("n"), Ok("1.5"));
        assert_eq!(given.integer("i", 1..=100), Ok(100));
        assert_eq!(given.optional("missing", 1..=2), Ok(0));
        assert_eq!(given.text("missing"), Err(Unfit("`missing` is missing".into())));
        for (name, outcome) in [("s", 1), ("n", 0), ("i", 0), ("t", 0), ("big", 0)] {
            assert_eq!(given.text(name).is_ok(), outcome == 1, "{name}");
            assert!(given.integer(name, 0..=99).is_err(), "{name}");
        }
        assert!(given.number("t").is_err() && given.number("big").is_err());
        assert!(given.optional("t", 0..=9).is_err());
    }

    #[test]
    fn sums_are_exact_while_they_can_be() {
        assert_eq!(sum("2", "3").as_deref(), Some("5"));
        assert_eq!(sum("9007199254740993", "-1").as_deref(), Some("9007199254740992"));
        assert_eq!(sum("0.5", "1e0").as_deref(), Some("1.5"));
        assert_eq!(sum("9223372036854775807", "1").as_deref(), Some("9223372036854775808"));
        assert_eq!(sum("1e308", "1e308"), None);
    }
}
