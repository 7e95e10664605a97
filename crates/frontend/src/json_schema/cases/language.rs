//! Questions about regular languages: is one empty, does it hold a text?
//!
//! The grammar's expressions are translated to those of the automata crate, and a lazy automaton answers. Answers are
//! remembered by expression.
//!
//! Most intersections are not empty, and one text in all parts proves it. So the shortest text of each part is tried on
//! the others first, which needs only their own small automata. The automaton of the whole may be as large as the
//! product of its parts, and is built only if that fails.

use maskwright_automata as automata;
use maskwright_grammar::{Expr, ExprId, GrammarBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::schemas::Window;
use crate::translate::translate;

/// What one question may cost.
pub(super) const LIMITS: automata::Limits =
    automata::Limits { states: 50_000, steps: 2_000_000, bytes: 64 << 20 };

/// The same for a question whose answer would only save work.
const CHEAP: automata::Limits = automata::Limits { states: 2_000, steps: 10_000, bytes: 16 << 20 };

/// So many expressions are looked at to count texts.
const COUNTED_EXPRS: u32 = 512;

/// How many states all cheap questions may take together.
const MAX_CHEAP_STATES: usize = 20_000;

/// How many parts of an intersection are asked for their shortest text.
const MAX_ASKED_PARTS: usize = 16;

/// Texts that are tried as members of an intersection, beside the shortest ones of its parts.
const PROBES: [&str; 6] = ["", "a", "0", "zq", "A1_ ", "~~~~~~~~"];

/// Characters that a text is extended by, and how many characters it may have then.
const GROWTH: [&str; 12] = ["a", "0", "Z", "_", " ", "-", ".", "m", "7", "/", ":", "é"];
const MAX_GROWN_CHARS: u32 = 20_000;

/// Answers about the languages of one grammar.
#[derive(Debug, Default)]
pub(crate) struct Languages {
    empty: FxHashMap<ExprId, Option<bool>>,
    /// Languages about which a cheap question found no answer.
    unclear: FxHashSet<ExprId>,
    machines: FxHashMap<ExprId, Option<Machine>>,
    /// States that cheap questions took so far.
    spent: usize,
}

#[derive(Debug)]
struct Machine {
    automaton: automata::LazyDfa,
    start: u32,
}

impl Languages {
    /// What finding the memberships of some languages may cost.
    pub(crate) const MEMBERSHIP_LIMITS: automata::Limits =
        automata::Limits { states: 20_000, steps: 1_000_000, bytes: 64 << 20 };

    /// Records that the language is not empty, for one that is known beforehand.
    pub(crate) fn assume_inhabited(&mut self, expr: ExprId) {
        self.empty.insert(expr, Some(false));
    }

    /// Whether the language is empty; `None` if finding out takes too many steps.
    pub(crate) fn is_empty(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> Option<bool> {
        if let Some(known) = self.known_empty(grammar, expr) {
            return known;
        }
        let answer = Machine::new(grammar, expr, LIMITS).map(|machine| machine.is_empty());
        self.empty.insert(expr, answer);
        answer
    }

    /// Whether the language is found to be empty at little cost.
    pub(crate) fn is_clearly_empty(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> bool {
        if let Some(known) = self.known_empty(grammar, expr) {
            return known == Some(true);
        }
        if self.spent > MAX_CHEAP_STATES || !self.unclear.insert(expr) {
            return false;
        }
        let machine = Machine::new(grammar, expr, CHEAP);
        self.spent += machine.as_ref().map_or(CHEAP.states / 2, |machine| machine.automaton.len());
        let Some(machine) = machine else { return false };
        self.empty.insert(expr, Some(machine.is_empty()));
        machine.is_empty()
    }

    /// The answer, if it is known or seen without building the automaton of the whole.
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

    /// Whether one of a few texts is in all parts of an intersection.
    fn has_witness(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> bool {
        let Expr::And(parts) = grammar.expr(expr) else { return false };
        // The shortest texts of the parts are no help to find a long one.
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
        let machine = self.machines.entry(expr).or_insert_with(|| Machine::new(grammar, expr, LIMITS));
        machine.as_mut()
    }

    /// Whether no text of `language` has a length in the window; `both` is the intersection of the two. `None` if finding
    /// out takes too many steps.
    pub(crate) fn is_empty_within(
        &mut self,
        grammar: &GrammarBuilder,
        language: ExprId,
        window: Window,
        both: ExprId,
    ) -> Option<bool> {
        // The shortest text, or one that is grown from it, nearly always proves the opposite without any counting.
        if let Some(machine) = self.machine(grammar, language)
            && machine.grows_into(window) == Some(true)
        {
            return Some(false);
        }
        self.is_empty(grammar, both)
    }

    /// The sets of these languages that some text is in, each with such a text, and the number of states that tell
    /// them apart. At most `most` + 1 sets are searched. `None` if that takes too many steps.
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

    /// All texts of the language, if there are at most `most` and they are found at little cost.
    pub(crate) fn texts(grammar: &GrammarBuilder, expr: ExprId, most: usize) -> Option<Vec<String>> {
        if is_clearly_inhabited(grammar, expr) && is_infinite(grammar, expr) {
            return None;
        }
        let mut exprs = automata::Exprs::new();
        let root = translate(|id| grammar.expr(id), |_| None, expr, &mut exprs).ok()?;
        let texts = automata::Dfa::build(&mut exprs, root, &CHEAP).ok()?.members(most)?;
        texts.into_iter().map(|text| String::from_utf8(text).ok()).collect()
    }

    /// Whether there are no more than `most` texts, as far as that can be read off the expression.
    pub(crate) fn has_few(grammar: &GrammarBuilder, expr: ExprId, most: usize) -> bool {
        count(grammar, expr, most, &mut { COUNTED_EXPRS }) <= most
    }

    /// Whether a text is in the language; `None` if finding out takes too many steps.
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

    /// Whether a text with a length in the window is found by extending the shortest text.
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

    /// A state after one more character that is not dead; the same state if possible.
    fn one_more(&mut self, state: u32) -> Option<u32> {
        let mut other = None;
        for character in GROWTH {
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

/// Whether a language is obviously not empty: it has neither intersection nor complement, or only single words are
/// removed from infinitely many texts.
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

/// How many texts match at most; more than `most` if there are more, or if it takes too many steps to tell.
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

/// Whether an expression is a list of words.
fn is_words(grammar: &GrammarBuilder, expr: ExprId) -> bool {
    let is_word = |id: ExprId| matches!(grammar.expr(id), Expr::Bytes(_) | Expr::Empty);
    match grammar.expr(expr) {
        Expr::Alt(parts) => parts.iter().all(|part| is_word(*part)),
        _ => is_word(expr),
    }
}

/// Whether a plain expression that is not empty matches infinitely many texts.
fn is_infinite(grammar: &GrammarBuilder, root: ExprId) -> bool {
    // The builder keeps no repetition of nothing, and no part that matches nothing.
    let mut work = vec![(root, 0)];
    while let Some((id, depth)) = work.pop() {
        match grammar.expr(id) {
            // Of what is clearly inhabited, only words are excluded.
            Expr::Repeat { max: None, .. } | Expr::Not(_) => return true,
            expr if depth < 64 => work.extend(expr.operands().iter().map(|operand| (*operand, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Whether an expression has neither intersection nor complement. Then only [`Expr::Never`] is empty.
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
