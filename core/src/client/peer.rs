//! A session for programs that wait for each answer.
//!
//! [`Client`] is the same on every runtime: it turns the runtime's loop until what
//! it waits for has come. In between nothing happens, so a program that has long
//! pauses calls [`next`](Client::next) now and then.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::Failure;
use super::oneshot::Kind;
use super::session::{CallId, Config, Event, Options, Session, Trouble};
use crate::driver::Machine;
use crate::event;
use crate::jsonrpc::{elements, get, members, quote, string};
use crate::protocol::method;
use crate::protocol::revision::{Era, Revision};
use crate::server::Outcome;
use crate::time::Instant;

/// Notifications that are kept until they are asked for; the oldest are dropped.
const NOTIFICATIONS: usize = 1024;
/// How often one request may ask something before it is answered.
const ROUNDS: usize = 32;
/// Pages of one list.
const PAGES: usize = 1000;

/// A runtime that is turned by hand.
pub trait Drive: Sized {
    /// What the operating system can have against it.
    type Error;

    /// A runtime without listeners, which leaves signals alone.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn start() -> Result<Self, Self::Error>;

    /// The moment, on the clock of [`turn`](Self::turn).
    fn now(&mut self) -> Instant;

    /// Does what the machine wants, waits until something happens, or until the
    /// machine's deadline or `until`, and tells the machine. Gives the moment, or
    /// `None` if the machine has asked to exit.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Instant>,
        observe: &mut dyn FnMut(event::Event),
    ) -> Result<Option<Instant>, Self::Error>;
}

/// Why something did not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error<E> {
    /// The server, or the way to it.
    Server(Trouble),
    /// The runtime.
    Runtime(E),
}

impl<E> From<Trouble> for Error<E> {
    fn from(trouble: Trouble) -> Self {
        Self::Server(trouble)
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(trouble) => trouble.fmt(f),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Error<E> {}

/// Something that the server told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// The method.
    pub method: String,
    /// The parameters: the JSON text of an object.
    pub params: Option<String>,
}

/// Answers a question of the server's, given its method and parameters: with the
/// JSON text of a result, or of an error object.
pub type Answerer = Box<dyn FnMut(&str, Option<&str>) -> Result<String, String>>;

/// A session with a server. Texts are JSON.
pub struct Client<D: Drive> {
    session: Session,
    driver: D,
    notifications: VecDeque<Notification>,
    answerer: Option<Answerer>,
    observer: Box<dyn FnMut(event::Event)>,
    listening: Vec<CallId>,
    /// The session has ended; what it had to say may still be there.
    over: bool,
}

impl<D: Drive> Client<D> {
    /// Starts the server, or connects to it, and agrees on a revision.
    ///
    /// # Errors
    ///
    /// [`Trouble`] with the server, or the runtime's.
    pub fn connect(config: Config) -> Result<Self, Error<D::Error>> {
        let mut client = Self {
            session: Session::new(Config { listens: true, ..config }),
            driver: D::start().map_err(Error::Runtime)?,
            notifications: VecDeque::new(),
            answerer: None,
            observer: Box::new(|_| {}),
            listening: Vec::new(),
            over: false,
        };
        client.until(|event| match event {
            Event::Ready => Some(Ok(())),
            _ => None,
        })?;
        Ok(client)
    }

    /// What answers the server's questions: without it they are refused. Only those
    /// come that the [capabilities](Config::capabilities) speak of.
    pub fn answer_with(
        &mut self,
        answerer: impl FnMut(&str, Option<&str>) -> Result<String, String> + 'static,
    ) {
        self.answerer = Some(Box::new(answerer));
    }

    /// Who hears of standard error, warnings and ends of processes.
    pub fn observe_with(&mut self, observer: impl FnMut(event::Event) + 'static) {
        self.observer = Box::new(observer);
    }

    /// What the peers have agreed on.
    pub fn revision(&self) -> Option<Revision> {
        self.session.revision()
    }

    /// What the server declares that it can do: an object.
    pub fn capabilities(&self) -> Option<&str> {
        self.session.capabilities()
    }

