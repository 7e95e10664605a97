//! The extension module of the Python package `maskwright`.
//!
//! Everything here is a thin face of the crate [`maskwright`]: names, types and errors are translated, and nothing is decided. What people import is
//! written in Python, in `python/maskwright`; it adds what is easier there (dicts and Pydantic models, other
//! people's tokenizers, `await`) and the compatibility faces.
//!
//! | file | what it is |
//! |---|---|
//! | [`vocabulary`] | `Vocabulary`: the tokens of a model, and how it cuts text |
//! | [`constraint`] | `Constraint`: a text in one of the languages, with its options |
//! | [`compiler`] | `Compiler`, `Future`, `CompiledConstraint`: the compile service |
//! | [`matcher`] | `Matcher`: one text being written |
//! | [`batch`] | many matchers at once |
//! | [`draft`] | masks behind guessed tokens |
//! | [`exact`] | `ExactSampler`: draws from a model's own distribution over valid texts |
//! | [`tools`] | `ToolFormat`, `StreamReader`: how models write tool calls, and how these are read |
//! | [`index`] | `Index`: a constraint prepared ahead of time |
//! | [`weighted`] | `Pcfg`, `Tree`, `Scorer`: grammars with probabilities |
//! | [`apply`] | −∞ for forbidden logits, on the processor |
//! | [`buffer`] | other people's memory, copied and never borrowed: the one file with `unsafe` |
//! | [`numbers`] | tokens out of lists, arrays and tensors |
//! | [`slot`], [`errors`] | who may change a matcher; exceptions |
//!
//! # Threads
//!
//! Compiling, filling and applying let go of the GIL, and the module declares that it does not need one. Classes are frozen; what changes lies in a
//! [`slot::Slot`], which lets one thread in and refuses the second, so nothing here waits for a lock while it holds the GIL.

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

/// Compiling is many small allocations, and the allocator of glibc is slow at those. It is this module's own: Python keeps its allocator.
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
