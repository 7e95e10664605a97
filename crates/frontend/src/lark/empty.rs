//! Explains why no text matches a grammar: which intersection, complement or pattern excludes all texts. Endless rules
//! are found before ([`super::warn`]).

use std::collections::HashSet;

use maskwright_grammar::{Diagnostic, Grammar, Span};

use super::ast::{Alternation, Alternative, Atom, Item, Source};
use super::{Options, lower, named, parse};
use crate::culprit::culprit;
use crate::json_schema;

/// See [`super::why_empty`].
pub(super) fn why_empty(
    text: &str,
    options: &Options,
    schemas: &json_schema::Options,
    mut is_empty: impl FnMut(&Grammar) -> Option<bool>,
) -> Option<Diagnostic> {
    let source = parse(text, options).ok()?;
    let mut suspects = Vec::new();
    for_each(&mut source.clone(), &mut |suspect| {
        suspects.push((suspect.rank(), suspect.span(), suspect.name()));
    });
    // A part comes before the parts that contain it.
    suspects.sort_by_key(|(rank, span, _)| (*rank, span.end, usize::MAX - span.start));
    let found = culprit(suspects.len(), |kept| {
        let mut milder = source.clone();
        let kept: HashSet<_> = suspects[..kept].iter().collect();
        for_each(&mut milder, &mut |suspect| {
            if !kept.contains(&(suspect.rank(), suspect.span(), suspect.name())) {
                suspect.allow_everything();
            }
        });
        let (grammar, _) = lower(&milder, options, schemas).ok()?;
        is_empty(&grammar)
    })?;
    let (_, span, name) = suspects[found];
    let message =
        format!("no text can match `{}`, and some would if this {name} allowed any text", options.start);
    let remark = Diagnostic::error(span, message).with_help("leave it out, or let it allow more");
    named::in_source(vec![remark], &source.origins).pop()
}

/// A part that can be the reason why nothing matches, apart from the parts in it.
enum Suspect<'a> {
    Intersection(&'a mut Alternative),
    Complement(&'a mut Item),
    Pattern(&'a mut Item),
}

impl Suspect<'_> {
    /// Patterns can be empty on their own, and intersections because of their parts.
    fn rank(&self) -> u8 {
        match self {
            Self::Pattern(_) => 0,
            Self::Complement(_) => 1,
            Self::Intersection(_) => 2,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Intersection(_) => "intersection",
            Self::Complement(_) => "complement",
            Self::Pattern(_) => "pattern",
        }
    }

    fn span(&self) -> Span {
        match self {
            Self::Intersection(alternative) => alternative.span,
            Self::Complement(item) | Self::Pattern(item) => item.span,
        }
    }

    fn allow_everything(self) {
        let everything = || Atom::Regex { pattern: "(?s:.*)".into(), flags: "".into(), at: None };
        match self {
            Self::Intersection(alternative) => {
                let item = Item { atom: everything(), span: alternative.span, repeat: None };
                alternative.conjuncts = vec![vec![item]];
            }
            Self::Complement(item) | Self::Pattern(item) => item.atom = everything(),
        }
    }
}

/// Visits all suspects, inner ones first. The parts inside a complement are not visited separately.
fn for_each(source: &mut Source, visit: &mut impl FnMut(Suspect<'_>)) {
    for document in &mut source.documents {
        for definition in document.definitions.iter_mut().filter(|definition| !definition.is_imported) {
            in_alternation(&mut definition.body, visit);
        }
    }
}

fn in_alternation(alternation: &mut Alternation, visit: &mut impl FnMut(Suspect<'_>)) {
    for alternative in &mut alternation.alternatives {
        for item in alternative.conjuncts.iter_mut().flatten() {
            in_item(item, visit);
        }
        if alternative.conjuncts.len() > 1 {
            visit(Suspect::Intersection(alternative));
        }
    }
}

fn in_item(item: &mut Item, visit: &mut impl FnMut(Suspect<'_>)) {
    match &mut item.atom {
        Atom::Group(inner) | Atom::Maybe(inner) => in_alternation(inner, visit),
        Atom::Template(_, arguments) => {
            for argument in arguments {
                in_item(argument, visit);
            }
        }
        Atom::Not(_) => visit(Suspect::Complement(item)),
        Atom::Regex { .. } => visit(Suspect::Pattern(item)),
        _ => {}
    }
}
