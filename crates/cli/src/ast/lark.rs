//! The tree of a Lark grammar.

use maskwright::lark::ast::{Alternation, Alternative, Atom, Definition, Document, Item, Sort, Source};

use super::{Tree, times};
use crate::readable;

/// Returns the tree of the main document, which contains the nested ones.
pub(super) fn source_tree(source: &Source) -> Tree {
    match source.documents.last() {
        Some(document) => document_tree("grammar", document, source),
        None => Tree::leaf("grammar"),
    }
}

fn document_tree(label: &str, document: &Document, source: &Source) -> Tree {
    let definitions = document.definitions.iter().map(|definition| definition_tree(definition, source));
    let ignored =
        document.ignored.iter().map(|body| Tree::new("ignore", vec![alternation_tree(body, source)]));
    Tree::new(label, definitions.chain(ignored).collect())
}

fn definition_tree(definition: &Definition, source: &Source) -> Tree {
    let sort = match definition.sort {
        Sort::Rule => "rule",
        Sort::Terminal => "terminal",
    };
    let parameter = if definition.is_parametric { "::_" } else { "" };
    let label = format!("{sort} {}{parameter}", definition.name);
    Tree::new(label, vec![alternation_tree(&definition.body, source)])
}

fn alternation_tree(alternation: &Alternation, source: &Source) -> Tree {
    match &alternation.alternatives[..] {
        [only] => alternative_tree(only, source),
        several => Tree::new("one of", several.iter().map(|part| alternative_tree(part, source)).collect()),
    }
}

fn alternative_tree(alternative: &Alternative, source: &Source) -> Tree {
    let sequence = |items: &Vec<Item>| match &items[..] {
        [] => Tree::leaf("empty"),
        [only] => item_tree(only, source),
        items => Tree::new("sequence", items.iter().map(|item| item_tree(item, source)).collect()),
    };
    let tree = match &alternative.conjuncts[..] {
        [only] => sequence(only),
        several => Tree::new("all of", several.iter().map(sequence).collect()),
    };
    match &alternative.condition {
        None => tree,
        Some((condition, _)) => Tree::new(format!("if {condition:?}"), vec![tree]),
    }
}

fn item_tree(item: &Item, source: &Source) -> Tree {
    let atom = atom_tree(&item.atom, source);
    match item.repeat {
        None => atom,
        Some((min, max)) => Tree::new(times(min, max), vec![atom]),
    }
}

fn atom_tree(atom: &Atom, source: &Source) -> Tree {
    match atom {
        Atom::Literal { text, ignore_case } => {
            let case = if *ignore_case { " in any case" } else { "" };
            Tree::leaf(format!("literal {}{case}", readable::quoted(text.as_bytes())))
        }
        Atom::Range(set) => Tree::leaf(format!("class {set:?}")),
        Atom::Regex { pattern, flags, .. } => Tree::leaf(format!("pattern /{pattern}/{flags}")),
        Atom::Substring(chunks) => Tree::leaf(format!("substring of {} chunks", chunks.len())),
        Atom::Name(name) => Tree::leaf(format!("call {name}")),
        Atom::Call(name, update) => Tree::leaf(format!("call {name} with {update:?}")),
        Atom::Template(name, arguments) => {
            let arguments = arguments.iter().map(|argument| item_tree(argument, source));
            Tree::new(format!("call {name}"), arguments.collect())
        }
        Atom::Token(set) => Tree::leaf(set.to_string()),
        Atom::Json(text, _) => Tree::leaf(format!("schema {text}")),
        Atom::Foreign(name, _) => Tree::leaf(format!("grammar @{name}")),
        Atom::Nested(place) => match source.documents.get(*place) {
            Some(document) => document_tree("nested grammar", document, source),
            None => Tree::leaf("nested grammar"),
        },
        Atom::Group(inner) => alternation_tree(inner, source),
        Atom::Maybe(inner) => Tree::new(times(0, Some(1)), vec![alternation_tree(inner, source)]),
        Atom::Not(inner) => Tree::new("not", vec![item_tree(inner, source)]),
    }
}
