//! The visit as a machine: its inputs, its time, its end.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::result::{Answer, Job, Listing};
use super::work::Page;
use crate::client::session::{self, CallId, Event, Session, Trouble};
use crate::driver::{Action, ConnId, Input, Machine};
use crate::time::Instant;

/// What a visit is made with.
#[derive(Debug)]
pub struct Config {
    /// The session with the server.
    pub session: session::Config,
    /// The limits of the visit.
    pub limits: Limits,
}

/// Limits of a [`OneShot`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// All together, from the start, may take this long. Default 10 minutes.
    pub total: Duration,
    /// Pages of one list. Default 1,000.
    pub pages: usize,
    /// Bytes of all lists. Default 64 MiB.
    pub list_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: Duration::from_secs(600), pages: 1000, list_bytes: 64 << 20 }
    }
}

/// One visit to a server. See the [module](super).
#[derive(Debug)]
pub struct OneShot {
    pub(super) limits: Limits,
    pub(super) session: Session,
    pub(super) stage: Stage,
    /// What has been listed for the current job.
    pub(super) listing: Listing,
    /// The current job and those after it.
    pub(super) jobs: VecDeque<Job>,
    results: Vec<Result<Answer, Trouble>>,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// The peers have still to agree.
    Beginning,
    /// The current job is a call.
    Calling(CallId),
    /// A list is being read for the current job.
    Listing(CallId, Page),
    /// The server is being ended.
    Leaving,
}

impl OneShot {
    /// A visit for `jobs`, in their order.
    pub fn new(config: Config, jobs: Vec<Job>) -> Self {
        Self {
            limits: config.limits,
            session: Session::new(config.session),
            stage: Stage::Beginning,
            listing: Listing::default(),
            jobs: VecDeque::from(jobs),
            results: Vec::new(),
        }
    }

    /// What came of each job, in their order. All of them have a result once the
    /// machine has asked to exit.
    pub fn into_results(self) -> Vec<Result<Answer, Trouble>> {
        self.results
    }

    /// The current job is done.
    pub(super) fn finish_job(&mut self, result: Result<Answer, Trouble>) {
        if self.jobs.pop_front().is_some() {
            self.results.push(result);
        }
        self.next_job();
    }

    /// Neither the current job nor any other can be done.
    pub(super) fn give_up(&mut self, trouble: &Trouble) {
        for _ in self.jobs.drain(..) {
            self.results.push(Err(trouble.clone()));
        }
        self.leave(trouble);
    }

    pub(super) fn leave(&mut self, trouble: &Trouble) {
        if !matches!(self.stage, Stage::Leaving) {
            self.stage = Stage::Leaving;
            self.session.end(trouble);
        }
    }

    fn settle(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match (event, &self.stage) {
                (Event::Ended(trouble), _) => {
                    // It ends itself.
                    self.stage = Stage::Leaving;
                    self.give_up(&trouble);
                }
                (Event::Ready, Stage::Beginning) => self.next_job(),
                (Event::Answer { outcome: Err(Trouble::Failure(failure)), .. }, _) => {
                    self.give_up(&Trouble::Failure(failure));
                }
                (Event::Answer { call, outcome }, Stage::Calling(current)) if call == *current => {
                    self.on_called(outcome);
                }
                (Event::Answer { call, outcome }, Stage::Listing(current, page))
                    if call == *current =>
                {
                    let page = page.clone();
                    self.on_listed(outcome, page);
                }
                // Nobody waits for it.
                _ => {}
            }
        }
    }

    /// When all must be done.
    fn end(&self) -> Option<Instant> {
        let end = Instant::START + self.limits.total;
        (!matches!(self.stage, Stage::Leaving)).then_some(end)
    }
}

impl Machine for OneShot {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.session.handle(now, input);
        self.settle();
        if self.end().is_some_and(|end| end <= now) {
            self.give_up(&Trouble::OutOfTime(self.limits.total));
            self.settle();
        }
    }

    fn poll(&mut self) -> Option<Action> {
        self.session.poll()
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline().into_iter().chain(self.end()).min()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.session.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.session.sent(now, conn, n);
    }
}
