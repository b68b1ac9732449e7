//! Calls and lists.

use alloc::string::String;

use super::machine::{OneShot, Stage};
use super::result::{Answer, Job, Kind, Listing};
use crate::client::Failure;
use crate::client::session::{Options, Trouble};
use crate::jsonrpc::{code, elements, get, quote, string};
use crate::protocol::method;

/// A page of a list that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Page {
    kind: Kind,
    /// How many came before it.
    before: usize,
    /// Where it begins: raw JSON. None for the first.
    cursor: Option<String>,
    /// Bytes that were listed before it.
    bytes: usize,
}

impl OneShot {
    /// Begins with the job that is now the first; leaves if there is none.
    pub(super) fn next_job(&mut self) {
        match self.jobs.front() {
            Some(Job::Call { .. }) => self.call(),
            Some(Job::List) => {
                self.listing = Listing::default();
                self.list(Some(Kind::Tools), 0);
            }
            None => self.leave(&Trouble::Failure(Failure::Stopped)),
        }
    }

    /// Calls the tool of the current job.
    fn call(&mut self) {
        let Some(Job::Call { tool, arguments }) = self.jobs.front() else { return };
        let mut params = String::from(r#"{"name":"#);
        quote(tool, &mut params);
        params.push_str(r#","arguments":"#);
        params.push_str(arguments);
        params.push('}');
        let call = self.session.request(method::TOOLS_CALL, Some(&params), Options::default());
        self.stage = Stage::Calling(call);
    }

    pub(super) fn on_called(&mut self, outcome: Result<String, Trouble>) {
        self.finish_job(outcome.and_then(|result| {
            let kind = get(&result, "resultType").and_then(string);
            match kind.as_deref() {
                Some("input_required") => Err(Trouble::NeedsInput),
                _ => Ok(Answer::Called(result)),
            }
        }));
    }

    /// Asks for the first page of `kind`, or of what the server has after it.
    fn list(&mut self, kind: Option<Kind>, bytes: usize) {
        let offered = |kind: &Kind| match self.session.capabilities() {
            Some(capabilities) => get(capabilities, kind.capability()).is_some(),
            None => true,
        };
        let first = kind.and_then(|first| Kind::ALL.iter().position(|kind| *kind == first));
        let rest = first.and_then(|first| Kind::ALL.get(first..)).unwrap_or_default();
        match rest.iter().copied().find(offered) {
            Some(kind) => self.ask_for_page(Page { kind, before: 0, cursor: None, bytes }),
            None => {
                let listing = core::mem::take(&mut self.listing);
                self.finish_job(Ok(Answer::Listed(listing)));
            }
        }
    }

    fn ask_for_page(&mut self, page: Page) {
        let cursor = page.cursor.as_ref();
        let params = cursor.map(|cursor| alloc::format!(r#"{{"cursor":{cursor}}}"#));
        let method = page.kind.method();
        let call = self.session.request(method, params.as_deref(), Options::default());
        self.stage = Stage::Listing(call, page);
    }

    pub(super) fn on_listed(&mut self, outcome: Result<String, Trouble>, page: Page) {
        let Page { kind, before, cursor, mut bytes } = page;
        let method = kind.method();
        let result = match outcome {
            Ok(result) => result,
            // Many have resources, and no templates.
            Err(trouble) if trouble.code() == Some(code::METHOD_NOT_FOUND) => {
                return self.list_next(kind, bytes);
            }
            Err(trouble) => return self.finish_job(Err(trouble)),
        };
        let Some(items) = get(&result, kind.member()).filter(|items| items.starts_with('[')) else {
            return self.finish_job(Err(Trouble::Malformed(method.into())));
        };
        let list = self.listing.of_mut(kind);
        for item in elements(items) {
            bytes = bytes.saturating_add(item.len());
            list.push(item.into());
        }
        let next = get(&result, "nextCursor").filter(|cursor| cursor.starts_with('"'));
        match next {
            None => self.list_next(kind, bytes),
            // An empty cursor is one like any other (2026-07-28 `server/utilities/pagination`).
            Some(next)
                if before + 1 >= self.limits.pages
                    || bytes > self.limits.list_bytes
                    || cursor.as_deref() == Some(next) =>
            {
                self.finish_job(Err(Trouble::Endless(method)));
            }
            Some(next) => {
                let cursor = Some(next.into());
                self.ask_for_page(Page { kind, before: before + 1, cursor, bytes });
            }
        }
    }

    fn list_next(&mut self, kind: Kind, bytes: usize) {
        let mut rest = Kind::ALL.into_iter().skip_while(|other| *other != kind);
        self.list(rest.nth(1), bytes);
    }
}
