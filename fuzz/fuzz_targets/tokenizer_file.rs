//! Tokenizer files of every format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use maskwright_tokenizers::{Tokenizer, gguf, hf, sentencepiece, tiktoken};

fuzz_target!(|input: &[u8]| {
    let readers: [fn(&[u8]) -> Option<Tokenizer>; 4] = [
        |file| hf::from_bytes(file).ok(),
        |file| sentencepiece::from_bytes(file).ok(),
        |file| tiktoken::from_ranks(file).ok(),
        |file| gguf::read(file).ok(),
    ];
    for tokenizer in readers.iter().filter_map(|read| read(input)) {
        // What is encoded is decoded to the same text, or is refused.
        if let Ok(tokens) = tokenizer.encode("ab {\"é\": 12}") {
            assert_eq!(tokenizer.decode(&tokens), "ab {\"é\": 12}".as_bytes());
        }
    }
});
