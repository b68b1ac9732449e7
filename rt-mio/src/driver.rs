//! The loop for those who turn it by hand.

use std::io;

use mcpx_core::client::Drive;
use mcpx_core::driver::Machine;
use mcpx_core::event::Event;
use mcpx_core::time::Instant;
use mio::Events;

use crate::turn::{EVENTS, Loop};

/// A loop without listeners, which leaves SIGINT and SIGTERM to the program.
pub struct Driver {
    inner: Loop,
    events: Events,
}

impl Drive for Driver {
    type Error = io::Error;

    fn start() -> io::Result<Self> {
        let inner = Loop::new(Vec::new(), false)?;
        Ok(Self { inner, events: Events::with_capacity(EVENTS) })
    }

    fn now(&mut self) -> Instant {
        self.inner.look_at_the_clock();
        self.inner.moment()
    }

    fn turn<M: Machine>(
        &mut self,
        machine: &mut M,
        until: Option<Instant>,
        observe: &mut dyn FnMut(Event),
    ) -> io::Result<Option<Instant>> {
        self.inner.look_at_the_clock();
        let mut observe = |event| observe(event);
        let goes_on = self.inner.turn(machine, until, &mut observe, &mut self.events)?;
        Ok(goes_on.then(|| self.inner.moment()))
    }
}
