//! Calls of modern hosts in the middle of which a legacy server asks (requirements
//! D3, D4 and D5; 2026-07-28 `basic/patterns/mrtr`).
//!
//! A legacy server asks whoever has declared that it can be asked, on the
//! connection of the call. So such a call has a connection on which its host's
//! capabilities are declared, for itself as long as it runs. When the server asks,
//! the host gets an `InputRequiredResult`, and the call is parked: it goes on when
//! the host comes back with answers and the `requestState` that it was given.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::at::{At, Call, CallKind};
use super::drive::Driven;
use super::errors;
use super::rewrite;
use super::serve::level;
use super::translate::{self, without};
use crate::client::{Failure, RequestId, UpstreamId};
use crate::jsonrpc::{Message, code, elements, get, members, string};
use crate::protocol::fault::Fault;
use crate::protocol::host_capabilities::HostCapabilities;
use crate::protocol::revision::Revision;
use crate::protocol::{meta, method};
use crate::server::{ExchangeId, Outcome, Owner, Request};
use crate::time::Instant;

/// What `requestState` is sealed for.
const PURPOSE: &str = "parked call";
/// Questions of one call that are open, at most.
const QUESTIONS: usize = 64;

/// Names a call that may be parked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ParkId(u64);

/// A connection on which a host's capabilities are declared.
#[derive(Debug)]
pub(super) struct Lease {
    /// The capabilities, as `initialize` declares them.
    capabilities: String,
    owner: Owner,
    /// Whether the server has agreed.
    open: bool,
    /// The roots that its owner has given last.
    pub(super) roots: Option<String>,
    /// The call that it is for now.
    pub(super) call: Option<ParkId>,
    /// Since when it is for none.
    idle: Instant,
}

/// A call that may be parked.
#[derive(Debug)]
pub(super) struct Parked {
    link: UpstreamId,
    /// Our request to the server, if it runs.
    request: Option<RequestId>,
    /// Who waits, if anybody does.
    pub(super) exchange: Option<ExchangeId>,
    owner: Owner,
    method: String,
    /// The parameters, but for what each round has of its own.
    params: String,
    can: HostCapabilities,
    /// The host's progress token and lowest log level, raw.
    token: Option<String>,
    level: Option<String>,
    questions: BTreeMap<String, Question>,
    /// Whether some of them have not been told yet.
    untold: bool,
    asked: u64,
    round: u64,
    /// What the server has answered meanwhile.
    outcome: Option<Result<String, String>>,
    /// It ends then if its host, or at first its server, keeps silent.
    until: Option<Instant>,
}

/// A question of the server's.
#[derive(Debug)]
struct Question {
    /// Its raw id. None if it came as an error that wants a URL to be visited: the
    /// call begins again afterwards.
    raw: Option<String>,
    method: String,
    /// The entry of `inputRequests`.
    entry: String,
}

/// The calls that may be parked.
#[derive(Debug, Default)]
pub(super) struct Parking {
    pub(super) calls: BTreeMap<ParkId, Parked>,
}

impl Parking {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.calls.values().filter_map(|call| call.until).min()
    }

    pub(super) fn forget(&mut self) {
        self.calls.clear();
    }
}

impl Lease {
    /// Ends a connection that no call has needed for so long.
    pub(super) fn due(&self, idle: core::time::Duration) -> Option<Instant> {
        self.call.is_none().then(|| self.idle + idle)
    }
}

/// The parameters without what each round has of its own.
fn without_answers(params: &str) -> String {
    without(&without(params, "inputResponses"), "requestState")
}

/// What makes a call that call.
fn essence(params: &str) -> String {
    without(&without_answers(params), "_meta")
}

