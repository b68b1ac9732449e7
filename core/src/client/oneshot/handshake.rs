//! What the server speaks (2026-07-28 `basic/versioning`): `server/discover`
//! first, `initialize` for those who do not know it.

use super::machine::{OneShot, Stage};
use super::result::Trouble;
use crate::client::Failure;
use crate::jsonrpc::{Message, code, elements, get, string};
use crate::protocol::revision::Revision;
use crate::protocol::{meta, method};

/// What the answer to the probe says.
enum Verdict {
    Modern,
    Legacy,
    NeitherOfUs,
    /// It is modern, and does not like our request.
    Refused,
}

impl OneShot {
    pub(super) fn ask_for_revision(&mut self) {
        self.server.speak(Revision::NEWEST_MODERN);
        let params = alloc::format!(r#"{{"_meta":{}}}"#, metadata());
        let request = self.server.request(&mut self.wires, method::DISCOVER, Some(&params), &[]);
        self.probe = Some(request);
        let limits = &self.config.limits;
        let limit = if self.is_process() { limits.probe } else { limits.handshake };
        self.stage = Stage::Probing(self.now() + limit);
    }

    pub(super) fn on_discovered(&mut self, message: &Message<'_>) {
        match judge(message) {
            Verdict::Modern => self.speak_modern(message),
            Verdict::Legacy => self.initialize(),
            Verdict::NeitherOfUs => self.give_up(&Trouble::NoCommonRevision),
            Verdict::Refused => {
                let error = message.error().unwrap_or("{}").into();
                self.give_up(&Trouble::Refused { method: method::DISCOVER, error });
            }
        }
    }

    /// A process that was slow to start answers after we have sent `initialize`
    /// too. If it is modern, that is what counts; it will refuse the other.
    pub(super) fn on_discovered_late(&mut self, message: &Message<'_>) {
        if matches!(judge(message), Verdict::Modern) {
            self.speak_modern(message);
        }
    }

    pub(super) fn on_probe_failure(&mut self, failure: Failure) {
        match failure {
            // Some servers quit on any request before initialize.
            Failure::Exited(..) | Failure::Gone if self.is_process() => {
                self.start_again();
                self.initialize();
            }
            Failure::Status(400 | 404 | 405) => self.initialize(),
            // A locked door or a broken server says nothing about revisions.
            failure => self.give_up(&Trouble::Failure(failure)),
        }
    }

    pub(super) fn on_probe_silence(&mut self) {
        if self.is_process() {
            self.initialize();
        } else {
            let limit = self.config.limits.handshake;
            self.give_up(&Trouble::Silent(method::DISCOVER, limit));
        }
    }

    fn speak_modern(&mut self, message: &Message<'_>) {
        self.modern = true;
        self.server.speak(Revision::NEWEST_MODERN);
        self.capabilities = capabilities(message);
        self.next_job();
    }

    fn initialize(&mut self) {
        self.modern = false;
        self.server.speak(Revision::NEWEST_LEGACY);
        let params = alloc::format!(
            r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{}}}"#,
            Revision::NEWEST_LEGACY,
            meta::IDENTITY
        );
        let request = self.server.request(&mut self.wires, method::INITIALIZE, Some(&params), &[]);
        let until = self.now() + self.config.limits.handshake;
        self.stage = Stage::Initializing(request, until);
    }

    pub(super) fn on_initialized(&mut self, message: &Message<'_>) {
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}").into();
            return self.give_up(&Trouble::Refused { method: method::INITIALIZE, error });
        };
        let Some(agreed) = get(result, "protocolVersion").and_then(string) else {
            return self.give_up(&Trouble::Malformed(method::INITIALIZE));
        };
        let Some(revision) = Revision::parse_legacy(&agreed) else {
            return self.give_up(&Trouble::NoCommonRevision);
        };
        self.server.speak(revision);
        self.capabilities = capabilities(message);
        self.server.notify(&mut self.wires, method::INITIALIZED, None);
        self.next_job();
    }
}

/// What every modern request has in its `_meta`.
pub(super) fn metadata() -> alloc::string::String {
    alloc::format!(
        r#"{{"{}":"{}","{}":{},"{}":{{}}}}"#,
        meta::PROTOCOL_VERSION,
        Revision::NEWEST_MODERN,
        meta::CLIENT_INFO,
        meta::IDENTITY,
        meta::CLIENT_CAPABILITIES
    )
}

fn capabilities(message: &Message<'_>) -> Option<alloc::string::String> {
    let capabilities = get(message.result()?, "capabilities")?;
    capabilities.starts_with('{').then(|| capabilities.into())
}

/// Any answer that no modern server would give comes from a legacy one.
fn judge(message: &Message<'_>) -> Verdict {
    if let Some(result) = message.result() {
        return get(result, "supportedVersions").map_or(Verdict::Legacy, among);
    }
    let error = message.error().unwrap_or("{}");
    let code = get(error, "code").and_then(|raw| raw.parse().ok()).unwrap_or(0);
    match code {
        code::UNSUPPORTED_VERSION => {
            let supported = get(error, "data").and_then(|data| get(data, "supported"));
            supported.map_or(Verdict::Legacy, among)
        }
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY => Verdict::Refused,
        _ => Verdict::Legacy,
    }
}

/// What a server speaks that supports these versions, a JSON array.
fn among(versions: &str) -> Verdict {
    let (mut any, mut legacy) = (false, false);
    for version in elements(versions).filter_map(string) {
        any = true;
        if version == Revision::NEWEST_MODERN.as_str() {
            return Verdict::Modern;
        }
        legacy |= Revision::parse_legacy(&version).is_some();
    }
    if legacy || !any { Verdict::Legacy } else { Verdict::NeitherOfUs }
}
