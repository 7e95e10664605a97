//! Free text: any text up to the first of some markers.
//!
//! An Aho–Corasick automaton determines after every character which markers may have begun. Each of its states becomes
//! a rule. The state in which no marker has begun, where a text is nearly all the time, becomes a loop over the
//! characters that begin no marker:
//!
//! ```text
//!   markers "<tool>" and "<b"
//!
//!   text   ::= [^<]* ("<" text<)                 or the end of the text, where it may end
//!   text<  ::= "t" text<t | "b" ⟨exit of "<b"⟩ | "<" text< | [^tb<] text
//!   text<t ::= "o" …
//! ```
//!
//! So the engine follows one thread through free text, regardless of the number of markers, and all constraints share
//! the loop. When a marker is complete, the text continues only after it: free text never contains a marker, not even
//! across its boundary with the following part.
//!
//! No marker may contain another one: the longer one could never be completed, or both would be complete at the same
//! time. This is an error that names both.

use maskwright_automata::must_stop;
use maskwright_grammar::{CharSet, ExprId, GrammarBuilder, RuleId, TokenRef, TokenSet};
use rustc_hash::{FxHashMap, FxHashSet};

use super::error::{Reason, TagError};
use super::spelling::Symbol;
use crate::stopped::{STOPPED, STOPPED_HELP};

/// A marker to recognize in free text.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) symbols: Vec<Symbol>,
    /// The continuation after the marker; `None` if the text must not contain it.
    pub(super) exit: Option<ExprId>,
    /// Whether the marker must stay possible: true for triggers, even those without a tag, and false for mere
    /// exclusions.
    pub(super) counts: bool,
    /// The place of its description.
    pub(super) at: String,
    /// The whole marker, for error messages.
    pub(super) shown: String,
}

/// How free text may continue and end.
#[derive(Clone, Debug)]
pub(super) struct Around<'n> {
    /// The continuation without a marker.
    pub(super) leave: Option<ExprId>,
    /// Whether free text may contain special tokens.
    pub(super) specials: bool,
    /// The special tokens that it must not contain.
    pub(super) without: &'n [TokenRef],
}

/// The maximum number of states of the automaton.
const MAX_STATES: usize = 200_000;

/// The approximate maximum number of its edges.
const MAX_EDGES: usize = 4_000_000;

/// Returns the expression of free text with everything that follows it.
pub(super) fn free_text(
    patterns: Vec<Pattern>,
    around: &Around<'_>,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    refuse_too_many(&patterns)?;
    let patterns = independent(patterns, g)?;
    let states = States::of(&patterns);
    let rules: Vec<RuleId> = (0..states.list.len())
        .map(|state| g.declare(&if state == 0 { "text".into() } else { format!("text~{state}") }))
        .collect();
    for state in 0..states.list.len() {
        if states.list[state].end.is_some() {
            // No rule calls this one, but every rule must be defined.
            let never = g.never();
            g.define(rules[state], never);
            continue;
        }
        if must_stop() {
            return Err(TagError::of(Reason::Stopped, &patterns[0].at, STOPPED, STOPPED_HELP));
        }
        let body = states.body(state, &rules, &patterns, around, g);
        g.define(rules[state], body);
    }
    Ok(g.rule(rules[0]))
}

/// Refuses markers whose automaton would be too large.
fn refuse_too_many(patterns: &[Pattern]) -> Result<(), TagError> {
    let mut seen = FxHashSet::default();
    let (mut characters, mut firsts) = (0usize, FxHashSet::default());
    for pattern in patterns.iter().filter(|pattern| seen.insert(&pattern.symbols)) {
        characters += pattern.symbols.len();
        firsts.extend(pattern.symbols.first());
    }
    let message = if characters > MAX_STATES {
        format!("the markers of this free text have more than {MAX_STATES} characters together")
    } else if characters.saturating_mul(firsts.len()) > MAX_EDGES {
        // Wherever a marker is broken off, another one may begin.
        format!(
            "the markers of this free text need more than {MAX_EDGES} edges: they begin with many different characters"
        )
    } else {
        return Ok(());
    };
    Err(TagError::of(Reason::Limit, &patterns[0].at, message, "use fewer or shorter markers"))
}

