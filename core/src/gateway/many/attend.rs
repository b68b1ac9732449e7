//! Hearing from a server that its lists have changed.
//!
//! A legacy server says so on the connection that requests share; a modern one on a
//! subscription of ours, which is taken up again when it breaks.

use core::time::Duration;

use crate::client::{RequestId, UpstreamId, probe};
use crate::gateway::at::{At, Call, CallKind};
use crate::gateway::relisten::{LISTS, filter};
use crate::gateway::rewrite::with;
use crate::protocol::method;
use crate::protocol::revision::Era;
use crate::time::{Instant, backoff};

/// The longest pause before another attempt.
const LONGEST: Duration = Duration::from_secs(60);

/// Our own subscription to a modern server.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Attention {
    current: Option<(UpstreamId, RequestId, Instant)>,
    /// When it is taken up again, and how often it has broken soon.
    again: Option<Instant>,
    tries: u32,
}

impl Attention {
    /// Whether there is one.
    pub(in crate::gateway) fn is_there(&self) -> bool {
        self.current.is_some() || self.again.is_some()
    }

    pub(in crate::gateway) fn deadline(&self) -> Option<Instant> {
        self.again
    }
}

impl At<'_> {
    /// Has the server tell when its lists change, if it ever does.
    pub(super) fn attend(&mut self, id: UpstreamId) {
        let now = self.hub.now;
        let tells = |group| self.server.catalogue.can(&[group, "listChanged"]);
        let lists = LISTS.map(|(_, _, group)| tells(group));
        let filter = filter(lists, &Default::default());
        let Some(link) = self.server.links.get_mut(&id) else { return };
        self.server.attention.again = None;
        if link.upstream.revision().is_none_or(|revision| revision.era() == Era::Legacy) {
            link.upstream.listen(&mut self.hub.wires);
            return self.touch(id);
        }
        let known = self.server.attention.current.is_some_and(|(current, ..)| current == id);
        if known || filter == "{}" {
            return;
        }
        let params = with(&probe::params(), "notifications", &filter);
        let wires = &mut self.hub.wires;
        let request = link.upstream.request(wires, method::LISTEN, Some(&params), &[]);
        link.calls.insert(request, Call::ours(CallKind::Attend, now));
        self.server.attention.current = Some((id, request, now));
        self.touch(id);
    }

    /// The subscription has ended; if the server has refused it, for good.
    pub(in crate::gateway) fn on_unattended(
        &mut self,
        id: UpstreamId,
        request: RequestId,
        refused: bool,
    ) {
        let now = self.hub.now;
        let attention = &mut self.server.attention;
        let ours = |it: &mut (UpstreamId, RequestId, Instant)| (it.0, it.1) == (id, request);
        let Some((.., since)) = attention.current.take_if(ours) else { return };
        if refused {
            return;
        }
        if now.since(since) >= LONGEST {
            attention.tries = 0;
        }
        attention.again = Some(now + backoff(Duration::from_secs(1), attention.tries, LONGEST));
        attention.tries = attention.tries.saturating_add(1);
    }

    /// Takes it up again when it is time. Everything may have changed meanwhile.
    pub(in crate::gateway) fn check_attention(&mut self) {
        if self.server.attention.again.take_if(|at| *at <= self.hub.now).is_some()
            && let Some(id) = self.introduced()
        {
            self.on_met(id);
        }
    }
}
