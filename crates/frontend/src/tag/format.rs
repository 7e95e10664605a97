//! The typed tree of a structural tag: what a text consists of, one node for each part.
//!
//! It is the *one spec* that has two readers: [`lower`](super::lower()) makes a grammar of it, and the stream parser of the crate
//! `maskwright` reads finished or growing texts by it. Trees come from JSON ([`parse`](super::parse)) or from code that knows how a model
//! writes its tool calls.

use maskwright_grammar::TokenRef;
use serde_json::Value;

use crate::json_schema::Strictness;

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// Where it was described: a JSON pointer, or whatever helps the author to find the place.
    pub at: String,
    /// What it is.
    pub kind: Kind,
}

/// What a part of a text is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// Exactly this text.
    Const(String),
    /// A document that satisfies a JSON Schema.
    Json(Json),
    /// A text in the language of a grammar.
    Grammar(Syntax, String),
    /// A text that matches a regular expression.
    Regex(String),
    /// Any text, up to the first of the texts that may follow it.
    AnyText(AnyText),
    /// One after the other.
    Sequence(Vec<Format>),
    /// One of these.
    Or(Vec<Format>),
    /// The same, several times.
    Repeat {
        /// What is repeated.
        content: Box<Format>,
        /// At least so many times.
        min: u32,
        /// At most so many times.
        max: Option<u32>,
    },
    /// Something between two markers.
    Tag(Tag),
    /// Tags that are separated by a text, and nothing else.
    Separated(Separated),
    /// Free text in which some markers call for something.
    Dispatch(Dispatch),
    /// One token.
    Token(TokenRef),
    /// One token, but none of these. Tokens that end the text are never meant.
    ExcludeToken(Vec<TokenRef>),
    /// Any number of tokens, but none of these.
    AnyTokens(Vec<TokenRef>),
}

/// A document that satisfies a JSON Schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Json {
    /// Where the schema was given; its problems are told by pointers from here on.
    pub at: String,
    /// The schema.
    pub schema: Value,
    /// How the document is written.
    pub style: Style,
    /// Whether the members of objects may come in any order.
    pub any_order: bool,
    /// How much white space may stand in one place, if that was said.
    pub max_whitespace: Option<u32>,
    /// Texts that no string and no key contains.
    pub excludes: Vec<String>,
    /// How closed its objects are, if they are not like those of other documents.
    pub objects: Option<Strictness>,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// As JSON.
    #[default]
    Json,
    /// `<parameter=key>` … `</parameter>`.
    QwenXml,
    /// `<parameter name="key">` … `</parameter>`.
    MinimaxXml,
    /// `<｜DSML｜parameter name="key" string="true">` … `</｜DSML｜parameter>`.
    DeepseekXml,
    /// `<｜DSML｜ parameter name="key" string="true">` … `</｜DSML｜ parameter>`.
    DeepseekV41Xml,
    /// `<arg_key>key</arg_key><arg_value>` … `</arg_value>`.
    GlmXml,
    /// `<cofl:value name="key" type="raw">` … `</cofl:value>`, values in values.
    CohereXml,
    /// `<steptml:parameter name="key">` … `</steptml:parameter>`.
    Step3Xml,
    /// `<|open|>argument key="key" type="string"<|sep|>` … `<|close|>argument<|sep|>`.
    KimiK3Xml,
    /// `]<]minimax[>[<key>` … `]<]minimax[>[</key>`, values in values.
    MinimaxM3Xml,
    /// `key=value, key=value`, as in a call of Python.
    Python,
    /// `key:value,key:value`, with strings between `<|"|>`.
    Gemma4,
}

/// The notation of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// `root ::= …`.
    Ebnf,
    /// `start: …`.
    Lark,
}

/// Any text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnyText {
    /// Texts that it does not contain.
    pub excludes: Vec<String>,
    /// At least so many characters.
    pub min_chars: u32,
    /// At most so many characters.
    pub max_chars: Option<u32>,
    /// At most so many tokens.
    pub max_tokens: Option<u32>,
}

