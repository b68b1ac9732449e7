//! Calls that need answers from the host before they can be answered
//! themselves.
//!
//! A legacy host is sent requests, and the call waits. A modern host gets the
//! questions as the result of its call and calls again with the answers; what it
//! has answered in earlier rounds it keeps for us, under a seal.

use std::collections::BTreeMap;
use std::fmt::Debug;

use mcpx_core::jsonrpc::{Key, Message, code, get, members, string};
use mcpx_core::protocol::fault::Fault;
use mcpx_core::protocol::revision::{Era, Revision};
use mcpx_core::server::{AskId, ExchangeId, Route};

use super::host::Host;
use super::machine::Demo;
use super::question::Question;
use super::requests::{Answer, Call, required};
use super::shapes;

/// What a call asks, and makes of the answers. It does the same for a host of
/// either era.
pub(super) trait Inquiry: Debug + Send {
    /// What is next, with the answers so far.
    fn next(&self, host: &Host, answers: &Answers) -> Result<Next, Senseless>;

    /// Whether answers count only together with the state that went out with
    /// the questions.
    fn needs_state(&self) -> bool {
        true
    }

    /// What a legacy host gets if it did not answer, or not with sense. A tool
    /// says so to the model.
    fn failure(&self, revision: Revision, why: &str) -> Result<String, Fault> {
        Ok(shapes::failure(revision, why))
    }
}

/// What is next in an inquiry.
#[derive(Debug)]
pub(super) enum Next {
    /// These questions, none of which is answered yet.
    Ask(Vec<Question>),
    /// The result of the call.
    Result(String),
}

/// An answer makes no sense.
#[derive(Debug)]
pub(super) struct Senseless;

/// Raw answers by the keys of their questions.
#[derive(Default, Debug)]
pub(super) struct Answers(BTreeMap<String, String>);

impl Answers {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Those of the questions that are not answered.
    pub(super) fn open(&self, questions: Vec<Question>) -> Vec<Question> {
        questions.into_iter().filter(|question| self.get(question.key).is_none()).collect()
    }

    fn read(object: &str) -> Self {
        let pair =
            |(key, raw): (Key<'_>, &str)| Some((key.decoded()?.into_owned(), raw.to_owned()));
        Self(members(object).filter_map(pair).collect())
    }

    fn write(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(key, raw)| format!("{}:{raw}", shapes::quoted(key))).collect();
        format!("{{{}}}", pairs.join(","))
    }

    fn add(&mut self, key: &str, raw: &str) {
        self.0.insert(key.to_owned(), raw.to_owned());
    }
}

/// A call that waits for answers of a legacy host.
#[derive(Debug)]
pub(super) struct Pending {
    exchange: ExchangeId,
    host: Host,
    inquiry: Box<dyn Inquiry>,
    answers: Answers,
    /// The questions that are open, and their keys.
    open: BTreeMap<AskId, &'static str>,
}

impl Demo {
    pub(super) fn inquire(
        &mut self,
        call: &Call<'_>,
        inquiry: Box<dyn Inquiry>,
    ) -> Result<Answer, Fault> {
        if call.host.revision.era() == Era::Modern {
            return self.require(call, &*inquiry).map(Answer::Now);
        }
        self.proceed(Pending {
            exchange: call.exchange,
            host: call.host,
            inquiry,
            answers: Answers::default(),
            open: BTreeMap::new(),
        })
    }

    /// Asks a legacy host what is next, or comes to a result.
    fn proceed(&mut self, mut pending: Pending) -> Result<Answer, Fault> {
        let exchange = pending.exchange;
        let questions = match pending.inquiry.next(&pending.host, &pending.answers) {
            Ok(Next::Ask(questions)) => questions,
            Ok(Next::Result(result)) => return Ok(Answer::Now(result)),
            Err(Senseless) => return pending.fail("The host's answer makes no sense"),
        };
        if let Some(question) = questions.iter().find(|question| !question.suits(&pending.host)) {
            let capability = question.capability();
            return pending
                .fail(&format!("The host has not declared the capability `{capability}`"));
        }
        for Question { key, method, params } in questions {
            let asked = self.endpoint.ask(Route::Exchange(exchange), method, Some(&params));
            let Ok(ask) = asked else {
                self.withdraw(&pending);
                return pending.fail("The host cannot be asked now");
            };
            pending.open.insert(ask, key);
            self.asks.insert(ask, exchange);
        }
        self.inquiries.insert(exchange, pending);
        Ok(Answer::Later)
    }

