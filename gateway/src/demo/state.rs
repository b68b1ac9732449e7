//! What a modern host keeps for us between two calls: sealed, for it comes back
//! from a stranger (2026-07-28 `basic/patterns/mrtr`).

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use mcpx_core::time::Instant;

/// How long after a question its answer may come.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// Seals states, and opens those that it has sealed.
///
/// The seal is a keyed hash of 64 bits, enough for hosts that can only lie to
/// themselves with a state. A server with something to lose takes a MAC that was
/// made for that, or a cipher.
pub(super) struct Sealer(u128);

impl Sealer {
    pub(super) fn new(secret: u128) -> Self {
        Self(secret)
    }

    /// A state with this content, for this purpose only.
    pub(super) fn seal(&self, now: Instant, purpose: &str, content: &str) -> String {
        let sealed = format!("{:x}.{content}", (now + LIFE).as_micros());
        format!("{:016x}.{sealed}", self.seal_of(purpose, &sealed))
    }

    /// The content of a state that we have sealed for this purpose, not long ago.
    pub(super) fn open<'a>(&self, now: Instant, purpose: &str, state: &'a str) -> Option<&'a str> {
        let (seal, sealed) = state.split_once('.')?;
        let expected = format!("{:016x}", self.seal_of(purpose, sealed));
        let (until, content) = sealed.split_once('.').filter(|_| seal == expected)?;
        let until = Instant::from_micros(u64::from_str_radix(until, 16).ok()?);
        (now < until).then_some(content)
    }

    fn seal_of(&self, purpose: &str, sealed: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u128(self.0);
        // Where one ends and the other begins is part of the meaning.
        hasher.write_usize(purpose.len());
        hasher.write(purpose.as_bytes());
        hasher.write(sealed.as_bytes());
        hasher.finish()
    }
}

impl fmt::Debug for Sealer {
    // Never shows the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened() {
        let (sealer, now) = (Sealer::new(7), Instant::START);
        let state = sealer.seal(now, "call ask", "{}");
        assert_eq!(sealer.open(now, "call ask", &state), Some("{}"));
        assert_eq!(sealer.open(now, "call think", &state), None);
        assert_eq!(Sealer::new(8).open(now, "call ask", &state), None);
        for (at, _) in state.char_indices() {
            let (before, after) = (&state[..at], &state[at + 1..]);
            assert_eq!(sealer.open(now, "call ask", &format!("{before}{after}")), None);
            assert_eq!(sealer.open(now, "call ask", &format!("{before}~{after}")), None);
        }
        for forged in ["", ".", "..", "0.0.{}", &format!("{state}x"), "0000000000000000"] {
            assert_eq!(sealer.open(now, "call ask", forged), None, "{forged}");
        }
    }

    #[test]
    fn states_grow_old() {
        let sealer = Sealer::new(7);
        let state = sealer.seal(Instant::START, "p", "");
        let end = Instant::START + LIFE;
        let before = Instant::from_micros(end.as_micros() - 1);
        assert_eq!(sealer.open(before, "p", &state), Some(""));
        assert_eq!(sealer.open(end, "p", &state), None);
    }
}
