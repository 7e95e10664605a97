//! Real tokenizers, fetched by `scripts/assets.sh`. Without them these tests say so and pass.
#![expect(clippy::doc_markdown, reason = "SentencePiece is a name")]

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use maskwright_tokenizers::{Tokenizer, load, tiktoken};
use maskwright_vocab::{TokenId, Vocabulary};

use crate::common::{TEXTS, check_round_trips};

fn asset(name: &str) -> Option<Tokenizer> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/assets").join(name);
    if !folder.is_dir() {
        // Not by a macro, because the test harness would hide it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {name} is not there; run scripts/assets.sh {name}");
        return None;
    }
    Some(load(folder).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn check(tokenizer: &Tokenizer, hello: &[u32]) {
    check_round_trips(tokenizer);
    let ids: Vec<u32> = tokenizer.encode("Hello world").unwrap().into_iter().map(|id| id.0).collect();
    assert_eq!(ids, hello);
    let mut file = Vec::new();
    tokenizer.vocabulary().save(&mut file).unwrap();
    assert_eq!(Vocabulary::load(&file).unwrap().fingerprint(), tokenizer.vocabulary().fingerprint());
}

fn names(tokenizer: &Tokenizer) -> Vec<&str> {
    let vocabulary = tokenizer.vocabulary();
    vocabulary.eos().iter().filter_map(|&id| vocabulary.special_name(id)).collect()
}

#[test]
fn llama3_1() {
    let Some(tokenizer) = asset("llama3_1") else { return };
    check(&tokenizer, &[9906, 1917]);
    let vocabulary = tokenizer.vocabulary();
    assert_eq!((vocabulary.len(), vocabulary.size()), (128_256, 128_256));
    assert_eq!(names(&tokenizer), ["<|eot_id|>"]);
    // 256 special tokens stand on it by their numbers, behind four nodes that they share.
    assert_eq!(vocabulary.trie().len(), 1 + 274_520 + 260);
    // What may stand in a JSON string, and what closes one.
    let is_plain = |&byte: &u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    let (mut plain, mut closing) = (0, 0);
    for (_, bytes) in vocabulary.ordinary() {
        match bytes.iter().position(|byte| !is_plain(byte)) {
            None => plain += 1,
            Some(at) => closing += usize::from(bytes[at] == b'"'),
        }
    }
    assert_eq!((plain, closing), (123_177, 1_301));
}

#[test]
fn qwen3() {
    let Some(tokenizer) = asset("qwen3") else { return };
    check(&tokenizer, &[9707, 1879]);
    assert_eq!(names(&tokenizer), ["<|im_end|>"]);
    assert_eq!(tokenizer.encode("<think>").unwrap(), [TokenId(151_667)]);
    assert_eq!(tokenizer.vocabulary().bytes(TokenId(151_667)), b"<think>");
}

#[test]
fn gemma3() {
    let Some(tokenizer) = asset("gemma3") else { return };
    check(&tokenizer, &[9259, 1902]);
    let vocabulary = tokenizer.vocabulary();
    assert_eq!(names(&tokenizer), ["<end_of_turn>"]);
    let mut by_bytes: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (_, bytes) in vocabulary.ordinary() {
        *by_bytes.entry(bytes).or_default() += 1;
    }
    assert!(by_bytes.values().any(|&count| count > 1), "there are aliases in this vocabulary");
}

#[test]
fn llama2() {
    let Some(tokenizer) = asset("llama2") else { return };
    // Despite its name this package carries the vocabulary of Mistral.
    check(&tokenizer, &[16_230, 1526]);
    assert_eq!(names(&tokenizer), ["</s>"]);
    assert_eq!(tokenizer.vocabulary().bytes(TokenId(3 + 10)), b"\n");
}

#[test]
fn smollm2() {
    let Some(tokenizer) = asset("smollm2") else { return };
    check(&tokenizer, &[19_556, 905]);
    assert_eq!(names(&tokenizer), ["<|im_end|>"]);
    assert!(tokenizer.chat_template().is_some_and(|template| template.contains("<|im_start|>")));
}

#[test]
fn o200k() {
    let tokenizer = tiktoken::named("o200k_base").unwrap();
    check(&tokenizer, &[13_225, 2375]);
    assert_eq!(names(&tokenizer), ["<|endoftext|>"]);
    assert_eq!(tokenizer.vocabulary().size(), 200_019);
}

/// SentencePiece's algorithm, written here, against the merges of the library, on the same pieces.
#[test]
fn piece_merging_agrees_with_the_library() {
    let Some(library) = asset("llama2") else { return };
    let json = std::fs::read(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/assets/llama2/tokenizer.json"),
    );
    let json: serde_json::Value = serde_json::from_slice(&json.unwrap()).unwrap();
    // The library's list of merges is sorted by the scores of the pieces they make.
    let mut scores: BTreeMap<String, f32> = BTreeMap::new();
    for (rank, merge) in json["model"]["merges"].as_array().unwrap().iter().enumerate() {
        scores
            .entry(merge.as_str().unwrap().replace(' ', ""))
            .or_insert(-f32::from(u16::try_from(rank).unwrap_or(u16::MAX)));
    }
    let mut pieces: Vec<(u32, &str)> = Vec::new();
    for (text, id) in json["model"]["vocab"].as_object().unwrap() {
        pieces.push((u32::try_from(id.as_u64().unwrap()).unwrap(), text));
    }
    pieces.sort_unstable();
    let mut file = Vec::new();
    for (id, text) in pieces {
        let kind = match id {
            0 => 2,
            1 | 2 => 3,
            3..259 => 6,
            _ => 1,
        };
        let score = scores.get(text).copied().unwrap_or(-1e9);
        let mut piece = vec![0x0A, text.len() as u8];
        piece.extend(text.as_bytes());
        piece.push(0x15);
        piece.extend(score.to_le_bytes());
        piece.extend([0x18, kind]);
        file.extend([0x0A, piece.len() as u8]);
        file.extend(piece);
    }
    file.extend([0x12, 2, 0x18, 2]);
    let own = maskwright_tokenizers::sentencepiece::from_bytes(&file).unwrap();
    assert_eq!(own.vocabulary().fingerprint(), library.vocabulary().fingerprint());
    let source = [include_str!("assets.rs"), include_str!("common.rs")];
    // A literal `▁` cannot be told from a space in such a vocabulary.
    let lines = source.into_iter().flat_map(str::lines).filter(|line| !line.contains('▁'));
    for text in TEXTS.iter().copied().chain(lines) {
        assert_eq!(own.encode(text).unwrap(), library.encode(text).unwrap(), "{text:?}");
    }
}
