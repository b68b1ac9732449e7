//! What all servers offer, as one list of each kind.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::catalogue::{Item, List};
use super::names::{Named, Naming, Offer};
use super::view::Filter;
use crate::gateway::at::{Server, ServerId};
use crate::gateway::project::project;
use crate::gateway::rewrite::{quoted, with};
use crate::jsonrpc::get;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::shape::Shape;

/// How many of what is hidden are named.
const SHOWN: usize = 5;

/// The servers, and the order in which the configuration has them.
pub(super) struct Servers<'a> {
    pub(super) order: &'a [ServerId],
    pub(super) all: &'a BTreeMap<ServerId, Box<Server>>,
}

impl Servers<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.order.iter().filter_map(|id| self.all.get(id).map(|server| &**server))
    }

    fn item(&self, list: List, entry: &Entry) -> Option<&Item> {
        self.all.get(&entry.server)?.catalogue.list(list).items.get(entry.place)
    }
}

impl Server {
    pub(super) fn filter(&self, list: List) -> &Filter {
        match list {
            List::Tools => &self.config.view.tools,
            List::Prompts => &self.config.view.prompts,
            List::Resources | List::Templates => &self.config.view.resources,
        }
    }
}

/// The merged lists.
#[derive(Debug, Default)]
pub(super) struct Merged([Index; 4]);

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Whether it is what the servers offer now.
    fresh: bool,
    /// Which of its states it is.
    generation: u64,
    entries: Vec<Entry>,
    /// Where each name is.
    places: BTreeMap<Box<str>, usize>,
    /// Pages as they were given out: for this revision, from there on.
    pages: BTreeMap<(Revision, usize), Box<str>>,
    /// What is not shown because its name is taken.
    hidden: BTreeSet<String>,
}

/// Something that hosts see.
#[derive(Debug)]
struct Entry {
    shown: Box<str>,
    server: ServerId,
    /// Which of the server's own it is.
    place: usize,
}

/// A part of a list.
pub(super) struct Page<'a> {
    /// Its items, as a JSON array.
    pub(super) items: &'a str,
    /// Where the next one begins.
    pub(super) next: Option<usize>,
}

impl Merged {
    /// Some servers' list is another now.
    pub(super) fn outdate(&mut self, list: List) {
        self.0[list as usize].fresh = false;
    }

    pub(super) fn outdate_all(&mut self) {
        List::ALL.into_iter().for_each(|list| self.outdate(list));
    }

    /// The state of a list that is up to date.
    pub(super) fn generation(&self, list: List) -> u64 {
        self.0[list as usize].generation
    }

    /// Brings a list up to date. Gives sentences about what is newly hidden.
    pub(super) fn refresh(
        &mut self,
        list: List,
        servers: &Servers<'_>,
        naming: &Naming,
    ) -> Vec<String> {
        let index = &mut self.0[list as usize];
        if index.fresh {
            return Vec::new();
        }
        let present: Vec<&Server> = servers.iter().collect();
        let named = match list {
            List::Tools | List::Prompts => {
                let offers = present.iter().map(|server| Offer {
                    server: &server.config.name,
                    filter: server.filter(list),
                    names: keys(server, list).collect(),
                });
                naming.name(&offers.collect::<Vec<_>>())
            }
            List::Resources | List::Templates => by_uri(&present, list),
        };
        index.entries.clear();
        index.places.clear();
        index.pages.clear();
        for (n, (shown, server, place)) in named.shown.into_iter().enumerate() {
            let Some(server) = present.get(server) else { continue };
            let shown: Box<str> = shown.into();
            index.places.insert(shown.clone(), n);
            index.entries.push(Entry { shown, server: server.id, place });
        }
        let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (server, place) in named.hidden {
            let Some(server) = present.get(server) else { continue };
            let Some(item) = server.catalogue.list(list).items.get(place) else { continue };
            keys.entry(&server.config.name).or_default().push(&item.key);
        }
        let hidden: BTreeSet<String> = keys
            .into_iter()
            .map(|(name, keys)| {
                let (what, shown) = (list.member(), keys.get(..SHOWN).unwrap_or(&keys).join(", "));
                let more = if keys.len() > SHOWN { ", …" } else { "" };
                alloc::format!(
                    "{name}: {} of its {what} are hidden, for another server has them too: \
                     {shown}{more}",
                    keys.len()
                )
            })
            .collect();
        let news = hidden.difference(&index.hidden).cloned().collect();
        (index.hidden, index.fresh) = (hidden, true);
        index.generation += 1;
        news
    }

