//! Classes in brackets: ranges, escapes, POSIX names, nesting and set operations.
//!
//! ```text
//! [^a-z\d]        [a-z&&[^aeiou]]        [\w--\d]        [[:alpha:]_]        [^]
//! ```
//!
//! Inside brackets, adjacent items are united; `&&`, `--` and `~~` then combine the items to their left with those to
//! their right, from left to right. Nesting, POSIX names and set operations belong to the Rust dialect; in the other
//! dialects these characters stand for themselves. In ECMA-262 `[]` matches nothing; elsewhere a bracket in the first
//! position stands for itself.

use std::sync::Arc;

use maskwright_grammar::{CharSet, Diagnostic, Span};

use super::Dialect;
use super::escape::Escaped;
use super::parse::Parser;
use super::unicode;

impl Parser<'_> {
    /// Reads a class, after its opening bracket.
    pub(super) fn brackets(&mut self, start: usize) -> Result<CharSet, Diagnostic> {
        self.deeper(start)?;
        let negated = self.eat('^');
        let mut left: Option<(CharSet, Operation)> = None;
        let mut items = Items { ranges: self.leading_chars(), sets: Vec::new() };
        loop {
            if self.dialect == Dialect::Rust && self.skip_extended() {
                continue;
            }
            if self.peek().is_none() {
                return Err(Diagnostic::error(Span::new(start, start + 1), "this class is not closed")
                    .with_help(r"add a `]`, or write `\[` for the character itself"));
            }
            let operation = self.operation();
            if operation.is_none() && !self.eat(']') {
                self.item(&mut items)?;
                continue;
            }
            let right = core::mem::take(&mut items).union();
            let right = self.folded(right);
            let united = match left.take() {
                Some((set, operation)) => operation.apply(&set, &right),
                None => right,
            };
            let Some(operation) = operation else {
                self.shallower();
                return Ok(if negated { united.complement() } else { united });
            };
            left = Some((united, operation));
        }
    }

    /// Reads the characters that stand for themselves at the start of a class: in the Rust dialect dashes, or else a
    /// bracket; in the Python dialect only a bracket.
    fn leading_chars(&mut self) -> Vec<(char, char)> {
        let rust = self.dialect == Dialect::Rust;
        let mut found = Vec::new();
        while rust && self.eat('-') {
            found.push(('-', '-'));
        }
        if self.dialect != Dialect::Ecma && found.is_empty() && self.eat(']') {
            found.push((']', ']'));
        }
        found
    }

    fn operation(&mut self) -> Option<Operation> {
        if self.dialect != Dialect::Rust {
            return None;
        }
        let operations = [
            ("&&", Operation::Intersection),
            ("--", Operation::Difference),
            ("~~", Operation::SymmetricDifference),
        ];
        operations.into_iter().find(|(text, _)| self.eat_text(text)).map(|(_, operation)| operation)
    }

    /// Reads one item: a nested class, a name, a class escape, a character or a range.
    fn item(&mut self, items: &mut Items) -> Result<(), Diagnostic> {
        let start = self.at;
        if self.dialect == Dialect::Rust && self.peek() == Some('[') {
            let set = if let Some(set) = self.posix() {
                set
            } else {
                self.next();
                self.brackets(start)?
            };
            items.sets.push(Arc::new(set));
            return Ok(());
        }
        let low = match self.bracket_char(start)? {
            Escaped::Class(_) if self.dialect == Dialect::Python && self.at_range() => {
                return Err(Diagnostic::error(
                    self.since(start),
                    "a range must begin with a character, not with a class",
                )
                .with_help(r"write `\-` for the character itself"));
            }
            Escaped::Class(set) => {
                items.sets.push(set);
                return Ok(());
            }
            Escaped::Char(c) => c,
        };
        if !self.at_range() {
            items.ranges.push((low, low));
            return Ok(());
        }
        self.next();
        let from = self.at;
        match self.bracket_char(from)? {
            Escaped::Char(high) if low <= high => items.ranges.push((low, high)),
            Escaped::Char(_) => {
                return Err(Diagnostic::error(
                    self.since(start),
                    format!("the range `{}` ends before it begins", &self.pattern[start..self.at]),
                )
                .with_help("swap its ends, or put the `-` first to match it as a character"));
            }
            Escaped::Class(set) if self.dialect == Dialect::Ecma => {
                items.ranges.extend([(low, low), ('-', '-')]);
                items.sets.push(set);
            }
            Escaped::Class(_) => {
                return Err(Diagnostic::error(
                    self.since(start),
                    "a range must end with a character, not with a class",
                )
                .with_help(r"write `\-` for the character itself"));
            }
        }
        Ok(())
    }

    /// Checks whether a `-` follows that has a right side and is not a set operation.
    fn at_range(&self) -> bool {
        let mut rest = self.pattern[self.at..].chars();
        if rest.next() != Some('-') {
            return false;
        }
        match rest.next() {
            None | Some(']') => false,
            Some('-') => self.dialect != Dialect::Rust,
            _ => true,
        }
    }

    /// Reads a character or an escape inside brackets.
    fn bracket_char(&mut self, start: usize) -> Result<Escaped, Diagnostic> {
        match self.next() {
            Some('\\') if self.dialect != Dialect::Rust && self.eat('b') => Ok(Escaped::Char('\x08')),
            Some('\\') if self.dialect == Dialect::Python && self.octal_digits(1) => {
                self.octal(3, start).map(Escaped::Char)
            }
            Some('\\') => self.escaped(start),
            Some(c) => Ok(Escaped::Char(c)),
            None => Err(Diagnostic::error(Span::at(start), "the class ends in the middle of a range")),
        }
    }

    /// Reads `[:name:]` or `[:^name:]`, if present.
    fn posix(&mut self) -> Option<CharSet> {
        let inside = self.pattern[self.at..].strip_prefix("[:")?;
        let (name, _) = inside.split_once(":]")?;
        let (plain, negated) = name.strip_prefix('^').map_or((name, false), |plain| (plain, true));
        let set = unicode::posix(plain)?;
        self.at += name.len() + 4;
        Some(if negated { set.complement() } else { set })
    }
}

/// The items between two set operations.
#[derive(Default)]
struct Items {
    ranges: Vec<(char, char)>,
    sets: Vec<Arc<CharSet>>,
}

impl Items {
    fn union(self) -> CharSet {
        let sets = self.sets.iter().flat_map(|set| set.ranges().iter().copied());
        CharSet::from_ranges(self.ranges.iter().copied().chain(sets))
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Intersection,
    Difference,
    SymmetricDifference,
}

impl Operation {
    fn apply(self, a: &CharSet, b: &CharSet) -> CharSet {
        match self {
            Self::Intersection => a.intersection(b),
            Self::Difference => a.intersection(&b.complement()),
            Self::SymmetricDifference => {
                a.intersection(&b.complement()).union(&b.intersection(&a.complement()))
            }
        }
    }
}
