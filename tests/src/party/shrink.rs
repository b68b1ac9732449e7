//! As little of a script as still fails.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::play::{Played, play};
use super::script::Script;

thread_local! {
    /// Whether what panics here does so on purpose.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics that somebody waits for from being printed.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
}

/// Plays a script; why it fails, if it does. Nothing is printed meanwhile.
pub fn attempt(script: &Script) -> Result<Played, String> {
    hush();
    QUIET.set(true);
    let played = catch_unwind(AssertUnwindSafe(|| play(script)));
    QUIET.set(false);
    played.map_err(|why| match why.downcast::<String>() {
        Ok(text) => *text,
        Err(why) => why.downcast_ref::<&str>().map(|it| (*it).to_owned()).unwrap_or_default(),
    })
}

/// Takes deeds away from a script that fails for as long as it still does.
pub fn shrink(script: &Script) -> Script {
    let mut least = script.clone();
    let mut size = least.deeds.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < least.deeds.len() {
            let mut less = least.clone();
            less.deeds.drain(from..(from + size).min(less.deeds.len()));
            match attempt(&less) {
                Err(_) => least = less,
                Ok(_) => from += size,
            }
        }
        size /= 2;
    }
    least
}
