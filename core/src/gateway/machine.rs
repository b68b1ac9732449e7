//! The gateway as a machine: every input to its owner, every event on its way.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use super::at::{At, Hub, Server, ServerId};
use super::config::Config;
use super::instances::Key;
use super::many::Many;
use super::pressure::Pressure;
use super::shutdown::Phase;
use crate::client::{Upstream, UpstreamId, Wires};
use crate::driver::{Action, ConnId, Input, ListenerId, Machine};
use crate::server;
use crate::time::Instant;
use crate::wire::http1::RequestHead;

/// A gateway in front of servers. See the [module](super).
#[derive(Debug)]
pub struct Gateway {
    pub(super) hub: Hub,
    pub(super) servers: BTreeMap<ServerId, Box<Server>>,
    /// Those of them that work for one token only.
    pub(super) instances: BTreeMap<Key, ServerId>,
    pub(super) many: Many,
    pub(super) pressure: Pressure,
    pub(super) phase: Phase,
    pub(super) drain: Duration,
}

impl Gateway {
    /// A gateway whose secrets come from `seed`.
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        let mut gateway = Self {
            hub: Hub::new(config.endpoint, seed),
            servers: BTreeMap::new(),
            instances: BTreeMap::new(),
            many: Many::new(config.catalogue),
            pressure: Pressure::default(),
            phase: Phase::Serving,
            drain: config.drain,
        };
        for server in config.servers {
            let id = gateway.add(server);
            gateway.many.order.push(id);
        }
        gateway.choose_view();
        gateway
    }

    /// Decides whether hosts see one server, or a catalogue. From that there is no way
    /// back: what they listen to is the catalogue's then.
    pub(super) fn choose_view(&mut self) {
        self.hub.merged |= !self.shows_one();
        self.hub.several = self.many.has_several();
    }

    /// Whether hosts may see one server as it is, and need no catalogue.
    pub(super) fn shows_one(&self) -> bool {
        let alone = match self.many.order.as_slice() {
            [only] => self.servers.get(only).is_some_and(|it| it.config.view.is_plain()),
            _ => false,
        };
        alone && self.many.exposes_all()
    }

    /// One server at work.
    pub(super) fn at(&mut self, id: ServerId) -> Option<At<'_>> {
        let server = self.servers.get_mut(&id)?;
        Some(At { server, hub: &mut self.hub })
    }

    /// The server that a connection leads to, at work.
    pub(super) fn behind(&mut self, link: UpstreamId) -> Option<At<'_>> {
        self.at(*self.hub.owners.get(&link)?)
    }

    /// Each server at work, in turn.
    pub(super) fn each(&mut self, mut act: impl FnMut(&mut At<'_>)) {
        for server in self.servers.values_mut() {
            act(&mut At { server, hub: &mut self.hub });
        }
    }

    /// Whether the end of the server is what ends the program: it was the one of
    /// the host that started us.
    pub fn is_deserted(&self) -> bool {
        self.hub.deserted
    }

    /// The kinds of things that are remembered of hosts: sessions, requests, questions,
    /// subscriptions. None of them when all hosts have gone.
    pub fn remembered(&self) -> BTreeSet<&'static str> {
        let mut kinds = BTreeSet::new();
        kinds.extend(self.hub.remembered());
        kinds.extend(self.many.remembered());
        kinds.extend(self.servers.values().flat_map(|server| server.remembered()));
        kinds
    }

    /// A request that the embedder's own HTTP stack has read: the message door, as
    /// [`server::Endpoint::request`] has it. Afterwards poll as after any input.
    pub fn request(
        &mut self,
        now: Instant,
        conn: ConnId,
        listener: ListenerId,
        from: Option<IpAddr>,
        head: RequestHead,
        body: &[u8],
    ) {
        self.hub.at(now);
        if let Some(event) =
            self.hub.endpoint.request(conn, listener, from, head, Cow::Borrowed(body))
        {
            self.on_host_event(event);
        }
        self.settle();
    }

    /// The head of the response to such a request, once.
    pub fn take_head(&mut self, conn: ConnId) -> Option<server::Head> {
        self.hub.endpoint.take_head(conn)
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let mut input = bytes;
        if !conn.is_requested() {
            while let Some(event) = self.hub.endpoint.receive(conn, &mut input) {
                self.on_host_event(event);
            }
            while let Some(full) = self.hub.wires.take_swollen() {
                if self.pressure.block(full, conn) {
                    self.hub.endpoint.hold(conn, true);
                }
            }
            return;
        }
        let Some(id) = self.hub.wires.owner(conn) else { return };
        let Some(mut at) = self.behind(id) else { return };
        while let Some(link) = at.server.links.get_mut(&id)
            && let Some(event) = link.upstream.receive(&mut at.hub.wires, conn, &mut input)
        {
            at.on_server_event(id, event);
        }
        at.touch(id);
    }

    /// Pauses the connection to the server whose bytes filled a host's queue.
    /// One that others share is not paused: a host that reads nothing is given
    /// up at the hard limit instead.
    fn press(&mut self, source: Option<ConnId>) {
        while let Some(full) = self.hub.endpoint.take_swollen() {
            let Some(source) = source.filter(|source| source.is_requested()) else { continue };
            let Some(id) = self.hub.wires.owner(source) else { continue };
            let Some(link) = self.behind(id).and_then(|at| at.server.links.get(&id)) else {
                continue;
            };
            let exclusive = link.peer.is_some() || link.upstream.is_per_request();
            if exclusive && self.pressure.block(full, source) {
                self.hub.wires.hold(source, true);
            }
        }
    }

    fn relieve(&mut self, sink: ConnId) {
        for source in self.pressure.release(sink) {
            if source.is_requested() {
                self.hub.wires.hold(source, false);
            } else {
                self.hub.endpoint.hold(source, false);
            }
        }
    }

    /// Handles what follows from an input until nothing does.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some(event) = self.hub.endpoint.poll_event() {
                self.on_host_event(event);
                continue;
            }
            if let Some(server) = self.hub.untold.pop_first() {
                if let Some(mut at) = self.at(server) {
                    at.tell_questions();
                }
                continue;
            }
            if core::mem::take(&mut self.hub.catalogue_changed) {
                self.on_catalogue_changed();
                continue;
            }
            let Some(id) = self.hub.touched.pop_first() else { break };
            let Some(mut at) = self.behind(id) else { continue };
            let Some(link) = at.server.links.get_mut(&id) else { continue };
            if let Some(event) = link.upstream.poll_event() {
                at.touch(id);
                at.on_server_event(id, event);
                continue;
            }
            match link.upstream.deadline() {
                Some(due) => at.hub.timed.insert(id, due),
                None => at.hub.timed.remove(&id),
            };
            at.bury(id);
        }
        self.proceed();
    }

    fn tick(&mut self) {
        self.hub.endpoint.sweep();
        let now = self.hub.now;
        let due: Vec<UpstreamId> =
            self.hub.timed.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.at_link(id, Upstream::tick);
        }
        self.each(|at| at.tick());
        self.tick_many();
        self.bury_servers();
    }

    fn at_link(&mut self, id: UpstreamId, act: impl FnOnce(&mut Upstream, &mut Wires)) {
        let Some(mut at) = self.behind(id) else { return };
        if let Some(link) = at.server.links.get_mut(&id) {
            act(&mut link.upstream, &mut at.hub.wires);
        }
        at.touch(id);
    }

    fn at_upstream(&mut self, conn: ConnId, act: impl FnOnce(&mut Upstream, &mut Wires)) {
        if let Some(id) = self.hub.wires.owner(conn) {
            self.at_link(id, act);
        }
    }
}

