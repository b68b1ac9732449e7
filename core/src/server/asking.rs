//! What we ask hosts of legacy revisions.

use alloc::string::String;

use super::endpoint::{Endpoint, Event};
use super::exchange::Route;
use super::peer::PeerId;
use crate::jsonrpc::{Envelope, Message};
use crate::protocol::fault::Fault;
use crate::protocol::method;

/// Names a request of ours to a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct AskId(u64);

/// Why a host is not asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotAsked {
    /// It has not declared that it can be; with the answer that it would give.
    Undeclared(Fault),
    /// No stream or pipe leads to it, or too many questions are open.
    NoWay,
}

/// What became of an answer to a question of ours.
#[derive(Debug)]
pub(super) enum Unasked {
    /// The question is settled already.
    Late,
    /// There was no such question.
    Unknown,
}

impl Endpoint {
    /// Whether the host of a session has declared that it can be asked this.
    pub fn may_ask(
        &self,
        peer: PeerId,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), NotAsked> {
        let state = self.peers.get(&peer).ok_or(NotAsked::NoWay)?;
        state.capabilities.allow(method, params).map_err(NotAsked::Undeclared)
    }

    /// Sends a request to a host of a legacy revision, if that has declared that
    /// it can be asked this. Answered by [`Event::Answer`], or never.
    pub fn ask(
        &mut self,
        route: Route,
        method: &str,
        params: Option<&str>,
    ) -> Result<AskId, NotAsked> {
        let peer = match route {
            Route::Peer(peer) => Some(peer),
            Route::Exchange(exchange) => {
                self.exchanges.get(&exchange).and_then(|state| state.sender.peer)
            }
        };
        let peer = peer.ok_or(NotAsked::NoWay)?;
        self.may_ask(peer, method, params)?;
        let state = self.peers.get(&peer).ok_or(NotAsked::NoWay)?;
        if state.asks.len() >= self.config.limits.in_flight {
            return Err(NotAsked::NoWay);
        }
        let ask = AskId(self.number());
        let id = ask_id(ask);
        if !self.deliver(route, &Envelope::Request { id: &id, method, params }) {
            return Err(NotAsked::NoWay);
        }
        // A connection that did not read was given up, and its session with it.
        self.peers.get_mut(&peer).ok_or(NotAsked::NoWay)?.asks.insert(ask);
        self.asks.insert(ask, peer);
        Ok(ask)
    }

    /// Withdraws a question: its answer will be dropped, and the host is told
    /// with `notifications/cancelled`.
    pub fn withdraw(&mut self, ask: AskId, reason: Option<&str>) {
        let Some(peer) = self.asks.remove(&ask) else { return };
        if let Some(state) = self.peers.get_mut(&peer) {
            state.asks.remove(&ask);
        }
        let mut params = String::from(r#"{"requestId":"#);
        params.push_str(&ask_id(ask));
        if let Some(reason) = reason {
            params.push_str(r#","reason":"#);
            params.push_str(reason);
        }
        params.push('}');
        self.notify(Route::Peer(peer), method::CANCELLED, Some(&params));
    }

    /// An answer from a host.
    pub(super) fn answered<'a>(
        &mut self,
        peer: PeerId,
        message: Message<'a>,
    ) -> Result<Event<'a>, Unasked> {
        let ask = message
            .id()
            .and_then(|id| id.strip_prefix("\"mcpx-")?.strip_suffix('"')?.parse().ok().map(AskId));
        let ask = ask.ok_or(Unasked::Unknown)?;
        if self.asks.get(&ask) != Some(&peer) {
            return Err(if ask.0 < self.number() { Unasked::Late } else { Unasked::Unknown });
        }
        self.asks.remove(&ask);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.asks.remove(&ask);
        }
        Ok(Event::Answer { ask, message })
    }
}

fn ask_id(ask: AskId) -> String {
    alloc::format!("\"mcpx-{}\"", ask.0)
}
