//! How the styles of documents write a value: as data, for writers and for readers.
//!
//! ```text
//!   <cofl:value name="city" type="raw">Oslo</cofl:value>
//!   └── open ──────┘└name┘└─ behind ──┘└text┘└─ close ──┘
//! ```
//!
//! The part after the name may depend on the type of the value. Then the style itself *states* the type, and a reader
//! needs no schema. In the other styles a value is written without quotes if it can only be a string, and as JSON
//! otherwise.

use super::format::Style;
use super::types::Types;

/// How one style writes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The text before the name.
    pub open: &'static str,
    /// The text before the part after the name, for values without a name: the items of lists. A style with this field
    /// writes objects and lists as nested values instead of JSON, where it can.
    pub item: Option<&'static str>,
    /// The text after the name, by the type of the value. The first entry that fits is written, and all of them are
    /// read.
    pub behind: &'static [(Types, &'static str)],
    /// The position inside that text where a line break is allowed, if any.
    pub gap: Option<usize>,
    /// The text after the value. The value does not contain it.
    pub close: &'static str,
    /// Whether the closing tag also contains the name: `close`, `</`, the name, and `>`.
    pub closes_by_name: bool,
    /// Characters of names that are written differently.
    pub escapes: &'static [(char, &'static str)],
    /// Whether a line break after the opening tag, and one before the closing tag, are not part of a string.
    pub trims: bool,
}

const QWEN: Wire = Wire {
    open: "<parameter=",
    item: None,
    behind: &[(Types::ALL, ">")],
    gap: None,
    close: "</parameter>",
    closes_by_name: false,
    escapes: &[],
    trims: true,
};

const MINIMAX: Wire = Wire { open: "<parameter name=\"", behind: &[(Types::ALL, "\">")], ..QWEN };

const STEP_3: Wire = Wire { open: "<steptml:parameter name=\"", close: "</steptml:parameter>", ..MINIMAX };

const GLM: Wire = Wire {
    open: "<arg_key>",
    behind: &[(Types::ALL, "</arg_key><arg_value>")],
    gap: Some("</arg_key>".len()),
    close: "</arg_value>",
    ..QWEN
};

const DEEPSEEK: Wire = Wire {
    open: "<｜DSML｜parameter name=\"",
    behind: &[(Types::TEXT, "\" string=\"true\">"), (Types::NO_TEXT, "\" string=\"false\">")],
    close: "</｜DSML｜parameter>",
    ..QWEN
};

const DEEPSEEK_V4_1: Wire =
    Wire { open: "<｜DSML｜ parameter name=\"", close: "</｜DSML｜ parameter>", ..DEEPSEEK };

const KIMI_K3: Wire = Wire {
    open: "<|open|>argument key=\"",
    behind: &[
        (Types::TEXT, "\" type=\"string\"<|sep|>"),
        (Types::NUMBER, "\" type=\"number\"<|sep|>"),
        (Types::BOOLEAN, "\" type=\"boolean\"<|sep|>"),
        (Types::NULL, "\" type=\"null\"<|sep|>"),
        (Types::OBJECT, "\" type=\"object\"<|sep|>"),
        (Types::ARRAY, "\" type=\"array\"<|sep|>"),
        // The format has no such type, but models know the word from schemas, and write it where no schema gives the
        // type.
        (Types::NUMBER, "\" type=\"integer\"<|sep|>"),
    ],
    close: "<|close|>argument<|sep|>",
    escapes: &[('&', "&amp;"), ('"', "&quot;")],
    trims: false,
    ..QWEN
};

