//! Patterns, in a dialect that the first byte chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use maskwright::Constraint;
use maskwright::regex::Dialect;
use maskwright_fuzz::{follow, options, split};

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let Some((pattern, choices)) = split(rest) else { return };
    let dialect = [Dialect::Ecma, Dialect::Python, Dialect::Rust][usize::from(first % 3)];
    follow(&Constraint::regex(pattern), &options().with_dialect(dialect), choices);
});
