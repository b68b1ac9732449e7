//! Requests that run, their answers, and what is sent to hosts besides.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::endpoint::{Endpoint, Event, Request};
use super::peer::{PeerId, Place};
use crate::driver::ConnId;
use crate::jsonrpc::{Envelope, Message, code, get, string};
use crate::protocol::fault::{self, Fault};
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};

/// Names a request of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ExchangeId(u64);

/// Names a request of ours to a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct AskId(u64);

/// How a request ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// The raw JSON result.
    Result(&'a str),
    /// The raw JSON error object.
    Error(&'a str),
}

impl<'a> Outcome<'a> {
    /// The response that tells it.
    pub(crate) fn envelope(self, id: &'a str) -> Envelope<'a> {
        match self {
            Self::Result(result) => Envelope::Result { id, result },
            Self::Error(error) => Envelope::Error { id: Some(id), error },
        }
    }
}

/// The way of a message to a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// With a running request: on its stream, or its pipe. If its stream cannot
    /// carry it and it belongs to a session, by the session.
    Exchange(ExchangeId),
    /// By the session: its newest GET stream (kept, within limits, until there
    /// is one), or the pipe.
    Peer(PeerId),
}

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) conn: ConnId,
    pub(super) id: Box<str>,
    pub(super) era: Era,
    /// The session that it belongs to.
    pub(super) peer: Option<PeerId>,
    /// Whose table of running requests has it.
    holder: Option<PeerId>,
    pub(super) carrier: Carrier,
    /// The stream of the session that carries it.
    stream: Option<u64>,
    initialize: bool,
}

/// What carries the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carrier {
    Pipe,
    Http {
        /// Whether the host takes event streams.
        sse: bool,
        /// Whether it would rather have one than JSON.
        prefers_sse: bool,
        /// Whether one has begun.
        streaming: bool,
    },
    /// The connection is gone and nobody hears the answer.
    Gone,
}

impl Carrier {
    /// Nothing but JSON.
    const PLAIN: Self = Self::Http { sse: false, prefers_sse: false, streaming: false };
    /// An event stream that has begun.
    pub(super) const STREAM: Self = Self::Http { sse: true, prefers_sse: true, streaming: true };
}

/// What became of a message that was to travel with a request.
enum Delivery {
    /// It was sent, or there is no way.
    Done(bool),
    /// The session has to carry it.
    BySession(PeerId),
}

/// What became of an answer to a question of ours.
#[derive(Debug)]
pub(super) enum Unasked {
    /// The question is settled already.
    Late,
    /// There was no such question.
    Unknown,
}

