//! How much memory the program holds, to the byte.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all work is done by `System`; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_add(size, Relaxed);
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes that are allocated now.
pub fn held() -> usize {
    HELD.load(Relaxed)
}

/// Watches what is allocated from its creation on.
pub struct Watch {
    before: usize,
    limit: usize,
}

impl Watch {
    /// Allows `limit` bytes from here on.
    pub fn new(limit: usize) -> Self {
        Self { before: held(), limit }
    }

    /// Panics if more is held now.
    pub fn check(&self) {
        let more = held().saturating_sub(self.before);
        assert!(more <= self.limit, "{more} bytes are held, {} are allowed", self.limit);
    }
}
