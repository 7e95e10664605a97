//! Lists of tokens that contain whole JSON values, for places where values must differ.
//!
//! A mask is computed as if every value were new to its object or array. The tokens for which that may be wrong are
//! few, and most of them can be listed in advance, because a value has to end inside the token:
//!
//! ```text
//!   ""    "",    ","x":    true,    {},        the value "" or x or true or {} is in the token
//!   7,                                          a number that began before the token ends in it
//! ```
//! The lists may contain too many tokens: each is tried before it is removed from a mask.

use maskwright_vocab::Vocabulary;
use rustc_hash::FxHashMap;

use super::bitset::{Words, bitset};
use crate::value;

/// The tokens of one vocabulary that contain whole values.
#[derive(Debug)]
pub(crate) struct ValueTokens {
    /// For each simple value, the tokens that contain it.
    by_form: FxHashMap<Box<[u8]>, Vec<u32>>,
    /// Tokens with a value that may have to differ from another value of the same token, or from one that began before
    /// the token.
    pub(crate) several: Tokens,
    /// `several` as bitsets: outside strings, and inside.
    several_bits: [Words; 2],
    /// Tokens with a comma, after which another value must follow.
    pub(crate) commas: Tokens,
    /// Tokens that continue a number and end it.
    pub(crate) number_ends: Vec<u32>,
    /// Tokens that end with a zero that has no digit before it, or with a sign, after which possibly only a zero is
    /// allowed.
    pub(crate) zeros: Vec<u32>,
    /// Tokens that close an array or an object.
    pub(crate) closers: Tokens,
    /// Tokens that end a key and close an object.
    pub(crate) key_closers: Tokens,
    /// Tokens that open an array or an object and write something in it.
    pub(crate) openers: Tokens,
    /// Those of the openers that have a comma after the bracket: they may write all existing values and require another
    /// one.
    pub(crate) opened_commas: Tokens,
    /// Tokens that end a string after an escape, by the form of the part that they write.
    escaped: FxHashMap<Box<[u8]>, Vec<u32>>,
    /// The parts of strings that tokens write up to the closing quote, as forms, without duplicates.
    pub(crate) rests: Vec<Box<[u8]>>,
}

/// Some tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// The tokens that matter outside strings, and inside an escape.
    pub(crate) outside: Vec<u32>,
    /// The tokens that matter inside a string, where nothing happens before the quote.
    pub(crate) in_string: Vec<u32>,
}

impl Tokens {
    /// Adds a token to `outside` if its bytes are of interest, and to `in_string` if the bytes after its first quote
    /// are.
    fn push(&mut self, token: u32, bytes: &[u8], is_of_interest: impl Fn(&[u8]) -> bool) {
        if is_of_interest(bytes) {
            self.outside.push(token);
        }
        if after_quote(bytes).is_some_and(is_of_interest) {
            self.in_string.push(token);
        }
    }

    pub(crate) fn at(&self, in_string: bool) -> &[u32] {
        if in_string { &self.in_string } else { &self.outside }
    }
}

/// Returns the bytes after the first quote that is not escaped.
fn after_quote(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while *bytes.get(at)? != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(&bytes[at + 1..])
}

