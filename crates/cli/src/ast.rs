//! Shows the syntax tree of a constraint.

mod lark;

use std::fmt::Write as _;

use maskwright::weighted::{NonterminalId, Pcfg, RuleId};
use maskwright::{Constraint, Error, ebnf, gbnf, json_schema, regex, tag};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::readable;
use crate::source::Source;

/// A labeled tree. Frontends limit the nesting of a source, so recursion over the levels is safe.
#[derive(Debug)]
pub(crate) struct Tree {
    label: String,
    parts: Vec<Tree>,
}

/// The maximum length of a label in characters: a Unicode class has hundreds of ranges.
const MAX_LABEL_CHARS: usize = 100;

/// Parses the constraint, without lowering it.
pub(crate) fn read(source: &Source) -> Result<Tree, Failure> {
    let options = &source.options;
    let wrong = |error: Error| source.failure(&error);
    match &source.constraint {
        Constraint::Regex(pattern) => match regex::parse(pattern, &options.regex) {
            Ok(ast) => Ok(pattern_tree(&ast)),
            Err(error) => Err(wrong(Error::Source(vec![error]))),
        },
        Constraint::Ebnf(text) => match ebnf::parse(text, &options.ebnf) {
            Ok(document) => Ok(document_tree(&document)),
            Err(errors) => Err(wrong(Error::Source(errors))),
        },
        Constraint::Gbnf(text) => match gbnf::parse(text, &options.ebnf) {
            Ok(document) => Ok(document_tree(&document)),
            Err(errors) => Err(wrong(Error::Source(errors))),
        },
        Constraint::Lark(text) => match maskwright::lark::parse(text, &options.lark) {
            Ok(source) => Ok(lark::source_tree(&source)),
            Err(errors) => Err(wrong(Error::Source(errors))),
        },
        Constraint::Choice(choices) => {
            let parts =
                choices.iter().map(|choice| Tree::leaf(readable::quoted(choice.as_bytes()))).collect();
            Ok(Tree::new("one of", parts))
        }
        Constraint::JsonSchema(text) => {
            // Reports errors in the schema, and refuses schemas that are nested too deeply.
            json_schema::grammar(text, &options.json_schema).map_err(|error| wrong(Error::Schema(error)))?;
            let value: Value =
                serde_json::from_str(text).map_err(|error| Failure::sentence(error.to_string()))?;
            Ok(value_tree("schema", &value))
        }
        Constraint::StructuralTag(text) => {
            tag::parse(text, &tag::Options::default()).map_err(|error| wrong(Error::Tag(error)))?;
            let value: Value =
                serde_json::from_str(text).map_err(|error| Failure::sentence(error.to_string()))?;
            Ok(value_tree("tag", &value))
        }
        Constraint::Pcfg(text) => match Pcfg::parse(text, &options.pcfg) {
            Ok(pcfg) => Ok(weighted_tree(&pcfg)),
            Err(errors) => Err(wrong(Error::Source(errors))),
        },
        other => Err(Failure::sentence(format!("there is no picture of a {} constraint yet", other.kind()))),
    }
}

/// Returns the rules by symbol.
fn weighted_tree(pcfg: &Pcfg) -> Tree {
    let rules = || (0..).map(RuleId).zip(pcfg.rules());
    let symbols = (0..pcfg.nonterminals() as u32).map(NonterminalId);
    let symbol = |id: NonterminalId| {
        let own = rules().filter(|(_, rule)| rule.left == id);
        Tree::new(pcfg.name(id), own.map(|(rule, _)| Tree::leaf(pcfg.show_rule(rule))).collect())
    };
    Tree::new("weighted grammar", symbols.map(symbol).collect())
}

impl Tree {
    fn new(label: impl Into<String>, parts: Vec<Self>) -> Self {
        Self { label: readable::clipped(&label.into(), MAX_LABEL_CHARS), parts }
    }

    fn leaf(label: impl Into<String>) -> Self {
        Self::new(label, Vec::new())
    }

    /// Returns the tree with two spaces for each level.
    pub(crate) fn indented(&self) -> String {
        let mut out = String::new();
        self.indent(0, &mut out);
        out
    }

    fn indent(&self, level: usize, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:width$}{}", "", self.label, width = level * 2);
        self.parts.iter().for_each(|part| part.indent(level + 1, out));
    }

    /// Returns the tree as a graph in the DOT language.
    pub(crate) fn dot(&self) -> String {
        let mut out = String::from("digraph ast {\n  node [shape=box, style=rounded];\n");
        let mut next = 0;
        self.draw(&mut next, &mut out);
        out.push_str("}\n");
        out
    }

    fn draw(&self, next: &mut usize, out: &mut String) -> usize {
        let own = *next;
        *next += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  n{own} [label={}];", dot_quoted(&self.label));
        for part in &self.parts {
            let child = part.draw(next, out);
            let _ = writeln!(out, "  n{own} -> n{child};");
        }
        own
    }

    pub(crate) fn json(&self) -> Value {
        let parts: Vec<Value> = self.parts.iter().map(Self::json).collect();
        json!({"label": self.label, "parts": parts})
    }
}

