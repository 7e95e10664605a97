//! Parses tokens into a [`Document`].
//!
//! The parser keeps open groups on an explicit stack, and continues after an error, so that one pass reports all
//! errors.

use maskwright_automata::must_stop;
use maskwright_grammar::{Cause, Diagnostic, Span};

use super::{
    Limits, Notation, Options,
    ast::{Alternation, Atom, Attributes, Document, Item, Repeat, Rule, Sequence},
    lex::{Kind, Token, lex},
};
use crate::notation::remarks::Remarks;
use crate::stopped::stopped;

/// Reads a source. On failure it returns all errors, in the order of their places.
pub fn parse(source: &str, options: &Options) -> Result<Document, Vec<Diagnostic>> {
    parse_as(Notation::Ebnf, source, options)
}

/// Reads a source in either notation.
pub(crate) fn parse_as(
    notation: Notation,
    source: &str,
    options: &Options,
) -> Result<Document, Vec<Diagnostic>> {
    let mut errors = Remarks::default();
    let limits = &options.limits;
    if source.len() > limits.source_bytes {
        errors.push(too_long(source, limits));
        return Err(errors.into_vec());
    }
    let tokens = lex(source, notation, limits, &mut errors).into_iter().peekable();
    let mut parser = Parser { source, notation, tokens, limits, errors };
    let document = parser.document();
    if parser.errors.is_empty() { Ok(document) } else { Err(parser.errors.into_vec()) }
}

fn too_long(source: &str, limits: &Limits) -> Diagnostic {
    let message =
        format!("the grammar has {} bytes, more than the limit of {}", source.len(), limits.source_bytes);
    Diagnostic::error(Span::at(limits.source_bytes), message)
        .with_help("make it smaller, or raise the limit `source_bytes`")
        .because(Cause::Limit)
}

struct Parser<'a> {
    source: &'a str,
    notation: Notation,
    tokens: core::iter::Peekable<std::vec::IntoIter<Token>>,
    limits: &'a Limits,
    errors: Remarks,
}

impl Parser<'_> {
    fn document(&mut self) -> Document {
        self.before_first_rule();
        let mut rules: Vec<Rule> = Vec::new();
        while let Some(head) = self.tokens.next() {
            if must_stop() {
                self.errors.push(stopped(head.span.start));
                break;
            }
            if rules.len() >= self.limits.rules {
                let message = format!("the grammar has more than {} rules", self.limits.rules);
                self.errors.push(
                    Diagnostic::error(head.span, message)
                        .with_help("make it smaller, or raise the limit `rules`")
                        .because(Cause::Limit),
                );
                break;
            }
            let attributes = match self.tokens.next_if(|token| matches!(token.kind, Kind::Attributes(_))) {
                Some(Token { kind: Kind::Attributes(attributes), .. }) => *attributes,
                _ => Attributes::default(),
            };
            let (name, body) = (self.text(head.span), self.body(head.span));
            rules.push(Rule { name, name_span: head.span, attributes, body });
        }
        Document { rules }
    }

    /// Reports text before the first rule, once. After that, everything belongs to some rule.
    fn before_first_rule(&mut self) {
        let Some(first) = self.next_in_rule() else { return };
        while self.next_in_rule().is_some() {}
        let end = self.tokens.peek().map_or(self.source.len(), |token| token.span.start);
        if !self.errors.any_within(0, end) {
            let remark =
                Diagnostic::error(first.span, "a grammar begins with a rule, but this is not a rule");
            self.errors.push(remark.with_help("a rule is written `name ::= …`"));
        }
    }

    /// Reads the body of a rule, after `::=` and up to the next rule.
    fn body(&mut self, head: Span) -> Alternation {
        let mut outer: Vec<Group> = Vec::new();
        let mut group = Group::new(Span::at(head.end));
        while let Some(Token { kind, span }) = self.next_in_rule() {
            if must_stop() {
                self.errors.push(stopped(span.start));
                self.tokens = Vec::new().into_iter().peekable();
                outer.clear();
                break;
            }
            match kind {
                Kind::Literal(text) => group.push(Atom::Literal(text), span),
                Kind::Class(set) => group.push(Atom::Class(set), span),
                Kind::Any => group.push(Atom::Any, span),
                Kind::Token(set) => group.push(Atom::Token(set), span),
                Kind::Dispatch(dispatch) => group.push(Atom::Dispatch(dispatch), span),
                Kind::Quoted(grammar) => group.push(Atom::Quoted(grammar), span),
                Kind::Name => group.push(Atom::Rule(self.text(span)), span),
                Kind::Stray => group.push(Atom::Literal(Box::default()), span),
                Kind::Bar => group.next_alternative(span.end),
                Kind::Repeat { min, max } => self.repeat(&mut group, outer.len(), Repeat { min, max, span }),
                Kind::Open if outer.len() >= self.limits.depth => {
                    self.too_deep(span);
                    while self.next_in_rule().is_some() {}
                    outer.clear();
                }
                Kind::Open => outer.push(core::mem::replace(&mut group, Group::new(span))),
                Kind::Close => match outer.pop() {
                    Some(parent) => core::mem::replace(&mut group, parent).close_into(&mut group, span.end),
                    None => self.unopened(span, head.start),
                },
                Kind::Define => self.define_without_name(span),
                // `next_in_rule` stops before a head, and attributes directly follow one.
                Kind::Head | Kind::Attributes(_) => {}
            }
        }
        if !outer.is_empty() {
            self.unclosed(group.open, head.start);
        }
        while let Some(parent) = outer.pop() {
            core::mem::replace(&mut group, parent).close_into(&mut group, head.end);
        }
        group.finish()
    }

    /// Returns the next token, unless a new rule begins there.
    fn next_in_rule(&mut self) -> Option<Token> {
        self.tokens.next_if(|token| token.kind != Kind::Head)
    }

    /// Applies a repetition to the last item, `depth` groups deep. In GBNF a repetition may be repeated without
    /// parentheses.
    fn repeat(&mut self, group: &mut Group, depth: usize, repeat: Repeat) {
        if self.notation == Notation::Gbnf && group.items.last().is_some_and(|item| item.repeat.is_some()) {
            if depth + group.last_height >= self.limits.depth {
                self.too_deep(repeat.span);
                while self.next_in_rule().is_some() {}
                return;
            }
            group.enclose_last();
        }
        let (message, help) = match group.items.last_mut() {
            Some(Item { repeat: slot @ None, .. }) => {
                *slot = Some(repeat);
                return;
            }
            Some(_) => (
                "a repetition follows a repetition",
                "put the first into parentheses, as in `(x{2})*`; there are no lazy repetitions such as `*?`",
            ),
            None => ("there is nothing to repeat", "a repetition is written after what it repeats"),
        };
        self.errors.push(Diagnostic::error(repeat.span, message).with_help(help));
    }

    fn too_deep(&mut self, span: Span) {
        let message = format!("more than {} groups are nested", self.limits.depth);
        let help = "give inner parts names of their own, as rules, or raise the limit `depth`";
        self.errors.push(Diagnostic::error(span, message).with_help(help).because(Cause::Limit));
    }

    fn unopened(&mut self, span: Span, rule_start: usize) {
        if !self.is_damaged(rule_start) {
            let remark = Diagnostic::error(span, "this `)` closes nothing");
            self.errors.push(remark.with_help("remove it, or open a group with `(` before it"));
        }
    }

    fn unclosed(&mut self, open: Span, rule_start: usize) {
        if !self.is_damaged(rule_start) {
            let remark = Diagnostic::error(open, "this `(` is not closed before the rule ends");
            self.errors.push(remark.with_help("close it with `)`"));
        }
    }

    /// Checks whether the rule from `start` to here already has an error. An unclosed literal, for example, may contain
    /// parentheses, and errors about those would only distract.
    fn is_damaged(&mut self, start: usize) -> bool {
        let end = self.tokens.peek().map_or(self.source.len(), |token| token.span.start);
        self.errors.any_within(start, end.max(start + 1))
    }

    fn define_without_name(&mut self, span: Span) {
        let remark = Diagnostic::error(span, "expected a name before `::=`");
        self.errors.push(remark.with_help("a rule is written `name ::= …`"));
    }

    fn text(&self, span: Span) -> Box<str> {
        self.source[span.start..span.end].into()
    }
}

