//! GGUF metadata, written by hand.

use maskwright_tokenizers::{Error, gguf};
use maskwright_vocab::TokenId;

use crate::common::{byte_char, check_round_trips, pieces};

#[derive(Default)]
struct Writer {
    entries: u64,
    body: Vec<u8>,
}

impl Writer {
    fn key(mut self, key: &str, kind: u32) -> Self {
        self.entries += 1;
        self.push_text(key);
        self.body.extend(kind.to_le_bytes());
        self
    }

    fn push_text(&mut self, text: &str) {
        self.body.extend((text.len() as u64).to_le_bytes());
        self.body.extend(text.as_bytes());
    }

    fn text(self, key: &str, text: &str) -> Self {
        let mut writer = self.key(key, 8);
        writer.push_text(text);
        writer
    }

    fn id(self, key: &str, id: u32) -> Self {
        let mut writer = self.key(key, 4);
        writer.body.extend(id.to_le_bytes());
        writer
    }

    fn texts(self, key: &str, texts: &[String]) -> Self {
        let mut writer = self.key(key, 9);
        writer.body.extend(8_u32.to_le_bytes());
        writer.body.extend((texts.len() as u64).to_le_bytes());
        for text in texts {
            writer.push_text(text);
        }
        writer
    }

    fn numbers<const N: usize>(
        self,
        key: &str,
        kind: u32,
        numbers: impl ExactSizeIterator<Item = [u8; N]>,
    ) -> Self {
        let mut writer = self.key(key, 9);
        writer.body.extend(kind.to_le_bytes());
        writer.body.extend((numbers.len() as u64).to_le_bytes());
        writer.body.extend(numbers.flatten());
        writer
    }

    fn finish(self) -> Vec<u8> {
        [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &self.entries.to_le_bytes(), &self.body]
            .concat()
    }
}

/// Byte-level BPE with a control token, merges and a token of the user.
fn byte_level(pre: &str) -> Writer {
    let mut texts: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
    texts.extend(["Ġt", "Ġth", "<|im_end|>", "<tool>"].map(str::to_owned));
    let kind = |id: usize| match id {
        258 => 3_i32,
        259 => 4,
        _ => 1,
    };
    let kinds: Vec<[u8; 4]> = (0..texts.len()).map(|id| kind(id).to_le_bytes()).collect();
    Writer::default()
        .text("general.name", "a test")
        .numbers("general.other", 12, [1.5_f64, 2.5].into_iter().map(f64::to_le_bytes))
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", pre)
        .texts("tokenizer.ggml.tokens", &texts)
        .numbers("tokenizer.ggml.token_type", 5, kinds.into_iter())
        .texts("tokenizer.ggml.merges", &["Ġ t".into(), "Ġt h".into()])
        .id("tokenizer.ggml.eos_token_id", 258)
        .text("tokenizer.chat_template", "{{ messages }}")
}

#[test]
fn byte_level_bpe() {
    for pre in ["gpt-2", "smollm", "llama-bpe", "qwen2"] {
        let tokenizer = gguf::read(&byte_level(pre).finish()[..]).unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!(vocabulary.bytes(TokenId(257)), b" th");
        assert_eq!(vocabulary.bytes(TokenId(259)), b"<tool>");
        assert_eq!(vocabulary.eos(), [TokenId(258)]);
        assert_eq!(tokenizer.chat_template(), Some("{{ messages }}"));
        assert_eq!(tokenizer.encode(" th<tool>").unwrap(), [TokenId(257), TokenId(259)]);
        check_round_trips(&tokenizer);
    }
}

#[test]
fn an_unknown_way_to_cut_words_gives_a_vocabulary_without_encoder() {
    let tokenizer = gguf::read(&byte_level("something-new").finish()[..]).unwrap();
    assert_eq!(tokenizer.vocabulary().len(), 260);
    let error = tokenizer.encode("x").unwrap_err().to_string();
    assert!(error.contains("\"something-new\", is not known here"), "{error}");
}

#[test]
fn sentence_pieces() {
    let pieces = pieces();
    let texts: Vec<String> = pieces.iter().map(|(text, ..)| text.clone()).collect();
    let file = Writer::default()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", &texts)
        .numbers("tokenizer.ggml.scores", 6, pieces.iter().map(|(_, score, _)| score.to_le_bytes()))
        .numbers(
            "tokenizer.ggml.token_type",
            5,
            pieces.iter().map(|(_, _, kind)| i32::from(*kind).to_le_bytes()),
        )
        .id("tokenizer.ggml.bos_token_id", 1)
        .id("tokenizer.ggml.eos_token_id", 2)
        .finish();
    let tokenizer = gguf::read(&file[..]).unwrap();
    assert_eq!((tokenizer.vocabulary().eos(), tokenizer.bos()), (&[TokenId(2)][..], Some(TokenId(1))));
    assert_eq!(tokenizer.encode(" thein").unwrap(), [TokenId(261), TokenId(262)]);
    check_round_trips(&tokenizer);
}

#[test]
fn a_file_cut_anywhere_is_answered_in_one_sentence() {
    let file = byte_level("gpt-2").finish();
    for len in 0..file.len() {
        let error = gguf::read(&file[..len]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Malformed { .. }), "{len}: {text}");
        assert!(text.contains("was it downloaded completely?"), "{len}: {text}");
    }
}

#[test]
fn senseless_files_are_refused_without_memory() {
    let refused = |file: &[u8]| gguf::read(file).unwrap_err().to_string();
    assert!(refused(b"GGUX\x03\0\0\0").contains("does not begin with GGUF"));
    assert!(refused(&[b"GGUF", &7_u32.to_le_bytes()[..]].concat()).contains("its version is 7"));
    let many = [b"GGUF", &3_u32.to_le_bytes()[..], &0_u64.to_le_bytes(), &u64::MAX.to_le_bytes()].concat();
    assert!(refused(&many).contains("claims to have 18446744073709551615 entries"));
    let mut long = Writer::default().key("tokenizer.ggml.model", 8);
    long.body.extend((1_u64 << 60).to_le_bytes());
    assert!(refused(&long.finish()).contains("a string claims to have"));
    let mut nested = Writer::default().key("x", 9);
    nested.body.extend([9_u32.to_le_bytes(), [0; 4], [0; 4]].concat());
    assert!(refused(&nested.finish()).contains("an array of arrays"));
    assert!(refused(&Writer::default().finish()).contains("it holds no tokenizer"));
    let only = Writer::default().text("tokenizer.ggml.model", "gpt2").finish();
    assert!(refused(&only).contains("no tokens"));
    let bert =
        Writer::default().text("tokenizer.ggml.model", "bert").texts("tokenizer.ggml.tokens", &["a".into()]);
    assert!(refused(&bert.finish()).contains("the kind \"bert\""));
    let far = byte_level("gpt-2").id("tokenizer.ggml.eot_token_id", 9000).finish();
    assert!(refused(&far).contains("eot_token_id is 9000, but there are 260 tokens"));
}
