//! The gateway from end to end, from one description: every scenario is played
//! on the simulator, with weather of several seeds, and by the program itself on
//! both of its runtimes; at every door, before every kind of server, in every
//! revision that it is meant for.
//!
//! `SEEDS=FIRST..END` has the simulator play those seeds instead of a few.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

#[macro_use]
mod stage;

mod conversations;
mod ends;
mod faults;
mod features;

use mcpx_core::protocol::revision::Revision;
use mcpx_tests::net::{Door, Upstream};
use stage::Cast;

const EVERY: &[Revision] = &[
    Revision::R2024_11_05,
    Revision::R2025_03_26,
    Revision::R2025_06_18,
    Revision::R2025_11_25,
    Revision::R2026_07_28,
];
const LEGACY: &[Revision] = EVERY.split_last().unwrap().1;
const NEWEST_LEGACY: &[Revision] = &[Revision::R2025_11_25];
const MODERN: &[Revision] = &[Revision::R2026_07_28];
const ELICITING: &[Revision] = EVERY.split_at(2).1;

const DEMOS: &[Upstream] = &[Upstream::Demo, Upstream::Child, Upstream::Url];
const BEHIND: &[Upstream] = DEMOS.split_first().unwrap().1;
/// Those whose streams reach the gateway, or begin there.
const STREAMING: &[Upstream] = &[Upstream::Demo, Upstream::Url];
const SCRIPTED: &[Upstream] = &[Upstream::Scripted];
const ABSENT: &[Upstream] = &[Upstream::Missing, Upstream::Refused, Upstream::Unresolved];

const HTTP: &[Door] = &[Door::Http, Door::HttpUnix];
const LINES: &[Door] = &[Door::Lines, Door::LinesUnix, Door::Stdio];
const STDIO: &[Door] = &[Door::Stdio];
const SOCKETS: &[Door] = &[Door::Http, Door::HttpUnix, Door::Lines, Door::LinesUnix];
const DOORS: &[Door] = &Door::ALL;

scenarios! {
    features::handshake: DOORS, DEMOS, EVERY;
    features::tools: DOORS, DEMOS, EVERY;
    features::resources: DOORS, DEMOS, EVERY;
    features::prompts: DOORS, DEMOS, EVERY;
    features::ids: DOORS, DEMOS, EVERY;
    features::unknown_methods: DOORS, DEMOS, EVERY;
    features::ping: DOORS, DEMOS, LEGACY;
    features::keep_alive: HTTP, DEMOS, EVERY;
    conversations::progress: DOORS, DEMOS, EVERY;
    conversations::cancellation: DOORS, DEMOS, EVERY;
    conversations::nobody_waits: DOORS, DEMOS, EVERY;
    conversations::log_messages: DOORS, DEMOS, EVERY;
    conversations::elicitation: DOORS, DEMOS, ELICITING;
    conversations::sampling: DOORS, DEMOS, EVERY;
    conversations::updates: DOORS, DEMOS, EVERY;
    conversations::roots: DOORS, SCRIPTED, LEGACY;
    conversations::changed_lists: DOORS, SCRIPTED, LEGACY;
    conversations::polling: HTTP, STREAMING, NEWEST_LEGACY;
    conversations::strangers_do_not_meet: SOCKETS, DEMOS, EVERY;
    ends::deleted_sessions: HTTP, DEMOS, LEGACY;
    ends::end_of_input: STDIO, DEMOS, EVERY;
    ends::end_of_input_in_flight: LINES, DEMOS, EVERY;
    ends::stop_in_flight: DOORS, DEMOS, EVERY;
    ends::stop_while_listening: DOORS, DEMOS, MODERN;
    ends::second_stop: DOORS, DEMOS, EVERY;
    faults::broken_json: DOORS, DEMOS, EVERY;
    faults::slow_reader: SOCKETS, DEMOS, EVERY;
    faults::dying_server: SOCKETS, SCRIPTED, LEGACY;
    faults::reborn_server: DOORS, SCRIPTED, LEGACY;
    faults::killed_servers: LINES, SCRIPTED, NEWEST_LEGACY;
    faults::noisy_server: DOORS, SCRIPTED, LEGACY;
    faults::silent_server: DOORS, SCRIPTED, LEGACY;
    faults::other_era: DOORS, SCRIPTED, MODERN;
    faults::absent_server: DOORS, ABSENT, EVERY;
    faults::vanishing_host: SOCKETS, BEHIND, EVERY;
}
