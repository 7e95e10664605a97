//! Decides questions about regular languages: whether one is empty, and whether it contains a text.
//!
//! The grammar's expressions are translated to those of the automata crate, and a lazy automaton decides. Answers are
//! remembered by expression.
//!
//! Most intersections are not empty, and a single text that is in all parts proves this. So the shortest text of each
//! part is first tried on the other parts, which needs only their own small automata. The automaton of the whole
//! intersection may be as large as the product of its parts, and is built only if no such text is found.

use maskwright_automata as automata;
use maskwright_grammar::{Expr, ExprId, GrammarBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::schemas::Window;
use crate::translate::translate;

/// The limits for one question.
pub(super) const QUESTION_LIMITS: automata::Limits =
    automata::Limits { states: 50_000, steps: 2_000_000, bytes: 64 << 20 };

/// The limits for a question whose answer would only save work.
const CHEAP_LIMITS: automata::Limits = automata::Limits { states: 2_000, steps: 10_000, bytes: 16 << 20 };

/// The maximum number of expressions visited for counting texts.
const MAX_COUNTED_EXPRS: u32 = 512;

/// The maximum number of states that all cheap questions may take together.
const MAX_CHEAP_STATES: usize = 20_000;

/// The maximum number of parts of an intersection whose shortest text is tried.
const MAX_ASKED_PARTS: usize = 16;

/// Texts that are tried as members of an intersection, in addition to the shortest texts of its parts.
const PROBES: [&str; 6] = ["", "a", "0", "zq", "A1_ ", "~~~~~~~~"];

/// Characters by which a text is extended, and the maximum number of characters of the result.
const EXTENSION_CHARS: [&str; 12] = ["a", "0", "Z", "_", " ", "-", ".", "m", "7", "/", ":", "é"];
const MAX_GROWN_CHARS: u32 = 20_000;

/// Answers about the languages of one grammar.
#[derive(Debug, Default)]
pub(crate) struct Languages {
    empty: FxHashMap<ExprId, Option<bool>>,
    /// Languages for which a cheap question found no answer.
    unclear: FxHashSet<ExprId>,
    machines: FxHashMap<ExprId, Option<Machine>>,
    /// The number of states that cheap questions have taken.
    spent: usize,
}

#[derive(Debug)]
struct Machine {
    automaton: automata::LazyDfa,
    start: u32,
}

impl Languages {
    /// The limits for finding which sets of languages have a common text.
    pub(crate) const MEMBERSHIP_LIMITS: automata::Limits =
        automata::Limits { states: 20_000, steps: 1_000_000, bytes: 64 << 20 };

    /// Records that a language is known to be nonempty.
    pub(crate) fn assume_inhabited(&mut self, expr: ExprId) {
        self.empty.insert(expr, Some(false));
    }

    /// Checks whether the language is empty. Returns `None` if the limits do not suffice.
    pub(crate) fn is_empty(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> Option<bool> {
        if let Some(known) = self.known_empty(grammar, expr) {
            return known;
        }
        let answer = Machine::new(grammar, expr, QUESTION_LIMITS).map(|machine| machine.is_empty());
        self.empty.insert(expr, answer);
        answer
    }

    /// Checks whether the language can be shown to be empty at little cost.
    pub(crate) fn is_clearly_empty(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> bool {
        if let Some(known) = self.known_empty(grammar, expr) {
            return known == Some(true);
        }
        if self.spent > MAX_CHEAP_STATES || !self.unclear.insert(expr) {
            return false;
        }
        let machine = Machine::new(grammar, expr, CHEAP_LIMITS);
        self.spent += machine.as_ref().map_or(CHEAP_LIMITS.states / 2, |machine| machine.automaton.len());
        let Some(machine) = machine else { return false };
        self.empty.insert(expr, Some(machine.is_empty()));
        machine.is_empty()
    }

    /// Returns the answer if it is known, or can be found without building the automaton of the whole expression.
    #[expect(clippy::option_option, reason = "the outer one says whether there is an answer")]
    fn known_empty(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> Option<Option<bool>> {
        if let Some(&known) = self.empty.get(&expr) {
            return Some(known);
        }
        match grammar.expr(expr) {
            Expr::Never => return Some(Some(true)),
            Expr::Empty | Expr::Bytes(_) | Expr::Class(_) => return Some(Some(false)),
            _ if is_clearly_inhabited(grammar, expr) => return Some(Some(false)),
            _ => {}
        }
        if self.has_witness(grammar, expr) {
            self.empty.insert(expr, Some(false));
            return Some(Some(false));
        }
        None
    }

    /// Checks whether one of a few texts is in all parts of an intersection.
    fn has_witness(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> bool {
        let Expr::And(parts) = grammar.expr(expr) else { return false };
        // The shortest texts of the parts do not help to find a long text.
        if parts.iter().any(|part| matches!(grammar.expr(*part), Expr::Repeat { min: 64.., .. })) {
            return false;
        }
        let mut texts: Vec<String> = PROBES.iter().map(|&probe| probe.to_owned()).collect();
        let positive = parts.iter().filter(|part| !matches!(grammar.expr(**part), Expr::Not(_)));
        for &part in positive.take(MAX_ASKED_PARTS) {
            if let Some(machine) = self.machine(grammar, part)
                && let Ok(Some(shortest)) = machine.automaton.witness_from(machine.start)
                && let Ok(shortest) = String::from_utf8(shortest)
            {
                texts.push(shortest);
            }
        }
        texts.iter().any(|text| {
            parts.iter().all(|&part| match grammar.expr(part) {
                Expr::Not(inner) => self.contains(grammar, *inner, text) == Some(false),
                _ => self.contains(grammar, part, text) == Some(true),
            })
        })
    }

    fn machine(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> Option<&mut Machine> {
        let machine =
            self.machines.entry(expr).or_insert_with(|| Machine::new(grammar, expr, QUESTION_LIMITS));
        machine.as_mut()
    }

    /// Checks whether no text of `language` has a length in the window; `both` is the intersection of the two. Returns
    /// `None` if the limits do not suffice.
    pub(crate) fn is_empty_within(
        &mut self,
        grammar: &GrammarBuilder,
        language: ExprId,
        window: Window,
        both: ExprId,
    ) -> Option<bool> {
        // The shortest text, or an extension of it, nearly always has such a length, and no counting is needed.
        if let Some(machine) = self.machine(grammar, language)
            && machine.grows_into(window) == Some(true)
        {
            return Some(false);
        }
        self.is_empty(grammar, both)
    }

    /// Returns the sets of these languages that have a common text, each with such a text, and the number of states
    /// needed to distinguish them. Searches at most `most` + 1 sets. Returns `None` if the limits do not suffice.
    pub(crate) fn memberships(
        grammar: &GrammarBuilder,
        languages: &[ExprId],
        most: usize,
    ) -> Option<automata::Memberships> {
        let mut exprs = automata::Exprs::new();
        let mut roots = Vec::with_capacity(languages.len());
        for &language in languages {
            roots.push(translate(|id| grammar.expr(id), |_| None, language, &mut exprs).ok()?);
        }
        let universe = exprs.utf8_text();
        automata::memberships(&mut exprs, universe, &roots, &Self::MEMBERSHIP_LIMITS, most).ok()
    }

    /// Returns all texts of the language, if there are at most `most` and they are found at little cost.
    pub(crate) fn texts(grammar: &GrammarBuilder, expr: ExprId, most: usize) -> Option<Vec<String>> {
        if is_clearly_inhabited(grammar, expr) && is_infinite(grammar, expr) {
            return None;
        }
        let mut exprs = automata::Exprs::new();
        let root = translate(|id| grammar.expr(id), |_| None, expr, &mut exprs).ok()?;
        let texts = automata::Dfa::build(&mut exprs, root, &CHEAP_LIMITS).ok()?.members(most)?;
        texts.into_iter().map(|text| String::from_utf8(text).ok()).collect()
    }

    /// Checks whether the expression shows that there are at most `most` texts.
    pub(crate) fn has_few(grammar: &GrammarBuilder, expr: ExprId, most: usize) -> bool {
        count(grammar, expr, most, &mut { MAX_COUNTED_EXPRS }) <= most
    }

    /// Checks whether a text is in the language. Returns `None` if the limits do not suffice.
    pub(crate) fn contains(&mut self, grammar: &GrammarBuilder, expr: ExprId, text: &str) -> Option<bool> {
        let machine = self.machine(grammar, expr)?;
        let end = machine.automaton.run(machine.start, text.as_bytes()).ok()?;
        Some(machine.automaton.is_accepting(end))
    }
}

impl Machine {
    fn new(grammar: &GrammarBuilder, expr: ExprId, limits: automata::Limits) -> Option<Self> {
        let mut exprs = automata::Exprs::new();
        let root = translate(|id| grammar.expr(id), |_| None, expr, &mut exprs).ok()?;
        let mut automaton = automata::LazyDfa::new(exprs, limits);
        let start = automaton.state_of(root).ok()?;
        Some(Self { automaton, start })
    }

    fn is_empty(&self) -> bool {
        self.automaton.is_dead(self.start)
    }

    /// Tries to extend the shortest text to a length in the window. Returns `Some(true)` on success.
    fn grows_into(&mut self, window: Window) -> Option<bool> {
        let (mut state, mut written) = (self.start, 0u32);
        for _ in 0..4 {
            let rest = self.automaton.witness_from(state).ok()??;
            let total = written.saturating_add(String::from_utf8(rest).ok()?.chars().count() as u32);
            if window.contains(total as usize) {
                return Some(true);
            }
            let missing = window.min.checked_sub(total)?;
            if written.saturating_add(missing) > MAX_GROWN_CHARS {
                return None;
            }
            for _ in 0..missing {
                state = self.one_more(state)?;
            }
            written += missing;
        }
        None
    }

    /// Returns a live state that is one character further; the same state if possible.
    fn one_more(&mut self, state: u32) -> Option<u32> {
        let mut other = None;
        for character in EXTENSION_CHARS {
            let next = self.automaton.run(state, character.as_bytes()).ok()?;
            if next == state {
                return Some(state);
            }
            if !self.automaton.is_dead(next) {
                other = other.or(Some(next));
            }
        }
        other
    }
}

/// Checks whether a language is obviously not empty: it has neither intersection nor complement, or it removes only
/// single words from infinitely many texts.
fn is_clearly_inhabited(grammar: &GrammarBuilder, expr: ExprId) -> bool {
    match grammar.expr(expr) {
        Expr::Not(inner) => is_words(grammar, *inner),
        Expr::And(parts) => {
            let mut rest = parts.iter().filter(|part| match grammar.expr(**part) {
                Expr::Not(inner) => !is_words(grammar, *inner),
                _ => true,
            });
            match (rest.next(), rest.next()) {
                (Some(only), None) => is_plain(grammar, *only) && is_infinite(grammar, *only),
                (None, _) => true,
                _ => false,
            }
        }
        _ => is_plain(grammar, expr),
    }
}

/// Returns an upper bound on the number of texts. The result is above `most` if the bound is, or if too many
/// expressions would have to be visited.
fn count(grammar: &GrammarBuilder, expr: ExprId, most: usize, left: &mut u32) -> usize {
    let Some(less) = left.checked_sub(1) else { return most + 1 };
    *left = less;
    let mut of = |part: ExprId| count(grammar, part, most, left);
    let all = match grammar.expr(expr) {
        Expr::Never => 0,
        Expr::Empty | Expr::Bytes(_) => 1,
        Expr::Class(set) => {
            set.ranges().iter().map(|&(first, last)| last as usize - first as usize + 1).sum()
        }
        Expr::Seq(parts) => parts.iter().fold(1, |product: usize, part| match product {
            0 => 0,
            product => product.saturating_mul(of(*part)),
        }),
        Expr::Alt(parts) => {
            parts.iter().fold(0, |sum: usize, part| if sum > most { sum } else { sum + of(*part) })
        }
        Expr::And(parts) => parts.iter().map(|part| of(*part)).min().unwrap_or(most + 1),
        Expr::Repeat { body, min: 0, max: Some(1) } => 1 + of(*body),
        &Expr::Repeat { body, min, max: Some(max) } if min == max => {
            let one = of(body);
            if one <= 1 { one } else { one.saturating_pow(max) }
        }
        _ => most + 1,
    };
    all.min(most + 1)
}

/// Checks whether an expression is a list of words.
fn is_words(grammar: &GrammarBuilder, expr: ExprId) -> bool {
    let is_word = |id: ExprId| matches!(grammar.expr(id), Expr::Bytes(_) | Expr::Empty);
    match grammar.expr(expr) {
        Expr::Alt(parts) => parts.iter().all(|part| is_word(*part)),
        _ => is_word(expr),
    }
}

/// Checks whether a plain, nonempty expression matches infinitely many texts.
fn is_infinite(grammar: &GrammarBuilder, root: ExprId) -> bool {
    // The builder keeps no repetition of the empty text, and no part that matches nothing.
    let mut work = vec![(root, 0)];
    while let Some((id, depth)) = work.pop() {
        match grammar.expr(id) {
            // In a clearly inhabited expression, a complement excludes only words.
            Expr::Repeat { max: None, .. } | Expr::Not(_) => return true,
            expr if depth < 64 => work.extend(expr.operands().iter().map(|operand| (*operand, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Checks whether an expression has neither intersection nor complement. Such an expression is empty only if it is
/// [`Expr::Never`].
fn is_plain(grammar: &GrammarBuilder, root: ExprId) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![root];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let expr = grammar.expr(id);
        if matches!(expr, Expr::And(_) | Expr::Not(_)) {
            return false;
        }
        work.extend_from_slice(expr.operands());
    }
    true
}