/// Checks that no marker conflicts with another one.
pub(super) fn check(patterns: Vec<Pattern>, g: &mut GrammarBuilder) -> Result<(), TagError> {
    independent(patterns, g).map(|_| ())
}

/// Merges equal patterns and drops redundant ones. A marker that contains another one is an error.
fn independent(patterns: Vec<Pattern>, g: &mut GrammarBuilder) -> Result<Vec<Pattern>, TagError> {
    let mut kept: Vec<Pattern> = Vec::with_capacity(patterns.len());
    let mut exits: Vec<Vec<ExprId>> = Vec::new();
    let mut by_symbols: FxHashMap<Vec<Symbol>, usize> = FxHashMap::default();
    for pattern in patterns {
        if let Some(&at) = by_symbols.get(&pattern.symbols) {
            // A continuation takes precedence over an exclusion, because the end of a tag is often listed as excluded
            // too.
            exits[at].extend(pattern.exit);
            kept[at].counts |= pattern.counts;
        } else {
            by_symbols.insert(pattern.symbols.clone(), kept.len());
            exits.push(pattern.exit.into_iter().collect());
            kept.push(pattern);
        }
    }
    for (pattern, exits) in kept.iter_mut().zip(exits) {
        pattern.exit = if exits.is_empty() { None } else { Some(g.alt(exits)) };
    }
    let mut error = TagError::default();
    let mut useless = vec![false; kept.len()];
    let find = Contained::of(&kept);
    for (i, long) in kept.iter().enumerate() {
        let Some(short) = find.inside(i).map(|at| &kept[at]) else { continue };
        let together = long.symbols.ends_with(&short.symbols) && short.exit.is_some();
        if !long.counts && !together {
            // This exclusion is redundant: the shorter marker ends the text earlier, or is excluded too.
            useless[i] = true;
            continue;
        }
        let (message, help) = if long.counts { overlap(long, short) } else { tie(long, short) };
        error.push(Reason::Conflict, &long.at, message, help);
    }
    let mut useless = useless.into_iter();
    kept.retain(|_| useless.next() != Some(true));
    error.or(kept)
}

fn overlap(long: &Pattern, short: &Pattern) -> (String, String) {
    let (a, b) = (&long.shown, &short.shown);
    let is_prefix = long.symbols.starts_with(&short.symbols);
    let how = if is_prefix { "begins with" } else { "contains" };
    let what =
        if short.counts { "which ends the free text before" } else { "which the free text must not contain" };
    let place = if short.at.is_empty() { String::new() } else { format!(" ({})", short.at) };
    let help = if is_prefix && short.counts {
        format!("keep only {b}: a trigger that is a prefix of others serves all of them")
    } else {
        "make them differ, or leave one of them out".into()
    };
    (format!("{a} {how} {b}{place}, {what}, so it could never be completed"), help)
}

fn tie(excluded: &Pattern, marker: &Pattern) -> (String, String) {
    let (a, b) = (&excluded.shown, &marker.shown);
    let message = format!(
        "{a}, which the free text must not contain, is complete at the same time as {b}, which ends it"
    );
    (message, format!("leave {a} out, or exclude what comes before {b}"))
}

/// For each pattern, another one that it contains, found with one automaton for all.
struct Contained {
    inside: Vec<Option<usize>>,
}

impl Contained {
    fn of(patterns: &[Pattern]) -> Self {
        let states = States::of(patterns);
        let mut inside = vec![None; patterns.len()];
        for (i, pattern) in patterns.iter().enumerate() {
            let mut state = 0;
            for symbol in &pattern.symbols {
                state = states.next(state, symbol);
                // A pattern ends here, at this state or at a suffix of it.
                let mut suffix = state;
                while suffix != 0 && inside[i].is_none() {
                    if let Some(end) = states.list[suffix].end
                        && end != i
                    {
                        inside[i] = Some(end);
                    }
                    suffix = states.list[suffix].fail;
                }
            }
        }
        Self { inside }
    }

