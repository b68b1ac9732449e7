//! Whose a request is.

use super::endpoint::Endpoint;
use super::exchange::ExchangeId;
use super::gate::Principal;
use super::peer::PeerId;

/// Who sends requests, as far as that can be told: the token of a host that comes by
/// HTTP, or the pipe of one that does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Owner {
    principal: Option<Principal>,
    pipe: Option<PeerId>,
}

impl Owner {
    /// The token, if there is any.
    pub(crate) fn principal(self) -> Option<Principal> {
        self.principal
    }

    /// What tells owners apart.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let principal = self.principal.map_or(0, |Principal(place)| place as u64 + 1);
        let pipe = self.pipe.map_or(0, |PeerId(id)| id + 1);
        let mut bytes = [0; 16];
        let (first, second) = bytes.split_at_mut(8);
        first.copy_from_slice(&principal.to_be_bytes());
        second.copy_from_slice(&pipe.to_be_bytes());
        bytes
    }
}

impl Endpoint {
    /// Whose request it is.
    pub fn owner_of(&self, exchange: ExchangeId) -> Owner {
        let Some(state) = self.exchanges.get(&exchange) else { return Owner::default() };
        let way = self.way(state.work(exchange));
        let principal = way.and_then(|way| self.principal(way.conn));
        Owner { principal, pipe: state.sender.holder }
    }
}
