//! What waits until a legacy host has said that it is ready (LIF-05): requests other than
//! pings, and news other than log messages. A host that goes on without saying so is
//! taken to be.

use alloc::vec::Vec;

use super::endpoint::Endpoint;
use super::peer::{PeerId, Place};
use crate::jsonrpc::Envelope;
use crate::protocol::method;

/// Messages that wait for one host, at most; more are dropped, the oldest first.
const MOST: usize = 64;

/// Whether a message may go to a host that has not said that it is ready. What withdraws
/// a question follows it.
fn is_early(envelope: &Envelope<'_>) -> bool {
    match envelope {
        Envelope::Request { method, .. } => *method == method::PING,
        Envelope::Notification { method, .. } => {
            matches!(*method, method::MESSAGE | method::PROGRESS)
        }
        _ => true,
    }
}

impl Endpoint {
    /// Keeps back what a host must not hear yet. Says whether it does.
    pub(super) fn hold_early(&mut self, peer: PeerId, envelope: &Envelope<'_>) -> bool {
        let early = self.peers.get_mut(&peer).and_then(|state| state.early.as_mut());
        let Some(early) = early.filter(|_| !is_early(envelope)) else { return false };
        let mut line = Vec::with_capacity(envelope.len() + 1);
        envelope.write_line(&mut line);
        if !early.contains(&line) {
            if early.len() >= MOST {
                early.remove(0);
            }
            early.push(line);
        }
        true
    }

    /// A host is ready.
    pub(super) fn make_ready(&mut self, peer: PeerId) {
        let early = self.peers.get_mut(&peer).and_then(|state| state.early.take());
        for line in early.into_iter().flat_map(|early| *early) {
            self.tell_peer(peer, line.len(), |out| out.extend_from_slice(&line));
        }
    }

    /// Sends a line that belongs to no request. Says whether it could be sent, or kept.
    pub(super) fn tell_peer(
        &mut self,
        peer: PeerId,
        length: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let Some(state) = self.peers.get(&peer) else { return false };
        match &state.place {
            Place::Pipe(conn) => {
                let conn = *conn;
                if !self.stands(conn) {
                    return false;
                }
                self.write_pipe_line(conn, write);
            }
            Place::Session(session) => match session.primary().map(|s| (s.number(), s.conn)) {
                Some((stream, conn)) => {
                    if conn.is_some_and(|conn| !self.stands(conn)) {
                        return false;
                    }
                    self.write_on(peer, stream, write);
                }
                None => {
                    let mut line = Vec::with_capacity(length);
                    write(&mut line);
                    self.keep_for_later(peer, line);
                }
            },
        }
        true
    }
}
