//! Stop strings: a text ends where one of them occurs, and a streamed text must not show the beginning of one.
//!
//! ```
//! use maskwright::StopStrings;
//!
//! let stops = StopStrings::new(["</answer>", "\n\n"])?;
//! let mut stream = stops.stream();
//! assert_eq!(stream.push(b"42<"), "42");            // `<` may be the beginning of a stop string
//! assert_eq!(stream.push(b"b>"), "<b>");            // it was not
//! assert_eq!(stream.push(b"</answer> and more"), "");
//! assert_eq!(stream.stopped(), Some(0));
//! # Ok::<(), maskwright::StopError>(())
//! ```
//!
//! All stop strings are searched for at once, byte by byte, with the automaton of Aho and Corasick: a state is the
//! longest suffix of the text that is a prefix of some stop string. The bytes of that suffix are held back, and so are
//! the bytes of an incomplete character, since tokens may end inside a character.

use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

/// A set of strings that end a text.
///
/// ```
/// use maskwright::StopStrings;
///
/// let stops = StopStrings::new(["###"])?; // shared by all requests that have them
/// let mut stream = stops.stream();
/// assert_eq!(stream.push(b"one ## two #"), "one ## two ");
/// assert_eq!(stream.finish(), "#");
/// # Ok::<(), maskwright::StopError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopStrings {
    automaton: Arc<Automaton>,
}

/// The reason why stop strings cannot be used.
///
/// ```
/// use maskwright::{StopError, StopStrings};
///
/// assert_eq!(StopStrings::new(["a", ""]).unwrap_err(), StopError::Empty(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopError {
    /// The string with this index is empty: every text would end at once.
    Empty(usize),
    /// All strings together are longer than [`StopStrings::MAX_BYTES`].
    TooLong,
}

impl fmt::Display for StopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(number) => {
                write!(f, "stop string {number} is empty, so every text would end at once")
            }
            Self::TooLong => write!(f, "the stop strings have more than {} bytes", StopStrings::MAX_BYTES),
        }
    }
}

impl core::error::Error for StopError {}

impl Default for StopStrings {
    /// Creates an empty set: the text never ends early.
    fn default() -> Self {
        Self { automaton: Arc::new(Automaton { states: vec![State::default()] }) }
    }
}

#[derive(Debug)]
struct Automaton {
    states: Vec<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// The transitions by byte.
    next: Vec<(u8, u32)>,
    /// The state of the longest proper suffix that is a state.
    fallback: u32,
    /// The number of bytes that lead here.
    depth: usize,
    /// The stop string that ends here, and its length; the longest one, and of equal strings the first.
    ends: Option<(usize, usize)>,
}

impl StopStrings {
    /// The maximum total length of all strings in bytes.
    pub const MAX_BYTES: usize = 1 << 16;

    /// Builds the automaton for some strings.
    pub fn new<S: AsRef<str>>(strings: impl IntoIterator<Item = S>) -> Result<Self, StopError> {
        let mut states = vec![State::default()];
        let mut bytes = 0;
        for (number, string) in strings.into_iter().enumerate() {
            let string = string.as_ref().as_bytes();
            bytes += string.len();
            if string.is_empty() {
                return Err(StopError::Empty(number));
            }
            if bytes > Self::MAX_BYTES {
                return Err(StopError::TooLong);
            }
            let mut at = 0;
            for &byte in string {
                at = child(&mut states, at, byte);
            }
            states[at].ends.get_or_insert((number, string.len()));
        }
        let mut automaton = Automaton { states };
        automaton.find_fallbacks();
        Ok(Self { automaton: Arc::new(automaton) })
    }

    /// Returns the length of the longest string in bytes.
    pub fn longest(&self) -> usize {
        self.automaton.states.iter().map(|state| state.depth).max().unwrap_or(0)
    }

    /// Returns a stream for a new text.
    pub fn stream(&self) -> StopStream {
        StopStream { automaton: self.automaton.clone(), state: 0, read: 0, held: Vec::new(), stopped: None }
    }
}

/// Returns the child of a state, and creates it if necessary.
fn child(states: &mut Vec<State>, at: usize, byte: u8) -> usize {
    if let Some((_, next)) = states[at].next.iter().find(|(other, _)| *other == byte) {
        return *next as usize;
    }
    let (next, depth) = (states.len(), states[at].depth + 1);
    states[at].next.push((byte, next as u32));
    states.push(State { depth, ..State::default() });
    next
}

