//! The queue of compilations that wait for a worker. Short texts do not have to wait for many long ones.
//!
//! ```text
//!   short texts  a b c d e …  ─┐
//!                              ├─▶ a b c X d e f Y …   one in four is a long text, if there is one
//!   long texts   X Y …        ─┘
//! ```
//! The duration of a compilation is not known in advance, but a text of a hundred kilobytes takes a hundred times as
//! long as a usual one, and a burst of such texts would delay all others. With turns, neither kind can starve the
//! other.

use std::collections::VecDeque;

use super::flight::Flight;
use super::sync::Arc;

/// The length in bytes from which on a text is long.
const MIN_LONG_BYTES: usize = 8 << 10;
/// One in this many turns takes a long text.
const TURNS_PER_LONG_TEXT: usize = 4;

/// A waiting job, as the line needs to know it.
pub(super) trait Queued {
    type Outcome;
    type Cargo;

    /// Returns the length of its text in bytes.
    fn bytes(&self) -> usize;

    fn flight(&self) -> &Arc<Flight<Self::Outcome, Self::Cargo>>;
}

/// The queue. Jobs of the same kind are first in, first out.
pub(super) struct Line<J> {
    short: VecDeque<J>,
    long: VecDeque<J>,
    /// The total length of all texts in bytes.
    bytes: usize,
    turn: usize,
}

impl<J> Default for Line<J> {
    fn default() -> Self {
        Self { short: VecDeque::new(), long: VecDeque::new(), bytes: 0, turn: 0 }
    }
}

impl<J: Queued> Line<J> {
    pub(super) fn push(&mut self, job: J) {
        self.bytes += job.bytes();
        let of_its_kind = if job.bytes() < MIN_LONG_BYTES { &mut self.short } else { &mut self.long };
        of_its_kind.push_back(job);
    }

    pub(super) fn pop(&mut self) -> Option<J> {
        self.turn = (self.turn + 1) % TURNS_PER_LONG_TEXT;
        let (first, second) = if self.turn == 0 {
            (&mut self.long, &mut self.short)
        } else {
            (&mut self.short, &mut self.long)
        };
        let job = first.pop_front().or_else(|| second.pop_front())?;
        self.bytes -= job.bytes();
        Some(job)
    }

    /// Removes the job with this flight.
    pub(super) fn remove(&mut self, flight: &Arc<Flight<J::Outcome, J::Cargo>>) {
        for jobs in [&mut self.short, &mut self.long] {
            let at = jobs.iter().position(|job| Arc::ptr_eq(job.flight(), flight));
            if let Some(job) = at.and_then(|at| jobs.remove(at)) {
                self.bytes -= job.bytes();
                return;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<J> IntoIterator for Line<J> {
    type Item = J;
    type IntoIter =
        std::iter::Chain<std::collections::vec_deque::IntoIter<J>, std::collections::vec_deque::IntoIter<J>>;

    fn into_iter(self) -> Self::IntoIter {
        self.short.into_iter().chain(self.long)
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::board;
    use super::*;

    struct Text(usize, Arc<Flight<(), ()>>);

    impl Queued for Text {
        type Outcome = ();
        type Cargo = ();

        fn bytes(&self) -> usize {
            self.0
        }

        fn flight(&self) -> &Arc<Flight<(), ()>> {
            &self.1
        }
    }

    fn line(lengths: impl IntoIterator<Item = usize>) -> Line<Text> {
        let mut line = Line::default();
        for length in lengths {
            line.push(Text(length, board(&mut None).0.flight().clone()));
        }
        line
    }

    fn order(mut line: Line<Text>) -> Vec<usize> {
        let order = std::iter::from_fn(|| line.pop()).map(|text| text.0).collect();
        assert_eq!((line.len(), line.bytes()), (0, 0));
        order
    }

    #[test]
    fn long_texts_take_one_turn_in_four() {
        let [x, y] = [MIN_LONG_BYTES, MIN_LONG_BYTES + 1];
        assert_eq!(order(line([x, y, 1, 2, 3, 4, 5, 6, 7])), [1, 2, 3, x, 4, 5, 6, y, 7]);
        assert_eq!(order(line([x, y, 1])), [1, x, y]);
        assert_eq!(order(line([1, 2, 3, 4, 5])), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn who_leaves_is_not_in_the_line() {
        let mut line = line([1, MIN_LONG_BYTES, 2]);
        let long = line.long[0].1.clone();
        line.remove(&long);
        line.remove(&long);
        assert_eq!((line.len(), line.bytes()), (2, 3));
        assert_eq!(order(line), [1, 2]);
    }
}
