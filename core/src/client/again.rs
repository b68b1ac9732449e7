//! Requests that go out again: over another connection when theirs was stale, to
//! where a redirect points, or after the pause that the server asks for.
//!
//! In none of these cases has the server begun to do what was asked, except that a
//! stale connection does not tell: there only what may be done twice is sent again
//! (RFC 9110 section 9.2.2).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::failure::Failure;
use super::http::{Http, Reopen};
use super::lane::{Job, Lane, Task};
use super::upstream::Core;
use super::wires::Wires;
use crate::driver::ConnId;

/// How often one request goes out again.
const TIMES: u8 = 3;

/// A request as it went out, while it may have to go out again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Again {
    verb: &'static str,
    bytes: Vec<u8>,
    /// Whether it may be done twice.
    safe: bool,
    times: u8,
}

impl Again {
    pub(super) fn new(verb: &'static str, bytes: &[u8], safe: bool) -> Self {
        Self { verb, bytes: bytes.to_vec(), safe, times: 0 }
    }

    fn once_more(self) -> Self {
        Self { times: self.times + 1, ..self }
    }

    /// The same request, for another target of the same server.
    pub(super) fn at(mut self, target: &str) -> Self {
        let start = self.verb.len() + 1;
        let rest = self.bytes.get(start..).unwrap_or_default();
        if let Some(len) = memchr::memchr(b' ', rest) {
            self.bytes.splice(start..start + len, target.bytes());
        }
        self
    }
}

impl Http {
    /// Sends a request again.
    pub(super) fn send_again(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        task: Task,
        again: Again,
    ) {
        let Some(conn) = self.lane(core, wires, task) else {
            return self.give_up(core, wires, Job::new(task), Failure::TooMany);
        };
        wires.output.write(conn, |tail| tail.extend_from_slice(&again.bytes));
        self.expect(conn, again.verb, Some(again));
    }

    /// A request is on its way on a connection.
    pub(super) fn expect(&mut self, conn: ConnId, verb: &str, again: Option<Again>) {
        if let Some(lane) = self.lanes.get_mut(&conn) {
            lane.reader.expect(verb);
            if let Some(job) = &mut lane.job {
                job.again = again;
            }
        }
    }

    /// A connection broke before anything came of the response. Says whether the
    /// request is on its way over another one.
    pub(super) fn leave_stale(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        lane: &Lane,
        job: &mut Job,
    ) -> bool {
        if !lane.reused || job.status != 0 || !is_wanted(core, job.task) {
            return false;
        }
        let Some(again) = job.again.take_if(|again| again.safe && again.times < TIMES) else {
            return false;
        };
        // The others are no younger.
        self.drop_idle(wires);
        self.send_again(core, wires, job.task, again.once_more());
        true
    }

    /// Follows a redirect to the same server: nobody else gets what we send.
    pub(super) fn follow(&mut self, core: &mut Core, wires: &mut Wires, job: &mut Job) -> bool {
        let Some(again) = job.again.take_if(|again| again.times < TIMES) else { return false };
        let followed = match job.status {
            307 | 308 => true,
            301..=303 => again.verb == "GET",
            _ => false,
        };
        let url = job.location.as_deref().filter(|_| followed && is_wanted(core, job.task));
        let url = url.and_then(|location| self.url.join(location).ok());
        let Some(url) = url.filter(|url| url.is_same_origin(&self.url)) else {
            job.again = Some(again);
            return false;
        };
        let again = again.at(url.target());
        // Mostly a slash was missing, which all that follows would lack as well.
        if matches!(job.task, Task::Request { .. }) {
            self.url = url;
        }
        self.send_again(core, wires, job.task, again.once_more());
        true
    }

    /// The server has too much to do, and says until when: the request waits.
    pub(super) fn pause(&mut self, core: &Core, wires: &Wires, job: &mut Job) -> bool {
        let (429 | 503, Some(wait)) = (job.status, job.retry.map(Duration::from_millis)) else {
            return false;
        };
        if wait > core.limits.retry_after || !is_wanted(core, job.task) {
            return false;
        }
        let Some(again) = job.again.take_if(|again| again.times < TIMES) else { return false };
        self.later.push((wires.now + wait, Reopen::Again(job.task, again.once_more())));
        true
    }

    /// The handshake is over, as far as the server has to know of it: what has waited for
    /// that goes out, in its order.
    pub(super) fn release(&mut self, core: &mut Core, wires: &mut Wires) {
        self.opening = None;
        for (task, again) in core::mem::take(&mut self.held) {
            self.resume_again(core, wires, task, again);
        }
    }

    /// A pause is over.
    pub(super) fn resume_again(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        task: Task,
        again: Again,
    ) {
        if is_wanted(core, task) {
            self.send_again(core, wires, task, again);
        }
    }
}

/// Whether anybody still waits for it.
fn is_wanted(core: &Core, task: Task) -> bool {
    match task {
        Task::Request { request, .. } | Task::Resume(request) | Task::Sent(request) => {
            core.open.contains(&request)
        }
        Task::Post | Task::Initialized | Task::Listen | Task::Stream | Task::Goodbye => !core.ended,
    }
}

/// What a response without an answer says.
pub(super) fn refusal(job: &Job) -> Failure {
    match (&job.location, job.status) {
        (Some(location), 300..=399) => {
            // What follows may be a secret.
            let shown = location.split(['?', '#']).next().unwrap_or_default();
            Failure::Redirected(shown.chars().take(200).collect::<String>())
        }
        (_, status) => Failure::Status(status),
    }
}

/// What a response with this text was, which holds no message.
pub(super) fn no_message(job: &Job, reason: impl ToString) -> Failure {
    match &job.kind {
        Some(kind) => Failure::NotMcp(alloc::format!("it answered with {kind}")),
        None => Failure::NotMcp(reason.to_string()),
    }
}
