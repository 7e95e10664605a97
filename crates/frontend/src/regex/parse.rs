//! Reads text into an [`Ast`]: alternation, sequence, repetition, groups and flags.
//!
//! This is a recursive descent parser with one depth counter: groups, classes and repetitions of repetitions each go
//! one level deeper, and a pattern that is too deep is an error with its place. Escapes and classes are read in their
//! own files.

use std::sync::Arc;

use maskwright_automata::must_stop;
use maskwright_grammar::{Cause, CharSet, Diagnostic, Span};

use super::ast::{Ast, Kind, Look, Place};
use super::unicode::{self, Tables};
use super::{Dialect, Options};
use crate::stopped::stopped;

/// Reads a whole pattern.
pub(super) fn parse(pattern: &str, options: &Options) -> Result<Ast, Diagnostic> {
    if pattern.len() > options.source_bytes {
        let message =
            format!("the pattern has {} bytes, and the limit is {}", pattern.len(), options.source_bytes);
        let help = "make the pattern smaller, give its words as a choice, or raise the limit `source_bytes`";
        return Err(Diagnostic::error(Span::at(0), message).with_help(help).because(Cause::Limit));
    }
    let flags = Flags {
        ignore_case: options.ignore_case,
        ascii: options.ascii || options.dialect == Dialect::Ecma,
        multi_line: options.multi_line,
        dot_all: options.dot_all,
        extended: options.extended && options.dialect != Dialect::Ecma,
    };
    let mut parser = Parser {
        pattern,
        at: 0,
        flags,
        depth: 0,
        dialect: options.dialect,
        nesting: options.nesting,
        anchored: options.anchored,
        head: 0,
        groups: 0,
        tables: Tables::default(),
    };
    let ast = parser.alternation()?;
    if parser.at < pattern.len() {
        let place = Span::new(parser.at, parser.at + 1);
        return Err(Diagnostic::error(place, "this `)` closes no group")
            .with_help(r"write `\)` for the character itself"));
    }
    Ok(ast)
}

/// The flags that `(?i)` and similar groups switch on and off.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "flags are independent of each other")]
pub(super) struct Flags {
    pub(super) ignore_case: bool,
    pub(super) ascii: bool,
    pub(super) multi_line: bool,
    pub(super) dot_all: bool,
    pub(super) extended: bool,
}

/// The parser: a pattern, a position in it, and the flags in effect there.
pub(super) struct Parser<'a> {
    pub(super) pattern: &'a str,
    pub(super) at: usize,
    pub(super) flags: Flags,
    pub(super) dialect: Dialect,
    pub(super) tables: Tables,
    depth: usize,
    nesting: usize,
    anchored: bool,
    /// The end of the flags and comments at the start of the pattern.
    head: usize,
    /// The number of open groups.
    groups: usize,
}

