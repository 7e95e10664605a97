//! Contexts: the part of the preceding text that anchors and look-behinds depend on.
//!
//! Anchors at the start, word boundaries and short look-behinds depend only on the character before a position, or on
//! its absence. So all positions fall into a few *contexts*: the start of the text, and the classes of a partition of
//! all characters. A pattern with `\b` has three: the start, after a word character, and after any other character.

use std::collections::HashSet;
use std::sync::Arc;

use maskwright_grammar::{CharSet, Diagnostic, Span};

use super::ast::{Ast, Kind, Look, Place};
use super::unicode;

/// The contexts of a pattern. Number 0 is the start of the text.
#[derive(Debug)]
pub(super) struct Contexts {
    sets: Vec<CharSet>,
}

/// The number of contexts above which the lowered pattern would be unreadable and slow.
const MAX_CONTEXTS: usize = 32;

impl Contexts {
    /// Returns the contexts that a pattern can distinguish. Its look-behinds must depend on a
    /// [single](SingleCharLook::of) character.
    pub(super) fn of(ast: &Ast) -> Result<Self, Diagnostic> {
        let mut sets = vec![CharSet::all()];
        let (mut seen, mut words) = (HashSet::new(), Vec::new());
        let mut crowded = None;
        ast.for_each(&mut |ast| {
            let set = match ast.kind() {
                Kind::Place(Place::LineStart) => newline(),
                // Equal sets of a pattern are shared, and these are too large to be compared often.
                Kind::Place(Place::Word { word, .. })
                    if !words.iter().any(|known| Arc::ptr_eq(known, word)) =>
                {
                    words.push(Arc::clone(word));
                    CharSet::clone(word)
                }
                Kind::Look(Look { ahead: false, .. }, body) => match SingleCharLook::of(body) {
                    Some(single) => single.set,
                    None => return,
                },
                _ => return,
            };
            if sets.len() < MAX_CONTEXTS && !seen.contains(&set) {
                sets = refine(&sets, &set);
                if sets.len() >= MAX_CONTEXTS {
                    crowded = Some(ast.span());
                }
                seen.insert(set);
            }
        });
        match crowded {
            None => Ok(Self { sets }),
            Some(span) => Err(Diagnostic::error(
                span,
                "the look-behinds of this pattern distinguish too many characters",
            )
            .with_help("split the pattern, or use the same class in several look-behinds")),
        }
    }

    /// Returns the number of contexts.
    pub(super) fn len(&self) -> usize {
        self.sets.len() + 1
    }

    /// Returns the characters of the contexts other than the start, with the numbers of the contexts.
    pub(super) fn after_char(&self) -> impl Iterator<Item = (usize, &CharSet)> {
        (1..).zip(&self.sets)
    }

    /// Checks whether the character before the position is in the set. The result is the same for all positions of a
    /// context.
    pub(super) fn is_after(&self, context: usize, set: &CharSet) -> bool {
        let first = context.checked_sub(1).and_then(|at| self.sets[at].ranges().first());
        first.is_some_and(|&(first, _)| set.contains(first))
    }
}

/// A look-behind that depends on a single character.
#[derive(Debug)]
pub(super) struct SingleCharLook {
    /// The characters after which it holds.
    pub(super) set: CharSet,
    /// Whether it holds at the start of the text.
    pub(super) start: bool,
}

impl SingleCharLook {
    /// Returns the condition of a look-behind with this body, if it depends on a single character.
    pub(super) fn of(body: &Ast) -> Option<Self> {
        if body.is_plain() && body.is_nullable() {
            return Some(Self { set: CharSet::all(), start: true });
        }
        match body.kind() {
            Kind::Char(c) => Some(Self { set: unicode::ranges(&[(*c, *c)]), start: false }),
            Kind::Class(set) => Some(Self { set: CharSet::clone(set), start: false }),
            Kind::Place(Place::TextStart) => Some(Self { set: CharSet::none(), start: true }),
            Kind::Place(Place::LineStart) => Some(Self { set: newline(), start: true }),
            // A text that ends with `x{1,n}` is a text that ends with `x`.
            Kind::Repeat { body, min: 1, .. } => Self::of(body),
            Kind::Alt(parts) => parts.iter().map(Self::of).try_fold(
                Self { set: CharSet::none(), start: false },
                |either, part| {
                    let part = part?;
                    Some(Self { set: either.set.union(&part.set), start: either.start || part.start })
                },
            ),
            _ => None,
        }
    }
}

/// Returns the first look-behind of a pattern that depends on more than one character.
pub(super) fn wide_look_behind(ast: &Ast) -> Option<Span> {
    let mut found = None;
    ast.for_each(&mut |ast| {
        if let Kind::Look(Look { ahead: false, .. }, body) = ast.kind()
            && found.is_none()
            && SingleCharLook::of(body).is_none()
        {
            found = Some(ast.span());
        }
    });
    found
}

pub(super) fn newline() -> CharSet {
    unicode::ranges(&[('\n', '\n')])
}

/// Refines a partition so that the set is a union of its parts.
fn refine(parts: &[CharSet], set: &CharSet) -> Vec<CharSet> {
    let outside = set.complement();
    let halves = parts.iter().flat_map(|part| [part.intersection(set), part.intersection(&outside)]);
    halves.filter(|part| !part.is_empty()).collect()
}
