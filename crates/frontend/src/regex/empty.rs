//! Explains why no text matches a pattern: which class has no character, or which look-around or anchor excludes all
//! texts.

use std::sync::Arc;

use maskwright_grammar::{CharSet, Diagnostic, Grammar};

use super::ast::{Ast, Kind, Look, Place};
use super::{Options, lower_ast, one_rule, parse};
use crate::culprit::culprit;

/// See [`super::why_empty`].
pub(super) fn why_empty(
    pattern: &str,
    options: &Options,
    mut is_empty: impl FnMut(&Grammar) -> Option<bool>,
) -> Option<Diagnostic> {
    let ast = parse(pattern, options).ok()?;
    let mut suspects = Vec::new();
    suspects_of(&ast, &mut suspects);
    let parts = suspects.len();
    let found = culprit(parts, |kept| {
        let mut next = 0;
        let milder = without(&ast, kept, &mut next);
        let grammar = one_rule(pattern, |builder| lower_ast(&milder, options, builder)).ok()?;
        is_empty(&grammar)
    })?;
    let suspect = suspects[found];
    let (message, help) = match suspect.kind() {
        Kind::Class(_) => (
            "no text can match this pattern, because no character is in this class".to_owned(),
            "put a character into it",
        ),
        kind => (
            format!("no text can match this pattern, and some would without this {}", name(kind)),
            "leave it out, or change what comes before or after it",
        ),
    };
    Some(Diagnostic::error(suspect.span(), message).with_help(help))
}

fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Look(Look { ahead: true, .. }, _) => "look-ahead",
        Kind::Look(Look { ahead: false, .. }, _) => "look-behind",
        Kind::Place(Place::Word { .. }) => "word boundary",
        _ => "anchor",
    }
}

/// Checks whether this part can be the reason, apart from the parts in it.
fn is_suspect(ast: &Ast) -> bool {
    match ast.kind() {
        Kind::Class(set) => set.is_empty(),
        Kind::Place(_) | Kind::Look(..) => true,
        _ => false,
    }
}

/// Collects all such parts in the order of the text. The parts inside a look-around are not collected separately.
fn suspects_of<'a>(ast: &'a Ast, found: &mut Vec<&'a Ast>) {
    if is_suspect(ast) {
        return found.push(ast);
    }
    match ast.kind() {
        Kind::Concat(parts) | Kind::Alt(parts) => parts.iter().for_each(|part| suspects_of(part, found)),
        Kind::Repeat { body, .. } => suspects_of(body, found),
        _ => {}
    }
}

/// Returns the pattern with only its first `kept` suspects. Each other suspect is replaced by a part that always
/// matches.
fn without(ast: &Ast, kept: usize, next: &mut usize) -> Ast {
    let mut all = |parts: &[Ast]| parts.iter().map(|part| without(part, kept, next)).collect();
    let kind = match ast.kind() {
        Kind::Concat(parts) => Kind::Concat(all(parts)),
        Kind::Alt(parts) => Kind::Alt(all(parts)),
        Kind::Repeat { body, min, max } => {
            Kind::Repeat { body: Box::new(without(body, kept, next)), min: *min, max: *max }
        }
        kind if is_suspect(ast) => {
            *next += 1;
            match kind {
                kind if *next <= kept => kind.clone(),
                Kind::Class(_) => Kind::Class(Arc::new(CharSet::all())),
                _ => Kind::Empty,
            }
        }
        kind => kind.clone(),
    };
    Ast::new(kind, ast.span())
}
