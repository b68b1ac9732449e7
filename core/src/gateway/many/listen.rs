//! What modern hosts listen to before many servers (2026-07-28
//! `basic/patterns/subscriptions`): lists, of which the catalogue tells, and resources,
//! each of which one server tells about.
//!
//! Each server that a host's filter concerns has a part of the subscription, which it
//! gets as one of its own. The host is told what all of them have acknowledged.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::catalogue::List;
use crate::gateway::at::{At, Hub, ServerId};
use crate::gateway::machine::Gateway;
use crate::gateway::relisten::{LISTS, filter};
use crate::gateway::rewrite::with;
use crate::gateway::tasks;
use crate::jsonrpc::{elements, get, string};
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, Request, Route};
use crate::time::Instant;

/// Servers have so long to acknowledge their parts.
const PATIENCE: Duration = Duration::from_secs(10);
/// Resources of one subscription, at most.
const URIS: usize = 1024;
/// News that is kept back until a subscription is acknowledged, at most.
const HELD: usize = 256;

/// The subscriptions of modern hosts to many servers.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Listens(BTreeMap<ExchangeId, Listen>);

#[derive(Debug)]
struct Listen {
    lists: [bool; 3],
    /// The resources that a server has promised to tell about, raw.
    uris: BTreeSet<String>,
    /// The tasks, by our ids, raw.
    tasks: BTreeSet<String>,
    /// The servers that have not said anything yet.
    open: BTreeSet<ServerId>,
    /// The host is told then what there is; none once it has been.
    until: Option<Instant>,
    /// What came before.
    held: Vec<(String, String)>,
}

/// What one server is to tell about.
#[derive(Debug, Default)]
struct Part {
    uris: BTreeSet<String>,
    tasks: BTreeSet<String>,
}

/// A filter that asks for these tasks as well.
fn with_tasks(filter: &str, tasks: &BTreeSet<String>) -> String {
    if tasks.is_empty() {
        return filter.to_string();
    }
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    with(filter, "taskIds", &alloc::format!("[{}]", tasks.join(",")))
}

impl Listens {
    pub(in crate::gateway) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().filter_map(|listen| listen.until).min()
    }

    pub(in crate::gateway) fn forget(&mut self, exchange: ExchangeId) -> bool {
        self.0.remove(&exchange).is_some()
    }

    pub(in crate::gateway) fn exchanges(&self) -> Vec<ExchangeId> {
        self.0.keys().copied().collect()
    }
}

impl Gateway {
    /// A host listens.
    pub(super) fn listen(&mut self, request: &Request<'_>) {
        let exchange = request.exchange;
        self.want_catalogues();
        self.hub.catalogue_changed = true;
        let wanted = request.message.params().and_then(|params| get(params, "notifications"));
        let wanted = wanted.unwrap_or("{}");
        let lists = LISTS.map(|(member, ..)| get(wanted, member) == Some("true"));
        for list in List::ALL {
            let place = LISTS.iter().position(|(_, notice, _)| *notice == list.notice());
            self.many.served[list as usize] |= place.is_some_and(|place| lists[place]);
        }
        if get(wanted, "taskIds").is_some() && !tasks::are_known(request.message.params()) {
            return self.refuse(exchange, &tasks::undeclared());
        }
        let mut parts: BTreeMap<ServerId, Part> = BTreeMap::new();
        let uris = elements(get(wanted, "resourceSubscriptions").unwrap_or("[]"));
        for raw in uris.take(URIS) {
            let Some(uri) = string(raw) else { continue };
            if let Some(id) = self.teller(&uri) {
                let id = self.instance(id, exchange);
                parts.entry(id).or_default().uris.insert(raw.to_string());
            }
        }
        for raw in elements(get(wanted, "taskIds").unwrap_or("[]")).take(URIS) {
            if let Some((id, _)) = self.hub.open_task(exchange, raw) {
                parts.entry(id).or_default().tasks.insert(raw.to_string());
            }
        }
        let listen = Listen {
            lists,
            uris: BTreeSet::new(),
            tasks: BTreeSet::new(),
            open: parts.keys().copied().collect(),
            until: Some(self.hub.now + PATIENCE),
            held: Vec::new(),
        };
        self.hub.listens.0.insert(exchange, listen);
        self.look_for_hosts();
        for (id, part) in parts {
            let params = request.message.params().unwrap_or("{}");
            let wanted = with_tasks(&filter([false; 3], &part.uris), &part.tasks);
            let params = with(params, "notifications", &wanted);
            let message = request.message.with_params(&params);
            let (revision, peer) = (request.revision, request.peer);
            let part = Request { exchange, revision, peer, message, fields: None };
            if let Some(mut at) = self.at(id) {
                at.on_host_request(part);
            }
        }
        self.hub.acknowledge(exchange);
    }

