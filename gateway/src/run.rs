//! `mcpx daemon` and `mcpx serve`: the gateway on a runtime.

use std::io::{self, IsTerminal};

use mcpx_core::driver::{Action, ConnId, Input, Machine};
use mcpx_core::event::Event;
use mcpx_core::gateway::{self, Gateway};
use mcpx_core::time::Instant;

use crate::access;
use crate::args::{Common, Runtime, Source};
use crate::demo::Demo;
use crate::error::{Error, Exit};
use crate::listen::{self, Door, Socket};
use crate::record::{self, Log, Recorded};
use crate::reload::Reloading;
use crate::report::{self, Reporter};
use crate::setup::Setup;
use crate::tls::{self, Secure};
use crate::upstream::{self, Upstreams};

/// Serves over sockets until the user stops it.
pub(crate) fn daemon(
    listen: &[String],
    access: &access::Options,
    record: Option<&record::Options>,
    common: &Common,
) -> Result<Exit, Error> {
    let upstreams = upstreams(common)?;
    let tokens = access.tokens()?;
    let mut listening = listen::bind(listen, access)?;
    let (doors, lines) = (std::mem::take(&mut listening.doors), listening.lines);
    let setup = Setup { doors, access: access.clone(), tokens };
    let places = listening.sockets.into_iter().map(Place::Socket).collect();
    run(upstreams, &setup, record, places, lines, common)?;
    Ok(Exit::Done)
}

/// Serves on standard input and output until that ends.
pub(crate) fn serve(record: Option<&record::Options>, common: &Common) -> Result<Exit, Error> {
    let upstreams = upstreams(common)?;
    if io::stdin().is_terminal() {
        report::say(
            "this speaks MCP on standard input and output, and is meant to be started by a host; \
             `mcpx help` shows what else there is",
        );
    }
    let setup = Setup { doors: vec![Door::Stdio], ..Setup::default() };
    run(upstreams, &setup, record, vec![Place::Stdio], Vec::new(), common)
}

/// The servers behind us; nothing if we are the server.
fn upstreams(common: &Common) -> Result<Option<Upstreams>, Error> {
    match &common.source {
        Source::Demo if common.expose.is_none() => Ok(None),
        _ => upstream::find(common).map(Some),
    }
}

fn run(
    upstreams: Option<Upstreams>,
    setup: &Setup,
    record: Option<&record::Options>,
    places: Vec<Place>,
    lines: Vec<String>,
    common: &Common,
) -> Result<Exit, Error> {
    let endpoint = setup.endpoint().map_err(Error::failed)?;
    let seed = seed()?;
    let log = record.map(|it| Log::new(it, seed, setup, upstreams.as_ref(), common)).transpose()?;
    let Some(upstreams) = upstreams else {
        let mut demo = Recorded::new(Demo::new(endpoint, seed), log);
        let tls = tls::Shared::default();
        drive(&mut Announced { machine: &mut demo, lines }, tls, places, common)?;
        return Ok(Exit::Done);
    };
    let tls = tls::Shared::new(upstreams.tls()?.into());
    let config = gateway::Config::of(upstreams.servers(), endpoint);
    let config = gateway::Config { catalogue: upstreams.catalogue, ..config };
    let mut gateway = Recorded::new(Gateway::new(config, seed), log);
    let mut machine = Reloading::new(&mut gateway, tls.clone(), common);
    drive(&mut Announced { machine: &mut machine, lines }, tls, places, common)?;
    Ok(if gateway.machine.is_deserted() { Exit::Failed } else { Exit::Done })
}

fn seed() -> Result<[u8; 32], Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| Error::failed(format!("the system gives no random bytes: {error}")))?;
    Ok(seed)
}

/// Where connections come from, whatever the runtime.
pub(crate) enum Place {
    Stdio,
    Socket(Socket),
}

/// Runs a machine on the chosen runtime.
pub(crate) fn drive<M: Machine>(
    machine: &mut M,
    tls: tls::Shared,
    places: Vec<Place>,
    common: &Common,
) -> Result<(), Error> {
    let machine = &mut Secure::new(machine, tls);
    let mut reporter = Reporter::new(common.quiet);
    let observe = |event: Event| reporter.event(&event);
    let done = match common.runtime {
        #[cfg(unix)]
        Runtime::Mio => {
            let listeners = places.into_iter().map(|place| match place {
                Place::Stdio => mcpx_mio::Listener::Stdio,
                Place::Socket(Socket::Tcp(socket)) => mcpx_mio::Listener::Tcp(socket),
                Place::Socket(Socket::Unix(socket)) => mcpx_mio::Listener::Unix(socket),
            });
            mcpx_mio::run(machine, listeners.collect(), observe)
        }
        Runtime::Blocking => {
            let listeners = places.into_iter().map(|place| match place {
                Place::Stdio => mcpx_blocking::Listener::Stdio,
                Place::Socket(Socket::Tcp(socket)) => mcpx_blocking::Listener::Tcp(socket),
                #[cfg(unix)]
                Place::Socket(Socket::Unix(socket)) => mcpx_blocking::Listener::Unix(socket),
            });
            mcpx_blocking::run(machine, listeners.collect(), observe)
        }
    };
    done.map_err(|error| Error::failed(format!("the system refuses to go on: {error}")))
}

/// A machine that says where it listens when the runtime first asks it for
/// something: only then are signals and connections taken care of.
struct Announced<'m, M> {
    machine: &'m mut M,
    lines: Vec<String>,
}

impl<M: Machine> Machine for Announced<'_, M> {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.machine.handle(now, input);
    }

    fn poll(&mut self) -> Option<Action> {
        for line in self.lines.drain(..) {
            report::write(&line);
        }
        self.machine.poll()
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.machine.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.machine.sent(now, conn, n);
    }
}
