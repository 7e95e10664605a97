//! The loop of every byte-pair encoding: repeatedly joins the best pair of adjacent parts that may be joined, until
//! there is none.
//!
//! The parts of a text are a linked list, and a heap contains the pairs. A pair is not removed from the heap when one
//! of its parts is joined with another part. Instead, the pair stores its length, which shows later that the pair is
//! outdated. So a text of n parts takes n log n steps.

use std::collections::BinaryHeap;
use std::ops::Range;

/// Joins parts of a text. `score` returns how good the union of two adjacent parts is, or `None` if they may not be
/// joined. The pair with the greatest score is joined first, and of equal scores the leftmost one.
pub(crate) fn join<S: Ord>(
    parts: impl IntoIterator<Item = Range<usize>>,
    score: impl FnMut(Range<usize>, Range<usize>) -> Option<S>,
) -> impl Iterator<Item = Range<usize>> {
    let mut parts: Vec<Part> = (0..)
        .zip(parts)
        .map(|(index, range)| Part { range, previous: usize::checked_sub(index, 1), next: Some(index + 1) })
        .collect();
    if let Some(last) = parts.last_mut() {
        last.next = None;
    }
    let mut joiner = Joiner { parts, heap: BinaryHeap::new(), score };
    joiner.run();
    joiner.parts.into_iter().map(|part| part.range).filter(|range| !range.is_empty())
}

/// A part of the text in the list. Joined parts grow; their right halves become empty.
struct Part {
    range: Range<usize>,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Two adjacent parts that could be joined.
struct Pair<S> {
    score: S,
    left: usize,
    right: usize,
    /// The length of both when the pair was found; if it differs now, the pair is outdated.
    len: usize,
}

impl<S: Ord> Ord for Pair<S> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl<S: Ord> PartialOrd for Pair<S> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<S: Ord> PartialEq for Pair<S> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<S: Ord> Eq for Pair<S> {}

struct Joiner<S, F> {
    parts: Vec<Part>,
    heap: BinaryHeap<Pair<S>>,
    score: F,
}

impl<S: Ord, F: FnMut(Range<usize>, Range<usize>) -> Option<S>> Joiner<S, F> {
    fn run(&mut self) {
        for left in 0..self.parts.len() {
            self.consider(Some(left), self.parts[left].next);
        }
        while let Some(pair) = self.heap.pop() {
            let (left, right) = (&self.parts[pair.left].range, &self.parts[pair.right].range);
            if left.is_empty() || right.is_empty() || left.len() + right.len() != pair.len {
                continue;
            }
            let (end, next) = (right.end, self.parts[pair.right].next);
            self.parts[pair.left].range.end = end;
            self.parts[pair.left].next = next;
            self.parts[pair.right].range.start = end;
            if let Some(next) = next {
                self.parts[next].previous = Some(pair.left);
            }
            self.consider(self.parts[pair.left].previous, Some(pair.left));
            self.consider(Some(pair.left), next);
        }
    }

    fn consider(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else { return };
        let (first, second) = (self.parts[left].range.clone(), self.parts[right].range.clone());
        let len = first.len() + second.len();
        if let Some(score) = (self.score)(first, second) {
            self.heap.push(Pair { score, left, right, len });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_score_is_joined_first_and_the_leftmost_of_equals() {
        let text = "abab";
        let joined = |score: fn(&str) -> Option<u32>| -> Vec<&str> {
            let letters = (0..text.len()).map(|at| at..at + 1);
            join(letters, |left, right| score(&text[left.start..right.end]))
                .map(|range| &text[range])
                .collect()
        };
        let pairs = |pair: &str| match pair {
            "ab" => Some(1),
            "ba" => Some(2),
            _ => None,
        };
        assert_eq!(joined(pairs), ["a", "ba", "b"]);
        assert_eq!(joined(|pair| (pair.len() == 2).then_some(0)), ["ab", "ab"]);
        assert_eq!(joined(|_| Some(0)), ["abab"]);
        assert_eq!(joined(|_| None::<u32>), ["a", "b", "a", "b"]);
    }
}
