//! Scores beside the mask engine: equal to the definition, for few tokens, within limits, and never lost.

use std::sync::Arc;

use maskwright::{Compiler, Constraint};
use maskwright_oracle::generate::Rng;
use maskwright_vocab::{TokenId, TokenMask, Vocabulary, VocabularyBuilder};
use maskwright_weighted::{
    Adapter, ByteParser, Guidance, Log, Options, Pcfg, Real, STEPS, ScoreError, Scorer, Weights, best_parse,
    best_parse_of_text, expected_counts, expected_counts_of_text,
};

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

fn scorer(grammar: &Pcfg, vocabulary: &Arc<Vocabulary>) -> Scorer {
    Arc::new(Weights::new(grammar.clone()).unwrap()).scorer(vocabulary.clone())
}

/// Walks at random. Everywhere the tokens with a score are those of the constraint's mask, and the scores are the
/// differences of prefix probabilities, byte by byte.
#[test]
fn scores_are_differences_of_prefix_probabilities() {
    let vocabulary = vocabulary(&["a", "b", "ab", "ba", "aa", "aba", "bbb", "c", "abab"]);
    let compiler = Compiler::new(vocabulary.clone());
    let all: Vec<TokenId> = (0..vocabulary.size() as u32).map(TokenId).collect();
    let mut compared = 0;
    for seed in 0..120 {
        let (source, grammar) = random(&mut Rng::new(seed));
        let mut options = maskwright::Options::default();
        options.pcfg.normalise = true;
        let compiled = compiler.compile_with(&Constraint::pcfg(&source), &options);
        let compiled = compiled.unwrap_or_else(|error| panic!("{error}\n{source}"));
        let mut matcher = compiled.matcher();
        let weights = compiled.remarks().weights.clone().expect("a weighted grammar has weights");
        let mut scorer = weights.scorer(vocabulary.clone());
        let mut parser = ByteParser::<Log>::new(&grammar).unwrap();
        let mut rng = Rng::new(seed);
        let mut words = [0u32; 1];
        for _ in 0..8 {
            matcher.fill_mask(&mut words).unwrap();
            let mask = TokenMask::from_words(&words, vocabulary.size());
            let mut tokens = all.clone();
            let shift = rng.below(tokens.len());
            tokens.rotate_left(shift);
            let scores = scorer.scores(&tokens).unwrap();
            for (token, score) in tokens.iter().zip(&scores) {
                let mut longer = parser.clone();
                let wanted = if vocabulary.eos().contains(token) {
                    parser.sentence_logprob() - parser.prefix_logprob()
                } else if longer.step_bytes(vocabulary.bytes(*token)) {
                    longer.prefix_logprob() - parser.prefix_logprob()
                } else {
                    f64::NEG_INFINITY
                };
                assert_eq!(mask.contains(*token), *score > f64::NEG_INFINITY, "{token:?}\n{source}");
                assert!(
                    *score == wanted || (score - wanted).abs() < 1e-9,
                    "{score} {wanted} {token:?}\n{source}"
                );
                compared += 1;
            }
            let allowed: Vec<TokenId> = mask.iter().collect();
            let Some(token) = rng.choose(&allowed).copied() else { break };
            if vocabulary.eos().contains(&token) {
                break;
            }
            matcher.accept(token).unwrap();
            scorer.accept(token).unwrap();
            assert!(parser.step_bytes(vocabulary.bytes(token)));
            assert!((scorer.prefix_logprob() - parser.prefix_logprob()).abs() < 1e-9, "{source}");
        }
        scorer.reset();
        assert_eq!((scorer.position(), scorer.prefix_logprob()), (0, 0.0));
    }
    assert!(compared > 2_000, "only {compared} scores");
}

#[test]
fn scores_of_some_are_those_of_all() {
    let grammar = grammar("S -> W [0.5] | W \" \" S [0.5]\nW -> /[a-z]+/ [0.3] | to [0.4] | toad [0.3]");
    let vocabulary = vocabulary(&["t", "to", "toa", "toad", "ad", " ", " to", "d to", "x", "!"]);
    let mut adapter = Adapter::<Real>::new(&grammar, vocabulary).unwrap();
    for token in [0, 2, 5] {
        let mut all = [f64::NEG_INFINITY; 11];
        for (token, score) in adapter.scores() {
            all[token.0 as usize] = score;
        }
        let tokens: Vec<TokenId> = (0..11).rev().map(TokenId).collect();
        let some = adapter.scores_of(&tokens);
        for (token, score) in tokens.iter().zip(some) {
            let wanted = all[token.0 as usize];
            assert!(score == wanted || (score - wanted).abs() < 1e-12, "{token:?}: {score} and {wanted}");
        }
        assert!(adapter.step_with_token(TokenId(token)));
    }
}

