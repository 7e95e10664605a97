//! Leaves: the regular pieces from which a grammar's network is built.
//!
//! A leaf is an automaton over bytes with a start state and accepting states. The network around it only knows where
//! the leaf begins and what follows it. So one leaf, such as the JSON string, serves every place that uses it, and what
//! the library ([`crate::library`]) learns about its states and a vocabulary serves every grammar. There are two kinds:
//!
//! * [`Automaton`]: a table, with a *window* outside it that counts units (characters).
//! * [`Text`]: JSON strings that must not be one of some words, or whose table would be too large ([`spell`]). Its
//!   states are built on first use.

mod automaton;
mod cache;
mod characters;
mod class;
mod json;
mod spelled;
mod text;
mod texts;

use std::sync::Arc;

use maskwright_automata::ByteSet;

use crate::count::{Bounds, UNBOUNDED};
use crate::value;

pub(crate) use automaton::{Action, Automaton, LeafState, Step};
pub use cache::AutomatonCache;
pub(crate) use class::any_number_of;
pub(crate) use json::{BODY as JSON_BODY, json_string};
pub(crate) use spelled::spell;
pub(crate) use text::{Next as TextNext, Text, Words};
pub(crate) use texts::Texts;

/// No text can contain all numbers with this many digits.
const MIN_FREE_DIGITS: u32 = 16;

/// A leaf as it is used at one place of a program.
#[derive(Debug)]
pub(crate) enum Leaf {
    /// An automaton whose units are counted: at least `min` and at most `max` of them.
    Window {
        automaton: Arc<Automaton>,
        min: u32,
        /// `u32::MAX` means that there is no maximum.
        max: u32,
    },
    /// A JSON string with a condition on its decoded text.
    Text(Box<Text>),
}

impl Leaf {
    /// Wraps an automaton without a window.
    pub(crate) fn plain(automaton: Arc<Automaton>) -> Self {
        Self::Window { automaton, min: 0, max: u32::MAX }
    }

    /// Checks whether some text of the leaf may contain a nonzero digit. White space never does.
    pub(crate) fn may_have_nonzero(&self) -> bool {
        match self {
            Self::Window { automaton, .. } => automaton.may_have_nonzero(),
            Self::Text(_) => true,
        }
    }

    /// Returns how many units a text of the leaf may have.
    pub(crate) fn bounds(&self) -> Bounds {
        match *self {
            Self::Window { min, max, .. } => Bounds { min, max },
            Self::Text(_) => Bounds { min: 0, max: UNBOUNDED },
        }
    }

    pub(crate) fn start(&self) -> LeafState {
        match self {
            Self::Window { automaton, .. } => automaton.start(),
            Self::Text(text) => text.start(),
        }
    }

    /// Checks whether all texts of the leaf are JSON strings.
    pub(crate) fn is_string(&self) -> bool {
        match self {
            Self::Window { automaton, .. } => automaton.is_string() || Arc::ptr_eq(automaton, json_string()),
            Self::Text(_) => true,
        }
    }

    /// Checks whether the leaf accepts the empty text.
    pub(crate) fn is_nullable(&self) -> bool {
        match self {
            Self::Window { automaton, min, .. } => *min == 0 && automaton.is_accepting(automaton.start()),
            Self::Text(_) => false,
        }
    }

    /// Checks whether the leaf is a string that, at every place before its closing quote, can be extended without
    /// limit.
    pub(crate) fn is_endless(&self) -> bool {
        match self {
            Self::Window { automaton, max: u32::MAX, .. } if Arc::ptr_eq(automaton, json_string()) => true,
            Self::Window { automaton, max: u32::MAX, .. } if automaton.is_string() => {
                automaton.stays_endless(automaton.start())
            }
            Self::Window { .. } => false,
            Self::Text(text) => text.is_except(),
        }
    }