/// Something between two markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// Where it was described.
    pub at: String,
    /// What it begins with.
    pub begin: Marker,
    /// What stands in it.
    pub content: Box<Format>,
    /// What it ends with: one of these.
    pub end: Vec<Marker>,
    /// What the tag is to those who read the text.
    pub role: Role,
}

/// A text, or a token, that tells where something begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A text. Where it contains the name of a special token, the token may be written as well.
    Text(String),
    /// A token and nothing else.
    Token(TokenRef),
}

/// What a tag is to those who read the text. A grammar does not care.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing special: a tag like others.
    #[default]
    Plain,
    /// What the model thinks before it answers.
    Reasoning,
    /// Part of the answer; only the markers are not.
    Text,
    /// A wrapper, such as the one around a list of calls: neither it nor its markers are reported.
    Section,
    /// A call of the tool with this name. The last JSON document in it, or else its whole content, is the arguments.
    Call(String),
    /// The id of the call that begins next. Its content is not part of the answer.
    CallId,
}

/// Tags that are separated by a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Separated {
    /// The tags.
    pub tags: Vec<Tag>,
    /// More tags, behind which the list is over.
    pub last: Vec<Tag>,
    /// What stands between two of them.
    pub separator: String,
    /// Whether there must be one.
    pub at_least_one: bool,
    /// Whether there may be only one.
    pub stop_after_first: bool,
}

/// Free text in which some markers call for something.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// What the markers call for.
    pub arms: Vec<Arm>,
    /// What the free text does not contain.
    pub excludes: Vec<Marker>,
    /// Whether the text begins with an arm, before any free text.
    pub at_least_one: bool,
    /// Whether it ends behind the first arm.
    pub stop_after_first: bool,
    /// Whether only tokens are markers, so that the free text is made of whole tokens.
    pub by_token: bool,
}

/// A marker in free text, and what must follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Where the marker was described.
    pub at: String,
    /// What ends the free text.
    pub trigger: Marker,
    /// What must follow: whole tags, which begin with the trigger, or what stands behind it.
    pub then: Then,
}

/// What follows a trigger.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// One of these tags. The trigger is the beginning of their own.
    Tags(Vec<Tag>),
    /// This, behind the trigger.
    Format(Format),
}

impl Format {
    /// A part that was described at a place.
    pub fn new(at: impl Into<String>, kind: Kind) -> Self {
        Self { at: at.into(), kind }
    }
}

impl Marker {
    /// Whether nothing has to be written.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// The marker as people see it.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Token(TokenRef::Name(name)) => format!("token {name:?}"),
            Self::Token(TokenRef::Ids(first, last)) if first == last => format!("token {first}"),
            Self::Token(TokenRef::Ids(first, last)) => format!("tokens {first} to {last}"),
        }
    }
}

impl Style {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Json,
        Self::QwenXml,
        Self::MinimaxXml,
        Self::DeepseekXml,
        Self::DeepseekV41Xml,
        Self::GlmXml,
        Self::CohereXml,
        Self::KimiK3Xml,
        Self::Step3Xml,
        Self::MinimaxM3Xml,
        Self::Python,
        Self::Gemma4,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::QwenXml => "qwen_xml",
            Self::MinimaxXml => "minimax_xml",
            Self::DeepseekXml => "deepseek_xml",
            Self::DeepseekV41Xml => "deepseek_v4_1_xml",
            Self::GlmXml => "glm_xml",
            Self::CohereXml => "cohere_xml",
            Self::KimiK3Xml => "kimi_k3_xml",
            Self::Step3Xml => "step3_xml",
            Self::MinimaxM3Xml => "minimax_m3_xml",
            Self::Python => "python",
            Self::Gemma4 => "gemma4",
        }
    }

    /// The style of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.name() == name)
    }
}
