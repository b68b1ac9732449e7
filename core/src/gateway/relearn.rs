//! Calls that a modern server at a URL refused because their header fields do not
//! fit its tools any more (2026-07-28 `basic/transports/streamable-http`, HDR-15):
//! its tools are listed again, and the calls sent again, once.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::at::{At, Call, CallKind};
use crate::client::{UpstreamId, probe};
use crate::jsonrpc::{Message, code, get, with_member};
use crate::protocol::method;
use crate::protocol::revision::Era;
use crate::server::{ExchangeId, Outcome, Request};
use crate::time::Instant;

/// Pages of a list that are read, at most.
const PAGES: u32 = 100;

/// A list that is being read, and for whom.
#[derive(Debug)]
pub(super) struct Relearning {
    id: UpstreamId,
    until: Instant,
    pages: u32,
    /// The calls, with the errors that they got.
    waiting: Vec<(Request<'static>, String)>,
}

impl Relearning {
    /// A call that waits is no longer wanted.
    pub(super) fn forget_waiting(&mut self, exchange: ExchangeId) {
        self.waiting.retain(|(request, _)| request.exchange != exchange);
    }

    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.waiting.iter().map(|(request, _)| request.exchange)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.until
    }
}

impl At<'_> {
    /// A copy of a call that may have to be sent again.
    pub(super) fn spare_call(&self, request: &Request<'_>) -> Option<Box<Request<'static>>> {
        let fits =
            request.message.method() == method::TOOLS_CALL && self.server.config.place.is_url();
        fits.then(|| Box::new(request.to_owned()))
    }

    /// The server has refused a call. Says whether it is sent again.
    pub(super) fn relearn(
        &mut self,
        id: UpstreamId,
        request: Request<'static>,
        error: &str,
    ) -> bool {
        let refused = get(error, "code").and_then(|raw| raw.parse().ok());
        if refused != Some(code::HEADER_MISMATCH) {
            return false;
        }
        let waiting = (request, String::from(error));
        match &mut self.server.modern.relearning {
            Some(relearning) if relearning.id == id => {
                if relearning.waiting.len() >= self.server.config.limits.waiting {
                    return false;
                }
                relearning.waiting.push(waiting);
            }
            Some(_) => return false,
            none => {
                let until = self.hub.now + self.server.config.limits.handshake;
                let waiting = Vec::from([waiting]);
                *none = Some(Relearning { id, until, pages: 0, waiting });
                self.list_again(None);
            }
        }
        true
    }

    fn list_again(&mut self, cursor: Option<&str>) {
        let Some(relearning) = &mut self.server.modern.relearning else { return };
        relearning.pages += 1;
        let (id, now) = (relearning.id, self.hub.now);
        let mut params = probe::params();
        if cursor.is_some() {
            let mut paged = String::new();
            with_member(&params, "cursor", cursor, &mut paged);
            params = paged;
        }
        if let Some(link) = self.server.links.get_mut(&id) {
            let method = method::TOOLS_LIST;
            let request = link.upstream.request(&mut self.hub.wires, method, Some(&params), &[]);
            link.calls.insert(request, Call::ours(CallKind::Relearn, now));
        }
        self.touch(id);
    }

    /// The server has listed tools for us.
    pub(super) fn on_relearnt(&mut self, message: &Message<'_>) {
        let Some(result) = message.result() else { return self.relearnt(false) };
        // Whoever lists them for a host says which are hidden.
        let _ = self.server.modern.schemas.learn(result);
        let more = self.server.modern.relearning.as_ref().is_some_and(|it| it.pages < PAGES);
        match get(result, "nextCursor").filter(|cursor| more && cursor.starts_with('"')) {
            Some(cursor) => self.list_again(Some(cursor)),
            None => self.relearnt(true),
        }
    }

    /// The calls that waited are sent again, or refused as the server did.
    pub(super) fn relearnt(&mut self, well: bool) {
        let Some(Relearning { id, waiting, .. }) = self.server.modern.relearning.take() else {
            return;
        };
        for (request, error) in waiting {
            if well && request.revision.era() == Era::Legacy {
                self.send_down(id, &request, None, true);
            } else if well {
                self.send_modern(id, request, None);
            } else {
                self.hub.endpoint.respond(request.exchange, Outcome::Error(&error));
            }
        }
    }

    /// Gives up a list that takes too long.
    pub(super) fn check_relearning(&mut self) {
        let now = self.hub.now;
        if self.server.modern.relearning.as_ref().is_some_and(|it| it.until <= now) {
            self.relearnt(false);
        }
    }
}