    /// A legacy host has answered.
    pub(super) fn on_answer(&mut self, ask: AskId, message: &Message<'_>) {
        let asked = self.asks.remove(&ask).and_then(|exchange| self.inquiries.remove(&exchange));
        let Some(mut pending) = asked else { return };
        let Some(key) = pending.open.remove(&ask) else { return };
        let exchange = pending.exchange;
        let outcome = match message.result() {
            Some(answer) => {
                pending.answers.add(key, answer);
                if !pending.open.is_empty() {
                    self.inquiries.insert(exchange, pending);
                    return;
                }
                self.proceed(pending)
            }
            None => {
                self.withdraw(&pending);
                let why = message.error().and_then(|error| get(error, "message")).and_then(string);
                let why = why.unwrap_or_default();
                pending.fail(&format!("The host refused to be asked: {why}"))
            }
        };
        self.conclude(exchange, outcome);
    }

    /// Nobody waits for this call any more, if it is one that asks.
    pub(super) fn stop_inquiring(&mut self, exchange: ExchangeId) {
        if let Some(pending) = self.inquiries.remove(&exchange) {
            self.withdraw(&pending);
        }
    }

    fn withdraw(&mut self, pending: &Pending) {
        for &ask in pending.open.keys() {
            self.asks.remove(&ask);
            self.endpoint.withdraw(ask, None);
        }
    }

    /// The result of a modern call: the questions, until their answers come
    /// with it.
    fn require(&mut self, call: &Call<'_>, inquiry: &dyn Inquiry) -> Result<String, Fault> {
        let unfit = |why| Fault::new(code::INVALID_PARAMS, why);
        let senseless = |Senseless| unfit("An answer in `inputResponses` makes no sense");
        // No other request may use the state of this one.
        let purpose = format!("{} {}", call.method, required(call.params, "name")?);
        let state = get(call.params, "requestState");
        let mut answers = match state {
            None => Answers::default(),
            Some(state) => {
                let state = string(state).unwrap_or_default();
                let content = self.states.open(self.now, &purpose, &state);
                let content = content.ok_or_else(|| {
                    unfit("`requestState` is not of this request, or it is too old")
                })?;
                Answers::read(&content)
            }
        };
        let given = get(call.params, "inputResponses").unwrap_or("{}");
        if !given.starts_with('{') {
            return Err(unfit("`inputResponses` must be an object"));
        }
        let mut next = inquiry.next(&call.host, &answers).map_err(senseless)?;
        if let Next::Ask(questions) = &next
            && (state.is_some() || !inquiry.needs_state())
        {
            for Question { key, .. } in questions {
                if let Some(raw) = get(given, key) {
                    answers.add(key, raw);
                }
            }
            next = inquiry.next(&call.host, &answers).map_err(senseless)?;
        }
        let questions = match next {
            Next::Ask(questions) => questions,
            Next::Result(result) => return Ok(result),
        };
        require_capabilities(&call.host, &questions)?;
        let requests: Vec<String> = questions
            .iter()
            .map(|Question { key, method, params }| {
                format!(r#""{key}":{{"method":"{method}","params":{params}}}"#)
            })
            .collect();
        let keeps = inquiry.needs_state() || !answers.0.is_empty();
        let state = match keeps {
            true => self.states.seal(self.now, &purpose, &answers.write()),
            false => None,
        };
        Ok(shapes::input_required(&requests.join(","), state.as_deref()))
    }
}

impl Pending {
    fn fail(&self, why: &str) -> Result<Answer, Fault> {
        self.inquiry.failure(self.host.revision, why).map(Answer::Now)
    }
}

/// Refuses a modern host that cannot answer all of this.
fn require_capabilities(host: &Host, questions: &[Question]) -> Result<(), Fault> {
    let mut missing: Vec<&str> = questions
        .iter()
        .filter(|question| !question.suits(host))
        .map(Question::capability)
        .collect();
    missing.sort_unstable();
    missing.dedup();
    match missing.as_slice() {
        [] => Ok(()),
        missing => Err(lacks(missing)),
    }
}

/// The answer to a modern host that has not declared what a request needs.
pub(super) fn lacks(capabilities: &[&str]) -> Fault {
    let members: Vec<String> =
        capabilities.iter().map(|capability| format!(r#""{capability}":{{}}"#)).collect();
    let data = format!(r#"{{"requiredCapabilities":{{{}}}}}"#, members.join(","));
    let why = format!("This needs client capabilities: {}", capabilities.join(", "));
    Fault::with_data(code::MISSING_CAPABILITY, &why, &data)
}
