//! Over tokens: the masks must be those of the mask engine, for any tokens.

use std::path::Path;
use std::sync::Arc;

use maskwright::{Compiler, Remarks};
use maskwright_oracle::generate::Rng;
use maskwright_vocab::{TokenId, TokenMask, Vocabulary, VocabularyBuilder};
use maskwright_weighted::{Adapter, Boolean, ByteParser, Options, Parser, Pcfg, Real};

use crate::golden::grammar;
use crate::grammars::random;

fn vocabulary(tokens: &[&str]) -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for (id, token) in (0..).zip(tokens) {
        builder.token(TokenId(id), token.as_bytes()).unwrap();
    }
    let end = TokenId(tokens.len() as u32);
    builder.special(end, "<end>").unwrap().eos(end);
    Arc::new(builder.finish().unwrap())
}

/// Walks at random under the masks of both engines, and compares every mask.
fn walk(grammar: &Pcfg, compiler: &Compiler, seed: u64, steps: usize, real: bool) -> usize {
    let context = || format!("seed {seed}\n{grammar}");
    let compiled = compiler
        .compile_grammar(&grammar.to_grammar().unwrap(), Remarks::default())
        .unwrap_or_else(|e| panic!("{e}\n{}", context()));
    let mut matcher = compiled.matcher();
    let mut adapter = Adapter::<Boolean>::new(grammar, compiler.vocabulary().clone()).unwrap();
    let mut weighted = Adapter::<Real>::new(grammar, compiler.vocabulary().clone()).unwrap();
    let size = compiler.vocabulary().size();
    let mut words = vec![0u32; size.div_ceil(32)];
    let mut rng = Rng::new(seed);
    let mut compared = 0;
    for _ in 0..steps {
        matcher.fill_mask(&mut words).unwrap();
        let wanted = TokenMask::from_words(&words, size);
        let mask = adapter.allowed_token_mask();
        assert_eq!(mask, wanted, "{}", context());
        if real {
            assert_eq!(weighted.allowed_token_mask(), wanted, "{}", context());
        }
        compared += 1;
        let allowed = adapter.allowed_token_ids();
        let Some(token) = rng.choose(&allowed).copied() else { break };
        assert!(adapter.step_with_token(token) && weighted.step_with_token(token));
        if adapter.ended() {
            break;
        }
        matcher.accept(token).unwrap();
        let forbidden = TokenId(rng.below(size) as u32);
        if !adapter.allowed_token_mask().contains(forbidden) {
            assert!(!adapter.fork().step_with_token(forbidden), "{}", context());
        }
    }
    compared
}

#[test]
fn masks_equal_those_of_the_mask_engine_on_toy_vocabularies() {
    let vocabulary = vocabulary(&["a", "b", "ab", "ba", "aa", "aba", "bbb", "c", "abab"]);
    let compiler = Compiler::new(vocabulary);
    let compared: usize =
        (0..120).map(|seed| walk(&random(&mut Rng::new(seed)).1, &compiler, seed, 8, true)).sum();
    assert!(compared > 200, "only {compared} masks");
}

const PERSON: &str = r#"
S -> "{" Name "," Age "}" [0.7] | "{" Name "}" [0.3]
Name -> "\"name\":" String
Age -> "\"age\":" /[1-9][0-9]{0,2}/
String -> "\"Alice\"" [0.5] | "\"Al\"" [0.2] | "\"email@domain.com\"" [0.1] | /"[a-z ]{0,12}"/ [0.2]
"#;

#[test]
fn masks_equal_those_of_the_mask_engine_on_a_real_tokenizer() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/assets/qwen3/tokenizer.json");
    if !path.is_file() {
        assert!(std::env::var_os("CI").is_none(), "run `make assets` to fetch the tokenizers");
        return;
    }
    let tokenizer = maskwright_tokenizers::load(&path).unwrap();
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let sources =
        [PERSON, "E -> E \"+\" T [0.4] | T [0.6]\nT -> \"(\" E \")\" [0.2] | /[0-9]+(\\.[0-9]+)?/ [0.8]"];
    for (seed, source) in (0..).zip(sources) {
        let compared = walk(&grammar(source), &compiler, seed, 7, false);
        assert!(compared > 2, "only {compared} masks");
    }
}