    /// Checks whether the leaf accepts a text, ignoring its bounds on the number of units.
    pub(crate) fn accepts(&self, text: &[u8]) -> bool {
        let (mut leaf, mut state) = (self, self.start());
        let plain = Self::plain(json_string().clone());
        for &byte in text {
            state = match leaf {
                Self::Window { automaton, .. } => automaton.step(state, byte).target(),
                Self::Text(text) => match text.next(state, byte) {
                    TextNext::Dead => LeafState::DEAD,
                    TextNext::Stay(state) => state,
                    TextNext::Plain(state) => {
                        leaf = &plain;
                        state
                    }
                },
            };
            if state.is_dead() {
                return false;
            }
        }
        match leaf {
            Self::Window { automaton, .. } => automaton.is_accepting(state),
            Self::Text(_) => false,
        }
    }

    /// Checks whether some text of the leaf, ignoring its bounds, may have the given [form](value). The answer is exact
    /// for strings.
    pub(crate) fn may_be(&self, form: &[u8]) -> bool {
        match form.first() {
            Some(b'"') => self.accepts(&value::spelled(form)),
            Some(b't' | b'f' | b'n') => self.accepts(form),
            // A number can be spelled in many ways, so only its first byte is compared.
            first => first.is_none_or(|byte| match self {
                Self::Window { automaton, .. } => !automaton.step(self.start(), *byte).target().is_dead(),
                Self::Text(_) => false,
            }),
        }
    }

    /// Checks whether more values are reachable from a state, with room for `room` units, than any text can contain.
    /// May return `false` where that is not easy to see.
    pub(crate) fn is_infinite(&self, state: LeafState, room: u32) -> bool {
        match self {
            Self::Text(text) => text.is_except(),
            Self::Window { automaton, .. } if self.is_string() && room == UNBOUNDED => {
                automaton.is_endless(state)
            }
            // One more character gives more than a million values; a text may contain half as many.
            Self::Window { automaton, .. } if self.is_string() => {
                room > 0 && self.is_bounded_string() && !automaton.live(state).is_empty()
            }
            Self::Window { automaton, .. } => automaton.digits_to_endless(state).is_some_and(|digits| {
                room.saturating_sub(digits + automaton.longest_tail()) >= MIN_FREE_DIGITS
            }),
        }
    }

    /// Checks whether the leaf is any string up to some length. There are at least a million of those, more than a text
    /// may contain, so they count as infinitely many.
    pub(crate) fn is_bounded_string(&self) -> bool {
        matches!(self, Self::Window { automaton, max: 1.., .. } if self.bounds().max != UNBOUNDED && Arc::ptr_eq(automaton, json_string()))
    }

    /// Checks whether the start state reaches [more values](Self::is_infinite) than any text can contain.
    pub(crate) fn starts_infinite(&self) -> bool {
        self.is_infinite(self.start(), self.bounds().max)
    }

    /// Checks whether the leaf accepts integers only, and every one of them except zero can be extended up to a great
    /// number of digits.
    pub(crate) fn is_integers(&self) -> bool {
        match self {
            Self::Window { automaton, .. } => automaton.is_integers() && self.starts_infinite(),
            Self::Text(_) => false,
        }
    }

    /// Returns a lower bound on the number of texts, if the leaf is a string that can always be extended up to its
    /// maximum.
    pub(crate) fn room(&self) -> Option<u32> {
        match self {
            Self::Window { automaton, max, .. } if Arc::ptr_eq(automaton, json_string()) => Some(*max),
            // Every length has at least one text.
            Self::Window { automaton, min, max } if automaton.grows() => {
                Some(max.saturating_sub(automaton.longest_tail().max(*min)))
            }
            _ => None,
        }
    }

    /// Returns the bytes that a text of the leaf may begin with.
    pub(crate) fn first(&self) -> ByteSet {
        match self {
            Self::Window { automaton, max: 0, .. } if automaton.counts_only(automaton.start()) => {
                ByteSet::EMPTY
            }
            Self::Window { automaton, .. } => *automaton.live(automaton.start()),
            Self::Text(_) => ByteSet::byte(b'"'),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            // Automata are shared by all programs and counted by their owner.
            Self::Window { .. } => 0,
            Self::Text(text) => size_of::<Text>() + text.heap_bytes(),
        }
    }
}
