//! The owner of the machine for those who turn it by hand.

use std::io;

use mcpx_core::client::Drive;
use mcpx_core::driver::Machine;
use mcpx_core::event::Event;
use mcpx_core::time::Instant;

use crate::turn::Owner;

/// A runtime without listeners, which leaves SIGINT and SIGTERM to the program.
pub struct Driver(Owner);

impl Drive for Driver {
    type Error = io::Error;

    fn start() -> io::Result<Self> {
        Owner::new(Vec::new(), false).map(Self)
    }

    fn now(&mut self) -> Instant {
        self.0.look_at_the_clock();
        self.0.moment()
    }

    fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Instant>,
        observe: &mut dyn FnMut(Event),
    ) -> io::Result<Option<Instant>> {
        self.0.look_at_the_clock();
        let goes_on = self.0.turn(machine, until, &mut |event| observe(event))?;
        Ok(goes_on.then(|| self.0.moment()))
    }
}