    fn inside(&self, pattern: usize) -> Option<usize> {
        self.inside[pattern]
    }
}

/// The Aho–Corasick automaton.
struct States {
    list: Vec<State>,
}

#[derive(Default)]
struct State {
    children: Vec<(Symbol, usize)>,
    /// The longest proper suffix that is a state as well.
    fail: usize,
    /// The pattern that is complete here.
    end: Option<usize>,
}

impl States {
    fn of(patterns: &[Pattern]) -> Self {
        let mut list = vec![State::default()];
        for (i, pattern) in patterns.iter().enumerate() {
            let mut state = 0;
            for symbol in &pattern.symbols {
                let known =
                    list[state].children.iter().find(|(known, _)| known == symbol).map(|(_, child)| *child);
                state = known.unwrap_or_else(|| {
                    list.push(State::default());
                    let child = list.len() - 1;
                    list[state].children.push((symbol.clone(), child));
                    child
                });
            }
            list[state].end = list[state].end.or(Some(i));
        }
        let mut states = Self { list };
        states.link();
        states
    }

    /// Computes the suffix links, from shorter states to longer ones.
    fn link(&mut self) {
        let mut queue: std::collections::VecDeque<usize> =
            self.list[0].children.iter().map(|&(_, child)| child).collect();
        while let Some(state) = queue.pop_front() {
            for (symbol, child) in self.list[state].children.clone() {
                let fail = self.list[state].fail;
                self.list[child].fail = self.next(fail, &symbol);
                queue.push_back(child);
            }
        }
    }

    fn next(&self, mut state: usize, symbol: &Symbol) -> usize {
        loop {
            if let Some((_, child)) = self.list[state].children.iter().find(|(known, _)| known == symbol) {
                return *child;
            }
            if state == 0 {
                return 0;
            }
            state = self.list[state].fail;
        }
    }

    /// Returns the transitions of a state, including those of its suffixes, except for those back to the start.
    fn edges(&self, state: usize) -> Vec<(Symbol, usize)> {
        let mut edges: Vec<(Symbol, usize)> = Vec::new();
        let mut suffix = state;
        loop {
            for (symbol, child) in &self.list[suffix].children {
                if !edges.iter().any(|(known, _)| known == symbol) {
                    edges.push((symbol.clone(), *child));
                }
            }
            if suffix == 0 {
                return edges;
            }
            suffix = self.list[suffix].fail;
        }
    }

    fn body(
        &self,
        state: usize,
        rules: &[RuleId],
        patterns: &[Pattern],
        around: &Around<'_>,
        g: &mut GrammarBuilder,
    ) -> ExprId {
        let edges = self.edges(state);
        let mut ways = Vec::with_capacity(edges.len() + 3);
        for (symbol, target) in &edges {
            let then = match self.list[*target].end {
                None => Some(g.rule(rules[*target])),
                Some(end) => patterns[end].exit,
            };
            if let Some(then) = then {
                let symbol = super::spelling::symbols_expr(core::slice::from_ref(symbol), g);
                ways.push(g.seq([symbol, then]));
            }
        }
        let again = g.rule(rules[0]);
        if around.specials {
            let named = edges.iter().filter_map(|(symbol, _)| match symbol {
                Symbol::Token(token) => Some(token.clone()),
                Symbol::Char(_) => None,
            });
            let token = g.token(TokenSet::specials_but(named.chain(around.without.iter().cloned())));
            ways.push(g.seq([token, again]));
        }
        ways.extend(around.leave);
        let marked = edges.iter().filter_map(|(symbol, _)| match symbol {
            Symbol::Char(c) => Some((*c, *c)),
            Symbol::Token(_) => None,
        });
        let others = CharSet::from_ranges(marked).complement();
        let other = g.class(others);
        if state == 0 {
            let others = g.star(other);
            let ways = g.alt(ways);
            return g.seq([others, ways]);
        }
        ways.push(g.seq([other, again]));
        g.alt(ways)
    }
}
