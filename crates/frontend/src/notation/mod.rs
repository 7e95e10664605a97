//! Code that the grammar notations share: escapes, lists of remarks, suggestions for names, tokens, building, rules
//! that can never match, the end of a match, substrings.

pub(crate) mod check;
pub(crate) mod ending;
pub(crate) mod escape;
mod nearest;
pub(crate) mod parts;
pub(crate) mod remarks;
pub(crate) mod substring;
pub(crate) mod tokens;

pub(crate) use nearest::nearest;
