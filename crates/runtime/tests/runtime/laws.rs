//! What every model has to keep to: batches, forks and truncations are as good as computing anew, and what is refused changes nothing.
//!
//! The laws want a model of at least 50 tokens whose context is 100 tokens long.

use maskwright_runtime::model::{Feed, Logits, Model, ModelError, SequenceId, Wanted};
use maskwright_vocab::TokenId;

pub(crate) struct Laws<'m> {
    pub(crate) model: &'m mut dyn Model,
    /// The token for each number below 50.
    pub(crate) token: fn(u32) -> TokenId,
    /// Panics if two rows of logits differ by more than they may.
    pub(crate) same: fn(&[f32], &[f32]),
}

/// Numbers of some tokens, different for each seed.
pub(crate) fn text(seed: u32, length: usize) -> Vec<u32> {
    (0..length as u32).map(|at| (at * 7 + seed * 13 + at * at * seed) % 50).collect()
}

impl Laws<'_> {
    fn tokens(&self, ids: &[u32]) -> Vec<TokenId> {
        ids.iter().copied().map(self.token).collect()
    }

    /// Feeds a sequence, and gives all rows.
    pub(crate) fn feed(&mut self, sequence: SequenceId, ids: &[u32]) -> Vec<Vec<f32>> {
        let mut logits = Logits::new();
        let tokens = self.tokens(ids);
        self.model.step(&[Feed { sequence, tokens: &tokens, wanted: Wanted::All }], &mut logits).unwrap();
        rows(&logits)
    }

    /// All rows of a text that nobody else is computed with.
    pub(crate) fn alone(&mut self, ids: &[u32]) -> Vec<Vec<f32>> {
        let sequence = self.model.open();
        let rows = self.feed(sequence, ids);
        self.model.close(sequence);
        rows
    }

    fn compare(&self, found: &[Vec<f32>], expected: &[Vec<f32>]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            (self.same)(found, expected);
        }
    }

    pub(crate) fn a_batch_equals_one_after_the_other(&mut self) {
        let texts: Vec<Vec<u32>> = (0..5).map(|seed| text(seed, 3 + 17 * seed as usize)).collect();
        let expected: Vec<Vec<Vec<f32>>> = texts.iter().map(|ids| self.alone(ids)).collect();
        let sequences: Vec<SequenceId> = texts.iter().map(|_| self.model.open()).collect();
        let mut found: Vec<Vec<Vec<f32>>> = vec![Vec::new(); texts.len()];
        // In each step, each sequence takes a different number of tokens, some none.
        let mut done = [0; 5];
        for step in 0.. {
            let mut parts = Vec::new();
            for (index, ids) in texts.iter().enumerate() {
                let count = ((step * 3 + index * 5) % 7).min(ids.len() - done[index]);
                if count > 0 {
                    parts.push((index, self.tokens(&ids[done[index]..done[index] + count])));
                    done[index] += count;
                }
            }
            if parts.is_empty() && done.iter().zip(&texts).all(|(done, ids)| *done == ids.len()) {
                break;
            }
            let feeds: Vec<Feed<'_>> = parts
                .iter()
                .map(|(index, tokens)| Feed { sequence: sequences[*index], tokens, wanted: Wanted::All })
                .collect();
            let mut logits = Logits::new();
            self.model.step(&feeds, &mut logits).unwrap();
            let mut rows = rows(&logits).into_iter();
            for (index, tokens) in &parts {
                found[*index].extend(rows.by_ref().take(tokens.len()));
            }
            assert_eq!(rows.count(), 0);
        }
        for (found, expected) in found.iter().zip(&expected) {
            self.compare(found, expected);
        }
        for sequence in sequences {
            self.model.close(sequence);
        }
    }

    pub(crate) fn only_wanted_rows_are_written(&mut self) {
        let all = self.alone(&text(2, 9));
        let sequences = [self.model.open(), self.model.open(), self.model.open()];
        let [first, second, third] = sequences;
        let ids = self.tokens(&text(2, 9));
        let mut logits = Logits::new();
        let feeds = [
            Feed { sequence: first, tokens: &ids, wanted: Wanted::None },
            Feed { sequence: second, tokens: &ids, wanted: Wanted::Last },
            Feed { sequence: third, tokens: &ids[..2], wanted: Wanted::All },
        ];
        self.model.step(&feeds, &mut logits).unwrap();
        self.compare(&rows(&logits), &[all[8].clone(), all[0].clone(), all[1].clone()]);
        let more = [Feed { sequence: third, tokens: &ids[2..3], wanted: Wanted::None }];
        self.model.step(&more, &mut logits).unwrap();
        assert!(logits.is_empty());
        for sequence in sequences {
            self.model.close(sequence);
        }
    }

    pub(crate) fn forks_and_truncations_equal_computing_anew(&mut self) {
        let (left, right) = (text(1, 80), text(4, 30));
        let more = self.alone(&[&left[..], &[7]].concat());
        // Within a page of 32, at its border, and beyond.
        for cut in [0, 1, 31, 32, 33, 63, 64, 79] {
            let right = &right[..right.len().min(100 - cut)];
            let expected = self.alone(&[&left[..cut], right].concat());
            let origin = self.model.open();
            self.feed(origin, &left);
            let fork = self.model.fork(origin, cut).unwrap();
            assert_eq!((self.model.length(fork), self.model.length(origin)), (Ok(cut), Ok(80)));
            let found = self.feed(fork, right);
            self.compare(&found, &expected[cut..]);
            // What the fork wrote is not seen by its origin.
            let found = self.feed(origin, &[7]);
            self.compare(&found, &more[80..]);
            self.model.truncate(origin, cut).unwrap();
            assert_eq!(self.model.length(origin), Ok(cut));
            let found = self.feed(origin, right);
            self.compare(&found, &expected[cut..]);
            self.model.close(origin);
            self.model.close(fork);
        }
        assert_eq!(self.model.cache_bytes(), 0);
    }

    pub(crate) fn wrong_steps_are_refused_and_change_nothing(&mut self) {
        let width = self.model.width();
        let (one, two) = (self.model.open(), self.model.open());
        let (good, beyond) = (self.tokens(&[1, 2]), TokenId(width as u32));
        let (bad, long) = ([good[0], beyond], self.tokens(&[3; 101]));
        let mut logits = Logits::new();
        logits.reset(1, 2).copy_from_slice(&[5.0, 6.0]);
        let feed = |sequence, tokens| Feed { sequence, tokens, wanted: Wanted::Last };
        let gone = SequenceId(99_999);
        let full = ModelError::Full { length: 101, context: 100 };
        let cases: [(&[Feed<'_>], ModelError); 5] = [
            (&[feed(one, &good), feed(two, &bad)], ModelError::NoToken { token: beyond, tokens: width }),
            (&[feed(one, &good), feed(two, &long)], full.clone()),
            (&[feed(one, &good), feed(gone, &good)], ModelError::NoSequence(gone)),
            (&[feed(one, &good), feed(one, &good)], ModelError::Twice(one)),
            (&[feed(one, &good), feed(two, &[])], ModelError::NoTokens(two)),
        ];
        for (feeds, error) in cases {
            assert_eq!(self.model.step(feeds, &mut logits), Err(error));
            assert_eq!((self.model.length(one), self.model.length(two)), (Ok(0), Ok(0)));
            assert_eq!(rows(&logits), [[5.0, 6.0]]);
        }
        assert_eq!(self.model.fork(one, 1), Err(ModelError::TooShort { asked: 1, length: 0 }));
        assert_eq!(self.model.truncate(one, 1), Err(ModelError::TooShort { asked: 1, length: 0 }));
        assert_eq!(self.model.truncate(gone, 0), Err(ModelError::NoSequence(gone)));
        self.model.close(gone);
        self.model.step(&[feed(one, &long[..100])], &mut logits).unwrap();
        assert_eq!(self.model.step(&[feed(one, &good[..1])], &mut logits), Err(full));
        self.model.close(one);
        self.model.close(two);
    }
}

pub(crate) fn rows(logits: &Logits) -> Vec<Vec<f32>> {
    (0..logits.len()).map(|row| logits.row(row).unwrap().to_vec()).collect()
}
