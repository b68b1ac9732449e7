//! What falls due with time: keep-alives, slow requests, idle connections and
//! sessions.
//!
//! One deadline serves them all. It is never later than the first thing that
//! falls due, and a sweep looks at everything: cheaper than a timer for each of
//! a hundred thousand requests a second.

use alloc::vec::Vec;
use core::time::Duration;

use super::endpoint::{Conn, Endpoint};
use super::exchange::Carrier;
use super::http::State;
use super::peer::{PeerId, Place};
use crate::driver::ConnId;
use crate::time::Instant;

/// How long a connection that we have ended may take to end on the other side.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// Sweeps are at least this far apart.
const PAUSE: Duration = Duration::from_millis(100);

enum Due {
    Close(ConnId),
    TooSlow(ConnId),
    EndPeer(PeerId),
    KeepAlive(ConnId),
}

impl Endpoint {
    /// Makes sure that a sweep happens by `at`.
    pub(super) fn sweep_by(&mut self, at: Instant) {
        self.sweep_at = Some(self.sweep_at.map_or(at, |before| before.min(at)));
    }

    /// When [`sweep`](Self::sweep) is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.sweep_at
    }

    /// Does what is due at the [present moment](Self::at).
    pub fn sweep(&mut self) {
        let now = self.now;
        if self.sweep_at.is_none_or(|at| at > now) {
            return;
        }
        self.sweep_at = None;
        let mut due = Vec::new();
        let mut next: Option<Instant> = None;
        let mut check = |at: Instant, then: Due| {
            if at <= now {
                due.push(then);
            } else {
                next = Some(next.map_or(at, |before| before.min(at)));
            }
        };
        let limits = &self.config.limits;
        for (&conn, state) in &mut self.conns {
            let unread = match state {
                Conn::Pipe(pipe) if pipe.stdio => &mut None,
                Conn::Pipe(pipe) => &mut pipe.unread,
                Conn::Http(http) => &mut http.unread,
            };
            // Since when is not known better than since the sweep that saw it.
            if self.output.queued(conn) == 0 {
                *unread = None;
            } else {
                let since = *unread.get_or_insert(now);
                check(since + limits.write_stall, Due::Close(conn));
            }
            match state {
                Conn::Pipe(pipe) => {
                    if let Some(at) = pipe.give_up {
                        check(at, Due::EndPeer(pipe.peer));
                    }
                }
                Conn::Http(http) => match http.state {
                    State::Idle => check(http.since + limits.connection_idle, Due::Close(conn)),
                    State::Reading => {
                        check(http.since + http.patience(limits), Due::TooSlow(conn));
                    }
                    // What is queued may take as long as it is read.
                    State::Closing if self.output.queued(conn) > 0 => {}
                    State::Closing => check(http.since + LINGER, Due::Close(conn)),
                    State::Busy(_) | State::Stream(_) | State::Conversation(_) => {
                        check(http.since + limits.keep_alive, Due::KeepAlive(conn));
                    }
                },
            }
        }
        for (&id, peer) in &self.peers {
            if let Place::Session(session) = &peer.place {
                let used = session.primary().is_some() || !peer.in_flight.is_empty();
                let since = if used { now } else { peer.last_seen };
                let idle = since + limits.session_idle;
                check(session.expires.map_or(idle, |at| at.min(idle)), Due::EndPeer(id));
            }
        }
        // What is kept alive now falls due again.
        if due.iter().any(|then| matches!(then, Due::KeepAlive(_))) {
            let again = now + limits.keep_alive;
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        if let Some(next) = next {
            self.sweep_by(next.max(now + PAUSE));
        }
        for then in due {
            match then {
                Due::Close(conn) => self.close(conn),
                Due::TooSlow(conn) => self.time_out(conn),
                Due::EndPeer(peer) => self.end_peer(peer),
                Due::KeepAlive(conn) => self.keep_alive(conn),
            }
        }
    }

    /// A stream, or a request, has been silent for long.
    fn keep_alive(&mut self, conn: ConnId) {
        let now = self.now;
        // A reader that takes nothing needs no comments on top.
        let silent = self.output.queued(conn) == 0;
        let Some(Conn::Http(http)) = self.conns.get_mut(&conn) else { return };
        http.since = now;
        if let State::Busy(work) = http.state {
            let Some(way) = self.way(work) else { return };
            if !matches!(way.carrier, Carrier::Http { sse: true, .. }) {
                return;
            }
            self.stream_of(work);
        }
        if silent {
            self.write_comment(conn);
        }
    }
}
