//! Request ids: strings or integers, kept as the text that they came as.

use alloc::string::String;

use super::scan::Scanner;
use super::text::string;

/// The largest power of ten that an integer written with an exponent may have.
/// Beyond it readers that compute with floating point begin to differ.
const EXPONENT: i64 = 18;

/// Whether raw JSON text is an id: a string, or an integer of any size and
/// spelling (`1`, `1.0`, `1e2`).
pub(super) fn is_id(raw: &str) -> bool {
    match raw.as_bytes().first() {
        Some(b'"') => {
            let mut scanner = Scanner::new(raw, 0);
            scanner.string().is_ok() && scanner.at() == raw.len()
        }
        _ => Number::read(raw).is_some_and(|number| {
            (0..=EXPONENT).contains(&number.exponent) || number.is_plain(raw)
        }),
    }
}

/// Whether an answer that carries the id `received` belongs to the request that
/// was sent with `sent` (both raw JSON). Strings are compared decoded, numbers
/// by value: some servers re-write them. An id never equals one of another type.
pub fn same_id(sent: &str, received: &str) -> bool {
    if !is_id(sent) || !is_id(received) {
        return false;
    }
    if sent == received {
        return true;
    }
    match (string(sent), string(received)) {
        (Some(sent), Some(received)) => sent == received,
        (None, None) => matches!(
            (Number::read(sent), Number::read(received)),
            (Some(sent), Some(received)) if sent == received
        ),
        _ => false,
    }
}

/// A number by its value: `digits` without zeros at either end, times ten to
/// the power of `exponent`.
#[derive(PartialEq, Eq)]
struct Number {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Number {
    fn read(raw: &str) -> Option<Self> {
        let mut scanner = Scanner::new(raw, 0);
        scanner.number().ok()?;
        scanner.end().ok()?;
        let (negative, magnitude) = match raw.strip_prefix('-') {
            Some(magnitude) => (true, magnitude),
            None => (false, raw),
        };
        let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = String::with_capacity(mantissa.len());
        digits.push_str(whole);
        digits.push_str(fraction);
        let significant = digits.trim_end_matches('0').len();
        let dropped = i64::try_from(digits.len() - significant).ok()?;
        digits.truncate(significant);
        let digits = String::from(digits.trim_start_matches('0'));
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = exponent.parse::<i64>().ok()?;
        let fraction = i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.checked_add(dropped)?.checked_sub(fraction)?;
        Some(Self { negative, digits, exponent })
    }

    /// Whether it was written as nothing but digits, so that the exponent is
    /// only the count of its last zeros.
    fn is_plain(&self, raw: &str) -> bool {
        !raw.contains(['.', 'e', 'E'])
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn ids_are_strings_and_integers() {
        let huge = format!("1{}", "0".repeat(400));
        for raw in ["0", "-1", "1.0", "1e2", "10e-1", "-0", "\"\"", "\"\\ud83d\"", huge.as_str()] {
            assert!(is_id(raw), "{raw}");
        }
        for raw in
            ["", "null", "true", "1.5", "1e-1", "1e400", "[]", "{}", "01", "\"", "\"a\"b", "1 2"]
        {
            assert!(!is_id(raw), "{raw}");
        }
        for raw in ["1e99999999999999999999", "1e-9223372036854775808", "1e9223372036854775807"] {
            assert!(!is_id(raw), "{raw}");
        }
    }

    #[test]
    fn ids_are_compared_by_value() {
        for (sent, received) in [
            ("7", "7"),
            ("7", "7.0"),
            ("100", "1e2"),
            ("0", "-0"),
            ("-10", "-1E1"),
            ("\"é\"", "\"\\u00e9\""),
            ("12345678901234567890123", "12345678901234567890123"),
        ] {
            assert!(same_id(sent, received), "{sent} {received}");
        }
        for (sent, received) in [
            ("7", "\"7\""),
            ("7", "null"),
            ("null", "null"),
            ("1", "-1"),
            ("1", "10"),
            ("1", "true"),
            ("0", "\"\""),
            ("\"a\"", "\"A\""),
            ("\"\\ud800\"", "7"),
            ("\"\\ud800\"", "\"\\ud801\""),
            ("9007199254740993", "9007199254740992"),
        ] {
            assert!(!same_id(sent, received), "{sent} {received}");
        }
    }
}
