//! A model computed by llama.cpp, for the architectures and quantizations that [`Llama`](super::Llama) does not
//! support.
//!
//! It requires the feature `llama-cpp`, which needs cmake, a C++ compiler and libclang. Weights and arithmetic are
//! llama.cpp's; tokenizer, chat template, constraints, sampling and scheduling are ours, so this is only a [`Model`]:
//!
//! ```no_run
//! use maskwright_runtime::{Loaded, model::llama_cpp::Options};
//!
//! let loaded = Loaded::open_llama_cpp("model.gguf", &Options::default())?;
//! # Ok::<(), maskwright_runtime::model::LoadError>(())
//! ```
//!
//! llama.cpp has one cache for all sequences: a fixed number of *cells*. Each cell holds the keys and values of one
//! token at one position, and is marked with the sequences that see it. These sequences are identified by a few ids,
//! the *slots*:
//!
//! ```text
//!   cells     0  1  2  3  4  5  6  7        A: "one two three"   slot 0
//!   position  0  1  2  2  3  ·  ·  ·        B: a fork of A at 2, then "four five"   slot 1
//!   slots    01 01  0  1  1  ·  ·  ·        five cells for seven tokens: the first two are shared
//! ```
//! So a fork only marks cells and copies nothing. But cells and slots can run out, which cannot happen with our own
//! model. A step that would need more is refused before it begins ([`NoRoom`](ModelError::NoRoom),
//! [`NoSlot`](ModelError::NoSlot)), and the scheduler then drops texts that it only keeps for reuse. A sequence gets a
//! slot with its first token, so empty sequences cost nothing.
//!
//! **Reproducibility.** llama.cpp uses different kernels for different batch sizes. The last digits of logits depend on
//! the other sequences of a step, so a choice between two nearly equal tokens can change; with [`Llama`](super::Llama)
//! it cannot.

mod cells;
mod library;

use std::{collections::BTreeMap, num::NonZero, path::Path};

use self::{
    cells::{Cell, Cells},
    library::{Library, Row, Slot},
};
use super::{Feed, LoadError, LoadOptions, Logits, Model, ModelError, SequenceId, Wanted, check_feeds};

/// Options for loading a model with llama.cpp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The number of threads and the length of a text, as for every model.
    pub load: LoadOptions,
    /// The maximum number of sequences that hold tokens at the same time: at most 256, and 64 by default.
    pub sequences: Option<NonZero<usize>>,
    /// The maximum number of tokens of all sequences together, counting shared ones once. Their memory is allocated at
    /// once. By default it is as large as the weights, but at least 512 MiB.
    pub tokens: Option<NonZero<usize>>,
}

/// A model computed by llama.cpp; see the [module](self).
pub struct LlamaCpp {
    library: Library,
    sequences: BTreeMap<SequenceId, Sequence>,
    next: u64,
    cells: Cells,
    /// The slots that no sequence uses.
    slots: Vec<Slot>,
    /// The rows of the current step. They are returned after the step has succeeded.
    rows: Logits,
}

/// The tokens of a sequence.
#[derive(Debug, Default)]
struct Sequence {
    /// Its id in llama.cpp. Sequences without tokens have none.
    slot: Option<Slot>,
    /// A cell for each token.
    cells: Vec<Cell>,
}

impl LlamaCpp {
    /// Loads a GGUF file.
    pub fn load(path: impl AsRef<Path>, options: &Options) -> Result<Self, LoadError> {
        let library = Library::load(path.as_ref(), options)?;
        let sizes = library.sizes();
        Ok(Self {
            sequences: BTreeMap::new(),
            next: 0,
            cells: Cells::new(sizes.cells),
            slots: Slot::all(sizes.sequences).rev().collect(),
            rows: Logits::new(),
            library,
        })
    }

    /// Returns how many tokens all sequences can hold together.
    pub fn tokens(&self) -> usize {
        self.library.sizes().cells
    }

    fn sequence(&self, id: SequenceId) -> Result<&Sequence, ModelError> {
        self.sequences.get(&id).ok_or(ModelError::NoSequence(id))
    }

    fn insert(&mut self, sequence: Sequence) -> SequenceId {
        let id = SequenceId(self.next);
        self.next += 1;
        self.sequences.insert(id, sequence);
        id
    }

    fn no_slot(&self) -> ModelError {
        ModelError::NoSlot { sequences: self.library.sizes().sequences }
    }