/// A literal explains `a` better than the pattern does, so after some hundred bytes the pattern's weight is lost in
/// plain numbers. A `b` is still allowed.
#[test]
fn what_is_faint_has_a_score() {
    let source = "S -> L [0.5] | /[a-z]+/ [0.5]\nL -> a L [0.999] | a [0.001]";
    let grammar = grammar(source);
    let vocabulary = vocabulary(&["aaaaaaaaaa", "b", "a"]);
    let compiled = Compiler::new(vocabulary.clone()).compile(&Constraint::pcfg(source)).unwrap();
    let mut matcher = compiled.matcher();
    let mut scorer = scorer(&grammar, &vocabulary);
    let mut parser = ByteParser::<Log>::new(&grammar).unwrap();
    for _ in 0..40 {
        matcher.accept(TokenId(0)).unwrap();
        scorer.accept(TokenId(0)).unwrap();
        assert!(parser.step_bytes(b"aaaaaaaaaa"));
    }
    // Plain numbers have lost it.
    let mut plain = Adapter::<Real>::new(&grammar, vocabulary).unwrap();
    assert!((0..40).all(|_| plain.step_with_token(TokenId(0))) && !plain.step_with_token(TokenId(1)));
    assert!(matcher.allows(TokenId(1)).unwrap());
    let wanted = parser.peek(b'b') - parser.prefix_logprob();
    let score = scorer.scores(&[TokenId(1)]).unwrap()[0];
    assert!((score - wanted).abs() < 1e-6 && score < -1000.0, "{score} and {wanted}");
    scorer.accept(TokenId(1)).unwrap();
    assert!(parser.step(b'b') && (scorer.prefix_logprob() - parser.prefix_logprob()).abs() < 1e-6);
    // Even then the logit stays finite.
    scorer.rollback(1);
    let mut logits = [f32::NEG_INFINITY, 0.5, f32::NEG_INFINITY, f32::NEG_INFINITY];
    assert_eq!(scorer.weigh(&mut logits, &Guidance::new(1000.0, 64).unwrap()), Ok(1));
    assert!(logits[1].is_finite() && logits[0] == f32::NEG_INFINITY);
}

#[test]
fn the_best_are_weighed_and_the_others_left_out() {
    let grammar = grammar("S -> a [0.5] | b [0.25] | c [0.125] | d [0.125]");
    let mut scorer = scorer(&grammar, &vocabulary(&["a", "b", "c", "d"]));
    let logits = [0.0, 3.0, 3.0, 1.0, f32::NEG_INFINITY];
    let weighed = |scorer: &mut Scorer, lambda: f64, top_k: usize| {
        let mut row = logits;
        let left = scorer.weigh(&mut row, &Guidance::new(lambda, top_k).unwrap()).unwrap();
        (row, left)
    };
    let (row, left) = weighed(&mut scorer, 1.0, 0);
    assert_eq!(left, 4);
    for (got, wanted) in
        row.iter().zip([0.5f32.ln(), 3.0 + 0.25f32.ln(), 3.0 + 0.125f32.ln(), 1.0 + 0.125f32.ln()])
    {
        assert!((got - wanted).abs() < 1e-6);
    }
    let (row, left) = weighed(&mut scorer, 2.0, 1);
    assert_eq!((left, row[0], row[2], row[3]), (1, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY));
    assert!((row[1] - (3.0 + 2.0 * 0.25f32.ln())).abs() < 1e-6);
    assert_eq!(weighed(&mut scorer, 0.0, 1), (logits, 4));
    assert_eq!(scorer.scores(&[TokenId(4), TokenId(99)]), Ok(vec![f64::NEG_INFINITY; 2]));
    assert_eq!(scorer.accept(TokenId(4)), Err(ScoreError::Token(TokenId(4))));
}

#[test]
fn what_takes_too_long_is_refused_and_changes_nothing() {
    let grammar = grammar("S -> S S [0.4] | a [0.6]");
    let mut scorer = scorer(&grammar, &vocabulary(&["a", "aaaaaaaa"])).with_steps(2_000);
    let error = (0..1_000).find_map(|_| scorer.accept(TokenId(1)).err()).expect("it is cubic");
    assert_eq!(error, ScoreError::Limit(2_000));
    assert!(error.to_string().contains("ambiguous"), "{error}");
    let (position, before) = (scorer.position(), scorer.prefix_logprob());
    assert_eq!(scorer.scores(&[TokenId(1)]), Err(ScoreError::Limit(2_000)));
    assert_eq!((scorer.position(), scorer.prefix_logprob()), (position, before));
    assert!(scorer.scores(&[TokenId(0)]).unwrap()[0].is_finite());
    let judgement = Weights::new(grammar).unwrap().judge(&[b'a'; 400], STEPS / 100).unwrap_err();
    assert!(judgement.message.contains("20000 steps"), "{judgement}");
}

