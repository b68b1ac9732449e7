//! Back-pressure: whoever fills a queue that is not being read is paused until
//! it has been.

use alloc::collections::BTreeMap;
use smallvec::SmallVec;

use crate::driver::ConnId;

/// Connections that are paused, by the connection whose queue they filled.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    blocked: BTreeMap<ConnId, SmallVec<[ConnId; 2]>>,
}

impl Pressure {
    /// `source` filled the queue of `sink`. Says whether it is to be paused now.
    pub(super) fn block(&mut self, sink: ConnId, source: ConnId) -> bool {
        let sources = self.blocked.entry(sink).or_default();
        if sources.contains(&source) {
            return false;
        }
        sources.push(source);
        true
    }

    /// The queue of `sink` has been read, or is gone: who may go on.
    pub(super) fn release(&mut self, sink: ConnId) -> SmallVec<[ConnId; 2]> {
        let sources = self.blocked.remove(&sink).unwrap_or_default();
        sources.into_iter().filter(|source| !self.is_blocked(*source)).collect()
    }

    /// `conn` is gone: it can neither fill nor be paused.
    pub(super) fn forget(&mut self, conn: ConnId) {
        for sources in self.blocked.values_mut() {
            sources.retain(|source| *source != conn);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.blocked.is_empty()
    }

    fn is_blocked(&self, source: ConnId) -> bool {
        self.blocked.values().any(|sources| sources.contains(&source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumes_when_nothing_blocks_any_more() {
        let (a, b, source) = (ConnId::accepted(1), ConnId::accepted(2), ConnId::requested(1));
        let mut pressure = Pressure::default();
        assert!(pressure.block(a, source));
        assert!(!pressure.block(a, source));
        assert!(pressure.block(b, source));
        assert!(pressure.release(a).is_empty());
        assert_eq!(pressure.release(b).as_slice(), [source]);
    }
}
