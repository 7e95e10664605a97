//! The runtime from outside: models against a slow reference, the scheduler with a fake model, a real model.

mod fake;
mod files;
mod model;
mod reference;
mod scheduler;
mod smollm2;
mod tiny;
