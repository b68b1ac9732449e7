//! The configuration file, read again: when the user says so (SIGHUP), and when it has
//! changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use mcpx_core::driver::{Action, ConnId, Input, Machine};
use mcpx_core::gateway::Gateway;
use mcpx_core::time::Instant;

use crate::args::{Common, Source};
use crate::record::Recorded;
use crate::{report, tls, upstream};

/// How often it is looked whether there is reason to.
const OFTEN: Duration = Duration::from_secs(1);

/// A gateway whose servers are in a file.
pub(crate) struct Reloading<'a> {
    gateway: &'a mut Recorded<Gateway>,
    tls: tls::Shared,
    common: &'a Common,
    file: Option<File>,
}

struct File {
    path: PathBuf,
    seen: Option<Seen>,
    /// What was found when it was looked at last: it may be half written.
    found: Option<Seen>,
    /// The user has said so.
    asked: Arc<AtomicBool>,
    look: Instant,
}

/// What tells one content of a file from another without reading it.
type Seen = (SystemTime, u64);

fn seen(path: &Path) -> Option<Seen> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

impl<'a> Reloading<'a> {
    pub(crate) fn new(
        gateway: &'a mut Recorded<Gateway>,
        tls: tls::Shared,
        common: &'a Common,
    ) -> Self {
        let file = match &common.source {
            Source::Config(path) => {
                let asked = Arc::new(AtomicBool::new(false));
                #[cfg(unix)]
                if let Err(error) =
                    signal_hook::flag::register(signal_hook::consts::SIGHUP, asked.clone())
                {
                    report::say(&format!("SIGHUP cannot be heeded: {error}"));
                }
                let (seen, path) = (seen(path), path.clone());
                Some(File { seen, found: seen, path, asked, look: Instant::START })
            }
            _ => None,
        };
        Self { gateway, tls, common, file }
    }

    fn look(&mut self, now: Instant) {
        let Some(file) = self.file.as_mut().filter(|file| file.look <= now) else { return };
        file.look = now + OFTEN;
        let found = seen(&file.path);
        let asked = file.asked.swap(false, Ordering::Relaxed);
        // One that is not there, or is another each time, is just being written.
        let before = std::mem::replace(&mut file.found, found);
        if asked || found.is_some() && found != file.seen && found == before {
            file.seen = found;
            self.reload(now);
        }
    }

    fn reload(&mut self, now: Instant) {
        let Some(file) = &self.file else { return };
        let shown = file.path.display();
        let found = upstream::find(self.common);
        match found.and_then(|found| Ok((found.tls()?, found))) {
            Ok((tls, found)) => {
                self.tls.replace(tls);
                report::say(&format!("{shown}: read again: {} servers", found.all.len()));
                self.gateway.configure(now, found);
            }
            Err(error) => report::say(&format!("{}; all stays as it was", error.text())),
        }
    }
}

impl Machine for Reloading<'_> {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if matches!(input, Input::Tick) {
            self.look(now);
        }
        self.gateway.handle(now, input);
    }

    fn poll(&mut self) -> Option<Action> {
        self.gateway.poll()
    }

    fn deadline(&self) -> Option<Instant> {
        self.file.as_ref().map(|file| file.look).into_iter().chain(self.gateway.deadline()).min()
    }

    fn outgoing(&self, conn: ConnId) -> &[u8] {
        self.gateway.outgoing(conn)
    }

    fn sent(&mut self, now: Instant, conn: ConnId, n: usize) {
        self.gateway.sent(now, conn, n);
    }
}
