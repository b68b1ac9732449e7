//! Legacy sessions before many servers. They begin with us, and at each server when
//! they first need it.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use crate::gateway::at::{At, Call, CallKind};
use crate::gateway::machine::Gateway;
use crate::gateway::session::Session;
use crate::gateway::translate::{self, Speaker};
use crate::jsonrpc::{Message, code, get};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::Revision;
use crate::server::{Outcome, PeerId, Request};

/// A legacy session.
#[derive(Debug)]
pub(in crate::gateway) struct Guest {
    pub(super) revision: Revision,
    /// The parameters of its `initialize`.
    pub(super) initialize: Box<str>,
    /// Whether the host has said `notifications/initialized`.
    pub(super) ready: bool,
    /// The level of log messages that it has set, raw.
    pub(super) level: Option<String>,
}

impl Gateway {
    /// A host begins a session.
    pub(super) fn introduce_to(&mut self, request: &Request<'_>) -> Result<String, Fault> {
        let revision = request.revision;
        let Some(peer) = request.peer else {
            return Err(Fault::new(code::INTERNAL_ERROR, "It begins no session"));
        };
        self.each(|at| at.on_host_gone(peer));
        let initialize = request.message.params().unwrap_or("{}").into();
        let guest = Guest { revision, initialize, ready: false, level: None };
        self.many.guests.insert(peer, guest);
        self.look_for_hosts();
        Ok(self.initialized(revision))
    }

    /// The sessions that hosts have with the one server that there was go on. What they
    /// listen to ends: it is to be more now.
    pub(in crate::gateway) fn adopt_sessions(&mut self) {
        let (hub, guests) = (&mut self.hub, &mut self.many.guests);
        for server in self.servers.values_mut() {
            for (peer, initialize, ready, level) in server.lives.lend_all() {
                let Some(revision) = hub.endpoint.revision_of(peer) else { continue };
                let level = level.and_then(|params| get(params, "level")).map(ToString::to_string);
                let initialize = initialize.into();
                guests.insert(peer, Guest { revision, initialize, ready, level });
            }
            for (peer, session) in &server.bridged {
                let Speaker { revision, capabilities, info, level } = session.speaker.clone();
                let info = info.as_deref().unwrap_or("{}");
                let initialize =
                    alloc::format!(r#"{{"capabilities":{capabilities},"clientInfo":{info}}}"#);
                let (initialize, ready) = (initialize.into(), session.hearing.is_ready());
                guests.insert(*peer, Guest { revision, initialize, ready, level });
            }
        }
        self.each(|at| at.end_listens());
        self.look_for_hosts();
    }

    /// A host tells something.
    pub(in crate::gateway) fn on_guest_notice(&mut self, peer: PeerId, message: &Message<'_>) {
        if message.method() == method::INITIALIZED
            && let Some(guest) = self.many.guests.get_mut(&peer)
        {
            guest.ready = true;
        }
        self.each(|at| at.on_notification(peer, message));
    }

    /// A host is gone.
    pub(in crate::gateway) fn on_guest_gone(&mut self, peer: PeerId) {
        if self.many.guests.remove(&peer).is_some() {
            self.look_for_hosts();
        }
    }

    /// A host wants log messages from some level on.
    pub(super) fn set_level(&mut self, request: &Request<'_>) {
        let params = request.message.params().unwrap_or("{}");
        let level = get(params, "level").filter(|level| translate::severity(level).is_some());
        let guest = request.peer.and_then(|peer| self.many.guests.get_mut(&peer));
        let (Some(level), Some(guest)) = (level, guest) else {
            let fault = Fault::new(code::INVALID_PARAMS, "level is not a level of logging");
            return self.refuse(request.exchange, &fault);
        };
        guest.level = Some(level.to_string());
        if let Some(peer) = request.peer {
            self.each(|at| at.set_session_level(peer, level));
        }
        self.hub.endpoint.respond(request.exchange, Outcome::Result("{}"));
    }
}

impl At<'_> {
    /// Makes sure that the session of a host can begin at this server.
    pub(super) fn join(&mut self, peer: PeerId, guest: &Guest) {
        if self.server.bridged.contains_key(&peer) || self.knows(peer) {
            return;
        }
        if self.is_only_modern() {
            let mut speaker = Speaker::new(guest.revision, Some(&guest.initialize));
            speaker.level.clone_from(&guest.level);
            self.server.bridged.insert(peer, Session::new(speaker));
            return;
        }
        let params = self.handshake(Some(&guest.initialize), None);
        let level = guest.level.as_ref().map(|level| alloc::format!(r#"{{"level":{level}}}"#));
        self.lend(peer, &params, guest.ready, level);
    }

    /// A session of a host wants log messages from another level on.
    fn set_session_level(&mut self, peer: PeerId, level: &str) {
        if let Some(session) = self.server.bridged.get_mut(&peer) {
            session.speaker.level = Some(level.to_string());
        }
        let params = alloc::format!(r#"{{"level":{level}}}"#);
        if !self.keep_level(peer, &params) || !self.server.catalogue.can(&["logging"]) {
            return;
        }
        let now = self.hub.now;
        let Some(id) = self.server.sessions.get(&peer).copied() else { return };
        let Some(link) = self.server.links.get_mut(&id) else { return };
        let (wires, method) = (&mut self.hub.wires, method::SET_LEVEL);
        let sent = link.upstream.request(wires, method, Some(&params), &[]);
        link.calls.insert(sent, Call::ours(CallKind::Restore, now));
        self.sweep_calls_later();
        self.touch(id);
    }
}
