//! Small grammars whose answers can be checked by hand.

use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng, Shape};
use maskwright_oracle::{Oracle, Tokens};

/// Builds a grammar of one rule.
fn grammar(body: impl FnOnce(&mut GrammarBuilder) -> ExprId) -> Grammar {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let body = body(&mut g);
    g.define(root, body);
    g.finish(root).expect("defined and regular")
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Verdict {
    Whole,
    Beginning,
    Dead,
}
use Verdict::{Beginning, Dead, Whole};

#[track_caller]
fn check(grammar: &Grammar, cases: &[(&[u8], Verdict)]) {
    let oracle = Oracle::new(grammar);
    for &(text, verdict) in cases {
        let state = oracle.run(&oracle.start(), text);
        let got = match (oracle.is_accepting(&state), oracle.is_viable(&state)) {
            (true, true) => Whole,
            (false, true) => Beginning,
            (false, false) => Dead,
            (true, false) => panic!("accepting and not viable"),
        };
        assert_eq!(got, verdict, "\"{}\"", text.escape_ascii());
    }
}

#[test]
fn a_rule_that_never_ends_is_no_way_on() {
    let mut g = GrammarBuilder::new();
    let (root, endless) = (g.declare("root"), g.declare("endless"));
    let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
    let (call, x) = (g.rule(endless), g.bytes(b"x"));
    let again = g.seq([x, call]);
    g.define(endless, again);
    let dead = g.seq([a, call]);
    let maybe = g.star(call);
    let live = g.seq([b, maybe]);
    let body = g.alt([dead, live]);
    g.define(root, body);
    check(&g.finish(root).expect("defined"), &[(b"", Beginning), (b"a", Dead), (b"b", Whole), (b"bx", Dead)]);
}

#[test]
fn an_empty_language_is_dead_from_the_start() {
    let never = grammar(|g| {
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        g.and([a, b])
    });
    check(&never, &[(b"", Dead), (b"a", Dead)]);
}

#[test]
fn left_recursion_cycles_and_empty_loops() {
    // root ::= root root | root | "" | root "a" | "b"
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let (call, a, b, empty) = (g.rule(root), g.bytes(b"a"), g.bytes(b"b"), g.empty());
    let twice = g.seq([call, call]);
    let left = g.seq([call, a]);
    let body = g.alt([twice, call, empty, left, b]);
    g.define(root, body);
    let all: &[(&[u8], Verdict)] = &[(b"", Whole), (b"aab", Whole), (b"bbaab", Whole), (b"abc", Dead)];
    check(&g.finish(root).expect("defined"), all);
}

#[test]
fn large_counts_are_numbers() {
    let exact = grammar(|g| {
        let x = g.class(CharSet::from_ranges([('a', 'b')]));
        let x = g.repeat(x, 300, Some(100_000));
        let end = g.bytes(b".");
        g.seq([x, end])
    });
    let letters = [b'a'; 300];
    let whole = [&letters[..], b"."].concat();
    let early = [&letters[1..], b"."].concat();
    check(&exact, &[(&letters, Beginning), (&whole, Whole), (&early, Dead)]);
    let oracle = Oracle::new(&exact);
    assert_eq!(oracle.distance(&oracle.start()), Some(301));

    // A nullable body can fill any required number of rounds.
    let nullable = grammar(|g| {
        let a = g.bytes(b"a");
        let maybe = g.optional(a);
        g.repeat(maybe, 50_000, Some(100_000))
    });
    check(&nullable, &[(b"", Whole), (b"aaa", Whole), (b"b", Dead)]);
}

#[test]
fn a_class_allows_the_beginnings_of_its_members_only() {
    let class = grammar(|g| g.class(CharSet::from_ranges([('é', 'ê'), ('😀', '😂')])));
    check(
        &class,
        &[
            (b"\xC3", Beginning),
            (b"\xC3\xA9", Whole),
            (b"\xC3\xAB", Dead),
            (b"\xC2", Dead),
            (b"\xF0\x9F\x98", Beginning),
            (b"\xF0\x9F\x97", Dead),
            ("😂".as_bytes(), Whole),
            ("😃".as_bytes(), Dead),
            (b"\xE0", Dead),
        ],
    );
}

#[test]
fn complements_are_well_formed() {
    let not = grammar(|g| {
        let ab = g.bytes(b"ab");
        g.not(ab)
    });
    let cases: &[(&[u8], Verdict)] =
        &[(b"", Whole), (b"ab", Beginning), (b"abc", Whole), (b"\xC3", Beginning), (b"\xFF", Dead)];
    check(&not, cases);
    // The complement of everything that is not "a": the only end is one letter away.
    let only_a = grammar(|g| {
        let a = g.bytes(b"a");
        let other = g.not(a);
        g.not(other)
    });
    check(&only_a, &[(b"", Beginning), (b"a", Whole), (b"b", Dead), (b"aa", Dead)]);
}

#[test]
fn what_cannot_be_told_is_said() {
    // Two periods that first meet far away, with too few steps.
    let grammar = grammar(|g| {
        let parts = [97, 89].map(|period| {
            let a = g.bytes(&vec![b'a'; period]);
            g.repeat(a, 1, None)
        });
        g.and(parts)
    });
    let unknown = Oracle::with_limit(&grammar, 100).expect_err("too few steps");
    assert!(unknown.to_string().contains("with_limit"), "{unknown}");
    let oracle = Oracle::new(&grammar);
    assert_eq!(oracle.completion(&oracle.start()).map(|text| text.len()), Some(97 * 89));
}

#[test]
fn masks_ask_for_every_token() {
    let grammar = grammar(|g| {
        let (a, quote) = (g.class(CharSet::from_ranges([('a', 'c')])), g.bytes(b"\""));
        let text = g.repeat(a, 0, Some(3));
        g.seq([quote, text, quote])
    });
    let oracle = Oracle::new(&grammar);
    let list: Vec<Vec<u8>> = generate::vocabulary(&mut Rng::new(1), b"ab\"", 40);
    let tokens = Tokens::from_list(&list);
    assert!(tokens.spell_everything());
    let state = oracle.run(&oracle.start(), b"\"b");
    let mask = oracle.mask(&state, &tokens);
    let mut allowed = 0;
    for (id, bytes) in (0..).zip(&list) {
        let expected = oracle.is_viable(&oracle.run(&state, bytes));
        assert_eq!(mask.contains(id), expected, "\"{}\"", bytes.escape_ascii());
        allowed += u32::from(expected);
    }
    // a b c " – aa ab a" ba bb b" – aa" ab" ba" bb"
    assert_eq!(allowed, 14);
    assert_eq!(mask.tokens().count(), 14);
}

#[test]
fn tokens_without_bytes_are_never_allowed() {
    let oracle = Oracle::new(&grammar(GrammarBuilder::any_text));
    let tokens = Tokens::new(40, [(0, &b"a"[..]), (1, b""), (39, b"a")]);
    assert_eq!(oracle.mask(&oracle.start(), &tokens).tokens().collect::<Vec<_>>(), [0, 39]);
}

/// The chart and the derivatives read the same regular set in two ways: `¬¬x` is read by the derivatives.
#[test]
fn chart_and_derivatives_agree() {
    let shape = Shape {
        alphabet: vec!['a', 'é'],
        free_rules: 1,
        json_strings: false,
        // Under a complement these would be large intersections.
        large_counts: false,
        ..Shape::default()
    };
    let mut compared = 0;
    for seed in 0..400 {
        let once = generate::grammar(&mut Rng::new(seed), &shape);
        let Some(twice) = doubly_complemented(&once) else { continue };
        // The complement excludes texts that are not well-formed, so the two may differ on those.
        let (chart, derivatives) = (Oracle::new(&once), Oracle::new(&twice));
        for text in generate::strings(b"a\xC3\xA9", 5) {
            let well_formed = str::from_utf8(&text).is_ok();
            let expected = well_formed && chart.accepts(&text);
            assert_eq!(derivatives.accepts(&text), expected, "\"{}\" and\n{once}", text.escape_ascii());
            compared += u32::from(expected);
        }
    }
    assert!(compared > 600, "too few texts were accepted to mean anything: {compared}");
}

/// Returns `root ::= ~~(the old root)`; `None` if the old root is not regular.
fn doubly_complemented(grammar: &Grammar) -> Option<Grammar> {
    let mut g = GrammarBuilder::new();
    let old = g.embed(grammar);
    let root = g.declare("twice");
    let not = g.not(old);
    let not_not = g.not(not);
    g.define(root, not_not);
    g.finish(root).ok()
}
