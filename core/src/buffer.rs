//! The byte queue that stands between a machine and a connection.

use alloc::vec::Vec;

/// A queue that keeps this much memory when it runs empty gives back the rest.
const KEEP: usize = 64 * 1024;

/// Bytes waiting to be taken, in one piece.
///
/// Writers append to the end; the reader takes from the front. The consumed
/// front is reclaimed when the queue runs empty or the front outgrows the rest.
#[derive(Debug, Default)]
pub struct ByteQueue {
    bytes: Vec<u8>,
    taken: usize,
}

impl ByteQueue {
    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that wait.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// The end of the queue, to append to. Nothing else may be done with it.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Takes the first `n` bytes, or all there are.
    pub fn take(&mut self, n: usize) {
        self.taken = self.taken.saturating_add(n).min(self.bytes.len());
        if self.taken == self.bytes.len() {
            self.clear();
        } else if self.taken > KEEP && self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Throws everything away.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEEP);
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_from_the_front() {
        let mut queue = ByteQueue::default();
        queue.tail().extend_from_slice(b"hello");
        queue.take(2);
        assert_eq!(queue.as_slice(), b"llo");
        queue.tail().extend_from_slice(b" you");
        assert_eq!((queue.as_slice(), queue.len()), (&b"llo you"[..], 7));
        queue.take(99);
        assert!(queue.is_empty());
    }

    #[test]
    fn gives_memory_back() {
        let mut queue = ByteQueue::default();
        queue.tail().resize(4 << 20, 0);
        queue.take(3 << 20);
        assert_eq!(queue.len(), 1 << 20);
        queue.take(1 << 20);
        assert!(queue.bytes.capacity() <= KEEP);
    }
}