impl Endpoint {
    /// Registers a request and reports it, or answers it at once.
    pub(super) fn begin<'a>(
        &mut self,
        conn: ConnId,
        peer: Option<PeerId>,
        holder: Option<PeerId>,
        carrier: Carrier,
        message: Message<'a>,
    ) -> Option<Event<'a>> {
        let era = if peer.is_some() { Era::Legacy } else { Era::Modern };
        let id: Box<str> = message.id().unwrap_or("null").into();
        let initialize = message.method() == method::INITIALIZE;
        // The head of its response carries the session id: no stream before that.
        let carrier = match carrier {
            Carrier::Http { .. } if initialize => Carrier::PLAIN,
            other => other,
        };
        let exchange = ExchangeId(self.number());
        if let Some(state) = holder.and_then(|holder| self.peers.get_mut(&holder)) {
            let fault = if state.in_flight.contains_key(&id) {
                "A request with this id is still running"
            } else if state.in_flight.len() >= self.config.limits.in_flight {
                "Too many requests are running: wait for answers"
            } else {
                ""
            };
            if !fault.is_empty() {
                let fault = Fault::new(code::INVALID_REQUEST, fault);
                self.answer(conn, carrier, era, &id, Outcome::Error(&fault.object), None);
                return None;
            }
            state.in_flight.insert(id.clone(), exchange);
            if initialize {
                state.opening = Some(exchange);
            }
        }
        let state = Exchange { conn, id, era, peer, holder, carrier, stream: None, initialize };
        self.exchanges.insert(exchange, state);
        if carrier != Carrier::Pipe {
            self.occupy(conn, exchange);
        }
        if era == Era::Legacy && message.method() == method::PING {
            self.respond(exchange, Outcome::Result("{}"));
            return None;
        }
        Some(Event::Request(Request { exchange, era, peer, message, fields: None }))
    }

    /// Ends a request. Nothing happens if nobody waits for it any more.
    ///
    /// The result of `initialize` opens the session: it must hold the agreed
    /// `protocolVersion`; an error ends it before it began.
    pub fn respond(&mut self, exchange: ExchangeId, outcome: Outcome<'_>) {
        if let Outcome::Result(_) = outcome {
            self.prefer_stream(exchange);
        }
        let Some(state) = self.release(exchange) else { return };
        let mut token = None;
        if let (true, Some(peer)) = (state.initialize, state.peer) {
            match outcome {
                // Nobody would ever know its id.
                Outcome::Result(_) if state.carrier == Carrier::Gone => self.end_peer(peer),
                Outcome::Result(result) => {
                    let agreed = get(result, "protocolVersion").and_then(string);
                    let revision = agreed.as_deref().and_then(Revision::parse_legacy);
                    token = self.open_session(peer, revision.unwrap_or(Revision::NEWEST_LEGACY));
                }
                Outcome::Error(_) => self.abort_opening(peer),
            }
        }
        if let (Some(peer), Some(stream)) = (state.peer, state.stream) {
            self.write_on(peer, stream, |out| outcome.envelope(&state.id).write_line(out));
            self.close_stream(peer, stream);
            return;
        }
        self.answer(state.conn, state.carrier, state.era, &state.id, outcome, token.as_deref());
        if let (Carrier::Pipe, Some(holder)) = (state.carrier, state.holder) {
            if state.initialize {
                self.freed.push_back(state.conn);
            }
            self.leave_if_silent(state.conn, holder);
        }
    }

    /// Begins a stream for a result if the host would rather have one. Errors
    /// keep their own status.
    fn prefer_stream(&mut self, exchange: ExchangeId) {
        let state = self.exchanges.get(&exchange);
        if state.is_some_and(|it| matches!(it.carrier, Carrier::Http { prefers_sse: true, .. })) {
            self.stream_of(exchange);
        }
    }

    /// `initialize` has failed. A session over HTTP never was; a pipe may try
    /// again.
    fn abort_opening(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        state.opening = None;
        if matches!(state.place, Place::Session(_)) {
            self.end_peer(peer);
        }
    }

    /// Writes an answer where the carrier wants it.
    pub(super) fn answer(
        &mut self,
        conn: ConnId,
        carrier: Carrier,
        era: Era,
        id: &str,
        outcome: Outcome<'_>,
        session: Option<&str>,
    ) {
        let envelope = outcome.envelope(id);
        match carrier {
            Carrier::Pipe => self.output.write(conn, |tail| envelope.write_line(tail)),
            Carrier::Http { streaming: true, .. } => {
                self.write_event(conn, &envelope);
                self.end_stream(conn);
            }
            Carrier::Http { streaming: false, .. } => {
                let status = match outcome {
                    Outcome::Result(_) => 200,
                    Outcome::Error(error) => fault::status(era, error_code(error)),
                };
                self.write_json(conn, status, &envelope, session);
            }
            Carrier::Gone => {}
        }
    }

    /// Sends a notification. Says whether it could be sent, or kept.
    pub fn notify(&mut self, route: Route, method: &str, params: Option<&str>) -> bool {
        self.deliver(route, &Envelope::Notification { method, params })
    }

    /// Sends a request to a host of a legacy revision. Answered by
    /// [`Event::Answer`], or never. `None` if it has no way to the host.
    pub fn ask(&mut self, route: Route, method: &str, params: Option<&str>) -> Option<AskId> {
        let peer = match route {
            Route::Peer(peer) => peer,
            Route::Exchange(exchange) => self.exchanges.get(&exchange)?.peer?,
        };
        if self.peers.get(&peer)?.asks.len() >= self.config.limits.in_flight {
            return None;
        }
        let ask = AskId(self.number());
        let id = ask_id(ask);
        if !self.deliver(route, &Envelope::Request { id: &id, method, params }) {
            return None;
        }
        self.asks.insert(ask, peer);
        self.peers.get_mut(&peer)?.asks.insert(ask);
        Some(ask)
    }

    /// Withdraws a question: its answer will be dropped, and the host is told
    /// with `notifications/cancelled`.
    pub fn withdraw(&mut self, ask: AskId, reason: Option<&str>) {
        let Some(peer) = self.asks.remove(&ask) else { return };
        if let Some(state) = self.peers.get_mut(&peer) {
            state.asks.remove(&ask);
        }
        let mut params = String::from(r#"{"requestId":"#);
        params.push_str(&ask_id(ask));
        if let Some(reason) = reason {
            params.push_str(r#","reason":"#);
            params.push_str(reason);
        }
        params.push('}');
        self.notify(Route::Peer(peer), method::CANCELLED, Some(&params));
    }

    fn deliver(&mut self, route: Route, envelope: &Envelope<'_>) -> bool {
        let peer = match route {
            Route::Peer(peer) => peer,
            Route::Exchange(exchange) => match self.deliver_with(exchange, envelope) {
                Delivery::Done(done) => return done,
                Delivery::BySession(peer) => peer,
            },
        };
        let Some(state) = self.peers.get(&peer) else { return false };
        match &state.place {
            Place::Pipe(conn) => {
                let conn = *conn;
                if !self.stands(conn) {
                    return false;
                }
                self.output.write(conn, |tail| envelope.write_line(tail));
            }
            Place::Session(session) => match session.primary().map(|s| (s.number(), s.conn)) {
                Some((stream, conn)) => {
                    if conn.is_some_and(|conn| !self.stands(conn)) {
                        return false;
                    }
                    self.write_on(peer, stream, |out| envelope.write_line(out));
                }
                None => {
                    let mut line = Vec::with_capacity(envelope.len() + 1);
                    envelope.write_line(&mut line);
                    self.keep_for_later(peer, line);
                }
            },
        }
        true
    }

    /// Sends a message with a running request, if what carries it can.
    fn deliver_with(&mut self, exchange: ExchangeId, envelope: &Envelope<'_>) -> Delivery {
        let Some(state) = self.exchanges.get(&exchange) else { return Delivery::Done(false) };
        let (conn, peer, carrier, stream) = (state.conn, state.peer, state.carrier, state.stream);
        if carrier != Carrier::Gone && !self.stands(conn) {
            return Delivery::Done(false);
        }
        match (carrier, peer, stream) {
            (Carrier::Pipe, ..) => self.output.write(conn, |tail| envelope.write_line(tail)),
            (_, Some(peer), Some(stream)) => {
                self.write_on(peer, stream, |out| envelope.write_line(out));
            }
            (Carrier::Http { sse: true, .. }, ..) => {
                match self.stream_of(exchange) {
                    Some((peer, stream)) => {
                        self.write_on(peer, stream, |out| envelope.write_line(out));
                    }
                    None => self.write_event(conn, envelope),
                };
            }
            (Carrier::Http { sse: false, .. } | Carrier::Gone, Some(peer), None) => {
                return Delivery::BySession(peer);
            }
            (Carrier::Http { sse: false, .. } | Carrier::Gone, None, _) => {
                return Delivery::Done(false);
            }
        }
        Delivery::Done(true)
    }

    /// Makes the response to a request an event stream, if it is none yet. Gives
    /// the session and the number of the stream if it belongs to one.
    pub(super) fn stream_of(&mut self, exchange: ExchangeId) -> Option<(PeerId, u64)> {
        let state = self.exchanges.get_mut(&exchange)?;
        let (conn, peer) = (state.conn, state.peer);
        if let Some(stream) = state.stream {
            return Some((peer?, stream));
        }
        let Carrier::Http { streaming, .. } = &mut state.carrier else { return None };
        if core::mem::replace(streaming, true) {
            return None;
        }
        let Some(peer) = peer else {
            self.begin_stream(conn);
            return None;
        };
        let stream = self.open_stream(conn, peer, Some(exchange))?;
        self.exchanges.get_mut(&exchange)?.stream = Some(stream);
        Some((peer, stream))
    }

    /// Gives a connection up that does not read what cannot be held back.
    /// Says whether it still stands.
    fn stands(&mut self, conn: ConnId) -> bool {
        let stands = self.output.queued(conn) <= self.config.limits.outgoing_hard;
        if !stands {
            self.close(conn);
        }
        stands
    }

    /// An answer from a host.
    pub(super) fn answered<'a>(
        &mut self,
        peer: PeerId,
        message: Message<'a>,
    ) -> Result<Event<'a>, Unasked> {
        let ask = message
            .id()
            .and_then(|id| id.strip_prefix("\"mcpx-")?.strip_suffix('"')?.parse().ok().map(AskId));
        let ask = ask.ok_or(Unasked::Unknown)?;
        if self.asks.get(&ask) != Some(&peer) {
            return Err(if ask.0 < self.number() { Unasked::Late } else { Unasked::Unknown });
        }
        self.asks.remove(&ask);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.asks.remove(&ask);
        }
        Ok(Event::Answer { ask, message })
    }

    /// A notification from a host.
    pub(super) fn notice<'a>(&mut self, peer: PeerId, message: Message<'a>) -> Option<Event<'a>> {
        if message.method() != method::CANCELLED {
            return Some(Event::Notification { peer, message });
        }
        // Malformed, unknown and finished ones are ignored (CAN-02).
        let params = message.params()?;
        let id = get(params, "requestId")?;
        let exchange = *self.peers.get(&peer)?.in_flight.get(id)?;
        if self.exchanges.get(&exchange)?.initialize {
            return None;
        }
        let state = self.release(exchange)?;
        self.end_carrier(&state);
        if let Carrier::Pipe = state.carrier {
            self.leave_if_silent(state.conn, peer);
        }
        let reason = get(params, "reason").map(ToString::to_string);
        Some(Event::Cancelled { exchange, reason })
    }

    /// Takes a request out of all tables.
    fn release(&mut self, exchange: ExchangeId) -> Option<Exchange> {
        let state = self.exchanges.remove(&exchange)?;
        if let Some(holder) = state.holder.and_then(|holder| self.peers.get_mut(&holder)) {
            holder.in_flight.remove(&state.id);
        }
        Some(state)
    }

    /// Forgets a request whose session has ended.
    pub(super) fn drop_exchange(&mut self, exchange: ExchangeId) {
        if let Some(state) = self.release(exchange) {
            self.end_carrier(&state);
        }
    }

    /// Ends the response to a request that will not be answered.
    fn end_carrier(&mut self, state: &Exchange) {
        match (state.carrier, state.peer, state.stream) {
            (_, Some(peer), Some(stream)) => self.close_stream(peer, stream),
            (Carrier::Http { sse, streaming, .. }, ..) => {
                self.end_without_answer(state.conn, sse, streaming);
            }
            (Carrier::Pipe | Carrier::Gone, ..) => {}
        }
    }

    /// The connection of a request is gone. A modern request ends with it; a
    /// legacy one runs on (CAN-05, CAN-06).
    pub(super) fn carrier_lost(&mut self, exchange: ExchangeId) {
        let Some(state) = self.exchanges.get_mut(&exchange) else { return };
        state.carrier = Carrier::Gone;
        let (era, conn, peer) = (state.era, state.conn, state.peer);
        if let Some(peer) = peer {
            self.stream_lost(peer, conn);
        }
        if era == Era::Modern {
            self.release(exchange);
            self.events.push_back(Event::Cancelled { exchange, reason: None });
        }
    }

    /// The requests of a session that run and may carry messages, newest first.
    pub fn running_in(&self, peer: PeerId) -> impl Iterator<Item = ExchangeId> {
        let state = self.peers.get(&peer);
        let mut running: Vec<ExchangeId> = state
            .into_iter()
            .flat_map(|state| state.in_flight.values())
            .filter(|exchange| {
                self.exchanges.get(exchange).is_some_and(|state| {
                    matches!(state.carrier, Carrier::Pipe | Carrier::Http { sse: true, .. })
                        || state.stream.is_some()
                })
            })
            .copied()
            .collect();
        running.sort_unstable_by(|a, b| b.cmp(a));
        running.into_iter()
    }

    /// Whether a session over HTTP has a stream open for messages that belong to
    /// no request. A pipe always has.
    pub fn has_stream(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_some_and(|state| match &state.place {
            Place::Pipe(_) => true,
            Place::Session(session) => session.primary().is_some(),
        })
    }

    /// The raw id that the host gave to a request.
    pub fn id_of(&self, exchange: ExchangeId) -> Option<&str> {
        self.exchanges.get(&exchange).map(|state| &*state.id)
    }
}

fn ask_id(ask: AskId) -> String {
    alloc::format!("\"mcpx-{}\"", ask.0)
}

fn error_code(error: &str) -> i32 {
    get(error, "code").and_then(|raw| raw.parse().ok()).unwrap_or_default()
}
