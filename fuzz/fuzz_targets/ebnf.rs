//! EBNF grammars.

#![no_main]

use libfuzzer_sys::fuzz_target;
use maskwright::Constraint;
use maskwright_fuzz::{follow, options, split};

fuzz_target!(|input: &[u8]| {
    let Some((source, choices)) = split(input) else { return };
    follow(&Constraint::ebnf(source), &options(), choices);
});
