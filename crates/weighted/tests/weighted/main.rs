//! The tests of the crate, in one binary because builds are slow.

#![expect(clippy::float_cmp, reason = "the same calculation gives the same digits")]

mod adapter;
mod generation;
mod golden;
mod grammars;
mod remarks;
mod scorer;
mod trees;
mod twin;
