//! Randomness that is handed in: 32 bytes from the host, expanded by ChaCha20.

use core::fmt;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A generator whose whole output follows from its seed.
///
/// The seed must come from the operating system in production and from the
/// test's number in a simulation.
pub struct Entropy(ChaCha20Rng);

impl Entropy {
    /// A generator for `seed`.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// Random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

impl fmt::Debug for Entropy {
    // Never shows the state: it foretells every token to come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_one_stream() {
        let (mut a, mut b) = (Entropy::new([7; 32]), Entropy::new([7; 32]));
        assert_eq!(a.bytes::<16>(), b.bytes());
        assert_ne!(a.bytes::<16>(), a.bytes());
    }
}
