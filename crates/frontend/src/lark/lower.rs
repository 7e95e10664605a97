//! Lowers a source to a [`Grammar`].
//!
//! # Without a lexer
//!
//! Lark and llguidance first split a text into terminals, where the longest match wins, and parse the result. Here
//! terminals are parts of the grammar like all others, and a text is accepted if it can be split in *some* way.
//! `docs/lark.md` describes the consequences.
//!
//! # Ignored text
//!
//! Ignored text is allowed before everything, and after every terminal of a rule: `a: X Y` becomes
//! `X ignored Y ignored`, where `ignored` is the rule `(everything ignored)*`. It is one small regular rule, and it
//! follows only terminals, never rules. So it is not ambiguous: between two terminals there is one place for it.
//!
//! # Instances
//!
//! A rule is built once for each value of its parameter, and for each list of arguments of its template, that is used.
//! A queue and a table keep track of this. Parameters can take 2⁶⁴ values, so
//! [`Limits::expansion`](super::Limits::expansion) bounds the size of the parts built this way.

use std::collections::HashMap;

use maskwright_automata::must_stop;
use maskwright_grammar::{
    Capture, Captured, CharSet, Diagnostic, Expr, ExprId, Grammar, GrammarBuilder, Notes, RuleId, Span,
};

use super::Options;
use super::ast::{Alternation, Alternative, Atom, Definition, Ending, Item, Sort, Source, Visit};
use super::named::{Named, at_call};
use super::race::{Races, Start, races};
use super::resolve::{Scope, resolve};
use super::{named, schema, terminal, warn};
use crate::json_schema;
use crate::notation::{ending, parts::Part, remarks::Remarks, substring};
use crate::stopped::stopped;

/// Lowers a source. Returns the grammar with its warnings, or the errors.
pub fn lower(
    source: &Source,
    options: &Options,
    schemas: &json_schema::Options,
) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let in_source = |remarks| named::in_source(remarks, &source.origins);
    let scopes = resolve(source, options).map_err(in_source)?;
    let mut warnings = Remarks::default();
    for scope in &scopes {
        warn::unused(scope, &mut warnings);
        warn::annotations(scope, &mut warnings);
    }
    let mut lowering = Lowering {
        races: scopes.iter().map(races).collect(),
        lazy: HashMap::new(),
        scopes: &scopes,
        options,
        schemas,
        builder: GrammarBuilder::new(),
        errors: Remarks::default(),
        warnings,
        prepared: scopes.iter().map(|_| None).collect(),
        instances: HashMap::new(),
        built: Vec::new(),
        quoted: HashMap::new(),
        expanded: 0,
        stopped: false,
    };
    let outermost = scopes.len() - 1;
    let root = lowering.root(outermost);
    lowering.build_instances();
    let (grammar, warnings) = lowering.finish(root, outermost).map_err(in_source)?;
    Ok((grammar, in_source(warnings)))
}

/// A rule with values for its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Instance {
    document: usize,
    definition: usize,
    value: Option<u64>,
    arguments: Box<[ExprId]>,
}

/// The expressions that a document needs before its rules can be built.
#[derive(Clone, Debug, Default)]
struct Prepared {
    /// The expression of each terminal that is used.
    terminals: HashMap<usize, ExprId>,
    /// Ignored text, any number of times; `None` if nothing is ignored.
    ignored: Option<ExprId>,
}

struct Lowering<'a> {
    scopes: &'a [Scope<'a>],
    /// For each document, the lazy terminals that begin at the same place as other terminals.
    races: Vec<Races>,
    /// Lazy terminals, by document and definition.
    lazy: HashMap<(usize, usize), ExprId>,
    options: &'a Options,
    schemas: &'a json_schema::Options,
    builder: GrammarBuilder,
    errors: Remarks,
    warnings: Remarks,
    prepared: Vec<Option<Prepared>>,
    instances: HashMap<Instance, RuleId>,
    /// Every instance, in the order of first use.
    built: Vec<(Instance, RuleId)>,
    /// Patterns, substrings and schemas, by their place in the source.
    quoted: HashMap<Span, ExprId>,
    /// The number of parts built for parameters and templates.
    expanded: usize,
    stopped: bool,
}

/// The current place in the source, and the parameters in effect.
#[derive(Clone, Copy)]
struct Place<'k> {
    document: usize,
    value: Option<u64>,
    template: &'k [Box<str>],
    arguments: &'k [ExprId],
    in_terminal: bool,
}

