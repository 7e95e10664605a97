//! The matcher against the oracle.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use maskwright::{CharSet, Compiler, ExprId, GrammarBuilder, Remarks, RuleId, TokenId, VocabularyBuilder};
use maskwright_fuzz::options;
use maskwright_oracle::{Oracle, Tokens, generate};

/// A vocabulary: its tokens, and a compiler for them.
struct Words {
    tokens: Vec<Vec<u8>>,
    compiler: Compiler,
}

/// The first has all words of up to three letters, the second the letters alone. The others are drawn from the words of up to five letters: some lack a letter, and some have a word twice.
static VOCABULARIES: LazyLock<Vec<Words>> = LazyLock::new(|| {
    let drawn = (0..14u32).map(|number| {
        let every = 3 + number % 5 * 7;
        let words = generate::strings(b"abc", 5).into_iter().zip(1u32..);
        let mut tokens: Vec<Vec<u8>> = words
            .filter(|(_, at)| {
                at.wrapping_mul(2_654_435_761).wrapping_add(number * 97) >> 7 & 0xff <= 0xff / every
            })
            .map(|(word, _)| word)
            .filter(|word| !word.is_empty())
            .collect();
        tokens.extend([b"a".to_vec(), b"bc".to_vec()]);
        tokens
    });
    let all = [generate::strings(b"abc", 3), generate::strings(b"abc", 1)].into_iter().chain(drawn);
    all.map(|tokens| {
        let mut builder = VocabularyBuilder::new();
        for (id, token) in (0..).zip(&tokens) {
            builder.token(TokenId(id), token).expect("the id is free");
        }
        let vocabulary = Arc::new(builder.finish().expect("there are tokens"));
        Words { tokens, compiler: Compiler::with_options(vocabulary, options()) }
    })
    .collect()
});

// The first byte chooses a vocabulary, the next ones build a grammar, the rest chooses tokens. At every state the whole mask must be the oracle's.
fuzz_target!(|input: &[u8]| {
    let Some((first, input)) = input.split_first() else { return };
    let words = &VOCABULARIES[usize::from(*first) % VOCABULARIES.len()];
    let (plan, choices) = input.split_at(input.len().min(32));
    let mut builder = GrammarBuilder::new();
    let rules = [builder.declare("root"), builder.declare("other")];
    let mut plan = plan.iter().copied();
    for rule in rules {
        let expr = build(&mut builder, &mut plan, &rules, 4);
        builder.define(rule, expr);
    }
    let Ok(grammar) = builder.finish(rules[0]) else { return };
    let Ok(oracle) = Oracle::with_limit(&grammar, 20_000) else { return };
    let Ok(compiled) = words.compiler.compile_grammar(&grammar, Remarks::default()) else { return };
    let tokens = Tokens::from_list(&words.tokens);
    let (mut matcher, mut state) = (compiled.matcher(), oracle.start());
    for choice in choices.iter().take(8) {
        let Ok(mask) = matcher.mask() else { return };
        let expected = oracle.mask(&state, &tokens);
        let (ours, theirs): (Vec<u32>, Vec<u32>) =
            (mask.iter().map(|token| token.0).collect(), expected.tokens().collect());
        assert_eq!(ours, theirs, "the mask differs from the oracle's: {grammar:?}");
        assert_eq!(matcher.is_accepting(), oracle.is_accepting(&state));
        let Some(token) = ours.get(usize::from(*choice) % ours.len().max(1)) else { return };
        if matcher.accept(TokenId(*token)).is_err() {
            return;
        }
        state = oracle.run(&state, &words.tokens[*token as usize]);
    }
});

/// An expression out of a few bytes; none are left means an `a`.
fn build(
    g: &mut GrammarBuilder,
    plan: &mut impl Iterator<Item = u8>,
    rules: &[RuleId; 2],
    depth: u32,
) -> ExprId {
    let byte = plan.next().unwrap_or_default();
    let more = |g: &mut GrammarBuilder, plan: &mut _| build(g, plan, rules, depth - 1);
    match byte % 9 {
        _ if depth == 0 => g.bytes(&[b'a' + byte % 3]),
        0 => g.bytes(&[b'a' + byte / 9 % 3]),
        1 => g.bytes([&b"ab"[..], b"ba", b"abc", b"cc"][usize::from(byte / 9 % 4)]),
        2 => g.class(CharSet::from_ranges([('a', ['a', 'b', 'c'][usize::from(byte / 9 % 3)])])),
        3 => {
            let parts = [more(g, plan), more(g, plan)];
            g.seq(parts)
        }
        4 => {
            let parts = [more(g, plan), more(g, plan)];
            g.alt(parts)
        }
        5 => {
            let (body, min) = (more(g, plan), u32::from(byte / 9 % 3));
            g.repeat(body, min, Some(min + u32::from(byte / 27 % 4)))
        }
        6 => {
            let body = more(g, plan);
            g.star(body)
        }
        7 => {
            let body = more(g, plan);
            g.optional(body)
        }
        _ => g.rule(rules[usize::from(byte / 9 % 2)]),
    }
}
