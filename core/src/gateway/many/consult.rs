//! Requests that are answered from the catalogue: what is there, and what we can do.
//!
//! The first of them has the servers say what they offer, and waits for that, but not
//! for long: what comes later is told with `list_changed`.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::catalogue::List;
use super::guests::Guest;
use super::merged::{Merged, Servers};
use super::search::{self, Expose};
use crate::gateway::at::{ServerId, present};
use crate::gateway::config::Catalogue as Config;
use crate::gateway::errand::EXTENSION;
use crate::gateway::machine::Gateway;
use crate::gateway::project::project;
use crate::gateway::rewrite;
use crate::jsonrpc::{code, get, quote, string};
use crate::protocol::fault::Fault;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::shape::Shape;
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, Outcome, PeerId, Request};
use crate::time::Instant;

/// What cursors are sealed for.
const PURPOSE: &str = "page of the catalogue";

/// Many servers, as hosts see them.
#[derive(Debug)]
pub(in crate::gateway) struct Many {
    pub(super) config: Config,
    /// The servers, in the order of the configuration.
    pub(in crate::gateway) order: Vec<ServerId>,
    pub(super) merged: Merged,
    pub(super) guests: BTreeMap<PeerId, Guest>,
    /// Requests that wait for what servers offer.
    waiting: VecDeque<Request<'static>>,
    /// Which lists any host has looked at, or listens to.
    pub(super) served: [bool; 4],
    /// Which of those have changed, and hosts are still to be told.
    pub(super) news: [bool; 4],
    /// When they are told of those that there were.
    pub(super) tell_at: Option<Instant>,
}

impl Many {
    pub(in crate::gateway) fn new(config: Config) -> Self {
        Self {
            config,
            order: Vec::new(),
            merged: Merged::default(),
            guests: BTreeMap::new(),
            waiting: VecDeque::new(),
            served: [false; 4],
            news: [false; 4],
            tell_at: None,
        }
    }

    /// Hosts see servers in another way.
    pub(in crate::gateway) fn reconfigure(&mut self, config: Config) {
        self.config = config;
        self.merged.outdate_all();
    }

    /// Whether hosts see the tools themselves.
    pub(in crate::gateway) fn exposes_all(&self) -> bool {
        self.config.expose == Expose::All
    }

    /// Whether names alone could not tell hosts whose something is.
    pub(in crate::gateway) fn has_several(&self) -> bool {
        self.order.len() > 1
    }

    /// A request that waits is no longer wanted.
    pub(in crate::gateway) fn forget_waiting(&mut self, exchange: ExchangeId) {
        self.waiting.retain(|request| request.exchange != exchange);
    }

    /// The kinds of things that are remembered of hosts.
    pub(in crate::gateway) fn remembered(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("sessions before many servers", self.guests.is_empty()),
            ("requests for the catalogue", self.waiting.is_empty()),
        ];
        present(all)
    }

    /// The end has begun.
    pub(in crate::gateway) fn forget(&mut self) {
        self.waiting.clear();
        self.guests.clear();
        self.tell_at = None;
    }
}

