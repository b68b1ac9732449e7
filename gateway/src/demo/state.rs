//! What a modern host keeps for us between two calls: sealed, for it comes back
//! from a stranger (2026-07-28 `basic/patterns/mrtr`).

use std::time::Duration;

use mcpx_core::entropy::Entropy;
use mcpx_core::seal::Sealer;
use mcpx_core::time::Instant;

/// How long after a question its answer may come.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// Seals states, and opens those that it has sealed.
#[derive(Debug)]
pub(super) struct States {
    sealer: Sealer,
    entropy: Entropy,
}

impl States {
    pub(super) fn new(entropy: &mut Entropy) -> Self {
        Self { sealer: Sealer::new(entropy.bytes()), entropy: Entropy::new(entropy.bytes()) }
    }

    /// A state with this content, for this purpose only.
    pub(super) fn seal(&mut self, now: Instant, purpose: &str, content: &str) -> Option<String> {
        let mut bytes = (now + LIFE).as_micros().to_le_bytes().to_vec();
        bytes.extend_from_slice(content.as_bytes());
        self.sealer.seal(&mut self.entropy, purpose, &bytes)
    }

    /// The content of a state that we have sealed for this purpose, not long ago.
    pub(super) fn open(&self, now: Instant, purpose: &str, state: &str) -> Option<String> {
        let bytes = self.sealer.open(purpose, state)?;
        let (until, content) = bytes.split_first_chunk()?;
        let until = Instant::from_micros(u64::from_le_bytes(*until));
        (now < until).then(|| String::from_utf8(content.to_vec()).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened_and_not_for_ever() {
        let (mut states, now) = (States::new(&mut Entropy::new([7; 32])), Instant::START);
        let state = states.seal(now, "call ask", "{}").unwrap();
        assert_eq!(states.open(now, "call ask", &state).as_deref(), Some("{}"));
        assert_eq!(states.open(now, "call think", &state), None);
        for forged in ["", ".", "AAAA", &format!("{state}A"), &state[1..]] {
            assert_eq!(states.open(now, "call ask", forged), None, "{forged}");
        }
        let end = now + LIFE;
        let before = Instant::from_micros(end.as_micros() - 1);
        assert_eq!(states.open(before, "call ask", &state).as_deref(), Some("{}"));
        assert_eq!(states.open(end, "call ask", &state), None);
    }
}
