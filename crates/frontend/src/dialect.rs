//! The notations of grammars, and a guess of the notation of a text.
//!
//! A server with one field for all grammars should offer a second field for the notation. For servers that cannot,
//! there is a guess:
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
//! It depends on the first line that is neither blank nor a comment:
//!
//! 1. If it begins with `%`, as directives do, the text is Lark.
//! 2. Otherwise it must begin with a name, optionally after `?` and `!` (Lark). If `::=` follows, the text is EBNF or
//!    GBNF. If a colon follows, or one of the signs that Lark allows between a name and its colon (`[`, `{`, `.`), it
//!    is Lark.
//! 3. EBNF and GBNF agree on nearly everything. A text with tokens, `<name>` outside literals and classes, is GBNF, and
//!    any other is EBNF.
//!
//! If none of these applies there is no guess, because no notation accepts the text.

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
    /// `root ::= …`, as in `XGrammar`.
    Ebnf,
    /// `root ::= …`, as in llama.cpp.
    Gbnf,
    /// `start: …`.
    Lark,
}

impl Dialect {
    /// Returns the notation in which a text seems to be written.
    pub fn guess(source: &str) -> Option<Self> {
        let rest = skip_comments(source.trim_start_matches('\u{FEFF}'));
        if rest.starts_with('%') {
            return Some(Self::Lark);
        }
        let name = rest.trim_start_matches(['?', '!']);
        let after_name = name.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
        if after_name.len() == name.len() {
            return None;
        }
        // A name in EBNF may contain a dot.
        let dotted =
            after_name.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if skip_comments(dotted).starts_with("::=") {
            return Some(if ebnf::has_tokens(source) { Self::Gbnf } else { Self::Ebnf });
        }
        skip_comments(after_name).starts_with([':', '[', '{', '.']).then_some(Self::Lark)
    }

    /// Returns the name, as used in programs.
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

/// Returns the text without leading blanks and comments.
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
