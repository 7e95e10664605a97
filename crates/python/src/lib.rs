//! The extension module of the Python package `maskwright`.
//!
//! This is a thin wrapper of the crate [`maskwright`]: it only translates names, types and errors. What users import is
//! written in Python, in `python/maskwright`. That package adds what is easier there (dicts and Pydantic models,
//! tokenizers of other packages, `await`) and the compatibility modules.
//!
//! | file | what it is |
//! |---|---|
//! | [`vocabulary`] | `Vocabulary`: the tokens of a model, and how it encodes text |
//! | [`constraint`] | `Constraint`: a text in one of the languages, with its options |
//! | [`compiler`] | `Compiler`, `Future`, `CompiledConstraint`: the compile service |
//! | [`matcher`] | `Matcher`: the state of one text |
//! | [`batch`] | many matchers at once |
//! | [`draft`] | masks after guessed tokens |
//! | [`exact`] | `ExactSampler`: draws from a model's own distribution over valid texts |
//! | [`tools`] | `ToolFormat`, `StreamReader`: how models write tool calls, and how these are parsed |
//! | [`index`] | `Index`: a constraint compiled ahead of time |
//! | [`weighted`] | `Pcfg`, `Tree`, `Scorer`: grammars with probabilities |
//! | [`apply`] | writes −∞ into forbidden logits, on the CPU |
//! | [`buffer`] | memory of other libraries, copied and never borrowed: the only file with `unsafe` |
//! | [`numbers`] | reads tokens from lists, arrays and tensors |
//! | [`slot`], [`errors`] | exclusive access to a matcher; exceptions |
//!
//! # Threads
//!
//! Compiling, filling and applying release the GIL, and the module declares that it does not need one. Classes are
//! frozen; mutable state is in a [`slot::Slot`], which admits one thread and refuses the second, so that no lock is
//! waited for while the GIL is held.

#![expect(clippy::doc_markdown, reason = "the comments are the docstrings of Python, where names are names")]
#![expect(clippy::needless_pass_by_value, reason = "what comes from Python comes by value")]

mod apply;
mod batch;
mod buffer;
mod compiler;
mod constraint;
mod draft;
mod errors;
mod exact;
mod index;
mod matcher;
mod numbers;
mod slot;
mod tools;
mod vocabulary;
mod weighted;

use pyo3::pymodule;

/// Compiling makes many small allocations, and the allocator of glibc is slow at those. Only this module uses this
/// allocator, not Python.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The engine of the package `maskwright`; import that instead.
#[pymodule(gil_used = false)]
mod _maskwright {
    #[pymodule_export]
    use crate::apply::apply_mask;
    #[pymodule_export]
    use crate::batch::{Step, accept_tokens, fill_masks, set_threads, step_batch};
    #[pymodule_export]
    use crate::compiler::{CompiledConstraint, Compiler, Future};
    #[pymodule_export]
    use crate::constraint::{Constraint, schema_to_regex};
    #[pymodule_export]
    use crate::exact::{Drawn, ExactSampler};
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::matcher::{Forced, Matcher};
    #[pymodule_export]
    use crate::tools::{Event, StreamReader, ToolFormat};
    #[pymodule_export]
    use crate::vocabulary::Vocabulary;
    #[pymodule_export]
    use crate::weighted::{Pcfg, Scorer, Tree, check_guidance};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
