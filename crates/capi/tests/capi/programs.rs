//! C programs, each with what it is about in its first comment.

use std::path::{Path, PathBuf};

use crate::compile::{Language, Linked, run};

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/capi/programs").join(name)
}

fn check(name: &str, arguments: &[&Path], expected: &str) {
    for language in [Language::C99, Language::Cpp17] {
        assert_eq!(run(&program(name), language, Linked::Shared, arguments), expected);
    }
}

#[test]
fn everything_works() {
    check("tour.c", &[], "all is well\n");
}

#[test]
fn the_library_can_be_linked_statically() {
    assert_eq!(run(&program("tour.c"), Language::C99, Linked::Static, &[]), "all is well\n");
}

#[test]
fn hostile_callers_get_errors() {
    check("hostile.c", &[], "all is well\n");
}

#[test]
fn threads_share_a_compiler() {
    check("threads.c", &[], "all is well\n");
}

#[test]
fn programs_for_llguidance_work() {
    check("llg.c", &[], "all is well\n");
}

#[test]
fn files_of_tokenizers_are_read() {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/assets");
    let (json, gguf) = (assets.join("llama3_1/tokenizer.json"), assets.join("smollm2"));
    assert!(json.exists() && gguf.exists(), "run 'make assets' first: {} is missing", assets.display());
    check("files.c", &[&json, &gguf], "all is well\n");
}
