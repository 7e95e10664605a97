//! The languages: cases as data, random texts against slower judges, and hostile input.

mod choice;
mod ebnf;
mod ebnf_random;
mod frugal;
mod grammar_cases;
mod json_schema;
mod lark;
mod recognize;
mod regex;
mod regex_random;
mod regex_support;
mod to_regex;
