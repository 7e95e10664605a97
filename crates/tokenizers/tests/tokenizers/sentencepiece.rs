//! Models of SentencePiece, written by hand.
#![expect(clippy::doc_markdown, reason = "SentencePiece is a name")]

use maskwright_tokenizers::{Error, sentencepiece};
use maskwright_vocab::TokenId;

use crate::common::{check_round_trips, pieces};

/// A field that holds bytes. Numbers here are small enough for one or two bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A model: algorithm 1 is Unigram, 2 is BPE.
fn model(pieces: &[(String, f32, u8)], algorithm: u64) -> Vec<u8> {
    let mut file = Vec::new();
    for (text, score, kind) in pieces {
        let score = [&[0x15][..], &score.to_le_bytes()].concat();
        file.extend(field(1, &[field(1, text.as_bytes()), score, number(3, u64::from(*kind))].concat()));
    }
    let no_padding = number(43, u64::MAX);
    let settings = [number(3, algorithm), number(35, 1), number(41, 1), number(42, 2), no_padding].concat();
    file.extend(field(2, &settings));
    file
}

#[test]
fn both_algorithms() {
    for algorithm in [1, 2] {
        let tokenizer = sentencepiece::from_bytes(&model(&pieces(), algorithm)).unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!(vocabulary.bytes(TokenId(261)), b" the");
        assert_eq!(vocabulary.bytes(TokenId(3 + 0xFF)), [0xFF]);
        assert_eq!((vocabulary.eos(), tokenizer.bos()), (&[TokenId(2)][..], Some(TokenId(1))));
        assert_eq!(vocabulary.special_name(TokenId(0)), Some("<unk>"));
        assert_eq!(
            tokenizer.encode(" thein").unwrap(),
            [TokenId(261), TokenId(262)],
            "algorithm {algorithm}"
        );
        check_round_trips(&tokenizer);
    }
}

#[test]
fn pieces_of_the_user_are_text_and_stay_whole() {
    let mut pieces = pieces();
    pieces.push(("▁the▁in".into(), 0.0, 4));
    pieces.push(("<unused>".into(), 0.0, 5));
    for algorithm in [1, 2] {
        let tokenizer = sentencepiece::from_bytes(&model(&pieces, algorithm)).unwrap();
        assert_eq!(tokenizer.vocabulary().bytes(TokenId(270)), b" the in");
        assert!(tokenizer.vocabulary().is_special(TokenId(271)));
        assert_eq!(
            tokenizer.encode("in the in").unwrap(),
            [TokenId(262), TokenId(270)],
            "algorithm {algorithm}"
        );
        check_round_trips(&tokenizer);
    }
}

#[test]
fn other_algorithms_have_a_vocabulary_but_no_encoder() {
    let tokenizer = sentencepiece::from_bytes(&model(&pieces(), 3)).unwrap();
    assert_eq!(tokenizer.vocabulary().len(), 270);
    assert!(matches!(tokenizer.encode("x"), Err(Error::Unsupported { .. })));
}

#[test]
fn every_beginning_of_a_model_is_answered() {
    let file = model(&pieces(), 2);
    let mut broken = 0;
    for len in 0..file.len() {
        // A cut between two fields leaves a smaller model.
        broken +=
            usize::from(matches!(sentencepiece::from_bytes(&file[..len]), Err(Error::Malformed { .. })));
    }
    assert!(broken > file.len() / 2);
    let error = sentencepiece::from_bytes(&file[..40]).unwrap_err().to_string();
    assert!(error.contains("the SentencePiece model is broken"), "{error}");
    let odd = model(&[("x".into(), 0.0, 9)], 2);
    let error = sentencepiece::from_bytes(&odd).unwrap_err().to_string();
    assert!(error.contains("piece 0: its type 9 is not known"), "{error}");
}
