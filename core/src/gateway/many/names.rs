//! The names under which hosts see what many servers offer.
//!
//! A name is `server__tool`, in the alphabet and length that hosts accept (FEA-04):
//! what does not fit is changed and gets a digest of the original, which stays the
//! same as long as that does. Each name leads back to one server and its own name
//! for it, whatever clashes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::view::Filter;

/// The longest name that every host accepts.
const LONGEST: usize = 64;

/// When the name of a server stands before the names of what it offers. A server
/// that is alone keeps its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Prefix {
    /// Whenever there are several.
    #[default]
    Always,
    /// Where two servers have the same name for something.
    OnConflict,
    /// Never. The first server that has a name gets it, and the others' are hidden.
    Never,
}

/// How names are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Naming {
    /// When servers' names are part of them.
    pub prefix: Prefix,
    /// What stands between. Default `__`.
    pub separator: String,
}

impl Default for Naming {
    fn default() -> Self {
        Self { prefix: Prefix::default(), separator: String::from("__") }
    }
}

/// What one server offers of one kind.
#[derive(Debug)]
pub(super) struct Offer<'a> {
    pub(super) server: &'a str,
    pub(super) filter: &'a Filter,
    /// Its own names, in its own order.
    pub(super) names: Vec<&'a str>,
}

/// What hosts see.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The name, whose it is, and which of its own; by the places in the offers.
    pub(super) shown: Vec<(String, usize, usize)>,
    /// What is hidden because its name is taken: whose, and which.
    pub(super) hidden: Vec<(usize, usize)>,
}

impl Naming {
    /// Names everything that the filters let through, in order.
    pub(super) fn name(&self, offers: &[Offer<'_>]) -> Named {
        let several = offers.len() > 1;
        let visible = offers.iter().enumerate().flat_map(|(n, offer)| {
            let names = offer.names.iter().enumerate();
            let names = names.filter(|(_, name)| offer.filter.allows(name));
            names.map(move |(m, name)| (n, m, offer, *name))
        });
        let mut taken = BTreeMap::new();
        let mut seen: BTreeMap<&str, bool> = BTreeMap::new();
        for (n, m, offer, name) in visible.clone() {
            match offer.filter.alias.get(name) {
                Some(alias) if !taken.contains_key(alias) => {
                    taken.insert(alias.clone(), (n, m));
                }
                _ => {
                    seen.entry(name).and_modify(|twice| *twice = true).or_insert(false);
                }
            }
        }
        let mut named = Named::default();
        for (n, m, offer, name) in visible {
            let alias = offer.filter.alias.get(name);
            if let Some(alias) = alias.filter(|alias| taken.get(*alias) == Some(&(n, m))) {
                named.shown.push((alias.clone(), n, m));
                continue;
            }
            let prefixed = several
                && match self.prefix {
                    Prefix::Always => true,
                    Prefix::OnConflict => seen.get(name) == Some(&true) || taken.contains_key(name),
                    Prefix::Never => false,
                };
            let wanted = match (several, prefixed) {
                (false, _) => String::from(name),
                (true, false) => fit(name, offer.server, name),
                (true, true) => fit(&self.prefixed(offer.server, name), offer.server, name),
            };
            let found = if !taken.contains_key(&wanted) {
                Some(wanted)
            } else if several && self.prefix != Prefix::Never {
                Some(shortened(&wanted, offer.server, name))
                    .filter(|other| !taken.contains_key(other))
            } else {
                None
            };
            match found {
                Some(shown) => {
                    taken.insert(shown.clone(), (n, m));
                    named.shown.push((shown, n, m));
                }
                None => named.hidden.push((n, m)),
            }
        }
        named
    }

    fn prefixed(&self, server: &str, name: &str) -> String {
        alloc::format!("{}{}{name}", prefix(server), self.separator)
    }

    /// The name at its server of something that is not listed, if `shown` says that it
    /// is this server's.
    pub(super) fn strip<'a>(&self, server: &str, shown: &'a str) -> Option<&'a str> {
        shown
            .strip_prefix(&*prefix(server))?
            .strip_prefix(&*self.separator)
            .filter(|it| !it.is_empty())
    }
}

/// A server's name as it stands before others: in the alphabet that hosts accept.
pub fn prefix(server: &str) -> String {
    server.chars().map(tame).collect()
}

fn tame(char: char) -> char {
    if u8::try_from(char).is_ok_and(is_fit) { char } else { '_' }
}

