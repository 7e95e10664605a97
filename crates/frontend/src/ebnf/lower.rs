//! Lowers a document to a [`Grammar`].
//!
//! Rules that the root does not reach are left out, with a warning. So are parts that can never match: `a ::= a "x"`
//! has no end, so a text that begins this way could not be finished, and an exact mask must not allow its first step.

use maskwright_automata::must_stop;
use maskwright_grammar::{
    Capture, Captured, CharSet, Diagnostic, ExprId, Grammar, GrammarBuilder, Notes, RuleId, Span, TokenRef,
    TokenSet,
};

use super::{
    Options,
    ast::{Alternation, Atom, Attributes, Dispatch, Document, Item, Rule, Sequence, Trigger},
    resolve::{Scope, resolve},
};
use crate::notation::ending;
use crate::notation::{check::find_living, parts::Part, remarks::Remarks};
use crate::stopped::stopped;

/// Lowers a document. Returns the grammar with its warnings, or the errors.
pub fn lower(document: &Document, options: &Options) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let scope = resolve(document, options)?;
    let mut warnings = Remarks::default();
    warn_unreachable(document, &scope, &mut warnings);
    warn_temperatures(document, &mut warnings);

    let reachable = Selection::new(scope.reachable.clone());
    let grammar = build(document, &scope, &reachable)?;
    let life = find_living(&grammar);
    let dead = life.dead_rules();
    if dead.contains(&grammar.root()) {
        return Err(vec![empty_language(document, &scope, &life.explain(grammar.root(), NOTHING))]);
    }
    if dead.is_empty() {
        return Ok((grammar, warnings.into_vec()));
    }
    for &rule in &dead {
        let place = reachable.places[rule.index()];
        // Of thousands of dead rules only a few are shown, and each explanation may take a walk over all of them.
        let reason = if warnings.is_full() { String::new() } else { life.explain(rule, NOTHING) };
        warnings.push(never_matches(&document.rules[place], &reason));
    }
    let grammar = build(document, &scope, &reachable.without(&dead))?;
    Ok((grammar, warnings.into_vec()))
}

/// The only expression, apart from a call of a dead rule, that [`find_living`] finds dead in this notation.
const NOTHING: &str = "a character from a class that has none";

fn warn_unreachable(document: &Document, scope: &Scope<'_>, warnings: &mut Remarks) {
    let root = &document.rules[scope.root].name;
    for (rule, _) in document.rules.iter().zip(&scope.reachable).filter(|(_, reachable)| !**reachable) {
        let message = format!("rule `{}` is not used: nothing leads to it from `{root}`", rule.name);
        warnings.push(Diagnostic::warning(rule.name_span, message).with_help("use it, or remove it"));
    }
}

fn empty_language(document: &Document, scope: &Scope<'_>, reason: &str) -> Diagnostic {
    let root = &document.rules[scope.root];
    Diagnostic::error(root.name_span, format!("no text can match rule `{}`, because {reason}", root.name))
        .with_help("add an alternative that ends")
}

fn never_matches(rule: &Rule, reason: &str) -> Diagnostic {
    Diagnostic::warning(rule.name_span, format!("rule `{}` can never match, because {reason}", rule.name))
        .with_help("what needs it was left out; add an alternative that ends")
}

/// The rules of the document that are built.
struct Selection {
    /// Their indices in the document; the rule with [`RuleId`] `i` is number `i` here.
    places: Vec<usize>,
    /// For each rule of the document, whether it is built.
    chosen: Vec<bool>,
}

impl Selection {
    fn new(chosen: Vec<bool>) -> Self {
        let places = chosen.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(i, _)| i).collect();
        Self { places, chosen }
    }

    fn without(&self, dead: &[RuleId]) -> Self {
        let mut chosen = self.chosen.clone();
        for rule in dead {
            chosen[self.places[rule.index()]] = false;
        }
        Self::new(chosen)
    }
}

