//! Forks share their history: whatever is done to one of them, each is like a matcher that took its tokens one by one.

use std::sync::Arc;

use maskwright::{CompiledConstraint, Compiler, Constraint, Matcher, TokenId, Vocabulary, VocabularyBuilder};
use maskwright_oracle::generate::Rng;

fn vocabulary() -> Arc<Vocabulary> {
    let pieces = ["\"a", "\",\"", "\":", "1,", "12", "+1", "(1", "aa", "ab ", "},{", "]]", "[[", " b"];
    let letters = "ab1230+*() ,:[]{}\"\n".bytes().map(|byte| vec![byte]);
    let mut builder = VocabularyBuilder::new();
    let mut id = 0;
    for token in letters.chain(pieces.iter().map(|piece| piece.as_bytes().to_vec())) {
        builder.token(TokenId(id), &token).expect("ids are distinct");
        id += 1;
    }
    builder.special(TokenId(id), "<end>").expect("the id is free").eos(TokenId(id));
    Arc::new(builder.finish().expect("there are tokens"))
}

fn constraints() -> Vec<Constraint> {
    vec![
        Constraint::json_schema("{}"),
        Constraint::json_schema(r#"{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}"#),
        Constraint::json_schema(
            r#"{"type": "array", "items": {"type": "string", "pattern": "^[ab]*$"}, "uniqueItems": true}"#,
        ),
        Constraint::ebnf(r#"root ::= root "+" root | root "*" root | "(" root ")" | [0-9]+"#),
        Constraint::ebnf(r#"root ::= "a" root | "ab" root "b"? | [ 123] root | "b""#),
        Constraint::lark("start: (WORD | LIST)+\nWORD: /[ab]+/\nLIST: \"[\" WORD \"]\"\n%ignore \" \""),
        Constraint::regex("([ab]{1,20} ?){1,5000}"),
    ]
}

/// A matcher, and the tokens that it has taken.
type Pair = (Matcher, Vec<TokenId>);

fn same_as_anew(bound: &CompiledConstraint, (matcher, tokens): &mut Pair, what: &str) {
    let mut anew = bound.matcher();
    for &token in &*tokens {
        anew.accept(token).expect("it was accepted before");
    }
    assert_eq!(anew.mask().expect("a mask"), matcher.mask().expect("a mask"), "{what}");
    assert_eq!(anew.is_accepting(), matcher.is_accepting(), "{what}");
    assert_eq!(anew.steps(), matcher.steps(), "{what}");
}

#[test]
fn forks_are_independent() {
    let compiler = Compiler::new(vocabulary());
    for (number, constraint) in constraints().iter().enumerate() {
        let bound = compiler.compile(constraint).expect("it compiles");
        let mut rng = Rng::new(number as u64 + 1);
        let mut pairs: Vec<Pair> = vec![(bound.matcher(), Vec::new())];
        let (mut longest, mut furthest) = (0, 0);
        for round in 0..1_500 {
            let at = rng.below(pairs.len());
            let what = format!("{constraint:?}, round {round}");
            match rng.below(12) {
                0 => {
                    let fork = (pairs[at].0.fork(), pairs[at].1.clone());
                    if pairs.len() < 6 {
                        pairs.push(fork);
                    } else {
                        let to = rng.below(6);
                        pairs[to] = fork;
                    }
                }
                1 => {
                    let (matcher, tokens) = &mut pairs[at];
                    let back =
                        if rng.below(20) == 0 { rng.below(tokens.len() + 1) } else { tokens.len().min(3) };
                    matcher.rollback(back).expect("so many steps were taken");
                    tokens.truncate(tokens.len() - back);
                    furthest = furthest.max(back);
                }
                _ => {
                    let (matcher, tokens) = &mut pairs[at];
                    for _ in 0..6 {
                        let mut mask = matcher.mask().expect("a mask").clone();
                        bound.vocabulary().eos().iter().for_each(|eos| mask.remove(*eos));
                        let count = mask.count();
                        if count == 0 {
                            break;
                        }
                        let token = mask.iter().nth(rng.below(count)).expect("there are so many");
                        matcher.accept(token).expect("the mask allows it");
                        if matcher.is_stopped() {
                            matcher.rollback(1).expect("it was just taken");
                            continue;
                        }
                        tokens.push(token);
                        longest = longest.max(tokens.len());
                    }
                }
            }
            if round % 25 == 0 {
                same_as_anew(&bound, &mut pairs[at], &what);
            }
        }
        for pair in &mut pairs {
            same_as_anew(&bound, pair, "at the end");
        }
        assert!(longest > 80 && furthest > 40, "{constraint:?}: {longest} tokens, {furthest} back");
    }
}
