//! Roots for a legacy server that asks for them where no host can be asked: those that
//! its owner gave last in a call, or those of the configuration.

use alloc::string::String;
use alloc::vec::Vec;

use super::at::At;
use super::rewrite::{quoted, with};
use crate::client::UpstreamId;
use crate::jsonrpc::{Message, get};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::server::Outcome;

impl At<'_> {
    /// The capabilities that we declare on a connection of our own: there are roots if
    /// any are configured.
    pub(super) fn declared(&self, capabilities: &str) -> String {
        if self.server.config.roots.is_empty() || get(capabilities, "roots").is_some() {
            return capabilities.into();
        }
        with(capabilities, "roots", "{}")
    }

    /// Answers a question that is not for any host.
    pub(super) fn answer_for_nobody(&mut self, id: UpstreamId, message: &Message<'_>) {
        let roots = self.roots_for(id, message.method());
        let fault = Fault::method_not_found(message.method());
        let outcome = roots.as_deref().map_or(Outcome::Error(&fault.object), Outcome::Result);
        if let Some(link) = self.server.links.get_mut(&id) {
            link.upstream.answer(&mut self.hub.wires, message.id().unwrap_or("null"), outcome);
        }
    }

    /// The answer to a question on such a connection, if we have one.
    fn roots_for(&self, id: UpstreamId, method: &str) -> Option<String> {
        if method != method::LIST_ROOTS {
            return None;
        }
        let lease = self.server.links.get(&id)?.lease.as_ref();
        if let Some(given) = lease.and_then(|lease| lease.roots.clone()) {
            return Some(given);
        }
        let roots = &self.server.config.roots;
        let roots = roots.iter().map(|uri| with("{}", "uri", &quoted(uri)));
        let roots: Vec<String> = roots.collect();
        let all = alloc::format!(r#"{{"roots":[{}]}}"#, roots.join(","));
        (!roots.is_empty()).then_some(all)
    }
}
