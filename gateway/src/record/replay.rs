//! Reading a recording, and doing it again: the same machine, the same inputs at the
//! same moments, and no network.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpx_core::driver::{Action, Machine};
use mcpx_core::gateway::{self, Gateway};
use mcpx_core::time::Instant;
use serde_json::Value;

use super::entry::{Entry, What};
use super::settings::Settings;
use super::transcript::{Out, Printer};
use crate::demo::Demo;
use crate::error::{Error, Exit};
use crate::report;

/// What the command line says about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) path: PathBuf,
    /// As JSON lines.
    pub(crate) json: bool,
    /// Nothing after this moment.
    pub(crate) until: Option<Duration>,
    /// What another build made of it, as JSON lines.
    pub(crate) diff: Option<PathBuf>,
}

/// Replays a recording, and prints what happens.
pub(crate) fn replay(options: &Replay) -> Result<Exit, Error> {
    let mut lines = Lines::open(&options.path)?;
    let Some(first) = lines.next()? else { return Err(lines.wrong("it is empty")) };
    let settings = Settings::read(&first).map_err(|why| lines.wrong(&why))?;
    let ours = env!("CARGO_PKG_VERSION");
    if settings.version != ours {
        let theirs = &settings.version;
        report::say(&format!("it was recorded by mcpx {theirs}, and this is {ours}"));
    }
    let mut printer = match &options.diff {
        Some(path) => Printer::diff(Lines::open(path)?),
        None if options.json => Printer::Json,
        None => Printer::text(settings.setup.doors.clone()),
    };
    let mut again = Again::new(settings).map_err(|why| lines.wrong(&why))?;
    let until = options.until.map(|until| Instant::START + until);
    let mut begun = None;
    while let Some(line) = lines.next()? {
        // The last line may have been cut off with the program.
        let Some(entry) = Entry::read(&line) else { break };
        // Moments are counted from the first.
        let zero = *begun.get_or_insert(entry.at);
        let at = Instant::START + entry.at.since(zero);
        if until.is_some_and(|until| at > until) {
            break;
        }
        printer.happened(at, &entry.what)?;
        again.happen(entry, |out| printer.did(at, out)).map_err(|why| lines.wrong(&why))??;
    }
    if again.strayed > 0 {
        report::say(&format!(
            "this build writes less than the one that recorded it, {} times: what follows the \
             first of them is its own",
            again.strayed
        ));
    }
    printer.end()
}

/// The lines of a file.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    pub(super) number: usize,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| Error::usage(format!("{shown}: {error}")))?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(file), number: 0 })
    }

    pub(super) fn next(&mut self) -> Result<Option<String>, Error> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        let n = read.map_err(|error| self.wrong(&error.to_string()))?;
        self.number += 1;
        Ok((n > 0).then_some(line))
    }

    pub(super) fn wrong(&self, why: &str) -> Error {
        Error::usage(format!("{}: line {}: {why}", self.path.display(), self.number.max(1)))
    }
}

/// The machine once more.
pub(super) struct Again {
    machine: Kind,
    settings: Settings,
    /// How often it had written less than was recorded.
    pub(super) strayed: u64,
}

enum Kind {
    Demo(Box<Demo>),
    Gateway(Box<Gateway>),
}

impl Kind {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Demo(demo) => &mut **demo,
            Self::Gateway(gateway) => &mut **gateway,
        }
    }
}

impl Again {
    pub(super) fn new(mut settings: Settings) -> Result<Self, String> {
        let (endpoint, seed) = (settings.setup.endpoint()?, settings.seed);
        let machine = match settings.upstreams.take() {
            None => Kind::Demo(Box::new(Demo::new(endpoint, seed))),
            Some(found) => {
                let config = gateway::Config::of(found.servers(), endpoint);
                let config = gateway::Config { catalogue: found.catalogue, ..config };
                Kind::Gateway(Box::new(Gateway::new(config, seed)))
            }
        };
        Ok(Self { machine, settings, strayed: 0 })
    }

    /// Something happens again. `tell` is told what the machine does about it.
    pub(super) fn happen(
        &mut self,
        entry: Entry,
        mut tell: impl FnMut(Out<'_>) -> Result<(), Error>,
    ) -> Result<Result<(), Error>, String> {
        let Entry { at, what } = entry;
        let machine = self.machine.machine();
        match (&what, what.input()) {
            (_, Some(input)) => machine.handle(at, input),
            (What::Sent(conn, n), None) => {
                let there = machine.outgoing(*conn);
                let written = there.get(..*n).unwrap_or(there).to_vec();
                self.strayed += u64::from(written.len() < *n);
                if !written.is_empty() {
                    if let Err(error) = tell(Out::Wrote(*conn, &written)) {
                        return Ok(Err(error));
                    }
                    machine.sent(at, *conn, written.len());
                }
            }
            (What::Configured(said), None) => self.configure(at, said)?,
            _ => {}
        }
        let machine = self.machine.machine();
        while let Some(action) = machine.poll() {
            // What is to be written is told when it was.
            if !matches!(action, Action::Flush(_))
                && let Err(error) = tell(Out::Did(&action))
            {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn configure(&mut self, at: Instant, said: &Value) -> Result<(), String> {
        let found = self.settings.configured(said)?;
        if let Kind::Gateway(gateway) = &mut self.machine {
            gateway.configure(at, found.servers(), found.catalogue);
        }
        Ok(())
    }
}
