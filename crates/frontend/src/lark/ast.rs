//! The syntax tree of a grammar, with spans.
//!
//! ```text
//! list[lazy]: "a" x~2 | B & ~C -> pair
//! │   └─┬──┘  └┬┘ └┬┘   └──┬─┘            Attributes; Items; conjuncts
//! │           └──┬──┘ | └──┬───────┘      Alternative
//! │           └────────────┬───────┘      Alternation
//! └─────────────┬──────────────────┘      Definition
//! ```
//!
//! Aliases (`-> pair`), priorities (`.2`) and the marks `?` and `!` shape Lark's trees but not the language, so the
//! parser reads and ignores them. Only groups and complements nest, and the parser bounds the depth, so code may
//! recurse once per level.

use maskwright_grammar::{CharSet, Span, Temperature, TokenSet};

use super::named::{Named, Origin};
use super::params::{Condition, Update};
use crate::json_schema;

/// A whole source: its outermost document, and the documents in `%lark { … }` or called as `@name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The documents. The outermost document is the last one.
    pub documents: Vec<Document>,
    /// The origins of the grammars that were called by name.
    pub origins: Vec<Origin>,
}

/// A list of definitions and directives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Rules and terminals, including imported ones, in the order in which they were written.
    pub definitions: Vec<Definition>,
    /// The body of each `%ignore`.
    pub ignored: Vec<Alternation>,
    /// The options of `%llguidance`.
    pub settings: Settings,
    /// From the first character to the last.
    pub span: Span,
}

/// The options of `%llguidance` that have a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether ignored text is allowed before everything else.
    pub ignored_first: bool,
    /// Whether at most one match of `%ignore` is allowed at a place, instead of any number.
    pub ignored_once: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ignored_first: true, ignored_once: false }
    }
}

/// `name: body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name.
    pub name: Box<str>,
    /// The place of the name.
    pub span: Span,
    /// A rule or a terminal.
    pub sort: Sort,
    /// Whether it has a 64-bit parameter: `name::_`.
    pub is_parametric: bool,
    /// Whether it comes from `%import`.
    pub is_imported: bool,
    /// The names in `name{x, y}`.
    pub template: Vec<Box<str>>,
    /// The attributes in brackets after the name.
    pub attributes: Attributes,
    /// The body.
    pub body: Alternation,
}

/// The two sorts of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Lowercase: may be recursive, and ignored text is allowed between its parts.
    Rule,
    /// Uppercase: a regular expression, in which nothing is ignored.
    Terminal,
}

/// `[lazy, max_tokens=10, …]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// How the end of a match is determined.
    pub ending: Option<(Ending, Span)>,
    /// `max_tokens=…`, with its place.
    pub max_tokens: Option<(u64, Span)>,
    /// `max_chars=…`, with its place.
    pub max_chars: Option<(u64, Span)>,
    /// `temperature=…`, with its place.
    pub temperature: Option<(Temperature, Span)>,
    /// `capture` and `stop_capture`, with their places.
    pub captures: Vec<CaptureAs>,
}

/// `capture`, `capture="name"` or `stop_capture="name"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureAs {
    /// The name, if it is not that of the rule.
    pub name: Option<Box<str>>,
    /// Whether the text that ends the rule is captured.
    pub is_stop: bool,
    /// The place of the attribute.
    pub span: Span,
}

/// How the end of a match is determined, if not by the following text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `lazy`: as soon as the body matches.
    Lazy,
    /// `suffix=x`: with the first `x`.
    Suffix(Atom),
    /// `stop=x`: before the first `x`.
    Stop(Atom),
}

/// Alternatives between `|`; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternation {
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
    /// From the first alternative to the last.
    pub span: Span,
}

/// Sequences between `&`; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The sequences, all of which must match.
    pub conjuncts: Vec<Vec<Item>>,
    /// `%if …`, with its place.
    pub condition: Option<(Condition, Span)>,
    /// From the first item to the last.
    pub span: Span,
}

/// An atom, perhaps repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The atom.
    pub atom: Atom,
    /// The place of the atom.
    pub span: Span,
    /// The minimum and, if bounded, the maximum number of repetitions; `None` without a repetition.
    pub repeat: Option<(u32, Option<u32>)>,
}

/// The smallest parts of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Atom {
    /// `"text"`, with the escapes resolved.
    Literal {
        /// The text.
        text: Box<str>,
        /// `"text"i`.
        ignore_case: bool,
    },
    /// `"a".."z"`.
    Range(CharSet),
    /// `/pattern/flags`.
    Regex {
        /// The pattern, as it was written.
        pattern: Box<str>,
        /// The flags.
        flags: Box<str>,
        /// The start of the pattern in the source; `None` if the pattern comes from elsewhere, such as from an import.
        at: Option<usize>,
    },
    /// `%regex { "substring_chars": … }`: any run of adjacent chunks.
    Substring(Vec<Box<str>>),
    /// A name.
    Name(Box<str>),
    /// `name::value`.
    Call(Box<str>, Update),
    /// `name{a, b}`.
    Template(Box<str>, Vec<Item>),
    /// `<name>` and similar forms: one token of the vocabulary.
    Token(TokenSet),
    /// `%json { … }`, as text, or a schema called as `@name`, possibly with its own options.
    Json(Box<str>, Option<Box<json_schema::Options>>),
    /// A grammar in another language called as `@name`, and that name.
    Foreign(Box<str>, Box<Named>),
    /// `%lark { … }` or a grammar called as `@name`: its index in [`Source::documents`].
    Nested(usize),
    /// `( … )`.
    Group(Alternation),
    /// `[ … ]`.
    Maybe(Alternation),
    /// `~x`.
    Not(Box<Item>),
}

/// An element that [`Alternation::walk`] visits.
#[derive(Clone, Copy, Debug)]
pub enum Visit<'a> {
    /// An item, and whether it is part of a terminal.
    Item(&'a Item, bool),
    /// A condition, given by its place, and whether it is part of a terminal.
    Condition(Span, bool),
}

impl Alternation {
    /// Calls `visit` for everything inside, in no particular order, except for the contents of nested documents. An
    /// intersection and a complement always count as terminals.
    pub fn walk<'a>(&'a self, in_terminal: bool, mut visit: impl FnMut(Visit<'a>)) {
        let mut groups = vec![(self, in_terminal)];
        let mut items: Vec<(&Item, bool)> = Vec::new();
        while let Some((group, in_terminal)) = groups.pop() {
            for alternative in &group.alternatives {
                if let Some((_, place)) = alternative.condition {
                    visit(Visit::Condition(place, in_terminal));
                }
                let in_terminal = in_terminal || alternative.conjuncts.len() > 1;
                items.extend(alternative.conjuncts.iter().flatten().map(|item| (item, in_terminal)));
            }
            while let Some((item, in_terminal)) = items.pop() {
                visit(Visit::Item(item, in_terminal));
                match &item.atom {
                    Atom::Group(inner) | Atom::Maybe(inner) => groups.push((inner, in_terminal)),
                    Atom::Not(inner) => items.push((inner, true)),
                    Atom::Template(_, arguments) => {
                        items.extend(arguments.iter().map(|item| (item, in_terminal)));
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Definition {
    /// Checks whether the whole definition is a terminal, in which nothing is ignored: because of its name or its
    /// attributes.
    pub fn is_terminal(&self) -> bool {
        self.sort == Sort::Terminal || self.attributes.ending.is_some() || self.attributes.max_chars.is_some()
    }
}
