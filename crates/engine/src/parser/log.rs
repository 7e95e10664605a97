//! A list that grows and is cut only at its end, and whose copies share everything but the end.
//!
//! ```text
//!   log    ──▶ [chunk]─[chunk]─[chunk]   shared        + end: a plain vector of its own
//!   clone  ───────▲
//! ```
//! The last items are in a plain vector. From time to time ([`Log::freeze`]) its beginning is moved into chunks that
//! never change again. So a copy costs one reference and at most two chunks of items, however long the list is.

use core::ops::Index;
use std::sync::Arc;

/// A list of `T` in shared chunks of `CHUNK` items, and an end that is not shared.
#[derive(Clone, Debug)]
pub(crate) struct Log<T, const CHUNK: usize> {
    chunks: Arc<Vec<Arc<[T]>>>,
    /// The number of items in chunks.
    frozen: usize,
    end: Vec<T>,
}

impl<T, const CHUNK: usize> Default for Log<T, CHUNK> {
    fn default() -> Self {
        Self { chunks: Arc::default(), frozen: 0, end: Vec::new() }
    }
}

impl<T: Copy, const CHUNK: usize> Log<T, CHUNK> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frozen + self.end.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the allocated bytes, without the shared chunks.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.end.capacity() * size_of::<T>()
    }

    /// Reserves room for a chunk.
    pub(crate) fn reserve(&mut self) {
        self.end.reserve(CHUNK);
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.end.push(item);
    }

    #[inline]
    pub(crate) fn extend_from_slice(&mut self, items: &[T]) {
        self.end.extend_from_slice(items);
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        if at >= self.frozen {
            return self.end.get(at - self.frozen);
        }
        self.get_frozen(at)
    }

    fn get_frozen(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// Returns the last item, which is never in a chunk.
    #[inline]
    pub(crate) fn last(&self) -> Option<&T> {
        self.end.last()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.end.last_mut()
    }

    /// Checks whether there are enough items to freeze some.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.end.len() >= 2 * CHUNK
    }

    /// Returns the items from `start` on. None of them may be frozen; see [`Self::thaw`].
    #[inline]
    pub(crate) fn since(&self, start: usize) -> &[T] {
        debug_assert!(start >= self.frozen, "frozen items are not in one piece");
        &self.end[start - self.frozen..]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).chain(&self.end)
    }

    /// Moves the items before `keep` into shared chunks, as far as they fill chunks.
    pub(crate) fn freeze(&mut self, keep: usize) {
        // One chunk always stays in the vector, so that going back and forth does not freeze and thaw each time.
        let most = self.end.len().saturating_sub(CHUNK);
        let count = keep.saturating_sub(self.frozen).min(most) / CHUNK;
        if count == 0 {
            return;
        }
        Arc::make_mut(&mut self.chunks)
            .extend(self.end[..count * CHUNK].chunks_exact(CHUNK).map(Arc::<[T]>::from));
        self.end.drain(..count * CHUNK);
        self.frozen += count * CHUNK;
    }

    /// Takes the chunks from `start` on back into the vector, so that these items are contiguous.
    #[inline]
    pub(crate) fn thaw(&mut self, start: usize) {
        if start < self.frozen {
            self.thaw_chunks(start);
        }
    }

    #[cold]
    fn thaw_chunks(&mut self, start: usize) {
        let kept = start / CHUNK;
        let chunks = Arc::make_mut(&mut self.chunks);
        let mut end: Vec<T> = chunks.drain(kept..).flat_map(|chunk| chunk.to_vec()).collect();
        end.append(&mut self.end);
        self.end = end;
        self.frozen = kept * CHUNK;
    }

    /// Cuts the list to its first `len` items.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.thaw(len.saturating_sub(1));
        self.end.truncate(len - self.frozen);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.end.pop();
        self.thaw(self.len().saturating_sub(1));
        last
    }

    /// Removes all items. Unlike [`Self::truncate`], takes no chunk back.
    pub(crate) fn clear(&mut self) {
        self.chunks = Arc::default();
        self.frozen = 0;
        self.end.clear();
    }
}

impl<T: Copy, const CHUNK: usize> Index<usize> for Log<T, CHUNK> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        if at >= self.frozen {
            return &self.end[at - self.frozen];
        }
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares all operations on a list and its copies with a plain vector.
    #[test]
    fn a_log_is_a_vector() {
        let mut state = 11u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        let mut pairs = vec![(Log::<u32, 4>::default(), Vec::<u32>::new())];
        let (mut frozen, mut thawed) = (0, 0);
        let rounds = if cfg!(miri) { 300 } else { 20_000 };
        for _ in 0..rounds {
            let at = below(pairs.len());
            let (log, plain) = &mut pairs[at];
            let before = log.frozen;
            match below(8) {
                0 => {
                    let len = plain.len() - below(plain.len() + 1) / 2;
                    log.truncate(len);
                    plain.truncate(len);
                }
                1 => assert_eq!(log.pop(), plain.pop()),
                2 => {
                    let keep = below(plain.len() + 1);
                    log.freeze(keep);
                    assert!(log.frozen <= keep.max(before));
                }
                3 => {
                    let start = below(plain.len() + 1);
                    log.thaw(start);
                    assert_eq!(log.since(start), &plain[start..]);
                }
                4 => {
                    let copy = (log.clone(), plain.clone());
                    if pairs.len() < 8 {
                        pairs.push(copy);
                    } else {
                        let to = below(8);
                        pairs[to] = copy;
                    }
                    continue;
                }
                _ => {
                    let more: Vec<u32> = (0..below(9) as u32).map(|i| i + plain.len() as u32 * 100).collect();
                    log.extend_from_slice(&more);
                    plain.extend_from_slice(&more);
                }
            }
            frozen += usize::from(log.frozen > before);
            thawed += usize::from(log.frozen < before);
            assert_eq!((log.len(), log.last()), (plain.len(), plain.last()));
            assert!(log.iter().eq(plain.iter()));
            assert!((0..plain.len()).all(|at| log[at] == plain[at] && log.get(at) == Some(&plain[at])));
            assert_eq!(log.get(plain.len()), None);
        }
        assert!(frozen > rounds / 70 && thawed > rounds / 70, "{frozen} frozen, {thawed} thawed");
    }
}