impl Automaton {
    /// Computes the fallbacks, breadth first, because a state needs those of shorter states.
    fn find_fallbacks(&mut self) {
        let mut work = VecDeque::from([0u32]);
        while let Some(at) = work.pop_front() {
            let state = self.states[at as usize].clone();
            for (byte, next) in state.next {
                let fallback = if at == 0 { 0 } else { self.step(state.fallback, byte) };
                let inherited = self.states[fallback as usize].ends;
                let next_state = &mut self.states[next as usize];
                next_state.fallback = fallback;
                // The longer string began earlier, so it wins.
                next_state.ends = next_state.ends.or(inherited);
                work.push_back(next);
            }
        }
    }

    fn step(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            let here = &self.states[state as usize];
            match here.next.iter().find(|(other, _)| *other == byte) {
                Some((_, next)) => return *next,
                None if state == 0 => return 0,
                None => state = here.fallback,
            }
        }
    }
}

/// A text that is being written: bytes go in, and text that may be shown comes out.
///
/// ```
/// use maskwright::StopStrings;
///
/// let mut stream = StopStrings::new(["\n\n"])?.stream();
/// assert_eq!(stream.push("caf\u{e9}\n".as_bytes()), "caf\u{e9}");
/// assert_eq!(stream.push(b"\nmore"), "");
/// assert_eq!(stream.stopped(), Some(0));
/// # Ok::<(), maskwright::StopError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopStream {
    automaton: Arc<Automaton>,
    state: u32,
    /// The number of bytes that were added.
    read: usize,
    /// The bytes that are not shown yet.
    held: Vec<u8>,
    stopped: Option<usize>,
}

impl StopStream {
    /// Adds bytes, usually those of a token, and returns the text that can be shown now. After a stop string it returns
    /// nothing more. Bytes that are not UTF-8 become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.push_if(bytes, |_| true)
    }

    /// Like [`Self::push`], but a stop string ends the text only if `may_end` returns `true`. Its argument is the
    /// number of bytes before the string. A stop string that does not end the text is part of it.
    ///
    /// ```
    /// use maskwright::StopStrings;
    ///
    /// let mut stream = StopStrings::new(["."])?.stream();
    /// assert_eq!(stream.push_if(b"3.14.", |before| before >= 4), "3.14");
    /// assert_eq!(stream.stopped(), Some(0));
    /// # Ok::<(), maskwright::StopError>(())
    /// ```
    pub fn push_if(&mut self, bytes: &[u8], mut may_end: impl FnMut(usize) -> bool) -> String {
        for &byte in bytes {
            if self.stopped.is_some() {
                break;
            }
            self.held.push(byte);
            self.read += 1;
            self.state = self.automaton.step(self.state, byte);
            // Tries the longest stop string that ends here first, then its suffixes.
            let (mut state, mut shorter) = (&self.automaton.states[self.state as usize], usize::MAX);
            while let Some((number, length)) = state.ends {
                if length < shorter && may_end(self.read - length) {
                    self.stopped = Some(number);
                    self.held.truncate(self.held.len().saturating_sub(length));
                    let shown = String::from_utf8_lossy(&self.held).into_owned();
                    self.held.clear();
                    return shown;
                }
                shorter = length;
                state = &self.automaton.states[state.fallback as usize];
            }
        }
        let kept = self.automaton.states[self.state as usize].depth;
        let end = self.held.len().saturating_sub(kept);
        let end = end - unfinished(&self.held[..end]);
        let shown = String::from_utf8_lossy(&self.held[..end]).into_owned();
        self.held.drain(..end);
        shown
    }

    /// Ends the text and returns what was held back.
    pub fn finish(&mut self) -> String {
        self.state = 0;
        let shown = String::from_utf8_lossy(&self.held).into_owned();
        self.held.clear();
        shown
    }

    /// Returns the index of the stop string that has ended the text.
    pub fn stopped(&self) -> Option<usize> {
        self.stopped
    }
}

/// Returns the number of bytes at the end that are the beginning of a character.
pub(crate) fn unfinished(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        // A beginning that may still be completed; all other invalid bytes stay invalid.
        Some(chunk) if is_beginning(chunk.invalid()) => chunk.invalid().len(),
        _ => 0,
    }
}

