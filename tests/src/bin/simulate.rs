//! Plays simulated runs, and tells of one that fails as little as still does.
//!
//! ```text
//! simulate [--seed N] [--runs K] [--deeds D] [--scenario calm|faults|wild]
//! simulate --script FILE
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use lexopt::Arg;
use mcpx_tests::party::{Scenario, Script, attempt, play, schemas_are_here, shrink};

/// How often it is told how far it is.
const OFTEN: Duration = Duration::from_secs(30);
/// Every so many runs one is played twice: the same seed gives the same bytes.
const TWICE: u64 = 64;

struct Options {
    seed: u64,
    runs: u64,
    deeds: usize,
    scenario: Option<Scenario>,
    script: Option<String>,
}

fn options() -> Result<Options, lexopt::Error> {
    // One that is printed, so that it can be played again.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = now.as_micros() as u64;
    let mut options = Options { seed, runs: 1000, deeds: 16, scenario: None, script: None };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        let Arg::Long(name) = arg else { return Err(arg.unexpected()) };
        let name = name.to_owned();
        let value = parser.value()?.into_string()?;
        let number = || value.parse::<u64>().map_err(|_| format!("--{name} is a number"));
        match name.as_str() {
            "seed" => options.seed = number()?,
            "runs" => options.runs = number()?,
            "deeds" => options.deeds = number()?.try_into().map_err(|_| "--deeds is too large")?,
            "scenario" => {
                let found = Scenario::ALL.into_iter().find(|it| it.name() == value);
                options.scenario = Some(found.ok_or("--scenario is calm, faults or wild")?);
            }
            "script" => options.script = Some(value),
            _ => return Err(format!("there is no --{name}").into()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("simulate: {error}");
            return ExitCode::from(2);
        }
    };
    match &options.script {
        Some(path) => one(path),
        None => many(&options),
    }
}

/// Plays a script from a file, aloud.
fn one(path: &str) -> ExitCode {
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    match read.and_then(|text| text.parse::<Script>()) {
        Ok(script) => {
            let played = play(&script);
            eprintln!("{} steps, digest {:016x}", played.steps, played.digest);
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("simulate: {path}: {why}");
            ExitCode::from(2)
        }
    }
}

/// What all threads share.
struct Progress {
    next: AtomicU64,
    steps: AtomicU64,
    failed: AtomicBool,
}

fn many(options: &Options) -> ExitCode {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let schemas = if schemas_are_here() { "with" } else { "WITHOUT" };
    eprintln!("{} runs from seed {} on, {schemas} schemas", options.runs, options.seed);
    let begun = Instant::now();
    let progress = Progress {
        next: AtomicU64::new(0),
        steps: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(options, &progress));
        }
        let mut told = Instant::now();
        while progress.next.load(Ordering::Relaxed) < options.runs
            && !progress.failed.load(Ordering::Relaxed)
        {
            std::thread::sleep(Duration::from_millis(50));
            if told.elapsed() >= OFTEN {
                told = Instant::now();
                let done = progress.next.load(Ordering::Relaxed);
                eprintln!("{done} runs, {} s", begun.elapsed().as_secs());
            }
        }
    });
    if progress.failed.load(Ordering::Relaxed) {
        return ExitCode::FAILURE;
    }
    let (steps, seconds) = (progress.steps.load(Ordering::Relaxed), begun.elapsed().as_secs_f64());
    let each = steps / options.runs.max(1);
    eprintln!("{} runs, {each} steps each, in {seconds:.1} s: all as it must be", options.runs);
    ExitCode::SUCCESS
}

fn work(options: &Options, progress: &Progress) {
    while !progress.failed.load(Ordering::Relaxed) {
        let n = progress.next.fetch_add(1, Ordering::Relaxed);
        if n >= options.runs {
            return;
        }
        let seed = options.seed.wrapping_add(n);
        let chosen = Scenario::ALL[(seed % Scenario::ALL.len() as u64) as usize];
        let scenario = options.scenario.unwrap_or(chosen);
        let script = Script::of(seed, scenario, options.deeds);
        let told = match attempt(&script) {
            Err(why) => Some(why),
            Ok(played) => {
                progress.steps.fetch_add(played.steps, Ordering::Relaxed);
                let again = n.is_multiple_of(TWICE).then(|| attempt(&script));
                again
                    .filter(|again| *again != Ok(played))
                    .map(|_| "it does not repeat itself".into())
            }
        };
        if let Some(why) = told
            && !progress.failed.swap(true, Ordering::Relaxed)
        {
            let least = shrink(&script);
            let name = scenario.name();
            let last = attempt(&least).err().unwrap_or(why);
            eprintln!("{name} of seed {seed} fails: {last}\n\n{least}");
        }
    }
}
