//! Compares every construction with the definition of regular expressions.
//!
//! Random expressions over `a` and `b` are evaluated twice: by the constructions of the crate, and by computing the set
//! of all their words of at most six letters. There are 127 such words, so a language is a `u128`, and its content is
//! exact: a word of six letters is composed only of shorter ones.

use crate::build::{compose, derive};
use crate::{
    ByteSet, Dfa, DfaState, ExprId, Exprs, LazyDfa, Limits, Nfa, determinize, memberships, minimize,
};

const LONGEST: usize = 6;

/// A random expression that can be built and evaluated.
#[derive(Clone, Debug)]
enum Tree {
    Never,
    Empty,
    Set(ByteSet),
    Bytes(Vec<u8>),
    Concat(Vec<Tree>),
    Alt(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
    And(Vec<Tree>),
    Not(Box<Tree>),
    /// An automaton that was built before.
    Table(Box<Tree>),
}

/// A linear congruential generator: a failure must be reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn tree(&mut self, depth: u32, boolean: bool) -> Tree {
        let kinds = if depth == 0 {
            5
        } else if boolean {
            16
        } else {
            12
        };
        match self.below(kinds) {
            0 => [Tree::Never, Tree::Empty][usize::from(self.below(4) > 0)].clone(),
            1 => Tree::Bytes((0..self.below(4)).map(|_| self.letter()).collect()),
            2 => Tree::Set(
                [ByteSet::ALL, ByteSet::from_iter(*b"ab"), ByteSet::byte(b'a').complement()]
                    [self.below(3) as usize],
            ),
            3 | 4 => Tree::Set(ByteSet::byte(self.letter())),
            5 | 6 => Tree::Concat(self.trees(depth, boolean)),
            7 | 8 => Tree::Alt(self.trees(depth, boolean)),
            9 | 10 => {
                let min = self.below(4) as u32;
                let max = (self.below(2) == 0).then(|| min + self.below(3) as u32);
                Tree::Repeat(Box::new(self.tree(depth - 1, boolean)), min, max)
            }
            11 => Tree::Table(Box::new(self.tree(depth - 1, boolean))),
            12 | 13 => Tree::And(self.trees(depth, boolean)),
            _ => Tree::Not(Box::new(self.tree(depth - 1, boolean))),
        }
    }

    fn trees(&mut self, depth: u32, boolean: bool) -> Vec<Tree> {
        (0..=self.below(3)).map(|_| self.tree(depth - 1, boolean)).collect()
    }

    fn letter(&mut self) -> u8 {
        b"ab"[self.below(2) as usize]
    }
}

fn build(e: &mut Exprs, tree: &Tree) -> ExprId {
    let all = |e: &mut Exprs, trees: &[Tree]| -> Vec<ExprId> { trees.iter().map(|t| build(e, t)).collect() };
    match tree {
        Tree::Never => e.never(),
        Tree::Empty => e.empty(),
        Tree::Set(set) => e.set(*set),
        Tree::Bytes(bytes) => e.bytes(bytes),
        Tree::Concat(parts) => {
            let parts = all(e, parts);
            e.concat(parts)
        }
        Tree::Alt(parts) => {
            let parts = all(e, parts);
            e.alt(parts)
        }
        Tree::Repeat(body, min, max) => {
            let body = build(e, body);
            e.repeat(body, *min, *max)
        }
        Tree::And(parts) => {
            let parts = all(e, parts);
            e.and(parts)
        }
        Tree::Not(inner) => {
            let inner = build(e, inner);
            e.not(inner)
        }
        Tree::Table(inner) => {
            let mut other = Exprs::new();
            let inner = build(&mut other, inner);
            e.table(Dfa::build(&mut other, inner, &Limits::default()).unwrap())
        }
    }
}

/// A set of words of at most six letters: word `w` of length `n` is bit `2^n - 1 + w`.
type Language = u128;

const EVERYTHING: Language = (1 << ((1 << (LONGEST + 1)) - 1)) - 1;

fn words() -> impl Iterator<Item = (u32, Vec<u8>)> {
    (0..=LONGEST).flat_map(|len| {
        (0..1u32 << len).map(move |word| {
            let letters = (0..len).rev().map(|i| b"ab"[(word >> i & 1) as usize]).collect();
            ((1 << len) - 1 + word, letters)
        })
    })
}

fn concat(a: Language, b: Language) -> Language {
    let len_word = |bit: u32| {
        let len = (bit + 1).ilog2();
        (len, bit + 1 - (1 << len))
    };
    let bits = |set: Language| (0..128).filter(move |bit| set >> bit & 1 == 1);
    let mut result = 0;
    for (m, x) in bits(a).map(len_word) {
        for (n, y) in bits(b).map(len_word) {
            if (m + n) as usize <= LONGEST {
                result |= 1 << ((1u32 << (m + n)) - 1 + (x << n | y));
            }
        }
    }
    result
}

