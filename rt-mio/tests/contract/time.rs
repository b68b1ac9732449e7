//! Deadlines.

use std::time::{Duration, Instant};

use mcpx_core::driver::{Action, Input};

use super::puppet::{Heard, drive};

#[test]
fn ticks_when_a_deadline_has_come() {
    const WAIT: Duration = Duration::from_millis(30);
    let started = Instant::now();
    let mut ticks = 0;
    drive(
        Vec::new(),
        |hands| hands.wake_after(WAIT),
        |hands, heard| {
            assert_eq!(heard, Heard::Input(Input::Tick));
            ticks += 1;
            if ticks == 3 {
                hands.act(Action::Exit);
            } else {
                hands.wake_after(WAIT);
            }
        },
    );
    assert!(started.elapsed() >= 3 * WAIT);
}