/// If every terminal is one byte, a text is the sequence of its bytes.
#[test]
fn trees_and_counts_of_texts_are_those_of_words() {
    let mut compared = 0;
    for seed in 0..80 {
        let (source, grammar) = random(&mut Rng::new(seed));
        let mut rng = Rng::new(seed);
        for _ in 0..6 {
            let text: Vec<u8> = (0..rng.below(7)).map(|_| if rng.one_in(2) { b'a' } else { b'b' }).collect();
            let words: Vec<&str> = text.iter().map(|byte| if *byte == b'a' { "a" } else { "b" }).collect();
            let (by_word, by_byte) =
                (best_parse(&grammar, &words), best_parse_of_text(&grammar, &text, STEPS));
            let (by_word, by_byte) = (by_word.unwrap(), by_byte.unwrap());
            assert_eq!(by_word.is_some(), by_byte.is_some(), "{source}");
            let (Some(by_word), Some(by_byte)) = (by_word, by_byte) else { continue };
            assert_eq!(by_word.brackets(&grammar), by_byte.brackets(&grammar), "{source}");
            let by_word = expected_counts(&grammar, &words).unwrap().unwrap();
            let by_byte = expected_counts_of_text(&grammar, &text, STEPS).unwrap().unwrap();
            assert!((by_word.log_probability - by_byte.log_probability).abs() < 1e-9, "{source}");
            for (a, b) in by_word.rules.iter().zip(&by_byte.rules) {
                assert!((a - b).abs() < 1e-9 * (1.0 + a.abs()), "{a} and {b}\n{source}");
            }
            compared += 1;
        }
    }
    assert!(compared > 50, "only {compared} texts");
}

#[test]
fn counts_of_texts_are_derivatives() {
    let source = "S -> N \" \" S [0.5] | N [0.5]\nN -> to [0.5] | /t[a-z]*/ [0.25] | toad [0.25]";
    let grammar = grammar(source);
    let counts = expected_counts_of_text(&grammar, b"to toad", STEPS).unwrap().unwrap();
    let log = |probabilities: &[f64]| {
        // A product of rule probabilities that need not add up to one: each rule is made slightly more likely.
        let changed = grammar.with_probabilities(probabilities).unwrap();
        let mut parser = ByteParser::<Log>::new(&changed).unwrap();
        assert!(parser.step_bytes(b"to toad"));
        parser.sentence_logprob()
    };
    let old: Vec<f64> = grammar.rules().iter().map(|rule| rule.probability).collect();
    // d log P / d log p of two rules of one symbol, where one loses what the other gains.
    for (gains, loses) in [(0, 1), (2, 3), (3, 4)] {
        let step = 1e-6;
        let mut new = old.clone();
        new[gains] += step;
        new[loses] -= step;
        let wanted = (log(&new) - log(&old)) / step;
        let got = counts.rules[gains] / old[gains] - counts.rules[loses] / old[loses];
        assert!((got - wanted).abs() < 1e-4, "{got} and {wanted}");
    }
}

#[test]
fn a_text_is_judged() {
    let weights = Weights::new(grammar("S -> \"(\" S \")\" [0.5] | /[0-9]+/ [0.5]")).unwrap();
    let judgement = weights.judge(b"(42)", STEPS).unwrap();
    let tree = judgement.best_parse.unwrap();
    assert_eq!(tree.brackets(weights.grammar()), "(S \"(\" (S 42) \")\")");
    assert!((judgement.logprob - tree.log_probability).abs() < 1e-9);
    assert!(judgement.counts.unwrap().rules.iter().all(|count| (count - 1.0).abs() < 1e-9));
    let open = weights.judge(b"(42", STEPS).unwrap();
    let told = open.json(weights.grammar());
    assert!(
        told["prefix_logprob"].is_f64() && told["logprob"].is_null() && told["expected_counts"].is_null()
    );
    assert!(open.prefix_logprob.is_finite() && open.logprob == f64::NEG_INFINITY);
    assert!(open.best_parse.is_none() && open.counts.is_none());
    let wrong = weights.judge(b"(x", STEPS).unwrap();
    assert_eq!((wrong.prefix_logprob, wrong.logprob), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    assert!(weights.heap_bytes() > 100);
}

#[test]
fn tables_stay_within_their_limit() {
    let chain: Vec<String> = (0..100).map(|n| format!("N{n} -> N{} [0.5] | a [0.5]\n", n + 1)).collect();
    let options = Options { entries: 1_000, ..Options::default() };
    let pcfg = Pcfg::parse(&(chain.concat() + "N100 -> b"), &options).unwrap();
    assert!(Weights::new(pcfg).unwrap_err().message.starts_with("101 symbols hang together by unit rules"));
}
