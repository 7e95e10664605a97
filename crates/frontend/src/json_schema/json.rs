//! The JSON values that the frontend reads, borrowed from the schema's text.
//!
//! ```text
//! {"type": "string", "maxLength": 20}
//!
//! Object ─ [("type", String "string"), ("maxLength", Number "20")]      one allocation, four slices of the text
//! ```
//!
//! A value allocates only its lists. Strings are slices of the schema unless they contain an escape, numbers keep their
//! digits, and an object is a list of members. Only a large object has an index, because searching a short list is
//! faster than hashing a key.
//!
//! The reader returns `None` for everything that is not JSON. Then `serde_json` reads the text again, and its error
//! names line and column.

use std::borrow::Cow;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'t> {
    Null,
    Bool(bool),
    /// The digits as written in the text.
    Number(Cow<'t, str>),
    String(Cow<'t, str>),
    Array(Box<[Value<'t>]>),
    Object(Members<'t>),
}

/// The members of an object, in the order of the text. A repeated key keeps its first place and its last value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Members<'t> {
    list: Box<[(Cow<'t, str>, Value<'t>)]>,
    /// The positions of the members, sorted by key; empty for a short list.
    by_key: Box<[u32]>,
}

/// The largest number of members that are searched linearly.
const MAX_SEARCHED_MEMBERS: usize = 12;

/// The nesting limit of this reader. Deeper texts are left to `serde_json`, which has its own limit.
const MAX_DEPTH: usize = 100;

impl<'t> Value<'t> {
    /// Reads a text. Returns `None` if it is not JSON or is nested too deeply for this reader.
    pub(crate) fn read(text: &'t str, depth: usize) -> Option<Self> {
        let mut reader =
            Reader { text, at: 0, items: Vec::with_capacity(16), members: Vec::with_capacity(64) };
        let value = reader.value(depth.min(MAX_DEPTH))?;
        reader.blanks();
        (reader.at == text.len()).then_some(value)
    }

    /// Borrows a `serde_json` value. The caller has checked its nesting depth.
    pub(crate) fn of(value: &'t serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(flag) => Self::Bool(*flag),
            serde_json::Value::Number(number) => Self::Number(Cow::Borrowed(number.as_str())),
            serde_json::Value::String(text) => Self::String(Cow::Borrowed(text)),
            serde_json::Value::Array(items) => Self::Array(items.iter().map(Self::of).collect()),
            serde_json::Value::Object(map) => {
                let list = map.iter().map(|(key, value)| (Cow::Borrowed(key.as_str()), Self::of(value)));
                Self::Object(Members::new(list.collect()))
            }
        }
    }

    /// Returns the value of a key, if this is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(flag) = self { Some(*flag) } else { None }
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_object(&self) -> Option<&Members<'t>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }
}

impl<'t> Members<'t> {
    /// Builds members from a list without repeated keys.
    fn new(list: Box<[(Cow<'t, str>, Value<'t>)]>) -> Self {
        let mut by_key: Box<[u32]> = Box::default();
        if list.len() > MAX_SEARCHED_MEMBERS {
            by_key = (0..list.len() as u32).collect();
            by_key.sort_unstable_by(|a, b| list[*a as usize].0.cmp(&list[*b as usize].0));
        }
        Self { list, by_key }
    }

    /// Builds members from a list that may repeat keys.
    fn distinct(members: std::vec::Drain<'_, (Cow<'t, str>, Value<'t>)>) -> Self {
        let found = Self::new(members.collect());
        let repeats = if found.by_key.is_empty() {
            let keys = || found.list.iter().map(|(key, _)| key);
            keys().enumerate().any(|(at, key)| keys().take(at).any(|other| other == key))
        } else {
            let key = |at: &u32| &found.list[*at as usize].0;
            found.by_key.windows(2).any(|pair| key(&pair[0]) == key(&pair[1]))
        };
        if !repeats {
            return found;
        }
        let mut places: rustc_hash::FxHashMap<Cow<'t, str>, usize> = rustc_hash::FxHashMap::default();
        let mut kept: Vec<(Cow<'t, str>, Value<'t>)> = Vec::with_capacity(found.list.len());
        for (key, value) in found.list {
            let at = *places.entry(key.clone()).or_insert(kept.len());
            match kept.get_mut(at) {
                Some(earlier) => earlier.1 = value,
                None => kept.push((key, value)),
            }
        }
        Self::new(kept.into())
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value<'t>> {
        self.position(key).map(|at| &self.list[at].1)
    }

    /// Returns the position of a key.
    pub(crate) fn position(&self, key: &str) -> Option<usize> {
        if self.by_key.is_empty() {
            return self.list.iter().position(|(one, _)| one == key);
        }
        let order = |at: &u32| self.list[*at as usize].0.as_ref().cmp(key);
        self.by_key.binary_search_by(order).ok().map(|at| self.by_key[at] as usize)
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn iter(&self) -> <&Self as IntoIterator>::IntoIter {
        self.into_iter()
    }

    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.list.iter().map(|(key, _)| key.as_ref())
    }

    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &Value<'t>> {
        self.list.iter().map(|(_, value)| value)
    }
}

impl<'m, 't> IntoIterator for &'m Members<'t> {
    type Item = (&'m str, &'m Value<'t>);
    type IntoIter = core::iter::Map<
        core::slice::Iter<'m, (Cow<'t, str>, Value<'t>)>,
        fn(&'m (Cow<'t, str>, Value<'t>)) -> Self::Item,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter().map(|(key, value)| (key.as_ref(), value))
    }
}

/// A position in the text, and the finished parts of the arrays and objects that are open there.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    items: Vec<Value<'t>>,
    members: Vec<(Cow<'t, str>, Value<'t>)>,
}

impl<'t> Reader<'t> {
    fn value(&mut self, depth: usize) -> Option<Value<'t>> {
        self.blanks();
        Some(match self.peek()? {
            b'"' => Value::String(self.string()?),
            b'{' => self.object(depth.checked_sub(1)?)?,
            b'[' => self.array(depth.checked_sub(1)?)?,
            b't' => self.word("true", Value::Bool(true))?,
            b'f' => self.word("false", Value::Bool(false))?,
            b'n' => self.word("null", Value::Null)?,
            _ => self.number()?,
        })
    }

    fn object(&mut self, depth: usize) -> Option<Value<'t>> {
        self.at += 1;
        let first = self.members.len();
        if !self.closes(b'}') {
            loop {
                self.blanks();
                let key = self.string()?;
                self.blanks();
                self.expect(b':')?;
                let value = self.value(depth)?;
                self.members.push((key, value));
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        Some(Value::Object(Members::distinct(self.members.drain(first..))))
    }

    fn array(&mut self, depth: usize) -> Option<Value<'t>> {
        self.at += 1;
        let first = self.items.len();
        if !self.closes(b']') {
            loop {
                let item = self.value(depth)?;
                self.items.push(item);
                if self.ends(b']')? {
                    break;
                }
            }
        }
        Some(Value::Array(self.items.drain(first..).collect()))
    }

    /// Skips blanks, and takes the bracket if it follows.
    fn closes(&mut self, bracket: u8) -> bool {
        self.blanks();
        self.expect(bracket).is_some()
    }

    /// Reads what follows an item or a member: `true` for the closing bracket, `false` for a comma.
    fn ends(&mut self, bracket: u8) -> Option<bool> {
        if self.closes(bracket) {
            return Some(true);
        }
        self.expect(b',').map(|()| false)
    }

    fn string(&mut self) -> Option<Cow<'t, str>> {
        self.expect(b'"')?;
        let rest = self.text.as_bytes().get(self.at..)?;
        let end = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
        let plain = self.text.get(self.at..self.at + end)?;
        self.at += end;
        if rest[end] == b'"' {
            self.at += 1;
            return Some(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        loop {
            match self.next()? {
                b'"' => return Some(Cow::Owned(text)),
                b'\\' => text.push(self.escape()?),
                0..0x20 => return None,
                _ => {
                    let rest = &self.text.as_bytes()[self.at..];
                    let end = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
                    text.push_str(self.text.get(self.at - 1..self.at + end)?);
                    self.at += end;
                }
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'u' => match self.unit()? {
                high @ 0xd800..0xdc00 => {
                    self.expect(b'\\')?;
                    self.expect(b'u')?;
                    let low = self.unit()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                    char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)?
                }
                unit => char::from_u32(unit)?,
            },
            _ => return None,
        })
    }

    /// Reads four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            unit = unit * 16 + char::from(self.next()?).to_digit(16)?;
        }
        Some(unit)
    }

    fn number(&mut self) -> Option<Value<'t>> {
        let start = self.at;
        let _sign = self.expect(b'-');
        if self.expect(b'0').is_none() {
            self.digits()?;
        }
        if self.expect(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(Value::Number(Cow::Borrowed(self.text.get(start..self.at)?)))
    }

    /// Reads one or more digits.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &str, value: Value<'t>) -> Option<Value<'t>> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += word.len();
        rest.starts_with(word.as_bytes()).then_some(value)
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This reader accepts and refuses the same texts as `serde_json`.
    #[test]
    fn agrees_with_serde() {
        let texts = [
            "null",
            " [true, false ,null]\n",
            r#"{"a": 1, "b": {"c": []}, "a": "last"}"#,
            r#"["", "\u00e9\n\/\ud83d\ude00x\\", "é\t"]"#,
            r#"["plain \" then more", "\u0041\u0042"]"#,
            "[0, -0, 1.50, 10, -7, 0.1]",
            "{}",
            "[[], [[1]]]",
            "",
            "[1,]",
            "{\"a\":1,}",
            "[01]",
            "[1.]",
            "[.5]",
            "[-]",
            "[1e]",
            "tru",
            "truex",
            "[1] 2",
            "\"\u{1}\"",
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\u0041""#,
            r#""\x""#,
            r#""\u12g4""#,
            "\"open",
            "{\"a\" 1}",
            "{1: 2}",
        ];
        for text in texts {
            let theirs = serde_json::from_str::<serde_json::Value>(text).ok();
            assert_eq!(Value::read(text, 128), theirs.as_ref().map(Value::of), "{text}");
        }
    }

    /// `serde_json` gives every exponent a sign; this reader keeps numbers as written.
    #[test]
    fn numbers_keep_their_digits() {
        let number = |text| Some(Value::Number(Cow::Borrowed(text)));
        assert_eq!(Value::read("-7e0", 128), number("-7e0"));
        assert_eq!(Value::read("1.0E+10", 128), number("1.0E+10"));
        assert_eq!(Value::read("1e-5", 128), number("1e-5"));
    }

    #[test]
    fn wide_objects_are_searched_by_key() {
        let members: Vec<String> = (0..100).map(|i| format!("\"k{}\": {i}", i % 60)).collect();
        let text = format!("{{{}}}", members.join(", "));
        let value = Value::read(&text, 128).expect("JSON");
        let theirs: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value, Value::of(&theirs));
        assert_eq!(value.get("k7"), Some(&Value::Number(Cow::Borrowed("67"))));
        assert_eq!(value.get("k60"), None);
        assert_eq!(value.as_object().map(Members::len), Some(60));
    }

    #[test]
    fn deep_texts_are_left_to_others() {
        let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Value::read(&text, usize::MAX), None);
    }
}
