//! Splits text into tokens.
//!
//! Literals, classes and `{n,m}` are single tokens, read here with their escapes; blanks and comments are dropped. A
//! name followed by `::=` is a [`Kind::Head`]: this tells the parser, which reads one token at a time, where a rule
//! ends.
//!
//! Unreadable text is reported and leaves a token in its place, so that the parser does not report it again.

use maskwright_automata::must_stop;
use maskwright_grammar::{CharSet, Diagnostic, Grammar, Span, TokenSet};

use super::ast::{Attributes, Dispatch};
use super::attributes;
use super::macros::{self, Argument, Meaning, Value};
use super::{Limits, Notation};
use crate::notation::{
    escape::{self, Escape, show},
    remarks::Remarks,
    tokens,
};
use crate::stopped::stopped;

/// The maximum length of a name in bytes. Names are repeated in messages and tables.
const LONGEST_NAME: usize = 1000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name that is being defined, together with its `::=`.
    Head,
    /// `[lazy, max_tokens=3]` between a name and its `::=`.
    Attributes(Box<Attributes>),
    /// A name that is used.
    Name,
    /// `::=` after something other than a name.
    Define,
    Literal(Box<str>),
    Class(CharSet),
    Any,
    /// `<name>` and similar forms in GBNF, and `Token(…)` in EBNF.
    Token(TokenSet),
    /// `TagDispatch(…)`.
    Dispatch(Dispatch),
    /// `Regex(…)`.
    Quoted(Grammar),
    Open,
    Close,
    Bar,
    Repeat {
        min: u32,
        max: Option<u32>,
    },
    /// Unreadable text, already reported.
    Stray,
}

/// Splits a source into tokens.
pub(super) fn lex(source: &str, notation: Notation, limits: &Limits, errors: &mut Remarks) -> Vec<Token> {
    let mut lexer = Lexer { source, at: 0, notation, limits, errors, defined: [None; macros::NAMES.len()] };
    // Some editors insert a byte order mark.
    lexer.eat("\u{FEFF}");
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(c) = lexer.skip_blanks() {
        let start = lexer.at;
        if must_stop() {
            lexer.errors.push(stopped(start));
            break;
        }
        let is_behind_name = tokens.last().is_some_and(|last| last.kind == Kind::Name);
        if c == '[' && is_behind_name && lexer.has_attributes() {
            let attributes = Box::new(lexer.attributes());
            if let Some(name) = tokens.last_mut() {
                name.kind = Kind::Head;
            }
            tokens.push(Token { kind: Kind::Attributes(attributes), span: Span::new(start, lexer.at) });
            // The `::=` is present; otherwise this would be a class.
            lexer.skip_blanks();
            lexer.eat("::=");
            continue;
        }
        let kind = lexer.token(c);
        match (kind, tokens.last_mut()) {
            (Kind::Define, Some(last)) if last.kind == Kind::Name => last.kind = Kind::Head,
            (kind, _) => tokens.push(Token { kind, span: Span::new(start, lexer.at) }),
        }
    }
    tokens
}

/// Checks whether a text, read as GBNF, contains tokens.
pub(crate) fn has_tokens(source: &str) -> bool {
    let tokens = lex(source, Notation::Gbnf, &Limits::default(), &mut Remarks::default());
    tokens.iter().any(|token| matches!(token.kind, Kind::Token(_)))
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    notation: Notation,
    limits: &'a Limits,
    errors: &'a mut Remarks,
    /// For each macro name, whether a rule has that name, if already known.
    defined: [Option<bool>; macros::NAMES.len()],
}

