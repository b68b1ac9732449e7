//! When the server's process is started: at once as long as that works, and later
//! and later when it does not.

use alloc::string::{String, ToString};
use core::time::Duration;

use super::at::At;
use super::config::Limits;
use crate::client::{Failure, UpstreamId};
use crate::jsonrpc::code;
use crate::protocol::fault::Fault;
use crate::time::{Instant, backoff};

/// The starts that came to nothing since one did not.
#[derive(Debug, Default)]
pub(super) struct Starts {
    failed: u32,
    /// No other before then.
    rests: Option<Instant>,
    /// What the last one died of.
    why: String,
}

impl Limits {
    /// The pause after so many starts in vain.
    fn pause(&self, failed: u32) -> Duration {
        match failed.checked_sub(self.start_tries) {
            None => Duration::ZERO,
            Some(_) if failed >= self.give_up => self.give_up_pause,
            Some(more) => backoff(Duration::from_secs(1), more, self.start_pause),
        }
    }
}

impl At<'_> {
    /// Whether another connection to the server may be begun; why not, if not.
    pub(super) fn room(&self) -> Result<(), Fault> {
        let name = &self.server.config.name;
        if self.server.links.len() >= self.server.config.limits.servers {
            let why = alloc::format!("{name}: too many of it are running: try again later");
            return Err(Fault::new(code::INTERNAL_ERROR, &why));
        }
        let Some(until) = self.server.starts.rests.filter(|until| *until > self.hub.now) else {
            return Ok(());
        };
        let (failed, why) = (self.server.starts.failed, &self.server.starts.why);
        let seconds = until.since(self.hub.now).as_micros().div_ceil(1_000_000);
        let gave_up = failed >= self.server.config.limits.give_up;
        let state = if gave_up { "given up for now" } else { "resting" };
        let why = alloc::format!(
            "{name}: {state}: its last {failed} starts failed, and {why}; it is started again \
             when it is next needed after {seconds} s"
        );
        Err(Fault::new(code::INTERNAL_ERROR, &why))
    }

    /// A connection to the server works.
    pub(super) fn started(&mut self, id: UpstreamId) {
        if let Some(link) = self.server.links.get_mut(&id) {
            link.works = true;
        }
        self.server.starts = Starts::default();
    }

    /// The same of one that needs no handshake: it has answered.
    pub(super) fn works(&mut self, id: UpstreamId) {
        if self.server.links.get(&id).is_some_and(|link| !link.works) {
            self.started(id);
        }
    }

    /// A connection to the server is over; if it never worked, that counts.
    pub(super) fn count_start(&mut self, id: UpstreamId, failure: &Failure) {
        let worked = self.server.links.get(&id).is_none_or(|link| link.works);
        let died = matches!(failure, Failure::Exited(..) | Failure::NotStarted(_));
        if worked || !died || self.server.config.place.is_url() {
            return;
        }
        let limits = &self.server.config.limits;
        self.server.starts.failed = self.server.starts.failed.saturating_add(1);
        self.server.starts.why = failure.to_string();
        let pause = limits.pause(self.server.starts.failed);
        if pause.is_zero() {
            return;
        }
        self.server.starts.rests = Some(self.hub.now + pause);
        let (name, failed) = (&self.server.config.name, self.server.starts.failed);
        let given_up = if failed == limits.give_up { "given up for now: " } else { "" };
        let seconds = pause.as_secs();
        let why = alloc::format!(
            "{name}: {given_up}{failed} starts in a row failed: no other for {seconds} s"
        );
        self.hub.warn(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        let limits = Limits::default();
        let pauses: alloc::vec::Vec<u64> = (0..12).map(|n| limits.pause(n).as_secs()).collect();
        assert_eq!(pauses, [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 600, 600]);
    }
}
