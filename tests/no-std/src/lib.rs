//! The core where there is no std: this library has a panic handler of its own,
//! and does not build if anything below it brings in another one.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use mcpx_core::driver::{ConnId, Input, Machine};
use mcpx_core::gateway::Gateway;
use mcpx_core::time::Instant;

/// A heap without memory: this library is built and never run.
struct Nothing;

#[global_allocator]
static HEAP: Nothing = Nothing;

// SAFETY: it never gives out memory.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Everything that a runtime calls, so that all of the core is in the library.
#[unsafe(no_mangle)]
pub extern "C" fn drive(gateway: &mut Gateway, byte: u8) -> usize {
    let (now, conn) = (Instant::from_micros(1), ConnId::accepted(1));
    gateway.handle(now, Input::Received { conn, bytes: &[byte] });
    gateway.sent(now, conn, 1);
    let actions = core::iter::from_fn(|| gateway.poll()).map(Box::new).count();
    actions + gateway.outgoing(conn).len() + usize::from(gateway.deadline().is_some())
}