impl Lexer<'_> {
    fn token(&mut self, first: char) -> Kind {
        match first {
            '"' => self.literal(first),
            '\'' if self.notation == Notation::Ebnf => self.literal(first),
            '[' => self.class(),
            '{' => self.bounds(),
            ':' if self.eat("::=") => Kind::Define,
            c if self.notation.is_name_start(c) => self.name(),
            '<' | '!' if self.notation == Notation::Gbnf => self.special(first == '!'),
            '(' => self.single(Kind::Open),
            ')' => self.single(Kind::Close),
            '|' => self.single(Kind::Bar),
            '.' => self.single(Kind::Any),
            '*' => self.single(Kind::Repeat { min: 0, max: None }),
            '+' => self.single(Kind::Repeat { min: 1, max: None }),
            '?' => self.single(Kind::Repeat { min: 0, max: Some(1) }),
            _ => self.stray(first),
        }
    }

    /// Checks whether the bracket here contains attributes: a `::=` follows it.
    fn has_attributes(&self) -> bool {
        let rest = self.rest();
        let mut quote = None;
        for (at, c) in rest.char_indices() {
            match (c, quote) {
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                ('\n', _) => return false,
                (']', None) => {
                    return self.notation == Notation::Ebnf && rest[at + 1..].trim_start().starts_with("::=");
                }
                _ => {}
            }
        }
        false
    }

    /// Reads attributes from their `[` to their `]`. Unreadable ones are reported.
    fn attributes(&mut self) -> Attributes {
        let mut found = Attributes::default();
        let mut seen: Vec<String> = Vec::new();
        self.eat("[");
        loop {
            match self.skip_blanks() {
                None => return found,
                Some(']') => {
                    self.eat("]");
                    return found;
                }
                Some(',') => {
                    self.eat(",");
                    continue;
                }
                Some(_) => {}
            }
            let start = self.at;
            let name = self.attribute_word();
            self.skip_blanks();
            let value = if self.eat("=") { self.attribute_value() } else { None };
            let span = Span::new(start, self.at.max(start + 1));
            let wrong = if seen.contains(&name) {
                Some((format!("`{name}` is given twice"), "keep one of them".to_owned()))
            } else {
                attributes::set(&name, value.as_ref(), span, self.limits.repetition, &mut found).err()
            };
            if let Some((message, help)) = wrong {
                self.errors.push(Diagnostic::error(span, message).with_help(help));
                // The rest of the attribute is skipped.
                self.at += self.rest().find([',', ']']).unwrap_or(self.rest().len());
            }
            seen.push(name);
        }
    }

    fn attribute_word(&mut self) -> String {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        let word = rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].to_owned();
        self.at += word.len();
        word
    }

    fn attribute_value(&mut self) -> Option<attributes::Value> {
        match self.skip_blanks()? {
            quote @ ('"' | '\'') => match self.literal(quote) {
                Kind::Literal(text) => Some(attributes::Value::Text(text)),
                _ => None,
            },
            _ => Some(attributes::Value::Word(self.attribute_word())),
        }
    }

    fn single(&mut self, kind: Kind) -> Kind {
        self.at += 1;
        kind
    }

    /// Skips to the next token and returns its first character.
    fn skip_blanks(&mut self) -> Option<char> {
        loop {
            match self.peek()? {
                ' ' | '\t' | '\r' | '\n' => self.at += 1,
                '#' => self.at += self.line_left(),
                c => return Some(c),
            }
        }
    }

    /// Reads a name. A dot is part of it only between two of its other characters, and never in GBNF.
    fn name(&mut self) -> Kind {
        let start = self.at;
        let has_dots = self.notation == Notation::Ebnf;
        while let Some(c) = self.peek() {
            let inner_dot = has_dots && c == '.' && self.rest()[1..].starts_with(is_name_part);
            if !is_name_part(c) && !inner_dot {
                break;
            }
            self.at += c.len_utf8();
        }
        if self.at - start > LONGEST_NAME {
            let message = format!("a name has {LONGEST_NAME} bytes at most");
            self.error(start, message).help("choose a shorter name; literal text is written between quotes");
            return Kind::Stray;
        }
        if self.notation == Notation::Ebnf && self.rest().starts_with('(') && self.is_macro(start) {
            return self.call(start);
        }
        Kind::Name
    }

    /// Checks whether the name from `start` to here is that of a macro, and not of a rule.
    fn is_macro(&mut self, start: usize) -> bool {
        let name = &self.source[start..self.at];
        let Some(number) = macros::NAMES.iter().position(|known| *known == name) else { return false };
        let is_defined = *self.defined[number].get_or_insert_with(|| {
            self.source.match_indices(name).any(|(at, _)| {
                let is_whole = !self.source[..at].ends_with(is_name_part);
                is_whole && self.source[at + name.len()..].trim_start().starts_with("::=")
            })
        });
        !is_defined
    }

    /// Reads the arguments of a macro, after its name.
    fn call(&mut self, start: usize) -> Kind {
        let name = self.source[start..self.at].to_owned();
        self.at += 1;
        let Some(arguments) = self.arguments(start, 0) else { return Kind::Stray };
        match macros::read(&name, arguments, Span::new(start, self.at)) {
            Ok(Meaning::Token(set)) => Kind::Token(set),
            Ok(Meaning::Dispatch(dispatch)) => Kind::Dispatch(dispatch),
            Ok(Meaning::Quoted(grammar)) => Kind::Quoted(grammar),
            Err((span, message, help)) => {
                self.errors.push(Diagnostic::error(span, message).with_help(help));
                Kind::Stray
            }
        }
    }

    /// Reads arguments up to the closing parenthesis. Returns `None` after reporting an error. Lists occur only
    /// directly in a call, and contain only texts and words.
    fn arguments(&mut self, open: usize, depth: usize) -> Option<Vec<Argument>> {
        let mut found = Vec::new();
        loop {
            if self.skip_blanks() == Some(')') {
                self.at += 1;
                return Some(found);
            }
            let start = self.at;
            let argument = self.argument(start, depth)?;
            found.push(Argument { span: Span::new(start, self.at), ..argument });
            match self.skip_blanks() {
                Some(',') => self.at += 1,
                Some(')') => {}
                _ => {
                    self.at = self.at.max(open + 1);
                    self.error(open, "these arguments are not closed")
                        .help("separate them by `,` and close them with `)`");
                    return None;
                }
            }
        }
    }

    fn argument(&mut self, start: usize, depth: usize) -> Option<Argument> {
        let span = Span::at(start);
        let of = |value: Value| Some(Argument { name: None, value, span });
        match self.peek() {
            Some(quote @ ('"' | '\'')) => match self.literal(quote) {
                Kind::Literal(text) => of(Value::Text(text)),
                _ => None,
            },
            Some('(') if depth == 0 => {
                self.at += 1;
                of(Value::List(self.arguments(start, 1)?))
            }
            Some(c) if self.notation.is_name_start(c) => {
                let len =
                    self.rest().find(|c: char| !is_name_part(c) && c != '.').unwrap_or(self.rest().len());
                let word = self.rest()[..len].to_owned();
                self.at += len;
                if depth == 0 && self.skip_blanks() == Some('=') {
                    self.at += 1;
                    self.skip_blanks();
                    let Argument { value, .. } = self.argument(self.at, depth)?;
                    return Some(Argument { name: Some(word.into()), value, span });
                }
                of(Value::Word(word.into()))
            }
            _ => {
                self.at = (self.at + 1).min(self.source.len());
                while !self.source.is_char_boundary(self.at) {
                    self.at += 1;
                }
                self.error(start, "an argument was expected here")
                    .help("write a text, a number, the name of a rule, or a list `(…, …)`");
                None
            }
        }
    }

    fn literal(&mut self, quote: char) -> Kind {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('\n') if self.notation == Notation::Gbnf => self.line_break(&mut text),
                None | Some('\n') => {
                    self.not_closed(start, "literal", quote);
                    break;
                }
                Some(c) if c == quote => {
                    self.at += 1;
                    break;
                }
                Some('\\') => text.extend(self.escaped_char()),
                Some(c) => {
                    self.at += c.len_utf8();
                    text.push(c);
                }
            }
        }
        Kind::Literal(text.into())
    }

    /// Reads a line break of the source that belongs to a literal.
    fn line_break(&mut self, text: &mut String) {
        self.at += 1;
        text.push('\n');
    }

    fn not_closed(&mut self, start: usize, what: &str, close: char) {
        let (line, help) = match self.notation {
            Notation::Ebnf => (" on its line", "; a line break inside is written `\\n`"),
            Notation::Gbnf => ("", ""),
        };
        let end = self.at;
        if self.notation == Notation::Gbnf {
            // The literal continued to the end of the source; the error is reported at its start.
            self.at = start + 1;
        }
        let complaint = self.error(start, format!("this {what} is not closed{line}"));
        complaint.help(format!("close it with `{close}`{help}"));
        self.at = end;
    }

    /// Reads an escape in a literal. Returns `None` if it is invalid.
    fn escaped_char(&mut self) -> Option<char> {
        let start = self.at;
        match self.escape()? {
            Escape::Char(c) => Some(c),
            Escape::Set(_) => {
                let shown = self.source[start..self.at].to_owned();
                self.error(
                    start,
                    format!("`{shown}` is a character class, which cannot be used in a literal"),
                )
                .help(format!("end the literal here and write the class `[{shown}]`"));
                None
            }
        }
    }

    /// Reads an escape. Returns `None` if it is invalid.
    fn escape(&mut self) -> Option<Escape> {
        let start = self.at;
        let (result, len) = escape::read(self.rest());
        self.at += len;
        result.map_err(|bad| self.error(start, bad.message).help(bad.help)).ok()
    }

    fn class(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let first = self.at;
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            match self.peek() {
                None => {
                    self.not_closed(start, "class", ']');
                    break;
                }
                Some('\n') if self.notation == Notation::Ebnf => {
                    self.not_closed(start, "class", ']');
                    break;
                }
                Some(']') => {
                    self.at += 1;
                    // As with XGrammar, `[^]` is any character. GBNF has no such class.
                    if self.at == first + 1 && !(negated && self.notation == Notation::Ebnf) {
                        self.empty_class(start, negated);
                    }
                    break;
                }
                Some(_) => self.class_member(&mut ranges),
            }
        }
        let set = CharSet::from_ranges(ranges);
        Kind::Class(if negated { set.complement() } else { set })
    }

    fn empty_class(&mut self, start: usize, negated: bool) {
        let help = if negated { "write `.` for any character" } else { "write `\\]` for a closing bracket" };
        self.error(start, "this class is empty").help(help);
    }

    /// Reads one character, one range or one set.
    fn class_member(&mut self, ranges: &mut Vec<(char, char)>) {
        let start = self.at;
        match self.class_char() {
            None => {}
            Some(Escape::Set(set)) => ranges.extend_from_slice(set.ranges()),
            Some(Escape::Char(low)) if self.range_follows() => self.range_end(start, low, ranges),
            Some(Escape::Char(only)) => ranges.push((only, only)),
        }
    }

    /// Checks whether a `-` follows that is not the last character of its class.
    fn range_follows(&self) -> bool {
        let mut next = self.rest().chars();
        next.next() == Some('-')
            && match next.next() {
                None | Some(']') => false,
                Some('\n') => self.notation == Notation::Gbnf,
                Some(_) => true,
            }
    }

    /// Reads the second half of a range that began at `start` with `low`.
    fn range_end(&mut self, start: usize, low: char, ranges: &mut Vec<(char, char)>) {
        let dash = self.at;
        self.at += 1;
        match self.class_char() {
            None => {}
            Some(Escape::Char(high)) if low <= high => ranges.push((low, high)),
            Some(Escape::Char(_)) => {
                let (from, to) = (&self.source[start..dash], &self.source[dash + 1..self.at]);
                let help = format!("write `{to}-{from}`; for a plain `-`, write `\\-`");
                self.error(start, "this range goes backwards").help(help);
            }
            Some(Escape::Set(_)) => {
                let help = "for a plain `-`, write `\\-`";
                self.error(start, "a range cannot end in a set of characters").help(help);
            }
        }
    }

    /// Reads a character of a class or an escape. Returns `None` if it is invalid.
    fn class_char(&mut self) -> Option<Escape> {
        match self.peek()? {
            '\\' => self.escape(),
            c => {
                self.at += c.len_utf8();
                Some(Escape::Char(c))
            }
        }
    }

    /// Reads `<name>`, `<[numbers]>`, or all other tokens: `!<…>`.
    fn special(&mut self, negated: bool) -> Kind {
        let start = self.at;
        self.at += usize::from(negated);
        let len = if self.rest().starts_with('<') { tokens::length(self.rest()) } else { None };
        let read = if let Some(len) = len {
            self.at += len;
            tokens::read(&self.source[self.at - len..self.at], negated)
        } else {
            self.at = start + 1;
            Err("a token was begun here, but none follows".into())
        };
        match read {
            Ok(set) => Kind::Token(set),
            Err(message) => {
                self.error(start, message).help(tokens::FORMS);
                Kind::Stray
            }
        }
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`.
    fn bounds(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        let len = self.rest().bytes().take_while(|b| matches!(b, b'0'..=b'9' | b',' | b' ' | b'\t')).count();
        let inner = self.rest()[..len].to_owned();
        self.at += len;
        let result = if self.eat("}") {
            read_bounds(&inner, self.limits.repetition)
        } else {
            self.skip_to_brace();
            Err(not_bounds(""))
        };
        match result {
            Ok((min, max)) => Kind::Repeat { min, max },
            Err((message, help)) => {
                self.error(start, message).help(help);
                Kind::Repeat { min: 0, max: None }
            }
        }
    }

    /// Skips the `}` of an invalid repetition, if it is near. Unclosed braces must not make the lexer search the same
    /// text repeatedly.
    fn skip_to_brace(&mut self) {
        const MAX_SKIPPED_BYTES: usize = 100;
        let near =
            self.rest().bytes().take(MAX_SKIPPED_BYTES).take_while(|b| *b != b'\n').position(|b| b == b'}');
        self.at += near.map_or(0, |at| at + 1);
    }

    /// Skips characters without a meaning, up to the next one that may have one.
    fn stray(&mut self, first: char) -> Kind {
        let start = self.at;
        self.at += first.len_utf8();
        while let Some(c) = self.peek()
            && !c.is_ascii_whitespace()
            && !starts_token(self.notation, self.rest(), c)
        {
            self.at += c.len_utf8();
        }
        let shown = &self.source[start..self.at];
        let message = match shown.chars().nth(1) {
            None => format!("unexpected {}", show(first)),
            Some(_) => format!("unexpected characters, beginning with {}", show(first)),
        };
        let help = match first {
            '\'' => "in GBNF a literal is written between double quotes, `\"…\"`",
            _ => stray_help(first),
        };
        self.error(start, message).help(help);
        Kind::Stray
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    /// Returns the number of bytes left on this line.
    fn line_left(&self) -> usize {
        self.rest().find('\n').unwrap_or(self.rest().len())
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Prepares an error for the text from `start` to the current position. Calling [`Complaint::help`] reports it.
    fn error(&mut self, start: usize, message: impl Into<String>) -> Complaint<'_> {
        let remark = Diagnostic::error(Span::new(start, self.at), message);
        Complaint { remark, errors: self.errors }
    }
}

