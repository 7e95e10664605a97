//! The runtime from outside: models against a slow reference, the scheduler with a fake model, a real model.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "small, positive and exact numbers"
)]

mod exact;
mod fake;
mod files;
mod laws;
#[cfg(feature = "llama-cpp")]
mod llama_cpp;
mod model;
mod reference;
mod scheduler;
mod slow;
mod smollm2;
mod tiny;
