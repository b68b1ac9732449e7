//! A POST: what is in it, and whom it belongs to.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::admit::{self, Admitted};
use super::asking::Unasked;
use super::endpoint::{Endpoint, Event};
use super::exchange::{Carried, Carrier, Sender, Way};
use super::gate::wish;
use super::http::no_session;
use super::token::Ticket;
use crate::driver::ConnId;
use crate::jsonrpc::{Batch, Incoming, Kind, Message, code};
use crate::protocol::fault::Fault;
use crate::protocol::meta;
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};
use crate::wire::http1::RequestHead;

impl Endpoint {
    pub(super) fn read_post<'a>(
        &mut self,
        conn: ConnId,
        head: &RequestHead,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        let message = match Message::parse(body, &admit::JSON) {
            Ok(Incoming::Message(message)) => message,
            Ok(Incoming::Batch(batch)) => {
                if let Err((status, fault)) = self.read_batch_post(conn, head, &batch) {
                    self.refuse(conn, status, &fault, None);
                }
                return None;
            }
            Err(rejected) => {
                let fault = Fault { code: rejected.code, object: admit::rejection(&rejected) };
                self.refuse(conn, 400, &fault, rejected.id.as_deref());
                return None;
            }
        };
        let admitted = match admit::on_http(&message, head) {
            Ok(admitted) => admitted,
            Err(fault) => {
                let claimed = meta::claim(message.params()).is_some();
                let era = if claimed { Era::Modern } else { Era::Legacy };
                self.refuse(conn, admit::refusal_status(era, &fault), &fault, message.id());
                return None;
            }
        };
        let way = way(conn, head);
        match admitted {
            Admitted::Ignored => {
                self.write_empty(conn, 202);
                None
            }
            Admitted::Modern => {
                let fields = param_fields(head);
                match self.begin(Sender::modern(None), Carried::Alone(way), message)? {
                    Event::Request(mut request) => {
                        request.fields = Some(fields);
                        Some(Event::Request(request))
                    }
                    other => Some(other),
                }
            }
            Admitted::Legacy | Admitted::Notice | Admitted::Answer => {
                self.read_in_session(way, head, message)
            }
        }
    }

    fn read_in_session<'a>(
        &mut self,
        way: Way,
        head: &RequestHead,
        message: Message<'a>,
    ) -> Option<Event<'a>> {
        let conn = way.conn;
        let token = session_token(head);
        if message.kind() == Kind::Request && message.method() == method::INITIALIZE {
            let peer = match self.add_session_peer(conn) {
                Ok(peer) => peer,
                Err(full) => {
                    let (status, why) = full.refusal("sessions");
                    let fault = Fault::new(code::INTERNAL_ERROR, &why);
                    self.refuse(conn, status, &fault, message.id());
                    return None;
                }
            };
            let sender = Sender::session(peer, admit::wanted(&message));
            return self.begin(sender, Carried::Alone(way), message);
        }
        let Some(token) = token else { return self.read_stateless(way, head, message) };
        let Some(Ticket { peer, revision, .. }) = self.session(conn, token) else {
            // Never the id of an answer: it is not a request of theirs.
            let id = message.id().filter(|_| message.kind() == Kind::Request);
            self.refuse(conn, 404, &no_session(), id);
            return None;
        };
        match message.kind() {
            Kind::Request => {
                self.begin(Sender::session(peer, revision), Carried::Alone(way), message)
            }
            Kind::Notification => {
                self.write_empty(conn, 202);
                self.notice(peer, message)
            }
            Kind::Response | Kind::Error => match self.answered(peer, message) {
                Ok(event) => {
                    self.write_empty(conn, 202);
                    Some(event)
                }
                Err(Unasked::Late) => {
                    self.write_empty(conn, 202);
                    None
                }
                Err(Unasked::Unknown) => {
                    let why = "Nothing was asked with the id of this answer";
                    self.refuse(conn, 400, &Fault::new(code::INVALID_REQUEST, why), None);
                    None
                }
            },
        }
    }

    /// A legacy message of no session: a request is served by itself, without
    /// capabilities of the host.
    fn read_stateless<'a>(
        &mut self,
        way: Way,
        head: &RequestHead,
        message: Message<'a>,
    ) -> Option<Event<'a>> {
        let conn = way.conn;
        let needed = match message.kind() {
            _ if self.config.strict => true,
            Kind::Notification => false,
            Kind::Request => method::needs_session(message.method()),
            Kind::Response | Kind::Error => true,
        };
        if needed {
            let why = "Mcp-Session-Id is missing: send initialize first";
            // Never the id of an answer: it is not a request of theirs.
            let id = message.id().filter(|_| message.kind() == Kind::Request);
            self.refuse(conn, 400, &Fault::new(code::INVALID_REQUEST, why), id);
            return None;
        }
        if message.kind() == Kind::Notification {
            self.write_empty(conn, 202);
            return None;
        }
        let sender = Sender::stateless(admit::header(head).ok()?.unwrap_or(Revision::UNNAMED));
        self.begin(sender, Carried::Alone(way), message)
    }

    /// An array: for hosts of 2025-03-26 (BAT-01, BAT-06).
    fn read_batch_post(
        &mut self,
        conn: ConnId,
        head: &RequestHead,
        batch: &Batch<'_>,
    ) -> Result<(), (u16, Fault)> {
        let refused = |fault| (400, fault);
        let named = admit::header(head).map_err(refused)?;
        let sender = match session_token(head) {
            Some(token) => {
                let session = self.session(conn, token).ok_or_else(|| (404, no_session()))?;
                Sender::session(session.peer, session.revision)
            }
            None => Sender::stateless(named.unwrap_or(Revision::UNNAMED)),
        };
        let strict = self.config.strict && sender.peer.is_none();
        if strict || sender.revision != Revision::R2025_03_26 {
            return Err(refused(Fault::new(code::INVALID_REQUEST, admit::NO_BATCH)));
        }
        if !self.read_batch(way(conn, head), sender, batch).map_err(refused)? {
            self.write_empty(conn, 202);
        }
        Ok(())
    }
}

fn way(conn: ConnId, head: &RequestHead) -> Way {
    let (sse, json) = (wish(head, "text/event-stream"), wish(head, "application/json"));
    let prefers_sse = json < sse;
    Way::new(conn, Carrier::Http { sse: sse.is_some(), prefers_sse, streaming: false })
}

fn session_token(head: &RequestHead) -> Option<&str> {
    head.fields.get_str("mcp-session-id").map(str::trim)
}

/// The `Mcp-Param-*` fields of a request.
fn param_fields(head: &RequestHead) -> Vec<(String, String)> {
    head.fields
        .iter()
        .filter(|(name, _)| {
            name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("mcp-param-"))
        })
        .filter_map(|(name, value)| {
            Some((String::from(name), String::from(core::str::from_utf8(value).ok()?)))
        })
        .collect()
}
