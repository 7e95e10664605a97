//! How many bytes are alive: an allocator with a counter.
//!
//! Engines report their memory in their own ways or not at all, so the harness counts what is allocated and not
//! freed between two moments, the same for everybody. The counter must not disturb the times: each thread adds to
//! a cell of its own (a plain load and store on a line nobody else writes), and reading sums the cells.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// An allocator, counting. Make it the global allocator of the binary or library.
#[derive(Clone, Copy, Debug)]
pub struct Counting<A = System>(pub A);

/// Bytes allocated and not yet freed by this binary or library, on all threads.
pub fn live_bytes() -> i64 {
    CELLS.iter().map(|cell| cell.0.load(Relaxed)).sum()
}

/// Threads beyond this number share the last cell.
const CELL_COUNT: usize = 128;

#[repr(align(64))]
struct Padded(AtomicI64);

static CELLS: [Padded; CELL_COUNT] = [const { Padded(AtomicI64::new(0)) }; CELL_COUNT];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline]
fn add(bytes: i64) {
    let mine = MINE.get();
    if mine < CELL_COUNT - 1 {
        // One writer per cell, so a load and a store lose nothing and spare the locked instruction.
        let cell = &CELLS[mine].0;
        cell.store(cell.load(Relaxed) + bytes, Relaxed);
    } else {
        add_slowly(bytes);
    }
}

#[cold]
fn add_slowly(bytes: i64) {
    if MINE.get() == usize::MAX {
        MINE.set(THREADS.fetch_add(1, Relaxed).min(CELL_COUNT - 1));
    }
    CELLS[MINE.get()].0.fetch_add(bytes, Relaxed);
}

// SAFETY: every request goes to the inner allocator unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller's contract is the same.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller's contract is the same.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: the caller's contract is the same.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        // SAFETY: the caller's contract is the same.
        unsafe { self.0.realloc(memory, layout, size) }
    }
}
