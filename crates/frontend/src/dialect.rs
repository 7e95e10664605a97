//! The notations of grammars, and a guess which one a text is written in.
//!
//! A server that has one field for all grammars should offer a second one for the notation. For those that cannot, there is a guess:
//!
//! ```
//! use maskwright_frontend::Dialect;
//!
//! assert_eq!(Dialect::guess("root ::= \"a\" | 'b'"), Some(Dialect::Ebnf));
//! assert_eq!(Dialect::guess("root ::= <think> .*"), Some(Dialect::Gbnf));
//! assert_eq!(Dialect::guess("# a list\nstart: ITEM+"), Some(Dialect::Lark));
//! assert_eq!(Dialect::guess("[0-9]+"), None);
//! ```
//!
//! It looks at the first line that is neither blank nor a comment:
//!
//! 1. If it begins with `%`, as directives do, the text is Lark.
//! 2. Otherwise it must begin with a name, before which Lark may have `?` and `!`. If `::=` follows, the text is EBNF or GBNF. If a colon
//!    follows, or one of the signs that Lark allows between a name and its colon (`[`, `{`, `.`), it is Lark.
//! 3. EBNF and GBNF agree on nearly everything. A text with tokens, `<name>` outside of literals and classes, is GBNF, and any other EBNF.
//!
//! If none of this fits there is no guess, and it is an error of the text, not of the guess: no notation reads it.

use core::fmt;

use crate::ebnf;

/// A notation for grammars.
///
/// ```
/// use maskwright_frontend::Dialect;
///
/// assert_eq!(Dialect::guess("start: \"a\""), Some(Dialect::Lark));
/// assert_eq!(Dialect::guess("root ::= \"a\""), Some(Dialect::Ebnf));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `root ::= …`, as `XGrammar` writes it.
    Ebnf,
    /// `root ::= …`, as llama.cpp writes it.
    Gbnf,
    /// `start: …`.
    Lark,
}

impl Dialect {
    /// The notation that a text seems to be written in.
    pub fn guess(source: &str) -> Option<Self> {
        let rest = skip_comments(source.trim_start_matches('\u{FEFF}'));
        if rest.starts_with('%') {
            return Some(Self::Lark);
        }
        let name = rest.trim_start_matches(['?', '!']);
        let behind = name.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
        if behind.len() == name.len() {
            return None;
        }
        // A name of EBNF may have a dot within.
        let dotted = behind.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if skip_comments(dotted).starts_with("::=") {
            return Some(if ebnf::has_tokens(source) { Self::Gbnf } else { Self::Ebnf });
        }
        skip_comments(behind).starts_with([':', '[', '{', '.']).then_some(Self::Lark)
    }

    /// Its name, as programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ebnf => "ebnf",
            Self::Gbnf => "gbnf",
            Self::Lark => "lark",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text without the blanks and comments in front.
fn skip_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if !text.starts_with('#') && !text.starts_with("//") {
            return text;
        }
        text = text.find('\n').map_or("", |end| &text[end..]);
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect::{self, Ebnf, Gbnf, Lark};

    #[test]
    fn guesses() {
        for (source, expected) in [
            ("root ::= x", Some(Ebnf)),
            ("\u{FEFF}\n  # note\n  a.b\n  ::= \"<x>\" [<x>]", Some(Ebnf)),
            ("root ::= \"start: a\" # <x>", Some(Ebnf)),
            ("root::=!<[7]>*", Some(Gbnf)),
            ("root ::= x\nx ::= <|end|>", Some(Gbnf)),
            ("start: \"::=\"", Some(Lark)),
            ("// note\n%import common.WS\n", Some(Lark)),
            ("?start : x", Some(Lark)),
            ("!_x.2: y", Some(Lark)),
            ("text[lazy]: /.*/", Some(Lark)),
            ("list{x, y}: x", Some(Lark)),
            ("perm::_ : \"a\"", Some(Lark)),
            ("TERM\n: /a/", Some(Lark)),
            ("", None),
            ("# nothing else", None),
            ("::= x", None),
            ("root = x", None),
            ("{\"type\": \"object\"}", None),
            ("\"a\" | \"b\"", None),
        ] {
            assert_eq!(Dialect::guess(source), expected, "{source}");
        }
    }
}
