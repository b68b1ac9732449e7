//! The end, in good order: no new work, running work finished within a limit,
//! subscriptions ended gracefully, servers stopped.

use alloc::vec::Vec;

use super::at::{At, CallKind, Hub};
use super::machine::Gateway;
use super::many::Attention;
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
                self.phase = Phase::Draining(self.hub.now + self.drain);
                self.hub.endpoint.drain();
                self.end_all_listens();
                self.each(|at| at.end_listens());
            }
            Phase::Draining(_) | Phase::Stopping => {
                self.leave();
                self.each(|at| at.kill());
            }
            Phase::Over => {}
        }
    }

    /// The next step towards the end, if its time has come.
    pub(super) fn proceed(&mut self) {
        if self.phase == Phase::Serving && self.hub.endpoint.is_over() {
            self.leave();
        }
        if let Phase::Draining(until) = self.phase
            && (self.hub.endpoint.running() == 0 || until <= self.hub.now)
        {
            self.leave();
        }
        if self.phase == Phase::Stopping
            && self.servers.values().all(|server| server.links.is_empty())
        {
            self.phase = Phase::Over;
            self.hub.output.act(Action::Exit);
        }
    }

    /// Ends all hosts and asks all servers to end.
    fn leave(&mut self) {
        if self.phase == Phase::Stopping {
            return;
        }
        self.phase = Phase::Stopping;
        self.hub.endpoint.drain();
        self.hub.endpoint.shut_down();
        while let Some(event) = self.hub.endpoint.poll_event() {
            self.on_host_event(event);
        }
        self.many.forget();
        self.each(|at| at.leave());
    }
}

impl Hub {
    /// Tells a host that listens that this is a graceful end (SUB-08).
    pub(super) fn end_listen(&mut self, exchange: ExchangeId) {
        let id = self.endpoint.id_of(exchange).unwrap_or("null");
        let result = alloc::format!(
            r#"{{"resultType":"complete","_meta":{{"{}":{id}}}}}"#,
            meta::SUBSCRIPTION_ID
        );
        self.endpoint.respond(exchange, Outcome::Result(&result));
    }
}

impl At<'_> {
    /// Tells those who listen that this is a graceful end (2026-07-28
    /// `basic/patterns/subscriptions`).
    pub(super) fn end_listens(&mut self) {
        let calls = self.server.links.values().flat_map(|link| link.calls.values());
        let listens = calls.filter_map(|call| match call.kind {
            CallKind::Listen { exchange } => Some(exchange),
            _ => None,
        });
        let listens: Vec<ExchangeId> = listens.chain(self.server.watches.exchanges()).collect();
        for exchange in listens {
            self.cancel_call(exchange, None);
            self.hub.end_listen(exchange);
        }
    }

    fn kill(&mut self) {
        for (id, link) in &mut self.server.links {
            link.upstream.kill(&mut self.hub.wires);
            self.hub.touched.insert(*id);
        }
    }

    /// Asks the server to end. Nobody hears what it says now.
    pub(super) fn leave(&mut self) {
        let all: Vec<UpstreamId> = self.server.links.keys().copied().collect();
        for id in all {
            if let Some(link) = self.server.links.get_mut(&id) {
                link.upstream.stop(&mut self.hub.wires);
                while link.upstream.poll_event().is_some() {}
                link.calls.clear();
            }
            self.bury(id);
            self.touch(id);
        }
        self.server.modern.forget();
        self.server.shared.forget();
        self.server.lives.forget();
        self.server.parking.forget();
        self.server.watches.forget();
        self.server.exchanges.clear();
        self.server.rounds.clear();
        self.server.bridged.clear();
        self.server.catalogue.forget();
        self.server.attention = Attention::default();
    }
}
