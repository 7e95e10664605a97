//! What the tests share: texts that try a tokenizer, and writers of small tokenizer files.
#![allow(clippy::doc_markdown, reason = "SentencePiece is a name")]

use maskwright_tokenizers::Tokenizer;
use serde_json::{Value, json};

/// Texts of many kinds: scripts, spaces, numbers, JSON, code, look-alikes of special tokens.
pub(crate) const TEXTS: &[&str] = &[
    "",
    "Hello world",
    " Hello",
    "a",
    "  two  spaces   three ",
    "line\nline\r\n\n\ttab\u{b}",
    "{\"name\": \"Ada\", \"born\": [1815, 12, 10], \"x\": -1.5e+10, \"ok\": true}",
    "naïve café – “quotes” … ½ €",
    "日本語のテキストと한국어 और हिन्दी",
    "emoji 😀👩‍👩‍👧‍👦🏳️‍🌈 done",
    "fn main() { println!(\"{}\", 1_000_000); } // 'tis don't we'll",
    "<|endoftext|></s><s><|eot_id|><eos><think>x</think><0x0A>",
    "0123456789 3.14159 1,000,000",
    "\u{0}\u{1}\u{7f}\u{80}\u{feff}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "https://example.org/a?b=c&d=%20#frag user@example.org",
];

/// Every text comes back as it was.
pub(crate) fn check_round_trips(tokenizer: &Tokenizer) {
    for text in TEXTS {
        let tokens = tokenizer.encode(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(String::from_utf8_lossy(&tokenizer.decode(&tokens)), *text);
        assert!(tokens.iter().all(|&token| !tokenizer.vocabulary().is_special(token)), "{text:?}");
    }
}

/// The character of a byte in the alphabet of GPT-2.
pub(crate) fn byte_char(byte: u8) -> char {
    let plain = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if plain(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !plain(other)).count();
    char::from_u32(0x100 + before as u32).expect("a small number")
}

/// A small byte-level BPE: all bytes, ` t`, ` th`, `he`, and added tokens.
pub(crate) fn byte_level_json() -> Value {
    let mut vocab: serde_json::Map<String, Value> =
        (0..=255_u8).map(|byte| (byte_char(byte).to_string(), byte.into())).collect();
    vocab.insert("Ġt".into(), 256.into());
    vocab.insert("Ġth".into(), 257.into());
    vocab.insert("he".into(), 258.into());
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "!"},
        "added_tokens": [added(300, "</s>", true), added(301, "<think>", false), added(302, "é ü", false)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocab, "merges": [["Ġ", "t"], ["Ġt", "h"], ["h", "e"]]},
    })
}

pub(crate) fn added(id: u32, content: &str, special: bool) -> Value {
    json!({"id": id, "content": content, "special": special,
           "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
}

/// The pieces of a small SentencePiece-style vocabulary, with scores and SentencePiece's types.
pub(crate) fn pieces() -> Vec<(String, f32, u8)> {
    let mut pieces =
        vec![("<unk>".to_owned(), 0.0, 2), ("<s>".to_owned(), 0.0, 3), ("</s>".to_owned(), 0.0, 3)];
    pieces.extend((0..=255_u8).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)));
    let texts = ["▁t", "he", "▁the", "in", "▁", "t", "h", "e", "i", "n", "日本"];
    pieces.extend((1_u8..).zip(texts).map(|(rank, text)| (text.to_owned(), -f32::from(rank), 1)));
    pieces
}
