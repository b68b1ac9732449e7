//! The message door: requests that the embedder's own HTTP stack has read.
//!
//! Everything that the endpoint decides is to be had without its HTTP codec. A
//! request is handed in, head and body, under a [`ConnId`] of its own; what comes
//! back are the same [`Action`](crate::driver::Action)s as for a connection:
//!
//! | action | what to do |
//! | --- | --- |
//! | `Flush` | send the [head](Endpoint::take_head), if it is new, and the [outgoing](Endpoint::outgoing) bytes: they are the body, without any framing |
//! | `Finish` | the same; then the response is complete |
//! | `Close` | break the response off |
//! | `Pause`, `Resume` | nothing |
//!
//! After the last of these, and when the client has gone away, say
//! [`closed`](Endpoint::closed). `examples/own_http.rs` is a whole server.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::clients::Client;
use super::endpoint::{Conn, Endpoint, Event};
use super::http::{Http, State};
use crate::driver::{Action, ConnId, ListenerId};
use crate::wire::http1::{RequestHead, Version};

/// The head of a response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The fields, those of the connection and of the framing apart.
    pub fields: Vec<(String, String)>,
    /// The length of the body, if it is known. Event streams have none.
    pub length: Option<u64>,
}

/// What is kept for a request that came by the door.
#[derive(Debug, Default)]
pub(super) struct Door {
    pub(super) head: Option<Box<Head>>,
}

impl Endpoint {
    /// A request, as complete as the embedder's HTTP stack gives it: see
    /// [`RequestHead::from_parts`]. `conn` must be new; `listener` says whose rules
    /// for `Host` and `Origin` hold, `from` who the host is if it is not on this
    /// machine. A body longer than
    /// [`message_bytes`](super::Limits::message_bytes) is the embedder's to refuse, with
    /// 413. Call [`poll_event`](Self::poll_event) afterwards, as after any input.
    pub fn request<'a>(
        &mut self,
        conn: ConnId,
        listener: ListenerId,
        from: Option<IpAddr>,
        head: RequestHead,
        body: Cow<'a, [u8]>,
    ) -> Option<Event<'a>> {
        if self.draining {
            self.output.act(Action::Close(conn));
            return None;
        }
        let from = Client::at(from);
        let full = self.is_full(from);
        let mut http = Http::new(self.now, listener, from, &self.config.limits);
        http.door = Some(Door::default());
        http.state = State::Reading;
        self.output.open(conn);
        self.add(conn, Conn::Http(http));
        self.sweep_by(self.now + self.config.limits.request_time);
        if let Some(full) = full {
            self.turn_away(conn, full);
            return None;
        }
        self.read_head(conn, head);
        let head = self.http(conn)?.head.take()?;
        self.read_request(conn, &head, body)
    }

    /// The head of the response to a request that came by the door, once.
    pub fn take_head(&mut self, conn: ConnId) -> Option<Head> {
        self.http(conn)?.door.as_mut()?.head.take().map(|head| *head)
    }
}

impl Http {
    /// Whether bodies are framed and heads written here.
    pub(super) fn is_framed(&self) -> bool {
        self.door.is_none() && self.version == Version::Http11
    }
}
