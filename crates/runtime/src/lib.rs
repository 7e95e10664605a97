//! Runtime.
pub mod model;
pub mod sampler;
