//! How the fuzzer's bytes are read: small choices first, then the payload.

/// The fuzzer's bytes, taken from the front. When they run out, all is zero.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// One of `n` choices.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// Some bytes: as many as the next byte says.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte());
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Where to cut: up to seven lengths, taken in turn.
    pub fn cuts(&mut self) -> Cuts {
        let count = 1 + self.below(7);
        Cuts { lengths: (0..count).map(|_| 1 + usize::from(self.byte())).collect(), next: 0 }
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The lengths of the pieces that bytes are cut into, over and over.
#[derive(Clone, Debug)]
pub struct Cuts {
    lengths: Vec<usize>,
    next: usize,
}

impl Cuts {
    /// One piece only.
    pub fn none() -> Self {
        Self { lengths: vec![usize::MAX], next: 0 }
    }

    /// The pieces of `bytes`; none if there are no bytes.
    pub fn pieces<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = self.lengths[self.next % self.lengths.len()].min(rest.len());
            self.next += 1;
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
