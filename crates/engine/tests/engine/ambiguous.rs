//! Grammars that are deliberately ambiguous or counted, compared with the oracle: every law, with and without merged
//! parses.

use std::sync::Arc;

use maskwright_automata::{CancelToken, with_cancel};
use maskwright_engine::{
    AutomatonCache, BoundProgram, Library, Limits, MatchError, Matcher, Strategy, compile,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng};
use maskwright_oracle::laws::{self, Case, Effort, Subject};
use maskwright_oracle::{Oracle, Tokens};
use maskwright_vocab::TokenId;

use crate::support::vocabulary;

struct Engine(Matcher);

impl Subject for Engine {
    fn fill(&mut self, words: &mut [u32]) {
        self.0.fill_mask(words).expect("within limits");
    }
    fn accept(&mut self, token: u32) -> bool {
        let accepted = self.0.accept(TokenId(token));
        let is_limit = |error: &MatchError| {
            matches!(
                error,
                MatchError::TooAmbiguous | MatchError::TooManySteps { .. } | MatchError::Cancelled
            )
        };
        assert!(!accepted.as_ref().is_err_and(is_limit), "{accepted:?}");
        accepted.is_ok()
    }
    fn accept_bytes(&mut self, bytes: &[u8]) -> bool {
        self.0.accept_bytes(bytes).is_ok()
    }
    fn rollback(&mut self, count: usize) -> bool {
        self.0.rollback(count).is_ok()
    }
    fn fork(&self) -> Self {
        Self(self.0.fork())
    }
    fn reset(&mut self) {
        self.0.reset();
    }
    fn is_accepting(&mut self) -> bool {
        self.0.is_accepting()
    }
}

/// Returns a grammar with one recursive rule, `root`.
fn recursive(body: impl FnOnce(&mut GrammarBuilder, ExprId) -> ExprId) -> Grammar {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let call = g.rule(root);
    let expr = body(&mut g, call);
    g.define(root, expr);
    g.finish(root).expect("the rule is defined")
}

fn class(g: &mut GrammarBuilder, low: char, high: char) -> ExprId {
    g.class(CharSet::from_ranges([(low, high)]))
}

fn optional(g: &mut GrammarBuilder, text: &str) -> ExprId {
    let text = g.bytes(text.as_bytes());
    g.repeat(text, 0, Some(1))
}

/// Returns all grammars, with their letters.
#[expect(clippy::too_many_lines, reason = "a list")]
fn grammars() -> Vec<(&'static str, &'static str, Grammar)> {
    let sum = recursive(|g, root| {
        let (plus, one) = (g.bytes(b"+"), g.bytes(b"1"));
        let sum = g.seq([root, plus, root]);
        g.alt([sum, one])
    });
    let twice = recursive(|g, root| {
        let (twice, a) = (g.seq([root, root]), g.bytes(b"a"));
        g.alt([twice, a])
    });
    let operators = recursive(|g, root| {
        let space = g.bytes(b" ");
        let spaces = g.repeat(space, 0, None);
        let operators = ["+", "*"].map(|operator| {
            let operator = g.bytes(operator.as_bytes());
            g.seq([root, spaces, operator, spaces, root])
        });
        let (minus, open, close) = (g.bytes(b"-"), g.bytes(b"("), g.bytes(b")"));
        let negative = g.seq([minus, spaces, root]);
        let nested = g.seq([open, root, close]);
        let letter = class(g, 'a', 'b');
        let name = g.repeat(letter, 1, None);
        g.alt([operators[0], operators[1], negative, nested, name])
    });
    let dangling_else = recursive(|g, root| {
        let (i, e, a) = (g.bytes(b"i"), g.bytes(b"e"), g.bytes(b"a"));
        let short = g.seq([i, root]);
        let long = g.seq([i, root, e, root]);
        g.alt([short, long, a])
    });
    let words = recursive(|g, _| {
        let letter = class(g, 'a', 'b');
        let (word, space) = (g.repeat(letter, 2, Some(9)), optional(g, " "));
        let round = g.seq([word, space]);
        g.repeat(round, 2, Some(7))
    });
    let three_levels = recursive(|g, _| {
        let a = g.bytes(b"a");
        let (inner, b) = (g.repeat(a, 1, Some(3)), optional(g, "b"));
        let middle = g.seq([inner, b]);
        let (middle, c) = (g.repeat(middle, 2, Some(40)), optional(g, "c"));
        let outer = g.seq([middle, c]);
        g.repeat(outer, 1, Some(50))
    });
    let holes = recursive(|g, _| {
        let a = g.bytes(b"a");
        let (three, five) = (g.repeat(a, 3, Some(3)), g.repeat(a, 5, Some(5)));
        let (either, b) = (g.alt([three, five]), optional(g, "b"));
        let round = g.seq([either, b]);
        g.repeat(round, 4, Some(4))
    });
    let pairs = recursive(|g, _| {
        let letter = class(g, 'a', 'b');
        let (word, space) = (g.repeat(letter, 1, Some(70)), optional(g, " "));
        let second = g.repeat(word, 0, Some(1));
        let round = g.seq([word, space, second]);
        g.repeat(round, 3, Some(60))
    });
    let nested_loops = recursive(|g, root| {
        let (open, close, a) = (g.bytes(b"["), g.bytes(b"]"), g.bytes(b"a"));
        let comma = optional(g, ",");
        let item = g.seq([root, comma]);
        let items = g.repeat(item, 1, Some(30));
        let list = g.seq([open, items, close]);
        let text = g.repeat(a, 2, Some(9));
        g.alt([list, text])
    });
    let steps = recursive(|g, root| {
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        let one = g.seq([a, root]);
        let two = g.seq([a, a, root]);
        g.alt([one, two, b])
    });
    let hidden_left = recursive(|g, root| {
        let (z, x, y) = (optional(g, "z"), g.bytes(b"x"), g.bytes(b"y"));
        let longer = g.seq([z, root, x]);
        g.alt([longer, y])
    });
    let mut g = GrammarBuilder::new();
    let (a, b) = (g.declare("a"), g.declare("b"));
    let (call_a, call_b) = (g.rule(a), g.rule(b));
    let letters = ["x", "y", "n", "m"].map(|letter| g.bytes(letter.as_bytes()));
    let both = g.seq([call_b, letters[0], call_b]);
    let body = g.alt([both, letters[2]]);
    g.define(a, body);
    let both = g.seq([call_a, letters[1], call_a]);
    let body = g.alt([both, letters[3], call_a]);
    g.define(b, body);
    let mutual = g.finish(a).expect("both rules are defined");
    vec![
        ("sum", "1+", sum),
        ("twice", "a", twice),
        ("operators", "a+-( )", operators),
        ("dangling else", "iea", dangling_else),
        ("words", "ab ", words),
        ("three levels", "abc", three_levels),
        ("holes", "ab", holes),
        ("pairs", "ab ", pairs),
        ("nested loops", "[]a,", nested_loops),
        ("steps", "ab", steps),
        ("hidden left recursion", "xyz", hidden_left),
        ("mutual recursion", "xynm", mutual),
    ]
}

