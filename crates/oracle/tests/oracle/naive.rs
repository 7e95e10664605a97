//! Compares the oracle with a still simpler implementation: a table of the parts of a short text that each expression
//! matches, filled by trying everything.

use std::collections::{BTreeSet, HashMap};

use maskwright_grammar::{Expr, ExprId, Grammar};
use maskwright_oracle::generate::{self, Rng, Shape, strings};
use maskwright_oracle::{DEFAULT_LIMIT, Oracle};

/// The parts `from..to` of a text.
type Pieces = BTreeSet<(usize, usize)>;

struct Naive<'a> {
    grammar: &'a Grammar,
    /// Cached answers for operands of intersections, complements and JSON strings, which are needed again and again.
    known: HashMap<(ExprId, Vec<u8>), bool>,
}

impl<'a> Naive<'a> {
    fn new(grammar: &'a Grammar) -> Self {
        Self { grammar, known: HashMap::new() }
    }

    fn accepts(&mut self, text: &[u8]) -> bool {
        let root = self.grammar.rule(self.grammar.root()).expr();
        self.matches(root, text)
    }

    /// Checks whether the expression matches the whole text.
    fn matches(&mut self, expr: ExprId, text: &[u8]) -> bool {
        if let Some(&known) = self.known.get(&(expr, text.to_vec())) {
            return known;
        }
        let mut table: Vec<Pieces> = vec![Pieces::new(); self.grammar.exprs().len()];
        let mut open = self.needed(expr);
        loop {
            let mut changed = false;
            for i in core::mem::take(&mut open) {
                let (now, is_final) = self.pieces(i, text, &table);
                changed |= now != table[i];
                table[i] = now;
                if !is_final {
                    open.insert(i);
                }
            }
            if !changed {
                break;
            }
        }
        let answer = table[expr.index()].contains(&(0, text.len()));
        self.known.insert((expr, text.to_vec()), answer);
        answer
    }

    /// Returns the expressions whose parts matter. Operands of intersections, complements and JSON strings do not: each
    /// is evaluated separately, which is possible because they are not recursive.
    fn needed(&self, expr: ExprId) -> BTreeSet<usize> {
        let (mut needed, mut work) = (BTreeSet::new(), vec![expr]);
        while let Some(expr) = work.pop() {
            if needed.insert(expr.index()) {
                match self.grammar.expr(expr) {
                    Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => {}
                    Expr::Rule(rule) => work.push(self.grammar.rule(*rule).expr()),
                    other => work.extend_from_slice(other.operands()),
                }
            }
        }
        needed
    }

    /// Returns the parts that an expression matches, from those of its operands, and whether that is final.
    fn pieces(&mut self, i: usize, text: &[u8], table: &[Pieces]) -> (Pieces, bool) {
        let all = || (0..=text.len()).flat_map(|from| (from..=text.len()).map(move |to| (from, to)));
        let grammar = self.grammar;
        let of = |expr: &ExprId| &table[expr.index()];
        match &grammar.exprs()[i] {
            Expr::Never => (Pieces::new(), true),
            Expr::Empty => (all().filter(|(from, to)| from == to).collect(), true),
            Expr::Bytes(bytes) => (all().filter(|&(from, to)| text[from..to] == **bytes).collect(), true),
            Expr::Class(set) => {
                let is_member = |&(from, to): &(usize, usize)| {
                    let Ok(piece) = str::from_utf8(&text[from..to]) else { return false };
                    let mut chars = piece.chars();
                    chars.next().is_some_and(|c| set.contains(c)) && chars.next().is_none()
                };
                (all().filter(is_member).collect(), true)
            }
            Expr::Token(_) => (Pieces::default(), false),
            Expr::Seq(parts) => {
                let first: Pieces = all().filter(|(from, to)| from == to).collect();
                (parts.iter().fold(first, |before, part| join(&before, of(part))), false)
            }
            Expr::Alt(parts) => (parts.iter().flat_map(|part| of(part).iter().copied()).collect(), false),
            Expr::Repeat { body, min, max } => (rounds(of(body), *min, *max, text.len()), false),
            Expr::Rule(rule) => (of(&grammar.rule(*rule).expr()).clone(), false),
            Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => {
                (of(body).clone(), false)
            }
            Expr::And(parts) => {
                let in_all = |&(from, to): &(usize, usize)| {
                    parts.iter().all(|&part| self.matches(part, &text[from..to]))
                };
                (all().filter(in_all).collect(), true)
            }
            Expr::Not(inner) => {
                let is_other = |&(from, to): &(usize, usize)| {
                    str::from_utf8(&text[from..to]).is_ok() && !self.matches(*inner, &text[from..to])
                };
                (all().filter(is_other).collect(), true)
            }
            Expr::JsonString(inner) => {
                let is_spelling = |&(from, to): &(usize, usize)| {
                    decode(&text[from..to]).is_some_and(|decoded| self.matches(*inner, decoded.as_bytes()))
                };
                (all().filter(is_spelling).collect(), true)
            }
        }
    }
}

