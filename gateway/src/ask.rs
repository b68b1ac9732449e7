//! `mcpx call` and `mcpx ls`: one visit to a server.

use std::io::Read as _;
use std::time::Duration;

use mcpx_core::client;
use mcpx_core::client::oneshot::{Answer, Config, Job, Limits, OneShot};
use mcpx_core::client::session::{self, Trouble};
use mcpx_core::gateway;

use crate::args::{Common, Print};
use crate::error::{Error, Exit};
use crate::upstream::{self, Upstream};
use crate::{report, run, show, tls};

/// A server that does not end by itself is not waited for as long as one that
/// has work to finish.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Calls a tool and prints its result.
pub(crate) fn call(
    tool: String,
    arguments: Option<&str>,
    print: &Print,
    common: &Common,
) -> Result<Exit, Error> {
    let arguments = self::arguments(arguments.unwrap_or("{}"))?;
    let job = Job::Call { tool: tool.clone(), arguments };
    let (name, Answer::Called(result)) = visit(job, print, common)? else {
        return Err(Error::failed("the server answered something else"));
    };
    if print.json {
        show::print(&format!("{result}\n"))?;
    } else {
        show::print(&show::result(&result))?;
    }
    if show::is_error(&result) {
        report::say(&format!("{name}: the tool {tool} reported an error"));
        return Ok(Exit::ToolError);
    }
    Ok(Exit::Done)
}

/// Prints what a server offers.
pub(crate) fn list(print: &Print, common: &Common) -> Result<Exit, Error> {
    let (name, Answer::Listed(listing)) = visit(Job::List, print, common)? else {
        return Err(Error::failed("the server answered something else"));
    };
    if print.json {
        return show::print(&show::listing_json(&listing));
    }
    let text = show::listing(&listing);
    if text.is_empty() {
        report::say(&format!("{name} offers no tools, resources or prompts"));
    }
    show::print(&text)
}

/// Does one job at the server. Returns its name with the answer.
fn visit(job: Job, print: &Print, common: &Common) -> Result<(String, Answer), Error> {
    let mut found = upstream::find_one(common)?;
    let tls = found.tls()?;
    let Some(Upstream { server, .. }) = found.all.pop() else {
        return Err(Error::usage("there is no server"));
    };
    let gateway::Server { name, place, protocol, .. } = server;
    let mut limits = Limits::default();
    limits.total = print.timeout.unwrap_or(limits.total);
    let upstream = client::Limits {
        exit_grace: EXIT_GRACE,
        term_grace: EXIT_GRACE,
        ..client::Limits::default()
    };
    let session = session::Config { protocol, upstream, ..session::Config::new(&name, place) };
    let mut machine = OneShot::new(Config { session, limits }, vec![job]);
    run::drive(&mut machine, tls::Shared::new(tls.into()), Vec::new(), common)?;
    match machine.into_results().pop() {
        Some(Ok(answer)) => Ok((name, answer)),
        Some(Err(Trouble::Interrupted)) | None => Err(Error::Interrupted),
        Some(Err(trouble)) => Err(Error::failed(format!("{name}: {trouble}"))),
    }
}

/// The arguments of a call: given, in a file, or on standard input.
fn arguments(given: &str) -> Result<String, Error> {
    let (text, from) = if given == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Error::failed(format!("standard input cannot be read: {error}")))?;
        (text, "standard input")
    } else if let Some(path) = given.strip_prefix('@') {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::usage(format!("{path} cannot be read: {error}")))?;
        (text, path)
    } else {
        (given.to_string(), "the command line")
    };
    match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
        Ok(value) if value.get().starts_with('{') => Ok(value.get().to_string()),
        Ok(_) => Err(Error::usage(format!(
            "the arguments on {from} are JSON, but no object: write {{\"name\": value, ...}}"
        ))),
        Err(error) => Err(Error::usage(format!(
            "the arguments on {from} are not JSON: {error}; write {{\"name\": value, ...}}, \
             in single quotes for the shell"
        ))),
    }
}