impl Machine for Gateway {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.hub.at(now);
        let mut source = None;
        match input {
            Input::Accepted { conn, listener, from } => {
                self.hub.endpoint.accepted(conn, listener, from);
            }
            Input::Received { conn, bytes } => {
                source = Some(conn);
                self.received(conn, bytes);
            }
            Input::Connected { conn } => {
                self.at_upstream(conn, |upstream, wires| upstream.connected(wires, conn));
            }
            Input::Finished { conn } if conn.is_requested() => {
                self.at_upstream(conn, |upstream, wires| upstream.finished(wires, conn));
            }
            Input::Finished { conn } => self.hub.endpoint.finished(conn),
            Input::Closed { conn, why } => {
                if conn.is_requested() {
                    self.at_upstream(conn, |upstream, wires| upstream.closed(wires, conn, why));
                } else {
                    self.hub.endpoint.closed(conn);
                }
                self.pressure.forget(conn);
                self.relieve(conn);
            }
            Input::Stderr { conn, bytes } => {
                self.at_upstream(conn, |upstream, wires| upstream.stderr(wires, bytes));
            }
            Input::Exited { conn, status } => {
                self.at_upstream(conn, |upstream, wires| upstream.exited(wires, conn, status));
                self.pressure.forget(conn);
                self.relieve(conn);
            }
            Input::Tick => self.tick(),
            Input::Stop => self.stop(),
        }
        self.settle();
        self.press(source);
    }

    fn poll(&mut self) -> Option<Action> {
        self.hub
            .endpoint
            .poll()
            .or_else(|| self.hub.wires.poll())
            .or_else(|| self.hub.output.poll())
    }

    fn deadline(&self) -> Option<Instant> {
        let timed = self.hub.timed.values().copied();
        timed
            .chain(self.hub.endpoint.deadline())
            .chain(self.phase.deadline())
            .chain(self.many_deadline())
            .chain(self.servers.values().filter_map(|server| server.deadline()))
            .min()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        if conn.is_requested() {
            self.hub.wires.outgoing(conn)
        } else {
            self.hub.endpoint.outgoing(conn)
        }
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.hub.at(now);
        let swollen = if conn.is_requested() {
            self.hub.wires.sent(conn, n);
            self.hub.wires.is_swollen(conn)
        } else {
            self.hub.endpoint.sent(conn, n);
            self.hub.endpoint.is_swollen(conn)
        };
        if !swollen && !self.pressure.is_idle() {
            self.relieve(conn);
        }
        // A pipe may have ended with its last byte.
        self.settle();
    }
}
