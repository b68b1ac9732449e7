//! A server for each token: what hosts with one of them do is nothing to those with
//! another, even where the server cannot tell them apart (2026-07-28 `basic`; SEP-2567).
//!
//! Such a server is configured once and seen once in the catalogue: that one is the
//! template. Each token has an instance of it, from its first request on.

use alloc::vec::Vec;

use super::at::ServerId;
use super::config::Instances;
use super::machine::Gateway;
use crate::server::{ExchangeId, Principal};

/// Whose instance of which server.
pub(super) type Key = (ServerId, Principal);

impl Gateway {
    /// The server that does the work of `id` for whoever makes this request.
    pub(super) fn instance(&mut self, id: ServerId, exchange: ExchangeId) -> ServerId {
        let Some(template) = self.servers.get(&id) else { return id };
        if template.config.instances == Instances::Shared || !self.many.order.contains(&id) {
            return id;
        }
        let Some(principal) = self.hub.endpoint.owner_of(exchange).principal() else { return id };
        if let Some(instance) = self.instances.get(&(id, principal)) {
            return *instance;
        }
        let mut config = template.config.clone();
        config.eager = false;
        let instance = self.add(config);
        self.instances.insert((id, principal), instance);
        self.share_knowledge();
        instance
    }

    /// Whether a server is configured, or does the work of one that is.
    pub(super) fn is_present(&self, id: ServerId) -> bool {
        self.many.order.contains(&id) || self.instances.values().any(|instance| *instance == id)
    }

    /// Tells the instances what is known of their templates from the catalogue, which
    /// they have no part in.
    pub(super) fn share_knowledge(&mut self) {
        for ((template, _), instance) in &self.instances {
            let Some(template) = self.servers.get(template) else { continue };
            if !template.catalogue.is_wanted() {
                continue;
            }
            let schemas = template.modern.schemas.clone();
            let capabilities = template.catalogue.capabilities().map(Into::into);
            let Some(instance) = self.servers.get_mut(instance) else { continue };
            instance.modern.schemas = schemas;
            instance.catalogue.know(capabilities);
        }
    }

    /// Forgets the instances of servers that are not configured any more. Gives them.
    pub(super) fn take_orphans(&mut self) -> Vec<ServerId> {
        let order = &self.many.order;
        let orphan = |(template, _): &Key| !order.contains(template);
        let orphans: Vec<Key> = self.instances.keys().copied().filter(orphan).collect();
        orphans.iter().filter_map(|key| self.instances.remove(key)).collect()
    }
}
