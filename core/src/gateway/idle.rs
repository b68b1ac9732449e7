//! Ending what nobody uses: the connections that requests share, with the processes
//! behind them.

use super::at::{At, CallKind};
use super::many::Attention;
use super::modern::Verdict;
use crate::client::UpstreamId;

impl At<'_> {
    /// Whether a connection that requests share is to stay though none has come for
    /// long: some still run, or hosts hear through it what changes.
    pub(super) fn is_used(&self, id: UpstreamId) -> bool {
        let link = self.server.links.get(&id);
        let ours = |kind| matches!(kind, CallKind::Attend);
        let runs = link.is_some_and(|link| link.calls.values().any(|call| !ours(call.kind)));
        let tells = self.hub.merged && self.hub.attentive && self.server.catalogue.tells();
        runs || tells || self.server.config.eager
    }

    /// Stops the process of a modern server that nobody uses, or our subscription there.
    /// One that makes tasks may have some that hosts come back to.
    pub(super) fn check_idle(&mut self) {
        let Some(due) = self.server.idle_deadline() else { return };
        let Verdict::Modern(id) = self.server.modern.verdict else { return };
        if due > self.hub.now {
            return;
        }
        if self.is_used(id) || !self.server.rounds.is_empty() {
            self.server.modern.used = self.hub.now;
            return;
        }
        self.server.modern.verdict = Verdict::Unknown;
        self.server.attention = Attention::default();
        self.stop_link(id);
    }
}
