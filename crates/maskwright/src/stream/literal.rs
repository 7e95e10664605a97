//! Converts documents that are written as the arguments of a function call to JSON.
//!
//! ```text
//!   city="Oslo", exact=True            {"city": "Oslo", "exact": true}
//!   city:<|"|>Oslo<|"|>,tags:[1]       {"city": "Oslo", "tags": [1]}
//! ```
//! This accepts more than a mask allows, because models also write without one: Python strings in single quotes with
//! Python's escapes, and white space between tokens.

use maskwright_frontend::tag::Style;

use super::document::{Progress, escape, held_back};

/// Reads arguments, and writes them as JSON.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    style: Style,
    at: At,
    /// The open objects and lists inside the arguments.
    open: Vec<Container>,
    /// Whether no argument has begun.
    is_empty: bool,
    /// Whether something was read that no mask allows.
    strayed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before a name. An object that has just begun, or the arguments, may also end here.
    Name { may_end: bool },
    /// Before a value. A list that has just begun may also end here.
    Value { may_end: bool },
    /// In a string that ends at a Python quote, or at Gemma's marker. It may be a name.
    Text { quote: Option<char>, is_name: bool },
    /// After a quoted name.
    Colon,
    /// After a value.
    After,
}

/// The marker around Gemma's strings.
const QUOTE: &str = "<|\"|>";
/// The maximum length of a name, a word or a number in bytes.
const MAX_WORD_BYTES: usize = 4_096;

impl Literal {
    pub(super) fn new(style: Style) -> Self {
        Self { style, at: At::Name { may_end: true }, open: Vec::new(), is_empty: true, strayed: false }
    }

    /// Whether something was read that no mask allows.
    pub(super) fn has_strayed(&self) -> bool {
        self.strayed
    }

    /// Takes one step, and appends to the JSON. The arguments are followed by one of the `ends`.
    pub(super) fn step(&mut self, text: &str, ends: &[String], is_last: bool, json: &mut String) -> Progress {
        if let At::Text { quote, is_name } = self.at {
            return match quote {
                Some(quote) => self.quoted(text, quote, is_name, is_last, json),
                None => self.marked(text, is_name, json),
            };
        }
        let rest = text.trim_start();
        if rest.len() < text.len() {
            return Progress::Read(text.len() - rest.len());
        }
        let Some(first) = text.chars().next() else { return wait(is_last) };
        if self.open.is_empty() && matches!(self.at, At::Name { may_end: true } | At::After) {
            if ends.iter().any(|end| text.starts_with(&**end)) {
                json.push_str(if self.is_empty { "{}" } else { "}" });
                return Progress::Over;
            }
            if !is_last && ends.iter().any(|end| end.starts_with(text)) {
                return Progress::Wait;
            }
        }
        match self.at {
            At::Name { may_end } => self.name(text, first, may_end, is_last, json),
            At::Value { may_end } => self.value(text, ends, may_end, is_last, json),
            At::Colon if first == ':' => {
                self.at = At::Value { may_end: false };
                Progress::Read(1)
            }
            At::Colon | At::Text { .. } => Progress::Broken,
            At::After => self.after(first, json),
        }
    }

    fn name(&mut self, text: &str, first: char, may_end: bool, is_last: bool, json: &mut String) -> Progress {
        if may_end && first == '}' {
            return self.close(json);
        }
        let in_arguments = self.open.is_empty();
        if self.style == Style::Python && !in_arguments {
            // The names of a dict are strings.
            if first != '"' && first != '\'' {
                return Progress::Broken;
            }
            json.push('"');
            self.strayed |= first == '\'';
            self.at = At::Text { quote: Some(first), is_name: true };
            return Progress::Read(1);
        }
        if self.style == Style::Gemma4 {
            if text.starts_with(QUOTE) {
                self.begin_name(json);
                json.push('"');
                self.at = At::Text { quote: None, is_name: true };
                return Progress::Read(QUOTE.len());
            }
            if QUOTE.starts_with(text) {
                return wait(is_last);
            }
        }
        let sign = if self.style == Style::Python { '=' } else { ':' };
        let Some(at) = text.find(sign) else {
            return if text.len() > MAX_WORD_BYTES { Progress::Broken } else { wait(is_last) };
        };
        let name = text[..at].trim_end();
        self.strayed |= name.len() < at;
        if name.is_empty() || name.contains(['"', '\'', '{', '}', '[', ']', '(', ')', ',', '<']) {
            return Progress::Broken;
        }
        self.begin_name(json);
        json.push('"');
        escape(name, json);
        json.push_str("\": ");
        self.at = At::Value { may_end: false };
        Progress::Read(at + 1)
    }