/// An error whose help text is still missing.
struct Complaint<'a> {
    remark: Diagnostic,
    errors: &'a mut Remarks,
}

impl Complaint<'_> {
    fn help(self, help: impl Into<String>) {
        self.errors.push(self.remark.with_help(help));
    }
}

/// Reads the numbers between braces, or returns what is wrong with them and how to fix it.
fn read_bounds(inner: &str, limit: u32) -> Result<(u32, Option<u32>), (String, String)> {
    let number = |text: &str| match text.trim() {
        "" => Err(not_bounds(inner)),
        digits if !digits.bytes().all(|b| b.is_ascii_digit()) => Err(not_bounds(inner)),
        digits => match digits.parse() {
            Ok(n) if n <= limit => Ok(n),
            _ => Err(too_often(limit)),
        },
    };
    let Some((min, max)) = inner.split_once(',') else {
        let n = number(inner)?;
        return Ok((n, Some(n)));
    };
    let min = number(min)?;
    if max.trim().is_empty() {
        return Ok((min, None));
    }
    let max = number(max)?;
    if max < min {
        let message = format!("at least {min} and at most {max} times is never");
        return Err((message, format!("write `{{{max},{min}}}`")));
    }
    Ok((min, Some(max)))
}

fn not_bounds(inner: &str) -> (String, String) {
    let help = match inner.trim().strip_prefix(',') {
        Some(max) if !max.trim().is_empty() => format!("write `{{0,{}}}`", max.trim()),
        _ => "write `{n}`, `{n,}` or `{n,m}` with whole numbers".into(),
    };
    ("these braces contain no repetition".into(), help)
}

