//! What can run in the simulated world.

use std::collections::BTreeSet;

use mcpx_core::driver::{ExitStatus, Machine};
use mcpx_core::gateway::Gateway;

/// A machine that can be a process.
pub trait Program: Machine {
    /// How the process ends when the machine exits.
    fn status(&self) -> ExitStatus {
        ExitStatus::Code(0)
    }

    /// What it remembers of those whom it served.
    fn remembered(&self) -> BTreeSet<&'static str> {
        BTreeSet::new()
    }
}

impl Program for mcpx::demo::Demo {}

impl Program for Gateway {
    fn status(&self) -> ExitStatus {
        ExitStatus::Code(i32::from(self.is_deserted()))
    }

    fn remembered(&self) -> BTreeSet<&'static str> {
        Self::remembered(self)
    }
}
