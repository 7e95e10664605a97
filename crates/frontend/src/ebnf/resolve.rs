//! Resolves names: which rule each stands for, and which rules are reachable.

use std::collections::{HashMap, HashSet};

use maskwright_automata::must_stop;
use maskwright_grammar::{Diagnostic, Span};

use super::{Options, ast::Document};
use crate::notation::{nearest, remarks::Remarks};
use crate::stopped::stopped;

/// The names of a document, all of them known.
pub(super) struct Scope<'a> {
    /// The index of every rule in the document.
    pub(super) rules: HashMap<&'a str, usize>,
    /// The index of the root.
    pub(super) root: usize,
    /// Whether the root mentions the rule, directly or through others.
    pub(super) reachable: Vec<bool>,
}

/// Resolves every name.
pub(super) fn resolve<'a>(document: &'a Document, options: &Options) -> Result<Scope<'a>, Vec<Diagnostic>> {
    let mut errors = Remarks::default();
    let rules = index_rules(document, &mut errors);
    find_undefined(document, &rules, &mut errors);
    let Some(&root) = rules.get(&*options.root) else {
        errors.push(missing_root(document, &options.root));
        return Err(errors.into_vec());
    };
    if !errors.is_empty() {
        return Err(errors.into_vec());
    }
    let reachable = find_reachable(document, &rules, root);
    Ok(Scope { rules, root, reachable })
}

fn index_rules<'a>(document: &'a Document, errors: &mut Remarks) -> HashMap<&'a str, usize> {
    let mut rules = HashMap::with_capacity(document.rules.len());
    for (i, rule) in document.rules.iter().enumerate() {
        let first = *rules.entry(&*rule.name).or_insert(i);
        if first != i {
            let remark = Diagnostic::error(rule.name_span, format!("rule `{}` is defined twice", rule.name));
            errors.push(remark.with_help("join the two with `|`, or rename one"));
        }
    }
    rules
}

/// Reports every undefined name, at its first use.
fn find_undefined(document: &Document, rules: &HashMap<&str, usize>, errors: &mut Remarks) {
    let mut reported = HashSet::new();
    for rule in &document.rules {
        if must_stop() {
            errors.push(stopped(rule.name_span.start));
            return;
        }
        for (name, span) in rule.body.references() {
            if !rules.contains_key(name) && reported.insert(name) {
                // A search for a similar name costs much more than the rest, so it is skipped for errors that are not
                // shown.
                let help =
                    if errors.is_full() { String::new() } else { undefined_help(name, document, rules) };
                errors.push(Diagnostic::error(span, format!("rule `{name}` is not defined")).with_help(help));
            }
        }
    }
}

fn undefined_help(name: &str, document: &Document, rules: &HashMap<&str, usize>) -> String {
    if name.contains('.') && name.split('.').all(|part| rules.contains_key(part)) {
        let spaced = name.replace('.', " . ");
        return format!("for any character between two rules, put spaces around the dot: `{spaced}`");
    }
    match nearest(name, names(document)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("define it with `{name} ::= …`, or write `\"{name}\"` for the text itself"),
    }
}

fn missing_root(document: &Document, root: &str) -> Diagnostic {
    let Some(first) = document.rules.first() else {
        let remark = Diagnostic::error(Span::at(0), "the grammar has no rules");
        return remark.with_help(format!("write at least `{root} ::= …`"));
    };
    let candidate = nearest(root, names(document)).unwrap_or(&first.name);
    Diagnostic::error(first.name_span, format!("no rule is called `{root}`, which is where a text begins"))
        .with_help(format!("add `{root} ::= {candidate}`, or name another rule to begin with"))
}

/// Returns the rules that the root needs: a walk over the mentions.
fn find_reachable(document: &Document, rules: &HashMap<&str, usize>, root: usize) -> Vec<bool> {
    let mut reachable = vec![false; document.rules.len()];
    let mut work = vec![root];
    while let Some(place) = work.pop() {
        if !core::mem::replace(&mut reachable[place], true) {
            let mentioned = document.rules[place].body.references().into_iter();
            work.extend(mentioned.filter_map(|(name, _)| rules.get(name)));
        }
    }
    reachable
}

fn names(document: &Document) -> impl Iterator<Item = &str> {
    document.rules.iter().map(|rule| &*rule.name)
}
