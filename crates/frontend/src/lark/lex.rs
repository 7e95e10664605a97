//! Splits text into tokens.
//!
//! Strings, patterns, and the JSON after `%json`, `%regex`, `%llguidance` and `%grammar_options` are single tokens.
//! Line breaks are tokens as well, because they end a definition. Unreadable text is reported and left out.

use maskwright_automata::must_stop;
use maskwright_grammar::{Diagnostic, Span};

use crate::notation::{
    escape::{self, Escape, show},
    remarks::Remarks,
    tokens,
};
use crate::stopped::stopped;

/// The maximum length of a name in bytes. Names are repeated in messages and tables.
const LONGEST_NAME: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The name of a rule or of a terminal, or `_`.
    Name,
    /// A number, including its sign and decimal point.
    Number,
    /// `"text"`, possibly followed by an `i`.
    String { text: Box<str>, ignore_case: bool },
    /// `/pattern/flags`; the places of both.
    Regex { pattern: Span, flags: Span },
    /// `<name>` or `<[numbers]>`.
    Special,
    /// `@name`: another grammar.
    Reference,
    /// `%word`.
    Directive,
    /// The JSON value after a directive.
    Json,
    /// One or two characters of punctuation.
    Sign(&'static str),
    /// The end of a line.
    Newline,
    /// Unreadable text, already reported.
    Stray,
}

/// Longer signs come first.
const SIGNS: [&str; 21] = [
    "->", "::", "..", ":", "=", ",", ".", "(", ")", "{", "}", "[", "]", "~", "|", "&", "+", "*", "?", "!",
    "@",
];

/// The directives that are followed by JSON.
const WITH_JSON: [&str; 4] = ["%json", "%regex", "%llguidance", "%grammar_options"];

/// Splits a source into tokens.
pub(super) fn lex(source: &str, errors: &mut Remarks) -> Vec<Token> {
    let mut lexer = Lexer { source, at: 0, errors };
    // Some editors insert a byte order mark.
    lexer.eat("\u{FEFF}");
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(c) = lexer.skip_blanks() {
        let start = lexer.at;
        if must_stop() {
            lexer.errors.push(stopped(start));
            break;
        }
        let kind = lexer.token(c);
        let span = Span::new(start, lexer.at);
        let takes_json = kind == Kind::Directive && WITH_JSON.contains(&&source[start..lexer.at]);
        tokens.push(Token { kind, span });
        if takes_json {
            tokens.push(lexer.json(span));
        }
    }
    tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    errors: &'a mut Remarks,
}

