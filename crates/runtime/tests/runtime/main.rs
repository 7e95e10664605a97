//! The runtime from outside: models against a slow reference, the scheduler with a fake model, a real model.

mod files;
mod model;
mod reference;
mod smollm2;
mod tiny;