    /// Calls a tool with these arguments, an object. Gives its result, an object;
    /// whether the tool failed is in its `isError`. `progress` gets the parameters of
    /// each progress notification.
    ///
    /// # Errors
    ///
    /// As for [`request`](Self::request).
    pub fn call(
        &mut self,
        tool: &str,
        arguments: &str,
        within: Option<Duration>,
        progress: impl FnMut(&str),
    ) -> Result<String, Error<D::Error>> {
        let mut params = String::from(r#"{"name":"#);
        quote(tool, &mut params);
        params.push_str(r#","arguments":"#);
        params.push_str(arguments);
        params.push('}');
        let options = Options { progress: true, within };
        self.request(method::TOOLS_CALL, Some(&params), options, progress)
    }

    /// Reads a resource. Gives the result, an object with `contents`.
    ///
    /// # Errors
    ///
    /// As for [`request`](Self::request).
    pub fn read(&mut self, uri: &str) -> Result<String, Error<D::Error>> {
        let mut params = String::from(r#"{"uri":"#);
        quote(uri, &mut params);
        params.push('}');
        self.request(method::RESOURCES_READ, Some(&params), Options::default(), |_| {})
    }

    /// All that the server has of a kind, page by page: an object for each.
    ///
    /// # Errors
    ///
    /// As for [`request`](Self::request), and [`Trouble::Endless`].
    pub fn list(&mut self, kind: Kind) -> Result<Vec<String>, Error<D::Error>> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        let method = kind.method();
        for _ in 0..PAGES {
            let params = cursor.map(|cursor| alloc::format!(r#"{{"cursor":{cursor}}}"#));
            let result = self.request(method, params.as_deref(), Options::default(), |_| {})?;
            let page = get(&result, kind.member()).unwrap_or("[]");
            items.extend(elements(page).map(String::from));
            cursor = get(&result, "nextCursor").filter(|raw| raw.starts_with('"')).map(Into::into);
            if cursor.is_none() {
                return Ok(items);
            }
        }
        Err(Trouble::Endless(method).into())
    }

    /// Asks to be told of changes: of these resources, and of the lists. What comes is
    /// given by [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// As for [`request`](Self::request).
    pub fn subscribe(&mut self, uris: &[&str]) -> Result<(), Error<D::Error>> {
        let quoted = |uri: &&str| {
            let mut text = String::new();
            quote(uri, &mut text);
            text
        };
        let uris: Vec<String> = uris.iter().map(quoted).collect();
        if self.revision().is_none_or(|revision| revision.era() == Era::Legacy) {
            for uri in uris {
                let params = alloc::format!(r#"{{"uri":{uri}}}"#);
                self.request(method::SUBSCRIBE, Some(&params), Options::default(), |_| {})?;
            }
            return Ok(());
        }
        let params = alloc::format!(
            r#"{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":[{}]}}}}"#,
            uris.join(",")
        );
        self.session.at(self.driver.now());
        let call = self.session.request(method::LISTEN, Some(&params), Options::default());
        self.until(|event| match event {
            Event::Notification { method, call: Some(to), .. }
                if method == method::ACKNOWLEDGED && *to == call =>
            {
                Some(Ok(()))
            }
            Event::Answer { call: ended, outcome } if *ended == call => {
                Some(outcome.clone().map(|_| ()))
            }
            _ => None,
        })?;
        self.listening.push(call);
        Ok(())
    }

    /// The next notification; waits for it as long as is said, or for ever.
    ///
    /// # Errors
    ///
    /// [`Trouble`] if the session has ended, or the runtime's.
    pub fn next(
        &mut self,
        within: Option<Duration>,
    ) -> Result<Option<Notification>, Error<D::Error>> {
        let until = within.map(|within| self.driver.now() + within);
        loop {
            if let Some(notification) = self.notifications.pop_front() {
                return Ok(Some(notification));
            }
            let over = self.turn(until)?;
            while let Some(event) = self.session.poll_event() {
                if let Event::Ended(trouble) = event {
                    return Err(trouble.into());
                }
                self.take(event);
            }
            if over && self.notifications.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Sends a request and waits for its result, an object. What it asks meanwhile, in
    /// either way, goes to [`answer_with`](Self::answer_with).
    ///
    /// # Errors
    ///
    /// [`Trouble`] with the server, an error that it answers with, or the runtime's.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<&str>,
        options: Options,
        mut progress: impl FnMut(&str),
    ) -> Result<String, Error<D::Error>> {
        let mut next = params.map(ToString::to_string);
        for _ in 0..ROUNDS {
            self.session.at(self.driver.now());
            let call = self.session.request(method, next.as_deref(), options);
            let result = self.until(|event| match event {
                Event::Answer { call: ended, outcome } if *ended == call => Some(outcome.clone()),
                Event::Progress { call: of, params } if *of == call => {
                    progress(params);
                    None
                }
                _ => None,
            })?;
            let kind = get(&result, "resultType").and_then(string);
            if kind.as_deref() != Some("input_required") || self.answerer.is_none() {
                return Ok(result);
            }
            next = Some(self.answers(params, &result));
        }
        Err(Trouble::NeedsInput.into())
    }

    /// The parameters of a request with the answers to what its last result asks.
    fn answers(&mut self, params: Option<&str>, result: &str) -> String {
        let mut answers = String::new();
        for (key, question) in members(get(result, "inputRequests").unwrap_or("{}")) {
            let method = get(question, "method").and_then(string).unwrap_or_default();
            let answerer = self.answerer.as_mut();
            let answer = answerer.map(|answerer| answerer(&method, get(question, "params")));
            let Some(Ok(answer)) = answer else { continue };
            if !answers.is_empty() {
                answers.push(',');
            }
            answers.push_str(&alloc::format!("{}:{answer}", key.raw()));
        }
        let answers = alloc::format!("{{{answers}}}");
        let mut edited = String::new();
        crate::jsonrpc::with_member(
            params.unwrap_or("{}"),
            "inputResponses",
            Some(&answers),
            &mut edited,
        );
        let mut whole = String::new();
        let state = get(result, "requestState");
        crate::jsonrpc::with_member(&edited, "requestState", state, &mut whole);
        whole
    }

    /// Turns until an event is what is waited for.
    fn until<T>(
        &mut self,
        mut found: impl FnMut(&Event) -> Option<Result<T, Trouble>>,
    ) -> Result<T, Error<D::Error>> {
        loop {
            while let Some(event) = self.session.poll_event() {
                if let Some(found) = found(&event) {
                    return Ok(found?);
                }
                if let Event::Ended(trouble) = event {
                    return Err(trouble.into());
                }
                self.take(event);
            }
            self.turn(None)?;
        }
    }

    /// One turn. Says whether the moment given has come.
    fn turn(&mut self, until: Option<Instant>) -> Result<bool, Error<D::Error>> {
        if self.over {
            return Err(Trouble::Failure(Failure::Stopped).into());
        }
        let turned = self.driver.turn(&mut self.session, until, &mut self.observer);
        let now = turned.map_err(Error::Runtime)?;
        self.over = now.is_none();
        Ok(until.zip(now).is_some_and(|(until, now)| until <= now))
    }

    /// Takes in what nobody waits for just now.
    fn take(&mut self, event: Event) {
        match event {
            Event::Notification { method, params, .. } => {
                if self.notifications.len() == NOTIFICATIONS {
                    self.notifications.pop_front();
                }
                self.notifications.push_back(Notification { method, params });
            }
            Event::Question { id, method, params } => {
                let answer = match &mut self.answerer {
                    Some(answerer) => answerer(&method, params.as_deref()),
                    None => Err(crate::jsonrpc::error_object(
                        crate::jsonrpc::code::METHOD_NOT_FOUND,
                        "Nobody here answers questions",
                        None,
                    )),
                };
                match &answer {
                    Ok(result) => self.session.answer(&id, Outcome::Result(result)),
                    Err(error) => self.session.answer(&id, Outcome::Error(error)),
                }
            }
            // Of what was given up, or of a subscription.
            Event::Answer { call, .. } => self.listening.retain(|listening| *listening != call),
            Event::Progress { .. } | Event::Ready | Event::Ended(_) => {}
        }
    }

    /// Ends the session, and the server if it was started here, in good order.
    ///
    /// # Errors
    ///
    /// The runtime's.
    pub fn close(mut self) -> Result<(), Error<D::Error>> {
        self.session.at(self.driver.now());
        self.session.end(&Trouble::Failure(Failure::Stopped));
        while !self.over {
            self.turn(None)?;
        }
        Ok(())
    }
}