fn is_beginning(bytes: &[u8]) -> bool {
    match core::str::from_utf8(bytes) {
        Ok(_) => false,
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: the stop string that is complete first, and of those that end at the same place the one that
    /// began first.
    fn by_search(strings: &[&str], text: &str) -> (String, Option<usize>) {
        let ends = |at: usize| {
            let found =
                strings.iter().enumerate().filter(|(_, s)| text.as_bytes()[..at].ends_with(s.as_bytes()));
            found.max_by_key(|(number, s)| (s.len(), core::cmp::Reverse(*number)))
        };
        match (0..=text.len()).find_map(|at| ends(at).map(|(number, s)| (at - s.len(), number))) {
            Some((end, number)) => (text[..end].to_owned(), Some(number)),
            None => (text.to_owned(), None),
        }
    }

    #[test]
    fn streams_show_what_a_search_finds() {
        let sets: [&[&str]; 5] = [&["ab", "bab"], &["aa"], &["a", "ab"], &["é", "bé"], &["abab", "ba", "é"]];
        let letters = ["a", "b", "é"];
        for strings in sets {
            let stops = StopStrings::new(strings).unwrap();
            for number in 0..3usize.pow(7) {
                let text: String = (0..7).map(|place| letters[number / 3usize.pow(place) % 3]).collect();
                let (wanted, stopped) = by_search(strings, &text);
                // In pieces of one, two and three bytes.
                for size in 1..4 {
                    let mut stream = stops.stream();
                    let mut shown: String =
                        text.as_bytes().chunks(size).map(|piece| stream.push(piece)).collect();
                    assert!(wanted.starts_with(&shown), "{strings:?} in {text}: {shown}");
                    shown.push_str(&stream.finish());
                    assert_eq!((shown, stream.stopped()), (wanted.clone(), stopped), "{strings:?} in {text}");
                }
            }
        }
    }

    /// Decodes all bytes at once, then cuts before the first stop string.
    fn decoded(bytes: &[u8], stops: &[String]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let end = stops.iter().filter_map(|stop| text.find(stop.as_str())).min();
        text[..end.unwrap_or(text.len())].to_owned()
    }

    #[test]
    fn every_cut_gives_the_same_text() {
        let texts: [&[u8]; 6] = [
            "Grüße, 日本語 😀!".as_bytes(),
            b"aabaabaac##stop",
            b"bad \xFF\xC3( \xE6\x97 \xF0\x9F\x98",
            b"aaab",
            "é###é".as_bytes(),
            b"",
        ];
        let stops: [&[&str]; 6] = [&[], &["aac"], &["##", "#stop"], &["aab", "ab"], &["é#", "😀!"], &["語 "]];
        let mut stopped = 0;
        for text in texts {
            for stops in stops {
                let stops: Vec<String> = stops.iter().map(|&stop| stop.to_owned()).collect();
                for size in 1..=text.len().max(1) {
                    let mut stream = StopStrings::new(&stops).unwrap().stream();
                    let mut out = String::new();
                    for chunk in text.chunks(size) {
                        out += &stream.push(chunk);
                        assert!(
                            decoded(text, &stops).starts_with(&out),
                            "{out:?} would have to be taken back"
                        );
                    }
                    out += &stream.finish();
                    assert_eq!(out, decoded(text, &stops), "{size} bytes at a time, {stops:?}");
                    stopped += usize::from(stream.stopped().is_some());
                }
            }
        }
        assert!(stopped > 20);
    }

    #[test]
    fn nothing_that_is_certain_is_held_back() {
        let stops = StopStrings::new(["<end>"]).unwrap();
        let mut stream = stops.stream();
        assert_eq!(stream.push(b"a<en"), "a");
        assert_eq!(stream.push(b"<"), "<en");
        assert_eq!(stream.push("é".as_bytes()), "<é");
        assert_eq!(stream.push(&"é".as_bytes()[..1]), "");
        assert_eq!(stream.push(&"é".as_bytes()[1..]), "é");
        // A byte that begins no character is not held back.
        assert_eq!(stream.push(b"\xFF!"), "\u{FFFD}!");
    }

    #[test]
    fn strings_that_cannot_be_used() {
        assert_eq!(StopStrings::new(["a", ""]).unwrap_err(), StopError::Empty(1));
        let long = "a".repeat(StopStrings::MAX_BYTES + 1);
        assert_eq!(StopStrings::new([long]).unwrap_err(), StopError::TooLong);
        let none: [&str; 0] = [];
        assert_eq!(StopStrings::new(none).unwrap().stream().push(b"text"), "text");
    }
}