impl<'a> Lowering<'a> {
    /// Returns the rule of a whole text: the start rule, after text that may be ignored.
    fn root(&mut self, document: usize) -> RuleId {
        let start = self.instance(document, self.scopes[document].start, None, Box::default());
        match self.ignored_first(document) {
            None => start,
            Some(ignored) => {
                let root = self.builder.declare("text");
                let start = self.builder.rule(start);
                let body = self.builder.seq([ignored, start]);
                self.builder.define(root, body);
                root
            }
        }
    }

    fn ignored_first(&mut self, document: usize) -> Option<ExprId> {
        let ignored = self.prepared(document).ignored;
        ignored.filter(|_| self.scopes[document].document.settings.ignored_first)
    }

    /// Builds all instances in use, including those that are used by other instances.
    fn build_instances(&mut self) {
        let mut next = 0;
        while let Some((instance, rule)) = self.built.get(next).cloned() {
            next += 1;
            let scopes = self.scopes;
            let definition = &scopes[instance.document].document.definitions[instance.definition];
            if self.is_stopped(definition.span) {
                break;
            }
            let place = Place {
                document: instance.document,
                value: instance.value,
                template: &definition.template,
                arguments: &instance.arguments,
                in_terminal: false,
            };
            let body = self.rule_body(definition, place, rule);
            self.builder.define(rule, body);
            if self.expanded > self.options.limits.expansion {
                let message = format!(
                    "with its parameters written out, the grammar has more than {} parts",
                    self.options.limits.expansion
                );
                let help = "use fewer bits, or count with `{n,m}`; or raise the limit `expansion`";
                self.errors.push(Diagnostic::error(definition.span, message).with_help(help));
                break;
            }
        }
    }

