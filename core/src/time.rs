//! Moments and deadlines. The core has no clock: every moment is handed in.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::ops::Add;
use core::time::Duration;

/// A moment on the clock of whoever drives the machine, in microseconds since
/// an origin of their choice (usually the start of the process).
///
/// Moments handed to one machine must never go back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const START: Self = Self(0);

    /// The moment `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

/// The wait after so many attempts in vain: `first`, doubled with each more, and `most`
/// at the most.
pub fn backoff(first: Duration, more: u32, most: Duration) -> Duration {
    first.saturating_mul(1 << more.min(20)).min(most)
}

/// Deadlines in the order in which they fall due.
///
/// There is no removal: whoever takes a key that fell due looks whether it
/// still means anything. Keys that are due at the same moment come out in
/// their own order, so a run is repeatable.
#[derive(Debug)]
pub struct Timers<K> {
    heap: BinaryHeap<Reverse<(Instant, K)>>,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new() }
    }
}

impl<K: Ord> Timers<K> {
    /// Asks for `key` back at `at`.
    pub fn set(&mut self, at: Instant, key: K) {
        self.heap.push(Reverse((at, key)));
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A key whose deadline is not after `now`.
    pub fn due(&mut self, now: Instant) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, key))| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fall_due_in_order() {
        let mut timers = Timers::default();
        timers.set(Instant::from_micros(20), 'b');
        timers.set(Instant::from_micros(10), 'a');
        assert_eq!(timers.next(), Some(Instant::from_micros(10)));
        assert_eq!(timers.due(Instant::from_micros(9)), None);
        assert_eq!(timers.due(Instant::from_micros(30)), Some('a'));
        assert_eq!(timers.due(Instant::from_micros(30)), Some('b'));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn instants_saturate() {
        assert_eq!(Instant::from_micros(u64::MAX) + Duration::MAX, Instant(u64::MAX));
        assert_eq!(Instant::START.since(Instant::from_micros(5)), Duration::ZERO);
    }
}
