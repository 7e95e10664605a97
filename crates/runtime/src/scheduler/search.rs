//! Stop strings in an answer under a constraint. They only end it where it is complete.
//!
//! ```text
//! constraint: a JSON object      stop string: "}"
//! {"a": {"b": 1}}  ──▶ the first brace stands behind `{"a": {"b": 1`, which is no object: it is a part of the text
//! ```
//! A second guide follows with a delay, so that it can check whether a text that ends before the stop string is
//! complete.

use std::{collections::VecDeque, sync::Arc};

use maskwright::{StopStream, StopStrings};
use maskwright_vocab::{TokenId, Vocabulary};

use crate::guide::{Guide, GuideError};

/// The search for stop strings.
pub(super) struct Search {
    stream: StopStream,
    /// The delayed guide. It has accepted all tokens except the pending ones.
    follower: Box<dyn Guide>,
    /// The last tokens. One of them contains the first byte of any stop string that ends now.
    pending: VecDeque<TokenId>,
    /// The number of bytes before the pending tokens.
    before: usize,
    /// The number of bytes so far.
    length: usize,
    longest: usize,
    vocabulary: Arc<Vocabulary>,
}

impl Search {
    /// Creates a search in a text that begins at the state of a guide; `None` if there are no stop strings.
    pub(super) fn new(stops: &StopStrings, guide: &dyn Guide, vocabulary: &Arc<Vocabulary>) -> Option<Self> {
        let longest = stops.longest();
        (longest > 0).then(|| Self {
            stream: stops.stream(),
            follower: guide.fork(),
            pending: VecDeque::new(),
            before: 0,
            length: 0,
            longest,
            vocabulary: vocabulary.clone(),
        })
    }

    /// Adds a token that the guide has accepted. Returns the text that can be shown now, and whether a stop string has
    /// ended the text.
    pub(super) fn push(&mut self, token: TokenId) -> Result<(String, bool), GuideError> {
        self.pending.push_back(token);
        let vocabulary = self.vocabulary.clone();
        let bytes = vocabulary.bytes(token);
        self.length += bytes.len();
        let (follower, pending) = (&self.follower, &self.pending);
        let mut failed = None;
        let may_end = |end: usize| {
            let is_complete = is_complete(&**follower, pending, end - self.before, &vocabulary);
            is_complete.unwrap_or_else(|error| {
                failed = Some(error);
                true
            })
        };
        let text = self.stream.push_if(bytes, may_end);
        if let Some(error) = failed {
            return Err(error);
        }
        // A stop string that ends later begins after these.
        while let Some(&first) = self.pending.front() {
            let end = self.before + self.vocabulary.bytes(first).len();
            if end + self.longest > self.length {
                break;
            }
            self.follower.accept(first)?;
            self.before = end;
            self.pending.pop_front();
        }
        Ok((text, self.stream.stopped().is_some()))
    }

    /// Returns the text that was held back.
    pub(super) fn finish(&mut self) -> String {
        self.stream.finish()
    }

    pub(super) fn fork(&self) -> Self {
        Self {
            stream: self.stream.clone(),
            follower: self.follower.fork(),
            pending: self.pending.clone(),
            before: self.before,
            length: self.length,
            longest: self.longest,
            vocabulary: self.vocabulary.clone(),
        }
    }
}

/// Whether the text is complete after this number of bytes of some tokens.
fn is_complete(
    guide: &dyn Guide,
    tokens: &VecDeque<TokenId>,
    mut bytes: usize,
    vocabulary: &Vocabulary,
) -> Result<bool, GuideError> {
    let mut guide = guide.fork();
    for &token in tokens {
        let spelled = vocabulary.bytes(token);
        if bytes < spelled.len() {
            return guide.completes(&spelled[..bytes]);
        }
        guide.accept(token)?;
        bytes -= spelled.len();
    }
    guide.completes(&[])
}
