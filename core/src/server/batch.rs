//! Batches: arrays of messages, which 2025-03-26 alone knows (`basic`,
//! "Batching"; `basic/transports`, "Sending Messages to the Server").
//!
//! Each message of one is dispatched by itself. The answers to its requests are
//! collected and sent as one array; on an event stream, each as an event.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::admit;
use super::endpoint::{Endpoint, Event};
use super::exchange::{Carried, Carrier, ExchangeId, Sender, Way, Work};
use super::http::State;
use crate::jsonrpc::{self, Envelope, Incoming, Kind, Message, RejectReason, Rejected, code};
use crate::protocol::fault::Fault;
use crate::protocol::method;

/// Names a batch of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) struct BatchId(u64);

/// A batch that holds requests.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) way: Way,
    pub(super) sender: Sender,
    /// Its requests that have no answer yet.
    pub(super) running: BTreeSet<ExchangeId>,
    /// Whether some of its messages have not been dispatched yet.
    reading: bool,
    /// The answers that no stream has carried.
    answers: Vec<Vec<u8>>,
}

/// The batches that run.
pub(super) type Batches = BTreeMap<BatchId, Batch>;

impl Endpoint {
    /// Dispatches the messages of a batch. Says whether it will be answered; if
    /// it is refused as a whole, the caller answers.
    pub(super) fn read_batch(
        &mut self,
        way: Way,
        sender: Sender,
        batch: &jsonrpc::Batch<'_>,
    ) -> Result<bool, Fault> {
        let most = self.config.limits.batch_members;
        let members: Vec<_> = batch.elements().take(most + 1).map(member).collect();
        check(&members, most, sender.peer.is_some())?;
        let wanted = |member: &Result<Message<'_>, Rejected>| match member {
            Ok(message) => message.kind() == Kind::Request,
            Err(rejected) => rejected.answerable,
        };
        if !members.iter().any(wanted) {
            for message in members.into_iter().flatten() {
                self.read_member(sender, message);
            }
            return Ok(false);
        }
        let id = BatchId(self.number());
        let conn = way.conn;
        let (running, answers) = (BTreeSet::new(), Vec::new());
        self.batches.insert(id, Batch { way, sender, running, reading: true, answers });
        if way.carrier != Carrier::Pipe {
            self.set_state(conn, State::Busy(Work::Batch(id)));
        }
        // RPC-07: on a pipe of that revision, an id is never left out.
        let no_id = (way.carrier == Carrier::Pipe).then_some("null");
        for member in members {
            match member {
                Ok(message) if message.kind() != Kind::Request => self.read_member(sender, message),
                Ok(message) => match admit::in_batch(&message, sender.peer.is_some()) {
                    Ok(()) => {
                        let event = self.begin(sender, Carried::InBatch(id), message);
                        self.events.extend(event.map(Event::into_owned));
                    }
                    Err(fault) => {
                        let (id_, error) = (message.id(), &*fault.object);
                        self.answer_in_batch(id, &Envelope::Error { id: id_, error });
                    }
                },
                Err(rejected) if rejected.answerable => {
                    let error = &*admit::rejection(&rejected);
                    let of = rejected.id.as_deref().or(no_id);
                    self.answer_in_batch(id, &Envelope::Error { id: of, error });
                }
                Err(_) => {}
            }
        }
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.reading = false;
        }
        self.finish_batch(id);
        Ok(true)
    }

    /// A notification or an answer.
    fn read_member(&mut self, sender: Sender, message: Message<'_>) {
        let Some(peer) = sender.peer else { return };
        let event = match message.kind() {
            Kind::Response | Kind::Error => self.answered(peer, message).ok(),
            _ => self.notice(peer, message),
        };
        self.events.extend(event.map(Event::into_owned));
    }

    /// Keeps an answer for the array, or sends it if there is a stream.
    pub(super) fn answer_in_batch(&mut self, id: BatchId, envelope: &Envelope<'_>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        let Way { conn, carrier, stream } = batch.way;
        match (carrier, batch.sender.peer, stream) {
            (_, Some(peer), Some(stream)) => {
                self.write_on(peer, stream, |out| envelope.write_line(out));
            }
            (Carrier::Http { streaming: true, .. }, ..) => self.write_event(conn, envelope),
            (Carrier::Gone, ..) => {}
            (Carrier::Pipe | Carrier::Http { .. }, ..) => {
                let mut answer = Vec::with_capacity(envelope.len() + 1);
                envelope.write_line(&mut answer);
                batch.answers.push(answer);
            }
        }
    }

    /// A stream has begun: what was collected goes first.
    pub(super) fn flush_batch(&mut self, id: BatchId) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        let (way, peer) = (batch.way, batch.sender.peer);
        for answer in core::mem::take(&mut batch.answers) {
            match (peer, way.stream) {
                (Some(peer), Some(stream)) => {
                    self.write_on(peer, stream, |out| out.extend_from_slice(&answer));
                }
                _ => self.write_event_with(way.conn, |out| out.extend_from_slice(&answer)),
            }
        }
    }

    /// A request of a batch has ended.
    pub(super) fn leave_batch(&mut self, id: BatchId, exchange: ExchangeId) {
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.running.remove(&exchange);
        }
        self.finish_batch(id);
    }

    /// Ends a batch in which nothing runs any more.
    fn finish_batch(&mut self, id: BatchId) {
        let ended = |batch: &Batch| batch.running.is_empty() && !batch.reading;
        if !self.batches.get(&id).is_some_and(ended) {
            return;
        }
        let Some(Batch { way, sender, answers, .. }) = self.batches.remove(&id) else { return };
        let conn = way.conn;
        match (way.carrier, sender.peer, way.stream) {
            (_, Some(peer), Some(stream)) => self.close_stream(peer, stream),
            (Carrier::Http { sse, streaming, .. }, ..) if streaming || answers.is_empty() => {
                self.end_without_answer(conn, sse, streaming);
            }
            (Carrier::Http { .. }, ..) => {
                let length = array_length(&answers);
                self.write_body(conn, 200, None, length, |out| write_array(&answers, out));
            }
            (Carrier::Pipe, peer, _) => {
                if !answers.is_empty() {
                    self.output.write(conn, |out| {
                        write_array(&answers, out);
                        out.push(b'\n');
                    });
                }
                if let Some(peer) = peer.filter(|peer| self.peers.contains_key(peer)) {
                    self.leave_if_silent(conn, peer);
                }
            }
            (Carrier::Gone, ..) => {}
        }
    }
}

