//! The syntax tree of a grammar, with spans.
//!
//! ```text
//! root ::= "a" | [b-d]+ (x y)?
//!          └─┬─┘ └──┬─┘ └──┬─┘    Item: an atom and its repetition
//!          └─┬─┘ └──────┬────┘    Sequence
//!          └────────┬────────┘    Alternation
//! └─────────────┬────────────┘    Rule
//! ```
//!
//! Only groups nest, and the parser bounds their depth, so code may recurse once per [`Atom::Group`].

use core::fmt;

use maskwright_grammar::{CharSet, Grammar, Span, Temperature, TokenSet};

/// A whole source: its rules in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The rules.
    pub rules: Vec<Rule>,
}

/// `name ::= body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name.
    pub name: Box<str>,
    /// The place of the name.
    pub name_span: Span,
    /// The attributes in brackets after the name.
    pub attributes: Attributes,
    /// The body.
    pub body: Alternation,
}

/// `[max_tokens=32, capture="answer"]`, between the name of a rule and `::=`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The maximum number of tokens.
    pub max_tokens: Option<u32>,
    /// The maximum number of characters, with its place.
    pub max_chars: Option<(u32, Span)>,
    /// `lazy`: ends as soon as possible, with its place.
    pub lazy: Option<Span>,
    /// The name under which its text is captured; empty for the name of the rule.
    pub capture: Option<Box<str>>,
    /// The temperature for sampling tokens in it, with its place.
    pub temperature: Option<(Temperature, Span)>,
}

/// Alternatives between `|`; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternation {
    /// The alternatives.
    pub alternatives: Vec<Sequence>,
    /// From the first alternative to the last; including its parentheses, if any.
    pub span: Span,
}

/// Items in sequence. No items are the empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The items.
    pub items: Vec<Item>,
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
    /// The repetition, if any.
    pub repeat: Option<Repeat>,
}

/// The smallest parts of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Atom {
    /// `"text"` or `'text'`, with the escapes resolved.
    Literal(Box<str>),
    /// `[a-z]` or `[^a-z]`, as the set of its characters.
    Class(CharSet),
    /// `.`: any character, including line breaks.
    Any,
    /// One token of the vocabulary: `<name>` and similar forms in GBNF, `Token(…)` and `ExcludeToken(…)` in EBNF.
    Token(TokenSet),
    /// `TagDispatch(…)` or `TokenTagDispatch(…)`.
    Dispatch(Dispatch),
    /// `Regex(…)`, as a grammar.
    Quoted(Grammar),
    /// The name of a rule.
    Rule(Box<str>),
    /// `( … )`.
    Group(Alternation),
}

/// Free text, or free tokens, in which triggers start rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The triggers, with their rules. Without any, everything is free.
    pub arms: Vec<Arm>,
    /// Triggers that must not occur outside the rules.
    pub excludes: Vec<Trigger>,
    /// Whether it continues after a rule.
    pub is_loop: bool,
    /// Whether tokens, instead of text, are between the rules.
    pub of_tokens: bool,
}

/// A trigger, and the rule that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The trigger.
    pub trigger: Trigger,
    /// The name of the rule.
    pub rule: Box<str>,
    /// The place of the name.
    pub span: Span,
}

/// A text or a token that starts a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A text.
    Text(Box<str>),
    /// A token, by its number.
    Token(u32),
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Token(token) => write!(f, "{token}"),
        }
    }
}

/// `*`, `+`, `?`, `{n}`, `{n,}` or `{n,m}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The minimum number of times.
    pub min: u32,
    /// The maximum number of times; `None` for no bound.
    pub max: Option<u32>,
    /// The place of the repetition.
    pub span: Span,
}

impl Alternation {
    /// Returns every mention of a rule inside, with its place, in the order of writing.
    pub fn references(&self) -> Vec<(&str, Span)> {
        let (mut found, mut groups) = (Vec::new(), vec![self]);
        while let Some(group) = groups.pop() {
            for item in group.alternatives.iter().flat_map(|sequence| &sequence.items) {
                match &item.atom {
                    Atom::Rule(name) => found.push((&**name, item.span)),
                    Atom::Group(inner) => groups.push(inner),
                    Atom::Dispatch(dispatch) => {
                        found.extend(dispatch.arms.iter().map(|arm| (&*arm.rule, arm.span)));
                    }
                    Atom::Literal(_) | Atom::Class(_) | Atom::Any | Atom::Token(_) | Atom::Quoted(_) => {}
                }
            }
        }
        found.sort_unstable_by_key(|(_, span)| span.start);
        found
    }
}
