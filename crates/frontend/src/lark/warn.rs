//! What is right, but perhaps not meant: definitions that nothing uses, attributes without effect, rules that can never match.

use maskwright_grammar::{Diagnostic, Grammar, RuleId};

use super::ast::Definition;
use super::resolve::Scope;
use crate::notation::{check::find_living, remarks::Remarks};

/// What a definition may need that no text matches, beside rules without end.
const NOTHING: &str = "something that no text matches";

/// Definitions that nothing leads to.
pub(super) fn unused(scope: &Scope<'_>, warnings: &mut Remarks) {
    let start = &scope.document.definitions[scope.start].name;
    for (definition, _) in scope.document.definitions.iter().zip(&scope.reachable).filter(|(_, used)| !**used)
    {
        if !definition.is_imported {
            let message = format!("`{}` is not used: nothing leads to it from `{start}`", definition.name);
            warnings.push(Diagnostic::warning(definition.span, message).with_help("use it, or remove it"));
        }
    }
}

/// Attributes that say nothing about which texts match.
pub(super) fn annotations(scope: &Scope<'_>, warnings: &mut Remarks) {
    for definition in &scope.document.definitions {
        let attributes = &definition.attributes;
        let captures = attributes.captures.iter().map(|place| ("a capture", *place));
        for (what, place) in captures.chain(attributes.temperature.map(|place| ("a temperature", place))) {
            let message =
                format!("{what} does not change which texts match, and nothing else is done with it");
            warnings.push(
                Diagnostic::warning(place, message)
                    .with_help("leave it out, or see to it where tokens are sampled"),
            );
        }
    }
}

/// Rules that can never match. If no text can match at all, that is an error.
pub(super) fn dead(
    grammar: &Grammar,
    start: &Definition,
    rules: &[(&Definition, RuleId)],
    warnings: &mut Remarks,
) -> Result<(), Diagnostic> {
    let life = find_living(grammar);
    let dead = life.dead_rules();
    if dead.contains(&grammar.root()) {
        // The start is what was asked for first; the root may have ignored text before it.
        let rule = rules.first().map_or(grammar.root(), |(_, rule)| *rule);
        let message = format!("no text can match `{}`, because {}", start.name, life.explain(rule, NOTHING));
        return Err(Diagnostic::error(start.span, message).with_help("add an alternative that ends"));
    }
    for (definition, rule) in rules.iter().filter(|(_, rule)| dead.binary_search(rule).is_ok()) {
        // Of thousands of dead rules only a few are shown, and explaining may take a walk over all.
        let reason = if warnings.is_full() { String::new() } else { life.explain(*rule, NOTHING) };
        let message = format!("`{}` can never match, because {reason}", definition.name);
        let help = "what needs it is left out; add an alternative that ends";
        warnings.push(Diagnostic::warning(definition.span, message).with_help(help));
    }
    Ok(())
}
