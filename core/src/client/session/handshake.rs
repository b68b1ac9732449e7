//! What the server speaks (2026-07-28 `basic/versioning`): `server/discover`
//! first, `initialize` for those who do not know it.

use super::machine::{Session, Stage};
use super::trouble::Trouble;
use crate::client::Failure;
use crate::client::probe::{self, Protocol, Verdict};
use crate::jsonrpc::{Message, get, string};
use crate::protocol::revision::Revision;
use crate::protocol::{meta, method};

impl Session {
    pub(super) fn ask_for_revision(&mut self) {
        self.server.speak(Revision::NEWEST_MODERN);
        let params = probe::params();
        let request = self.server.request(&mut self.wires, method::DISCOVER, Some(&params), &[]);
        self.probe = Some(request);
        let limits = &self.config.limits;
        let limit = if self.is_pipe() { limits.probe } else { limits.handshake };
        self.stage = Stage::Probing(self.now + limit);
    }

    pub(super) fn on_discovered(&mut self, message: &Message<'_>) {
        match probe::judge(message) {
            Verdict::Modern => self.speak_modern(message),
            Verdict::Again if !core::mem::replace(&mut self.asked_again, true) => {
                self.ask_for_revision();
            }
            Verdict::Legacy if self.config.protocol != Protocol::Modern => self.initialize(),
            Verdict::Later => self.give_up(&Trouble::NoCommonRevision),
            Verdict::Refused | Verdict::Again | Verdict::Legacy => {
                let error = message.error().unwrap_or("{}").into();
                self.give_up(&Trouble::Refused { method: method::DISCOVER.into(), error });
            }
        }
    }

    /// A process that was slow to start answers after we have sent `initialize`
    /// too. If it is modern, that is what counts; it will refuse the other.
    pub(super) fn on_discovered_late(&mut self, message: &Message<'_>) {
        if probe::judge(message) == Verdict::Modern {
            self.speak_modern(message);
        }
    }

    pub(super) fn on_probe_failure(&mut self, failure: Failure) {
        match probe::judge_failure(&failure, self.is_pipe()) {
            Some(_) => {
                if self.is_pipe() {
                    self.start_again();
                }
                self.initialize();
            }
            None => self.give_up(&Trouble::Failure(failure)),
        }
    }

    pub(super) fn on_probe_silence(&mut self) {
        if self.is_pipe() {
            self.initialize();
        } else {
            let limit = self.config.limits.handshake;
            self.give_up(&Trouble::Silent(method::DISCOVER, limit));
        }
    }

    fn speak_modern(&mut self, message: &Message<'_>) {
        self.agree(Revision::NEWEST_MODERN, message);
        self.open();
    }

    pub(super) fn initialize(&mut self) {
        self.server.speak(Revision::NEWEST_LEGACY);
        let params = alloc::format!(
            r#"{{"protocolVersion":"{}","capabilities":{},"clientInfo":{}}}"#,
            self.config.protocol.offer(),
            self.config.capabilities,
            meta::IDENTITY
        );
        let request = self.server.request(&mut self.wires, method::INITIALIZE, Some(&params), &[]);
        let until = self.now + self.config.limits.handshake;
        self.stage = Stage::Initializing(request, until);
    }

    pub(super) fn on_initialized(&mut self, message: &Message<'_>) {
        let Some(result) = message.result() else {
            let error = message.error().unwrap_or("{}").into();
            return self.give_up(&Trouble::Refused { method: method::INITIALIZE.into(), error });
        };
        let Some(agreed) = get(result, "protocolVersion").and_then(string) else {
            return self.give_up(&Trouble::Malformed(method::INITIALIZE.into()));
        };
        let Some(revision) = Revision::parse_legacy(&agreed) else {
            return self.give_up(&Trouble::NoCommonRevision);
        };
        self.agree(revision, message);
        self.server.notify(&mut self.wires, method::INITIALIZED, None);
        self.open();
    }

    fn agree(&mut self, revision: Revision, message: &Message<'_>) {
        self.server.speak(revision);
        self.revision = Some(revision);
        self.capabilities = capabilities(message);
    }
}

fn capabilities(message: &Message<'_>) -> Option<alloc::string::String> {
    let capabilities = get(message.result()?, "capabilities")?;
    capabilities.starts_with('{').then(|| capabilities.into())
}
