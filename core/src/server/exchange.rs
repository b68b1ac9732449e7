//! Requests that run, their answers, and the way of what is sent to hosts.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::batch::BatchId;
use super::endpoint::{Endpoint, Event, Request};
use super::peer::{PeerId, Place};
use crate::driver::ConnId;
use crate::jsonrpc::{Envelope, Message, code, get, string};
use crate::protocol::completion;
use crate::protocol::fault::{self, Fault};
use crate::protocol::host_capabilities::HostCapabilities;
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};

/// Names a request of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ExchangeId(u64);

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
    pub(super) id: Box<str>,
    pub(super) sender: Sender,
    pub(super) carried: Carried,
    initialize: bool,
    /// Its result completes an argument.
    completes: bool,
    /// It runs until one of both sides has enough of it.
    pub(super) endless: bool,
}

/// Who sends a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sender {
    /// How it speaks.
    pub(super) revision: Revision,
    /// The session that the request belongs to.
    pub(super) peer: Option<PeerId>,
    /// Whose table of running requests has it.
    pub(super) holder: Option<PeerId>,
}

impl Sender {
    /// A request that stands alone, perhaps on a pipe.
    pub(super) fn modern(holder: Option<PeerId>) -> Self {
        Self { revision: Revision::NEWEST_MODERN, peer: None, holder }
    }

    /// A legacy request without a session.
    pub(super) fn stateless(revision: Revision) -> Self {
        Self { revision, peer: None, holder: None }
    }

    /// A request of a session.
    pub(super) fn session(peer: PeerId, revision: Revision) -> Self {
        Self { revision, peer: Some(peer), holder: Some(peer) }
    }
}

/// How the answer to a request reaches its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carried {
    /// By itself.
    Alone(Way),
    /// With those to the other requests of its batch.
    InBatch(BatchId),
}

/// Where answers, and what goes with them, are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    pub(super) conn: ConnId,
    pub(super) carrier: Carrier,
    /// The stream of the session that carries them.
    pub(super) stream: Option<u64>,
}

impl Exchange {
    /// What has the way of its answer.
    pub(super) fn work(&self, exchange: ExchangeId) -> Work {
        match self.carried {
            Carried::Alone(_) => Work::Request(exchange),
            Carried::InBatch(batch) => Work::Batch(batch),
        }
    }
}

impl Way {
    pub(super) fn new(conn: ConnId, carrier: Carrier) -> Self {
        Self { conn, carrier, stream: None }
    }
}

/// What a connection works on, or a stream answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Request(ExchangeId),
    Batch(BatchId),
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

