//! What an incoming message is, and whether it may come in: era, version and
//! required metadata, in the order of `requirements.md` section 2.

use alloc::string::{String, ToString};

use crate::jsonrpc::{self, Kind, Message, Rejected, code, error_object, get};
use crate::protocol::fault::Fault;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::{meta, method, required_headers};
use crate::wire::http1::RequestHead;

/// How deep and how odd incoming JSON may be.
pub(super) const JSON: jsonrpc::Limits = jsonrpc::Limits::DEFAULT;
pub(super) const NO_BATCH: &str = "Batches are not accepted: send one message at a time";

/// What may come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admitted {
    /// A request that stands alone.
    Modern,
    /// A request of a session; `initialize` too.
    Legacy,
    /// A notification of a session.
    Notice,
    /// An answer to a question of ours.
    Answer,
    /// Nothing to do and nothing to say.
    Ignored,
}

/// The error object for a message that is not JSON-RPC.
pub(super) fn rejection(rejected: &Rejected) -> String {
    error_object(rejected.code, &rejected.reason.to_string(), None)
}

/// A message on a pipe, whose session (if one has begun) is `session`.
pub(super) fn on_pipe(
    message: &Message<'_>,
    session: Option<Revision>,
    opening: bool,
) -> Result<Admitted, Fault> {
    match message.kind() {
        Kind::Response | Kind::Error => Ok(Admitted::Answer),
        Kind::Notification => match (message.method(), session) {
            (method::CANCELLED, _) | (_, Some(_)) => Ok(Admitted::Notice),
            _ => Ok(Admitted::Ignored),
        },
        Kind::Request => match meta::claim(message.params()) {
            Some(claim) => {
                claims(message, claim.as_deref())?;
                exists_in_modern(message.method())?;
                Ok(Admitted::Modern)
            }
            None => match (message.method(), session) {
                (method::INITIALIZE, None) if !opening => Ok(Admitted::Legacy),
                (method::INITIALIZE, _) => {
                    Err(Fault::new(code::INVALID_REQUEST, "This connection is initialized already"))
                }
                (method::PING, _) | (_, Some(_)) => {
                    legacy(message)?;
                    Ok(Admitted::Legacy)
                }
                _ => Err(Fault::new(
                    code::INVALID_REQUEST,
                    "Send initialize first, or a request with _meta of 2026-07-28",
                )),
            },
        },
    }
}

/// A message in a POST. A session header, and whether the session lives, is the
/// caller's business.
pub(super) fn on_http(message: &Message<'_>, head: &RequestHead) -> Result<Admitted, Fault> {
    let claim = meta::claim(message.params());
    match message.kind() {
        Kind::Response | Kind::Error => return Ok(Admitted::Answer),
        Kind::Notification if claim.is_some() => return Ok(Admitted::Ignored),
        _ => {}
    }
    if let Some(claim) = claim {
        let (method, params) = (message.method(), message.params());
        let fields = || head.fields.iter();
        required_headers::version(fields, params).map_err(mismatch)?;
        claims(message, claim.as_deref())?;
        required_headers::method(fields, method).map_err(mismatch)?;
        exists_in_modern(method)?;
        required_headers::name(fields, method, params).map_err(mismatch)?;
        return Ok(Admitted::Modern);
    }
    match header(head) {
        Ok(Some(revision)) if revision.era() == Era::Modern => {
            return match message.kind() {
                Kind::Notification => Ok(Admitted::Ignored),
                _ => Err(missing_meta()),
            };
        }
        // On initialize the body decides (VER-08): the header is for what follows.
        Err(fault) if message.method() != method::INITIALIZE => return Err(fault),
        _ => {}
    }
    match message.kind() {
        Kind::Notification => Ok(Admitted::Notice),
        _ => {
            legacy(message)?;
            Ok(Admitted::Legacy)
        }
    }
}

/// The revision that the header names; a fault if nobody knows it.
pub(super) fn header(head: &RequestHead) -> Result<Option<Revision>, Fault> {
    let Some(date) = head.fields.get_str("mcp-protocol-version") else { return Ok(None) };
    match Revision::parse(date.trim()) {
        Some(revision) => Ok(Some(revision)),
        None => Err(Fault::unsupported_version(Revision::MODERN_LIST, date.trim())),
    }
}

/// A request in a batch.
pub(super) fn in_batch(message: &Message<'_>, in_session: bool) -> Result<(), Fault> {
    if meta::claim(message.params()).is_some() {
        let why = "Requests of 2026-07-28 are sent one at a time";
        return Err(Fault::new(code::INVALID_REQUEST, why));
    }
    if method::needs_session(message.method()) && !in_session {
        let why = "Mcp-Session-Id is missing: send initialize first";
        return Err(Fault::new(code::INVALID_REQUEST, why));
    }
    legacy(message)
}

/// What the host of an `initialize` gets: the legacy revision that it asks for,
/// or the newest (VER-02).
pub(super) fn wanted(message: &Message<'_>) -> Revision {
    let wanted = message.params().and_then(|params| get(params, "protocolVersion"));
    let wanted = wanted.and_then(jsonrpc::string);
    wanted.and_then(|date| Revision::parse_legacy(&date)).unwrap_or(Revision::NEWEST_LEGACY)
}

fn missing_meta() -> Fault {
    Fault::new(
        code::INVALID_PARAMS,
        "params._meta must have io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities",
    )
}

fn mismatch(fault: required_headers::HeaderFault) -> Fault {
    Fault::new(code::HEADER_MISMATCH, &fault.to_string())
}

/// A request that claims a version: one that is served, with what it requires.
fn claims(message: &Message<'_>, claim: Option<&str>) -> Result<(), Fault> {
    let claim = claim.ok_or_else(missing_meta)?;
    if Revision::parse(claim).map(Revision::era) != Some(Era::Modern) {
        return Err(Fault::unsupported_version(Revision::MODERN_LIST, claim));
    }
    let capabilities =
        message.params().and_then(meta::of).and_then(|m| get(m, meta::CLIENT_CAPABILITIES));
    if !capabilities.is_some_and(|raw| raw.starts_with('{')) {
        return Err(missing_meta());
    }
    Ok(())
}

fn exists_in_modern(method: &str) -> Result<(), Fault> {
    if method::is_legacy_only(method) {
        return Err(Fault::method_not_found(method));
    }
    Ok(())
}

fn legacy(message: &Message<'_>) -> Result<(), Fault> {
    if method::is_modern_only(message.method()) {
        return Err(Fault::method_not_found(message.method()));
    }
    Ok(())
}

/// The HTTP status for a refused message. Faults in the envelope, the metadata
/// and the headers are 400; the rest follows its code.
pub(super) fn refusal_status(era: Era, fault: &Fault) -> u16 {
    match fault.code {
        code::METHOD_NOT_FOUND if era == Era::Legacy => 200,
        code::METHOD_NOT_FOUND => 404,
        _ => 400,
    }
}