    /// Begins a name of the arguments; the first one also begins the JSON object.
    fn begin_name(&mut self, json: &mut String) {
        if self.open.is_empty() && self.is_empty {
            json.push('{');
            self.is_empty = false;
        }
    }

    fn value(
        &mut self,
        text: &str,
        ends: &[String],
        may_end: bool,
        is_last: bool,
        json: &mut String,
    ) -> Progress {
        let first = text.chars().next().unwrap_or_default();
        match first {
            '{' | '[' => {
                let is_list = first == '[';
                self.open.push(if is_list { Container::List } else { Container::Object });
                json.push(first);
                self.at = if is_list { At::Value { may_end: true } } else { At::Name { may_end: true } };
                return Progress::Read(1);
            }
            ']' if may_end => return self.close(json),
            '"' | '\'' if self.style == Style::Python => {
                json.push('"');
                self.strayed |= first == '\'';
                self.at = At::Text { quote: Some(first), is_name: false };
                return Progress::Read(1);
            }
            _ => {}
        }
        if self.style == Style::Gemma4 {
            if text.starts_with(QUOTE) {
                json.push('"');
                self.at = At::Text { quote: None, is_name: false };
                return Progress::Read(QUOTE.len());
            }
            if QUOTE.starts_with(text) {
                return wait(is_last);
            }
        }
        let is_end =
            |c: char| c.is_whitespace() || ",]})".contains(c) || ends.iter().any(|end| end.starts_with(c));
        let Some(at) = text.find(is_end) else {
            return if text.len() > MAX_WORD_BYTES { Progress::Broken } else { wait(is_last) };
        };
        let word = match &text[..at] {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            word => word,
        };
        let is_scalar = matches!(
            serde_json::from_str(word),
            Ok(serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_))
        );
        if !is_scalar {
            return Progress::Broken;
        }
        json.push_str(word);
        self.at = At::After;
        Progress::Read(at)
    }

    fn after(&mut self, first: char, json: &mut String) -> Progress {
        match (first, self.open.last()) {
            (',', container) => {
                json.push_str(", ");
                self.at = match container {
                    Some(Container::List) => At::Value { may_end: false },
                    _ => At::Name { may_end: false },
                };
                Progress::Read(1)
            }
            (']', Some(Container::List)) | ('}', Some(Container::Object)) => self.close(json),
            _ => Progress::Broken,
        }
    }

    fn close(&mut self, json: &mut String) -> Progress {
        match self.open.pop() {
            Some(Container::List) => json.push(']'),
            Some(Container::Object) => json.push('}'),
            None => return Progress::Broken,
        }
        self.at = At::After;
        Progress::Read(1)
    }

    /// Ends a string.
    fn finish(&mut self, is_name: bool, json: &mut String) {
        json.push_str(if is_name { "\": " } else { "\"" });
        self.at = if is_name { At::Colon } else { At::After };
    }

    /// Reads a verbatim string up to the marker.
    fn marked(&mut self, text: &str, is_name: bool, json: &mut String) -> Progress {
        if let Some(at) = text.find(QUOTE) {
            escape(&text[..at], json);
            self.finish(is_name, json);
            return Progress::Read(at + QUOTE.len());
        }
        let sure = text.len() - held_back(text, core::iter::once(QUOTE));
        if sure == 0 {
            return Progress::Wait;
        }
        escape(&text[..sure], json);
        Progress::Read(sure)
    }

    /// Reads a Python string.
    fn quoted(
        &mut self,
        text: &str,
        quote: char,
        is_name: bool,
        is_last: bool,
        json: &mut String,
    ) -> Progress {
        if text.is_empty() {
            return wait(is_last);
        }
        let plain = text.find([quote, '\\']).unwrap_or(text.len());
        if plain > 0 {
            escape(&text[..plain], json);
            return Progress::Read(plain);
        }
        if text.starts_with(quote) {
            self.finish(is_name, json);
            return Progress::Read(1);
        }
        match escaped(text, quote) {
            Escaped::Char(c, length) => {
                escape(c.encode_utf8(&mut [0; 4]), json);
                Progress::Read(length)
            }
            // Python keeps unknown escapes as they are.
            Escaped::Unknown => {
                escape("\\", json);
                Progress::Read(1)
            }
            Escaped::Nothing(length) => Progress::Read(length),
            Escaped::Short => wait(is_last),
            Escaped::Broken => Progress::Broken,
        }
    }
}

/// The meaning of an escape.
enum Escaped {
    /// A character, and the length of the escape.
    Char(char, usize),
    /// Nothing: a line continuation, with its length.
    Nothing(usize),
    /// Not an escape.
    Unknown,
    /// An incomplete escape.
    Short,
    /// An invalid escape.
    Broken,
}