fn meaning(tree: &Tree) -> Language {
    match tree {
        Tree::Never => 0,
        Tree::Empty => 1,
        Tree::Set(set) => u128::from(set.contains(b'a')) << 1 | u128::from(set.contains(b'b')) << 2,
        Tree::Bytes(bytes) => bytes.iter().map(|&b| 1 << (1 + u32::from(b == b'b'))).fold(1, concat),
        Tree::Concat(parts) => parts.iter().map(meaning).fold(1, concat),
        Tree::Alt(parts) => parts.iter().map(meaning).fold(0, |a, b| a | b),
        Tree::Repeat(body, min, max) => {
            let body = meaning(body);
            let power = |n: u32| (0..n).fold(1, |set, _| concat(set, body));
            // Seven rounds more than the minimum reach every word of six letters.
            let max = max.unwrap_or(min + LONGEST as u32 + 1);
            (*min..=max).map(power).fold(0, |a, b| a | b)
        }
        Tree::And(parts) => parts.iter().map(meaning).fold(EVERYTHING, |a, b| a & b),
        Tree::Not(inner) => EVERYTHING & !meaning(inner),
        Tree::Table(inner) => meaning(inner),
    }
}

fn check_words(tree: &Tree, language: Language, what: &str, matches: &mut dyn FnMut(&[u8]) -> bool) {
    for (bit, word) in words() {
        let expected = language >> bit & 1 == 1;
        let shown = String::from_utf8_lossy(&word);
        assert_eq!(matches(&word), expected, "{what}: {shown:?} in {tree:?}");
    }
}

#[test]
fn all_constructions_agree_with_the_definition() {
    let limits = Limits::default();
    let mut random = Random(1);
    for round in 0..3000 {
        let tree = random.tree(round % 5, round % 2 == 0);
        let language = meaning(&tree);
        let mut e = Exprs::new();
        let id = build(&mut e, &tree);
        assert_eq!(e.is_nullable(id), language & 1 == 1, "{tree:?}");
        let dfa = Dfa::build(&mut e, id, &limits).unwrap();
        check_words(&tree, language, "dfa", &mut |word| dfa.matches(word));
        if let Some(nfa) = Nfa::build(&e, id, &limits).unwrap() {
            check_words(&tree, language, "nfa", &mut |word| nfa.matches(word));
            let draft = determinize(&nfa, &limits).unwrap();
            check_words(&tree, language, "draft", &mut |word| draft.matches(word));
            assert_eq!(minimize(&draft), dfa);
        }
        let mut lazy = LazyDfa::new(e, limits);
        let start = lazy.state_of(id).unwrap();
        check_words(&tree, language, "lazy", &mut |word| {
            let end = lazy.run(start, word).unwrap();
            // Both must die at the same byte.
            assert_eq!(lazy.is_dead(end), dfa.run(dfa.start(), word) == Dfa::DEAD, "{word:?} in {tree:?}");
            assert_eq!(lazy.live(end).unwrap(), dfa.live(dfa.run(dfa.start(), word)), "{word:?} in {tree:?}");
            lazy.is_accepting(end)
        });
        assert_eq!(lazy.witness_from(start).unwrap(), dfa.witness(), "{tree:?}");
    }
}

#[test]
fn all_ways_give_the_same_automaton() {
    let limits = Limits::default();
    let mut random = Random(2);
    for round in 0..1500 {
        let tree = random.tree(1 + round % 4, round % 3 > 0);
        let mut e = Exprs::new();
        let id = build(&mut e, &tree);
        let dfa = Dfa::build(&mut e, id, &limits).unwrap();
        assert_eq!(compose(&e, id, &limits).unwrap(), dfa, "{tree:?}");
        assert_eq!(minimize(&derive(&mut e, id, &limits).unwrap()), dfa, "{tree:?}");
    }
}

#[test]
fn automata_are_minimal_and_canonical() {
    let limits = Limits::default();
    let mut random = Random(3);
    for round in 0..600 {
        let tree = random.tree(1 + round % 4, round % 2 == 0);
        let mut e = Exprs::new();
        let id = build(&mut e, &tree);
        let dfa = Dfa::build(&mut e, id, &limits).unwrap();
        let count = dfa.len();
        assert!(!dfa.is_accepting(Dfa::DEAD));
        assert_eq!(distinguishable_pairs(&dfa), count * (count - 1) / 2, "{tree:?}");
        let numbers: Vec<DfaState> = breadth_first(&dfa);
        assert!(numbers.iter().copied().eq(dfa.states().skip(1)), "{numbers:?} of {tree:?}");
        assert!(dfa.classes().len() <= 4, "only a, b and the rest can differ in {tree:?}");
    }
}

