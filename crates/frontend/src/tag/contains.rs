//! Checks whether the end of a tag can occur inside its content.
//!
//! A reader splits content `c` from the end `e` by looking for the first `e`. That is correct if `c e` contains `e`
//! only at its end, for every `c` of the language. Looking for `e` is a small automaton, with a state for each prefix
//! of `e` that has been read. The effect of a *language* on it is a relation between states: from which state it can
//! lead to which. Relations are composed along sequences and joined over alternatives. For rules that call one another
//! they grow until nothing changes, so recursive grammars need no special treatment.

use maskwright_automata as automata;
use maskwright_grammar::{Expr, ExprId, Grammar};

use crate::translate::translate;

/// Checks whether a text of the language, followed by `end`, contains `end` before its last character. Returns `true`
/// where the exact answer would be too expensive (inside strings with conditions).
pub(super) fn may_contain(grammar: &Grammar, end: &str) -> bool {
    let finder = Finder::new(end);
    if finder.pattern.is_empty() {
        return false;
    }
    if finder.states() > MAX_STATES {
        return true;
    }
    let mut known = vec![Relation::none(finder.states()); grammar.exprs().len()];
    // Every round adds a pair to a relation, or is the last one.
    loop {
        let mut changed = false;
        for id in grammar.expr_ids() {
            let new = finder.relation(grammar, id, &known);
            let old = &mut known[id.index()];
            changed |= old.join(&new);
        }
        if !changed {
            break;
        }
    }
    let content = &known[grammar.rule(grammar.root()).expr().index()];
    // The end is read after the content; it must be found there and not earlier.
    (0..finder.states()).filter(|&state| content.has(0, state)).any(|state| {
        let mut at = state;
        for (i, &c) in finder.pattern.iter().enumerate() {
            if at == finder.found() {
                return true;
            }
            at = finder.next(at, Some(c));
            if at == finder.found() && i + 1 < finder.pattern.len() {
                return true;
            }
        }
        false
    })
}

/// The maximum number of states, which is the width of a row of bits.
const MAX_STATES: usize = 128;

/// Returns, for each prefix of a pattern by its length, the length of its longest proper suffix that is a prefix of it.
fn failures<T: PartialEq>(pattern: &[T]) -> Vec<usize> {
    let mut fail = vec![0; pattern.len() + 1];
    let mut k = 0;
    for i in 1..pattern.len() {
        while k > 0 && pattern[k] != pattern[i] {
            k = fail[k];
        }
        k += usize::from(pattern[k] == pattern[i]);
        fail[i + 1] = k;
    }
    fail
}

/// Looks for a text, character by character.
struct Finder {
    pattern: Vec<char>,
    /// For each state, the longest proper suffix of the text read so far that is a prefix of the pattern.
    fail: Vec<usize>,
}

impl Finder {
    fn new(end: &str) -> Self {
        let pattern: Vec<char> = end.chars().collect();
        Self { fail: failures(&pattern), pattern }
    }

    fn states(&self) -> usize {
        self.pattern.len() + 1
    }

    fn found(&self) -> usize {
        self.pattern.len()
    }

    /// Returns the next state. The state in which the pattern is found is final. `None` is a character that the pattern
    /// does not contain.
    fn next(&self, mut state: usize, c: Option<char>) -> usize {
        if state == self.found() {
            return state;
        }
        let Some(c) = c else { return 0 };
        loop {
            if self.pattern[state] == c {
                return state + 1;
            }
            if state == 0 {
                return 0;
            }
            state = self.fail[state];
        }
    }

    fn relation(&self, grammar: &Grammar, id: ExprId, known: &[Relation]) -> Relation {
        let n = self.states();
        let of = |id: &ExprId| &known[id.index()];
        match grammar.expr(id) {
            Expr::Never => Relation::none(n),
            Expr::Empty => Relation::same(n),
            Expr::Bytes(bytes) => match core::str::from_utf8(bytes) {
                Ok(text) => Relation::by(n, |state| text.chars().fold(state, |at, c| self.next(at, Some(c)))),
                Err(_) => Relation::all(n),
            },
            Expr::Class(set) => {
                let mut relation = Relation::none(n);
                let mut others = set.clone();
                for &c in &self.pattern {
                    if set.contains(c) {
                        relation.join(&Relation::by(n, |state| self.next(state, Some(c))));
                    }
                    let one = maskwright_grammar::CharSet::from_ranges([(c, c)]).complement();
                    others = others.intersection(&one);
                }
                if !others.is_empty() {
                    relation.join(&Relation::by(n, |state| self.next(state, None)));
                }
                relation
            }
            Expr::Seq(parts) => parts.iter().fold(Relation::same(n), |so_far, part| so_far.then(of(part))),
            Expr::Alt(parts) => {
                let mut relation = Relation::none(n);
                for part in parts {
                    relation.join(of(part));
                }
                relation
            }
            Expr::Repeat { body, min, max } => of(body).repeated(*min, *max),
            Expr::Rule(rule) => of(&grammar.rule(*rule).expr()).clone(),
            Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => of(body).clone(),
            Expr::And(_) | Expr::Not(_) => self.of_regular(grammar, id).unwrap_or_else(|| Relation::all(n)),
            // A string can spell nearly every text.
            Expr::JsonString(_) => Relation::all(n),
            // A token has no text.
            Expr::Token(_) => Relation::by(n, |state| self.next(state, None)),
        }
    }

