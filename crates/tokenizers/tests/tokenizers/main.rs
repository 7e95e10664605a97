//! Tokenizer files of every format, made by hand and real.

mod assets;
mod common;
mod gguf;
mod hf;
mod load;
mod sentencepiece;