/// Counts the pairs of states, including the dead one, that some word distinguishes (Moore's table).
fn distinguishable_pairs(dfa: &Dfa) -> usize {
    let pairs = || dfa.states().flat_map(|x| dfa.states().take(x.index()).map(move |y| (x, y)));
    let mut apart: std::collections::HashSet<(DfaState, DfaState)> =
        pairs().filter(|&(x, y)| dfa.is_accepting(x) != dfa.is_accepting(y)).collect();
    loop {
        let before = apart.len();
        for (x, y) in pairs() {
            if (0..=255).any(|byte| {
                let (p, q) = (dfa.next(x, byte), dfa.next(y, byte));
                apart.contains(&(p.max(q), p.min(q)))
            }) {
                apart.insert((x, y));
            }
        }
        if apart.len() == before {
            return before;
        }
    }
}

/// Returns the states in breadth-first order.
fn breadth_first(dfa: &Dfa) -> Vec<DfaState> {
    let mut order = vec![dfa.start()];
    let mut at = 0;
    while let Some(&state) = order.get(at) {
        for byte in 0..=255 {
            let target = dfa.next(state, byte);
            if target != Dfa::DEAD && !order.contains(&target) {
                order.push(target);
            }
        }
        at += 1;
    }
    order.retain(|&state| state != Dfa::DEAD);
    order
}

#[test]
fn boolean_laws_hold() {
    let limits = Limits::default();
    let mut random = Random(4);
    for round in 0..400 {
        let (one, two) = (random.tree(round % 4, true), random.tree(round % 3, true));
        let mut e = Exprs::new();
        let (a, b) = (build(&mut e, &one), build(&mut e, &two));
        let mut dfa = |id| Dfa::build(&mut e, id, &limits).unwrap();
        let (da, db) = (dfa(a), dfa(b));
        let (not_a, not_b) = (e.not(a), e.not(b));
        let both = e.and([a, b]);
        let either = e.alt([a, b]);
        let only_a = e.and([a, not_b]);
        let not_both = e.not(both);
        let de_morgan = e.alt([not_a, not_b]);
        let mut dfa = |id| Dfa::build(&mut e, id, &limits).unwrap();
        assert_eq!(dfa(both), da.intersection(&db, &limits).unwrap(), "{one:?} {two:?}");
        assert_eq!(dfa(either), da.union(&db, &limits).unwrap(), "{one:?} {two:?}");
        assert_eq!(dfa(only_a), da.difference(&db, &limits).unwrap(), "{one:?} {two:?}");
        assert_eq!(dfa(not_a), da.complement(&limits).unwrap(), "{one:?}");
        assert_eq!(dfa(not_both), dfa(de_morgan), "{one:?} {two:?}");
        assert!(da.intersection(&da.complement(&limits).unwrap(), &limits).unwrap().is_empty());
    }
}

#[test]
fn memberships_are_those_of_the_words() {
    let limits = Limits::default();
    let mut random = Random(5);
    for round in 0..400 {
        let trees: Vec<Tree> = (0..=round % 4).map(|_| random.tree(round % 3, true)).collect();
        let mut e = Exprs::new();
        let languages: Vec<ExprId> = trees.iter().map(|tree| build(&mut e, tree)).collect();
        // Only words whose meaning is known; in the first half of the rounds without the empty word.
        let letter = e.set(ByteSet::from_iter(*b"ab"));
        let universe = e.repeat(letter, u32::from(round < 200), Some(LONGEST as u32));
        let found = memberships(&mut e, universe, &languages, &limits, 1000).unwrap().found;
        let meanings: Vec<Language> = trees.iter().map(meaning).collect();
        let inside = |bit: u32| meanings.iter().map(|set| set >> bit & 1 == 1).collect::<Vec<_>>();
        let mut wanted: Vec<(Vec<bool>, Vec<u8>)> = Vec::new();
        for (bit, word) in words().filter(|(_, word)| round >= 200 || !word.is_empty()) {
            if !wanted.iter().any(|(known, _)| *known == inside(bit)) {
                wanted.push((inside(bit), word));
            }
        }
        let found: Vec<(Vec<bool>, Vec<u8>)> =
            found.into_iter().map(|one| (one.inside, one.witness)).collect();
        assert_eq!(found, wanted, "{trees:?}");
        let two = memberships(&mut e, universe, &languages, &limits, 1).unwrap().found;
        assert_eq!(two.len(), found.len().min(2), "{trees:?}");
    }
}
