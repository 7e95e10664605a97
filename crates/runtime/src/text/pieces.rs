//! Bytes of tokens become pieces of text that can be shown at once and never have to be taken back.
//!
//! Two things are held back. A character may be spread over several tokens, so its first bytes wait for the rest. And the
//! end of a text may be the beginning of a *stop string*, which ends the answer and is not a part of it:
//!
//! ```
//! use maskwright_runtime::text::Pieces;
//!
//! let mut pieces = Pieces::new(&["###".into()])?;
//! assert_eq!(pieces.push(b"caf\xC3"), "caf");     // half of an é
//! assert_eq!(pieces.push(b"\xA9 #"), "é ");       // # may be the beginning of ###
//! assert_eq!(pieces.push(b"1"), "#1");            // it was not
//! assert_eq!(pieces.push(b"#"), "");
//! assert_eq!(pieces.push(b"## and more"), "");
//! assert!(pieces.is_stopped());
//! # Ok::<(), maskwright_runtime::text::StopError>(())
//! ```
//!
//! Bytes that are no UTF-8 become U+FFFD, one for each sequence that cannot go on, as everywhere in Rust.

use std::fmt;

/// The most stop strings.
const MAX_STOPS: usize = 16;
/// The most bytes of a stop string.
const MAX_STOP_BYTES: usize = 1024;

/// Text on its way out; see the [module](self).
#[derive(Debug, Clone)]
pub struct Pieces {
    stops: Vec<String>,
    /// The first bytes of a character.
    begun: Vec<u8>,
    /// Text that may be the beginning of a stop string.
    held: String,
    is_stopped: bool,
}

impl Pieces {
    /// Nothing yet. The answer ends before any of these strings.
    pub fn new(stops: &[String]) -> Result<Self, StopError> {
        if stops.len() > MAX_STOPS {
            return Err(StopError(format!(
                "there are {} stop strings, but at most {MAX_STOPS} are allowed",
                stops.len()
            )));
        }
        for stop in stops {
            if stop.is_empty() {
                return Err(StopError("a stop string is empty, which would end every answer at once".into()));
            }
            if stop.len() > MAX_STOP_BYTES {
                let reason = format!(
                    "a stop string has {} bytes, but at most {MAX_STOP_BYTES} are allowed",
                    stop.len()
                );
                return Err(StopError(reason));
            }
        }
        Ok(Self { stops: stops.to_vec(), begun: Vec::new(), held: String::new(), is_stopped: false })
    }

    /// Takes the bytes of a token; gives the text that is certain now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        if self.is_stopped {
            return String::new();
        }
        self.begun.extend_from_slice(bytes);
        self.decode(false);
        self.release(false)
    }

    /// The rest, at the end of the answer.
    pub fn finish(&mut self) -> String {
        if self.is_stopped {
            return String::new();
        }
        self.decode(true);
        self.release(true)
    }

    /// Whether a stop string was found. Nothing comes out any more.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Moves whole characters from the bytes to the text.
    fn decode(&mut self, is_end: bool) {
        let mut rest = &self.begun[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.held.push_str(text);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.held.push_str(&String::from_utf8_lossy(good));
                    rest = bad;
                    match error.error_len() {
                        Some(len) => {
                            self.held.push(char::REPLACEMENT_CHARACTER);
                            rest = &rest[len..];
                        }
                        None if is_end => {
                            self.held.push(char::REPLACEMENT_CHARACTER);
                            rest = &[];
                            break;
                        }
                        None => break,
                    }
                }
            }
        }
        self.begun = rest.to_vec();
    }

    /// Gives out what cannot be a part of a stop string.
    fn release(&mut self, is_end: bool) -> String {
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(at) = found {
            self.is_stopped = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let keep = if is_end {
            0
        } else {
            self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0)
        };
        let rest = self.held.split_off(self.held.len() - keep);
        std::mem::replace(&mut self.held, rest)
    }
}

/// How many bytes at the end of a text are the beginning of a stop string.
fn overlap(text: &str, stop: &str) -> usize {
    let lengths = stop.char_indices().rev().map(|(at, _)| at);
    lengths.into_iter().find(|&length| text.ends_with(&stop[..length])).unwrap_or(0)
}

/// A stop string that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopError(String);

impl fmt::Display for StopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StopError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// All bytes at once: decode, then cut before the first stop string.
    fn slow(bytes: &[u8], stops: &[String]) -> String {
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
                    let mut pieces = Pieces::new(&stops).unwrap();
                    let mut out = String::new();
                    for chunk in text.chunks(size) {
                        out += &pieces.push(chunk);
                        assert!(slow(text, &stops).starts_with(&out), "{out:?} would have to be taken back");
                    }
                    out += &pieces.finish();
                    assert_eq!(out, slow(text, &stops), "{size} bytes at a time, {stops:?}");
                    stopped += usize::from(pieces.is_stopped());
                }
            }
        }
        assert!(stopped > 20);
    }

    #[test]
    fn senseless_stop_strings_are_refused() {
        assert!(Pieces::new(&[String::new()]).is_err());
        assert!(Pieces::new(&vec!["a".to_owned(); 17]).is_err());
        assert!(Pieces::new(&["a".repeat(1025)]).is_err());
    }
}
