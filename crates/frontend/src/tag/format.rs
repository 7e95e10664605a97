//! The typed tree of a structural tag: the parts of a text, one node for each.
//!
//! It is the *one spec* that has two readers: [`lower`](super::lower()) turns it into a grammar, and the stream parser
//! of the crate `maskwright` reads finished or growing texts by it. Trees come from JSON ([`parse`](super::parse)) or
//! from code that knows how a model writes its tool calls.

use maskwright_grammar::TokenRef;
use serde_json::Value;

use crate::json_schema::Strictness;

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// The place of its description: a JSON pointer, or any other text that helps the author to find it.
    pub at: String,
    /// The kind of the part.
    pub kind: Kind,
}

/// The kind of a part of a text.
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
    /// These parts in sequence.
    Sequence(Vec<Format>),
    /// One of these parts.
    Or(Vec<Format>),
    /// One part, repeated.
    Repeat {
        /// The repeated part.
        content: Box<Format>,
        /// The minimum number of times.
        min: u32,
        /// The maximum number of times.
        max: Option<u32>,
    },
    /// Content between two markers.
    Tag(Tag),
    /// Tags that are separated by a text.
    Separated(Separated),
    /// Free text in which markers begin other parts.
    Dispatch(Dispatch),
    /// One token.
    Token(TokenRef),
    /// One token other than these. Tokens that end the text are always excluded.
    ExcludeToken(Vec<TokenRef>),
    /// Any number of tokens other than these.
    AnyTokens(Vec<TokenRef>),
}

/// A document that satisfies a JSON Schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Json {
    /// The place of the schema. The pointers of its problems continue from here.
    pub at: String,
    /// The schema.
    pub schema: Value,
    /// The notation of the document.
    pub style: Style,
    /// Whether the members of objects may come in any order.
    pub any_order: bool,
    /// The maximum amount of white space in one place, if given.
    pub max_whitespace: Option<u32>,
    /// Texts that no string and no key may contain.
    pub excludes: Vec<String>,
    /// How closed its objects are, if different from other documents.
    pub objects: Option<Strictness>,
}

/// The notation of a document.
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
    /// Texts that it must not contain.
    pub excludes: Vec<String>,
    /// The minimum number of characters.
    pub min_chars: u32,
    /// The maximum number of characters.
    pub max_chars: Option<u32>,
    /// The maximum number of tokens.
    pub max_tokens: Option<u32>,
}

/// Content between two markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// The place of its description.
    pub at: String,
    /// The marker at its start.
    pub begin: Marker,
    /// The content.
    pub content: Box<Format>,
    /// The markers at its end, of which one is written.
    pub end: Vec<Marker>,
    /// The role of the tag for readers of the text.
    pub role: Role,
}

/// A text or a token that marks where something begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A text. Where it contains the name of a special token, the token may be written instead.
    Text(String),
    /// A token only.
    Token(TokenRef),
}

/// The role of a tag for readers of the text. It does not affect the grammar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// No special role.
    #[default]
    Plain,
    /// The reasoning of the model before its answer.
    Reasoning,
    /// Part of the answer, without the markers.
    Text,
    /// A wrapper, such as the one around a list of calls: neither it nor its markers are reported.
    Section,
    /// A call of the tool with this name. The arguments are the last JSON document in the tag, or else its whole
    /// content.
    Call(String),
    /// The id of the call that begins next. Its content is not part of the answer.
    CallId,
}

/// Tags that are separated by a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Separated {
    /// The tags.
    pub tags: Vec<Tag>,
    /// More tags, after which the list ends.
    pub last: Vec<Tag>,
    /// The text between two tags.
    pub separator: String,
    /// Whether at least one tag is required.
    pub at_least_one: bool,
    /// Whether at most one tag is allowed.
    pub stop_after_first: bool,
}

/// Free text in which markers begin other parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// The markers and the parts that they begin.
    pub arms: Vec<Arm>,
    /// The markers that the free text must not contain.
    pub excludes: Vec<Marker>,
    /// Whether the text begins with an arm, before any free text.
    pub at_least_one: bool,
    /// Whether the text ends after the first arm.
    pub stop_after_first: bool,
    /// Whether only tokens are markers, so that the free text consists of whole tokens.
    pub by_token: bool,
}

/// A marker in free text, and the part that must follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The place of the marker's description.
    pub at: String,
    /// The marker that ends the free text.
    pub trigger: Marker,
    /// The part that must follow: whole tags, which begin with the trigger, or a part after the trigger.
    pub then: Then,
}

/// The part that follows a trigger.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// One of these tags. The trigger is the start of their `begin`.
    Tags(Vec<Tag>),
    /// This part, after the trigger.
    Format(Format),
}

impl Format {
    /// Creates a part that was described at a place.
    pub fn new(at: impl Into<String>, kind: Kind) -> Self {
        Self { at: at.into(), kind }
    }
}

impl Marker {
    /// Checks whether the marker is the empty text.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// Returns the marker for error messages.
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
    /// All styles.
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

    /// Returns the name of the style in JSON.
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

    /// Returns the style with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.name() == name)
    }
}