fn is_fit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// `name` in the alphabet and length that hosts accept.
fn fit(name: &str, server: &str, own: &str) -> String {
    if name.bytes().all(is_fit) && name.len() <= LONGEST {
        return String::from(name);
    }
    shortened(name, server, own)
}

/// The beginning of `name`, and a digest of whose it is.
fn shortened(name: &str, server: &str, own: &str) -> String {
    let mut out = String::with_capacity(LONGEST);
    out.extend(name.chars().take(LONGEST - 9).map(tame));
    let _ = write!(out, "_{:08x}", digest(server, own));
    out
}

/// FNV-1a, folded: it has to be the same everywhere and for ever, nothing more.
fn digest(server: &str, own: &str) -> u32 {
    let bytes = server.bytes().chain([0]).chain(own.bytes());
    let long = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((long >> 32) ^ (long & 0xffff_ffff)) as u32
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    fn offers<'a>(all: &'a [(&'a str, &'a [&'a str], &'a Filter)]) -> Vec<Offer<'a>> {
        all.iter()
            .map(|(server, names, filter)| Offer { server, filter, names: names.to_vec() })
            .collect()
    }

    fn shown(prefix: Prefix, all: &[(&str, &[&str], &Filter)]) -> (Vec<String>, usize) {
        let naming = Naming { prefix, ..Naming::default() };
        let named = naming.name(&offers(all));
        (named.shown.into_iter().map(|(name, ..)| name).collect(), named.hidden.len())
    }

    #[test]
    fn the_rule_decides_what_stands_before() {
        let none = Filter::default();
        let all: &[(&str, &[&str], &Filter)] =
            &[("a", &["read", "one"], &none), ("b", &["read", "two"], &none)];
        let names = |prefix| shown(prefix, all);
        assert_eq!(names(Prefix::Always).0, ["a__read", "a__one", "b__read", "b__two"]);
        assert_eq!(names(Prefix::OnConflict).0, ["a__read", "one", "b__read", "two"]);
        assert_eq!(names(Prefix::Never), (["read", "one", "two"].map(String::from).into(), 1));
        assert_eq!(shown(Prefix::Always, &all[..1]).0, ["read", "one"]);
    }

    #[test]
    fn what_hosts_do_not_accept_is_changed_and_stays_told_apart() {
        let none = Filter::default();
        let long = "x".repeat(80);
        let names: &[&str] = &["a.b", "a/b", &long, "été"];
        let all: &[(&str, &[&str], &Filter)] = &[("s", names, &none), ("t", &["n"], &none)];
        let (names, hidden) = shown(Prefix::Always, all);
        assert_eq!(hidden, 0);
        for name in &names {
            assert!(name.len() <= LONGEST && name.bytes().all(is_fit), "{name}");
        }
        let different: BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert_eq!(names, shown(Prefix::Always, all).0);
        assert!(names[0].starts_with("s__a_b_"));
        // Alone, a server keeps its names.
        assert_eq!(shown(Prefix::Always, &all[..1]).0[0], "a.b");
    }

    #[test]
    fn prefixes_that_look_like_names_do_not_clash() {
        let none = Filter::default();
        let all: &[(&str, &[&str], &Filter)] = &[("a", &["b__c"], &none), ("a__b", &["c"], &none)];
        let (names, hidden) = shown(Prefix::Always, all);
        assert_eq!((names[0].as_str(), hidden), ("a__b__c", 0));
        assert!(names[1].starts_with("a__b__c_"));
    }

    #[test]
    fn aliases_and_filters_hold() {
        let filter = Filter {
            allow: ["r*", "w?"].map(String::from).into(),
            deny: ["*secret"].map(String::from).into(),
            alias: [("read", "open"), ("wx", "two")]
                .map(|(own, alias)| (own.into(), alias.into()))
                .into(),
            ..Filter::default()
        };
        let none = Filter::default();
        let all: &[(&str, &[&str], &Filter)] = &[
            ("a", &["read", "run", "rsecret", "wx", "other"], &filter),
            ("b", &["two", "open"], &none),
        ];
        assert_eq!(
            shown(Prefix::OnConflict, all).0,
            ["open", "run", "two", "b__two", "b__open"].map(String::from)
        );
    }

    #[test]
    fn names_that_are_not_listed_lead_somewhere_too() {
        let naming = Naming::default();
        assert_eq!(naming.strip("a", "a__x"), Some("x"));
        assert_eq!(naming.strip("a", "ab__x"), None);
        assert_eq!(naming.strip("a", "a__"), None);
    }
}
