//! Runs the Rust examples of the documentation: `cargo test -p maskwright-book --doc`.
//!
//! They are here, and not in the crates that they are about, because a crate that is published cannot read the files of the repository.

/// One item for each page, so that a failure names it.
macro_rules! pages {
    ($($item:ident $file:literal)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../", $file))]
            struct $item;
        )*
    };
}

pages! {
    Budgets "docs/budgets.md"
    JumpForward "docs/jump-forward.md"
    Service "docs/service.md"
    StructuralTags "docs/structural-tags.md"
    StartInRust "docs/start/rust.md"
    Weighted "docs/weighted.md"
    ReadmeOfAutomata "crates/automata/README.md"
    ReadmeOfFrontend "crates/frontend/README.md"
    ReadmeOfGrammar "crates/grammar/README.md"
    ReadmeOfMaskwright "crates/maskwright/README.md"
    ReadmeOfTokenizers "crates/tokenizers/README.md"
    ReadmeOfVocab "crates/vocab/README.md"
    ReadmeOfWeighted "crates/weighted/README.md"
}