#[test]
fn every_segmentation_is_accepted_and_worth_the_same() {
    let grammar = grammar(PERSON);
    let text = "{\"name\":\"Alice\",\"age\":42}";
    let tokens: Vec<String> = text.bytes().map(|byte| char::from(byte).to_string()).collect();
    let mut all: Vec<&str> = tokens.iter().map(String::as_str).collect();
    all.sort_unstable();
    all.dedup();
    all.extend(["{\"", "name", "\":\"", "Ali", "\",\"", "age\":", "42}", "ce\","]);
    let vocabulary = vocabulary(&all);
    let mut rng = Rng::new(3);
    let mut whole = ByteParser::<Real>::new(&grammar).unwrap();
    assert!(whole.step_bytes(text.as_bytes()) && whole.accepted());
    for _ in 0..40 {
        let mut adapter = Adapter::<Real>::new(&grammar, vocabulary.clone()).unwrap();
        let mut rest = text;
        while !rest.is_empty() {
            let fits: Vec<usize> = (0..all.len()).filter(|at| rest.starts_with(all[*at])).collect();
            let token = *rng.choose(&fits).unwrap();
            assert!(adapter.allowed_token_ids().contains(&TokenId(token as u32)));
            assert!(adapter.step_with_token(TokenId(token as u32)));
            rest = &rest[all[token].len()..];
        }
        assert!(adapter.accepted());
        assert!((adapter.parser().sentence_logprob() - whole.sentence_logprob()).abs() < 1e-9);
        adapter.rollback(3);
        adapter.reset();
        assert_eq!(adapter.state_info().bytes, 0);
    }
}

#[test]
fn the_state_can_be_looked_at() {
    let grammar = grammar(PERSON);
    let vocabulary = vocabulary(&["{\"name\":\"", "Al", "ice", "\"", "}"]);
    let mut adapter = Adapter::<Boolean>::new(&grammar, vocabulary).unwrap();
    assert!(adapter.step_with_token(TokenId(0)) && adapter.step_with_token(TokenId(1)));
    let info = adapter.state_info();
    assert_eq!((info.tokens, info.bytes, info.accepted, info.ended), (2, 11, false, false));
    let shown: Vec<(&str, &str)> =
        info.partial_matches.iter().map(|m| (m.terminal.as_str(), m.progress.as_str())).collect();
    assert_eq!(shown, [("\"\\\"Al\\\"\"", "3/4"), ("\"\\\"Alice\\\"\"", "3/7")]);
    assert!(info.allowed_terminals.is_empty());
    assert_eq!(info.shortest_completion, 2); // a quote and a brace
    assert!(!adapter.step_with_token(TokenId(4)) && !adapter.step_with_token(TokenId(99)));
    assert!(adapter.step_with_token(TokenId(3)) && adapter.step_with_token(TokenId(4)));
    assert!(adapter.accepted() && !adapter.step_with_token(TokenId(0)));
    assert_eq!(adapter.allowed_token_ids(), [TokenId(5)]);
    assert!(adapter.step_with_token(TokenId(5)) && adapter.ended());
    assert!(adapter.allowed_token_ids().is_empty());
    adapter.rollback(1);
    assert_eq!(adapter.allowed_token_ids(), [TokenId(5)]);
}

#[test]
fn literals_of_one_byte_give_the_same_numbers_as_terminals() {
    for seed in 0..60 {
        let (source, grammar) = random(&mut Rng::new(seed));
        let (mut bytes, mut words) =
            (ByteParser::<Real>::new(&grammar).unwrap(), Parser::<Real>::new(&grammar).unwrap());
        let mut rng = Rng::new(seed);
        for _ in 0..12 {
            let byte = if rng.one_in(2) { b'a' } else { b'b' };
            let took = words.step_word(if byte == b'a' { "a" } else { "b" });
            assert_eq!(bytes.step(byte), took, "{source}");
            assert!((bytes.prefix_logprob() - words.prefix_logprob()).abs() < 1e-10, "{source}");
            assert_eq!(bytes.accepted(), words.accepted(), "{source}");
        }
    }
}

#[test]
fn patterns_spread_their_probability_over_bytes() {
    let grammar = Pcfg::parse("S -> /ab?/ [0.5] | /[xy]*/ [0.5]", &Options::default()).unwrap();
    let of = |text: &str| {
        let mut parser = ByteParser::<Real>::new(&grammar).unwrap();
        if parser.step_bytes(text.as_bytes()) { parser.sentence_logprob().exp() } else { 0.0 }
    };
    let third = 1.0 / 3.0;
    for (text, wanted) in
        [("a", 0.25), ("ab", 0.25), ("", 0.5 * third), ("x", 0.5 * third * third), ("abb", 0.0)]
    {
        assert!((of(text) - wanted).abs() < 1e-12, "{text}: {} instead of {wanted}", of(text));
    }
}