impl Endpoint {
    /// Registers a request and reports it, or answers it at once.
    pub(super) fn begin<'a>(
        &mut self,
        sender: Sender,
        carried: Carried,
        message: Message<'a>,
    ) -> Option<Event<'a>> {
        let era = sender.revision.era();
        let id: Box<str> = message.id().unwrap_or("null").into();
        let initialize = message.method() == method::INITIALIZE;
        let endless = message.method() == method::LISTEN;
        let carried = match carried {
            // The head of its response carries the session id: no stream before that.
            Carried::Alone(Way { conn, carrier: Carrier::Http { .. }, .. }) if initialize => {
                Carried::Alone(Way::new(conn, Carrier::PLAIN))
            }
            other => other,
        };
        let exchange = ExchangeId(self.number());
        if self.exchanges.len() >= self.config.limits.requests {
            let fault =
                Fault::new(code::INTERNAL_ERROR, "Too many requests are running: try again");
            self.turn_down(carried, era, &id, 503, &fault);
            return None;
        }
        if let Some(state) = sender.holder.and_then(|holder| self.peers.get_mut(&holder)) {
            let (status, why) = if state.in_flight.contains_key(&id) {
                (
                    fault::status(era, code::INVALID_REQUEST),
                    "A request with this id is still running",
                )
            } else if state.in_flight.len() >= self.config.limits.in_flight {
                (429, "Too many requests are running: wait for answers")
            } else {
                (0, "")
            };
            if !why.is_empty() {
                let fault = Fault::new(code::INVALID_REQUEST, why);
                self.turn_down(carried, era, &id, status, &fault);
                return None;
            }
            state.in_flight.insert(id.clone(), exchange);
            if initialize {
                state.opening = Some(exchange);
                let declared = message.params().and_then(|params| get(params, "capabilities"));
                state.capabilities =
                    HostCapabilities::of(sender.revision, declared.unwrap_or_default());
            }
        }
        let completes = message.method() == method::COMPLETE;
        let state = Exchange { id, sender, carried, initialize, completes, endless };
        self.exchanges.insert(exchange, state);
        match carried {
            Carried::Alone(way) if way.carrier != Carrier::Pipe => {
                self.occupy(way.conn, Work::Request(exchange));
            }
            Carried::Alone(_) => {}
            Carried::InBatch(batch) => {
                if let Some(batch) = self.batches.get_mut(&batch) {
                    batch.running.insert(exchange);
                }
            }
        }
        if let Some(peer) = sender.peer
            && !initialize
            && message.method() != method::PING
        {
            self.make_ready(peer);
        }
        if era == Era::Legacy && message.method() == method::PING {
            self.respond(exchange, Outcome::Result("{}"));
            return None;
        }
        let Sender { revision, peer, .. } = sender;
        Some(Event::Request(Request { exchange, revision, peer, message, fields: None }))
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
        let whole;
        let outcome = match outcome {
            Outcome::Result(result) if state.completes => {
                whole = completion::at_most(result);
                Outcome::Result(&whole)
            }
            other => other,
        };
        let way = match state.carried {
            Carried::Alone(way) => way,
            Carried::InBatch(batch) => {
                self.answer_in_batch(batch, &outcome.envelope(&state.id));
                self.leave_batch(batch, exchange);
                return;
            }
        };
        let mut token = None;
        if let (true, Some(peer)) = (state.initialize, state.sender.peer) {
            match outcome {
                // Nobody would ever know its id.
                Outcome::Result(_) if way.carrier == Carrier::Gone => self.end_peer(peer),
                Outcome::Result(result) => {
                    let agreed = get(result, "protocolVersion").and_then(string);
                    let revision = agreed.as_deref().and_then(Revision::parse_legacy);
                    token = self.open_session(peer, revision.unwrap_or(Revision::NEWEST_LEGACY));
                }
                Outcome::Error(_) => self.abort_opening(peer),
            }
        }
        if let (Some(peer), Some(stream)) = (state.sender.peer, way.stream) {
            self.write_on(peer, stream, |out| outcome.envelope(&state.id).write_line(out));
            self.close_stream(peer, stream);
            return;
        }
        let era = state.sender.revision.era();
        self.answer(way, era, &state.id, outcome, token.as_deref());
        if let (Carrier::Pipe, Some(holder)) = (way.carrier, state.sender.holder) {
            if state.initialize {
                self.freed.push_back(way.conn);
            }
            self.leave_if_silent(way.conn, holder);
        }
    }

    /// Refuses a request before it has begun.
    fn turn_down(&mut self, carried: Carried, era: Era, id: &str, status: u16, fault: &Fault) {
        let outcome = Outcome::Error(&fault.object);
        match carried {
            Carried::Alone(Way {
                conn, carrier: Carrier::Http { streaming: false, .. }, ..
            }) => {
                self.refuse(conn, status, fault, Some(id));
            }
            Carried::Alone(way) => self.answer(way, era, id, outcome, None),
            Carried::InBatch(batch) => self.answer_in_batch(batch, &outcome.envelope(id)),
        }
    }

    /// Begins a stream for a result if the host would rather have one. Errors
    /// keep their own status.
    fn prefer_stream(&mut self, exchange: ExchangeId) {
        let work = Work::Request(exchange);
        if matches!(
            self.way(work),
            Some(Way { carrier: Carrier::Http { prefers_sse: true, .. }, .. })
        ) {
            self.stream_of(work);
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
        way: Way,
        era: Era,
        id: &str,
        outcome: Outcome<'_>,
        session: Option<&str>,
    ) {
        let conn = way.conn;
        let envelope = outcome.envelope(id);
        match way.carrier {
            Carrier::Pipe => self.write_pipe(conn, &envelope),
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

    pub(super) fn deliver(&mut self, route: Route, envelope: &Envelope<'_>) -> bool {
        let peer = match route {
            Route::Peer(peer) => peer,
            Route::Exchange(exchange) => match self.deliver_with(exchange, envelope) {
                Delivery::Done(done) => return done,
                Delivery::BySession(peer) => peer,
            },
        };
        if matches!(route, Route::Peer(_)) && self.hold_early(peer, envelope) {
            return true;
        }
        self.tell_peer(peer, envelope.len() + 1, |out| envelope.write_line(out))
    }

    /// Sends a message with a running request, if what carries it can.
    fn deliver_with(&mut self, exchange: ExchangeId, envelope: &Envelope<'_>) -> Delivery {
        let Some(state) = self.exchanges.get(&exchange) else { return Delivery::Done(false) };
        let (peer, work) = (state.sender.peer, state.work(exchange));
        let Some(Way { conn, carrier, stream }) = self.way(work) else {
            return Delivery::Done(false);
        };
        if carrier != Carrier::Gone && !self.stands(conn) {
            return Delivery::Done(false);
        }
        match (carrier, peer, stream) {
            (Carrier::Pipe, ..) => self.write_pipe(conn, envelope),
            (_, Some(peer), Some(stream)) => {
                self.write_on(peer, stream, |out| envelope.write_line(out));
            }
            (Carrier::Http { sse: true, .. }, ..) => {
                match self.stream_of(work) {
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

    fn way_mut(&mut self, work: Work) -> Option<&mut Way> {
        match work {
            Work::Batch(batch) => Some(&mut self.batches.get_mut(&batch)?.way),
            Work::Request(exchange) => match &mut self.exchanges.get_mut(&exchange)?.carried {
                Carried::Alone(way) => Some(way),
                Carried::InBatch(_) => None,
            },
        }
    }

    /// Where what belongs to `work` is written.
    pub(super) fn way(&self, work: Work) -> Option<Way> {
        match work {
            Work::Batch(batch) => Some(self.batches.get(&batch)?.way),
            Work::Request(exchange) => match self.exchanges.get(&exchange)?.carried {
                Carried::Alone(way) => Some(way),
                Carried::InBatch(_) => None,
            },
        }
    }

    /// Another connection goes on with a stream.
    pub(super) fn carry_on(&mut self, work: Work, conn: ConnId) {
        if let Some(way) = self.way_mut(work) {
            way.conn = conn;
            way.carrier = Carrier::STREAM;
        }
    }

    /// Makes the response to a request an event stream, if it is none yet. Gives
    /// the session and the number of the stream if it belongs to one.
    pub(super) fn stream_of(&mut self, work: Work) -> Option<(PeerId, u64)> {
        let peer = match work {
            Work::Request(exchange) => self.exchanges.get(&exchange)?.sender.peer,
            Work::Batch(batch) => self.batches.get(&batch)?.sender.peer,
        };
        let way = self.way_mut(work)?;
        if let Some(stream) = way.stream {
            return Some((peer?, stream));
        }
        let Carrier::Http { streaming, .. } = &mut way.carrier else { return None };
        if core::mem::replace(streaming, true) {
            return None;
        }
        let conn = way.conn;
        match peer {
            Some(peer) => {
                let stream = self.open_stream(conn, peer, Some(work));
                self.way_mut(work)?.stream = stream;
            }
            None => self.begin_stream(conn),
        }
        if let Work::Batch(batch) = work {
            self.flush_batch(batch);
        }
        Some((peer?, self.way(work)?.stream?))
    }

    /// Gives a connection up that does not read what cannot be held back.
    /// Says whether it still stands.
    pub(super) fn stands(&mut self, conn: ConnId) -> bool {
        let stands = self.output.queued(conn) <= self.config.limits.outgoing_hard;
        if !stands {
            self.close(conn);
        }
        stands
    }

    /// A notification from a host.
    pub(super) fn notice<'a>(&mut self, peer: PeerId, message: Message<'a>) -> Option<Event<'a>> {
        if message.method() == method::INITIALIZED {
            self.make_ready(peer);
        }
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
        self.end_carrier(exchange, &state);
        if let Carried::Alone(Way { conn, carrier: Carrier::Pipe, .. }) = state.carried {
            self.leave_if_silent(conn, peer);
        }
        let reason = get(params, "reason").map(ToString::to_string);
        Some(Event::Cancelled { exchange, reason })
    }

    /// Takes a request out of all tables.
    fn release(&mut self, exchange: ExchangeId) -> Option<Exchange> {
        let state = self.exchanges.remove(&exchange)?;
        if let Some(holder) = state.sender.holder.and_then(|holder| self.peers.get_mut(&holder)) {
            holder.in_flight.remove(&state.id);
        }
        Some(state)
    }

    /// Forgets a request whose session has ended.
    pub(super) fn drop_exchange(&mut self, exchange: ExchangeId) {
        if let Some(state) = self.release(exchange) {
            self.end_carrier(exchange, &state);
        }
    }

    /// Ends the response to a request that will not be answered.
    fn end_carrier(&mut self, exchange: ExchangeId, state: &Exchange) {
        let way = match state.carried {
            Carried::Alone(way) => way,
            Carried::InBatch(batch) => return self.leave_batch(batch, exchange),
        };
        match (way.carrier, state.sender.peer, way.stream) {
            (_, Some(peer), Some(stream)) => self.close_stream(peer, stream),
            (Carrier::Http { sse, streaming, .. }, ..) => {
                self.end_without_answer(way.conn, sse, streaming);
            }
            (Carrier::Pipe | Carrier::Gone, ..) => {}
        }
    }

    /// The connection of a request is gone. A request that stands alone ends with
    /// it: nobody could ask for its answer. One of a session runs on (CAN-05,
    /// CAN-06).
    pub(super) fn carrier_lost(&mut self, work: Work) {
        let Some(way) = self.way_mut(work) else { return };
        way.carrier = Carrier::Gone;
        let conn = way.conn;
        let (peer, running) = match work {
            Work::Request(exchange) => {
                let peer = self.exchanges.get(&exchange).and_then(|state| state.sender.peer);
                (peer, Vec::from([exchange]))
            }
            Work::Batch(batch) => match self.batches.get(&batch) {
                Some(batch) => (batch.sender.peer, batch.running.iter().copied().collect()),
                None => return,
            },
        };
        if let Some(peer) = peer {
            return self.stream_lost(peer, conn);
        }
        for exchange in running {
            self.drop_exchange(exchange);
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
                let state = self.exchanges.get(exchange);
                state.and_then(|state| self.way(state.work(**exchange))).is_some_and(|way| {
                    matches!(way.carrier, Carrier::Pipe | Carrier::Http { sse: true, .. })
                        || way.stream.is_some()
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

fn error_code(error: &str) -> i32 {
    get(error, "code").and_then(|raw| raw.parse().ok()).unwrap_or_default()
}
