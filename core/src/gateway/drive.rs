//! Tools of legacy servers that must be called as tasks, for hosts that do not know such
//! tasks (2025-11-25 `basic/utilities/tasks`; TSK-01, D10): we make the task, wait for
//! its result, and answer the call with that.
//!
//! Which tools those are, the server says by refusing the call, which it must.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use super::at::{At, Call, CallKind, Link};
use super::rewrite::{progress_token, with};
use super::translate::without;
use crate::client::{RequestId, UpstreamId};
use crate::jsonrpc::{Message, code, get, get_path};
use crate::protocol::{meta, method};

/// A call that may have to be made as a task.
#[derive(Debug)]
pub(super) struct Driven {
    /// Its parameters, as they were sent.
    params: Box<str>,
    /// Whether it has been sent as one.
    sent: bool,
    /// The task, raw, and the request that waits for its result.
    task: Option<(Box<str>, RequestId)>,
}

impl Driven {
    /// What is kept of a request in case that it must be made as a task.
    pub(super) fn of(link: &Link, method: &str, params: Option<&str>) -> Option<Box<Self>> {
        let params = params.filter(|_| link.tasks && method == method::TOOLS_CALL)?;
        let fits = get(params, "task").is_none();
        fits.then(|| Box::new(Self { params: params.into(), sent: false, task: None }))
    }
}

/// What a server at a URL says to `initialize`, without the offer to list tasks: it would
/// list those of all our hosts (TSK-03). Nothing if it makes no such offer.
pub(super) fn without_list(initialized: &str) -> Option<String> {
    let capabilities = get(initialized, "capabilities")?;
    let tasks = get(capabilities, "tasks").filter(|tasks| get(tasks, "list").is_some())?;
    let capabilities = with(capabilities, "tasks", &without(tasks, "list"));
    Some(with(initialized, "capabilities", &capabilities))
}

impl At<'_> {
    /// A server has said what it can do on a connection.
    pub(super) fn note_tasks(&mut self, id: UpstreamId, initialized: &str) {
        let path = ["capabilities", "tasks", "requests", "tools", "call"];
        if let Some(link) = self.server.links.get_mut(&id) {
            link.tasks = get_path(initialized, &path).is_some();
        }
    }

    /// Makes a task of a call if the server wants that, and waits for what becomes of
    /// one. Gives the call back if its answer is its answer.
    pub(super) fn drive(
        &mut self,
        id: UpstreamId,
        request: RequestId,
        mut call: Call,
        message: &Message<'_>,
    ) -> Option<Call> {
        let Some(driven) = &mut call.driven else { return Some(call) };
        let task = message.result().and_then(|result| get_path(result, &["task", "taskId"]));
        let refused = message.error().and_then(|error| get(error, "code"));
        let refused = refused.and_then(|raw| raw.parse().ok()) == Some(code::METHOD_NOT_FOUND);
        let now = self.hub.now;
        let Some(link) = self.server.links.get_mut(&id) else { return Some(call) };
        let wires = &mut self.hub.wires;
        if refused && !driven.sent {
            driven.sent = true;
            let mut params = with(&driven.params, "task", "{}");
            if progress_token(Some(&params)).is_some() {
                let ours = link.upstream.next_id().0.to_string();
                params = meta::with(Some(&params), &[(meta::PROGRESS_TOKEN, Some(&ours))]);
            }
            let sent = link.upstream.request(wires, method::TOOLS_CALL, Some(&params), &[]);
            let kind = call.kind;
            link.calls.insert(sent, call);
            match kind {
                CallKind::Parked { park } => self.moved_call(park, sent),
                kind => {
                    if let Some(exchange) = kind.exchange() {
                        self.server.routes.insert(exchange, (id, sent));
                    }
                }
            }
            self.touch(id);
            return None;
        }
        let Some(task) = task.filter(|_| driven.sent && driven.task.is_none()) else {
            return Some(call);
        };
        let params = with("{}", "taskId", task);
        let waiting = link.upstream.request(wires, "tasks/result", Some(&params), &[]);
        link.calls.insert(waiting, Call::ours(CallKind::TaskResult { call: request }, now));
        driven.task = Some((task.into(), waiting));
        // Its progress still comes under its own number.
        let kind = call.kind;
        link.calls.insert(request, call);
        if let Some(exchange) = kind.exchange() {
            self.server.routes.insert(exchange, (id, request));
        }
        self.touch(id);
        None
    }

    /// Nobody waits for a call any more that has been taken out of its connection: the
    /// server is told (CAN-09).
    pub(super) fn cancel_taken(
        &mut self,
        id: UpstreamId,
        request: RequestId,
        call: Option<&Call>,
        reason: Option<&str>,
    ) {
        let now = self.hub.now;
        let Some(link) = self.server.links.get_mut(&id) else { return };
        let task = call.and_then(|call| call.driven.as_ref()?.task.as_ref());
        let Some((task, waiting)) = task else {
            link.upstream.cancel(&mut self.hub.wires, request, reason);
            return;
        };
        link.take(*waiting);
        link.upstream.cancel(&mut self.hub.wires, *waiting, reason);
        let params: String = with("{}", "taskId", task);
        let sent = link.upstream.request(&mut self.hub.wires, "tasks/cancel", Some(&params), &[]);
        link.calls.insert(sent, Call::ours(CallKind::Restore, now));
    }
}