impl Lexer<'_> {
    fn token(&mut self, first: char) -> Kind {
        match first {
            '\n' => {
                self.at += 1;
                Kind::Newline
            }
            '"' => self.string(),
            '/' => self.regex(),
            '<' => self.special(),
            '%' => self.word(1, Kind::Directive),
            '@' if self.rest()[1..].starts_with(is_name_part) => self.word(1, Kind::Reference),
            '-' | '0'..='9' if self.number() => Kind::Number,
            c if c.is_ascii_alphabetic() || c == '_' => self.name(),
            _ => match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    Kind::Sign(sign)
                }
                None => self.stray(first),
            },
        }
    }

    /// Skips to the next token and returns its first character. Line breaks are tokens.
    fn skip_blanks(&mut self) -> Option<char> {
        loop {
            match self.peek()? {
                ' ' | '\t' | '\r' | '\u{C}' => self.at += 1,
                '#' => self.skip_line(),
                '/' if self.rest().starts_with("//") => self.skip_line(),
                c => return Some(c),
            }
        }
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Reads `start` characters and the name after them.
    fn word(&mut self, start: usize, kind: Kind) -> Kind {
        self.at += start;
        self.at += self.rest().bytes().take_while(|b| is_name_part(char::from(*b))).count();
        kind
    }

    fn name(&mut self) -> Kind {
        let start = self.at;
        while let Some(c) = self.peek()
            && (is_name_part(c) || c == '-')
            && !self.rest().starts_with("->")
        {
            self.at += 1;
        }
        let name = &self.source[start..self.at];
        if name.len() > LONGEST_NAME {
            let message = format!("a name has {LONGEST_NAME} bytes at most");
            self.error(start, message, "choose a shorter name; literal text is written between quotes");
            return Kind::Stray;
        }
        let has = |test: fn(&u8) -> bool| name.bytes().any(|b| test(&b));
        if has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) {
            let (lower, upper) = (name.to_ascii_lowercase(), name.to_ascii_uppercase());
            let message = format!("`{name}` is neither the name of a rule nor that of a terminal");
            self.error(start, message, format!("write `{lower}` for a rule, or `{upper}` for a terminal"));
        }
        Kind::Name
    }

    /// Reads a number, and returns whether there is one.
    fn number(&mut self) -> bool {
        let rest = self.rest();
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let sign = usize::from(rest.starts_with('-'));
        if rest[sign..].starts_with("0x") || rest[sign..].starts_with("0X") {
            self.at += sign + 2;
            self.at += self.rest().bytes().take_while(u8::is_ascii_hexdigit).count();
            return true;
        }
        let mut len = sign + digits(&rest[sign..]);
        if len == sign {
            return false;
        }
        // Two dots are a range.
        if rest[len..].starts_with('.') && digits(&rest[len + 1..]) > 0 {
            len += 1 + digits(&rest[len + 1..]);
        }
        if rest[len..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[len + 1..].starts_with(['+', '-']));
            let exponent = digits(&rest[len + 1 + sign..]);
            len += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        self.at += len;
        true
    }

    fn string(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    self.error(
                        start,
                        "this string is not closed on its line",
                        "close it with `\"`; a line break inside is written `\\n`",
                    );
                    return Kind::Stray;
                }
                Some('"') => break,
                Some('\\') => text.extend(self.escaped_char()),
                Some(c) => {
                    self.at += c.len_utf8();
                    text.push(c);
                }
            }
        }
        self.at += 1;
        let ignore_case = self.rest().starts_with('i') && !self.rest()[1..].starts_with(is_name_part);
        self.at += usize::from(ignore_case);
        Kind::String { text: text.into(), ignore_case }
    }

    /// Reads an escape in a string. Returns `None` if it is invalid.
    fn escaped_char(&mut self) -> Option<char> {
        let start = self.at;
        if let Some(pair) = surrogate_pair(self.rest()) {
            self.at += 12;
            return Some(pair);
        }
        let letter = self.rest().chars().nth(1);
        let (result, len) = escape::read(self.rest());
        self.at += len;
        match (result, letter) {
            // Before any other character, Lark keeps the backslash, and llguidance refuses it.
            (
                Ok(Escape::Char(c)),
                Some('"' | '\\' | '/' | '\'' | 'b' | 'f' | 'n' | 'r' | 't' | 'u' | 'U' | 'x'),
            ) => Some(c),
            (Ok(_), letter) => {
                let shown = letter.map_or_else(String::new, show);
                let help = format!("write `\\\\` for a backslash; {shown} itself needs none");
                self.error(start, format!("`\\` before {shown} is no escape"), help);
                None
            }
            (Err(bad), _) => {
                self.error(start, bad.message, bad.help);
                None
            }
        }
    }

    fn regex(&mut self) -> Kind {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => break,
                Some('/') => break,
                Some('\\') => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                Some(c) => self.at += c.len_utf8(),
            }
        }
        let pattern = Span::new(start + 1, self.at);
        let first_line = self.source[pattern.start..pattern.end].find('\n');
        let is_closed = self.eat("/");
        let flags_start = self.at;
        self.at += self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let flags = Span::new(flags_start, self.at);
        let is_free = self.source[flags.start..flags.end].contains('x');
        if is_closed && (first_line.is_none() || is_free) {
            return Kind::Regex { pattern, flags };
        }
        self.at = first_line.map_or(self.at, |line| pattern.start + line);
        self.error(
            start,
            "this pattern is not closed on its line",
            "close it with `/`; a slash inside is written `\\/`; with the flag `x` it may have several lines",
        );
        Kind::Stray
    }

    fn special(&mut self) -> Kind {
        let start = self.at;
        if let Some(len) = tokens::length(self.rest()) {
            self.at += len;
            return Kind::Special;
        }
        self.at += 1;
        self.error(start, "`<` begins a token, but none follows", tokens::FORMS);
        Kind::Stray
    }

    /// Reads the JSON value that a directive needs.
    fn json(&mut self, directive: Span) -> Token {
        let blank = self.rest().bytes().take_while(u8::is_ascii_whitespace).count();
        let start = self.at + blank;
        let mut values =
            serde_json::Deserializer::from_str(&self.source[start..]).into_iter::<serde_json::Value>();
        let result = values.next();
        let end = start + values.byte_offset();
        match result {
            Some(Ok(_)) => {
                self.at = end;
                Token { kind: Kind::Json, span: Span::new(start, end) }
            }
            problem => {
                let (place, why) = match problem {
                    Some(Err(error)) => (json_place(self.source, start, &error), plain_message(&error)),
                    _ => (directive, "nothing follows".into()),
                };
                let word = &self.source[directive.start..directive.end];
                let remark = Diagnostic::error(place, format!("expected JSON after `{word}`: {why}"));
                self.errors.push(remark.with_help("write an object between braces"));
                // The rest of the source is not read, since it may be part of the broken JSON.
                self.at = self.source.len();
                Token { kind: Kind::Stray, span: directive }
            }
        }
    }

    /// Skips characters without a meaning, up to the next one that may have one.
    fn stray(&mut self, first: char) -> Kind {
        let start = self.at;
        self.at += first.len_utf8();
        while let Some(c) = self.peek()
            && !c.is_ascii_whitespace()
            && !c.is_ascii_alphanumeric()
            && !"\"/<%#_".contains(c)
            && !SIGNS.iter().any(|sign| sign.starts_with(c))
        {
            self.at += c.len_utf8();
        }
        let message = match self.source[start..self.at].chars().nth(1) {
            None => format!("unexpected {}", show(first)),
            Some(_) => format!("unexpected characters, beginning with {}", show(first)),
        };
        self.error(start, message, stray_help(first));
        Kind::Stray
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Reports an error for the text from `start` to the current position.
    fn error(&mut self, start: usize, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(Diagnostic::error(Span::new(start, self.at), message).with_help(help));
    }
}

/// Decodes two surrogates such as `\uD83D\uDE00` to one character.
fn surrogate_pair(text: &str) -> Option<char> {
    let half = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let pair = [half(text)?, half(text.get(6..)?)?];
    if !(0xD800..0xDC00).contains(&pair[0]) {
        return None;
    }
    char::decode_utf16(pair).next()?.ok()
}

/// Returns the place where the JSON reader stopped.
fn json_place(source: &str, start: usize, error: &serde_json::Error) -> Span {
    let text = &source[start..];
    let line: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    Span::at((start + line + error.column().saturating_sub(1)).min(source.len()))
}

fn plain_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message).to_owned()
}

/// Returns a hint for characters that other notations use.
fn stray_help(c: char) -> &'static str {
    match c {
        ';' => "leave it out: a definition ends with its line",
        '\'' | '“' | '”' | '„' | '‘' | '’' | '«' | '»' | '`' => {
            "write a text between straight quotes, `\"…\"`"
        }
        '>' => "a token is written `<name>`",
        '-' => "a name begins with a letter or `_`",
        '\\' => "escapes are only allowed inside strings and patterns",
        _ => "write literal text between quotes",
    }
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
