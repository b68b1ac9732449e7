//! What one server offers, read from it page by page and kept.
//!
//! It is read when hosts first want to know, again when the server says that it has
//! changed or has been started again, and in the background when it is old and the
//! server does not say such things. What was read last stays until there is better:
//! a server that is down keeps its place.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::client::{RequestId, UpstreamId, probe};
use crate::gateway::at::{At, Call, CallKind};
use crate::gateway::modern::Verdict;
use crate::gateway::rewrite::with;
use crate::jsonrpc::{Message, code, elements, get, get_path, string};
use crate::protocol::method;
use crate::protocol::revision::Era;
use crate::time::{Instant, backoff};

/// Pages of one list that are read, at most.
const PAGES: u32 = 1000;
/// The longest pause before a server is asked again.
const LONGEST: Duration = Duration::from_secs(60);

/// A list of what servers offer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::gateway) enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    pub(super) const ALL: [Self; 4] =
        [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The list that a request asks for.
    pub(super) fn of(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.method() == method)
    }

    /// The list that a notification says to have changed: that of templates with the
    /// one of resources.
    pub(in crate::gateway) fn changed_by(notice: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.notice() == notice)
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Templates => method::TEMPLATES_LIST,
        }
    }

    /// The member of the result.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member that names an item.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The capability of servers that have such a list.
    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The notification that it has changed.
    pub(super) fn notice(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_CHANGED,
            Self::Prompts => method::PROMPTS_CHANGED,
            Self::Resources | Self::Templates => method::RESOURCES_CHANGED,
        }
    }
}

/// One thing that a server offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item {
    /// Its name or URI at the server.
    pub(super) key: Box<str>,
    /// All that the server says of it, as raw JSON.
    pub(super) raw: Box<str>,
}

/// A list of one server.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) items: Vec<Item>,
    /// For how long it holds, and from when on.
    pub(super) ttl: u64,
    read: Instant,
    pub(super) public: bool,
    loading: Option<Loading>,
    /// It has changed again while it is being read.
    stale: bool,
    /// The server has said that it has changed: hosts are told so even if nothing else
    /// can be seen of that.
    announced: bool,
}

/// A list that is being read.
#[derive(Debug)]
struct Loading {
    link: UpstreamId,
    request: RequestId,
    until: Instant,
    pages: u32,
    items: Vec<Item>,
}

impl Listed {
    /// For how many milliseconds it holds yet.
    pub(super) fn holds(&self, now: Instant) -> u64 {
        let age = u64::try_from(now.since(self.read).as_millis()).unwrap_or(u64::MAX);
        self.ttl.saturating_sub(age)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nobody has wanted it.
    #[default]
    Unknown,
    /// It is being read for the first time, since then.
    First(Instant),
    /// There is no answer, for now.
    Failed,
    /// It is there.
    Known,
}

/// What a server offers.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Catalogue {
    state: State,
    /// What it can do, and says to models, as raw JSON.
    pub(super) capabilities: Option<Box<str>>,
    pub(super) instructions: Option<Box<str>>,
    lists: [Listed; 4],
    /// The connection to which it was introduced last.
    seen: Option<UpstreamId>,
    /// When it is asked again, and how often that was in vain.
    again: Option<Instant>,
    tries: u32,
}

impl Catalogue {
    pub(super) fn list(&self, list: List) -> &Listed {
        &self.lists[list as usize]
    }

    pub(super) fn is_known(&self) -> bool {
        self.state == State::Known
    }

    /// Since when it is being read, if hosts have reason to wait for that.
    pub(super) fn awaited(&self) -> Option<Instant> {
        match self.state {
            State::First(since) => Some(since),
            State::Unknown | State::Failed | State::Known => None,
        }
    }

    /// Whether a capability is there: `["tools", "listChanged"]`.
    pub(super) fn can(&self, path: &[&str]) -> bool {
        let found = self.capabilities.as_deref().and_then(|all| get_path(all, path));
        found.is_some_and(|value| value == "true" || value.starts_with('{'))
    }

