//! The grammar as it was written, with spans.
//!
//! ```text
//! root ::= "a" | [b-d]+ (x y)?
//!          └─┬─┘ └──┬─┘ └──┬─┘    Item: an atom and its repetition
//!          └─┬─┘ └──────┬────┘    Sequence
//!          └────────┬────────┘    Alternation
//! └─────────────┬────────────┘    Rule
//! ```
//!
//! Only groups nest, and the parser bounds how deep: code that calls itself once per
//! [`Atom::Group`] is safe.

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
    /// What the rule is called.
    pub name: Box<str>,
    /// Where the name stands.
    pub name_span: Span,
    /// What stands in brackets behind the name.
    pub attributes: Attributes,
    /// What the rule matches.
    pub body: Alternation,
}

/// `[max_tokens=32, capture="answer"]`, between the name of a rule and `::=`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// At most so many tokens.
    pub max_tokens: Option<u32>,
    /// At most so many characters, with its place.
    pub max_chars: Option<(u32, Span)>,
    /// `lazy`: ends as soon as it may, with its place.
    pub lazy: Option<Span>,
    /// The name under which its text is told: empty for that of the rule.
    pub capture: Option<Box<str>>,
    /// The temperature at which tokens inside it are meant to be drawn, with its place.
    pub temperature: Option<(Temperature, Span)>,
}

/// Alternatives between `|`; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternation {
    /// The alternatives.
    pub alternatives: Vec<Sequence>,
    /// From the first alternative to the last; with its parentheses, if it has some.
    pub span: Span,
}

/// Items one after the other; none at all is the empty text.
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
    /// What stands here.
    pub atom: Atom,
    /// Where the atom stands.
    pub span: Span,
    /// How often, if that was said.
    pub repeat: Option<Repeat>,
}

/// The smallest parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Atom {
    /// `"text"` or `'text'`, with the escapes resolved.
    Literal(Box<str>),
    /// `[a-z]` or `[^a-z]`, as the set that it stands for.
    Class(CharSet),
    /// `.`: any character, line breaks included.
    Any,
    /// One token of the vocabulary: `<name>` and its kin in GBNF, `Token(…)` and `ExcludeToken(…)` in EBNF.
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

/// Free text, or free tokens, in which triggers lead into rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The triggers, with their rules. Without one, everything is free.
    pub arms: Vec<Arm>,
    /// What does not occur outside of the rules.
    pub excludes: Vec<Trigger>,
    /// Whether it goes on behind a rule.
    pub is_loop: bool,
    /// Whether tokens stand between the rules, and not text.
    pub of_tokens: bool,
}

/// A trigger, and the rule that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The trigger.
    pub trigger: Trigger,
    /// The name of the rule.
    pub rule: Box<str>,
    /// Where the name stands.
    pub span: Span,
}

/// What leads into a rule.
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
    /// The least number of times.
    pub min: u32,
    /// The greatest number of times; `None` where there is no bound.
    pub max: Option<u32>,
    /// Where the repetition stands.
    pub span: Span,
}

impl Alternation {
    /// Every mention of a rule inside, with its place, in the order of writing.
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
