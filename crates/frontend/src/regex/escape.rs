//! Escapes: a backslash begins a character, a class, or a condition on a position.

use std::sync::Arc;

use maskwright_grammar::{CharSet, Diagnostic, Span};

use super::Dialect;
use super::ast::{Kind, Place};
use super::parse::{BACK_REFERENCE, BACK_REFERENCE_HELP, Parser};
use super::unicode;

/// An escape with the same meaning inside and outside brackets.
pub(super) enum Escaped {
    Char(char),
    Class(Arc<CharSet>),
}

impl Parser<'_> {
    /// Reads an escape outside brackets, after its backslash.
    pub(super) fn escape(&mut self, start: usize) -> Result<Kind, Diagnostic> {
        if let Some(place) = self.place(start)? {
            return Ok(Kind::Place(place));
        }
        Ok(match self.escaped(start)? {
            Escaped::Char(c) => self.literal(c),
            Escaped::Class(set) => Kind::Class(set),
        })
    }

    /// Reads an escape that is a condition on a position.
    fn place(&mut self, start: usize) -> Result<Option<Place>, Diagnostic> {
        let rust = self.dialect == Dialect::Rust;
        let python = self.dialect == Dialect::Python;
        let holds = match self.peek() {
            Some('A') if rust || python => return Ok(self.next().map(|_| Place::TextStart)),
            Some('z') if rust || python => return Ok(self.next().map(|_| Place::TextEnd)),
            Some('Z') if python => return Ok(self.next().map(|_| Place::TextEnd)),
            Some('b') => {
                self.next();
                self.boundary_kind(start)?
            }
            Some('B') => {
                self.next();
                [true, false, false, true]
            }
            Some('<') if rust => {
                self.next();
                WORD_START
            }
            Some('>') if rust => {
                self.next();
                WORD_END
            }
            _ => return Ok(None),
        };
        Ok(Some(Place::Word { word: self.word(), holds }))
    }

    /// Returns the word characters.
    fn word(&mut self) -> Arc<CharSet> {
        let ascii = self.flags.ascii;
        if self.dialect == Dialect::Python && !ascii {
            self.tables.python_word()
        } else {
            self.tables.word(ascii)
        }
    }

    /// Reads the rest of `\b`, `\b{start}` and similar escapes.
    fn boundary_kind(&mut self, start: usize) -> Result<[bool; 4], Diagnostic> {
        let named = self.dialect == Dialect::Rust
            && self.pattern[self.at..]
                .strip_prefix('{')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        if !named {
            return Ok([false, true, true, false]);
        }
        let kinds = [
            ("{start}", WORD_START),
            ("{end}", WORD_END),
            ("{start-half}", [true, true, false, false]),
            ("{end-half}", [true, false, true, false]),
        ];
        match kinds.into_iter().find(|(name, _)| self.eat_text(name)) {
            Some((_, holds)) => Ok(holds),
            None => Err(Diagnostic::error(
                Span::new(start, self.at + 1),
                "this is no known kind of word boundary",
            )
            .with_help(r"known are \b{start}, \b{end}, \b{start-half} and \b{end-half}")),
        }
    }

    /// Reads an escape that stands for characters, after its backslash.
    pub(super) fn escaped(&mut self, start: usize) -> Result<Escaped, Diagnostic> {
        let ascii = self.flags.ascii;
        let Some(c) = self.next() else {
            return Err(Diagnostic::error(self.since(start), "a backslash at the end escapes nothing")
                .with_help(r"write `\\` for the character itself"));
        };
        let set = match c {
            'd' | 'D' => self.tables.digit(ascii),
            'w' | 'W' => self.word(),
            's' | 'S' => match self.dialect {
                Dialect::Ecma => self.tables.ecma_space(),
                Dialect::Python if !ascii => self.tables.python_space(),
                Dialect::Python | Dialect::Rust => self.tables.space(ascii),
            },
            'p' | 'P' if self.dialect != Dialect::Python => self.property(start)?,
            _ => return self.escaped_char(c, start).map(Escaped::Char),
        };
        // Case folding precedes the complement, so that `\P{Lu}` stays the complement of `\p{Lu}`.
        let fold = self.flags.ignore_case && matches!(c, 'p' | 'P');
        let set = if fold { self.tables.share(unicode::ignore_case(&set)) } else { set };
        Ok(Escaped::Class(if c.is_ascii_uppercase() { self.tables.complement(&set) } else { set }))
    }

    fn escaped_char(&mut self, c: char, start: usize) -> Result<char, Diagnostic> {
        let ecma = self.dialect == Dialect::Ecma;
        let python = self.dialect == Dialect::Python;
        Ok(match c {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\x0C',
            'v' => '\x0B',
            'a' if !ecma => '\x07',
            '0' if python => {
                self.at -= 1;
                self.octal(3, start)?
            }
            '1'..='7' if python && self.octal_digits(2) => {
                self.at -= 1;
                self.octal(3, start)?
            }
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            'x' if !ecma && !python && self.peek() == Some('{') => self.braced_hex(start)?,
            'x' => self.fixed_hex(2, start)?,
            'u' if python => self.fixed_hex(4, start)?,
            'u' if self.peek() == Some('{') => self.braced_hex(start)?,
            'u' => self.code_unit(start)?,
            'U' if !ecma => self.fixed_hex(8, start)?,
            'c' if ecma && self.peek().is_some_and(|c| c.is_ascii_alphabetic()) => {
                char::from(self.next().map_or(0, |c| c as u8) % 32)
            }
            '0'..='9' | 'k' | 'g' => {
                return Err(
                    Diagnostic::error(self.since(start), BACK_REFERENCE).with_help(BACK_REFERENCE_HELP)
                );
            }
            c if c.is_ascii_alphanumeric() => {
                let error = Diagnostic::error(self.since(start), format!(r"`\{c}` is no known escape"));
                return Err(match c {
                    'p' | 'P' if python => error.with_help(
                        "Python has no Unicode properties; list the characters, or choose the dialect `rust` or `ecma`",
                    ),
                    'Z' | 'z' => error.with_help(r"write `$` for the end of the text"),
                    'A' => error.with_help("write `^` for the start of the text"),
                    _ => error.with_help(format!("leave the backslash out to match the letter `{c}`")),
                });
            }
            c => c,
        })
    }

    /// Reads the rest of `\pL`, `\p{Name}` and `\p{^Name}`.
    fn property(&mut self, start: usize) -> Result<Arc<CharSet>, Diagnostic> {
        let from = self.at;
        let (name, negated) = if self.eat('{') {
            let length = self.pattern[self.at..].find('}').ok_or_else(|| {
                Diagnostic::error(self.since(start), "the name of this property is not closed by `}`")
            })?;
            let name = &self.pattern[self.at..self.at + length];
            self.at += length + 1;
            name.strip_prefix('^').map_or((name, false), |name| (name, true))
        } else {
            let Some(c) = self.next() else {
                return Err(Diagnostic::error(self.since(start), "the name of a property is missing")
                    .with_help(r"write for example `\p{Letter}`"));
            };
            (&self.pattern[from..from + c.len_utf8()], false)
        };
        match self.tables.property(name) {
            Some(set) if negated => Ok(self.tables.complement(&set)),
            Some(set) => Ok(set),
            None => Err(Diagnostic::error(self.since(start), format!("there is no Unicode property named `{name}`"))
                .with_help(r"known are general categories (`\p{Lu}`), scripts (`\p{Greek}`) and binary properties (`\p{Alphabetic}`)")),
        }
    }

    /// Reads the rest of `\x{1F600}`.
    fn braced_hex(&mut self, start: usize) -> Result<char, Diagnostic> {
        let inside = self.pattern[self.at..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let digits = inside.map_or("", |(digits, _)| digits);
        let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex {
            return Err(Diagnostic::error(
                self.since(start),
                "hexadecimal digits between braces are missing",
            )
            .with_help(r"write for example `\u{1F600}`"));
        }
        self.at += digits.len() + 2;
        self.scalar(u32::from_str_radix(digits, 16).ok(), start)
    }

    /// Reads the rest of `\x41` or `\U0001F600`.
    fn fixed_hex(&mut self, count: usize, start: usize) -> Result<char, Diagnostic> {
        let value = self.hex_digits(count, start)?;
        self.scalar(Some(value), start)
    }

    /// Reads the rest of `\u0041`, or of a surrogate pair `\uD83D\uDE00`.
    fn code_unit(&mut self, start: usize) -> Result<char, Diagnostic> {
        let high = self.hex_digits(4, start)?;
        if !(0xD800..0xDC00).contains(&high) {
            return self.scalar(Some(high), start);
        }
        let before = self.at;
        if self.eat_text("\\u") && self.peek() != Some('{') {
            let low = self.hex_digits(4, before)?;
            if (0xDC00..0xE000).contains(&low) {
                return self.scalar(Some(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), start);
            }
        }
        self.at = before;
        self.scalar(None, start)
    }

    /// Checks whether this many octal digits follow.
    pub(super) fn octal_digits(&self, count: usize) -> bool {
        let digits = self.pattern[self.at..].bytes().take(count);
        digits.filter(|digit| matches!(digit, b'0'..=b'7')).count() == count
    }

    /// Reads a character given by up to `most` octal digits.
    pub(super) fn octal(&mut self, most: usize, start: usize) -> Result<char, Diagnostic> {
        let mut value = 0;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            self.next();
            value = value << 3 | digit;
        }
        if value > 0o377 {
            return Err(Diagnostic::error(self.since(start), "an octal escape goes up to 377"));
        }
        self.scalar(Some(value), start)
    }

    fn hex_digits(&mut self, count: usize, start: usize) -> Result<u32, Diagnostic> {
        let mut value = 0;
        for _ in 0..count {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                let span = Span::new(start, self.at.max(start + 2).min(self.pattern.len()));
                return Err(Diagnostic::error(span, format!("this escape needs {count} hexadecimal digits")));
            };
            self.next();
            value = value << 4 | digit;
        }
        Ok(value)
    }

    fn scalar(&self, value: Option<u32>, start: usize) -> Result<char, Diagnostic> {
        value.and_then(char::from_u32).ok_or_else(|| {
            Diagnostic::error(
                self.since(start),
                "this number is not a character: it is half of a surrogate pair or above U+10FFFF",
            )
            .with_help(r"write a character outside the basic plane as `\u{1F600}`, and a range of them as `[\u{10000}-\u{10FFFF}]`")
        })
    }
}

const WORD_START: [bool; 4] = [false, true, false, false];
const WORD_END: [bool; 4] = [false, false, true, false];
