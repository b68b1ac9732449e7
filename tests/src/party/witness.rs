//! What the servers are told, checked as it reaches them.

use std::collections::{BTreeMap, BTreeSet};

use mcpx_core::driver::{Action, ConnId, ExitStatus, Input, Machine};
use mcpx_core::protocol::revision::Revision;
use mcpx_core::time::Instant;
use mcpx_core::wire::http1::{self, Part, RequestReader};
use serde_json::Value;

use super::law;
use crate::sim::Program;

/// A server whose mail is read.
pub(super) struct Witness {
    server: Box<dyn Program>,
    http: bool,
    conns: BTreeMap<ConnId, Conn>,
    /// What it speaks, on a pipe; of HTTP, what each session does.
    speaks: Option<Revision>,
    /// The ids of requests that came on the pipe: none comes twice.
    ids: BTreeSet<String>,
}

#[derive(Default)]
struct Conn {
    reader: Option<RequestReader>,
    bytes: Vec<u8>,
    revision: Option<Revision>,
}

impl Witness {
    pub(super) fn on_pipe(server: Box<dyn Program>) -> Self {
        let (conns, ids) = (BTreeMap::new(), BTreeSet::new());
        Self { server, http: false, conns, speaks: None, ids }
    }

    pub(super) fn on_http(server: Box<dyn Program>) -> Self {
        Self { http: true, ..Self::on_pipe(server) }
    }

    fn read(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        let mut heard = Vec::new();
        match &mut state.reader {
            None => {
                state.bytes.extend_from_slice(bytes);
                while let Some(end) = state.bytes.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = state.bytes.drain(..=end).collect();
                    heard.push((line, self.speaks));
                }
            }
            Some(reader) => {
                let mut input = bytes;
                loop {
                    match reader.next(&mut input) {
                        Ok(Some(Part::Head(head))) => {
                            let told = head.fields.get_str("mcp-protocol-version");
                            state.revision = told.and_then(Revision::parse);
                        }
                        Ok(Some(Part::Data(data))) => state.bytes.extend_from_slice(data),
                        Ok(Some(Part::End(_))) => {
                            let body = std::mem::take(&mut state.bytes);
                            // Those that name no revision are 2025-03-26 or older.
                            heard.push((body, state.revision.or(Some(Revision::R2025_03_26))));
                        }
                        Ok(Some(Part::Interim(never))) => match never {},
                        Ok(None) => break,
                        Err(error) => panic!("the gateway sent {error:?}"),
                    }
                }
            }
        }
        for (text, revision) in heard.into_iter().filter(|(text, _)| !text.is_empty()) {
            let message: Value = serde_json::from_slice(&text)
                .unwrap_or_else(|error| panic!("{error}: {}", text.escape_ascii()));
            self.check(&message, revision);
        }
    }

    fn check(&mut self, message: &Value, revision: Option<Revision>) {
        for one in message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice) {
            let params = &one["params"];
            let named = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let said = named.as_str().or_else(|| params["protocolVersion"].as_str());
            let said = said.and_then(Revision::parse);
            // Until something else is said.
            self.speaks = said.or(self.speaks);
            let revision = said.or(revision).or(self.speaks.filter(|_| !self.http));
            if one["method"] == "initialize" {
                self.ids.clear();
            }
            if !self.http && one.get("method").is_some() && one.get("id").is_some() {
                let new = self.ids.insert(one["id"].to_string());
                assert!(new, "a server was sent two requests of one id: {one}");
            }
            law::to_server(revision, one);
        }
    }
}

impl Machine for Witness {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Accepted { conn, .. } => {
                let reader = self.http.then(|| RequestReader::new(http1::Limits::default()));
                self.conns.insert(conn, Conn { reader, ..Conn::default() });
            }
            Input::Received { conn, bytes } => self.read(conn, bytes),
            Input::Closed { conn, .. } => {
                self.conns.remove(&conn);
            }
            _ => {}
        }
        self.server.handle(now, input);
    }

    fn poll(&mut self) -> Option<Action> {
        let action = self.server.poll();
        if let Some(Action::Close(conn)) = &action {
            self.conns.remove(conn);
        }
        action
    }

    fn deadline(&self) -> Option<Instant> {
        self.server.deadline()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.server.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.server.sent(now, conn, n);
    }
}

impl Program for Witness {
    fn status(&self) -> ExitStatus {
        self.server.status()
    }
}
