//! The statistics of a compiler.

use core::ffi::c_char;
use core::mem::offset_of;

use maskwright::statistics::{Histogram, Lookup, Outcome};

use crate::compiler::Compiler;
use crate::guard::{guard, write_whole};
use crate::pointer::{Dense, Mut, Out, Ref, Versioned, write};
use crate::status::Status;

/// `mw_statistics`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Statistics {
    struct_size: usize,
    requests_hit: u64,
    requests_joined: u64,
    requests_missed: u64,
    requests_known_failure: u64,
    compiled: u64,
    refused: u64,
    too_long: u64,
    too_large: u64,
    panicked: u64,
    cancelled: u64,
    cache_entries: u64,
    cache_bytes: u64,
    shared_bytes: u64,
    evictions: u64,
    queued: u64,
    running: u64,
    matchers: u64,
    masks: u64,
    tokens: u64,
    mask_p50_ns: u64,
    mask_p99_ns: u64,
}

// SAFETY: it is `repr(C)`, and holds a size and numbers.
unsafe impl Versioned for Statistics {
    const NAME: &'static str = "mw_statistics";
    const FIRST: usize = size_of::<Self>();
}

// SAFETY: after the size there are numbers of one type, and the line below asserts that they begin where the size ends.
unsafe impl Dense for Statistics {}
const _: () = assert!(offset_of!(Statistics, requests_hit) == size_of::<usize>());

/// Returns the statistics of a compiler.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiler_statistics(
    compiler: Ref<'_, Compiler>,
    statistics: Mut<'_, Statistics>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let compiler = compiler.get("compiler")?;
        write(statistics, "statistics", &gather(compiler))
    })
}

/// Returns the same as text in the format of Prometheus.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiler_prometheus(
    compiler: Ref<'_, Compiler>,
    text: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let statistics = compiler.get("compiler")?.client.service().statistics();
        let page = statistics.to_prometheus(&[]);
        write_whole(&page, text, capacity, length)
    })
}

fn gather(compiler: &Compiler) -> Statistics {
    let all = compiler.client.service().statistics();
    Statistics {
        struct_size: size_of::<Statistics>(),
        requests_hit: all.requests(Lookup::Hit),
        requests_joined: all.requests(Lookup::Joined),
        requests_missed: all.requests(Lookup::Miss),
        requests_known_failure: all.requests(Lookup::KnownFailure),
        compiled: all.compiles(Outcome::Compiled),
        refused: all.compiles(Outcome::Refused),
        too_long: all.compiles(Outcome::TooLong),
        too_large: all.compiles(Outcome::TooLarge),
        panicked: all.compiles(Outcome::Panicked),
        cancelled: all.compiles(Outcome::Cancelled),
        cache_entries: all.cache.entries,
        cache_bytes: all.cache.bytes,
        shared_bytes: all.cache.shared_bytes,
        evictions: all.cache.evictions,
        queued: all.cache.queued,
        running: all.cache.running,
        matchers: all.matching.matchers,
        masks: all.matching.masks,
        tokens: all.matching.tokens,
        mask_p50_ns: nanoseconds(&all.matching.mask_seconds, 0.5),
        mask_p99_ns: nanoseconds(&all.matching.mask_seconds, 0.99),
    }
}

/// Returns the bound that this share of masks does not exceed; 0 if none was timed, all ones if it is above the last
/// bound.
fn nanoseconds(times: &Histogram, share: f64) -> u64 {
    if times.count() == 0 {
        return 0;
    }
    times.quantile(share).map_or(u64::MAX, |time| time.as_nanos() as u64)
}
