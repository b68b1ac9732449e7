//! The end, in good order: no new work, running work finished within a limit,
//! subscriptions ended gracefully, servers stopped.

use alloc::string::String;
use alloc::vec::Vec;

use super::machine::{CallKind, Gateway};
use crate::client::UpstreamId;
use crate::driver::Action;
use crate::protocol::meta;
use crate::server::{ExchangeId, Outcome};
use crate::time::Instant;

/// How far the end has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It has not begun.
    Serving,
    /// Running requests may finish until then.
    Draining(Instant),
    /// Hosts are gone; servers are being stopped.
    Stopping,
    /// [`Action::Exit`] is given.
    Over,
}

impl Phase {
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Draining(until) => Some(until),
            _ => None,
        }
    }
}

impl Gateway {
    /// The user asks to stop; the second time, at once.
    pub(super) fn stop(&mut self) {
        match self.phase {
            Phase::Serving => {
                self.phase = Phase::Draining(self.now + self.config.limits.drain);
                self.endpoint.drain();
                self.end_listens();
            }
            Phase::Draining(_) | Phase::Stopping => {
                self.leave();
                let all: Vec<UpstreamId> = self.links.keys().copied().collect();
                for id in all {
                    if let Some(link) = self.links.get_mut(&id) {
                        link.upstream.kill(&mut self.wires);
                    }
                    self.touch(id);
                }
            }
            Phase::Over => {}
        }
    }

    /// Tells those who listen that this is a graceful end (2026-07-28
    /// `basic/patterns/subscriptions`).
    fn end_listens(&mut self) {
        let listens: Vec<(UpstreamId, ExchangeId)> = self
            .links
            .iter()
            .flat_map(|(id, link)| link.calls.values().map(|call| (*id, call.kind)))
            .filter_map(|(id, kind)| match kind {
                CallKind::Listen { exchange } => Some((id, exchange)),
                _ => None,
            })
            .collect();
        for (_, exchange) in listens {
            let id = self.endpoint.id_of(exchange).map(String::from).unwrap_or_default();
            let result = alloc::format!(
                r#"{{"resultType":"complete","_meta":{{"{}":{id}}}}}"#,
                meta::SUBSCRIPTION_ID
            );
            self.cancel_call(exchange, None);
            self.endpoint.respond(exchange, Outcome::Result(&result));
        }
    }

    /// The next step towards the end, if its time has come.
    pub(super) fn proceed(&mut self) {
        if self.phase == Phase::Serving && self.endpoint.is_over() {
            self.leave();
        }
        if let Phase::Draining(until) = self.phase
            && (self.endpoint.running() == 0 || until <= self.now)
        {
            self.leave();
        }
        if self.phase == Phase::Stopping && self.links.is_empty() {
            self.phase = Phase::Over;
            self.output.act(Action::Exit);
        }
    }

    /// Ends all hosts and asks all servers to end.
    fn leave(&mut self) {
        if self.phase == Phase::Stopping {
            return;
        }
        self.phase = Phase::Stopping;
        self.endpoint.drain();
        self.endpoint.shut_down();
        while let Some(event) = self.endpoint.poll_event() {
            self.on_host_event(event);
        }
        let all: Vec<UpstreamId> = self.links.keys().copied().collect();
        for id in all {
            if let Some(link) = self.links.get_mut(&id) {
                link.upstream.stop(&mut self.wires);
            }
            // Nobody hears what they say now.
            self.discard_events(id);
            self.bury(id);
            self.touch(id);
        }
        self.modern.forget();
        self.shared.forget();
        self.lives.forget();
    }

    fn discard_events(&mut self, id: UpstreamId) {
        if let Some(link) = self.links.get_mut(&id) {
            while link.upstream.poll_event().is_some() {}
            link.calls.clear();
        }
    }
}