/// An unfinished group or body of a rule.
struct Group {
    /// The parenthesis that opened it.
    open: Span,
    alternatives: Vec<Sequence>,
    /// The items of the unfinished alternative.
    items: Vec<Item>,
    /// The start of that alternative.
    start: usize,
    /// The nesting depth of groups in all its items, and in the last item.
    height: usize,
    last_height: usize,
}

impl Group {
    fn new(open: Span) -> Self {
        Self { open, alternatives: Vec::new(), items: Vec::new(), start: open.end, height: 0, last_height: 0 }
    }

    fn push(&mut self, atom: Atom, span: Span) {
        self.items.push(Item { atom, span, repeat: None });
        self.last_height = 0;
    }

    /// Wraps the last item, with its repetition, in a group.
    fn enclose_last(&mut self) {
        let Some(item) = self.items.pop() else { return };
        let span = Span::new(item.span.start, item.end());
        let inner = Alternation { alternatives: vec![Sequence { items: vec![item], span }], span };
        self.items.push(Item { atom: Atom::Group(inner), span, repeat: None });
        self.last_height += 1;
        self.height = self.height.max(self.last_height);
    }

    fn next_alternative(&mut self, next_start: usize) {
        let items = core::mem::take(&mut self.items);
        let span = match (items.first(), items.last()) {
            (Some(first), Some(last)) => Span::new(first.span.start, last.end()),
            _ => Span::at(self.start),
        };
        self.alternatives.push(Sequence { items, span });
        self.start = next_start;
    }

    fn finish(mut self) -> Alternation {
        self.next_alternative(self.start);
        let start = self.alternatives.first().map_or(self.start, |sequence| sequence.span.start);
        let end = self.alternatives.last().map_or(start, |sequence| sequence.span.end);
        Alternation { alternatives: self.alternatives, span: Span::new(start, end) }
    }

    fn close_into(self, parent: &mut Group, end: usize) {
        let span = Span::new(self.open.start, end.max(self.open.end));
        let height = self.height + 1;
        let body = Alternation { span, ..self.finish() };
        parent.push(Atom::Group(body), span);
        parent.last_height = height;
        parent.height = parent.height.max(height);
    }
}

impl Item {
    fn end(&self) -> usize {
        self.repeat.map_or(self.span.end, |repeat| repeat.span.end)
    }
}