/// Builds the chosen rules. A mention of any other rule matches nothing.
fn build(document: &Document, scope: &Scope<'_>, chosen: &Selection) -> Result<Grammar, Vec<Diagnostic>> {
    let mut builder = GrammarBuilder::new();
    let mut ids: Vec<Option<RuleId>> = vec![None; document.rules.len()];
    for &place in &chosen.places {
        ids[place] = Some(builder.declare(&document.rules[place].name));
    }
    let mut lowering = Lowering { builder, scope, ids, stopped: false };
    for &place in &chosen.places {
        let rule = &document.rules[place];
        let body = lowering.alternation(&rule.body).build(&mut lowering.builder);
        let body = lowering.limited(body, &rule.attributes);
        if lowering.is_stopped() {
            return Err(vec![stopped(document.rules[place].name_span.start)]);
        }
        if let Some(id) = lowering.ids[place] {
            lowering.builder.define(id, body);
            lowering.builder.annotate(id, notes(rule));
        }
    }
    let root = lowering.ids[scope.root].ok_or_else(|| "the root was left out".to_owned());
    root.and_then(|root| lowering.builder.finish(root).map_err(|error| error.to_string())).map_err(
        |message| {
            // Only attributes can intersect a recursive rule.
            let combined = |rule: &Rule| {
                let attributes = &rule.attributes;
                attributes.lazy.or_else(|| attributes.max_chars.map(|(_, span)| span))
            };
            let place = document.rules.iter().find_map(combined).unwrap_or(Span::at(0));
            let help = "`lazy` and `max_chars` are for rules that do not call themselves";
            vec![Diagnostic::error(place, message).with_help(help)]
        },
    )
}

/// Returns the annotations of a rule, which do not affect the texts that it matches.
fn notes(rule: &Rule) -> Notes {
    let capture = rule.attributes.capture.as_ref().map(|name| Capture {
        name: if name.is_empty() { rule.name.clone() } else { name.clone() },
        part: Captured::All,
    });
    let temperature = rule.attributes.temperature.map(|(value, _)| value);
    Notes { captures: capture.into_iter().collect(), temperature }
}

fn warn_temperatures(document: &Document, warnings: &mut Remarks) {
    for (_, place) in document.rules.iter().filter_map(|rule| rule.attributes.temperature) {
        let message = "a temperature does not change which texts match; `maskwright serve` samples at it, and elsewhere `locate` reports it to the code that samples";
        warnings.push(
            Diagnostic::warning(place, message)
                .with_help("leave it out, or read it with `locate` where tokens are sampled"),
        );
    }
}

struct Lowering<'a> {
    builder: GrammarBuilder,
    scope: &'a Scope<'a>,
    /// By index in the document; `None` for rules that are not built.
    ids: Vec<Option<RuleId>>,
    /// Whether the work was cancelled. The result is not usable then.
    stopped: bool,
}

