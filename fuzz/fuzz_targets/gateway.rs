//! A whole gateway: hosts, servers and time as a script says.
//!
//! The same script is played with its bytes whole and cut, and must show the
//! same. Then it is played over and over with small limits and peers that do
//! not read: memory stays bounded, when all have left nothing is kept, and when
//! it is asked to stop it ends.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use mcpx_core::driver::Input;
use mcpx_core::{client, server};
use mcpx_fuzz::input::{Cuts, Source};
use mcpx_fuzz::memory::Watch;
use mcpx_fuzz::script::{gateway, step};
use mcpx_fuzz::world::{Shown, World};

/// What the gateway may hold while small limits are in force: the heads of a
/// few connections, mostly, and the room that buffers keep.
const BUSY: usize = 2 << 20;
/// What it may hold when everybody has left.
const DESERTED: usize = 200 << 10;

fn play(process: bool, mut cuts: Cuts, script: Source<'_>) -> Shown {
    let limits = server::Limits {
        message_bytes: 2000,
        connections: 6,
        in_flight: 8,
        session_idle: Duration::from_secs(120),
        ..Default::default()
    };
    let upstream = client::Limits { message_bytes: 2000, ..Default::default() };
    let mut world = World::new(gateway(process, limits, upstream), true);
    let mut source = script;
    while !source.is_empty() && !world.shown.exited {
        step(&mut world, &mut source, &mut cuts, false);
    }
    world.shown
}

fn press(process: bool, times: usize, script: Source<'_>) {
    let limits = server::Limits {
        message_bytes: 2000,
        connections: 4,
        sessions: 4,
        in_flight: 4,
        waiting_messages: 4,
        waiting_bytes: 2000,
        held_bytes: 2000,
        outgoing_hard: 20_000,
        session_idle: Duration::from_secs(120),
        ..Default::default()
    };
    let upstream = client::Limits { message_bytes: 2000, connections: 4, ..Default::default() };
    let busy = Watch::new(BUSY);
    let deserted = Watch::new(DESERTED);
    let mut world = World::new(gateway(process, limits, upstream), false);
    for _ in 0..times {
        let mut source = script;
        while !source.is_empty() && !world.shown.exited {
            step(&mut world, &mut source, &mut Cuts::none(), true);
            busy.check();
        }
    }
    world.desert();
    if !world.shown.exited {
        deserted.check();
        world.handle(Input::Stop);
        world.handle(Input::Stop);
        world.desert();
    }
    assert!(world.shown.exited, "it was asked to stop twice, and has not ended");
}

fuzz_target!(|data: &[u8]| {
    let mut source = Source::new(data);
    let process = source.below(2) == 0;
    let times = 1 + source.below(32);
    let cuts = source.cuts();
    let whole = play(process, Cuts::none(), source);
    assert_eq!(play(process, cuts, source), whole);
    press(process, times, source);
});
