//! Parses tokens into a [`Source`].
//!
//! This is a recursive descent parser with one depth counter, and a source that is too deep is an error with its place.
//! After an error the parser continues with the next definition, so that one pass reports all errors.

mod atom;
mod head;
mod value;

use std::collections::BTreeMap;

use maskwright_automata::must_stop;
use maskwright_grammar::{Cause, Diagnostic, Span};

use super::Options;
use super::ast::{Alternation, Alternative, Atom, Document, Item, Settings, Sort, Source};
use super::lex::{Kind, Token};
use super::named::{self, Origin};
use crate::notation::remarks::Remarks;
use crate::stopped::stopped;

/// Reads a source. On failure it returns all errors, in the order of their places.
pub fn parse(source: &str, options: &Options) -> Result<Source, Vec<Diagnostic>> {
    let limits = &options.limits;
    let mut errors = Remarks::default();
    let (whole, places) = named::whole(source, &options.grammars);
    if whole.len() > limits.source_bytes {
        let message =
            format!("the grammar has {} bytes, more than the limit of {}", whole.len(), limits.source_bytes);
        let remark = Diagnostic::error(Span::at(limits.source_bytes.min(source.len())), message);
        return Err(vec![
            remark.with_help("make it smaller, or raise the limit `source_bytes`").because(Cause::Limit),
        ]);
    }
    let tokens = named::tokens(&whole, Span::new(0, source.len()), &mut errors);
    let mut parser = Parser {
        source: &whole,
        tokens,
        at: 0,
        end: source.len(),
        depth: 0,
        definitions: 0,
        options,
        errors,
        documents: Vec::new(),
        places,
        called: BTreeMap::new(),
        origins: Vec::new(),
    };
    let document = parser.document(false);
    parser.documents.push(document);
    if parser.errors.is_empty() {
        Ok(Source { documents: parser.documents, origins: parser.origins })
    } else {
        Err(named::in_source(parser.errors.into_vec(), &parser.origins))
    }
}

/// An error that has been reported; the rest of this definition cannot be read.
struct Stop;

type Read<T> = Result<T, Stop>;

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    /// The end of the text to which the tokens belong.
    end: usize,
    /// The number of open groups, complements, conditions and documents.
    depth: usize,
    /// The number of definitions read, in all documents.
    definitions: usize,
    options: &'a Options,
    errors: Remarks,
    /// Finished nested documents.
    documents: Vec<Document>,
    /// The places of the Lark grammars that can be called.
    places: BTreeMap<Box<str>, Span>,
    /// The grammars that were called: the index of the document, or `None` while it is being read.
    called: BTreeMap<Box<str>, Option<usize>>,
    origins: Vec<Origin>,
}