fn member(element: &str) -> Result<Message<'_>, Rejected> {
    match Message::parse(Cow::Borrowed(element.as_bytes()), &admit::JSON)? {
        Incoming::Message(message) => Ok(message),
        Incoming::Batch(_) => Err(Rejected {
            code: code::INVALID_REQUEST,
            reason: RejectReason::NotAnObject,
            id: None,
            answerable: true,
        }),
    }
}

/// What an array must be as a whole (BAT-02, BAT-03).
fn check(
    members: &[Result<Message<'_>, Rejected>],
    most: usize,
    in_session: bool,
) -> Result<(), Fault> {
    let messages = || members.iter().flatten();
    let answers = |message: &Message<'_>| matches!(message.kind(), Kind::Response | Kind::Error);
    let why = if members.is_empty() {
        "A batch must not be empty"
    } else if members.len() > most {
        "The batch has too many messages: send fewer at a time"
    } else if messages().any(|message| message.method() == method::INITIALIZE) {
        "initialize must not be part of a batch"
    } else if messages().any(answers) && !messages().all(answers) {
        "A batch must not mix answers with requests and notifications"
    } else if messages().any(answers) && !in_session {
        "Answers belong to a session: Mcp-Session-Id is missing"
    } else {
        return Ok(());
    };
    Err(Fault::new(code::INVALID_REQUEST, why))
}

/// How many bytes [`write_array`] appends.
fn array_length(lines: &[Vec<u8>]) -> u64 {
    // Each line end makes room for a comma or the closing bracket.
    lines.iter().map(|line| line.len() as u64).sum::<u64>() + 1
}

/// Lines, each a message, as one array.
fn write_array(lines: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut before = b'[';
    for line in lines {
        out.push(before);
        out.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        before = b',';
    }
    out.push(b']');
}
