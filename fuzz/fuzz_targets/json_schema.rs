//! JSON Schemas, with options that the first byte chooses.

#![no_main]

use libfuzzer_sys::fuzz_target;
use maskwright::Constraint;
use maskwright::json_schema::{KeyOrder, Whitespace};
use maskwright_fuzz::{follow, options, split};

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let Some((schema, choices)) = split(rest) else { return };
    let mut options = options();
    if first & 1 == 1 {
        options.json_schema.key_order = KeyOrder::Any;
    }
    if first & 2 == 2 {
        options.json_schema.whitespace = Whitespace::Compact;
    }
    follow(&Constraint::json_schema(schema), &options, choices);
});
