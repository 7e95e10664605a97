//! From a grammar and a vocabulary to token masks.
