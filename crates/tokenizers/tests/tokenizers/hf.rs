//! tokenizer.json: made-up files of every kind.

use maskwright_tokenizers::{Error, Tokenizer, hf};
use maskwright_vocab::TokenId;
use serde_json::{Value, json};

use crate::common::{TEXTS, added, byte_level_json, check_round_trips, pieces};

fn load(json: &Value) -> Result<Tokenizer, Error> {
    hf::from_bytes(json.to_string().as_bytes())
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text).expect("this text can be encoded").into_iter().map(|id| id.0).collect()
}

#[test]
fn byte_level_bpe() {
    let tokenizer = load(&byte_level_json()).unwrap();
    let vocabulary = tokenizer.vocabulary();
    assert_eq!(vocabulary.bytes(TokenId(32)), b" ");
    assert_eq!(vocabulary.bytes(TokenId(200)), [200]);
    assert_eq!(vocabulary.bytes(TokenId(257)), b" th");
    assert_eq!(vocabulary.bytes(TokenId(301)), b"<think>");
    assert_eq!(vocabulary.bytes(TokenId(302)), "é ü".as_bytes());
    assert_eq!(
        (vocabulary.special_name(TokenId(300)), vocabulary.eos()),
        (Some("</s>"), &[TokenId(300)][..])
    );
    assert_eq!((vocabulary.len(), vocabulary.size()), (262, 303));
    check_round_trips(&tokenizer);
}

#[test]
fn encoding_adds_cuts_and_changes_nothing() {
    let tokenizer = load(&byte_level_json()).unwrap();
    // No space in front, no truncation to three tokens, no padding to 64.
    assert_eq!(ids(&tokenizer, "the"), [u32::from(b't'), 258]);
    assert_eq!(ids(&tokenizer, " the the"), [257, u32::from(b'e'), 257, u32::from(b'e')]);
    // No normalization: an accent of its own stays one.
    assert_eq!(ids(&tokenizer, "e\u{301}"), [u32::from(b'e'), 0xCC, 0x81]);
    // Added text is found, what looks special is not.
    assert_eq!(ids(&tokenizer, "<think>"), [301]);
    assert_eq!(ids(&tokenizer, "</s>").len(), 4);
}

fn sentence_piece_bpe() -> Value {
    let vocab: serde_json::Map<String, Value> =
        pieces().into_iter().enumerate().map(|(id, (text, ..))| (text, id.into())).collect();
    json!({
        "version": "1.0",
        "added_tokens": [added(0, "<unk>", true), added(1, "<s>", true), added(2, "</s>", true)],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
                  "merges": ["▁ t", "h e", "▁t he", "i n"]},
    })
}

#[test]
fn sentence_piece_style_bpe() {
    let tokenizer = load(&sentence_piece_bpe()).unwrap();
    let vocabulary = tokenizer.vocabulary();
    assert_eq!(vocabulary.bytes(TokenId(3 + 0x0A)), b"\n");
    assert_eq!(vocabulary.bytes(TokenId(261)), b" the");
    assert_eq!(vocabulary.eos(), [TokenId(2)]);
    assert_eq!(ids(&tokenizer, " thein"), [261, 262]);
    assert_eq!(ids(&tokenizer, "the"), [264, 260]);
    check_round_trips(&tokenizer);
}

#[test]
fn unigram_with_metaspace() {
    let vocab: Vec<Value> = pieces().iter().map(|(text, score, _)| json!([text, score])).collect();
    let json = json!({
        "version": "1.0",
        "added_tokens": [added(2, "</s>", true)],
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "post_processor": null,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": vocab},
    });
    let tokenizer = load(&json).unwrap();
    assert_eq!(tokenizer.vocabulary().special_name(TokenId(0)), Some("<unk>"));
    assert_eq!(tokenizer.vocabulary().bytes(TokenId(3 + 0x41)), b"A");
    assert_eq!(ids(&tokenizer, " the"), [261]);
    assert_eq!(ids(&tokenizer, "</s>").len(), 4);
    for text in TEXTS.iter().filter(|text| !text.contains("<0x")) {
        assert_eq!(tokenizer.decode(&tokenizer.encode(text).unwrap()), text.as_bytes());
    }
    // The library cannot tell a text that looks like a byte token from the token.
    assert!(matches!(tokenizer.encode("a<0x0A>"), Err(Error::NotSpelled { at: 1 })));
}

#[test]
fn a_file_without_decoder_shows_it_in_its_pre_tokenizer() {
    let mut json = byte_level_json();
    json["decoder"] = Value::Null;
    let tokenizer = load(&json).unwrap();
    assert_eq!(tokenizer.vocabulary().bytes(TokenId(257)), b" th");
    json["pre_tokenizer"] = json!({"type": "Whitespace"});
    assert!(load(&json).unwrap_err().to_string().contains("it has no decoder"));
}

#[test]
fn a_text_that_cannot_be_spelled_is_an_error() {
    let mut json = sentence_piece_bpe();
    json["model"]["byte_fallback"] = json!(false);
    let tokenizer = load(&json).unwrap();
    assert!(matches!(tokenizer.encode("the q"), Err(Error::NotSpelled { at: 4 })));
}

#[test]
fn what_cannot_be_exact_is_refused() {
    let change = |path: &str, value: Value| {
        let mut json = byte_level_json();
        *json.pointer_mut(path).expect("a place in the file") = value;
        load(&json).unwrap_err().to_string()
    };
    assert!(change("/model/type", json!("WordPiece")).contains("a WordPiece model"));
    assert!(change("/decoder/type", json!("WordPiece")).contains("its decoder has the step \"WordPiece\""));
    assert!(
        change("/decoder", json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}))
            .contains("strips")
    );
    let regex = json!({"type": "Replace", "pattern": {"Regex": "x"}, "content": ""});
    assert!(change("/decoder", regex).contains("regular expression"));
    let mut json = byte_level_json();
    json["model"]["end_of_word_suffix"] = json!("</w>");
    assert!(load(&json).unwrap_err().to_string().contains("</w>"));
}

#[test]
fn broken_files_are_said_to_be_broken() {
    let whole = byte_level_json().to_string();
    for len in (0..whole.len()).step_by(97) {
        let error = hf::from_bytes(&whole.as_bytes()[..len]).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{len}: {error}");
    }
    let deep = format!("{{\"decoder\": {}", "[".repeat(200_000));
    assert!(matches!(hf::from_bytes(deep.as_bytes()), Err(Error::Malformed { .. })));
    let mut twice = byte_level_json();
    twice["model"]["vocab"]["x y"] = json!(7);
    assert!(load(&twice).unwrap_err().to_string().contains("id 7 is given to"));
    let mut far = byte_level_json();
    far["added_tokens"][0]["id"] = json!(4_000_000_000_u32);
    assert!(load(&far).unwrap_err().to_string().contains("token id 4000000000 is too large"));
    let mut both = byte_level_json();
    both["added_tokens"][1]["id"] = json!(300);
    assert!(load(&both).unwrap_err().to_string().contains("added token 300 is both"));
}

#[test]
fn merges_that_make_no_sense_are_found_when_encoding() {
    let mut json = byte_level_json();
    json["model"]["merges"] = json!([["not", "there"]]);
    let tokenizer = load(&json).unwrap();
    assert!(matches!(tokenizer.encode(TEXTS[1]), Err(Error::Malformed { .. })));
}
