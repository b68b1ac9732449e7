//! Ids of tasks between modern hosts and modern servers (SEP-2663; TSK-05, TSK-08).
//!
//! A server sees one client for all our hosts, and ids of many servers may be alike. So
//! hosts get an id of ours, which names the server and is good for whoever made the
//! request. The same task has the same id each time.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::at::{At, Hub, ServerId};
use super::errand::EXTENSION;
use super::rewrite::{quoted, with};
use crate::jsonrpc::{code, elements, get, get_path, string};
use crate::protocol::fault::Fault;
use crate::protocol::meta;
use crate::server::ExchangeId;

/// What they are sealed for.
const PURPOSE: &str = "task";

/// Whether a request is about a task, which `taskId` names.
pub(super) fn is_about_task(method: &str) -> bool {
    matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel")
}

/// The error for an id that is none of ours, or not for this host.
pub(super) fn unknown() -> Fault {
    Fault::new(code::INVALID_PARAMS, "taskId is of no task that is known here")
}

/// Whether a modern host has declared that it knows tasks.
pub(super) fn are_known(params: Option<&str>) -> bool {
    let declared = params.and_then(meta::of).and_then(|m| get(m, meta::CLIENT_CAPABILITIES));
    declared.is_some_and(|declared| get_path(declared, &["extensions", EXTENSION]).is_some())
}

/// The error for one that has not.
pub(super) fn undeclared() -> Fault {
    Fault::with_data(
        code::MISSING_CAPABILITY,
        "Missing required client capability",
        r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#,
    )
}

impl Hub {
    /// The server that an id of ours leads to, and its own id, raw.
    pub(super) fn open_task(&self, exchange: ExchangeId, id: &str) -> Option<(ServerId, String)> {
        let content = self.unseal(PURPOSE, &string(id)?)?;
        let rest = content.strip_prefix(&self.endpoint.owner_of(exchange).to_bytes())?;
        let (server, own) = rest.split_first_chunk::<8>()?;
        let own = String::from_utf8(own.to_vec()).ok()?;
        Some((ServerId(u64::from_be_bytes(*server)), own))
    }
}

impl At<'_> {
    /// The id that the host of a request knows a task by. Both are raw.
    fn seal_task(&self, exchange: ExchangeId, own: &str) -> Option<String> {
        let mut content = self.hub.endpoint.owner_of(exchange).to_bytes().to_vec();
        content.extend_from_slice(&self.server.id.0.to_be_bytes());
        content.extend_from_slice(own.as_bytes());
        self.hub.seal_alike(PURPOSE, &content).map(|token| quoted(&token))
    }

    /// What a server says about its task `own`, with the id that the host knows.
    pub(super) fn task_for_host(
        &self,
        exchange: ExchangeId,
        own: &str,
        said: &str,
    ) -> Option<String> {
        Some(with(said, "taskId", &self.seal_task(exchange, own)?))
    }

    /// What a host says about a task, with the server's own id.
    pub(super) fn task_for_server(
        &self,
        exchange: ExchangeId,
        params: &str,
    ) -> Result<String, Fault> {
        let modern = &self.server.modern;
        let knows = modern.tasks || modern.discovered.is_none();
        if knows && !are_known(Some(params)) {
            return Err(undeclared());
        }
        let opened = get(params, "taskId").and_then(|id| self.hub.open_task(exchange, id));
        match opened.filter(|(server, _)| *server == self.server.id) {
            Some((_, own)) => Ok(with(params, "taskId", &own)),
            None if knows => Err(unknown()),
            // The server says itself that it knows none.
            None => Ok(params.to_string()),
        }
    }

    /// A filter with each id of a task changed; without those that cannot be.
    fn filter_with_tasks(
        &self,
        filter: &str,
        change: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let ids = get(filter, "taskIds")?;
        let changed: Vec<String> = elements(ids).filter_map(change).collect();
        Some(with(filter, "taskIds", &alloc::format!("[{}]", changed.join(","))))
    }

    /// The parameters of `subscriptions/listen` for the server, if they name tasks.
    pub(super) fn listen_for_server(&self, exchange: ExchangeId, params: &str) -> Option<String> {
        let filter = get(params, "notifications")?;
        let own = |id: &str| {
            let (server, own) = self.hub.open_task(exchange, id)?;
            (server == self.server.id).then_some(own)
        };
        let changed = self.filter_with_tasks(filter, own)?;
        Some(with(params, "notifications", &changed))
    }

    /// What a server tells on a subscription, if it names tasks.
    pub(super) fn told_for_host(&self, exchange: ExchangeId, params: &str) -> Option<String> {
        if let Some(own) = get(params, "taskId") {
            return self.task_for_host(exchange, own, params);
        }
        let filter = get(params, "notifications")?;
        let changed = self.filter_with_tasks(filter, |own| self.seal_task(exchange, own))?;
        Some(with(params, "notifications", &changed))
    }
}