impl ValueTokens {
    pub(crate) fn heap_bytes(&self) -> usize {
        let by_text = |map: &FxHashMap<Box<[u8]>, Vec<u32>>| {
            let entry = size_of::<(Box<[u8]>, Vec<u32>)>();
            map.capacity() * entry
                + map.iter().map(|(form, tokens)| form.len() + tokens.len() * 4).sum::<usize>()
        };
        let lists = [
            &self.several,
            &self.commas,
            &self.closers,
            &self.key_closers,
            &self.openers,
            &self.opened_commas,
        ];
        let lists = lists.iter().map(|tokens| tokens.outside.len() + tokens.in_string.len()).sum::<usize>();
        let bits = self.several_bits.iter().map(|words| words.len()).sum::<usize>();
        by_text(&self.by_form)
            + by_text(&self.escaped)
            + 4 * (lists + bits + self.number_ends.len() + self.zeros.len())
            + self.rests.iter().map(|rest| size_of_val(rest) + rest.len()).sum::<usize>()
    }

    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let mut whole = Self {
            by_form: FxHashMap::default(),
            several: Tokens::default(),
            several_bits: [Words::default(), Words::default()],
            commas: Tokens::default(),
            number_ends: Vec::new(),
            zeros: Vec::new(),
            closers: Tokens::default(),
            key_closers: Tokens::default(),
            openers: Tokens::default(),
            opened_commas: Tokens::default(),
            escaped: FxHashMap::default(),
            rests: Vec::new(),
        };
        for (token, bytes) in vocabulary.ordinary() {
            whole.add(token.0, bytes);
        }
        whole.rests.sort_unstable();
        whole.rests.dedup();
        whole.several_bits = [&whole.several.outside, &whole.several.in_string]
            .map(|tokens| bitset(tokens, vocabulary.size()));
        whole
    }

    /// Checks whether a token contains several values.
    #[inline]
    pub(crate) fn has_several(&self, token: u32, in_string: bool) -> bool {
        self.several_bits[usize::from(in_string)][token as usize / 32] >> (token % 32) & 1 == 1
    }

    /// Returns the tokens that contain a whole value.
    pub(crate) fn tokens_with(&self, form: &[u8]) -> Option<&[u32]> {
        self.by_form.get(form).map(Vec::as_slice)
    }

    /// Returns the tokens that write the rest of a string and its quote with an escape.
    pub(crate) fn escaped(&self, rest: &[u8]) -> &[u32] {
        self.escaped.get(rest).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, token: u32, bytes: &[u8]) {
        let run = bytes.iter().take_while(|byte| is_scalar(**byte)).count();
        if run > 0 && bytes.get(run).is_some_and(|byte| is_space(*byte) || matches!(byte, b',' | b']' | b'}'))
        {
            self.number_ends.push(token);
        }
        let before_last = || bytes.iter().rev().nth(1);
        let is_zero = match bytes.last() {
            Some(b'0') => before_last().is_none_or(|byte| !byte.is_ascii_digit()),
            last => last == Some(&b'-'),
        };
        if is_zero {
            self.zeros.push(token);
        }
        // PERF: nine tokens in ten are words, and of no interest.
        let is_structure = |byte: &u8| matches!(byte, b'"' | b'\\' | b'[' | b']' | b'{' | b'}' | b',' | b':');
        let has_structure = bytes.iter().any(is_structure);
        if has_structure || bytes.iter().any(u8::is_ascii_digit) || has_word(bytes) {
            for form in values(bytes) {
                let tokens = self.by_form.entry(form).or_default();
                if tokens.last() != Some(&token) {
                    tokens.push(token);
                }
            }
        }
        if !has_structure {
            return;
        }
        let meets = |bytes: &[u8]| holds_container(bytes) || has_value_after_comma(bytes);
        self.several.push(token, bytes, meets);
        self.commas.push(token, bytes, |bytes| bytes.contains(&b','));
        self.closers.push(token, bytes, |bytes| bytes.iter().any(|byte| matches!(byte, b'}' | b']')));
        self.key_closers.push(token, bytes, |bytes| {
            let colon = bytes.iter().position(|byte| *byte == b':');
            colon.is_some_and(|colon| bytes[colon..].contains(&b'}'))
        });
        let is_open = |byte: &u8| matches!(byte, b'{' | b'[');
        let after_open = |bytes: &[u8]| bytes.iter().position(is_open).map_or(bytes.len(), |open| open + 1);
        self.openers.push(token, bytes, |bytes| !bytes[after_open(bytes)..].trim_ascii().is_empty());
        self.opened_commas.push(token, bytes, |bytes| bytes[after_open(bytes)..].contains(&b','));
        if let Some(rest) = value::rest(bytes) {
            self.rests.push(rest.into());
        }
        let backslash = bytes.iter().position(|byte| *byte == b'\\');
        if backslash.is_some_and(|at| bytes[at..].contains(&b'"'))
            && let Some(rest) = value::rest(bytes)
        {
            self.escaped.entry(rest.into()).or_default().push(token);
        }
    }
}

