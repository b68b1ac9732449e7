//! HTTP+SSE of 2024-11-05, the transport before Streamable HTTP, as a client has
//! it (requirements HSE-03, HSE-10; 2026-07-28 `basic/transports/streamable-http`,
//! backwards compatibility).
//!
//! A URL that refuses the POST of `initialize` with 400, 404 or 405, and not as a
//! modern server would, is asked for an event stream. If its first event is
//! `endpoint`, messages are sent to the URI in there, which must be of the same
//! origin, and whatever comes back comes on the stream, which is the session.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::again::Again;
use super::failure::Failure;
use super::http::Http;
use super::lane::{Job, Task};
use super::upstream::{Core, RequestId};
use super::wires::Wires;
use crate::driver::ConnId;
use crate::jsonrpc::{self, Incoming, Message, code, get};
use crate::time::Instant;
use crate::wire::http1::Url;

/// The old transport, in use or being tried.
#[derive(Debug)]
pub(super) struct LegacySse {
    /// Where messages go. `None` until the server has said.
    endpoint: Option<Url>,
    /// The handshake that waits for that.
    first: RequestId,
    again: Option<Again>,
    /// What the POST of it was answered, which counts if this comes to nothing.
    refusal: Option<(Job, Vec<u8>)>,
    /// When this has come to nothing.
    until: Instant,
}

impl LegacySse {
    /// Where messages go, if it is in use.
    pub(super) fn endpoint(&self) -> Option<&Url> {
        self.endpoint.as_ref()
    }

    /// Whether the server has still to say where messages go.
    pub(super) fn awaits_endpoint(&self) -> bool {
        self.endpoint.is_none()
    }

    /// Until when the server may say where messages go.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.awaits_endpoint().then_some(self.until)
    }
}

impl Http {
    /// Tries the old transport after the answer to `initialize`, if that is what
    /// the answer means. Says whether it is.
    pub(super) fn fall_back(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        job: &mut Job,
        request: RequestId,
        body: &[u8],
    ) -> bool {
        if !matches!(job.status, 400 | 404 | 405)
            || self.legacy.is_some()
            || !core.open.contains(&request)
            || is_modern_error(body)
        {
            return false;
        }
        let Some(again) = job.again.take() else { return false };
        let refusal = core::mem::replace(job, Job::new(job.task));
        self.legacy = Some(Box::new(LegacySse {
            endpoint: None,
            first: request,
            again: Some(again),
            refusal: Some((refusal, body.to_vec())),
            until: wires.now + core.limits.endpoint,
        }));
        if self.get(core, wires, Task::Stream, None).is_err() {
            self.fall_back_in_vain(core, wires, None);
        }
        true
    }

    /// The server does not speak the old transport either: its first answer is
    /// what it has to say, unless it is known better what is wrong.
    fn fall_back_in_vain(&mut self, core: &mut Core, wires: &mut Wires, why: Option<Failure>) {
        let Some(legacy) = self.legacy.take() else { return };
        match (why, legacy.refusal) {
            (None, Some((job, body))) => {
                let body = Cow::Owned(body);
                if let Some(event) = self.answer(core, wires, job, legacy.first, body) {
                    core.events.push_back(event);
                }
            }
            (why, _) => core.fail(legacy.first, why.unwrap_or(Failure::Broken)),
        }
    }

    /// The first event of the stream, which must say where messages go (HSE-02).
    pub(super) fn on_legacy_endpoint(
        &mut self,
        core: &mut Core,
        wires: &mut Wires,
        conn: ConnId,
        endpoint: Option<String>,
    ) {
        let Some(legacy) = &mut self.legacy else { return };
        let failure = match endpoint.as_deref().map(|uri| self.url.join(uri.trim())).transpose() {
            Ok(None) => None,
            Ok(Some(url)) if url.is_same_origin(&self.url) => {
                let again = legacy.again.take().map(|again| again.at(url.target()));
                let request = legacy.first;
                legacy.endpoint = Some(url);
                legacy.refusal = None;
                if let Some(again) = again {
                    self.send_again(core, wires, Task::Sent(request), again);
                }
                return;
            }
            Ok(Some(_)) => Some("its HTTP+SSE endpoint is on another server".to_string()),
            Err(error) => Some(alloc::format!("its HTTP+SSE endpoint: {error}")),
        };
        self.drop_lane(wires, conn);
        self.fall_back_in_vain(core, wires, failure.map(Failure::NotMcp));
    }

    /// The stream has ended, and with it the session. What is open may have been
    /// done, so it is not asked again.
    pub(super) fn on_legacy_end(&mut self, core: &mut Core, wires: &mut Wires) {
        match &self.legacy {
            Some(legacy) if legacy.awaits_endpoint() => self.fall_back_in_vain(core, wires, None),
            Some(_) => {
                core.fail_all(&Failure::Broken);
                core.lose_session(None);
            }
            None => {}
        }
    }

    /// Gives up waiting for the server to say where messages go.
    pub(super) fn check_legacy(&mut self, core: &mut Core, wires: &mut Wires) {
        let until = self.legacy.as_ref().and_then(|legacy| legacy.deadline());
        if until.is_some_and(|until| until <= wires.now) {
            let stream = self
                .lanes
                .iter()
                .find(|(_, lane)| lane.job.as_ref().is_some_and(|job| job.task == Task::Stream));
            if let Some((&conn, _)) = stream {
                self.drop_lane(wires, conn);
            }
            self.fall_back_in_vain(core, wires, None);
        }
    }
}

/// Whether only a server of 2026-07-28 would say so.
fn is_modern_error(body: &[u8]) -> bool {
    let parsed = Message::parse(Cow::Borrowed(body), &jsonrpc::Limits::DEFAULT);
    let Ok(Incoming::Message(message)) = parsed else { return false };
    let code = message.error().and_then(|error| get(error, "code")?.parse().ok());
    matches!(
        code,
        Some(
            code::METHOD_NOT_FOUND
                | code::HEADER_MISMATCH
                | code::MISSING_CAPABILITY
                | code::UNSUPPORTED_VERSION
        )
    )
}
