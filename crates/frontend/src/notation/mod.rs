//! What the grammar notations share: escapes, the list of remarks, names that were meant, tokens, building, rules that can never match, where a match ends, substrings.

pub(crate) mod check;
pub(crate) mod ending;
pub(crate) mod escape;
mod nearest;
pub(crate) mod parts;
pub(crate) mod remarks;
pub(crate) mod substring;
pub(crate) mod tokens;

pub(crate) use nearest::nearest;