const COHERE: Wire = Wire {
    open: "<cofl:value name=\"",
    item: Some("<cofl:value"),
    behind: &[
        (Types::TEXT, "\" type=\"raw\">"),
        (Types::SCALAR, "\" type=\"json\">"),
        (Types::OBJECT, "\" type=\"dict\">"),
        (Types::ARRAY, "\" type=\"list\">"),
    ],
    close: "</cofl:value>",
    escapes: &[('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")],
    trims: false,
    ..QWEN
};

const MINIMAX_M3: Wire = Wire {
    open: "]<]minimax[>[<",
    item: Some("]<]minimax[>[<item"),
    behind: &[(Types::ALL, ">")],
    close: "]<]minimax[>[",
    closes_by_name: true,
    trims: false,
    ..QWEN
};

/// Returns how a style writes its values one by one, or `None` for styles that write a document as one text.
pub fn wire(style: Style) -> Option<Wire> {
    match style {
        Style::Json | Style::Python | Style::Gemma4 => None,
        Style::QwenXml => Some(QWEN),
        Style::MinimaxXml => Some(MINIMAX),
        Style::DeepseekXml => Some(DEEPSEEK),
        Style::DeepseekV41Xml => Some(DEEPSEEK_V4_1),
        Style::GlmXml => Some(GLM),
        Style::CohereXml => Some(COHERE),
        Style::KimiK3Xml => Some(KIMI_K3),
        Style::Step3Xml => Some(STEP_3),
        Style::MinimaxM3Xml => Some(MINIMAX_M3),
    }
}

impl Wire {
    /// Returns the text after the name for values of some types: each text with the types that it covers. Each type is
    /// in one entry.
    pub fn parts(&self, types: Types) -> impl Iterator<Item = (Types, &'static str)> {
        let mut left = types;
        self.behind.iter().filter_map(move |&(group, text)| {
            let here = left.and(group);
            left = left.without(group);
            (!here.is_empty()).then_some((here, text))
        })
    }

    /// Returns other words for types that are also in [`parts`](Self::parts).
    pub fn synonyms(&self) -> impl Iterator<Item = (Types, &'static str)> {
        let mut left = Types::ALL;
        self.behind.iter().copied().filter(move |(group, _)| {
            let is_again = left.and(*group).is_empty();
            left = left.without(*group);
            is_again
        })
    }

    /// Returns the written form of a name.
    pub fn escape(&self, name: &str) -> String {
        let mut written = String::with_capacity(name.len());
        for c in name.chars() {
            match self.escapes.iter().find(|(special, _)| *special == c) {
                Some((_, instead)) => written.push_str(instead),
                None => written.push(c),
            }
        }
        written
    }

    /// Returns the name with this written form. Invalid escapes stand for themselves.
    pub fn unescape(&self, written: &str) -> String {
        let mut name = String::with_capacity(written.len());
        let mut rest = written;
        while let Some(c) = rest.chars().next() {
            let escape = self.escapes.iter().find(|(_, instead)| rest.starts_with(instead));
            let (c, length) =
                escape.map_or((c, c.len_utf8()), |(special, instead)| (*special, instead.len()));
            name.push(c);
            rest = &rest[length..];
        }
        name
    }

    /// Returns the text after `close` in the closing tag of a value. Items of lists have no name.
    pub fn tail(&self, name: Option<&str>) -> String {
        if self.closes_by_name { format!("</{}>", name.unwrap_or("item")) } else { String::new() }
    }

    /// Checks whether the style states the type of a value in the tag, so that a reader needs no schema.
    pub fn says_types(&self) -> bool {
        self.behind.iter().all(|(types, _)| *types != Types::ALL)
    }

    /// Checks whether a name can be written so that a reader finds its end.
    pub fn can_write(&self, name: &str) -> bool {
        let is_plain = |c| self.escapes.iter().any(|(special, _)| *special == c) || !"<>\"\n".contains(c);
        let is_end = self.closes_by_name && name.starts_with('/');
        !name.is_empty() && !is_end && name.chars().all(is_plain)
    }
}

/// Checks whether a name can be written in a style so that a reader finds its end.
pub(super) fn can_write(style: Style, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match (style, wire(style)) {
        (_, Some(wire)) => wire.can_write(name),
        (Style::Python, _) => {
            !name.is_empty() && !name.starts_with(|c: char| c.is_numeric()) && name.chars().all(is_word)
        }
        (Style::Gemma4, _) => {
            !name.is_empty()
                && name.chars().all(|c| is_word(c) || "-.$/@ ".contains(c))
                && name.trim() == name
        }
        (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        for wire in Style::ALL.into_iter().filter_map(wire) {
            for name in ["a", "a b", "a&b", "&amp;", "&amp;amp;", "x&quot;y", "ü", "&"] {
                assert_eq!(wire.unescape(&wire.escape(name)), name, "{wire:?}");
            }
        }
        assert!(COHERE.can_write("a\"<&>b") && !COHERE.can_write("a\nb"));
        assert_eq!(COHERE.escape("a\"<&>b"), "a&quot;&lt;&amp;&gt;b");
        assert!(KIMI_K3.can_write("a\"&b") && !KIMI_K3.can_write("a<b"));
        assert!(!QWEN.can_write("a\"b") && !QWEN.can_write(""));
        assert!(MINIMAX_M3.can_write("a b") && !MINIMAX_M3.can_write("/a"));
        assert!(can_write(Style::Python, "from_") && !can_write(Style::Python, "a-b"));
        assert!(can_write(Style::Gemma4, "a-b") && !can_write(Style::Gemma4, "a:b"));
    }

    #[test]
    fn every_type_is_written_in_one_way() {
        for wire in Style::ALL.into_iter().filter_map(wire) {
            let parts: Vec<Types> = wire.parts(Types::ALL).map(|(types, _)| types).collect();
            let all = parts.iter().fold(Types::NONE, |all, part| {
                assert!(all.and(*part).is_empty(), "{wire:?}");
                all.or(*part)
            });
            assert_eq!(all, Types::ALL, "{wire:?}");
            assert!(wire.synonyms().all(|synonym| !wire.parts(Types::ALL).any(|part| part == synonym)));
        }
    }
}
