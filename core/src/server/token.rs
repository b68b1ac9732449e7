//! Session ids on the wire (requirements D2): sealed, so that nobody can make
//! or change one, and whoever has the key can read it.
//!
//! A token says which revision was agreed on, until when it holds, and who has
//! the session. What else is known of the session lives there.

use super::endpoint::Endpoint;
use super::peer::{PeerId, Place};
use crate::driver::ConnId;
use crate::protocol::revision::Revision;
use crate::time::Instant;

const PURPOSE: &str = "session";
/// The layout of what is sealed: this number, the revision's place among all,
/// expiry and peer.
const LAYOUT: u8 = 1;
const LENGTH: usize = 18;

/// What a session id says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ticket {
    pub(super) revision: Revision,
    pub(super) expires: Instant,
    pub(super) peer: PeerId,
}

impl Ticket {
    fn write(self) -> [u8; LENGTH] {
        let place = Revision::ALL.iter().position(|revision| *revision == self.revision);
        let mut out = [0; LENGTH];
        let (head, rest) = out.split_at_mut(2);
        let (expires, peer) = rest.split_at_mut(8);
        head.copy_from_slice(&[LAYOUT, place.unwrap_or_default() as u8]);
        expires.copy_from_slice(&self.expires.as_micros().to_be_bytes());
        peer.copy_from_slice(&self.peer.0.to_be_bytes());
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [LAYOUT, place, rest @ ..] = bytes else { return None };
        let (expires, peer) = rest.split_first_chunk()?;
        Some(Self {
            revision: *Revision::ALL.get(usize::from(*place))?,
            expires: Instant::from_micros(u64::from_be_bytes(*expires)),
            peer: PeerId(u64::from_be_bytes(peer.try_into().ok()?)),
        })
    }
}

impl Endpoint {
    pub(super) fn seal_ticket(&mut self, ticket: Ticket) -> Option<alloc::string::String> {
        self.sealer.seal(&mut self.entropy, PURPOSE, &ticket.write())
    }

    /// What a token says, if it is one of ours.
    pub(super) fn ticket(&self, token: &str) -> Option<Ticket> {
        Ticket::read(&self.sealer.open(PURPOSE, token)?)
    }

    /// The live session with this id on the wire. Nothing for an id that is
    /// forged, has expired, or whose session has ended: all look the same to the
    /// host.
    pub(super) fn session(&mut self, conn: ConnId, token: &str) -> Option<Ticket> {
        let asks = self.principal(conn);
        let ticket = self.ticket(token)?;
        let peer = self.peers.get_mut(&ticket.peer)?;
        let theirs = matches!(&peer.place, Place::Session(session) if session.owner == asks);
        if ticket.expires <= self.now || !theirs {
            return None;
        }
        peer.last_seen = self.now;
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_read_as_they_were_written() {
        for revision in Revision::ALL {
            let ticket = Ticket { revision, expires: Instant::from_micros(5), peer: PeerId(7) };
            assert_eq!(Ticket::read(&ticket.write()), Some(ticket));
        }
        let ticket =
            Ticket { revision: Revision::R2025_06_18, expires: Instant::START, peer: PeerId(7) };
        let mut bytes = ticket.write();
        assert_eq!(Ticket::read(&bytes[1..]), None);
        bytes[1] = 5;
        assert_eq!(Ticket::read(&bytes), None);
        assert_eq!(Ticket::read(&[]), None);
    }
}
