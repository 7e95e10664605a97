//! Compiling C programs against the headers and the library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

/// How a program is compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    C99,
    Cpp17,
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Linked {
    Shared,
    Static,
}

/// Compiles a program, runs it, and returns what it wrote. Every warning is an error, and so is every exit status but 0.
pub(crate) fn run(source: &Path, language: Language, linked: Linked, arguments: &[&Path]) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = source.file_stem().unwrap().to_str().unwrap();
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number}"));
    let mut compiler = Command::new("cc");
    match language {
        Language::C99 => compiler.args(["-x", "c", "-std=c99"]),
        Language::Cpp17 => compiler.args(["-x", "c++", "-std=c++17"]),
    };
    compiler.args([
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        "-D_POSIX_C_SOURCE=200809L",
        "-I",
    ]);
    compiler
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(source)
        .args(["-x", "none", "-o"])
        .arg(&program);
    match linked {
        Linked::Shared => compiler.arg(library("so")).arg(format!("-Wl,-rpath,{}", folder().display())),
        Linked::Static => compiler.arg(library("a")),
    };
    compiler.args(["-lpthread", "-ldl", "-lm"]);
    if linked == Linked::Static {
        compiler.arg("-lgcc_s");
    }
    let output = compiler.output().expect("the tests need a C compiler, cc");
    assert!(output.status.success(), "{language:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&program).args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} as {language:?}, {linked:?}: {}\n{out}{err}", output.status);
    assert_eq!(err, "", "{name} wrote to its standard error");
    fs::remove_file(program).unwrap();
    out.into_owned()
}

/// The folder of the library, which Cargo has built for these tests.
fn folder() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn library(extension: &str) -> PathBuf {
    let path = folder().join(format!("libmaskwright_c.{extension}"));
    assert!(path.exists(), "Cargo should have built {}", path.display());
    path
}