impl Gateway {
    pub(super) fn servers(&self) -> Servers<'_> {
        Servers { order: &self.many.order, all: &self.servers }
    }

    /// When something is due that concerns all servers.
    pub(in crate::gateway) fn many_deadline(&self) -> Option<Instant> {
        let waits = (!self.many.waiting.is_empty()).then(|| self.awaited()).flatten();
        waits.into_iter().chain(self.many.tell_at).chain(self.hub.listens.deadline()).min()
    }

    /// Until when there is reason to wait for what servers offer.
    fn awaited(&self) -> Option<Instant> {
        let patience = self.many.config.patience;
        let until = self.servers().iter().filter_map(|server| server.catalogue.awaited()).max();
        until.map(|since| since + patience).filter(|until| *until > self.hub.now)
    }

    /// Hosts want to know what there is.
    pub(in crate::gateway) fn want_catalogues(&mut self) {
        for id in self.many.order.clone() {
            if let Some(mut at) = self.at(id) {
                at.want_catalogue();
            }
        }
    }

    /// Answers a request from the catalogue, as soon as that is worth it.
    pub(super) fn consult(&mut self, request: Request<'_>) {
        self.want_catalogues();
        // What could be settled at once has been.
        self.hub.catalogue_changed = true;
        if self.awaited().is_none() {
            return self.answer(request);
        }
        if self.many.waiting.len() >= self.many.config.waiting {
            let fault = Fault::new(code::INTERNAL_ERROR, "Too many requests wait: try again later");
            return self.refuse(request.exchange, &fault);
        }
        self.many.waiting.push_back(request.into_owned());
    }

    /// Answers those that wait, if what they wait for has come or is too late.
    pub(super) fn answer_waiting(&mut self) {
        if self.many.waiting.is_empty() || self.awaited().is_some() {
            return;
        }
        for request in core::mem::take(&mut self.many.waiting) {
            self.answer(request);
        }
    }

    fn answer(&mut self, request: Request<'_>) {
        let exchange = request.exchange;
        let answered = match request.message.method() {
            method::INITIALIZE => self.introduce_to(&request),
            method::DISCOVER => Ok(self.discovered()),
            method => match List::of(method) {
                Some(list) => self.list(list, &request),
                None if search::is_search(self.many.config.expose, &request) => {
                    return self.search(&request);
                }
                None => return self.route_known(request),
            },
        };
        match answered {
            Ok(result) => self.hub.endpoint.respond(exchange, Outcome::Result(&result)),
            Err(fault) => self.refuse(exchange, &fault),
        }
    }

    pub(super) fn refuse(&mut self, exchange: ExchangeId, fault: &Fault) {
        self.hub.endpoint.respond(exchange, Outcome::Error(&fault.object));
    }

    /// Brings a list up to date.
    pub(super) fn refresh(&mut self, list: List) {
        let servers = Servers { order: &self.many.order, all: &self.servers };
        for news in self.many.merged.refresh(list, &servers, &self.many.config.naming) {
            self.hub.warn(news);
        }
    }

    fn list(&mut self, list: List, request: &Request<'_>) -> Result<String, Fault> {
        self.refresh(list);
        let cursor = request.message.params().and_then(|params| get(params, "cursor"));
        let generation = self.many.merged.generation(list);
        let from = match cursor {
            Some(cursor) => self.opened(list, generation, cursor)?,
            None => 0,
        };
        self.many.served[list as usize] = true;
        let host = request.revision;
        let mut out = alloc::format!(r#"{{"{}":"#, list.member());
        if list == List::Tools && self.many.config.expose == Expose::Search {
            out.push_str(search::TOOLS);
        } else {
            let servers = Servers { order: &self.many.order, all: &self.servers };
            let most = self.many.config.page;
            let page = self.many.merged.page(list, host, from, most, &servers);
            out.reserve(page.items.len() + 512);
            out.push_str(page.items);
            if let Some(next) = page.next {
                let place = [generation, next as u64].map(u64::to_be_bytes).concat();
                let cursor = self.hub.seal(PURPOSE, &[&[list as u8], &*place].concat());
                let _ = write!(out, r#","nextCursor":"{}""#, cursor.unwrap_or_default());
            }
        }
        if host.era() == Era::Modern {
            out.push_str(&self.holds(&[list]));
        }
        out.push('}');
        Ok(out)
    }

    /// The place in a list that a cursor of ours names.
    fn opened(&self, list: List, generation: u64, cursor: &str) -> Result<usize, Fault> {
        let content = string(cursor).and_then(|cursor| self.hub.unseal(PURPOSE, &cursor));
        let place = content.as_deref().and_then(|content| {
            let place = content.strip_prefix(&[list as u8])?;
            let (of, from) = place.split_first_chunk::<8>()?;
            let from = u64::from_be_bytes(from.try_into().ok()?);
            (u64::from_be_bytes(*of) == generation).then_some(from)
        });
        let place = place.and_then(|from| usize::try_from(from).ok());
        place.ok_or_else(|| {
            let why = "cursor is of no list as it is now: begin at its first page";
            Fault::new(code::INVALID_PARAMS, why)
        })
    }

    /// The members of a modern result that holds as long as these lists do, but for
    /// its first comma: for as long as the shortest of them, and for everybody only if
    /// all are.
    fn holds(&self, lists: &[List]) -> String {
        let mut ttl = None;
        let mut public = true;
        for server in self.servers().iter() {
            let catalogue = &server.catalogue;
            if !catalogue.is_known() {
                (ttl, public) = (Some(0), false);
                break;
            }
            for list in lists.iter().filter(|list| catalogue.can(&[list.capability()])) {
                let listed = catalogue.list(*list);
                let holds = listed.holds(self.hub.now);
                ttl = Some(ttl.map_or(holds, |least: u64| least.min(holds)));
                public &= listed.public;
            }
        }
        let (ttl, scope) = (ttl.unwrap_or(0), if public { "public" } else { "private" });
        alloc::format!(
            r#","ttlMs":{ttl},"cacheScope":"{scope}","resultType":"complete","_meta":{{"{}":{}}}"#,
            meta::SERVER_INFO,
            meta::IDENTITY
        )
    }

    /// The answer to `server/discover`.
    fn discovered(&self) -> String {
        let mut out = alloc::format!(
            r#"{{"supportedVersions":{},"capabilities":{}"#,
            Revision::MODERN_LIST,
            self.capabilities(Revision::NEWEST_MODERN)
        );
        self.push_instructions(&mut out);
        out.push_str(&self.holds(&[]));
        out.push('}');
        out
    }

    /// The result of `initialize`.
    pub(super) fn initialized(&self, host: Revision) -> String {
        let mut out = alloc::format!(
            r#"{{"protocolVersion":"{host}","capabilities":{},"serverInfo":{}"#,
            self.capabilities(host),
            meta::IDENTITY
        );
        self.push_instructions(&mut out);
        out.push('}');
        out
    }

    /// What all servers together can do. Lists may always change: servers come and go.
    /// Of those that have not said yet what they can do, the best is hoped for.
    fn capabilities(&self, host: Revision) -> String {
        let servers = self.servers();
        let any = |path: &[&str]| servers.iter().any(|server| server.catalogue.can(path));
        let hoped = servers.iter().any(|server| !server.catalogue.is_known());
        let mut all = Vec::new();
        if hoped || any(&["tools"]) || self.many.config.expose == Expose::Search {
            all.push(r#""tools":{"listChanged":true}"#);
        }
        if hoped || any(&["prompts"]) {
            all.push(r#""prompts":{"listChanged":true}"#);
        }
        if any(&["resources", "subscribe"]) {
            all.push(r#""resources":{"subscribe":true,"listChanged":true}"#);
        } else if hoped || any(&["resources"]) {
            all.push(r#""resources":{"listChanged":true}"#);
        }
        if any(&["logging"]) {
            all.push(r#""logging":{}"#);
        }
        if any(&["completions"]) {
            all.push(r#""completions":{}"#);
        }
        if host.era() == Era::Modern && self.has_tasks() {
            all.push(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#);
        }
        let all = alloc::format!("{{{}}}", all.join(","));
        match host.era() {
            Era::Modern => all,
            Era::Legacy => project(&all, Shape::ServerCapabilities, host),
        }
    }

    /// Whether any server makes tasks of calls of modern hosts.
    pub(super) fn has_tasks(&self) -> bool {
        self.servers().iter().any(|server| server.catalogue.can(&["extensions", EXTENSION]))
    }

    /// What the servers say to models, under their names if there are several.
    fn push_instructions(&self, out: &mut String) {
        let mut text = String::new();
        for server in self.servers().iter() {
            let said = server.catalogue.instructions.as_deref().and_then(string);
            let Some(said) = said.filter(|said| !said.trim().is_empty()) else { continue };
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            if self.many.has_several() {
                let _ = write!(text, "# {}\n\n", server.config.name);
            }
            text.push_str(&said);
        }
        if !text.is_empty() {
            out.push_str(r#","instructions":"#);
            quote(&text, out);
        }
    }
}

/// The answer to a request that a server without sessions would answer like this.
pub(super) fn complete(host: Revision, result: &str) -> String {
    match host.era() {
        Era::Legacy => result.to_string(),
        Era::Modern => rewrite::modern_result(result),
    }
}
