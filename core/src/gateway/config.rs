//! What a gateway is made with.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::many::{Expose, Naming, View};
use crate::client::probe::Protocol;
use crate::client::{self, Place};
use crate::server;

/// What a gateway is made with.
#[derive(Debug)]
pub struct Config {
    /// Our side towards hosts.
    pub endpoint: server::Config,
    /// The servers, in the order in which hosts see what they offer.
    pub servers: Vec<Server>,
    /// How hosts see them, unless there is one and it is shown as it is.
    pub catalogue: Catalogue,
    /// Requests that run when we are asked to stop have this long. Default 5 s.
    pub drain: Duration,
}

impl Config {
    /// The defaults, for one server and these hosts.
    pub fn new(server: Server, endpoint: server::Config) -> Self {
        Self::of(Vec::from([server]), endpoint)
    }

    /// The defaults, for these servers and these hosts.
    pub fn of(servers: Vec<Server>, endpoint: server::Config) -> Self {
        Self { endpoint, servers, catalogue: Catalogue::default(), drain: Duration::from_secs(5) }
    }
}

/// How hosts see many servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Catalogue {
    /// How things are named.
    pub naming: Naming,
    /// What is shown of tools.
    pub expose: Expose,
    /// A host that asks what there is waits so long for servers that have just been
    /// started, or asked. What comes later is told with `list_changed`. Default 5 s.
    pub patience: Duration,
    /// Items of a list that are given at a time. Default 1,000.
    pub page: usize,
    /// Requests that wait for servers that have just been started; more are refused.
    /// Default 1,024.
    pub waiting: usize,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            naming: Naming::default(),
            expose: Expose::default(),
            patience: Duration::from_secs(5),
            page: 1000,
            waiting: 1024,
        }
    }
}

/// A server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// Its name in messages to people.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// What it is taken to speak. Default: it is asked.
    pub protocol: Protocol,
    /// Whether it is started, or connected to, before anybody needs it.
    pub eager: bool,
    /// Who shares it.
    pub instances: Instances,
    /// What it is told of roots where no host can be asked: URIs, `file://…`.
    pub roots: Vec<String>,
    /// What hosts see of it.
    pub view: View,
    /// What a connection to it may cost.
    pub upstream: client::Limits,
    /// Our own limits.
    pub limits: Limits,
}

impl Server {
    /// The defaults, for the server at this place.
    pub fn new(name: &str, place: Place) -> Self {
        Self {
            name: name.into(),
            place,
            protocol: Protocol::Auto,
            eager: false,
            instances: Instances::default(),
            roots: Vec::new(),
            view: View::default(),
            upstream: client::Limits::default(),
            limits: Limits::default(),
        }
    }
}

/// Who shares a server: its process, or the connections that requests share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Instances {
    /// All hosts.
    #[default]
    Shared,
    /// The hosts with the same one of our [tokens](crate::server::Access). All others
    /// share one, too. A server that keeps something between requests keeps it for them
    /// alone (2026-07-28 `basic`, stateless protocol). All limits are of one of them.
    PerToken,
}

/// Limits of a [`Gateway`](super::Gateway) on its side of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A request without an answer for this long is cancelled and fails. Long enough
    /// for people to be asked meanwhile. Streams that are listened to have no such
    /// limit. Default 1 hour.
    pub call_idle: Duration,
    /// Whether that time begins anew with each progress notification. Default `true`.
    pub progress_counts: bool,
    /// The longest that a request may take even then. Default 1 day.
    pub call_total: Duration,
    /// A server that does not answer `server/discover` for this long is taken for
    /// a legacy one (a process) or a broken one (a URL). Default 10 s.
    pub probe: Duration,
    /// How long it is believed that the server is a legacy one when it said so.
    /// Default 10 minutes.
    pub legacy_verdict: Duration,
    /// The same when it only exited or kept silent, which may have been bad luck.
    /// Default 10 s.
    pub legacy_guess: Duration,
    /// A server that does not answer our own `initialize` for this long has failed:
    /// that of the connection for requests without a session, or of one that takes
    /// the place of another. Default 1 minute.
    pub handshake: Duration,
    /// A connection that requests share, and the process behind it, ends when nobody
    /// has used it for this long. Not if the server was to be started before anybody
    /// needs it, makes tasks of calls, or tells hosts when its lists change. Default
    /// 10 minutes.
    pub idle: Duration,
    /// Connections to the server, and processes, at a time; those that are still
    /// being stopped count. One more session is refused. Default 1,024.
    pub servers: usize,
    /// A session whose server no longer knows it, or has died, is begun again at once,
    /// unless it is younger than this. Default 1 s.
    pub revive_pause: Duration,
    /// Resources of a session that are subscribed to again when it begins again.
    /// Default 1,024.
    pub subscriptions: usize,
    /// How often in a row a process may fail to start without a pause. After that the
    /// pauses are of 1 s, 2 s, 4 s and so on. Default 3.
    pub start_tries: u32,
    /// The longest of these pauses. Default 1 minute.
    pub start_pause: Duration,
    /// After so many failures it is given up for `give_up_pause`. Default 10.
    pub give_up: u32,
    /// The pause then. Default 10 minutes.
    pub give_up_pause: Duration,
    /// How often in a row a subscription is taken up again in vain, after pauses of 1 s
    /// to 32 s, before its host is told. Default 10.
    pub relistens: u32,
    /// Calls of modern hosts that a legacy server may ask something about, running or
    /// parked until their hosts come back with answers. Default 256.
    pub parked: usize,
    /// How long such a host may take to come back. Default 10 minutes.
    pub parked_time: Duration,
    /// How often a modern server may ask in the middle of one request of a legacy host.
    /// Default 64.
    pub rounds: u32,
    /// Items of each of its lists that hosts see, if there are several servers. Default
    /// 10,000.
    pub items: usize,
    /// Lists of a server that does not tell when they change are read again, when hosts
    /// want them, if they are older than this. Default 1 minute.
    pub refresh: Duration,
    /// Requests that wait for that verdict, or for that handshake; more are
    /// refused. Default 256.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_idle: Duration::from_secs(3600),
            progress_counts: true,
            call_total: Duration::from_secs(24 * 3600),
            probe: Duration::from_secs(10),
            legacy_verdict: Duration::from_secs(600),
            legacy_guess: Duration::from_secs(10),
            handshake: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            revive_pause: Duration::from_secs(1),
            subscriptions: 1024,
            servers: 1024,
            relistens: 10,
            start_tries: 3,
            start_pause: Duration::from_secs(60),
            give_up: 10,
            give_up_pause: Duration::from_secs(600),
            parked: 256,
            parked_time: Duration::from_secs(600),
            rounds: 64,
            items: 10_000,
            refresh: Duration::from_secs(60),
            waiting: 256,
        }
    }
}
