//! Responses on HTTP connections: whole ones, and event streams.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use smallvec::SmallVec;

use super::door::Head;
use super::endpoint::{Conn, Endpoint};
use crate::driver::ConnId;
use crate::jsonrpc::Envelope;
use crate::protocol::fault::Fault;
use crate::wire::http1::Version;
use crate::wire::http1::write::{self, BodyLen};

const EVENT: &[u8] = b"event: message\ndata: ";

/// What pages of other origins may see of our responses.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After";

impl Endpoint {
    pub(super) fn begin_stream(&mut self, conn: ConnId) {
        let Some(http) = self.http(conn) else { return };
        let length = match http.version {
            Version::Http11 => BodyLen::Chunked,
            Version::Http10 => {
                http.keep_alive = false;
                BodyLen::Close
            }
        };
        let fields = [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
            ("X-Accel-Buffering", "no"),
        ];
        self.write_head(conn, 200, &fields, length);
    }

    pub(super) fn write_event(&mut self, conn: ConnId, envelope: &Envelope<'_>) {
        self.write_event_with(conn, |event| envelope.write_line(event));
    }

    /// Writes a message that is written as a line as an event.
    pub(super) fn write_event_with(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        self.write_raw(conn, |event| {
            event.extend_from_slice(EVENT);
            write(event);
        });
    }

    /// Writes an event, complete but for its last line end.
    pub(super) fn write_raw(&mut self, conn: ConnId, write: impl FnOnce(&mut Vec<u8>)) {
        let mut event = core::mem::take(&mut self.scratch);
        event.clear();
        write(&mut event);
        self.write_scratch(conn, event);
    }

    pub(super) fn write_comment(&mut self, conn: ConnId) {
        self.write_raw(conn, |event| event.extend_from_slice(b":\n"));
    }

    /// Sends an event, complete but for its last line end, as one chunk.
    fn write_scratch(&mut self, conn: ConnId, mut event: Vec<u8>) {
        event.push(b'\n');
        let now = self.now;
        if let Some(http) = self.http(conn) {
            http.since = now;
            let chunked = http.is_framed();
            self.output.write(conn, |tail| {
                if chunked {
                    write::chunk(tail, &[&event]);
                } else {
                    tail.extend_from_slice(&event);
                }
            });
        }
        event.shrink_to(64 << 10);
        self.scratch = event;
    }

    pub(super) fn end_stream(&mut self, conn: ConnId) {
        let Some(http) = self.http(conn) else { return };
        if http.is_framed() {
            self.output.write(conn, write::last_chunk);
        }
        self.free(conn);
    }

    /// Ends the response to a request that will not be answered.
    pub(super) fn end_without_answer(&mut self, conn: ConnId, sse: bool, streaming: bool) {
        if streaming {
            self.end_stream(conn);
        } else if sse {
            self.begin_stream(conn);
            self.end_stream(conn);
        } else {
            self.write_empty(conn, 202);
        }
    }

    pub(super) fn write_json(
        &mut self,
        conn: ConnId,
        status: u16,
        envelope: &Envelope<'_>,
        session: Option<&str>,
    ) {
        self.write_body(conn, status, session, envelope.len() as u64, |tail| envelope.write(tail));
    }

    /// Writes a response whose body is JSON of `length` bytes.
    pub(super) fn write_body(
        &mut self,
        conn: ConnId,
        status: u16,
        session: Option<&str>,
        length: u64,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut fields: SmallVec<[(&str, &str); 4]> = SmallVec::new();
        fields.push(("Content-Type", "application/json"));
        if let Some(session) = session {
            fields.push(("Mcp-Session-Id", session));
        }
        match status {
            401 => fields.push(("WWW-Authenticate", "Bearer")),
            405 => fields.push(("Allow", "POST, GET, DELETE")),
            429 | 503 => fields.push(("Retry-After", "5")),
            _ => {}
        }
        if self.write_head(conn, status, &fields, BodyLen::Length(length)) {
            self.output.write(conn, body);
            self.free(conn);
        }
    }

    pub(super) fn refuse(&mut self, conn: ConnId, status: u16, fault: &Fault, id: Option<&str>) {
        self.write_json(conn, status, &Envelope::Error { id, error: &fault.object }, None);
    }

    pub(super) fn write_empty(&mut self, conn: ConnId, status: u16) {
        let length = if status == 204 { BodyLen::None } else { BodyLen::Length(0) };
        if self.write_head(conn, status, &[], length) {
            self.free(conn);
        }
    }

    /// The answer to a browser that asks what a page of another origin may do
    /// (WHATWG Fetch, "CORS-preflight fetch").
    pub(super) fn write_preflight(&mut self, conn: ConnId, fields: &str) {
        let fields = [
            ("Access-Control-Allow-Methods", "GET, POST, DELETE"),
            ("Access-Control-Allow-Headers", fields),
            ("Access-Control-Max-Age", "600"),
        ];
        if self.write_head(conn, 204, &fields, BodyLen::None) {
            self.free(conn);
        }
    }

    /// Writes a head whose fields are all ours: none of them can be refused.
    /// `false` if the connection is none for HTTP any more.
    fn write_head(
        &mut self,
        conn: ConnId,
        status: u16,
        fields: &[(&str, &str)],
        length: BodyLen,
    ) -> bool {
        let Some(Conn::Http(http)) = self.conns.get_mut(&conn) else { return false };
        let mut all: SmallVec<[(&str, &str); 8]> = SmallVec::from_slice(fields);
        if let Some(origin) = &http.origin {
            all.push(("Access-Control-Allow-Origin", origin));
            all.push(("Vary", "Origin"));
            all.push(("Access-Control-Expose-Headers", EXPOSED));
        }
        if let Some(door) = &mut http.door {
            let fields =
                all.iter().map(|(name, value)| (String::from(*name), String::from(*value)));
            let length = match length {
                BodyLen::Length(length) => Some(length),
                BodyLen::None => Some(0),
                BodyLen::Chunked | BodyLen::Close => None,
            };
            door.head = Some(Box::new(Head { status, fields: fields.collect(), length }));
            return true;
        }
        if !http.keep_alive {
            all.push(("Connection", "close"));
        }
        self.output.write(conn, |tail| {
            let written = write::response_head(tail, status, &all, length);
            debug_assert!(written.is_ok());
        });
        true
    }
}
