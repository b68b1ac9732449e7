//! A machine around a machine, which has TLS.

use std::collections::{BTreeMap, VecDeque};

use mcpx_core::driver::{Action, CloseReason, ConnId, Input, Machine, Target};
use mcpx_core::event::Event;
use mcpx_core::time::Instant;

use super::plain::Plain;
use super::session::{Broken, Session};
use super::settings::Shared;

/// A machine whose TLS connections are looked after.
#[derive(Debug)]
pub(crate) struct Secure<'m, M> {
    pub(super) machine: &'m mut M,
    settings: Shared,
    sessions: BTreeMap<ConnId, Session>,
    /// Those in the clear that a proxy has still to let through.
    plain: BTreeMap<ConnId, Plain>,
    pub(super) actions: VecDeque<Action>,
    now: Instant,
}

impl<'m, M: Machine> Secure<'m, M> {
    pub(crate) fn new(machine: &'m mut M, settings: Shared) -> Self {
        let (sessions, plain) = (BTreeMap::new(), BTreeMap::new());
        let actions = VecDeque::new();
        Self { machine, settings, sessions, plain, actions, now: Instant::START }
    }

    /// The connection that is needed for one by TLS.
    fn open(&mut self, conn: ConnId, host: String, port: u16) -> Option<Action> {
        match Session::new(&self.settings.borrow(), &host, port) {
            Ok((session, to)) => {
                self.sessions.insert(conn, session);
                Some(Action::Connect { conn, to })
            }
            Err(why) => {
                self.actions.push_back(warning(&host, port, &why));
                self.machine.handle(self.now, Input::Closed { conn, why: CloseReason::Failed });
                None
            }
        }
    }

    /// The connection that is needed for one in the clear, if there is a proxy.
    fn detour(&mut self, conn: ConnId, host: String, port: u16) -> Action {
        let to = match self.settings.borrow().proxy(&host, port) {
            Some(proxy) => {
                let to = proxy.target();
                self.plain.insert(conn, Plain::new(proxy, host, port));
                to
            }
            None => Target::Tcp { host, port },
        };
        Action::Connect { conn, to }
    }

    /// Bytes of a proxy, or its silence.
    fn received_of_proxy(&mut self, conn: ConnId, bytes: Option<&[u8]>) {
        let Some(plain) = self.plain.get_mut(&conn) else { return };
        let mut rest = bytes.unwrap_or_default();
        let through = match bytes {
            Some(_) => plain.receive(&mut rest),
            None => Err("the proxy hung up".to_owned()),
        };
        match through {
            Ok(false) => {}
            Ok(true) => {
                self.plain.remove(&conn);
                self.machine.handle(self.now, Input::Connected { conn });
                if !rest.is_empty() {
                    self.machine.handle(self.now, Input::Received { conn, bytes: rest });
                }
            }
            Err(why) => {
                self.actions.push_back(warning(&plain.host, plain.port, &why));
                self.plain.remove(&conn);
                self.actions.push_back(Action::Close(conn));
                self.machine.handle(self.now, Input::Closed { conn, why: CloseReason::Failed });
            }
        }
    }

    fn connected(&mut self, conn: ConnId) {
        if let Some(session) = self.sessions.get_mut(&conn) {
            session.start();
        }
        self.go_on(conn);
    }

    fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        let mut rest = bytes;
        while !rest.is_empty() {
            match session.receive(&mut rest) {
                Ok(read) => {
                    if read.ready {
                        self.machine.handle(self.now, Input::Connected { conn });
                    }
                    if !read.bytes.is_empty() {
                        self.machine.handle(self.now, Input::Received { conn, bytes: &read.bytes });
                    }
                    if read.end {
                        self.machine.handle(self.now, Input::Finished { conn });
                    }
                }
                Err(broken) => return self.fail(conn, broken),
            }
        }
        self.go_on(conn);
    }

    /// Without a word of farewell, nobody knows whether that was all.
    fn finished(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get(&conn) else { return };
        if let Some(broken) = session.cut_off() {
            self.fail(conn, broken);
        }
    }

    fn fail(&mut self, conn: ConnId, broken: Broken) {
        let Some(session) = self.sessions.remove(&conn) else { return };
        if let Some(text) = &broken.text {
            self.actions.push_back(warning(&session.host, session.port, text));
        }
        self.actions.push_back(Action::Close(conn));
        self.machine.handle(self.now, Input::Closed { conn, why: broken.why });
    }

    /// Encrypts what the machine has to say, as much as there is room for, and
    /// has it sent.
    fn go_on(&mut self, conn: ConnId) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        while session.has_room() {
            let n = match session.encrypt(self.machine.outgoing(conn)) {
                0 => break,
                n => n,
            };
            self.machine.sent(self.now, conn, n);
        }
        let all = self.machine.outgoing(conn).is_empty();
        self.actions.extend(session.actions(conn, all));
    }
}

fn warning(host: &str, port: u16, text: &str) -> Action {
    Action::Event(Event::Warning(format!("{host}:{port}: {text}")))
}

impl<M: Machine> Machine for Secure<'_, M> {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.now = now;
        match input {
            Input::Connected { conn } if self.sessions.contains_key(&conn) => self.connected(conn),
            Input::Received { conn, bytes } if self.sessions.contains_key(&conn) => {
                self.received(conn, bytes);
            }
            Input::Finished { conn } if self.sessions.contains_key(&conn) => self.finished(conn),
            Input::Connected { conn } if self.plain.contains_key(&conn) => {
                if let Some(plain) = self.plain.get_mut(&conn) {
                    plain.start();
                }
                self.actions.push_back(Action::Flush(conn));
            }
            Input::Received { conn, bytes } if self.plain.contains_key(&conn) => {
                self.received_of_proxy(conn, Some(bytes));
            }
            Input::Finished { conn } if self.plain.contains_key(&conn) => {
                self.received_of_proxy(conn, None);
            }
            input => {
                if let Input::Closed { conn, .. } = input {
                    let session = self.sessions.remove(&conn).filter(Session::is_in_tunnel);
                    let session = session.map(|session| (session.host, session.port));
                    let plain = self.plain.remove(&conn).map(|plain| (plain.host, plain.port));
                    if let Some((host, port)) = session.or(plain) {
                        let text = "the proxy cannot be reached: check HTTPS_PROXY and HTTP_PROXY";
                        self.actions.push_back(warning(&host, port, text));
                    }
                }
                self.machine.handle(now, input);
            }
        }
    }

    fn poll(&mut self) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            match self.machine.poll()? {
                Action::Connect { conn, to: Target::Tls { host, port } } => {
                    if let Some(action) = self.open(conn, host, port) {
                        return Some(action);
                    }
                }
                Action::Connect { conn, to: Target::Tcp { host, port } } => {
                    return Some(self.detour(conn, host, port));
                }
                Action::Flush(conn) if self.sessions.contains_key(&conn) => self.go_on(conn),
                Action::Finish(conn) if self.sessions.contains_key(&conn) => {
                    if let Some(session) = self.sessions.get_mut(&conn) {
                        session.finish();
                    }
                    self.go_on(conn);
                }
                action => {
                    if let Action::Close(conn) = action {
                        self.sessions.remove(&conn);
                        self.plain.remove(&conn);
                    }
                    return Some(action);
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        match (self.sessions.get(&conn), self.plain.get(&conn)) {
            (Some(session), _) => session.outgoing(),
            (None, Some(plain)) => plain.outgoing(),
            (None, None) => self.machine.outgoing(conn),
        }
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.now = now;
        if let Some(plain) = self.plain.get_mut(&conn) {
            return plain.sent(n);
        }
        match self.sessions.get_mut(&conn) {
            Some(session) => {
                session.sent(n);
                self.go_on(conn);
            }
            None => self.machine.sent(now, conn, n),
        }
    }
}
