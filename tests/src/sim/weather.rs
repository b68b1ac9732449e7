//! How bytes travel: in what pieces, how fast, and how many of them wait.

use std::time::Duration;

use super::rng::Rng;

/// What the network of one run is like.
#[derive(Clone, Debug)]
pub struct Weather {
    /// The longest way of anything, in microseconds.
    pub delay: u64,
    /// The length of most pieces; 0 leaves them whole.
    pub piece: usize,
    /// Bytes that fit between a writer and its reader.
    pub window: usize,
}

impl Weather {
    /// Everything arrives at once, and whole.
    pub const STILL: Self = Self { delay: 0, piece: 0, window: 1 << 16 };

    /// Some weather or other. What comes in the smallest pieces does not wait
    /// long for each of them: a message must arrive within the gateway's limits.
    pub fn of(rng: &mut Rng) -> Self {
        let piece = [0, 1, 3, 17, 200, 5_000][rng.index(6)];
        let window = [16, 1_000, 1 << 16][rng.index(3)];
        let small = window == 16 || (1..100).contains(&piece);
        let delays = if small { [0, 10, 100, 1_000] } else { [0, 10, 1_000, 50_000] };
        Self { delay: delays[rng.index(4)], piece, window }
    }

    pub(super) fn delay(&self, rng: &mut Rng) -> Duration {
        Duration::from_micros(rng.below(self.delay + 1))
    }

    /// How many of `length` bytes go next, of which most pieces have at least `grain`.
    pub(super) fn cut(&self, length: usize, grain: usize, rng: &mut Rng) -> usize {
        if self.piece == 0 || length <= 1 {
            return length;
        }
        (1 + rng.index(2 * self.piece.max(grain))).min(length)
    }
}
