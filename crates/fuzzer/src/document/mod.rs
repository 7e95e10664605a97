//! A JSON text in its original spelling: numbers and strings keep their notation, and a key may occur twice.
//!
//! A `serde_json::Value` would lose exactly what the fuzzer varies. So documents are drawn, changed and shrunk in this
//! form, and only converted to a value for a validator.

mod changes;
mod layout;
mod spelling;

pub(crate) use changes::KEYS;
pub use changes::{change, smaller};
pub use layout::{Layout, orders, permutations};
pub use spelling::{decode, encode, plain_number, respell_number, respell_string};

use serde_json::Value;

/// A JSON text without its white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// A literal, a number or a string, in its spelling.
    Scalar(String),
    /// An array.
    Array(Vec<Document>),
    /// An object. Keys are spelled strings, including quotes.
    Object(Vec<(String, Document)>),
}

impl Document {
    /// Converts a value, and escapes only the characters that must be escaped.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::Array(items.iter().map(Self::of).collect()),
            Value::Object(members) => {
                Self::Object(members.iter().map(|(key, value)| (encode(key), Self::of(value))).collect())
            }
            scalar => Self::Scalar(scalar.to_string()),
        }
    }

    /// Parses a JSON text; `None` if it is not JSON.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        let mut reader = Reader { text, at: 0 };
        reader.value()
    }

    /// Returns the value. If a key occurs twice, the last member counts.
    pub fn value(&self) -> Option<Value> {
        serde_json::from_str(&self.to_string()).ok()
    }

    /// Returns the nesting depth of arrays and objects.
    pub fn depth(&self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }

    /// Whether some object contains a key twice.
    pub fn repeats_a_key(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::Array(items) => items.iter().any(Self::repeats_a_key),
            Self::Object(members) => {
                let mut keys: Vec<_> = members.iter().map(|(key, _)| decode(key)).collect();
                keys.sort();
                keys.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, value)| value.repeats_a_key())
            }
        }
    }

    /// Returns the same document with every scalar and every key respelled by these functions.
    #[must_use]
    pub fn respelled(
        &self,
        scalar: &mut dyn FnMut(&str) -> String,
        key: &mut dyn FnMut(&str) -> String,
    ) -> Self {
        match self {
            Self::Scalar(text) => Self::Scalar(scalar(text)),
            Self::Array(items) => Self::Array(items.iter().map(|item| item.respelled(scalar, key)).collect()),
            Self::Object(members) => Self::Object(
                members.iter().map(|(name, value)| (key(name), value.respelled(scalar, key))).collect(),
            ),
        }
    }
}

impl core::fmt::Display for Document {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&Layout::Compact.write(self))
    }
}

/// A reader for texts that are known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Document> {
        self.blanks();
        match self.peek()? {
            b'[' => {
                let mut items = Vec::new();
                self.members(b']', |reader| {
                    items.push(reader.value()?);
                    Some(())
                })?;
                Some(Document::Array(items))
            }
            b'{' => {
                let mut members = Vec::new();
                self.members(b'}', |reader| {
                    reader.blanks();
                    let key = reader.scalar();
                    reader.blanks();
                    reader.at += 1; // the colon
                    members.push((key, reader.value()?));
                    Some(())
                })?;
                Some(Document::Object(members))
            }
            _ => Some(Document::Scalar(self.scalar())),
        }
    }

    /// Reads members between two brackets, separated by commas.
    fn members(&mut self, close: u8, mut read: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.blanks();
        if self.peek()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            read(self)?;
            self.blanks();
            let end = self.peek()? == close;
            self.at += 1;
            if end {
                return Some(());
            }
        }
    }

    fn scalar(&mut self) -> String {
        let start = self.at;
        if self.peek() == Some(b'"') {
            self.at += 1;
            while let Some(byte) = self.peek() {
                self.at += if byte == b'\\' { 2 } else { 1 };
                if byte == b'"' {
                    break;
                }
            }
        } else {
            while self.peek().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                self.at += 1;
            }
        }
        self.text[start..self.at].to_owned()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_survives() {
        let text = r#"{"a":[1.50,"\u0061",{}],"a":null,"":[]}"#;
        let document = Document::parse(text).unwrap();
        assert_eq!(document.to_string(), text);
        assert!(document.repeats_a_key());
        let spaced = Document::parse(" { \"a\" : [ 1.50 , \"\\u0061\",{}] ,\"a\":null,\"\":[ ] } ");
        assert_eq!(spaced, Some(document));
        assert_eq!(Document::parse("[1,]"), None);
    }
}