    /// Checks a step completely.
    fn check(&self, feeds: &[Feed<'_>]) -> Result<(), ModelError> {
        check_feeds(feeds, self.context(), self.width(), |id| Ok(self.sequence(id)?.cells.len()))?;
        let is_new = |feed: &&Feed<'_>| self.sequence(feed.sequence).is_ok_and(|one| one.slot.is_none());
        if feeds.iter().filter(is_new).count() > self.slots.len() {
            return Err(self.no_slot());
        }
        let (asked, free) = (feeds.iter().map(|feed| feed.tokens.len()).sum(), self.cells.free());
        if asked > free {
            return Err(ModelError::NoRoom { asked, free, tokens: self.tokens() });
        }
        Ok(())
    }

    /// Returns the place of each fed token. Sequences without a slot get one; [`Self::check`] has made sure that there
    /// are enough.
    fn places(&mut self, feeds: &[Feed<'_>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for feed in feeds {
            let Some(sequence) = self.sequences.get_mut(&feed.sequence) else { continue };
            if sequence.slot.is_none() {
                sequence.slot = self.slots.pop();
            }
            let Some(slot) = sequence.slot else { continue };
            let (before, last) = (sequence.cells.len(), feed.tokens.len().saturating_sub(1));
            rows.extend(feed.tokens.iter().enumerate().map(|(at, &token)| {
                let is_wanted = match feed.wanted {
                    Wanted::None => false,
                    Wanted::Last => at == last,
                    Wanted::All => true,
                };
                Row { token, position: before + at, slot, is_wanted }
            }));
        }
        rows
    }

    /// Records that the tokens of a step were computed.
    fn grow(&mut self, feeds: &[Feed<'_>]) {
        for feed in feeds {
            if let Some(sequence) = self.sequences.get_mut(&feed.sequence) {
                sequence.cells.extend(self.cells.take(feed.tokens.len()));
            }
        }
    }

    /// Forgets the tokens of a sequence from a length on, including those of a failed step.
    fn cut(&mut self, id: SequenceId, length: usize) {
        let Some(sequence) = self.sequences.get_mut(&id) else { return };
        self.cells.release(sequence.cells.drain(length.min(sequence.cells.len())..));
        let Some(slot) = sequence.slot else { return };
        self.library.forget(slot, length);
        if length == 0 {
            sequence.slot = None;
            self.slots.push(slot);
        }
    }
}

impl Model for LlamaCpp {
    fn width(&self) -> usize {
        self.library.sizes().width
    }

    fn context(&self) -> usize {
        self.library.sizes().context
    }

    fn open(&mut self) -> SequenceId {
        self.insert(Sequence::default())
    }

    fn fork(&mut self, of: SequenceId, length: usize) -> Result<SequenceId, ModelError> {
        let Sequence { slot: from, cells } = self.sequence(of)?;
        let shared =
            cells.get(..length).ok_or(ModelError::TooShort { asked: length, length: cells.len() })?.to_vec();
        let Some(from) = from.filter(|_| length > 0) else { return Ok(self.open()) };
        let slot = self.slots.pop().ok_or_else(|| self.no_slot())?;
        self.library.share(from, slot, length);
        self.cells.share(&shared);
        Ok(self.insert(Sequence { slot: Some(slot), cells: shared }))
    }

    fn truncate(&mut self, sequence: SequenceId, length: usize) -> Result<(), ModelError> {
        let before = self.sequence(sequence)?.cells.len();
        if length > before {
            return Err(ModelError::TooShort { asked: length, length: before });
        }
        if length < before {
            self.cut(sequence, length);
        }
        Ok(())
    }

    fn close(&mut self, sequence: SequenceId) {
        self.cut(sequence, 0);
        self.sequences.remove(&sequence);
    }

    fn length(&self, sequence: SequenceId) -> Result<usize, ModelError> {
        Ok(self.sequence(sequence)?.cells.len())
    }

    fn step(&mut self, feeds: &[Feed<'_>], logits: &mut Logits) -> Result<(), ModelError> {
        self.check(feeds)?;
        let rows = self.places(feeds);
        if let Err(reason) = self.library.compute(&rows, &mut self.rows) {
            for feed in feeds {
                let before = self.length(feed.sequence).unwrap_or(0);
                self.cut(feed.sequence, before);
            }
            return Err(ModelError::Failed(reason));
        }
        self.grow(feeds);
        std::mem::swap(logits, &mut self.rows);
        Ok(())
    }

    fn cache_bytes(&self) -> usize {
        self.cells.used() * self.library.sizes().cell_bytes
    }
}

impl std::fmt::Debug for LlamaCpp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlamaCpp")
            .field("sizes", self.library.sizes())
            .field("sequences", &self.sequences.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use maskwright_vocab::TokenId;

    use super::*;

    /// llama.cpp fails in the middle of a step, because our count has more cells than it has.
    #[test]
    fn a_step_that_fails_half_way_is_taken_back() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
        );
        if !Path::new(path).exists() {
            // Not with a macro, because the test harness would hide the output.
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: smollm2 is not there; run scripts/assets.sh smollm2");
            return;
        }
        let options = Options { tokens: NonZero::new(256), ..Options::default() };
        let mut model = LlamaCpp::load(path, &options).unwrap();
        model.cells = Cells::new(5000);
        model.library.at_once = 64;
        let free = (model.cells.free(), model.slots.len());
        let tokens: Vec<TokenId> = (0..200).map(|at| TokenId(at * 31 + 900)).collect();
        let (one, two) = (model.open(), model.open());
        let feed = |sequence, tokens| Feed { sequence, tokens, wanted: Wanted::Last };
        let mut logits = Logits::new();
        model.step(&[feed(one, &tokens[..20])], &mut logits).unwrap();
        let before = logits.row(0).unwrap().to_vec();
        let failure = model.step(&[feed(one, &tokens[20..100]), feed(two, &tokens)], &mut logits);
        assert!(matches!(failure, Err(ModelError::Failed(_))), "{failure:?}");
        assert_eq!((model.length(one), model.length(two)), (Ok(20), Ok(0)));
        assert_eq!((model.cells.free(), model.slots.len()), (free.0 - 20, free.1 - 1));
        assert_eq!(logits.row(0), Some(&before[..]));
        // llama.cpp has forgotten it, too: there is room for as many tokens as it can hold.
        model.step(&[feed(two, &tokens)], &mut logits).unwrap();
        model.step(&[feed(one, &tokens[20..56])], &mut logits).unwrap();
        model.close(one);
        model.close(two);
        assert_eq!((model.cells.free(), model.slots.len()), free);
    }
}