    /// Whether the server says when any of its lists changes.
    pub(in crate::gateway) fn tells(&self) -> bool {
        let lists = List::ALL.iter();
        self.is_wanted() && lists.clone().any(|it| self.can(&[it.capability(), "listChanged"]))
    }

    /// What the server can do, as raw JSON.
    pub(in crate::gateway) fn capabilities(&self) -> Option<&str> {
        self.capabilities.as_deref()
    }

    /// The same is known from elsewhere.
    pub(in crate::gateway) fn know(&mut self, capabilities: Option<Box<str>>) {
        self.capabilities = capabilities;
    }

    /// Whether anybody has ever wanted it.
    pub(in crate::gateway) fn is_wanted(&self) -> bool {
        self.state != State::Unknown
    }

    pub(in crate::gateway) fn deadline(&self) -> Option<Instant> {
        let loading = self.lists.iter().filter_map(|list| Some(list.loading.as_ref()?.until));
        loading.chain(self.again).min()
    }

    /// The end has begun.
    pub(in crate::gateway) fn forget(&mut self) {
        *self = Self::default();
    }

    fn is_loading(&self) -> bool {
        self.lists.iter().any(|list| list.loading.is_some())
    }
}

impl At<'_> {
    /// Hosts want to know what the server offers.
    pub(in crate::gateway) fn want_catalogue(&mut self) {
        match self.server.catalogue.state {
            State::Unknown => {
                self.server.catalogue.state = State::First(self.hub.now);
                self.meet();
            }
            // Nobody waits for it; it is told when it is there.
            State::Failed if self.server.catalogue.again.is_none() => self.meet(),
            State::Known if self.introduced().is_none() => self.meet(),
            State::Known => self.refresh(),
            State::First(_) | State::Failed => {}
        }
    }

    /// The connection on which the server has said what it can do.
    pub(super) fn introduced(&self) -> Option<UpstreamId> {
        match self.server.modern.verdict {
            Verdict::Modern(id) if self.server.modern.discovered.is_some() => Some(id),
            _ => self.server.shared.link(),
        }
    }

    /// Has the server say what it can do.
    fn meet(&mut self) {
        self.server.catalogue.again = None;
        if let Some(id) = self.introduced() {
            return self.on_met(id);
        }
        if let Err(fault) = self.introduce_it() {
            let why = get(&fault.object, "message").and_then(string).unwrap_or_default();
            self.on_not_met(&why);
        }
    }

    /// The server has said what it can do.
    pub(in crate::gateway) fn on_met(&mut self, id: UpstreamId) {
        if !self.server.catalogue.is_wanted() || self.introduced() != Some(id) {
            return;
        }
        let modern = self.server.modern.verdict == Verdict::Modern(id);
        let said = if modern {
            self.server.modern.discovered.as_deref().unwrap_or("{}")
        } else {
            self.server.shared.introduction()
        };
        let catalogue = &mut self.server.catalogue;
        catalogue.capabilities = get(said, "capabilities").map(Into::into);
        catalogue.instructions = get(said, "instructions").map(Into::into);
        (catalogue.seen, catalogue.again, catalogue.tries) = (Some(id), None, 0);
        self.attend(id);
        for list in List::ALL {
            if self.server.catalogue.can(&[list.capability()]) {
                self.read_list(id, list);
            } else {
                self.keep(list, Vec::new());
            }
        }
        self.settle_catalogue();
    }

    /// It has not, and will not for now.
    pub(in crate::gateway) fn on_not_met(&mut self, why: &str) {
        let now = self.hub.now;
        let catalogue = &mut self.server.catalogue;
        if !catalogue.is_wanted() || catalogue.again.is_some() {
            return;
        }
        catalogue.again = Some(now + backoff(Duration::from_secs(1), catalogue.tries, LONGEST));
        catalogue.tries = catalogue.tries.saturating_add(1);
        if catalogue.state != State::Known {
            if catalogue.state != State::Failed {
                let name = &self.server.config.name;
                let why = why.strip_prefix(&**name).map_or(why, |why| why.trim_start_matches(": "));
                self.hub.warn(alloc::format!("{name}: what it offers is not listed: {why}"));
            }
            catalogue.state = State::Failed;
        }
        self.hub.catalogue_changed = true;
    }

    /// Reads a list again, from its beginning.
    fn read_list(&mut self, id: UpstreamId, list: List) {
        let listed = &mut self.server.catalogue.lists[list as usize];
        if listed.loading.as_ref().is_some_and(|loading| loading.link == id) {
            listed.stale = true;
            return;
        }
        listed.stale = false;
        self.read_page(id, list, None, 0, Vec::new());
    }

    fn read_page(
        &mut self,
        id: UpstreamId,
        list: List,
        cursor: Option<&str>,
        pages: u32,
        items: Vec<Item>,
    ) {
        let (now, handshake) = (self.hub.now, self.server.config.limits.handshake);
        let Some(link) = self.server.links.get_mut(&id) else { return };
        let modern = link.upstream.revision().is_some_and(|it| it.era() == Era::Modern);
        let mut params = modern.then(probe::params);
        if let Some(cursor) = cursor {
            params = Some(with(params.as_deref().unwrap_or("{}"), "cursor", cursor));
        }
        let (wires, method) = (&mut self.hub.wires, list.method());
        let request = link.upstream.request(wires, method, params.as_deref(), &[]);
        link.calls.insert(request, Call::ours(CallKind::List { list }, now));
        let until = now + handshake;
        let loading = Loading { link: id, request, until, pages: pages + 1, items };
        self.server.catalogue.lists[list as usize].loading = Some(loading);
        self.touch(id);
    }

    /// The server has answered with a page of a list, or refused to.
    pub(in crate::gateway) fn on_page(
        &mut self,
        id: UpstreamId,
        request: RequestId,
        list: List,
        message: &Message<'_>,
    ) {
        let listed = &mut self.server.catalogue.lists[list as usize];
        let Some(mut loading) = listed.loading.take_if(|it| (it.link, it.request) == (id, request))
        else {
            return;
        };
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}");
            let code = get(error, "code").and_then(|raw| raw.parse().ok());
            if code != Some(code::METHOD_NOT_FOUND) {
                let (name, method) = (&self.server.config.name, list.method());
                let why = get(error, "message").and_then(string).unwrap_or_default();
                self.hub.warn(alloc::format!("{name}: it refuses {method}: {why}"));
                return self.settle_catalogue();
            }
            self.keep(list, Vec::new());
            return self.settle_catalogue();
        };
        let learnt = (list == List::Tools).then(|| self.learn_tools(result)).flatten();
        let result = learnt.as_deref().unwrap_or(result);
        let most = self.server.config.limits.items;
        for raw in elements(get(result, list.member()).unwrap_or("[]")) {
            let Some(key) = get(raw, list.key()).and_then(string) else { continue };
            if loading.items.len() >= most {
                break;
            }
            loading.items.push(Item { key: key.into(), raw: raw.into() });
        }
        let full = loading.items.len() >= most;
        let next = get(result, "nextCursor").filter(|cursor| cursor.starts_with('"'));
        if let Some(cursor) = next.filter(|_| !full && loading.pages < PAGES) {
            return self.read_page(id, list, Some(cursor), loading.pages, loading.items);
        }
        if full {
            let (name, what) = (&self.server.config.name, list.member());
            self.hub.warn(alloc::format!("{name}: only the first {most} {what} are listed"));
        }
        // What a legacy server offers may change at any time.
        let modern = self.server.modern.verdict == Verdict::Modern(id);
        let hint = |name| get(result, name).filter(|_| modern);
        let listed = &mut self.server.catalogue.lists[list as usize];
        listed.ttl = hint("ttlMs").and_then(|raw| raw.parse().ok()).unwrap_or(0);
        listed.public = hint("cacheScope") == Some(r#""public""#);
        let stale = listed.stale;
        self.keep(list, loading.items);
        if stale {
            self.read_list(id, list);
        }
        self.settle_catalogue();
    }

    /// A page will not come.
    pub(in crate::gateway) fn on_page_failed(
        &mut self,
        id: UpstreamId,
        request: RequestId,
        list: List,
    ) {
        let listed = &mut self.server.catalogue.lists[list as usize];
        let mine = |it: &mut Loading| (it.link, it.request) == (id, request);
        if listed.loading.take_if(mine).is_some() {
            self.settle_catalogue();
        }
    }

    /// A list has been read.
    fn keep(&mut self, list: List, items: Vec<Item>) {
        let listed = &mut self.server.catalogue.lists[list as usize];
        listed.read = self.hub.now;
        if core::mem::take(&mut listed.announced) {
            self.hub.announced[list as usize] = true;
            self.hub.catalogue_changed = true;
        }
        if listed.items != items {
            listed.items = items;
            self.hub.changed[list as usize] = true;
            self.hub.catalogue_changed = true;
        }
    }

    /// All that was to be read may have been.
    fn settle_catalogue(&mut self) {
        let catalogue = &mut self.server.catalogue;
        if catalogue.is_loading() || catalogue.state == State::Known {
            return;
        }
        catalogue.state = State::Known;
        self.hub.catalogue_changed = true;
    }

    /// The server says that a list of it has changed.
    pub(in crate::gateway) fn on_list_changed(&mut self, notice: &str) {
        if !self.server.catalogue.is_wanted() {
            return;
        }
        let Some(id) = self.introduced() else { return };
        for list in List::ALL.into_iter().filter(|list| list.notice() == notice) {
            if self.server.catalogue.can(&[list.capability()]) {
                self.server.catalogue.lists[list as usize].announced = true;
                self.read_list(id, list);
            }
        }
    }

    /// Reads what is old, if the server does not tell when it changes.
    fn refresh(&mut self) {
        let Some(id) = self.introduced() else { return };
        let (now, least) = (self.hub.now, self.server.config.limits.refresh);
        for list in List::ALL {
            let catalogue = &self.server.catalogue;
            let listed = catalogue.list(list);
            let old = now.since(listed.read) >= least && listed.holds(now) == 0;
            let tells = || catalogue.can(&[list.capability(), "listChanged"]);
            let lists = || catalogue.can(&[list.capability()]);
            if old && listed.loading.is_none() && lists() && !tells() {
                self.read_list(id, list);
            }
        }
    }

    /// A connection has ended: what was read on it is not known to be true any more.
    pub(in crate::gateway) fn on_parted_with(&mut self, id: UpstreamId) {
        if self.server.catalogue.seen == Some(id) {
            self.server.catalogue.seen = None;
            self.on_not_met("its connection has ended");
        }
    }

    /// Gives up pages that do not come, and asks again whom it is time to ask.
    pub(in crate::gateway) fn check_catalogue(&mut self) {
        let now = self.hub.now;
        let late = self.server.catalogue.lists.iter_mut().filter_map(|list| {
            let late = list.loading.take_if(|loading| loading.until <= now)?;
            Some((late.link, late.request))
        });
        let late: Vec<(UpstreamId, RequestId)> = late.collect();
        for (id, request) in &late {
            if let Some(link) = self.server.links.get_mut(id) {
                link.take(*request);
                link.upstream.cancel(&mut self.hub.wires, *request, None);
            }
            self.touch(*id);
        }
        if !late.is_empty() {
            let name = &self.server.config.name;
            self.hub.warn(alloc::format!("{name}: it does not say what it offers"));
            self.settle_catalogue();
        }
        if self.server.catalogue.again.is_some_and(|at| at <= now) {
            self.server.catalogue.again = None;
            if self.hub.attentive {
                self.meet();
            }
        }
    }
}
