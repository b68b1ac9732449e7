//! The `requestState` of a modern server on its way through us (2026-07-28
//! `basic/patterns/mrtr`; requirements D4).
//!
//! A server sees one client for all our hosts, and cannot tell them apart. So what it
//! gives to one of them travels inside a token of ours, which is good for that host, for
//! that request, and for a while.

use alloc::string::String;
use core::hash::Hasher as _;

use siphasher::sip::SipHasher;

use super::at::{At, Hub};
use super::rewrite::{quoted, with};
use crate::jsonrpc::{code, get, members, string};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::server::{ExchangeId, Request};
use crate::time::Instant;

/// What they are sealed for.
const PURPOSE: &str = "state of a server";

impl Hub {
    /// What tells a request from others of its method: its parameters, but for what each
    /// round has of its own. Nothing for methods in which no server asks.
    pub(super) fn digest(&self, method: &str, params: Option<&str>) -> u64 {
        if !matches!(method, method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ) {
            return 0;
        }
        let mut hasher = SipHasher::new_with_key(&self.digest_key);
        hasher.write(method.as_bytes());
        for (key, value) in members(params.unwrap_or("{}")) {
            if !["_meta", "inputResponses", "requestState"].iter().any(|own| key == **own) {
                for part in [key.raw(), value] {
                    hasher.write_usize(part.len());
                    hasher.write(part.as_bytes());
                }
            }
        }
        hasher.finish()
    }

    /// Who makes a request, and which it is.
    fn binding(&self, exchange: ExchangeId, digest: u64) -> [u8; 24] {
        let mut binding = [0; 24];
        let (owner, rest) = binding.split_at_mut(16);
        owner.copy_from_slice(&self.endpoint.owner_of(exchange).to_bytes());
        rest.copy_from_slice(&digest.to_be_bytes());
        binding
    }
}

impl At<'_> {
    /// A result that asks for more, with the server's state in a token of ours. `digest`
    /// is the request's. Nothing if it has none.
    pub(super) fn seal_state(
        &mut self,
        exchange: ExchangeId,
        digest: u64,
        result: &str,
    ) -> Option<String> {
        let state = get(result, "requestState")?;
        let until = self.hub.now + self.server.config.limits.parked_time;
        let mut content = self.hub.binding(exchange, digest).to_vec();
        content.extend_from_slice(&until.as_micros().to_be_bytes());
        content.extend_from_slice(state.as_bytes());
        let token = self.hub.seal(PURPOSE, &content)?;
        Some(with(result, "requestState", &quoted(&token)))
    }

    /// The parameters of a request, whose digest is given, with the server's own state in
    /// the place of our token. Nothing if they have none.
    pub(super) fn open_state(
        &self,
        request: &Request<'_>,
        digest: u64,
    ) -> Result<Option<String>, Fault> {
        let params = request.message.params().unwrap_or("{}");
        let Some(token) = get(params, "requestState") else { return Ok(None) };
        let state = string(token).and_then(|token| {
            let content = self.hub.unseal(PURPOSE, &token)?;
            let rest = content.strip_prefix(&self.hub.binding(request.exchange, digest))?;
            let (until, state) = rest.split_first_chunk::<8>()?;
            let until = Instant::from_micros(u64::from_be_bytes(*until));
            (until > self.hub.now).then(|| String::from_utf8_lossy(state).into_owned())
        });
        match state {
            Some(state) => Ok(Some(with(params, "requestState", &state))),
            None => {
                let why =
                    "requestState was not given for this request, or too long ago: begin again";
                Err(Fault::new(code::INVALID_PARAMS, why))
            }
        }
    }
}