impl Lowering<'_> {
    fn is_stopped(&mut self) -> bool {
        self.stopped |= must_stop();
        self.stopped
    }

    /// Returns the texts of a rule that its attributes allow.
    fn limited(&mut self, mut body: ExprId, attributes: &Attributes) -> ExprId {
        let g = &mut self.builder;
        if attributes.lazy.is_some() {
            body = ending::shortest(body, g);
        }
        if let Some((chars, _)) = attributes.max_chars {
            let any = g.class(CharSet::all());
            let short = g.repeat(any, 0, Some(chars));
            body = g.and([body, short]);
        }
        match attributes.max_tokens {
            Some(tokens) => g.limit(body, tokens),
            None => body,
        }
    }

    fn alternation(&mut self, alternation: &Alternation) -> Part {
        let parts: Vec<Part> = alternation.alternatives.iter().map(|part| self.sequence(part)).collect();
        Part::alt(parts, &mut self.builder)
    }

    fn sequence(&mut self, sequence: &Sequence) -> Part {
        let parts: Vec<Part> = sequence.items.iter().map(|item| self.item(item)).collect();
        Part::seq(parts, &mut self.builder)
    }

    fn item(&mut self, item: &Item) -> Part {
        if self.is_stopped() {
            return Part::One(self.builder.never());
        }
        let part = self.atom(&item.atom);
        match item.repeat {
            None => part,
            Some(repeat) => part.repeat(repeat.min, repeat.max, &mut self.builder),
        }
    }

    fn atom(&mut self, atom: &Atom) -> Part {
        Part::One(match atom {
            Atom::Literal(text) => self.builder.bytes(text.as_bytes()),
            Atom::Class(set) => self.builder.class(set.clone()),
            Atom::Any => self.builder.class(CharSet::all()),
            Atom::Token(set) => self.builder.token(set.clone()),
            Atom::Quoted(grammar) => self.builder.embed(grammar),
            Atom::Dispatch(dispatch) => self.dispatch(dispatch),
            Atom::Rule(name) => self.mention(name),
            Atom::Group(inner) => return self.alternation(inner),
        })
    }

    /// Lowers free parts with triggers and their rules between them. Free text before a trigger contains no trigger
    /// except that one, and free text at the end contains none; this is regular, and expressed with complements. A
    /// token is free if it is not a trigger.
    fn dispatch(&mut self, dispatch: &Dispatch) -> ExprId {
        let triggers: Vec<&Trigger> = dispatch.arms.iter().map(|arm| &arm.trigger).collect();
        let (free, before) = if dispatch.of_tokens {
            let id = |trigger: &&Trigger| match trigger {
                Trigger::Token(id) => Some(TokenRef::id(*id)),
                Trigger::Text(_) => None,
            };
            let taken: Vec<TokenRef> =
                triggers.iter().copied().chain(&dispatch.excludes).filter_map(|one| id(&one)).collect();
            let other = self.builder.token(TokenSet::all_but(taken));
            let free = self.builder.star(other);
            let before: Vec<ExprId> = triggers
                .iter()
                .filter_map(id)
                .map(|token| {
                    let token = self.builder.token(TokenSet::these([token]));
                    self.builder.seq([free, token])
                })
                .collect();
            (free, before)
        } else {
            self.free_text(&triggers, &dispatch.excludes)
        };
        let mut ways = Vec::with_capacity(before.len() + 1);
        for (before, arm) in before.into_iter().zip(&dispatch.arms) {
            let rule = self.mention(&arm.rule);
            ways.push(self.builder.seq([before, rule]));
        }
        if dispatch.is_loop {
            let calls = self.builder.alt(ways);
            let calls = self.builder.star(calls);
            return self.builder.seq([calls, free]);
        }
        ways.push(free);
        self.builder.alt(ways)
    }

    /// Returns text without triggers, and for each trigger the texts that end with it and contain none before.
    fn free_text(&mut self, triggers: &[&Trigger], excludes: &[Trigger]) -> (ExprId, Vec<ExprId>) {
        let mut text = |trigger: &Trigger| match trigger {
            Trigger::Text(text) => self.builder.bytes(text.as_bytes()),
            Trigger::Token(_) => self.builder.never(),
        };
        let triggers: Vec<ExprId> = triggers.iter().map(|trigger| text(trigger)).collect();
        let excludes: Vec<ExprId> = excludes.iter().map(text).collect();
        let g = &mut self.builder;
        let (all, any, one) = (g.any_text(), g.class(CharSet::all()), g.alt(triggers.iter().copied()));
        let excluded = g.alt(excludes);
        let excluded = g.seq([all, excluded, all]);
        let allowed = g.not(excluded);
        let within = g.seq([all, one, all]);
        let without = g.not(within);
        let free = g.and([without, allowed]);
        let earlier = g.seq([all, one, any, all]);
        let first = g.not(earlier);
        let before = triggers
            .into_iter()
            .map(|trigger| {
                let ends = g.seq([all, trigger]);
                g.and([ends, first, allowed])
            })
            .collect();
        (free, before)
    }

    fn mention(&mut self, name: &str) -> ExprId {
        let place = self.scope.rules.get(name);
        match place.and_then(|&place| self.ids[place]) {
            Some(id) => self.builder.rule(id),
            None => self.builder.never(),
        }
    }
}
