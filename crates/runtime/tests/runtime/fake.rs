//! A model that has learned nothing: its logits are a function of the text it has read.
//!
//! Tokens 0 to 255 are bytes, 256 to 258 a few words, 259 is the end. A text that begins with token 1 is continued by
//! chance, but always in the same way; a text that begins with 2 is continued by what was dictated.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc},
};

use maskwright_runtime::{
    model::{Feed, Logits, Model, ModelError, SequenceId, Wanted},
    sampler::rng::Rng,
};
use maskwright_vocab::{TokenId, Vocabulary, VocabularyBuilder};

pub(crate) const END: TokenId = TokenId(259);
pub(crate) const WORDS: [(u32, &str); 3] = [(256, "the"), (257, " and"), (258, "\": \"")];
pub(crate) const WIDTH: usize = 260;

pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=255_u8 {
        builder.token(TokenId(u32::from(byte)), &[byte]).unwrap();
    }
    for (id, text) in WORDS {
        builder.token(TokenId(id), text.as_bytes()).unwrap();
    }
    builder.special(END, "<end>").unwrap().eos(END);
    Arc::new(builder.finish().unwrap())
}

/// Bytes as tokens.
pub(crate) fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().map(|byte| TokenId(u32::from(byte))).collect()
}

/// What a fake has seen.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) steps: usize,
    /// Sequences of the largest step.
    pub(crate) widest: usize,
    /// Tokens of the largest feed.
    pub(crate) longest: usize,
    pub(crate) fed: usize,
    pub(crate) open: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) texts: BTreeMap<SequenceId, Vec<TokenId>>,
    pub(crate) next: u64,
    pub(crate) log: Arc<Mutex<Log>>,
    /// What follows a prompt of a given length that begins with token 2.
    pub(crate) dictation: Vec<TokenId>,
    pub(crate) prompt: usize,
    /// If there is a gate, each step waits for a permit.
    pub(crate) gate: Option<mpsc::Receiver<()>>,
    /// A token that makes the model panic.
    pub(crate) poison: Option<TokenId>,
    /// The most tokens of all texts together, and the most texts that have any.
    pub(crate) room: Option<(usize, usize)>,
    /// The longest text, if not 200 tokens.
    pub(crate) context: Option<usize>,
}

impl Fake {
    /// Whether so many texts, and so many tokens, can be added.
    fn check_room(&self, texts: usize, asked: usize) -> Result<(), ModelError> {
        let Some((tokens, sequences)) = self.room else { return Ok(()) };
        if self.texts.values().filter(|text| !text.is_empty()).count() + texts > sequences {
            return Err(ModelError::NoSlot { sequences });
        }
        let free = tokens - self.cache_bytes();
        if asked > free { Err(ModelError::NoRoom { asked, free, tokens }) } else { Ok(()) }
    }

    fn write(&self, text: &[TokenId], row: &mut [f32]) {
        if text[0] == TokenId(2) {
            let at = text.len() - self.prompt;
            row[self.dictation.get(at).copied().unwrap_or(END).index()] = 50.0;
            return;
        }
        let state =
            text.iter().fold(7_u64, |state, token| state.wrapping_mul(31).wrapping_add(u64::from(token.0)));
        let rng = Rng::new(Some(state), 0);
        for (id, logit) in (0..).zip(row) {
            *logit = (rng.at(id) * 4.0) as f32;
        }
    }
}

impl Model for Fake {
    fn width(&self) -> usize {
        WIDTH
    }

    fn context(&self) -> usize {
        self.context.unwrap_or(200)
    }

    fn open(&mut self) -> SequenceId {
        self.next += 1;
        self.texts.insert(SequenceId(self.next), Vec::new());
        self.log.lock().unwrap().open = self.texts.len();
        SequenceId(self.next)
    }

    fn fork(&mut self, of: SequenceId, length: usize) -> Result<SequenceId, ModelError> {
        let text = self.texts.get(&of).ok_or(ModelError::NoSequence(of))?;
        let text =
            text.get(..length).ok_or(ModelError::TooShort { asked: length, length: text.len() })?.to_vec();
        self.check_room(usize::from(length > 0), length)?;
        let id = self.open();
        self.texts.insert(id, text);
        Ok(id)
    }

    fn truncate(&mut self, sequence: SequenceId, length: usize) -> Result<(), ModelError> {
        self.texts.get_mut(&sequence).ok_or(ModelError::NoSequence(sequence))?.truncate(length);
        Ok(())
    }

    fn close(&mut self, sequence: SequenceId) {
        self.texts.remove(&sequence);
        self.log.lock().unwrap().open = self.texts.len();
    }

    fn length(&self, sequence: SequenceId) -> Result<usize, ModelError> {
        Ok(self.texts.get(&sequence).ok_or(ModelError::NoSequence(sequence))?.len())
    }

    fn step(&mut self, feeds: &[Feed<'_>], logits: &mut Logits) -> Result<(), ModelError> {
        if let Some(gate) = &self.gate {
            // A gate that is gone is open.
            let _ = gate.recv();
        }
        {
            let mut log = self.log.lock().unwrap();
            log.steps += 1;
            log.widest = log.widest.max(feeds.len());
            log.longest = log.longest.max(feeds.iter().map(|feed| feed.tokens.len()).max().unwrap_or(0));
            log.fed += feeds.iter().map(|feed| feed.tokens.len()).sum::<usize>();
        }
        let is_new = |feed: &&Feed<'_>| self.texts.get(&feed.sequence).is_some_and(Vec::is_empty);
        let asked = feeds.iter().map(|feed| feed.tokens.len()).sum();
        self.check_room(feeds.iter().filter(is_new).count(), asked)?;
        let context = self.context();
        let mut rows = Vec::new();
        for feed in feeds {
            assert!(!feed.tokens.iter().any(|token| Some(*token) == self.poison), "poisoned");
            assert_ne!(feed.wanted, Wanted::All, "nobody asks for all rows");
            let text = self.texts.get_mut(&feed.sequence).ok_or(ModelError::NoSequence(feed.sequence))?;
            text.extend(feed.tokens);
            if text.len() > context {
                return Err(ModelError::Full { length: text.len(), context });
            }
            if feed.wanted == Wanted::Last {
                let mut row = vec![0.0; WIDTH];
                self.write(&self.texts[&feed.sequence], &mut row);
                rows.extend(row);
            }
        }
        logits.reset(rows.len() / WIDTH, WIDTH).copy_from_slice(&rows);
        Ok(())
    }

    fn cache_bytes(&self) -> usize {
        self.texts.values().map(Vec::len).sum()
    }
}
