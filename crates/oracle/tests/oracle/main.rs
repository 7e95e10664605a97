//! Tests of the oracle: by hand, by a still simpler implementation, and by subjects that break its laws on purpose.

mod cases;
mod json_string;
mod kit;
mod naive;