fn bind(grammar: &Grammar, list: &[Vec<u8>], limits: &Limits) -> Arc<BoundProgram> {
    let program = compile(grammar, &AutomatonCache::default(), limits).expect("the grammar compiles");
    BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary(list))))
}

fn judge(strategy: Strategy, effort: &Effort) {
    for (at, (name, letters, grammar)) in grammars().iter().enumerate() {
        let mut rng = Rng::new(at as u64);
        let mut list = generate::vocabulary(&mut rng, letters.as_bytes(), 60);
        list.retain(|bytes| !bytes.is_empty());
        let bound = bind(grammar, &list, &Limits::default());
        let tokens = Tokens::new(list.len() + 1, (0..).zip(list.iter().map(Vec::as_slice)))
            .with_eos([list.len() as u32]);
        let fresh = || {
            let mut matcher = bound.matcher();
            matcher.set_strategy(strategy);
            Engine(matcher)
        };
        let oracle = Oracle::new(grammar);
        let case = Case::new(format!("{name}\n{grammar}\n"), &oracle, &tokens);
        let tally = laws::all(&case, &fresh, &mut rng, effort).unwrap_or_else(|broken| panic!("{broken}"));
        assert!(tally.bits > 0, "{name}: nothing was compared");
    }
}

#[test]
fn merged_parses_obey_the_laws() {
    judge(Strategy::Fast, &Effort { length: 12, rounds: 2, accepts: 200 });
}

#[test]
fn parses_that_are_not_merged_obey_the_laws() {
    judge(Strategy::Reference, &Effort { length: 7, rounds: 1, accepts: 60 });
}

/// Compares masks with merged and cached parses with masks of unmerged parses, along texts that the oracle would take
/// too long for.
#[test]
fn masks_are_the_same_without_merging() {
    for (at, (name, letters, grammar)) in grammars().iter().enumerate() {
        let mut rng = Rng::new(100 + at as u64);
        let mut list = generate::vocabulary(&mut rng, letters.as_bytes(), 120);
        list.retain(|bytes| !bytes.is_empty());
        let bound = bind(grammar, &list, &Limits::default());
        let words = bound.vocabulary().size().div_ceil(32);
        for _ in 0..3 {
            let (mut merged, mut plain) = (bound.matcher(), bound.matcher());
            plain.set_strategy(Strategy::Reference);
            for _ in 0..9 {
                let (mut ours, mut theirs) = (vec![0; words], vec![0; words]);
                merged.fill_mask(&mut ours).expect("within limits");
                plain.fill_mask(&mut theirs).expect("the plain way has no limit");
                assert_eq!(ours, theirs, "{name}");
                let allowed: Vec<u32> =
                    (0..list.len() as u32).filter(|t| ours[*t as usize / 32] >> (t % 32) & 1 == 1).collect();
                let Some(&token) = rng.choose(&allowed) else { break };
                merged.accept(TokenId(token)).expect("the mask allows it");
                // Without merging there may be too many parses; that is the purpose of merging.
                if plain.accept(TokenId(token)).is_err() || plain.state_info().threads.len() > 60 {
                    break;
                }
            }
        }
    }
}

