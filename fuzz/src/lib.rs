//! What the fuzz targets share: a small vocabulary, small limits, and the questions that every matcher must answer alike.

use std::sync::{Arc, LazyLock};

use maskwright::{Compiler, Constraint, Matcher, Options, Strategy, TokenId, Vocabulary, VocabularyBuilder};

/// All bytes, some texts that cross the borders of strings, keys and words, and an end.
pub static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).expect("the id is free");
    }
    let longer = [
        "{\"", "\":", "\", \"", "\"}", "aa", "ab", "abc", "12", " \n", "true", "null", "é", "\\u00", "<tool",
    ];
    for (id, text) in (256..).zip(longer) {
        builder.token(TokenId(id), text.as_bytes()).expect("the id is free");
    }
    builder.special(TokenId(300), "<end>").expect("the id is free").eos(TokenId(300));
    Arc::new(builder.finish().expect("there are tokens"))
});

/// Shared by all inputs of a process, as in a server.
pub static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::new(VOCABULARY.clone()));

/// Limits that a single input meets soon, so that many inputs are tried in a second.
pub fn options() -> Options {
    let mut options = Options::default();
    let limits = &mut options.limits;
    (limits.exprs, limits.nodes, limits.mask_steps) = (20_000, 50_000, 200_000);
    (limits.leaf_states, limits.leaf_steps) = (2_000, 200_000);
    options.within(32 << 20)
}

/// Compiles a constraint, and follows a random text through it. The rest of the input says which of the allowed tokens are taken.
pub fn follow(constraint: &Constraint, options: &Options, choices: &[u8]) {
    let Ok(compiled) = COMPILER.compile_with(constraint, options) else { return };
    let (mut fast, mut plain) = (compiled.matcher(), compiled.matcher());
    plain.set_strategy(Strategy::Reference);
    for choice in choices.iter().take(40) {
        // A limit may be met on one way and not on the other; then there is nothing to compare.
        let (Ok(words), Ok(reference)) = (fast.mask_words().map(<[u32]>::to_vec), plain.mask_words()) else {
            return;
        };
        assert_eq!(words, reference, "the fast mask differs from the reference for {constraint:?}");
        let allowed = allowed(&words);
        let Some(token) = allowed.get(usize::from(*choice) % allowed.len().max(1)).copied() else {
            assert!(fast.is_terminated(), "stuck: {constraint:?}");
            return;
        };
        answer_alike(&mut fast, token);
        if fast.accept(token).is_err() || plain.accept(token).is_err() {
            return;
        }
    }
}

/// The tokens of a mask.
pub fn allowed(words: &[u32]) -> Vec<TokenId> {
    let bits = words
        .iter()
        .zip(0u32..)
        .flat_map(|(word, at)| (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 32 + bit));
    bits.map(TokenId).collect()
}

/// An allowed token is allowed whoever is asked, and going back leads to where one was.
fn answer_alike(matcher: &mut Matcher, token: TokenId) {
    let before = (matcher.is_accepting(), matcher.next_bytes());
    let mut fork = matcher.fork();
    match fork.accept(token) {
        Ok(()) => {
            // A limit may be met by one of them alone.
            match matcher.validate(&[token]) {
                Ok(taken) => assert_eq!(taken, 1, "a token that a fork takes is refused"),
                Err(error) => assert!(error.is_undecided(), "{error}"),
            }
            fork.rollback(1).expect("a step was taken");
            assert_eq!((fork.is_accepting(), fork.next_bytes()), before);
        }
        // A limit may be met by the token and not by the mask.
        Err(error) => assert!(error.is_undecided(), "a token that the mask allows is refused: {error}"),
    }
}

/// An input as a text, and what is behind its last zero byte as choices.
pub fn split(input: &[u8]) -> Option<(&str, &[u8])> {
    let at = input.iter().rposition(|byte| *byte == 0);
    let (text, choices) = at.map_or((input, &[0; 8][..]), |at| (&input[..at], &input[at + 1..]));
    Some((core::str::from_utf8(text).ok()?, choices))
}
