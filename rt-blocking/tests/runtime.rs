//! What a runtime owes a machine, proved on this one.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use mcpx_blocking as runtime;

#[path = "../../rt-mio/tests/contract/mod.rs"]
mod contract;
