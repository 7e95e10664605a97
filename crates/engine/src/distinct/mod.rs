//! Keys and items that must differ: what was seen ([`registers`]), and which tokens of a mask would repeat it ([`filter`]).

pub(crate) mod filter;
pub(crate) mod registers;