impl Parser<'_> {
    /// Reads `a|b|c`, up to the end or an unmatched `)`.
    fn alternation(&mut self) -> Result<Ast, Diagnostic> {
        let start = self.at;
        let mut branches = vec![self.sequence()?];
        while self.eat('|') {
            branches.push(self.sequence()?);
        }
        Ok(match branches.pop() {
            Some(only) if branches.is_empty() => only,
            last => {
                branches.extend(last);
                Ast::new(Kind::Alt(branches), self.since(start))
            }
        })
    }

    /// Reads repeated atoms in sequence.
    fn sequence(&mut self) -> Result<Ast, Diagnostic> {
        let start = self.at;
        let mut parts = Vec::new();
        while let Some(c) = self.peek()
            && c != '|'
            && c != ')'
        {
            if must_stop() {
                return Err(stopped(self.at));
            }
            let from = self.at;
            if let Some(atom) = self.atom()? {
                parts.push(self.repetitions(atom)?);
            } else if from == self.head {
                self.head = self.at;
            }
        }
        let span = self.since(start);
        Ok(match parts.pop() {
            None => Ast::new(Kind::Empty, span),
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                Ast::new(Kind::Concat(parts), span)
            }
        })
    }

    /// Reads one atom without its repetition, or nothing for white space, comments and flags.
    fn atom(&mut self) -> Result<Option<Ast>, Diagnostic> {
        if self.skip_extended() {
            return Ok(None);
        }
        let start = self.at;
        let Some(c) = self.next() else { return Ok(None) };
        let kind = match c {
            '(' => return self.group(start),
            '[' => self.class(start)?,
            '\\' => self.escape(start)?,
            '.' => Kind::Class(self.dot()),
            '^' if self.flags.multi_line => Kind::Place(Place::LineStart),
            '^' => Kind::Place(Place::TextStart),
            '$' if self.flags.multi_line => Kind::Place(Place::LineEnd),
            '$' if self.dialect == Dialect::Python && !self.is_at_end() => {
                before_last_line_feed(self.since(start))
            }
            '$' => Kind::Place(Place::TextEnd),
            '*' | '+' | '?' => return Err(self.nothing_to_repeat(start)),
            '{' if self.dialect == Dialect::Rust || self.counted(start).is_some() => {
                return Err(self.nothing_to_repeat(start));
            }
            c => self.literal(c),
        };
        Ok(Some(Ast::new(kind, self.since(start))))
    }

    fn nothing_to_repeat(&self, start: usize) -> Diagnostic {
        let character = &self.pattern[start..=start];
        Diagnostic::error(
            Span::new(start, start + 1),
            format!("there is nothing before this `{character}` to repeat"),
        )
        .with_help(format!(r"write `\{character}` for the character itself"))
    }

    /// Checks whether no text can follow here: the pattern must match the whole text, and only closes groups from here
    /// on.
    fn is_at_end(&self) -> bool {
        let rest = &self.pattern[self.at..];
        let is_last_of_branch = self.groups == 0 && rest.starts_with('|');
        self.anchored && (is_last_of_branch || rest.trim_start_matches([')', '$']).is_empty())
    }

    /// Returns the set, with the characters that differ only in case if case is ignored.
    pub(super) fn folded(&self, set: CharSet) -> CharSet {
        match (self.flags.ignore_case, self.dialect) {
            (false, _) => set,
            (true, Dialect::Python) if self.flags.ascii => unicode::ignore_ascii_case(&set),
            (true, _) => unicode::ignore_case(&set),
        }
    }

    /// Returns a character, or the characters that differ from it only in case.
    pub(super) fn literal(&mut self, c: char) -> Kind {
        if self.flags.ignore_case {
            let set = self.folded(unicode::ranges(&[(c, c)]));
            if set.single().is_none() {
                return Kind::Class(self.tables.share(set));
            }
        }
        Kind::Char(c)
    }

    /// Reads a class in brackets. A class of a single character becomes that character.
    fn class(&mut self, start: usize) -> Result<Kind, Diagnostic> {
        let set = self.brackets(start)?;
        Ok(match set.single() {
            Some(only) => Kind::Char(only),
            None => Kind::Class(self.tables.share(set)),
        })
    }

    fn dot(&mut self) -> Arc<CharSet> {
        let excluded: &[(char, char)] = match (self.flags.dot_all, self.dialect) {
            (true, _) => &[],
            (false, Dialect::Rust | Dialect::Python) => &[('\n', '\n')],
            (false, Dialect::Ecma) => &[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')],
        };
        self.tables.share(unicode::ranges(excluded).complement())
    }

    /// Reads `*`, `+`, `?`, `{n,m}` after an atom; the Rust dialect allows several of them.
    fn repetitions(&mut self, mut atom: Ast) -> Result<Ast, Diagnostic> {
        let start = atom.span().start;
        let depth = self.depth;
        let mut count = 0;
        loop {
            self.skip_all_extended();
            let operator = self.at;
            let Some((min, max)) = self.repetition()? else { break };
            count += 1;
            if count > 1 && self.dialect != Dialect::Rust {
                return Err(self.nothing_to_repeat(operator));
            }
            self.deeper(operator)?;
            let lazy = self.eat('?');
            if !lazy && self.peek() == Some('+') {
                return Err(Diagnostic::error(
                    Span::new(self.at, self.at + 1),
                    "possessive repetition is not supported: it depends on the order in which a matcher tries things",
                )
                .with_help("leave the `+` out, or put the repetition into a group to repeat it again"));
            }
            atom = Ast::new(Kind::Repeat { body: Box::new(atom), min, max }, self.since(start));
        }
        self.depth = depth;
        Ok(atom)
    }

    /// Reads one repetition operator, if present.
    fn repetition(&mut self) -> Result<Option<(u32, Option<u32>)>, Diagnostic> {
        let start = self.at;
        let bounds = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted_or_error(start),
            _ => return Ok(None),
        };
        self.next();
        Ok(Some(bounds))
    }

    fn counted_or_error(&mut self, start: usize) -> Result<Option<(u32, Option<u32>)>, Diagnostic> {
        self.next();
        let Some((bounds, end)) = self.counted(self.at - 1) else {
            if self.dialect != Dialect::Rust {
                self.at = start;
                return Ok(None);
            }
            return Err(Diagnostic::error(
                Span::new(start, start + 1),
                "this `{` begins no repetition like {2} or {2,5}",
            )
            .with_help(r"write `\{` for the character itself"));
        };
        self.at = end;
        let span = self.since(start);
        let (Ok(min), Ok(max)) = bounds else {
            return Err(Diagnostic::error(span, format!("a repetition counts at most to {}", u32::MAX)));
        };
        match max {
            Some(max) if max < min => Err(Diagnostic::error(
                span,
                format!("the repetition {{{min},{max}}} asks for at least {min} but at most {max}"),
            )),
            _ => Ok(Some((min, max))),
        }
    }

    /// Returns the bounds of a counted repetition that begins with the brace at `start`, and its end. Returns `None` if
    /// the brace begins no repetition. A number that is too large is an inner error.
    #[expect(clippy::type_complexity, reason = "used by one caller, which takes it apart")]
    fn counted(&self, start: usize) -> Option<((Result<u32, ()>, Result<Option<u32>, ()>), usize)> {
        // The search is short, so that a pattern of braces does not take quadratic time.
        let length = self.pattern.as_bytes()[start..].iter().take(32).position(|&b| b == b'}')?;
        let inside = self.pattern[start..start + length].strip_prefix('{')?;
        let (low, high) = inside.split_once(',').map_or((inside, None), |(low, high)| (low, Some(high)));
        let strip = |text: &'_ str| -> String { text.trim_matches(' ').into() };
        let (low, high) = (strip(low), high.map(strip));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let open_low = low.is_empty()
            && high.as_ref().is_some_and(|high| match self.dialect {
                Dialect::Rust => is_number(high),
                Dialect::Python => is_number(high) || high.is_empty(),
                Dialect::Ecma => false,
            });
        let open_high = high.as_ref().is_some_and(String::is_empty);
        if !(is_number(&low) || open_low) || !(open_high || high.as_ref().is_none_or(|high| is_number(high)))
        {
            return None;
        }
        if self.dialect != Dialect::Rust && inside.contains(' ') {
            return None;
        }
        let min = if open_low { Ok(0) } else { low.parse().map_err(drop) };
        let max = match high {
            None => min.map(Some),
            Some(high) if high.is_empty() => Ok(None),
            Some(high) => high.parse().map(Some).map_err(drop),
        };
        Some(((min, max), start + length + 1))
    }

    /// Reads the text after an opening parenthesis: a group of any kind, a look-around, flags, or a comment.
    fn group(&mut self, start: usize) -> Result<Option<Ast>, Diagnostic> {
        self.deeper(start)?;
        let outer = self.flags;
        let opened = self.group_head(start)?;
        let look = match opened {
            Opened::Nothing => {
                self.depth -= 1;
                return Ok(None);
            }
            Opened::Group => None,
            Opened::Look(look) => Some(look),
        };
        self.groups += 1;
        let body = self.alternation()?;
        self.groups -= 1;
        if !self.eat(')') {
            return Err(Diagnostic::error(Span::new(start, start + 1), "this group is not closed")
                .with_help(r"add a `)`, or write `\(` for the character itself"));
        }
        self.flags = outer;
        self.depth -= 1;
        let kind = match look {
            Some(look) => Kind::Look(look, Box::new(body)),
            // A group makes no separate node, but its span is kept.
            None => body.into_kind(),
        };
        Ok(Some(Ast::new(kind, self.since(start))))
    }

    fn group_head(&mut self, start: usize) -> Result<Opened, Diagnostic> {
        if !self.eat('?') {
            return Ok(Opened::Group);
        }
        let look = |ahead, negated| Ok(Opened::Look(Look { ahead, negated }));
        let unsupported = |parser: &Self, what: &str, help: &str| {
            let span = Span::new(start, (parser.at + 1).min(parser.pattern.len()));
            Err(Diagnostic::error(span, what).with_help(help))
        };
        for (text, ahead, negated) in
            [("=", true, false), ("!", true, true), ("<=", false, false), ("<!", false, true)]
        {
            if self.eat_text(text) {
                return look(ahead, negated);
            }
        }
        if self.eat_text("P=") {
            return unsupported(self, BACK_REFERENCE, BACK_REFERENCE_HELP);
        }
        if self.dialect == Dialect::Python && self.peek() == Some('<') {
            let help = "write `(?P<name>…)`, as Python does, or choose another dialect";
            return unsupported(self, "this group is not of the dialect `python`", help);
        }
        if self.eat_text("P<") || self.eat('<') || (self.dialect == Dialect::Rust && self.eat('\'')) {
            return self.group_name(start);
        }
        match self.peek() {
            Some('>') => unsupported(
                self,
                "atomic groups are not supported: they depend on the order in which a matcher tries things",
                "use a plain group `(?:…)`",
            ),
            Some('(') => {
                unsupported(self, "conditional groups are not supported", "write the cases as alternatives")
            }
            Some('|') => {
                unsupported(self, "branch reset groups are not supported", "use a plain group `(?:…)`")
            }
            Some('R' | '&' | '0'..='9') => unsupported(
                self,
                "recursion is not a regular expression",
                "write an EBNF grammar, in which rules may call themselves",
            ),
            Some('#') if self.dialect != Dialect::Ecma => self.comment(start),
            _ => self.flag_group(start),
        }
    }

    /// Reads the rest of `(?<name>`.
    fn group_name(&mut self, start: usize) -> Result<Opened, Diagnostic> {
        let from = self.at;
        let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '$');
        while self.peek().is_some_and(legal) {
            self.next();
        }
        let named = self.at > from;
        if named && (self.eat('>') || self.eat('\'')) {
            return Ok(Opened::Group);
        }
        Err(Diagnostic::error(Span::new(start, self.at), "a group's name must be a word, followed by `>`"))
    }

    /// Reads the rest of `(?#…)`.
    fn comment(&mut self, start: usize) -> Result<Opened, Diagnostic> {
        while let Some(c) = self.next() {
            if c == ')' {
                return Ok(Opened::Nothing);
            }
        }
        Err(Diagnostic::error(Span::new(start, start + 3), "this comment is not closed"))
    }

    /// Reads the rest of `(?i)`, `(?i-s:` and `(?:`.
    fn flag_group(&mut self, start: usize) -> Result<Opened, Diagnostic> {
        let mut on = true;
        loop {
            let at = self.at;
            match self.next() {
                Some(':') => return Ok(Opened::Group),
                Some(')') if at > start + 2 && self.dialect != Dialect::Rust && start != self.head => {
                    return Err(Diagnostic::error(
                        self.since(start),
                        "flags for the whole pattern must be at its start",
                    )
                    .with_help("move them there, or write them for a group: `(?i:…)`"));
                }
                Some(')') if at > start + 2 => {
                    // The flags hold until the end of the enclosing group, where they are restored.
                    return Ok(Opened::Nothing);
                }
                Some('-') if on => on = false,
                Some('i') => self.flags.ignore_case = on,
                Some('m') => self.flags.multi_line = on,
                Some('s') => self.flags.dot_all = on,
                Some('x') if self.dialect != Dialect::Ecma => self.flags.extended = on,
                Some('a') if self.dialect != Dialect::Ecma => self.flags.ascii = on,
                // Whether a repetition is greedy does not change which texts match.
                Some('U') if self.dialect == Dialect::Rust => {}
                Some('u') if self.dialect != Dialect::Ecma && on => self.flags.ascii = false,
                Some('u') if self.dialect != Dialect::Ecma => {
                    return Err(Diagnostic::error(
                        self.since(at),
                        "texts are always Unicode: `u` cannot be switched off",
                    )
                    .with_help(r"write `(?a)` to let `\d`, `\w` and `\s` know only ASCII"));
                }
                Some(c) => {
                    return Err(Diagnostic::error(
                        Span::new(start, self.at),
                        format!("`(?{c}` begins no known group or flag"),
                    ));
                }
                None => return Err(Diagnostic::error(Span::new(start, self.at), "this group is not closed")),
            }
        }
    }

    /// Goes one level deeper, or returns an error at the place that would be too deep.
    pub(super) fn deeper(&mut self, place: usize) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth <= self.nesting {
            return Ok(());
        }
        Err(Diagnostic::error(
            Span::new(place, place + 1),
            format!("the pattern nests more than {} levels deep", self.nesting),
        )
        .with_help("flatten the pattern, or raise the limit `nesting`")
        .because(Cause::Limit))
    }

    /// Undoes [`Self::deeper`].
    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    /// Skips a white space character or a comment in extended mode, and returns whether there was one.
    pub(super) fn skip_extended(&mut self) -> bool {
        match self.peek() {
            Some(c) if self.flags.extended && c.is_whitespace() => {
                self.next();
                true
            }
            Some('#') if self.flags.extended => {
                while self.next().is_some_and(|c| c != '\n') {}
                true
            }
            _ => false,
        }
    }

    fn skip_all_extended(&mut self) {
        while self.skip_extended() {}
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.pattern[self.at..].chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, c: char) -> bool {
        self.peek() == Some(c) && self.next().is_some()
    }

    pub(super) fn eat_text(&mut self, text: &str) -> bool {
        let found = self.pattern[self.at..].starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn since(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }
}

/// Returns Python's `$`: the end, or a position before a final line feed.
fn before_last_line_feed(span: Span) -> Kind {
    let part = |kind| Ast::new(kind, span);
    let line_feed = Kind::Repeat { body: Box::new(part(Kind::Char('\n'))), min: 0, max: Some(1) };
    let rest = Kind::Concat(vec![part(line_feed), part(Kind::Place(Place::TextEnd))]);
    Kind::Look(Look { ahead: true, negated: false }, Box::new(part(rest)))
}

/// The construct that an opening parenthesis began.
enum Opened {
    /// Flags or a comment, which have no body.
    Nothing,
    Group,
    Look(Look),
}

pub(super) const BACK_REFERENCE: &str = "back-references are not regular, and no automaton can follow them";
pub(super) const BACK_REFERENCE_HELP: &str =
    "repeat the group's pattern, or list the possible texts as alternatives";
