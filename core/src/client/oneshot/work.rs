//! Calls and lists.

use alloc::string::String;
use alloc::vec::Vec;

use super::machine::{OneShot, Stage};
use super::result::{Answer, Job, Kind, Listing, Trouble};
use crate::client::probe::metadata;
use crate::jsonrpc::{Message, code, elements, get, quote, string};
use crate::protocol::{method, required_headers, x_mcp_header};

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
            Some(Job::Call { .. }) => self.call(None),
            Some(Job::List) => {
                self.listing = Listing::default();
                self.list(Some(Kind::Tools), 0);
            }
            None => self.leave(),
        }
    }

    /// The parameters of a request with these members.
    fn params(&self, mut members: String) -> Option<String> {
        if self.modern {
            if !members.is_empty() {
                members.push(',');
            }
            members.push_str(r#""_meta":"#);
            members.push_str(&metadata());
        }
        (!members.is_empty()).then(|| alloc::format!("{{{members}}}"))
    }

    /// Calls the tool of the current job; with the header fields that `schema`,
    /// its input schema, declares.
    fn call(&mut self, schema: Option<&str>) {
        let Some(Job::Call { tool, arguments }) = self.jobs.front() else { return };
        let mut members = String::from(r#""name":"#);
        quote(tool, &mut members);
        members.push_str(r#","arguments":"#);
        members.push_str(arguments);
        let params = self.params(members);
        let fields = declared(params.as_deref(), schema);
        let request =
            self.server.request(&mut self.wires, method::TOOLS_CALL, params.as_deref(), &fields);
        self.stage = Stage::Calling { request, informed: schema.is_some() };
    }

    pub(super) fn on_called(&mut self, message: &Message<'_>, informed: bool) {
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}");
            let code = get(error, "code").and_then(|raw| raw.parse().ok()).unwrap_or(0);
            // The tool's schema says which arguments a header must repeat.
            if code == code::HEADER_MISMATCH && self.modern && !informed {
                self.listing = Listing::default();
                return self.list(Some(Kind::Tools), 0);
            }
            let error = error.into();
            return self.finish_job(Err(Trouble::Refused { method: method::TOOLS_CALL, error }));
        };
        let kind = get(result, "resultType").and_then(string);
        self.finish_job(match kind.as_deref() {
            _ if !result.starts_with('{') => Err(Trouble::Malformed(method::TOOLS_CALL)),
            Some("input_required") => Err(Trouble::NeedsInput),
            _ => Ok(Answer::Called(result.into())),
        });
    }

    /// Asks for the first page of `kind`, or of what the server has after it.
    fn list(&mut self, kind: Option<Kind>, bytes: usize) {
        let offered = |kind: &Kind| match &self.capabilities {
            Some(capabilities) => get(capabilities, kind.capability()).is_some(),
            None => true,
        };
        let first = kind.and_then(|first| Kind::ALL.iter().position(|kind| *kind == first));
        let rest = first.and_then(|first| Kind::ALL.get(first..)).unwrap_or_default();
        match rest.iter().copied().find(offered) {
            Some(kind) => self.ask_for_page(Page { kind, before: 0, cursor: None, bytes }),
            None => self.end_list(),
        }
    }

    fn ask_for_page(&mut self, page: Page) {
        let members = match &page.cursor {
            Some(cursor) => alloc::format!(r#""cursor":{cursor}"#),
            None => String::new(),
        };
        let params = self.params(members);
        let method = page.kind.method();
        let request = self.server.request(&mut self.wires, method, params.as_deref(), &[]);
        self.stage = Stage::Listing(request, page);
    }

    pub(super) fn on_listed(&mut self, message: &Message<'_>, page: Page) {
        let Page { kind, before, cursor, mut bytes } = page;
        let method = kind.method();
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}");
            let code = get(error, "code").and_then(|raw| raw.parse().ok()).unwrap_or(0);
            // Many have resources, and no templates.
            return match code {
                code::METHOD_NOT_FOUND => self.list_next(kind, bytes),
                _ => self.finish_job(Err(Trouble::Refused { method, error: error.into() })),
            };
        };
        let Some(items) = get(result, kind.member()).filter(|items| items.starts_with('[')) else {
            return self.finish_job(Err(Trouble::Malformed(method)));
        };
        let list = self.listing.of_mut(kind);
        for item in elements(items) {
            bytes = bytes.saturating_add(item.len());
            list.push(item.into());
        }
        let next = get(result, "nextCursor").filter(|cursor| cursor.starts_with('"'));
        let limits = &self.config.limits;
        match next {
            None => self.list_next(kind, bytes),
            // An empty cursor is one like any other (2026-07-28 `server/utilities/pagination`).
            Some(next)
                if before + 1 >= limits.pages
                    || bytes > limits.list_bytes
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
        if matches!(self.jobs.front(), Some(Job::Call { .. })) {
            return self.end_list();
        }
        let mut rest = Kind::ALL.into_iter().skip_while(|other| *other != kind);
        self.list(rest.nth(1), bytes);
    }

    /// All that was wanted is listed.
    fn end_list(&mut self) {
        let listing = core::mem::take(&mut self.listing);
        let Some(Job::Call { tool, .. }) = self.jobs.front() else {
            return self.finish_job(Ok(Answer::Listed(listing)));
        };
        let found = listing
            .tools
            .iter()
            .find(|item| get(item, "name").and_then(string).is_some_and(|name| name == *tool));
        let schema = found.and_then(|item| get(item, "inputSchema")).unwrap_or("{}");
        self.call(Some(schema));
    }
}

/// The fields that repeat arguments of a call. A schema that declares them
/// wrongly declares none.
fn declared(params: Option<&str>, schema: Option<&str>) -> Vec<(String, String)> {
    let declarations = schema.map(x_mcp_header::declarations).and_then(Result::ok);
    let Some(declarations) = declarations else { return Vec::new() };
    // The others are the transport's business.
    required_headers::mirrored(method::TOOLS_CALL, params, &declarations)
        .into_iter()
        .filter(|(name, _)| declarations.iter().any(|declared| declared.header() == **name))
        .map(|(name, value)| (name.into_owned(), value))
        .collect()
}
