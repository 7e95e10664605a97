//! What a compiler has learned, saved and loaded: foreign, cut, and damaged with the right checksum.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use maskwright::{Compiler, Constraint};
use maskwright_fuzz::VOCABULARY;
use maskwright_vocab::pack;

/// Bytes before the body of a file.
const HEADER: usize = 44;

static CONSTRAINTS: LazyLock<[Constraint; 2]> = LazyLock::new(|| {
    [Constraint::regex("[a-z]{1,9}(,[0-9]+)*"), Constraint::json_schema(r#"{"type": "object"}"#)]
});

/// A sound file.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let compiler = Compiler::new(VOCABULARY.clone());
    for constraint in &*CONSTRAINTS {
        let mut matcher = compiler.compile(constraint).expect("a sound constraint").matcher();
        matcher.mask_words().expect("a mask");
    }
    let mut file = Vec::new();
    compiler.save_learnt(&mut file).expect("memory is large enough");
    file
});

fuzz_target!(|input: &[u8]| {
    // A compiler of its own for each input: a forged file may well teach it something false, but nothing that breaks.
    let compiler = Compiler::new(VOCABULARY.clone());
    let _ = compiler.load_learnt(input);
    // A random file would never get past the checksum, so the input is also taken as a patch: places and bytes.
    let mut body = SOUND[HEADER..].to_vec();
    for change in input.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % body.len();
        body[at] = change[2];
    }
    let magic = SOUND[..16].try_into().expect("sixteen bytes");
    if compiler.load_learnt(&pack::seal(&magic, 1, &body)).is_err() {
        return;
    }
    for constraint in &*CONSTRAINTS {
        let Ok(compiled) = compiler.compile(constraint) else { continue };
        let mut matcher = compiled.matcher();
        if let Some(token) = matcher.mask().ok().and_then(|mask| mask.iter().next()) {
            let _ = matcher.accept(token);
            let _ = matcher.mask();
        }
    }
});