/// Returns the parts that consist of one part followed by the other.
fn join(first: &Pieces, second: &Pieces) -> Pieces {
    let ends = |&(from, middle): &(usize, usize)| {
        second.iter().filter(move |piece| piece.0 == middle).map(move |piece| (from, piece.1))
    };
    first.iter().flat_map(ends).collect()
}

/// Returns the parts that consist of `min` to `max` parts in a row.
fn rounds(body: &Pieces, min: u32, max: Option<u32>, length: usize) -> Pieces {
    let mut now: Pieces = (0..=length).map(|at| (at, at)).collect();
    let mut all = Pieces::new();
    let mut round = 0;
    loop {
        if round >= min {
            all.extend(&now);
        }
        let next = join(&now, body);
        // Either rounds read something and the text runs out, or they may be empty and nothing changes.
        if max == Some(round) || (next == now && round >= min) || (next.is_empty() && round >= min) {
            return all;
        }
        if next == now {
            round = min;
        } else {
            round += 1;
        }
        now = next;
    }
}

/// Decodes a JSON string with an independent parser.
fn decode(spelling: &[u8]) -> Option<String> {
    let is_quoted = spelling.len() >= 2 && spelling.starts_with(b"\"") && spelling.ends_with(b"\"");
    if is_quoted { serde_json::from_slice(spelling).ok() } else { None }
}

/// Compares the oracle with the table on all texts up to a length. Returns how many of them the oracle accepts.
fn check(grammar: &Grammar, alphabet: &[u8], longest: usize) -> usize {
    let oracle = Oracle::with_limit(grammar, DEFAULT_LIMIT).expect("small grammars are decidable");
    let mut naive = Naive::new(grammar);
    let mut texts = vec![Vec::new()];
    texts.extend(strings(alphabet, longest));
    let accepted: Vec<&Vec<u8>> = texts.iter().filter(|text| naive.accepts(text)).collect();
    let mut beginnings: BTreeSet<&[u8]> = BTreeSet::new();
    for text in &accepted {
        beginnings.extend((0..=text.len()).map(|end| &text[..end]));
    }
    let accepted: BTreeSet<&Vec<u8>> = accepted.into_iter().collect();
    for text in &texts {
        let state = oracle.run(&oracle.start(), text);
        let shown = text.escape_ascii();
        assert_eq!(oracle.is_accepting(&state), accepted.contains(text), "\"{shown}\" and\n{grammar}");
        let viable = oracle.is_viable(&state);
        assert!(viable || !beginnings.contains(&text[..]), "\"{shown}\" can be completed:\n{grammar}");
        assert_eq!(viable, oracle.distance(&state).is_some(), "distance after \"{shown}\":\n{grammar}");
        if viable && !beginnings.contains(&text[..]) {
            // There must be a longer completion. The table checks it as well, if it is not too long.
            let rest = oracle.completion(&state).expect("viable");
            let whole = [&text[..], &rest].concat();
            assert!(oracle.accepts(&whole), "\"{shown}\" + \"{}\":\n{grammar}", rest.escape_ascii());
            if whole.len() <= 24 {
                assert!(naive.accepts(&whole), "\"{shown}\" + \"{}\":\n{grammar}", rest.escape_ascii());
            }
        }
    }
    accepted.len()
}

fn check_many(shape: &Shape, alphabet: &[u8], longest: usize, seeds: core::ops::Range<u64>) {
    let telling = seeds.clone().filter(|&seed| {
        let accepted = check(&generate::grammar(&mut Rng::new(seed), shape), alphabet, longest);
        (2..300).contains(&accepted)
    });
    // Grammars that accept almost nothing or everything would be a weak test.
    assert!(telling.count() as u64 * 4 > seeds.end - seeds.start, "most grammars are trivial");
}

#[test]
fn context_free_grammars() {
    let shape = Shape {
        alphabet: vec!['a', 'b', 'c'],
        booleans: false,
        json_strings: false,
        wide_classes: false,
        word_rules: 0,
        ..Shape::default()
    };
    check_many(&shape, b"abc", 5, 0..400);
}

#[test]
fn intersections_and_complements() {
    let shape = Shape { alphabet: vec!['a', 'b'], json_strings: false, ..Shape::default() };
    check_many(&shape, b"ab", 5, 1000..1300);
}

#[test]
fn characters_of_several_bytes() {
    let shape = Shape { alphabet: vec!['a', 'é', 'è'], json_strings: false, ..Shape::default() };
    check_many(&shape, b"a\xC3\xA9", 5, 2000..2200);
}

#[test]
fn json_strings() {
    let shape = Shape { alphabet: vec!['n', '"', '\\', '\n'], free_rules: 2, ..Shape::default() };
    check_many(&shape, b"n\"\\", 5, 3000..3200);
}