    /// Whose something is that hosts see, and what its server calls it.
    pub(super) fn owner<'a>(
        &self,
        list: List,
        shown: &str,
        servers: &Servers<'a>,
    ) -> Option<(ServerId, &'a str)> {
        let index = &self.0[list as usize];
        let entry = index.entries.get(*index.places.get(shown)?)?;
        let item = servers.all.get(&entry.server)?.catalogue.list(list).items.get(entry.place)?;
        Some((entry.server, &item.key))
    }

    /// The template that a URI was made from, most likely: the one that begins with
    /// most of it.
    pub(super) fn template(&self, uri: &str) -> Option<ServerId> {
        let entries = self.0[List::Templates as usize].entries.iter();
        let fitting = entries.filter_map(|entry| {
            let literal = template_fits(&entry.shown, uri)?;
            Some((literal, entry.server))
        });
        // The first of the best.
        fitting
            .fold(None, |best: Option<(usize, ServerId)>, it| match best {
                Some(best) if best.0 >= it.0 => Some(best),
                _ => Some(it),
            })
            .map(|(_, server)| server)
    }

    /// The one server that has any resources of the scheme of `uri`.
    pub(super) fn scheme(&self, uri: &str) -> Option<ServerId> {
        let wanted = scheme(uri)?;
        let lists = [List::Resources, List::Templates];
        let entries = lists.iter().flat_map(|list| &self.0[*list as usize].entries);
        let mut owners: BTreeSet<ServerId> = BTreeSet::new();
        for entry in entries {
            if scheme(&entry.shown).is_some_and(|it| it.eq_ignore_ascii_case(wanted)) {
                owners.insert(entry.server);
            }
        }
        owners.first().copied().filter(|_| owners.len() == 1)
    }

    /// A page of a list that is up to date.
    pub(super) fn page(
        &mut self,
        list: List,
        host: Revision,
        from: usize,
        most: usize,
        servers: &Servers<'_>,
    ) -> Page<'_> {
        let index = &mut self.0[list as usize];
        let to = from.saturating_add(most.max(1)).min(index.entries.len());
        let entries = index.entries.get(from..to).unwrap_or_default();
        let items = index
            .pages
            .entry((host, from))
            .or_insert_with(|| render(list, host, entries, servers).into());
        Page { items, next: (to < index.entries.len()).then_some(to) }
    }

    /// All that hosts see of a list, with what its server says of it.
    pub(super) fn all<'a>(
        &'a self,
        list: List,
        servers: &'a Servers<'a>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let entries = self.0[list as usize].entries.iter();
        entries.filter_map(move |entry| Some((&*entry.shown, &*servers.item(list, entry)?.raw)))
    }
}

fn scheme(uri: &str) -> Option<&str> {
    uri.split_once(':').map(|(scheme, _)| scheme)
}

fn keys(server: &Server, list: List) -> impl Iterator<Item = &str> {
    server.catalogue.list(list).items.iter().map(|item| &*item.key)
}

/// What is named by its URI: the first server that has it is meant.
fn by_uri(present: &[&Server], list: List) -> Named {
    let (mut named, mut taken) = (Named::default(), BTreeSet::new());
    for (n, server) in present.iter().enumerate() {
        for (m, uri) in keys(server, list).enumerate() {
            if !server.filter(list).allows(uri) {
                continue;
            }
            if taken.insert(uri) {
                named.shown.push((uri.to_string(), n, m));
            } else {
                named.hidden.push((n, m));
            }
        }
    }
    named
}

fn render(list: List, host: Revision, entries: &[Entry], servers: &Servers<'_>) -> String {
    let mut out = String::from("[");
    for entry in entries {
        let Some(item) = servers.item(list, entry) else { continue };
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&shown(list, entry, item, servers));
    }
    out.push(']');
    let shape = Shape::of_result(list.method()).filter(|_| host.era() == Era::Legacy);
    let Some(shape) = shape else { return out };
    let mut whole = String::with_capacity(out.len() + 32);
    let _ = write!(whole, r#"{{"{}":{out}}}"#, list.member());
    let projected = project(&whole, shape, host);
    get(&projected, list.member()).unwrap_or("[]").to_string()
}

/// What hosts see of an item.
fn shown(list: List, entry: &Entry, item: &Item, servers: &Servers<'_>) -> String {
    let mut raw = item.raw.to_string();
    if matches!(list, List::Resources | List::Templates) {
        return raw;
    }
    if entry.shown != item.key {
        raw = with(&raw, "name", &quoted(&entry.shown));
    }
    let filter = servers.all.get(&entry.server).map(|server| server.filter(list));
    if let Some(other) = filter.and_then(|filter| filter.describe.get(&*item.key)) {
        raw = with(&raw, "description", &quoted(other));
    }
    raw
}

/// Whether `uri` may be made from a template (RFC 6570), and how many of its first
/// characters the template says literally.
fn template_fits(template: &str, uri: &str) -> Option<usize> {
    let (first, mut rest) = template.split_once('{')?;
    let mut left = uri.strip_prefix(first)?;
    while let Some((_, after)) = rest.split_once('}') {
        let (literal, more) = match after.split_once('{') {
            Some((literal, more)) => (literal, Some(more)),
            None => (after, None),
        };
        match more {
            Some(more) => {
                let at = left.find(literal)?;
                left = left.get(at + literal.len()..)?;
                rest = more;
            }
            None => return left.ends_with(literal).then_some(first.len()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_fit_the_templates_that_they_are_made_from() {
        for (template, uri, expected) in [
            ("file:///{+path}", "file:///a/b", Some(8)),
            ("memo:{id}", "memo:7", Some(5)),
            ("memo:{id}/text", "memo:7/text", Some(5)),
            ("memo:{id}/text", "memo:7/x", None),
            ("a:{x}-{y}.md", "a:1-2.md", Some(2)),
            ("a:{x}-{y}.md", "a:12.md", None),
            ("{+any}", "x:y", Some(0)),
            ("a:b", "a:b", None),
            ("a:{", "a:b", None),
        ] {
            assert_eq!(template_fits(template, uri), expected, "{template} {uri}");
        }
    }
}
