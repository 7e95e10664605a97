//! Constraint languages (regex, choice, EBNF, JSON Schema) lowered to the grammar representation.