    /// A host does not listen any more.
    pub(in crate::gateway) fn unlisten(&mut self, exchange: ExchangeId) {
        if self.hub.listens.forget(exchange) {
            self.look_for_hosts();
        }
    }

    /// Acknowledges what servers take too long for, without them.
    pub(super) fn check_listens(&mut self) {
        let now = self.hub.now;
        let all = self.hub.listens.0.iter_mut();
        let late = all.filter(|(_, listen)| listen.until.is_some_and(|until| until <= now));
        let late: Vec<(ExchangeId, BTreeSet<ServerId>)> =
            late.map(|(exchange, it)| (*exchange, core::mem::take(&mut it.open))).collect();
        for (exchange, open) in late {
            for id in open {
                if let Some(mut at) = self.at(id) {
                    at.cancel_call(exchange, None);
                }
            }
            self.hub.acknowledge(exchange);
        }
    }

    /// Tells those who listen to it that a list has changed.
    pub(super) fn tell_listens(&mut self, notice: &str) {
        let Some(place) = LISTS.iter().position(|(_, name, _)| *name == notice) else { return };
        let all = self.hub.listens.0.iter();
        let who: Vec<ExchangeId> =
            all.filter(|(_, it)| it.lists[place]).map(|(exchange, _)| *exchange).collect();
        for exchange in who {
            self.hub.tell_listen(exchange, notice, None);
        }
    }
}

impl Hub {
    /// Something for whoever made the request: with its own id, and not before the
    /// acknowledgement.
    pub(in crate::gateway) fn tell_listen(
        &mut self,
        exchange: ExchangeId,
        method: &str,
        params: Option<&str>,
    ) {
        let theirs = self.endpoint.id_of(exchange).unwrap_or("null").to_string();
        let params = meta::with(params, &[(meta::SUBSCRIPTION_ID, Some(theirs.as_str()))]);
        match self.listens.0.get_mut(&exchange) {
            Some(listen) if listen.until.is_some() => {
                if listen.held.len() < HELD {
                    listen.held.push((method.to_string(), params));
                }
            }
            _ => {
                self.endpoint.notify(Route::Exchange(exchange), method, Some(&params));
            }
        }
    }

    /// Tells a host what it listens to, when all servers have said so.
    fn acknowledge(&mut self, exchange: ExchangeId) {
        let Some(listen) = self.listens.0.get_mut(&exchange) else { return };
        if !listen.open.is_empty() || listen.until.take().is_none() {
            return;
        }
        let held = core::mem::take(&mut listen.held);
        let honoured = with_tasks(&filter(listen.lists, &listen.uris), &listen.tasks);
        let params = with("{}", "notifications", &honoured);
        self.tell_listen(exchange, method::ACKNOWLEDGED, Some(&params));
        for (method, params) in held {
            self.endpoint.notify(Route::Exchange(exchange), &method, Some(&params));
        }
    }
}

impl At<'_> {
    /// The server acknowledges its part of a subscription. Says whether it is one.
    pub(in crate::gateway) fn acknowledge_part(
        &mut self,
        exchange: ExchangeId,
        params: Option<&str>,
    ) -> bool {
        let Some(listen) = self.hub.listens.0.get_mut(&exchange) else { return false };
        let honoured = params.and_then(|params| get(params, "notifications")).unwrap_or("{}");
        let uris = elements(get(honoured, "resourceSubscriptions").unwrap_or("[]"));
        listen.uris.extend(uris.map(String::from));
        let tasks = elements(get(honoured, "taskIds").unwrap_or("[]"));
        listen.tasks.extend(tasks.map(String::from));
        listen.open.remove(&self.server.id);
        self.hub.acknowledge(exchange);
        true
    }

    /// Its part has ended, or the server has refused it. Says whether it is one.
    pub(in crate::gateway) fn end_part(&mut self, exchange: ExchangeId) -> bool {
        let Some(listen) = self.hub.listens.0.get_mut(&exchange) else { return false };
        if listen.open.remove(&self.server.id) {
            self.hub.acknowledge(exchange);
        } else {
            let name = &self.server.config.name;
            let why = "it tells a host no longer about its resources";
            self.hub.warn(alloc::format!("{name}: {why}"));
        }
        true
    }
}

impl Gateway {
    /// Tells those who listen that this is a graceful end.
    pub(in crate::gateway) fn end_all_listens(&mut self) {
        for exchange in self.hub.listens.exchanges() {
            self.unlisten(exchange);
            self.each(|at| at.cancel_call(exchange, None));
            self.hub.end_listen(exchange);
        }
    }
}