fn has_word(bytes: &[u8]) -> bool {
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    words.iter().any(|word| bytes.windows(word.len()).any(|window| window == *word))
}

/// Returns every simple value, as a form, that some text may begin and end inside the token.
fn values(bytes: &[u8]) -> Vec<Box<[u8]>> {
    let mut found = Vec::new();
    let mut add = |start: usize, end: usize| {
        // The slice is a value only if its form covers all of it.
        if value::start(&bytes[..end]) == Some(start)
            && let Some(form) = value::ending(&bytes[..end])
        {
            found.push(form.into());
        }
    };
    for start in 0..bytes.len() {
        let rest = &bytes[start..];
        match rest[0] {
            b'"' => {
                let mut at = 1;
                while at < rest.len() && rest[at] != b'"' {
                    at += if rest[at] == b'\\' { 2 } else { 1 };
                }
                if at < rest.len() {
                    add(start, start + at + 1);
                }
            }
            b'[' | b'{' => {
                let space = rest[1..].iter().take_while(|byte| is_space(**byte)).count();
                if matches!((rest[0], rest.get(1 + space)), (b'[', Some(b']')) | (b'{', Some(b'}'))) {
                    add(start, start + space + 2);
                }
            }
            byte if is_scalar(byte) && (start == 0 || !is_scalar(bytes[start - 1])) => {
                let run = rest.iter().take_while(|byte| is_scalar(**byte)).count();
                let is_word = matches!(&rest[..run], b"true" | b"false" | b"null");
                if is_word || run < rest.len() && matches!(byte, b'-' | b'0'..=b'9') {
                    add(start, start + run);
                }
            }
            _ => {}
        }
    }
    found
}

fn has_value_after_comma(bytes: &[u8]) -> bool {
    let comma = bytes.iter().position(|byte| *byte == b',');
    comma.is_some_and(|comma| !values(&bytes[comma..]).is_empty())
}

/// Checks whether a nonempty array or object may begin and end in the token.
fn holds_container(bytes: &[u8]) -> bool {
    let pair = |open: u8, close: u8| {
        let open = bytes.iter().position(|byte| *byte == open);
        let close = bytes.iter().rposition(|byte| *byte == close);
        matches!((open, close), (Some(open), Some(close)) if open + 1 < close)
    };
    pair(b'[', b']') || pair(b'{', b'}')
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_inside_tokens_are_found() {
        let forms = |token: &str| {
            let found = values(token.as_bytes());
            found.into_iter().map(|form| String::from_utf8(form.into()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(forms(r#"",""#), [r#"",""#]);
        assert_eq!(forms(r#""a":"#), [r#""a""#]);
        assert_eq!(forms(r#","\u0061", 1"#), [r#""a""#]);
        assert_eq!(forms(" true"), ["true"]);
        assert_eq!(forms("12, 3"), ["12e0"]);
        assert_eq!(forms("[],{ }"), ["[]", "{}"]);
        assert_eq!(forms("x\"\"]"), ["\"\""]);
        assert_eq!(forms("\"a"), [""; 0]);
    }

    #[test]
    fn what_follows_a_quote_matters_inside_strings() {
        let mut tokens = Tokens::default();
        let pieces: [&[u8]; 5] = [br#"a,"b","#, br#"",""#, br#"\","b","#, br#"","b","#, br#"",","#];
        for (token, bytes) in (0..).zip(pieces) {
            tokens.push(token, bytes, has_value_after_comma);
        }
        assert_eq!(tokens.outside, [0, 2, 3]);
        assert_eq!(tokens.in_string, [3]);
    }

    #[test]
    fn containers_are_found() {
        assert!(holds_container(b"[1]"));
        assert!(holds_container(b" {\"a\":1}"));
        assert!(!holds_container(b"[]"));
        assert!(!holds_container(b"]["));
    }
}
