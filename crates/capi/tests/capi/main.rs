//! The library as C sees it.
//!
//! * `headers` compares every function and struct of the headers with the Rust code, so that neither can change alone.
//! * `programs` compiles C programs against the headers, as C99 and as C++, and runs them.
//! * `page` does so with the examples of `docs/c.md`.

mod compile;
mod headers;
mod page;
mod programs;