/// One stack and one thread, however long the text is.
#[test]
fn ambiguity_does_not_add_up() {
    for (name, text) in [("sum", "1+"), ("twice", "a"), ("operators", "a+"), ("words", "ab"), ("pairs", "ab")]
    {
        let (_, _, grammar) = grammars().into_iter().find(|one| one.0 == name).expect("it is there");
        let bound = bind(&grammar, &[text.as_bytes().to_vec()], &Limits::default());
        let mut matcher = bound.matcher();
        let rounds = if matches!(name, "words" | "pairs") { 25 } else { 500 };
        for round in 0..rounds {
            if matcher.accept_bytes(text.as_bytes()).is_err() {
                assert!(round > 20, "{name}: {round} rounds");
                break;
            }
            let parses = matcher.state_info().threads.len();
            assert!(parses <= 4, "{name}: {parses} parses after {round} rounds");
        }
    }
}

#[test]
fn a_limit_on_steps_is_an_error_that_changes_nothing() {
    let (_, letters, grammar) = grammars().swap_remove(2);
    let mut rng = Rng::new(7);
    let mut list = generate::vocabulary(&mut rng, letters.as_bytes(), 60);
    list.retain(|bytes| !bytes.is_empty());
    let mut limits = Limits::default();
    limits.mask_steps = 40;
    let bound = bind(&grammar, &list, &limits);
    let mut matcher = bound.matcher();
    let words = bound.vocabulary().size().div_ceil(32);
    let mut row = vec![u32::MAX; words];
    let error = matcher.fill_mask(&mut row).expect_err("forty steps are not enough");
    assert!(matches!(&error, MatchError::TooManySteps { steps: 40, rule } if &**rule == "root"), "{error:?}");
    assert!(error.to_string().contains("`root`") && error.to_string().contains("mask_steps"), "{error}");
    assert!(row.iter().all(|word| *word == 0), "no half mask is left behind");
    assert!(matcher.mask_words().is_err() && matcher.mask().is_err());
    let before = matcher.steps();
    assert!(matches!(matcher.accept_bytes(b"a+a*a+a*a+a*a+a*a"), Err(MatchError::TooManySteps { .. })));
    assert_eq!(matcher.steps(), before);
    assert!(matcher.accept_bytes(b"a").is_ok(), "what is within the limit still goes");
}

#[test]
fn a_stop_ends_a_mask_and_changes_nothing() {
    let (_, letters, grammar) = grammars().swap_remove(2);
    let mut rng = Rng::new(8);
    let mut list = generate::vocabulary(&mut rng, letters.as_bytes(), 60);
    list.retain(|bytes| !bytes.is_empty());
    let bound = bind(&grammar, &list, &Limits::default());
    let mut matcher = bound.matcher();
    let mut row = vec![0; bound.vocabulary().size().div_ceil(32)];
    let stop = CancelToken::new();
    stop.cancel();
    let long = b"a+".repeat(1_000);
    let stopped = with_cancel(&stop, || (matcher.fill_mask(&mut row), matcher.accept_bytes(&long)));
    assert_eq!(stopped, (Err(MatchError::Cancelled), Err(MatchError::Cancelled)));
    matcher.fill_mask(&mut row).expect("nobody stops it any more");
    let mut fresh = vec![0; row.len()];
    bound.matcher().fill_mask(&mut fresh).expect("a mask");
    assert_eq!(row, fresh);
}

/// After each byte as many calls are open as there are bytes, and each may have been made at any earlier place: the
/// cost of a byte grows with the square of their number, and not faster.
#[test]
fn nested_calls_cost_what_their_places_cost() {
    let grammar = recursive(|g, root| {
        let a = g.bytes(b"a");
        let nested = g.seq([a, root, a, root, a]);
        g.repeat(nested, 0, Some(1))
    });
    let list = [b"a".to_vec(), b"aa".to_vec(), b"aaaaaaaa".to_vec()];
    let mut limits = Limits::default();
    limits.mask_steps = 600_000;
    let bound = bind(&grammar, &list, &limits);
    let mut matcher = bound.matcher();
    let mut row = vec![0];
    for bytes in 1..=150 {
        matcher.accept_bytes(b"a").unwrap_or_else(|error| panic!("byte {bytes}: {error}"));
        matcher.fill_mask(&mut row).unwrap_or_else(|error| panic!("behind {bytes} bytes: {error}"));
        assert_eq!(row[0] & 0b111, 0b111, "any number of `a` may follow");
    }
}
