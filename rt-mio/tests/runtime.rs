//! What a runtime owes a machine, proved on this one.
#![allow(clippy::unwrap_used)]

use mcpx_mio as runtime;

mod contract;
