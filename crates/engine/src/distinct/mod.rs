//! The filter for values that must differ: keys of an object, and items of an array with `uniqueItems`.
//!
//! What was written is kept in [`registers`], one list of values for each open scope. A mask is computed as if every value were
//! new; [`filter`] then takes out the tokens that would repeat one.

mod bracketed;
mod calm;
pub(crate) mod filter;
mod in_string;
mod nearest;
mod out;
mod places;
pub(crate) mod registers;
pub(crate) mod search;
mod skip;
pub(crate) mod trial;

use self::registers::{Mark, Registers, Remembering};
use self::trial::SearchCache;
use crate::library::BoundProgram;
use crate::parser::stack::Arena;

/// What a matcher remembers of its text where values must differ.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    /// The whole text.
    pub(crate) text: Vec<u8>,
    pub(crate) registers: Registers,
    pub(crate) searches: SearchCache,
}

impl Distinct {
    /// The stacks of a matcher together with the values that their scopes remember. `before` is the length of the text before the
    /// byte that is taken.
    pub(crate) fn stacks<'m>(
        &'m mut self,
        bound: &'m BoundProgram,
        arena: &'m mut Arena,
        before: usize,
    ) -> Remembering<'m> {
        Remembering::new(bound, arena, &mut self.registers, &self.text, before)
    }

    /// Goes back to a text of so many bytes.
    pub(crate) fn restore(&mut self, mark: Mark, bytes: usize) {
        self.registers.truncate(mark);
        self.searches.clear();
        self.text.truncate(bytes);
    }

    /// The same for another matcher at the same place. Searches are keyed by stacks, which it numbers anew.
    pub(crate) fn fork(&self) -> Self {
        Self { text: self.text.clone(), registers: self.registers.clone(), searches: SearchCache::default() }
    }
}
