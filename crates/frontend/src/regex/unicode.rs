//! Character classes by name, from the tables of regex-syntax.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use maskwright_grammar::CharSet;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The classes of a pattern. Large classes (`\w` has 770 ranges) are computed once and shared, so that a pattern with
/// many of them stays small.
#[derive(Debug, Default)]
pub(super) struct Tables {
    named: HashMap<String, Option<Arc<CharSet>>>,
    complements: HashMap<Arc<CharSet>, Arc<CharSet>>,
    shared: HashSet<Arc<CharSet>>,
}

impl Tables {
    /// Returns `\d`: decimal digits.
    pub(super) fn digit(&mut self, ascii: bool) -> Arc<CharSet> {
        if ascii { self.share(ranges(&[('0', '9')])) } else { self.table(r"\d") }
    }

    /// Returns `\w`: letters, marks, digits and connectors.
    pub(super) fn word(&mut self, ascii: bool) -> Arc<CharSet> {
        if ascii {
            self.share(ranges(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]))
        } else {
            self.table(r"\w")
        }
    }

    /// Returns `\s`: white space.
    pub(super) fn space(&mut self, ascii: bool) -> Arc<CharSet> {
        if ascii { self.share(ranges(&[('\t', '\r'), (' ', ' ')])) } else { self.table(r"\s") }
    }

    /// Returns `\s` of ECMA-262: white space, line terminators and the byte order mark, but not U+0085.
    pub(super) fn ecma_space(&mut self) -> Arc<CharSet> {
        let extra = ranges(&[('\u{FEFF}', '\u{FEFF}')]);
        let next_line = ranges(&[('\u{85}', '\u{85}')]);
        let set = self.space(false).intersection(&next_line.complement()).union(&extra);
        self.share(set)
    }

    /// Returns `\w` of Python: letters, numbers of every kind, and the underscore, but no marks.
    pub(super) fn python_word(&mut self) -> Arc<CharSet> {
        let set = self.table(r"\p{L}").union(&self.table(r"\p{N}")).union(&ranges(&[('_', '_')]));
        self.share(set)
    }

    /// Returns `\s` of Python: white space, and the four separators among the control characters.
    pub(super) fn python_space(&mut self) -> Arc<CharSet> {
        let set = self.space(false).union(&ranges(&[('\x1C', '\x1F')]));
        self.share(set)
    }

    /// Returns the characters of `\p{name}`, or `None` if there is no such property.
    pub(super) fn property(&mut self, name: &str) -> Option<Arc<CharSet>> {
        // Only characters that occur in names: none may end the braces or start an escape.
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | '=' | ':');
        if name.is_empty() || !name.chars().all(fits) {
            return None;
        }
        self.named(&format!(r"\p{{{name}}}"))
    }

    /// Returns the complement of a set.
    pub(super) fn complement(&mut self, set: &Arc<CharSet>) -> Arc<CharSet> {
        if let Some(known) = self.complements.get(set) {
            return Arc::clone(known);
        }
        let complement = self.share(set.complement());
        self.complements.insert(Arc::clone(set), Arc::clone(&complement));
        complement
    }

    /// Returns the set, or an equal one that already exists.
    pub(super) fn share(&mut self, set: CharSet) -> Arc<CharSet> {
        if let Some(known) = self.shared.get(&set) {
            return Arc::clone(known);
        }
        let set = Arc::new(set);
        self.shared.insert(Arc::clone(&set));
        set
    }

    /// Returns a class that is known to exist.
    fn table(&mut self, pattern: &str) -> Arc<CharSet> {
        self.named(pattern).unwrap_or_else(|| Arc::new(CharSet::none()))
    }

    /// Returns the characters that a pattern of one class matches.
    fn named(&mut self, pattern: &str) -> Option<Arc<CharSet>> {
        if let Some(known) = self.named.get(pattern) {
            return known.clone();
        }
        let set = class(pattern).map(|set| self.share(set));
        self.named.insert(pattern.into(), set.clone());
        set
    }
}

/// Returns a class between colons inside brackets, `[:alpha:]`.
pub(super) fn posix(name: &str) -> Option<CharSet> {
    let set: &[(char, char)] = match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7F')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1F'), ('\x7F', '\x7F')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    };
    Some(ranges(set))
}

/// Returns the set with all characters that differ from a member only in case.
pub(super) fn ignore_case(set: &CharSet) -> CharSet {
    let mut class = ClassUnicode::new(set.ranges().iter().map(|&(a, b)| ClassUnicodeRange::new(a, b)));
    // The tables are compiled in; without them the set would stay unchanged.
    let _ = class.try_case_fold_simple();
    from_class(&class)
}

/// Returns the set with all ASCII letters that differ from a member only in case.
pub(super) fn ignore_ascii_case(set: &CharSet) -> CharSet {
    let letters = ('a'..='z').chain('A'..='Z').filter(|&c| set.contains(c));
    let other =
        |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    set.union(&CharSet::from_ranges(letters.map(|c| (other(c), other(c)))))
}

/// Returns the set of some inclusive ranges.
pub(super) fn ranges(ranges: &[(char, char)]) -> CharSet {
    CharSet::from_ranges(ranges.iter().copied())
}

/// Returns the characters of a pattern of one class, as regex-syntax reads it.
fn class(pattern: &str) -> Option<CharSet> {
    match regex_syntax::parse(pattern).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(from_class(&class)),
        // regex-syntax returns a class of one character as a literal, and an empty class as a class of bytes.
        HirKind::Literal(literal) => {
            let only = core::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(ranges(&[(only, only)]))
        }
        HirKind::Class(Class::Bytes(class)) if class.ranges().is_empty() => Some(CharSet::none()),
        _ => None,
    }
}

fn from_class(class: &ClassUnicode) -> CharSet {
    CharSet::from_ranges(class.ranges().iter().map(|range| (range.start(), range.end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_there() {
        let mut tables = Tables::default();
        assert!(tables.digit(false).contains('٣') && !tables.digit(true).contains('٣'));
        assert!(tables.word(false).contains('é') && !tables.word(true).contains('é'));
        assert!(tables.space(false).contains('\u{2003}') && !tables.space(true).contains('\u{2003}'));
        assert!(tables.space(true).contains('\x0B'));
        assert!(tables.ecma_space().contains('\u{FEFF}') && !tables.ecma_space().contains('\u{85}'));
    }

    #[test]
    fn properties_are_found_by_name_only() {
        let mut tables = Tables::default();
        let mut property = |name| tables.property(name);
        assert!(property("Greek").is_some_and(|set| set.contains('λ')));
        assert!(property("Script=Greek").is_some_and(|set| set.contains('λ')));
        assert_eq!(property("Zl").and_then(|set| set.single()), Some('\u{2028}'));
        assert_eq!(property("NoSuchThing"), None);
        assert_eq!(property("L}|\\p{N"), None);
        assert_eq!(property(""), None);
    }

    #[test]
    fn case_folding_goes_both_ways() {
        let k = ignore_case(&ranges(&[('k', 'k')]));
        assert!(k.contains('K') && k.contains('\u{212A}'));
        assert_eq!(ignore_case(&ranges(&[('0', '9')])), ranges(&[('0', '9')]));
    }
}