fn escaped(text: &str, quote: char) -> Escaped {
    let Some(letter) = text[1..].chars().next() else { return Escaped::Short };
    let one = |c: char| Escaped::Char(c, 2);
    let digits = match letter {
        'n' => return one('\n'),
        't' => return one('\t'),
        'r' => return one('\r'),
        'b' => return one('\u{8}'),
        'f' => return one('\u{c}'),
        '\\' | '"' | '\'' => return one(letter),
        // A string in double quotes may also be a JSON string.
        '/' if quote == '"' => return one('/'),
        '\n' => return Escaped::Nothing(2),
        'a' => return one('\u{7}'),
        'v' => return one('\u{b}'),
        '0' => return one('\0'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return Escaped::Unknown,
    };
    let code = |from: usize, digits: usize| {
        let written = text.get(from..from + digits).ok_or(())?;
        u32::from_str_radix(written, 16).map_err(|_| ())
    };
    if text.len() < 2 + digits {
        return Escaped::Short;
    }
    let Ok(first) = code(2, digits) else { return Escaped::Broken };
    if let Some(c) = char::from_u32(first) {
        return Escaped::Char(c, 2 + digits);
    }
    // JSON writes a character outside the basic plane as two escapes.
    let pair = text.get(6..8);
    if letter != 'u' || !(0xd800..0xdc00).contains(&first) || pair.is_some_and(|pair| pair != "\\u") {
        return Escaped::Broken;
    }
    if text.len() < 12 {
        return Escaped::Short;
    }
    match code(8, 4) {
        Ok(second @ 0xdc00..0xe000) => {
            let c = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            char::from_u32(c).map_or(Escaped::Broken, |c| Escaped::Char(c, 12))
        }
        _ => Escaped::Broken,
    }
}

fn wait(is_last: bool) -> Progress {
    if is_last { Progress::Broken } else { Progress::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a text to JSON, read at once and letter by letter, and returns the JSON and the rest.
    fn read(style: Style, text: &str) -> Option<(String, String)> {
        let run = |piece: usize| {
            let (mut json, mut literal) = (String::new(), Literal::new(style));
            let (mut buffer, mut letters) = (String::new(), text.chars());
            let ends = [if style == Style::Python { ")" } else { "}" }.to_owned()];
            loop {
                match literal.step(&buffer, &ends, false, &mut json) {
                    Progress::Read(length) => drop(buffer.drain(..length)),
                    Progress::Over => return Some((json, buffer + letters.as_str())),
                    Progress::Broken => return None,
                    Progress::Wait => {
                        let more: String = letters.by_ref().take(piece).collect();
                        if more.is_empty() {
                            return None;
                        }
                        buffer.push_str(&more);
                    }
                }
            }
        };
        let whole = run(100_000);
        assert_eq!(run(1), whole, "{text}");
        whole
    }

    #[test]
    fn arguments_of_python() {
        let cases = [
            (")", "{}"),
            ("a=1)", r#"{"a": 1}"#),
            ("a='x', b=True,c=None )", r#"{"a": "x", "b": true, "c": null}"#),
            (
                r#"a="x\"y\u00e9\ud83d\ude00\/", b=[1, {'k': -2.5e3}], c={}, d=[])"#,
                r#"{"a": "x\"yé😀/", "b": [1, {"k": -2.5e3}], "c": {}, "d": []}"#,
            ),
            (r"a='it\'s\n\x41\q')", r#"{"a": "it's\nA\\q"}"#),
            (r#"a=false, b=null, c=")")"#, r#"{"a": false, "b": null, "c": ")"}"#),
        ];
        for (text, json) in cases {
            assert_eq!(read(Style::Python, text), Some((json.into(), ")".into())), "{text}");
        }
        for broken in ["a=b)", "a=1 2)", "1)", "a={1: 2})", r#"a="\ud83d")"#, "a=[1,])", "a=1,)", "a=(1))"] {
            assert_eq!(read(Style::Python, broken), None, "{broken}");
        }
    }

    #[test]
    fn arguments_of_gemma() {
        let cases = [
            ("}", "{}"),
            ("a:1,b:true}", r#"{"a": 1, "b": true}"#),
            (
                r#"city:<|"|>O's "lo" }<|"|>,n:{x:[<|"|>a<|"|>,null],y:{}}}"#,
                r#"{"city": "O's \"lo\" }", "n": {"x": ["a", null], "y": {}}}"#,
            ),
            (r#"<|"|>a b<|"|>:[]}"#, r#"{"a b": []}"#),
        ];
        for (text, json) in cases {
            assert_eq!(read(Style::Gemma4, text), Some((json.into(), "}".into())), "{text}");
        }
        for broken in ["a:b}", "a:1]", "{}", r#""a":1}"#] {
            assert_eq!(read(Style::Gemma4, broken), None, "{broken}");
        }
    }
}
