//! From the document to the [`Grammar`].
//!
//! Rules that the root does not reach are left out, with a warning. So is everything that can
//! never match: `a ::= a "x"` has no end, and a text that begins on such a way could not be finished. A
//! mask that is exact must not allow its first step.
//!
//! # Linear, whatever the nesting
//!
//! The builder flattens a sequence in a sequence and an alternation in an alternation by copying. Over
//! `((((… a b) c) d) e)` that would cost the square of the source, so the operands travel upwards in a
//! [`Part`], unbuilt, and are built once, at the outermost level to which they belong. For the same reason
//! neighbouring literals are joined here, in one go.

use maskwright_grammar::{CharSet, Diagnostic, Expr, ExprId, Grammar, GrammarBuilder, RuleId, Span};

use super::{
    Options,
    ast::{Alternation, Atom, Document, Item, Rule, Sequence},
    check::find_living,
    remarks::Remarks,
    resolve::{Scope, resolve},
};

/// Lowers a document: the grammar with its warnings, or the errors.
pub fn lower(document: &Document, options: &Options) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let scope = resolve(document, options)?;
    let mut warnings = Remarks::default();
    warn_unreachable(document, &scope, &mut warnings);

    let reachable = Selection::new(scope.reachable.clone());
    let grammar = build(document, &scope, &reachable)?;
    let life = find_living(&grammar);
    let dead = life.dead_rules();
    if dead.contains(&grammar.root()) {
        return Err(vec![empty_language(document, &scope, &life.explain(grammar.root()))]);
    }
    if dead.is_empty() {
        return Ok((grammar, warnings.into_vec()));
    }
    for &rule in &dead {
        let place = reachable.places[rule.index()];
        // Of thousands of dead rules only a few are shown, and explaining may take a walk over all.
        let reason = if warnings.is_full() { String::new() } else { life.explain(rule) };
        warnings.push(never_matches(&document.rules[place], &reason));
    }
    let grammar = build(document, &scope, &reachable.without(&dead))?;
    Ok((grammar, warnings.into_vec()))
}

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

/// The rules of the document that take part.
struct Selection {
    /// Their places in the document; the rule with [`RuleId`] `i` is number `i` here.
    places: Vec<usize>,
    /// For each rule of the document, whether it takes part.
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

/// Builds the chosen rules; a mention of any other rule matches nothing.
fn build(document: &Document, scope: &Scope<'_>, chosen: &Selection) -> Result<Grammar, Vec<Diagnostic>> {
    let mut builder = GrammarBuilder::new();
    let mut ids: Vec<Option<RuleId>> = vec![None; document.rules.len()];
    for &place in &chosen.places {
        ids[place] = Some(builder.declare(&document.rules[place].name));
    }
    let mut lowering = Lowering { builder, scope, ids };
    for &place in &chosen.places {
        let body = lowering.alternation(&document.rules[place].body);
        let body = lowering.built(body);
        if let Some(id) = lowering.ids[place] {
            lowering.builder.define(id, body);
        }
    }
    let root = lowering.ids[scope.root].ok_or_else(|| "the root was left out".to_owned());
    root.and_then(|root| lowering.builder.finish(root).map_err(|error| error.to_string()))
        .map_err(|message| vec![Diagnostic::error(Span::at(0), message)])
}

struct Lowering<'a> {
    builder: GrammarBuilder,
    scope: &'a Scope<'a>,
    /// By place in the document; `None` for rules that do not take part.
    ids: Vec<Option<RuleId>>,
}

/// An expression, or the operands of one that is not built yet because it may become part of a larger one.
enum Part {
    One(ExprId),
    Seq(Vec<ExprId>),
    Alt(Vec<ExprId>),
}

impl Lowering<'_> {
    fn alternation(&mut self, alternation: &Alternation) -> Part {
        if let [only] = &*alternation.alternatives {
            return self.sequence(only);
        }
        let mut operands = Vec::with_capacity(alternation.alternatives.len());
        for sequence in &alternation.alternatives {
            match self.sequence(sequence) {
                Part::Alt(inner) => append(&mut operands, inner),
                part => operands.push(self.built(part)),
            }
        }
        Part::Alt(operands)
    }

    fn sequence(&mut self, sequence: &Sequence) -> Part {
        let mut parts: Vec<Part> = Vec::with_capacity(sequence.items.len());
        for item in &sequence.items {
            match self.item(item) {
                Part::One(id) if matches!(self.builder.expr(id), Expr::Empty) => {}
                part => parts.push(part),
            }
        }
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let mut operands = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Seq(inner) => append(&mut operands, inner),
                part => operands.push(self.built(part)),
            }
        }
        Part::Seq(operands)
    }

    fn item(&mut self, item: &Item) -> Part {
        let part = self.atom(&item.atom);
        let Some(repeat) = item.repeat else { return part };
        match (repeat.min, repeat.max) {
            (1, Some(1)) => part,
            (0, Some(1)) => self.optional(part),
            (min, max) => {
                let body = self.built(part);
                Part::One(self.builder.repeat(body, min, max))
            }
        }
    }

    fn optional(&mut self, part: Part) -> Part {
        let empty = self.builder.empty();
        let mut operands = match part {
            Part::Alt(operands) => operands,
            part => vec![self.built(part)],
        };
        operands.push(empty);
        Part::Alt(operands)
    }

    fn atom(&mut self, atom: &Atom) -> Part {
        Part::One(match atom {
            Atom::Literal(text) => self.builder.bytes(text.as_bytes()),
            Atom::Class(set) => self.builder.class(set.clone()),
            Atom::Any => self.builder.class(CharSet::all()),
            Atom::Rule(name) => self.mention(name),
            Atom::Group(inner) => return self.alternation(inner),
        })
    }

    fn mention(&mut self, name: &str) -> ExprId {
        let place = self.scope.rules.get(name);
        match place.and_then(|&place| self.ids[place]) {
            Some(id) => self.builder.rule(id),
            None => self.builder.never(),
        }
    }

    /// The expression of a part.
    fn built(&mut self, part: Part) -> ExprId {
        match part {
            Part::One(id) => id,
            Part::Alt(operands) => self.builder.alt(operands),
            Part::Seq(operands) => {
                let joined = self.join_literals(operands);
                self.builder.seq(joined)
            }
        }
    }

    /// Makes one literal of every run of literals.
    fn join_literals(&mut self, operands: Vec<ExprId>) -> Vec<ExprId> {
        let mut joined = Vec::with_capacity(operands.len());
        let mut run: Vec<u8> = Vec::new();
        for id in operands {
            if let Expr::Bytes(more) = self.builder.expr(id) {
                run.extend_from_slice(more);
                continue;
            }
            self.end_run(&mut run, &mut joined);
            joined.push(id);
        }
        self.end_run(&mut run, &mut joined);
        joined
    }

    fn end_run(&mut self, run: &mut Vec<u8>, joined: &mut Vec<ExprId>) {
        if !run.is_empty() {
            joined.push(self.builder.bytes(run));
            run.clear();
        }
    }
}

/// Appends, but keeps the longer vector where it can.
fn append(operands: &mut Vec<ExprId>, mut more: Vec<ExprId>) {
    if operands.is_empty() {
        *operands = more;
    } else {
        operands.append(&mut more);
    }
}
