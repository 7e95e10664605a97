//! Finds lazy terminals that begin at the same place as others.
//!
//! A lexer follows all terminals that may begin at a place in parallel, and a lazy one that matches wins immediately,
//! even if others could still match more. The idiom for tool calls relies on this:
//!
//! ```text
//! start: (call)* rest
//! call: head %json {…} "</tool_call>"
//! head[lazy]: TEXT "<tool_call>"
//! rest: TEXT
//! TEXT: /(.|\n)*/
//! ```
//!
//! `rest` matches every text, but where a call may begin it cannot contain `<tool_call>`, because `head` would have won
//! there. This frontend does not split text into terminals, so it expresses the same by an intersection: a terminal
//! that begins where the lazy terminal L does excludes the texts `L·anything`, and another lazy one excludes the texts
//! `L·something`.
//!
//! The terminals that begin at the same place are found for each rule separately: the alternatives of a group, and an
//! optional or repeated item together with the items after it. The text that follows a whole rule is not considered.

use std::collections::{BTreeSet, HashMap};

use maskwright_automata::must_stop;
use maskwright_grammar::Span;

use super::ast::{Alternation, Alternative, Atom, Ending, Item, Sort};
use super::resolve::Scope;

/// An element that begins at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Start {
    /// A terminal, by the place where it is mentioned.
    Terminal(usize, usize),
    /// A rule that is a lazy terminal, by its index.
    Lazy(usize),
}

impl Start {
    pub(super) fn at(span: Span) -> Self {
        Self::Terminal(span.start, span.end)
    }
}

/// For every element that begins where a lazy terminal does, these lazy terminals.
pub(super) type Races = HashMap<Start, BTreeSet<usize>>;

/// The elements with which a part of a rule can begin, and whether the part is nullable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct First {
    starts: BTreeSet<Start>,
    is_nullable: bool,
}

/// Returns the races of a document.
pub(super) fn races(scope: &Scope<'_>) -> Races {
    let definitions = &scope.document.definitions;
    let is_lazy = |ending: &Ending| matches!(ending, Ending::Lazy | Ending::Suffix(_));
    if !definitions
        .iter()
        .any(|one| one.attributes.ending.as_ref().is_some_and(|(ending, _)| is_lazy(ending)))
    {
        return Races::new();
    }
    let mut race = Race { scope, firsts: vec![First::default(); definitions.len()], races: Races::new() };
    // Each round adds something, or is the last one. The direction alternates, so that chains in either direction take
    // few rounds.
    let mut order: Vec<usize> = (0..definitions.len()).collect();
    loop {
        let mut has_changed = false;
        order.reverse();
        for &at in &order {
            let definition = &definitions[at];
            let first = match &definition.attributes.ending {
                Some((ending, _)) if is_lazy(ending) => {
                    First { starts: BTreeSet::from([Start::Lazy(at)]), is_nullable: false }
                }
                _ if definition.is_terminal() => First::default(),
                _ => race.alternation(&definition.body),
            };
            has_changed |= first != race.firsts[at];
            race.firsts[at] = first;
        }
        if !has_changed || must_stop() {
            return race.races;
        }
    }
}

struct Race<'s, 'a> {
    scope: &'s Scope<'a>,
    firsts: Vec<First>,
    races: Races,
}

impl Race<'_, '_> {
    fn alternation(&mut self, alternation: &Alternation) -> First {
        let mut all = First::default();
        for alternative in &alternation.alternatives {
            let one = self.alternative(alternative);
            all.starts.extend(one.starts);
            all.is_nullable |= one.is_nullable;
        }
        self.meet(&all.starts);
        all
    }

    fn alternative(&mut self, alternative: &Alternative) -> First {
        match &*alternative.conjuncts {
            [only] => self.sequence(only),
            _ => First { starts: BTreeSet::from([Start::at(alternative.span)]), is_nullable: false },
        }
    }

    fn sequence(&mut self, items: &[Item]) -> First {
        let mut after = First { starts: BTreeSet::new(), is_nullable: true };
        for item in items.iter().rev() {
            let one = self.atom(&item.atom, item.span);
            let (min, max) = item.repeat.unwrap_or((1, Some(1)));
            if max.is_none_or(|max| max > 1) {
                // Either another round or the following item begins here.
                self.meet(&one.starts.union(&after.starts).copied().collect());
            }
            let is_nullable = one.is_nullable || min == 0;
            let mut here = one.starts;
            if is_nullable {
                here.extend(after.starts);
            }
            after = First { starts: here, is_nullable: is_nullable && after.is_nullable };
            self.meet(&after.starts);
        }
        after
    }

    fn atom(&mut self, atom: &Atom, span: Span) -> First {
        let terminal = || First { starts: BTreeSet::from([Start::at(span)]), is_nullable: false };
        match atom {
            Atom::Group(inner) => self.alternation(inner),
            Atom::Maybe(inner) => First { is_nullable: true, ..self.alternation(inner) },
            Atom::Literal { text, .. } if text.is_empty() => First { is_nullable: true, ..First::default() },
            Atom::Literal { .. }
            | Atom::Range(_)
            | Atom::Regex { .. }
            | Atom::Substring(_)
            | Atom::Not(_) => terminal(),
            Atom::Name(name) | Atom::Call(name, _) | Atom::Template(name, _) => {
                match self.scope.names.get(&**name) {
                    Some(&at) if self.scope.document.definitions[at].sort == Sort::Terminal => terminal(),
                    Some(&at) => self.firsts[at].clone(),
                    None => First::default(),
                }
            }
            // A lexer does not split tokens and embedded documents.
            Atom::Token(_) | Atom::Json(..) | Atom::Foreign(..) | Atom::Nested(_) => First::default(),
        }
    }

    /// Records all elements that begin at one place.
    fn meet(&mut self, starts: &BTreeSet<Start>) {
        let lazy: Vec<usize> = starts
            .iter()
            .filter_map(|start| match start {
                Start::Lazy(at) => Some(*at),
                Start::Terminal(..) => None,
            })
            .collect();
        for start in starts.iter().filter(|_| !lazy.is_empty()) {
            let others = lazy.iter().copied().filter(|at| Start::Lazy(*at) != *start);
            self.races.entry(*start).or_default().extend(others);
        }
    }
}