    /// Computes the relation by walking the automaton of a regular expression together with this one.
    fn of_regular(&self, grammar: &Grammar, id: ExprId) -> Option<Relation> {
        let mut exprs = automata::Exprs::new();
        let rule = |rule| Some(grammar.rule(rule).expr());
        let translated = translate(|id| grammar.expr(id), rule, id, &mut exprs).ok()?;
        let dfa = automata::Dfa::build(&mut exprs, translated, &automata::Limits::default()).ok()?;
        let bytes = Bytes::new(self);
        let mut relation = Relation::none(self.states());
        for from in 0..self.states() {
            let mut seen = rustc_hash::FxHashSet::default();
            let mut work = vec![(dfa.start(), bytes.start(from))];
            while let Some(pair @ (state, at)) = work.pop() {
                if !seen.insert(pair) {
                    continue;
                }
                if dfa.is_accepting(state) {
                    relation.add(from, bytes.state(at));
                }
                for (set, target) in dfa.edges(state) {
                    for byte in set.iter() {
                        work.push((target, bytes.next(at, byte)));
                    }
                }
            }
        }
        Some(relation)
    }
}

/// The same automaton over bytes: a marker is found in the bytes of a text exactly where it is found in its characters.
struct Bytes {
    pattern: Vec<u8>,
    fail: Vec<usize>,
    /// The start of each character, and the end.
    starts: Vec<usize>,
}

impl Bytes {
    fn new(finder: &Finder) -> Self {
        let text: String = finder.pattern.iter().collect();
        let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let pattern = text.into_bytes();
        Self { fail: failures(&pattern), pattern, starts }
    }

    fn start(&self, state: usize) -> usize {
        self.starts[state]
    }

    /// Returns the state in characters. Inside a character it is the state before that character.
    fn state(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    fn next(&self, mut at: usize, byte: u8) -> usize {
        if at == self.pattern.len() {
            return at;
        }
        loop {
            if self.pattern[at] == byte {
                return at + 1;
            }
            if at == 0 {
                return 0;
            }
            at = self.fail[at];
        }
    }
}

/// The states that can be reached from each state, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Relation {
    rows: Vec<u128>,
}

impl Relation {
    fn none(n: usize) -> Self {
        Self { rows: vec![0; n] }
    }

    fn all(n: usize) -> Self {
        Self { rows: vec![u128::MAX >> (MAX_STATES - n); n] }
    }

    fn same(n: usize) -> Self {
        Self::by(n, |state| state)
    }

    fn by(n: usize, next: impl Fn(usize) -> usize) -> Self {
        Self { rows: (0..n).map(|state| 1 << next(state)).collect() }
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.rows[from] >> to & 1 == 1
    }

    fn add(&mut self, from: usize, to: usize) {
        self.rows[from] |= 1 << to;
    }

    /// Adds the pairs of another relation, and returns whether any was new.
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.rows.iter_mut().zip(&other.rows) {
            changed |= *theirs & !*mine != 0;
            *mine |= *theirs;
        }
        changed
    }

    fn then(&self, other: &Self) -> Self {
        let row = |mut left: u128| {
            let mut reached = 0;
            while left != 0 {
                reached |= other.rows[left.trailing_zeros() as usize];
                left &= left - 1;
            }
            reached
        };
        Self { rows: self.rows.iter().map(|&left| row(left)).collect() }
    }

    /// Returns the relation of a repetition.
    fn repeated(&self, min: u32, max: Option<u32>) -> Self {
        // A large minimum is replaced by any number of repetitions, which only adds pairs.
        let (min, max) = if min > 64 { (0, None) } else { (min, max) };
        let mut power = Self::same(self.rows.len());
        for _ in 0..min {
            power = power.then(self);
        }
        let mut sum = power.clone();
        let mut left = max.map(|max| max.saturating_sub(min));
        // Once a power adds nothing, no later one does.
        while left != Some(0) {
            power = power.then(self);
            if !sum.join(&power) {
                break;
            }
            left = left.map(|left| left - 1);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(pattern: &str, end: &str) -> bool {
        may_contain(&crate::regex::grammar(pattern, &crate::regex::Options::default()).unwrap(), end)
    }

    #[test]
    fn ends_are_found_inside_content_and_across_its_end() {
        assert!(contains(".*", "</x>"));
        assert!(!contains("[a-z]*", "</x>"));
        assert!(contains("a*", "aa"), "a, then aa, contains aa too early");
        assert!(!contains("b*", "ab"));
        assert!(contains("(<|/x)*>", "</x>"));
        assert!(!contains("(<|x)*>", "</x>"));
        assert!(!contains("(?!.*</x>).*", "</x>"), "a condition counts");
        assert!(contains("x{70,80}", "xxx"));
        assert!(contains("ü*", "üü") && !contains("[äö]*", "üü"));
    }

    #[test]
    fn recursive_grammars_are_followed() {
        let source = "root ::= \"(\" root \")\" | \"\"";
        let (grammar, _) = crate::ebnf::grammar(source, &crate::ebnf::Options::default()).unwrap();
        assert!(may_contain(&grammar, ")))"));
        assert!(may_contain(&grammar, "()"));
        assert!(!may_contain(&grammar, ")("));
    }
}
