//! Leaves: the regular pieces that a grammar's network is made of.
//!
//! A leaf is an automaton over bytes with a start state and accepting states. The network around it only
//! knows where it begins and what follows when it is done, so one leaf – the JSON string, say – serves all
//! places that use it, and what is known about its states and a vocabulary ([`crate::library`]) serves all
//! grammars. There are two kinds:
//!
//! * [`Automaton`]: a table, with a *window* that counts units (characters) from outside;
//! * [`Text`]: JSON strings that must not be one of some words, or whose table would be too large ([`spell`]), built state by
//!   state while they are used.

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

/// No text has all the numbers with so many digits.
const MANY_DIGITS: u32 = 16;

/// A leaf as one place of a program uses it.
#[derive(Debug)]
pub(crate) enum Leaf {
    /// An automaton whose units are counted: at least `min`, at most `max`.
    Window {
        automaton: Arc<Automaton>,
        min: u32,
        /// `u32::MAX` stands for "no bound".
        max: u32,
    },
    /// A JSON string with a condition on its decoded text.
    Text(Box<Text>),
}

impl Leaf {
    /// An automaton without a window.
    pub(crate) fn plain(automaton: Arc<Automaton>) -> Self {
        Self::Window { automaton, min: 0, max: u32::MAX }
    }

    /// Whether a digit that is not zero may stand in it. White space has none.
    pub(crate) fn may_have_nonzero(&self) -> bool {
        match self {
            Self::Window { automaton, .. } => automaton.may_have_nonzero(),
            Self::Text(_) => true,
        }
    }

    /// How many units it may have.
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

    /// Whether all its texts are JSON strings.
    pub(crate) fn is_string(&self) -> bool {
        match self {
            Self::Window { automaton, .. } => automaton.is_string() || Arc::ptr_eq(automaton, json_string()),
            Self::Text(_) => true,
        }
    }

    /// Whether the leaf may end before its first byte.
    pub(crate) fn is_nullable(&self) -> bool {
        match self {
            Self::Window { automaton, min, .. } => *min == 0 && automaton.is_accepting(automaton.start()),
            Self::Text(_) => false,
        }
    }

    /// Whether the leaf is a string that can always go on, until its quote.
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

    /// Whether a text is one of the leaf's, lengths not counted.
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

    /// Whether a text of the leaf, lengths not counted, may have a [form](value). For strings the answer is exact.
    pub(crate) fn may_be(&self, form: &[u8]) -> bool {
        match form.first() {
            Some(b'"') => self.accepts(&value::spelled(form)),
            Some(b't' | b'f' | b'n') => self.accepts(form),
            // A number is spelled in many ways.
            first => first.is_none_or(|byte| match self {
                Self::Window { automaton, .. } => !automaton.step(self.start(), *byte).target().is_dead(),
                Self::Text(_) => false,
            }),
        }
    }

    /// Whether more values lead on from a state with room for so many units than any text can use up, as far as that is easily seen.
    pub(crate) fn is_infinite(&self, state: LeafState, room: u32) -> bool {
        match self {
            Self::Text(text) => text.is_except(),
            Self::Window { automaton, .. } if self.is_string() && room == UNBOUNDED => {
                automaton.is_endless(state)
            }
            // One character more makes more than a million values, of which a text may hold half.
            Self::Window { automaton, .. } if self.is_string() => {
                room > 0 && self.is_bounded_string() && !automaton.live(state).is_empty()
            }
            Self::Window { automaton, .. } => automaton
                .digits_to_endless(state)
                .is_some_and(|digits| room.saturating_sub(digits + automaton.longest_tail()) >= MANY_DIGITS),
        }
    }

    /// Whether it is any string up to some length. Of those there are a million at least, and no text may hold as many, so they count as infinitely many.
    pub(crate) fn is_bounded_string(&self) -> bool {
        matches!(self, Self::Window { automaton, max: 1.., .. } if self.bounds().max != UNBOUNDED && Arc::ptr_eq(automaton, json_string()))
    }

    /// Whether [more values](Self::is_infinite) lead on from its start.
    pub(crate) fn starts_infinite(&self) -> bool {
        self.is_infinite(self.start(), self.bounds().max)
    }

    /// Whether the leaf is integers of which all but zero can always go on, up to a great number of digits.
    pub(crate) fn is_integers(&self) -> bool {
        match self {
            Self::Window { automaton, .. } => automaton.is_integers() && self.starts_infinite(),
            Self::Text(_) => false,
        }
    }

    /// If the leaf is a string that can always go on up to some number of characters: how many texts there are at least.
    pub(crate) fn room(&self) -> Option<u32> {
        match self {
            Self::Window { automaton, max, .. } if Arc::ptr_eq(automaton, json_string()) => Some(*max),
            // Each length is another text.
            Self::Window { automaton, min, max } if automaton.grows() => {
                Some(max.saturating_sub(automaton.longest_tail().max(*min)))
            }
            _ => None,
        }
    }

    /// The bytes that may come first.
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
            // Automata are shared by all programs; whoever owns them counts them.
            Self::Window { .. } => 0,
            Self::Text(text) => size_of::<Text>() + text.heap_bytes(),
        }
    }
}
