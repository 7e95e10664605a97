//! Grammars with probabilities: masks as for every language, and scores that agree with them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use maskwright::{Constraint, TokenId};
use maskwright_fuzz::{COMPILER, VOCABULARY, allowed, follow, options, split};

/// Steps of one call of the scorer.
const STEPS: u64 = 20_000;

fuzz_target!(|input: &[u8]| {
    let Some((source, choices)) = split(input) else { return };
    let constraint = Constraint::pcfg(source);
    follow(&constraint, &options(), choices);

    let Ok(compiled) = COMPILER.compile_with(&constraint, &options()) else { return };
    let weights = compiled.remarks().weights.clone().expect("a weighted grammar has weights");
    let mut scorer = weights.scorer(VOCABULARY.clone()).with_steps(STEPS);
    let (mut matcher, mut text) = (compiled.matcher(), Vec::new());
    for choice in choices.iter().take(12) {
        let Ok(words) = matcher.mask_words().map(<[u32]>::to_vec) else { return };
        // Some tokens here, some there, and the end.
        let asked: Vec<TokenId> = (0..300).step_by(7).chain([300]).map(TokenId).collect();
        let Ok(scores) = scorer.scores(&asked) else { return };
        for (token, score) in asked.iter().zip(scores) {
            let is_allowed = words[token.0 as usize / 32] >> (token.0 % 32) & 1 == 1;
            assert_eq!(score > f64::NEG_INFINITY, is_allowed, "{token:?} has the score {score}");
            assert!(score < 1e-6, "{token:?} is more than certain: {score}");
        }
        let allowed = allowed(&words);
        let Some(token) = allowed.get(usize::from(*choice) % allowed.len().max(1)).copied() else { return };
        if matcher.accept(token).is_err() {
            return;
        }
        if matcher.is_terminated() {
            break;
        }
        text.extend_from_slice(VOCABULARY.bytes(token));
        if scorer.accept(token).is_err() {
            return;
        }
    }
    let _ = weights.judge(&text, STEPS);
});
