//! Tokenizer files (tokenizer.json, tiktoken, SentencePiece, GGUF) turned into a vocabulary.
