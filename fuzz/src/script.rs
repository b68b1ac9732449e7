//! A script: what happens, one thing after the other.

use std::time::Duration;

use mcpx_core::driver::{CloseReason, Command, ExitStatus, Input};
use mcpx_core::gateway::{self, Config, Gateway};
use mcpx_core::protocol::origin::OriginRules;
use mcpx_core::wire::http1::Url;
use mcpx_core::{client, server};

use crate::input::{Cuts, Source};
use crate::peers;
use crate::world::{Link, World};

/// The gateway that scripts are played to, with a process or a URL behind it.
pub fn gateway(process: bool, limits: server::Limits, upstream: client::Limits) -> Gateway {
    let rules = OriginRules::new("127.0.0.1:8808", None, None).expect("the lists are empty");
    let place = if process {
        client::Place::Process(Command { program: "server".into(), ..Command::default() })
    } else {
        let url = Url::parse("http://127.0.0.1:3000/mcp").expect("it is a URL");
        client::Place::Url { url, fields: vec![("X-Key".into(), "k".into())] }
    };
    let listeners =
        vec![server::Listener::Http(rules), server::Listener::Ndjson, server::Listener::Stdio];
    let endpoint = server::Config { listeners, limits, ..server::Config::default() };
    let limits = gateway::Limits { call_idle: Duration::from_secs(60), ..Default::default() };
    let server = gateway::Server { upstream, limits, ..gateway::Server::new("server", place) };
    Gateway::new(Config::new(server, endpoint), [7; 32])
}

/// Plays the next thing of a script.
///
/// With `pressure`, peers may stop reading, and whoever is paused is not read
/// from. Otherwise all bytes are written at once, and how they come depends on
/// nothing but the script.
pub fn step(world: &mut World, source: &mut Source<'_>, cuts: &mut Cuts, pressure: bool) {
    let kind = source.below(16);
    let n = source.below(8);
    let host = |link: &Link| link.listener.is_some() && !(pressure && link.paused);
    let server = |link: &Link| {
        link.listener.is_none() && link.connected && !link.dropped && !(pressure && link.paused)
    };
    match kind {
        // Standard input and output come once.
        0 if n % 4 == 2 && !world.links.is_empty() => {}
        0 if world.links.len() >= 64 => {}
        0 => world.accept((n % 4) as u32),
        1..=5 => {
            let Some((conn, link)) = world.pick(n, host) else { return world.accept(n as u32 % 2) };
            let session = world.session.clone();
            let bytes = peers::host(source, link.listener == Some(0), session.as_deref());
            for piece in cuts.pieces(&bytes) {
                world.receive(conn, piece);
            }
        }
        6..=9 => {
            let asked = |link: &Link| link.listener.is_none() && !link.connected;
            if let Some((conn, _)) = world.pick(n, asked) {
                return if n == 7 {
                    world.close(conn, CloseReason::Refused)
                } else {
                    world.connected(conn)
                };
            }
            let Some((conn, link)) = world.pick(n, server) else { return };
            let bytes = peers::server(source, link.process);
            // Which connection a request takes depends on when the response before
            // it has come to its end: to see nothing else, responses stay whole.
            let whole = &mut Cuts::none();
            let cuts = if link.process { cuts } else { whole };
            for piece in cuts.pieces(&bytes) {
                world.receive(conn, piece);
            }
        }
        10 => {
            let process = |link: &Link| link.process && link.connected;
            let Some((conn, _)) = world.pick(n, process) else { return };
            for bytes in cuts.pieces(source.bytes()) {
                world.handle(Input::Stderr { conn, bytes });
            }
        }
        11 => {
            let finishing = |link: &Link| host(link) || server(link);
            let Some((conn, _)) = world.pick(n, finishing) else { return };
            world.handle(Input::Finished { conn });
        }
        12 => {
            let closing = |link: &Link| !link.dropped;
            let Some((conn, _)) = world.pick(n, closing) else { return };
            world.close(conn, CloseReason::Reset);
        }
        13 => {
            let process = |link: &Link| link.process && link.connected;
            let Some((conn, _)) = world.pick(n, process) else { return };
            world.exit(conn, if n == 0 { ExitStatus::Signal(9) } else { ExitStatus::Code(1) });
        }
        14 => {
            let millis = [1, 100, 1000, 2000, 5000, 15_000, 61_000, 200_000][n];
            world.pass(Duration::from_millis(millis));
        }
        _ if pressure => {
            let Some((conn, link)) = world.pick(n, |link| !link.dropped) else { return };
            if link.stuck {
                world.write(conn, 64 * usize::from(source.byte()));
            }
            if let Some(link) = world.links.get_mut(&conn) {
                link.stuck = source.below(4) != 0;
            }
            world.pass(Duration::ZERO);
        }
        _ if n == 0 => world.handle(Input::Stop),
        _ => {}
    }
}
