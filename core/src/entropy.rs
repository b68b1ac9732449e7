//! Randomness that is handed in: 32 bytes from the host, expanded by ChaCha20.

use alloc::string::String;
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

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 128 random bits.
    pub fn next_u128(&mut self) -> u128 {
        u128::from(self.word()) << 64 | u128::from(self.word())
    }

    /// 128 random bits as 32 lower-case hexadecimal digits.
    pub fn token(&mut self) -> String {
        alloc::format!("{:032x}", self.next_u128())
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
        assert_eq!(a.token(), b.token());
        assert_ne!(a.token(), a.token());
    }
}