impl Parser<'_> {
    /// Reads definitions and directives, up to the end or, in a nested document, up to its closing brace.
    fn document(&mut self, is_nested: bool) -> Document {
        let settings = Settings { ignored_first: self.options.ignored_first, ..Settings::default() };
        let mut document = Document { settings, ..Document::default() };
        let start = self.here().start;
        loop {
            self.skip_newlines();
            if self.peek().is_none() || (is_nested && self.is_sign("}")) {
                break;
            }
            if must_stop() {
                self.errors.push(stopped(self.here().start));
                self.at = self.tokens.len();
                break;
            }
            if self.definitions >= self.options.limits.definitions {
                let message =
                    format!("the grammar has more than {} definitions", self.options.limits.definitions);
                let _ = self.fail::<()>(
                    self.here(),
                    message,
                    "make it smaller, or raise the limit `definitions`",
                );
                self.at = self.tokens.len();
                break;
            }
            if self.entry(&mut document).is_err() {
                self.recover(is_nested);
            }
        }
        document.span = Span::new(start, self.here().start.max(start));
        document
    }

    /// Skips to the next line on which an entry begins. An error in a nested document ends the reading, because its
    /// closing brace cannot be found anymore.
    fn recover(&mut self, is_nested: bool) {
        if is_nested {
            self.at = self.tokens.len();
        }
        while self.at < self.tokens.len() {
            let is_newline = self.tokens[self.at].kind == Kind::Newline;
            self.at += 1;
            if is_newline && self.begins_entry() {
                break;
            }
        }
    }

    /// Reads alternatives. Inside parentheses line breaks have no meaning; outside, a line break without a `|` after it
    /// ends the alternation.
    fn alternation(&mut self, is_inside: bool) -> Read<Alternation> {
        let start = self.here().start;
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.alternative(is_inside)?);
            if !self.bar() {
                break;
            }
        }
        Ok(Alternation { alternatives, span: Span::new(start, self.end_before().max(start)) })
    }

    /// Reads a `|`, on this line or at the start of the next.
    fn bar(&mut self) -> bool {
        let before = self.at;
        self.skip_newlines();
        if !self.eat("|") {
            self.at = before;
            return false;
        }
        self.skip_newlines_within();
        true
    }

    fn alternative(&mut self, is_inside: bool) -> Read<Alternative> {
        let start = self.here().start;
        let mut conjuncts = vec![self.sequence(is_inside)?];
        while self.eat("&") {
            self.skip_newlines();
            conjuncts.push(self.sequence(is_inside)?);
        }
        if self.eat("->") {
            // An alias names a branch of Lark's tree.
            self.expect_name()?;
        }
        let condition = match self.peek() {
            Some(Kind::Directive) if self.text(self.here()) == "%if" => {
                let place = self.here();
                self.at += 1;
                let condition = self.condition()?;
                Some((condition, Span::new(place.start, self.end_before())))
            }
            _ => None,
        };
        Ok(Alternative { conjuncts, condition, span: Span::new(start, self.end_before().max(start)) })
    }

    fn sequence(&mut self, is_inside: bool) -> Read<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            if is_inside {
                self.skip_newlines_within();
            }
            if must_stop() {
                self.errors.push(stopped(self.here().start));
                self.at = self.tokens.len();
                return Err(Stop);
            }
            match self.peek() {
                None | Some(Kind::Newline | Kind::Sign("|" | "&" | "->" | ")" | "]" | "}" | ",")) => break,
                Some(Kind::Directive) if self.text(self.here()) == "%if" => break,
                _ => items.push(self.item()?),
            }
        }
        Ok(items)
    }

    /// Skips line breaks that have no meaning: in a group, after a `|` and after the colon. They do have a meaning if a
    /// definition or a directive begins after them.
    fn skip_newlines_within(&mut self) {
        let before = self.at;
        self.skip_newlines();
        if self.at > before && self.begins_entry() {
            self.at = before;
        }
    }

    /// Checks whether a definition or a directive begins here.
    fn begins_entry(&self) -> bool {
        match self.peek() {
            Some(Kind::Directive) => !matches!(self.text(self.here()), "%json" | "%regex" | "%lark" | "%if"),
            _ => self.begins_definition(),
        }
    }

    /// Checks whether the part of a definition before its colon is here. The lookahead is bounded.
    fn begins_definition(&self) -> bool {
        const MAX_LOOKAHEAD: usize = 64;
        let mut signs = (0..MAX_LOOKAHEAD)
            .map_while(|ahead| self.peek_at(ahead))
            .skip_while(|kind| matches!(kind, Kind::Sign("?" | "!")));
        if signs.next() != Some(&Kind::Name) {
            return false;
        }
        let mut inside = false;
        for kind in signs {
            match kind {
                Kind::Sign(":") if !inside => return true,
                Kind::Newline => return false,
                Kind::Sign("{" | "[") => inside = true,
                Kind::Sign("}" | "]") => inside = false,
                _ if inside => {}
                // A parameter, and a priority.
                Kind::Sign("::" | ".") | Kind::Name | Kind::Number => {}
                _ => return false,
            }
        }
        false
    }

    /// Reads something one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= self.options.limits.depth {
            let message = format!("this is nested more than {} levels deep", self.options.limits.depth);
            return self.fail(
                self.here(),
                message,
                "give inner parts names of their own, as rules or terminals, or raise the limit `depth`",
            );
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads a required sign.
    fn expect(&mut self, sign: &'static str, why: &str) -> Read<()> {
        if self.eat(sign) {
            return Ok(());
        }
        self.unexpected(&format!("`{sign}`{why}"))
    }

    fn expect_name(&mut self) -> Read<Box<str>> {
        match self.peek() {
            Some(Kind::Name) => {
                let name = self.text(self.here()).into();
                self.at += 1;
                Ok(name)
            }
            _ => self.unexpected("a name"),
        }
    }

    /// Reports an error about the next token.
    fn unexpected<T>(&mut self, wanted: &str) -> Read<T> {
        let place = self.here();
        let found = match self.peek() {
            // Unreadable text was already reported.
            Some(Kind::Stray) => return Err(Stop),
            None => "the end of the grammar".to_owned(),
            Some(Kind::Newline) => "the end of the line".to_owned(),
            Some(Kind::Json) => "JSON".to_owned(),
            Some(Kind::String { .. }) => "a string".to_owned(),
            Some(Kind::Regex { .. }) => "a pattern".to_owned(),
            Some(_) => format!("`{}`", self.text(place)),
        };
        self.fail(place, format!("expected {wanted}, found {found}"), "see docs/lark.md for the notation")
    }

    fn fail<T>(&mut self, place: Span, message: impl Into<String>, help: impl Into<String>) -> Read<T> {
        self.errors.push(Diagnostic::error(place, message).with_help(help));
        Err(Stop)
    }

    fn skip_newlines(&mut self) {
        while self.peek() == Some(&Kind::Newline) {
            self.at += 1;
        }
    }

    fn eat(&mut self, sign: &'static str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn is_sign(&self, sign: &'static str) -> bool {
        self.peek() == Some(&Kind::Sign(sign))
    }

    fn peek(&self) -> Option<&Kind> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&Kind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    /// Returns the place of the next token.
    fn here(&self) -> Span {
        self.tokens.get(self.at).map_or(Span::at(self.end), |token| token.span)
    }

    /// Returns the end of the previous token.
    fn end_before(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.span.end)
    }

    fn text(&self, span: Span) -> &str {
        &self.source[span.start..span.end]
    }
}

/// Returns the sort of a definition, from the first letter of its name.
fn sort_of(name: &str) -> Sort {
    match name.trim_start_matches('_').chars().next() {
        Some(c) if c.is_ascii_uppercase() => Sort::Terminal,
        _ => Sort::Rule,
    }
}

/// Returns an item without repetition.
fn once(atom: Atom, span: Span) -> Item {
    Item { atom, span, repeat: None }
}

/// Returns a body of one item.
fn body_of(item: Item) -> Alternation {
    let span = item.span;
    let alternative = Alternative { conjuncts: vec![vec![item]], condition: None, span };
    Alternation { alternatives: vec![alternative], span }
}