    fn rule_body(&mut self, definition: &'a Definition, place: Place<'_>, rule: RuleId) -> ExprId {
        let attributes = &definition.attributes;
        // As in llguidance, a rule with one of these attributes is a terminal if it can be.
        let is_terminal = definition.is_terminal()
            || (attributes.temperature.is_some() && self.has_only_terminals(definition, place.document));
        let inner = Place { in_terminal: is_terminal, ..place };
        let mut body = self.alternation(&definition.body, inner).build(&mut self.builder);
        let notes = self.notes(definition, body, inner);
        if let Some((ending, span)) = &attributes.ending {
            body = self.ended(body, ending, *span, inner);
            if let Some(&at) = self.scopes[place.document].names.get(&*definition.name) {
                body = self.without_lazy_wins(body, Start::Lazy(at), place.document);
            }
        }
        if let Some((chars, span)) = attributes.max_chars {
            body = self.at_most(body, chars, span);
        }
        if let Some((tokens, _)) = attributes.max_tokens {
            body = self.builder.limit(body, u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        if !is_terminal {
            self.builder.annotate(rule, notes);
            return body;
        }
        if notes != Notes::default() {
            // Ignored text after a terminal is not part of it.
            let own = self.builder.declare(&definition.name);
            self.builder.define(own, body);
            self.builder.annotate(own, notes);
            body = self.builder.rule(own);
        }
        self.and_ignored(body, place).build(&mut self.builder)
    }

    /// Returns the annotations of a rule with this body, which do not affect the texts that it matches.
    fn notes(&mut self, definition: &'a Definition, body: ExprId, place: Place<'_>) -> Notes {
        let attributes = &definition.attributes;
        let mut notes =
            Notes { captures: Vec::new(), temperature: attributes.temperature.map(|(value, _)| value) };
        // The ending of a rule is reported before the rule.
        let (stops, others): (Vec<_>, Vec<_>) = attributes.captures.iter().partition(|one| one.is_stop);
        for capture in stops.into_iter().chain(others) {
            let part = match (&attributes.ending, capture.is_stop) {
                (Some((Ending::Suffix(suffix), span)), is_stop) => {
                    let ending = self.atom(suffix, *span, place).build(&mut self.builder);
                    match (ending::length(ending, &self.builder), is_stop) {
                        (Some(length), false) => Captured::Without(length),
                        (Some(length), true) => Captured::Last(length),
                        (None, false) => Captured::Before { body, ending },
                        (None, true) => Captured::Ending { body, ending },
                    }
                }
                (_, true) => {
                    let message =
                        "`stop_capture` names what ends the rule, and here no text is part of it that does";
                    let help = "write `suffix=\"…\"`, which stays part of the text";
                    self.errors.push(Diagnostic::error(capture.span, message).with_help(help));
                    continue;
                }
                (_, false) => Captured::All,
            };
            let name = capture.name.clone().unwrap_or_else(|| definition.name.clone());
            notes.captures.push(Capture { name, part });
        }
        notes
    }

    /// Returns the texts of `body` that end where the attribute requires.
    fn ended(&mut self, body: ExprId, ending: &'a Ending, span: Span, place: Place<'_>) -> ExprId {
        match ending {
            Ending::Lazy => ending::shortest(body, &mut self.builder),
            Ending::Suffix(Atom::Literal { text, .. }) if text.is_empty() => body,
            Ending::Suffix(suffix) => {
                let suffix = self.atom(suffix, span, place).build(&mut self.builder);
                let whole = self.builder.seq([body, suffix]);
                ending::shortest(whole, &mut self.builder)
            }
            Ending::Stop(Atom::Literal { text, ignore_case: false }) => {
                self.warnings.push(ending::warning(text, span));
                if text.is_empty() { body } else { ending::before(body, text, &mut self.builder) }
            }
            Ending::Stop(stop) => {
                let stop = self.atom(stop, span, place).build(&mut self.builder);
                if let Some(before) = ending::before_any(body, stop, &mut self.builder) {
                    self.warnings.push(ending::warning("…", span));
                    return before;
                }
                let message = "`stop` must be a text, a choice of texts, or a terminal with a text that no other one overlaps";
                let help = "write `suffix=…`, which may be any terminal and stays part of the text";
                self.errors.push(Diagnostic::error(span, message).with_help(help));
                self.builder.never()
            }
        }
    }

    /// Returns the texts of `body` with at most `chars` characters.
    fn at_most(&mut self, body: ExprId, chars: u64, span: Span) -> ExprId {
        let limit = u64::from(self.options.limits.repetition);
        if chars > limit {
            let message = format!("`max_chars` is {chars}, and the limit is {limit}");
            let help = "leave it out, or raise the limit `repetition`";
            self.errors.push(Diagnostic::error(span, message).with_help(help));
            return self.builder.never();
        }
        let any = self.builder.class(CharSet::all());
        let short = self.builder.repeat(any, 0, u32::try_from(chars).ok());
        self.builder.and([body, short])
    }

    /// Returns the texts of a terminal within which no lazy terminal that begins at the same place has matched before.
    fn without_lazy_wins(&mut self, mut terminal: ExprId, start: Start, document: usize) -> ExprId {
        let Some(others) = self.races[document].get(&start).cloned() else { return terminal };
        for other in others {
            let lazy = self.lazy_terminal(document, other);
            let (any, all) = (self.builder.class(CharSet::all()), self.builder.any_text());
            let over = match start {
                // Two lazy terminals may match at the same position.
                Start::Lazy(_) => self.builder.seq([lazy, any, all]),
                Start::Terminal(..) => self.builder.seq([lazy, all]),
            };
            let in_time = self.builder.not(over);
            terminal = self.builder.and([terminal, in_time]);
        }
        terminal
    }

    /// Returns the texts of a lazy terminal, regardless of other terminals.
    fn lazy_terminal(&mut self, document: usize, at: usize) -> ExprId {
        if let Some(&known) = self.lazy.get(&(document, at)) {
            return known;
        }
        let definition = &self.scopes[document].document.definitions[at];
        let place = Place { document, value: None, template: &[], arguments: &[], in_terminal: true };
        let body = self.alternation(&definition.body, place).build(&mut self.builder);
        let lazy = match &definition.attributes.ending {
            Some((ending, span)) => self.ended(body, ending, *span, place),
            None => body,
        };
        self.lazy.insert((document, at), lazy);
        lazy
    }

    fn has_only_terminals(&self, definition: &Definition, document: usize) -> bool {
        let scope = &self.scopes[document];
        let is_terminal = |name: &str| {
            scope
                .names
                .get(name)
                .is_some_and(|&place| scope.document.definitions[place].sort == Sort::Terminal)
        };
        let mut only = true;
        definition.body.walk(false, |visit| {
            only &= match visit {
                Visit::Item(Item { atom: Atom::Name(name), .. }, _) => is_terminal(name),
                Visit::Item(Item { atom, .. }, _) => !matches!(
                    atom,
                    Atom::Call(..)
                        | Atom::Template(..)
                        | Atom::Token(_)
                        | Atom::Json(..)
                        | Atom::Foreign(..)
                        | Atom::Nested(_)
                ),
                Visit::Condition(..) => false,
            };
        });
        only
    }

    /// Returns the rule of an instance. It is built later.
    fn instance(
        &mut self,
        document: usize,
        definition: usize,
        value: Option<u64>,
        arguments: Box<[ExprId]>,
    ) -> RuleId {
        let instance = Instance { document, definition, value, arguments };
        if let Some(&known) = self.instances.get(&instance) {
            return known;
        }
        let name = &self.scopes[document].document.definitions[definition].name;
        let rule = match value {
            Some(value) => self.builder.declare(&format!("{name}::{value}")),
            None => self.builder.declare(name),
        };
        self.instances.insert(instance.clone(), rule);
        self.built.push((instance, rule));
        rule
    }

    /// Returns the terminals of a document and its ignored text, built on first use.
    fn prepared(&mut self, document: usize) -> &Prepared {
        if self.prepared[document].is_none() {
            self.prepared[document] = Some(Prepared::default());
            let scope = &self.scopes[document];
            let place = Place { document, value: None, template: &[], arguments: &[], in_terminal: true };
            for &at in &scope.terminals {
                let definition = &scope.document.definitions[at];
                if self.is_stopped(definition.span) {
                    break;
                }
                let body = self.alternation(&definition.body, place).build(&mut self.builder);
                let expr = self.named_terminal(&definition.name, body);
                if let Some(prepared) = &mut self.prepared[document] {
                    prepared.terminals.insert(at, expr);
                }
            }
            let ignored = self.ignored_rule(scope, place);
            if let Some(prepared) = &mut self.prepared[document] {
                prepared.ignored = ignored;
            }
        }
        self.prepared[document].get_or_insert_default()
    }

    /// Returns `ignored: (everything ignored)*`.
    fn ignored_rule(&mut self, scope: &Scope<'a>, place: Place<'_>) -> Option<ExprId> {
        if scope.document.ignored.is_empty() {
            return None;
        }
        let parts: Vec<Part> =
            scope.document.ignored.iter().map(|body| self.alternation(body, place)).collect();
        let one = Part::alt(parts, &mut self.builder).build(&mut self.builder);
        let max = scope.document.settings.ignored_once.then_some(1);
        let body = self.builder.repeat(one, 0, max);
        let rule = self.builder.declare("ignored");
        self.builder.define(rule, body);
        Some(self.builder.rule(rule))
    }

    /// Returns a terminal as a separate rule, so that mentioning it does not copy it. The smallest ones are inserted in
    /// place.
    fn named_terminal(&mut self, name: &str, body: ExprId) -> ExprId {
        const MAX_INLINE_BYTES: usize = 32;
        let is_class =
            |id: ExprId| matches!(self.builder.expr(id), Expr::Class(_) | Expr::Empty | Expr::Never);
        let is_small = match self.builder.expr(body) {
            Expr::Bytes(bytes) => bytes.len() <= MAX_INLINE_BYTES,
            Expr::Repeat { body, .. } => is_class(*body),
            _ => is_class(body),
        };
        if is_small {
            return body;
        }
        let rule = self.builder.declare(name);
        self.builder.define(rule, body);
        self.builder.rule(rule)
    }

    fn alternation(&mut self, alternation: &'a Alternation, place: Place<'_>) -> Part {
        let mut parts = Vec::with_capacity(alternation.alternatives.len());
        for alternative in &alternation.alternatives {
            let value = place.value.unwrap_or(0);
            if alternative.condition.as_ref().is_none_or(|(condition, _)| condition.holds(value)) {
                parts.push(self.alternative(alternative, place));
            }
        }
        if parts.is_empty() {
            return Part::One(self.builder.never());
        }
        Part::alt(parts, &mut self.builder)
    }

    fn alternative(&mut self, alternative: &'a Alternative, place: Place<'_>) -> Part {
        if let [only] = &*alternative.conjuncts {
            return self.sequence(only, place);
        }
        let inner = Place { in_terminal: true, ..place };
        let mut all = Vec::with_capacity(alternative.conjuncts.len());
        for conjunct in &alternative.conjuncts {
            let part = self.sequence(conjunct, inner);
            all.push(part.build(&mut self.builder));
        }
        let both = self.builder.and(all);
        self.as_terminal(both, alternative.span, place)
    }

    fn sequence(&mut self, items: &'a [Item], place: Place<'_>) -> Part {
        let parts: Vec<Part> = items.iter().map(|item| self.item(item, place)).collect();
        Part::seq(parts, &mut self.builder)
    }

    /// Checks whether the work was cancelled. The result is not usable then.
    fn is_stopped(&mut self, place: Span) -> bool {
        if !self.stopped && must_stop() {
            self.stopped = true;
            self.errors.push(stopped(place.start));
        }
        self.stopped
    }

    fn item(&mut self, item: &'a Item, place: Place<'_>) -> Part {
        if self.is_stopped(item.span) {
            return Part::One(self.builder.never());
        }
        if place.value.is_some() || !place.template.is_empty() {
            // A long text counts as several parts, because it is copied.
            self.expanded += 1 + (item.span.end - item.span.start) / 64;
            if self.expanded > self.options.limits.expansion {
                return Part::One(self.builder.never());
            }
        }
        let part = self.atom(&item.atom, item.span, place);
        match item.repeat {
            None => part,
            Some((min, max)) => part.repeat(min, max, &mut self.builder),
        }
    }

    fn atom(&mut self, atom: &'a Atom, span: Span, place: Place<'_>) -> Part {
        let scopes = self.scopes;
        let names = &scopes[place.document].names;
        let terminal = match atom {
            Atom::Group(inner) => return self.alternation(inner, place),
            Atom::Maybe(inner) => {
                let inner = self.alternation(inner, place);
                return inner.optional(&mut self.builder);
            }
            Atom::Name(name) => match place.template.iter().position(|parameter| parameter == name) {
                Some(at) => return Part::One(place.arguments[at]),
                None => match names.get(&**name) {
                    Some(&at) => return self.mention(at, span, place),
                    None => self.builder.never(),
                },
            },
            Atom::Call(name, update) => {
                let value = update.apply(place.value.unwrap_or(0));
                return self.call(names.get(&**name), Some(value), Box::default(), place);
            }
            Atom::Template(name, arguments) => {
                let mut lowered = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let part = self.item(argument, place);
                    lowered.push(part.build(&mut self.builder));
                }
                return self.call(names.get(&**name), None, lowered.into(), place);
            }
            Atom::Nested(document) => {
                let first = self.ignored_first(*document);
                let start = self.instance(*document, scopes[*document].start, None, Box::default());
                let start = self.builder.rule(start);
                self.builder.seq(first.into_iter().chain([start]))
            }
            Atom::Not(inner) => {
                let inner = self.item(inner, Place { in_terminal: true, ..place }).build(&mut self.builder);
                self.builder.not(inner)
            }
            Atom::Literal { text, .. } if text.is_empty() => return Part::One(self.builder.empty()),
            Atom::Literal { text, ignore_case: false } => self.builder.bytes(text.as_bytes()),
            Atom::Literal { text, ignore_case: true } => {
                let lowered = terminal::any_case(text, span, &mut self.builder);
                self.or_never(lowered)
            }
            Atom::Range(set) => self.builder.class(set.clone()),
            Atom::Token(set) => self.builder.token(set.clone()),
            Atom::Regex { .. } | Atom::Substring(_) | Atom::Json(..) | Atom::Foreign(..) => {
                self.quote(atom, span)
            }
        };
        self.as_terminal(terminal, span, place)
    }

    /// Lowers a name that is not a parameter.
    fn mention(&mut self, definition: usize, span: Span, place: Place<'_>) -> Part {
        if self.scopes[place.document].document.definitions[definition].sort == Sort::Rule {
            return self.call(Some(&definition), None, Box::default(), place);
        }
        match self.prepared(place.document).terminals.get(&definition).copied() {
            Some(terminal) => self.as_terminal(terminal, span, place),
            None => Part::One(self.builder.never()),
        }
    }

    fn call(
        &mut self,
        definition: Option<&usize>,
        value: Option<u64>,
        arguments: Box<[ExprId]>,
        place: Place<'_>,
    ) -> Part {
        Part::One(match definition {
            Some(&definition) => {
                let rule = self.instance(place.document, definition, value, arguments);
                self.builder.rule(rule)
            }
            None => self.builder.never(),
        })
    }

    /// Lowers a terminal mentioned in a rule: ignored text may follow it, and a lazy terminal may win against it.
    fn as_terminal(&mut self, terminal: ExprId, span: Span, place: Place<'_>) -> Part {
        if place.in_terminal {
            return Part::One(terminal);
        }
        let terminal = self.without_lazy_wins(terminal, Start::at(span), place.document);
        self.and_ignored(terminal, place)
    }

    fn and_ignored(&mut self, terminal: ExprId, place: Place<'_>) -> Part {
        match self.prepared(place.document).ignored {
            Some(ignored) => Part::Seq(vec![terminal, ignored]),
            None => Part::One(terminal),
        }
    }

    /// Lowers a part in another language. It is read once, even if it is built several times.
    fn quote(&mut self, atom: &Atom, span: Span) -> ExprId {
        if let Some(&known) = self.quoted.get(&span) {
            return known;
        }
        let quoted = match atom {
            Atom::Regex { pattern, flags, at } => {
                let (builder, warnings) = (&mut self.builder, &mut self.warnings);
                let lowered = terminal::regex(pattern, flags, *at, span, builder, warnings);
                self.or_never(lowered)
            }
            Atom::Substring(chunks) => substring::lower(chunks, &mut self.builder),
            Atom::Json(text, options) => self.schema(text, options.as_deref(), span),
            Atom::Foreign(name, grammar) => self.foreign(name, grammar, span),
            _ => self.builder.never(),
        };
        self.quoted.insert(span, quoted);
        quoted
    }

    /// Returns the expression, or reports the error and returns an expression that matches nothing.
    fn or_never(&mut self, lowered: Result<ExprId, Diagnostic>) -> ExprId {
        lowered.unwrap_or_else(|error| {
            self.errors.push(error);
            self.builder.never()
        })
    }

    /// Returns a grammar in another language, as a separate rule.
    fn foreign(&mut self, name: &str, grammar: &Named, span: Span) -> ExprId {
        let Some((text, read)) = grammar.foreign() else { return self.builder.never() };
        match read {
            Ok((grammar, warnings)) => {
                for remark in at_call(warnings, name, text, span) {
                    self.warnings.push(remark);
                }
                let body = self.builder.embed(&grammar);
                let rule = self.builder.declare(name);
                self.builder.define(rule, body);
                self.builder.rule(rule)
            }
            Err(errors) => {
                for remark in at_call(errors, name, text, span) {
                    self.errors.push(remark);
                }
                self.builder.never()
            }
        }
    }

    /// Returns the grammar of a schema, as a separate rule.
    fn schema(&mut self, text: &str, own: Option<&json_schema::Options>, span: Span) -> ExprId {
        let (text, options) = match schema::with_options(text, own.unwrap_or(self.schemas)) {
            Ok(read) => read,
            Err((name, help)) => {
                let message = format!("the option `{name}` of `x-guidance` in this schema is not offered");
                self.errors.push(Diagnostic::error(span, message).with_help(help));
                return self.builder.never();
            }
        };
        match json_schema::grammar(&text, &options) {
            Ok((grammar, _report)) => {
                let body = self.builder.embed(&grammar);
                let rule = self.builder.declare_document("json");
                self.builder.define(rule, body);
                self.builder.rule(rule)
            }
            Err(error) => {
                for problem in error.problems() {
                    let at = if problem.pointer.is_empty() {
                        String::new()
                    } else {
                        format!(" at {}", problem.pointer)
                    };
                    let message = format!("in this schema{at}: {}", problem.message);
                    self.errors.push(Diagnostic::error(span, message).with_help(&*problem.help));
                }
                self.builder.never()
            }
        }
    }

    /// Checks that something can match, and finishes the grammar.
    fn finish(
        mut self,
        root: RuleId,
        document: usize,
    ) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            return Err(self.errors.into_vec());
        }
        let scope = &self.scopes[document];
        let start = &scope.document.definitions[scope.start];
        let grammar = self.builder.finish(root).map_err(|error| {
            let remark = Diagnostic::error(start.span, error.to_string());
            vec![remark.with_help("make the terminals of this grammar simpler")]
        })?;
        // Only rules without parameters are checked, because conditions exist to exclude some values of a parameter.
        let plain = self
            .built
            .iter()
            .filter(|(instance, _)| instance.value.is_none() && instance.arguments.is_empty());
        let rules: Vec<(&Definition, RuleId)> = plain
            .map(|(instance, rule)| {
                (&self.scopes[instance.document].document.definitions[instance.definition], *rule)
            })
            .collect();
        warn::vacuous(&grammar, &rules, &mut self.warnings);
        warn::dead(&grammar, start, &rules, &mut self.warnings).map_err(|error| vec![error])?;
        Ok((grammar, self.warnings.into_vec()))
    }
}