impl At<'_> {
    /// A modern request whose host can be asked this much.
    pub(super) fn call_for(&mut self, request: &Request<'_>, can: String) {
        let exchange = request.exchange;
        if self.server.parking.calls.len() >= self.server.config.limits.parked {
            return self.fail(exchange, "too many calls run that it may ask something about");
        }
        let owner = self.hub.endpoint.owner_of(exchange);
        let link = match self.lease(&can, owner) {
            Ok(link) => link,
            Err(fault) => return self.refuse(exchange, &fault),
        };
        let park = ParkId(self.hub.number());
        let params = request.message.params();
        let call = Parked {
            link,
            request: None,
            exchange: Some(exchange),
            owner,
            method: request.message.method().to_string(),
            params: without_answers(&translate::params_for_legacy(params, None)),
            can: HostCapabilities::of(Revision::NEWEST_LEGACY, &can),
            token: rewrite::progress_token(params).map(ToString::to_string),
            level: level(params).map(ToString::to_string),
            questions: BTreeMap::new(),
            untold: false,
            asked: 0,
            round: 0,
            outcome: None,
            until: None,
        };
        self.server.parking.calls.insert(park, call);
        self.server.exchanges.insert(exchange, park);
        let lease = self.server.links.get_mut(&link).and_then(|link| link.lease.as_mut());
        if let Some(lease) = lease {
            lease.call = Some(park);
            if lease.open {
                self.start_call(park);
            } else if let Some(call) = self.server.parking.calls.get_mut(&park) {
                call.until = Some(self.hub.now + self.server.config.limits.handshake);
            }
        }
    }

    /// A connection with these capabilities on which no call runs.
    fn lease(&mut self, can: &str, owner: Owner) -> Result<UpstreamId, Fault> {
        let mut leases =
            self.server.leases.iter().filter_map(|id| self.server.links.get_key_value(id));
        let free = leases.find(|(_, link)| {
            !link.upstream.has_ended()
                && link.lease.as_ref().is_some_and(|lease| {
                    lease.open
                        && lease.call.is_none()
                        && lease.owner == owner
                        && lease.capabilities == can
                })
        });
        if let Some((id, _)) = free {
            return Ok(*id);
        }
        self.may_initialize()?;
        let id = self.open_as(can, CallKind::OpenLease);
        if let Some(link) = self.server.links.get_mut(&id) {
            let (open, call, capabilities) = (false, None, can.to_string());
            let idle = self.hub.now;
            link.lease =
                Some(Box::new(Lease { capabilities, owner, open, call, idle, roots: None }));
            self.server.leases.insert(id);
        }
        Ok(id)
    }

    /// The server has answered `initialize` on a connection for a call.
    pub(super) fn on_lease_opened(&mut self, id: UpstreamId, message: &Message<'_>) {
        let revision = message.result().and_then(rewrite::agreed);
        let (Some(revision), Some(link)) = (revision, self.server.links.get_mut(&id)) else {
            return self.on_lease_failure(id, "it refuses initialize");
        };
        link.upstream.speak(revision);
        link.upstream.notify(&mut self.hub.wires, method::INITIALIZED, None);
        link.upstream.listen(&mut self.hub.wires);
        let call = link.lease.as_mut().and_then(|lease| {
            lease.open = true;
            lease.call
        });
        self.started(id);
        self.note_tasks(id, message.result().unwrap_or("{}"));
        if let Some(park) = call {
            self.start_call(park);
        }
    }

    pub(super) fn on_lease_failure(&mut self, id: UpstreamId, why: impl core::fmt::Display) {
        let lease = self.server.links.get(&id).and_then(|link| link.lease.as_ref());
        if let Some(park) = lease.and_then(|lease| lease.call) {
            let error = self.fault(why).object;
            self.end_call(park, Err(error));
        }
        self.stop_link(id);
    }

    /// Sends a call to the server.
    fn start_call(&mut self, park: ParkId) {
        let now = self.hub.now;
        let Some(call) = self.server.parking.calls.get(&park) else { return };
        let (id, wanted) = (call.link, call.level.clone());
        self.set_level(id, wanted.as_deref());
        let Some(call) = self.server.parking.calls.get_mut(&park) else { return };
        let Some(link) = self.server.links.get_mut(&id) else { return };
        let ours = call.token.as_ref().map(|_| link.upstream.next_id().0.to_string());
        let params = meta::with(Some(&call.params), &[(meta::PROGRESS_TOKEN, ours.as_deref())]);
        let driven = Driven::of(link, &call.method, Some(&params));
        let sent = link.upstream.request(&mut self.hub.wires, &call.method, Some(&params), &[]);
        (call.request, call.until) = (Some(sent), None);
        let state = Call {
            token: call.token.clone(),
            driven,
            ..Call::ours(CallKind::Parked { park }, now)
        };
        link.calls.insert(sent, state);
        self.sweep_calls_later();
        self.touch(id);
    }

    /// A call has been sent again, under another number.
    pub(super) fn moved_call(&mut self, park: ParkId, sent: RequestId) {
        if let Some(call) = self.server.parking.calls.get_mut(&park) {
            call.request = Some(sent);
        }
    }

    /// The call that a connection is for.
    fn call_on(&mut self, id: UpstreamId) -> Option<(ParkId, &mut Parked)> {
        let park = self.server.links.get(&id)?.lease.as_ref()?.call?;
        Some((park, self.server.parking.calls.get_mut(&park)?))
    }

    /// The server asks in the middle of a call.
    pub(super) fn on_question(&mut self, id: UpstreamId, message: &Message<'_>) {
        let raw = message.id().unwrap_or("null").to_string();
        let method = message.method();
        let signed = self.signed(method, message.params());
        let params = signed.as_deref().or(message.params());
        let ours = method == method::LIST_ROOTS && !self.server.config.roots.is_empty();
        let refused = match self.call_on(id) {
            None => return self.answer_for_nobody(id, message),
            // Declared by us, not by the host.
            Some((_, call)) if ours && call.can.allow(method, params).is_err() => {
                return self.answer_for_nobody(id, message);
            }
            Some((_, call)) => call.can.allow(method, params).and_then(|()| {
                let known = matches!(method, method::LIST_ROOTS | method::ELICIT | method::SAMPLE);
                if !known {
                    return Err(Fault::method_not_found(method));
                }
                if call.questions.len() >= QUESTIONS {
                    let why = "Too many questions are open";
                    return Err(Fault::new(code::INTERNAL_ERROR, why));
                }
                call.asked += 1;
                let question = Question {
                    raw: Some(raw.clone()),
                    method: method.to_string(),
                    entry: translate::input_request(method, params),
                };
                call.questions.insert(alloc::format!("q{}", call.asked), question);
                call.untold = true;
                Ok(())
            }),
        };
        match refused {
            Ok(()) => {
                self.hub.untold.insert(self.server.id);
            }
            Err(fault) => {
                if let Some(link) = self.server.links.get_mut(&id) {
                    let outcome = Outcome::Error(&fault.object);
                    link.upstream.answer(&mut self.hub.wires, &raw, outcome);
                }
            }
        }
    }

    /// The server withdraws a question. Says whether it was one.
    pub(super) fn on_question_withdrawn(&mut self, id: UpstreamId, raw: &str) -> bool {
        let Some((_, call)) = self.call_on(id) else { return false };
        let before = call.questions.len();
        call.questions.retain(|_, question| question.raw.as_deref() != Some(raw));
        before > call.questions.len()
    }

    /// Tells those who wait what the server asks.
    pub(super) fn tell_questions(&mut self) {
        let parking = &self.server.parking.calls;
        let untold: Vec<ParkId> = parking
            .iter()
            .filter(|(_, call)| call.untold && call.exchange.is_some())
            .map(|(park, _)| *park)
            .collect();
        for park in untold {
            self.park(park);
        }
    }

    fn park(&mut self, park: ParkId) {
        let until = self.hub.now + self.server.config.limits.parked_time;
        let Some(call) = self.server.parking.calls.get_mut(&park) else { return };
        call.untold = false;
        if call.questions.is_empty() {
            return;
        }
        let Some(exchange) = call.exchange.take() else { return };
        call.until = Some(until);
        call.round += 1;
        let mut result = String::from(r#"{"resultType":"input_required","inputRequests":{"#);
        for (n, (key, question)) in call.questions.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            let _ = write!(result, r#"{comma}"{key}":{}"#, question.entry);
        }
        let state =
            self.hub.seal(PURPOSE, &[park.0.to_be_bytes(), call.round.to_be_bytes()].concat());
        let _ = write!(result, r#"}},"requestState":"{}"}}"#, state.unwrap_or_default());
        self.server.exchanges.remove(&exchange);
        let result = rewrite::modern_result(&result);
        self.hub.endpoint.respond(exchange, Outcome::Result(&result));
    }

    /// A host comes back to a call.
    pub(super) fn resume(&mut self, request: &Request<'_>) {
        let exchange = request.exchange;
        if let Err(why) = self.take_answers(request) {
            let fault = Fault::new(code::INVALID_PARAMS, why);
            self.refuse(exchange, &fault);
        }
    }

    fn take_answers(&mut self, request: &Request<'_>) -> Result<(), &'static str> {
        const UNKNOWN: &str = "requestState is of no call that waits for answers: begin again";
        let params = request.message.params().unwrap_or("{}");
        let state = get(params, "requestState").and_then(string).ok_or(UNKNOWN)?;
        let content = self.hub.unseal(PURPOSE, &state).ok_or(UNKNOWN)?;
        let (park, round) = content.split_first_chunk::<8>().ok_or(UNKNOWN)?;
        let park = ParkId(u64::from_be_bytes(*park));
        let round = round.try_into().map(u64::from_be_bytes).map_err(|_| UNKNOWN)?;
        let owner = self.hub.endpoint.owner_of(request.exchange);
        let call = self.server.parking.calls.get_mut(&park).ok_or(UNKNOWN)?;
        let same =
            call.method == request.message.method() && essence(&call.params) == essence(params);
        if call.owner != owner || call.round != round || call.exchange.is_some() {
            return Err(UNKNOWN);
        }
        if !same {
            return Err("requestState is of another request than this");
        }
        let responses = get(params, "inputResponses").unwrap_or("{}");
        let mut answered = Vec::new();
        for (key, value) in members(responses) {
            let key = key.decoded().unwrap_or_default();
            let Some(question) = call.questions.get(&*key) else { continue };
            if !fits(&question.method, value) {
                return Err("inputResponses has an answer that does not fit its question");
            }
            answered.push((key.into_owned(), value.to_string()));
        }
        call.exchange = Some(request.exchange);
        call.until = None;
        call.token = rewrite::progress_token(Some(params)).map(ToString::to_string);
        call.level = level(Some(params)).map(ToString::to_string);
        self.server.exchanges.insert(request.exchange, park);
        let (id, sent, mut begins_again) = (call.link, call.request, false);
        for (key, value) in answered {
            let Some(question) = call.questions.remove(&key) else { continue };
            match (question.raw, self.server.links.get_mut(&id)) {
                (Some(raw), Some(link)) => {
                    if let Some(lease) = &mut link.lease
                        && question.method == method::LIST_ROOTS
                    {
                        lease.roots = Some(value.clone());
                    }
                    link.upstream.answer(&mut self.hub.wires, &raw, Outcome::Result(&value));
                }
                _ => begins_again = true,
            }
        }
        if let Some(state) =
            sent.and_then(|sent| self.server.links.get_mut(&id)?.calls.get_mut(&sent))
        {
            state.token.clone_from(&call.token);
        }
        self.touch(id);
        let Some(call) = self.server.parking.calls.get_mut(&park) else { return Ok(()) };
        if let Some(outcome) = call.outcome.take() {
            self.end_call(park, outcome);
        } else if !call.questions.is_empty() {
            call.untold = true;
            self.hub.untold.insert(self.server.id);
        } else if begins_again {
            self.begin_call_again(park);
        }
        Ok(())
    }

    /// A call whose server wanted something to be done first, which is done.
    fn begin_call_again(&mut self, park: ParkId) {
        let Some(call) = self.server.parking.calls.get(&park) else { return };
        let alive = self.server.links.get(&call.link).is_some_and(|link| {
            !link.upstream.has_ended()
                && link.lease.as_ref().is_some_and(|it| it.call == Some(park))
        });
        if alive {
            self.start_call(park);
        } else {
            let error = self.fault("its connection has ended").object;
            self.end_call(park, Err(error));
        }
    }

    /// The server has answered a call.
    pub(super) fn on_call_answered(&mut self, park: ParkId, message: &Message<'_>) {
        let Some(call) = self.server.parking.calls.get_mut(&park) else { return };
        call.request = None;
        call.questions.clear();
        let outcome = match message.result() {
            Some(result) => Ok(translate::result_for_modern(&call.method, result)),
            None => {
                let error = message.error().unwrap_or("{}");
                if get(error, "code") == Some("-32042") && self.visit_first(park, error) {
                    return;
                }
                Err(errors::error_for_modern(error))
            }
        };
        self.end_call(park, outcome);
    }

    /// The server wants URLs to be visited before the call. Says whether the host
    /// can be asked to.
    fn visit_first(&mut self, park: ParkId, error: &str) -> bool {
        let wanted = get(error, "data").and_then(|data| get(data, "elicitations")).unwrap_or("[]");
        let wanted = elements(wanted).take(QUESTIONS).map(|params| {
            let params = rewrite::with(params, "mode", r#""url""#);
            self.signed(method::ELICIT, Some(&params)).unwrap_or(params)
        });
        let wanted: Vec<String> = wanted.collect();
        let Some(call) = self.server.parking.calls.get_mut(&park) else { return false };
        for params in wanted {
            if call.can.allow(method::ELICIT, Some(&params)).is_err() {
                continue;
            }
            call.asked += 1;
            let entry = translate::input_request(method::ELICIT, Some(&params));
            let question = Question { raw: None, method: method::ELICIT.to_string(), entry };
            call.questions.insert(alloc::format!("q{}", call.asked), question);
        }
        call.untold = !call.questions.is_empty();
        self.hub.untold.insert(self.server.id);
        call.untold
    }

    pub(super) fn on_call_failed(&mut self, park: ParkId, failure: &Failure) {
        let error = self.fault(failure).object;
        self.end_call(park, Err(error));
    }

    /// A call has come to its end. Its host is told, now or when it comes back.
    fn end_call(&mut self, park: ParkId, outcome: Result<String, String>) {
        let now = self.hub.now;
        let Some(call) = self.server.parking.calls.get_mut(&park) else { return };
        let link = self.server.links.get_mut(&call.link);
        if let Some(lease) = link.and_then(|link| link.lease.as_mut())
            && lease.call == Some(park)
        {
            (lease.call, lease.idle) = (None, now);
            self.hub.touched.insert(call.link);
        }
        (call.request, call.untold) = (None, false);
        call.questions.clear();
        let Some(exchange) = call.exchange else {
            call.outcome = Some(outcome);
            return;
        };
        self.server.parking.calls.remove(&park);
        self.server.exchanges.remove(&exchange);
        match outcome {
            Ok(result) => {
                let result = rewrite::modern_result(&result);
                self.hub.endpoint.respond(exchange, Outcome::Result(&result));
            }
            Err(error) => self.hub.endpoint.respond(exchange, Outcome::Error(&error)),
        }
    }

    /// Nobody waits for a call any more. Its connection ends with it: what the server
    /// still says about it must not be taken for something about another.
    pub(super) fn drop_call(&mut self, park: ParkId, reason: Option<&str>) {
        let Some(call) = self.server.parking.calls.remove(&park) else { return };
        if let Some(exchange) = call.exchange {
            self.server.exchanges.remove(&exchange);
        }
        let Some(link) = self.server.links.get_mut(&call.link) else { return };
        if link.lease.as_ref().is_none_or(|lease| lease.call != Some(park)) {
            return;
        }
        if let Some(request) = call.request {
            let taken = link.take(request);
            self.cancel_taken(call.link, request, taken.as_ref(), reason);
        }
        self.stop_link(call.link);
    }

    /// Gives up calls whose hosts do not come back, and connections that no call needs.
    pub(super) fn check_parking(&mut self) {
        let now = self.hub.now;
        let calls = &self.server.parking.calls;
        let late = |(_, call): &(&ParkId, &Parked)| call.until.is_some_and(|until| until <= now);
        let late: Vec<ParkId> = calls.iter().filter(late).map(|(park, _)| *park).collect();
        for park in late {
            match self.server.parking.calls.get(&park) {
                Some(Parked { exchange: Some(_), link, .. }) => {
                    self.on_lease_failure(*link, "it does not answer");
                }
                _ => self.drop_call(park, Some(r#""the host did not come back""#)),
            }
        }
        let idle = self.server.config.limits.idle;
        let leases = self.server.leases.iter().filter_map(|id| self.server.links.get_key_value(id));
        let unused = leases.filter(|(_, link)| {
            let due = link.lease.as_ref().and_then(|lease| lease.due(idle));
            due.is_some_and(|due| due <= now) && !link.upstream.has_ended()
        });
        let unused: Vec<UpstreamId> = unused.map(|(id, _)| *id).collect();
        for id in unused {
            self.stop_link(id);
        }
    }

    /// The host of a call, and what it wants to hear of log messages.
    pub(super) fn host_of(&self, park: ParkId) -> Option<(ExchangeId, Option<String>)> {
        let call = self.server.parking.calls.get(&park)?;
        Some((call.exchange?, call.level.clone()))
    }
}

/// Whether an answer is one to this question.
fn fits(method: &str, answer: &str) -> bool {
    let is = |name, first: char| get(answer, name).is_some_and(|value| value.starts_with(first));
    match method {
        method::ELICIT => {
            matches!(get(answer, "action"), Some(r#""accept""# | r#""decline""# | r#""cancel""#))
        }
        method::LIST_ROOTS => is("roots", '['),
        _ => answer.starts_with('{'),
    }
}
