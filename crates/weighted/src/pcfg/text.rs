//! Reads the text form.

use maskwright_frontend::regex;
use maskwright_grammar::{Diagnostic, Span};

use super::{Draft, DraftRule, DraftSymbol, Options};
use crate::terminal::Pattern;

/// Reads rules. After an error, reading continues with the next rule, so that all errors are reported at once.
pub(super) fn read(source: &str, options: &Options) -> Result<Draft, Vec<Diagnostic>> {
    if source.len() > options.source_bytes {
        let message = format!("the grammar has more than {} bytes", options.source_bytes);
        return Err(vec![Diagnostic::error(Span::at(0), message).with_help("raise `source_bytes`")]);
    }
    let mut reader =
        Reader { source, at: 0, options, draft: Draft::default(), symbols: 0, errors: Vec::new() };
    reader.rules();
    if reader.errors.is_empty() { Ok(reader.draft) } else { Err(reader.errors) }
}

/// The greatest number of reported errors; with more, the source is probably not a grammar.
const MOST_ERRORS: usize = 20;

struct Reader<'a> {
    source: &'a str,
    at: usize,
    options: &'a Options,
    draft: Draft,
    symbols: usize,
    errors: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn rules(&mut self) {
        loop {
            self.skip_lines();
            if self.rest().is_empty() || self.errors.len() >= MOST_ERRORS {
                return;
            }
            if let Err(error) = self.rule() {
                self.errors.push(error);
                self.skip_rule();
            }
        }
    }

    /// Reads `Left -> alternative | alternative …`.
    fn rule(&mut self) -> Result<(), Diagnostic> {
        let start = self.at;
        let Some(left) = self.name() else {
            let message = "a rule begins with the name of its symbol";
            return Err(self.here(message).with_help("write it like this: S -> NP VP [0.7] | VP [0.3]"));
        };
        let left_span = Span::new(start, self.at);
        self.skip_spaces();
        if !["->", "→", "::="].iter().any(|arrow| self.take(arrow)) {
            return Err(self.here(format!("an arrow `->` should follow the name `{left}`")));
        }
        loop {
            let alternative = self.alternative(&left, left_span)?;
            self.draft.rules.push(alternative);
            if !self.bar() {
                break;
            }
        }
        match self.peek() {
            None | Some('\n') => Ok(()),
            Some(_) => Err(self.here("a new rule begins on a new line")),
        }
    }

    /// Reads a bar, which may be on the next line.
    fn bar(&mut self) -> bool {
        let start = self.at;
        self.skip_spaces();
        if self.take("|") {
            return true;
        }
        let end = self.at;
        self.skip_lines();
        if self.take("|") {
            return true;
        }
        self.at = if self.rest().is_empty() { self.at } else { end.max(start) };
        false
    }

    fn alternative(&mut self, left: &str, left_span: Span) -> Result<DraftRule, Diagnostic> {
        self.skip_spaces();
        let start = self.at;
        let mut right = Vec::new();
        let mut empty = false;
        let mut probability = None;
        let mut end = start;
        loop {
            self.skip_spaces();
            match self.peek() {
                None | Some('\n' | '|') => break,
                Some('[') => {
                    probability = Some(self.probability()?);
                    end = self.at;
                    break;
                }
                Some('ε') => {
                    self.take("ε");
                    empty = true;
                }
                Some(_) => match self.symbol()? {
                    (DraftSymbol::Literal(bytes), _) if bytes.is_empty() => empty = true,
                    symbol => right.push(symbol),
                },
            }
            end = self.at;
        }
        let span = Span::new(start, end);
        if right.is_empty() && !empty {
            let error = Diagnostic::error(span, format!("an alternative of `{left}` is empty"));
            return Err(error.with_help("write ε if it may be nothing"));
        }
        self.symbols += right.len() + 1;
        if self.symbols > self.options.symbols {
            let error =
                Diagnostic::error(span, format!("the rules have more than {} symbols", self.options.symbols));
            return Err(error.with_help("raise `symbols`, or split the grammar"));
        }
        Ok(DraftRule { left: left.into(), left_span, right, probability, span })
    }

    fn symbol(&mut self) -> Result<(DraftSymbol, Span), Diagnostic> {
        let start = self.at;
        let symbol = match self.peek() {
            Some(quote @ ('"' | '\'')) => DraftSymbol::Literal(self.literal(quote)?),
            Some('/') => DraftSymbol::Pattern(self.pattern()?),
            _ => {
                let name = self.name().ok_or_else(|| self.strange())?;
                DraftSymbol::Name { name: name.into(), lax: false }
            }
        };
        Ok((symbol, Span::new(start, self.at)))
    }

    fn literal(&mut self, quote: char) -> Result<Box<[u8]>, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let at = self.at;
            let Some(c) = self.next().filter(|c| *c != '\n') else {
                let error = Diagnostic::error(Span::new(start, at), "the literal does not end on its line");
                return Err(error.with_help(format!("close it with {quote}, or write \\n for a line break")));
            };
            match c {
                _ if c == quote => return Ok(text.into_bytes().into()),
                '\\' => text.push(self.escape(at)?),
                _ => text.push(c),
            }
        }
    }

    fn escape(&mut self, start: usize) -> Result<char, Diagnostic> {
        let wrong = |reader: &Self, message: &str| Diagnostic::error(Span::new(start, reader.at), message);
        match self.next() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some(c @ ('\\' | '"' | '\'' | '/')) => Ok(c),
            Some('u') if self.take("{") => {
                let digits: String =
                    self.rest().chars().take_while(char::is_ascii_hexdigit).take(7).collect();
                self.at += digits.len();
                let known = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                match known {
                    Some(c) if self.take("}") => Ok(c),
                    _ => Err(wrong(self, "this is no character").with_help("write it like this: \\u{e9}")),
                }
            }
            _ => Err(wrong(self, "this escape is not known")
                .with_help("there are \\n \\t \\r \\\\ \\\" \\' and \\u{…}")),
        }
    }

    fn pattern(&mut self) -> Result<Pattern, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut source = String::new();
        loop {
            let at = self.at;
            match self.next() {
                None | Some('\n') => {
                    let error =
                        Diagnostic::error(Span::new(start, at), "the pattern does not end on its line");
                    return Err(error.with_help("close it with /"));
                }
                Some('/') => break,
                Some('\\') => match self.next() {
                    Some('/') => source.push('/'),
                    Some(c) => source.extend(['\\', c]),
                    None => source.push('\\'),
                },
                Some(c) => source.push(c),
            }
        }
        let span = Span::new(start, self.at);
        let dfa = regex::automaton(&source, &regex::Options::default(), &self.options.patterns).map_err(
            |mut error| {
                // An escaped slash is one byte longer in the source, so the place may be slightly too early.
                error.span = Span::new(span.start + 1 + error.span.start, span.start + 1 + error.span.end);
                error
            },
        )?;
        if dfa.is_empty() {
            return Err(Diagnostic::error(span, "nothing matches this pattern"));
        }
        Ok(Pattern::new(&source, dfa))
    }

    /// Reads `[0.7]` or `[1/3]`.
    fn probability(&mut self) -> Result<f64, Diagnostic> {
        let start = self.at;
        let rest = self.rest();
        // Only a part of the line is searched: with thousands of alternatives on it, the time would be quadratic in its
        // length.
        let stop = rest.find([']', '\n']).unwrap_or(rest.len());
        if !rest[stop..].starts_with(']') {
            let span = Span::new(start, start + stop);
            return Err(Diagnostic::error(span, "the probability is not closed").with_help("close it with ]"));
        }
        let close = stop;
        let inside = rest[1..close].trim().to_owned();
        self.at += close + 1;
        let span = Span::new(start, self.at);
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let value = match inside.split_once('/') {
            Some((above, below)) => number(above).zip(number(below)).map(|(above, below)| above / below),
            None => number(&inside),
        };
        match value {
            None => Err(Diagnostic::error(span, format!("`{inside}` is no probability")).with_help(
                "write a number like [0.25] or [1/4]; a class of characters goes between slashes, /[a-z]/",
            )),
            Some(value) if !value.is_finite() => {
                Err(Diagnostic::error(span, format!("the probability {inside} is no number")))
            }
            Some(value) if value < 0.0 => {
                Err(Diagnostic::error(span, format!("the probability {inside} is negative"))
                    .with_help("write a number between 0 and 1"))
            }
            Some(value) => Ok(value),
        }
    }

    fn name(&mut self) -> Option<String> {
        let rest = self.rest();
        let mut end = 0;
        for (at, c) in rest.char_indices() {
            let inside = c.is_alphanumeric() && c != 'ε'
                || c == '_'
                || (c == '-' && at > 0 && !rest[at..].starts_with("->"));
            if !inside {
                break;
            }
            end = at + c.len_utf8();
        }
        let name = rest[..end].to_owned();
        self.at += end;
        (end > 0).then_some(name)
    }

    fn strange(&self) -> Diagnostic {
        let c = self.peek().unwrap_or(' ');
        let error = Diagnostic::error(
            Span::new(self.at, self.at + c.len_utf8()),
            format!("`{c}` has no meaning here"),
        );
        error.with_help(format!("write \"{c}\" for the character itself"))
    }

    fn here(&self, message: impl Into<String>) -> Diagnostic {
        let width = self.peek().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        Diagnostic::error(Span::new(self.at, self.at + width), message)
    }

    /// Skips to the next line that begins a rule, after an error.
    fn skip_rule(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            let line = self.rest().trim_start_matches([' ', '\t', '\r']);
            if self.rest().is_empty() || !line.starts_with('|') {
                return;
            }
        }
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
        if self.rest().starts_with('#') {
            let rest = self.rest();
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn skip_lines(&mut self) {
        loop {
            self.skip_spaces();
            if !self.take("\n") {
                return;
            }
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let there = self.rest().starts_with(text);
        if there {
            self.at += text.len();
        }
        there
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }
}