fn too_often(limit: u32) -> (String, String) {
    let message = format!("a repetition counts to {limit} at most");
    (message, "write `{n,}` for no upper bound, or raise the limit `repetition`".into())
}

/// Returns a hint for characters that other notations use.
fn stray_help(c: char) -> &'static str {
    match c {
        ':' | '=' => "a rule is written `name ::= …`; there is no lookahead `(= …)`",
        ';' | ',' => "leave it out: parts are written side by side, and the next `name ::=` ends a rule",
        '<' | '>' => "write the name of a rule without `<` and `>`; GBNF has tokens in them",
        '-' => "a name begins with a letter, a digit or `_`; there is no exclusion",
        '/' => "a comment begins with `#`; a regular expression is written with classes and repetitions",
        ']' => "a class begins with `[`; for the character itself, write `\"]\"`",
        '}' => "a repetition begins with `{`; for the character itself, write `\"}\"`",
        '“' | '”' | '„' | '‘' | '’' | '«' | '»' | '`' => {
            "write a literal between straight quotes, `\"…\"` or `'…'`"
        }
        '\\' => "escapes are only allowed inside literals and classes",
        _ => "write literal text between quotes",
    }
}

fn starts_token(notation: Notation, rest: &str, c: char) -> bool {
    notation.is_name_start(c)
        || matches!(c, '"' | '\'' | '[' | '{' | '(' | ')' | '|' | '.' | '*' | '+' | '?' | '#')
        || rest.starts_with("::=")
        || (notation == Notation::Gbnf && matches!(c, '<' | '!'))
}

impl Notation {
    fn is_name_start(self, c: char) -> bool {
        c.is_alphanumeric() || c == '_' || (c == '-' && self == Self::Gbnf)
    }
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}