/// Quotes a text for the DOT language.
pub(crate) fn dot_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn pattern_tree(ast: &regex::Ast) -> Tree {
    let all = |parts: &[regex::Ast]| parts.iter().map(pattern_tree).collect();
    match ast.kind() {
        regex::Kind::Empty => Tree::leaf("empty"),
        regex::Kind::Char(c) => Tree::leaf(format!("char {}", readable::quoted(c.to_string().as_bytes()))),
        regex::Kind::Class(set) => Tree::leaf(format!("class {set:?}")),
        regex::Kind::Concat(parts) => Tree::new("sequence", all(parts)),
        regex::Kind::Alt(parts) => Tree::new("one of", all(parts)),
        regex::Kind::Repeat { body, min, max } => Tree::new(times(*min, *max), vec![pattern_tree(body)]),
        regex::Kind::Place(place) => Tree::leaf(match place {
            regex::Place::TextStart => "start of the text".into(),
            regex::Place::TextEnd => "end of the text".into(),
            regex::Place::LineStart => "start of a line".into(),
            regex::Place::LineEnd => "end of a line".into(),
            regex::Place::Word { holds, .. } => format!("word boundary {holds:?}"),
        }),
        regex::Kind::Look(look, body) => {
            let not = if look.negated { "not " } else { "" };
            let place = if look.ahead { "ahead" } else { "behind" };
            Tree::new(format!("{not}{place}"), vec![pattern_tree(body)])
        }
    }
}

fn times(min: u32, max: Option<u32>) -> String {
    match max {
        None => format!("repeat {min} or more times"),
        Some(max) if max == min => format!("repeat {min} times"),
        Some(max) => format!("repeat {min} to {max} times"),
    }
}

fn document_tree(document: &ebnf::ast::Document) -> Tree {
    let rule =
        |rule: &ebnf::ast::Rule| Tree::new(format!("rule {}", rule.name), vec![alternation_tree(&rule.body)]);
    Tree::new("grammar", document.rules.iter().map(rule).collect())
}

fn alternation_tree(alternation: &ebnf::ast::Alternation) -> Tree {
    let sequence = |sequence: &ebnf::ast::Sequence| match &sequence.items[..] {
        [] => Tree::leaf("empty"),
        [only] => item_tree(only),
        items => Tree::new("sequence", items.iter().map(item_tree).collect()),
    };
    match &alternation.alternatives[..] {
        [only] => sequence(only),
        alternatives => Tree::new("one of", alternatives.iter().map(sequence).collect()),
    }
}

fn item_tree(item: &ebnf::ast::Item) -> Tree {
    let atom = match &item.atom {
        ebnf::ast::Atom::Literal(text) => {
            Tree::leaf(format!("literal {}", readable::quoted(text.as_bytes())))
        }
        ebnf::ast::Atom::Class(set) => Tree::leaf(format!("class {set:?}")),
        ebnf::ast::Atom::Any => Tree::leaf("any character"),
        ebnf::ast::Atom::Token(set) => Tree::leaf(set.to_string()),
        ebnf::ast::Atom::Quoted(grammar) => Tree::leaf(format!("pattern {grammar}")),
        ebnf::ast::Atom::Dispatch(dispatch) => {
            let arm = |arm: &ebnf::ast::Arm| Tree::leaf(format!("{} call {}", arm.trigger, arm.rule));
            let excludes = dispatch.excludes.iter().map(|exclude| Tree::leaf(format!("not {exclude}")));
            let free = if dispatch.of_tokens { "tokens" } else { "text" };
            let often = if dispatch.is_loop { "any number of times" } else { "at most once" };
            let arms = dispatch.arms.iter().map(arm).chain(excludes).collect();
            Tree::new(format!("{free} with triggers, {often}"), arms)
        }
        ebnf::ast::Atom::Rule(name) => Tree::leaf(format!("call {name}")),
        ebnf::ast::Atom::Group(group) => alternation_tree(group),
    };
    match item.repeat {
        None => atom,
        Some(repeat) => Tree::new(times(repeat.min, repeat.max), vec![atom]),
    }
}

fn value_tree(name: &str, value: &Value) -> Tree {
    match value {
        Value::Object(map) => {
            Tree::new(name, map.iter().map(|(key, value)| value_tree(key, value)).collect())
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            Tree::new(name, items.map(|(at, item)| value_tree(&format!("[{at}]"), item)).collect())
        }
        plain => Tree::leaf(format!("{name}: {plain}")),
    }
}
