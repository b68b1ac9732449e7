//! Subscriptions of modern hosts whose stream from the server breaks: they are taken up
//! again, and the host notices nothing but that everything may have changed meanwhile
//! (requirements SUB rows).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::at::At;
use super::rewrite;
use crate::client::Failure;
use crate::jsonrpc::{elements, get};
use crate::protocol::method;
use crate::server::{ExchangeId, Request};
use crate::time::{Instant, backoff};

/// The longest pause before another attempt.
const LONGEST: Duration = Duration::from_secs(32);

/// The notifications that members of a filter ask for, and the capability for both.
pub(super) const LISTS: [(&str, &str, &str); 3] = [
    ("toolsListChanged", method::TOOLS_CHANGED, "tools"),
    ("promptsListChanged", method::PROMPTS_CHANGED, "prompts"),
    ("resourcesListChanged", method::RESOURCES_CHANGED, "resources"),
];

/// A filter that asks for these lists, by their places in [`LISTS`], and resources.
pub(super) fn filter(lists: [bool; 3], uris: &BTreeSet<String>) -> String {
    let mut members: Vec<String> = LISTS
        .iter()
        .zip(lists)
        .filter(|(_, wanted)| *wanted)
        .map(|((member, ..), _)| alloc::format!(r#""{member}":true"#))
        .collect();
    if !uris.is_empty() {
        let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
        members.push(alloc::format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
    }
    alloc::format!("{{{}}}", members.join(","))
}

/// Subscriptions, and those that will be taken up again.
#[derive(Debug, Default)]
pub(super) struct Relistening {
    /// Those that a server has acknowledged, and how often they were taken up in vain
    /// since.
    known: BTreeMap<ExchangeId, u32>,
    later: Vec<(Instant, Box<Request<'static>>)>,
}

impl Relistening {
    /// A subscription is over.
    pub(super) fn forget(&mut self, exchange: ExchangeId) {
        self.known.remove(&exchange);
        self.later.retain(|(_, request)| request.exchange != exchange);
    }

    /// The end has begun.
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// Whether a server has ever acknowledged it.
    pub(super) fn knows(&self, exchange: ExchangeId) -> bool {
        self.known.contains_key(&exchange)
    }

    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        let later = self.later.iter().map(|(_, request)| request.exchange);
        later.chain(self.known.keys().copied())
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }
}

impl At<'_> {
    /// The stream of a subscription has broken.
    pub(super) fn relisten_later(&mut self, request: Box<Request<'static>>, failure: &Failure) {
        let exchange = request.exchange;
        let tries = self.server.modern.relistening.known.entry(exchange).or_default();
        *tries += 1;
        let tries = *tries;
        if tries > self.server.config.limits.relistens {
            self.server.modern.relistening.forget(exchange);
            return self.fail(exchange, failure);
        }
        let pause = backoff(Duration::from_secs(1), tries - 1, LONGEST);
        self.server.modern.relistening.later.push((self.hub.now + pause, request));
    }

    /// Takes up again what is due.
    pub(super) fn check_relistening(&mut self) {
        let now = self.hub.now;
        let all = core::mem::take(&mut self.server.modern.relistening.later);
        let (due, later) = all.into_iter().partition(|(at, _)| *at <= now);
        self.server.modern.relistening.later = later;
        let due: Vec<(Instant, Box<Request<'static>>)> = due;
        for (_, request) in due {
            self.on_modern_request(*request);
        }
    }

    /// The server acknowledges a subscription. If the host has been told so before, it is
    /// told instead that all that it listens for may have changed.
    pub(super) fn is_relistened(&mut self, exchange: ExchangeId, params: Option<&str>) -> bool {
        if self.server.modern.relistening.known.insert(exchange, 0).is_none() {
            return false;
        }
        let filter = params.and_then(|params| get(params, "notifications")).unwrap_or("{}");
        for (member, method, _) in LISTS {
            if get(filter, member) == Some("true") {
                self.hub.tell_listen(exchange, method, None);
            }
        }
        for uri in elements(get(filter, "resourceSubscriptions").unwrap_or("[]")) {
            let params = rewrite::with("{}", "uri", uri);
            self.hub.tell_listen(exchange, method::RESOURCE_UPDATED, Some(&params));
        }
        true
    }
}
