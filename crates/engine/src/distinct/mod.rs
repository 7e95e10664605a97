//! The filter for values that must differ: the keys of an object, and the items of an array with `uniqueItems`.
//!
//! The values written so far are kept in [`registers`], one list for each open scope (an object or array whose values
//! must differ). A mask is first computed as if every value were new; [`filter`] then removes the tokens that would
//! repeat one.

mod bracketed;
mod dead_end_cache;
pub(crate) mod filter;
mod nearest;
mod out;
mod places;
pub(crate) mod registers;
mod safe_tokens;
pub(crate) mod search;
mod skip;
pub(crate) mod trial;

use self::registers::{Mark, Registers, Remembering};
use self::trial::SearchCache;
use crate::library::BoundProgram;
use crate::parser::stack::Arena;

/// What a matcher remembers of its text if values must differ.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    /// The text of the request so far.
    pub(crate) text: Vec<u8>,
    pub(crate) registers: Registers,
    pub(crate) searches: SearchCache,
}

impl Distinct {
    /// Returns the stacks of a matcher together with the values that their scopes remember. `before` is the length of
    /// the text before the byte that is being taken.
    pub(crate) fn stacks<'m>(
        &'m mut self,
        bound: &'m BoundProgram,
        arena: &'m mut Arena,
        before: usize,
    ) -> Remembering<'m> {
        Remembering::new(bound, arena, &mut self.registers, &self.text, before)
    }

    /// Goes back to a text of `bytes` bytes.
    pub(crate) fn restore(&mut self, mark: Mark, bytes: usize) {
        self.registers.truncate(mark);
        self.searches.clear();
        self.text.truncate(bytes);
    }

    /// Returns a copy for another matcher at the same position, without the searches: their keys contain stack numbers,
    /// which the other matcher assigns anew.
    pub(crate) fn fork(&self) -> Self {
        Self { text: self.text.clone(), registers: self.registers.clone(), searches: SearchCache::default() }
    }
}
