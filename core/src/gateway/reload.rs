//! Other servers than before, while hosts are there.
//!
//! A server whose configuration is the same notices nothing, and neither do the
//! sessions that hosts have there. One that is new begins when it is needed; one that is
//! gone, or is another now, is stopped, and what it was working on fails.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::at::{At, Server, ServerId};
use super::config::{Catalogue, Server as Config};
use super::machine::Gateway;
use super::shutdown::Phase;
use crate::server::ExchangeId;
use crate::time::Instant;

impl Gateway {
    /// Puts these servers in the place of those that there are. Afterwards poll as
    /// after any input.
    pub fn configure(&mut self, now: Instant, servers: Vec<Config>, catalogue: Catalogue) {
        if self.phase != Phase::Serving {
            return;
        }
        self.hub.at(now);
        let before = core::mem::take(&mut self.many.order);
        let mut order = Vec::new();
        for config in servers {
            let same = before.iter().find(|id| {
                self.servers.get(id).is_some_and(|server| server.config == config)
                    && !order.contains(*id)
            });
            let id = same.copied().unwrap_or_else(|| self.add(config));
            order.push(id);
        }
        self.many.order = order;
        if !self.hub.merged && !self.shows_one() {
            self.adopt_sessions();
        }
        let order = &self.many.order;
        let gone = before.into_iter().filter(|id| !order.contains(id)).collect::<Vec<_>>();
        for id in gone.into_iter().chain(self.take_orphans()) {
            if let Some(mut at) = self.at(id) {
                at.retire();
            }
        }
        self.many.reconfigure(catalogue);
        self.choose_view();
        self.hub.changed = [true; 4];
        self.hub.catalogue_changed = true;
        if self.hub.attentive {
            self.want_catalogues();
        }
        self.settle();
    }

    /// A server that has just been configured.
    pub(super) fn add(&mut self, config: Config) -> ServerId {
        let id = ServerId(self.hub.number());
        self.servers.insert(id, Box::new(Server::new(id, config)));
        id
    }

    /// Forgets servers that are not configured any more and have ended.
    pub(super) fn bury_servers(&mut self) {
        let ended = self.servers.iter().filter(|(_, server)| server.links.is_empty());
        let ended: Vec<ServerId> = ended.map(|(id, _)| *id).collect();
        for id in ended {
            if !self.is_present(id) {
                self.servers.remove(&id);
            }
        }
    }
}

impl At<'_> {
    /// Ends the server, and everything that it was to do.
    fn retire(&mut self) {
        let server = &self.server;
        let mut running: BTreeSet<ExchangeId> = server.routes.keys().copied().collect();
        running.extend(server.exchanges.keys());
        running.extend(server.rounds.keys());
        running.extend(server.watches.exchanges());
        running.extend(server.modern.exchanges());
        running.extend(server.shared.exchanges());
        running.extend(server.lives.exchanges());
        running.extend(server.bridged.values().flat_map(|session| session.hearing.exchanges()));
        for exchange in running {
            self.cancel_call(exchange, Some(r#""the server is not configured any more""#));
            self.fail(exchange, "it is not configured any more, or in another way");
        }
        let links: Vec<_> = self.server.links.keys().copied().collect();
        for id in links {
            self.stop_link(id);
        }
        self.leave();
    }
}
