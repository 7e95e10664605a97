//! The cache type of the engine: append-only, hash-consing, and lock-free to read.
//!
//! Everything that the engine computes lazily (a determinized state, a mask) is interned here once and then shared by
//! the matchers of all threads. A read takes two atomic loads; only inserting a new entry takes a lock. Entries are
//! never moved or removed, so a reference stays valid as long as the store lives.
//!
//! ```text
//!   ids      1 2 3 4 … 16 │ 17 … 48 │ 49 … 112 │ …        entries live in chunks that double in size,
//!   chunks   [ 16 ]         [ 32 ]    [ 64 ]                so none of them ever moves
//!
//!   tables   [ . 3 . . 1 . . 2 ] ──grow──▶ [ … ]          open addressing; 0 marks a free slot
//! ```
//!
//! When a table is half full, the writer builds one of twice the size and publishes it. A reader that still uses the
//! old table can miss an entry, but never find a wrong one, and after a miss it looks again under the lock.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxBuildHasher;

/// The number of entries in the first chunk.
const FIRST_CHUNK_ENTRIES: u32 = 16;
const CHUNKS: usize = 26;
const TABLES: usize = 27;

/// Interned slices: equal slices have equal numbers. PERF: the store is created with the first slice, because an empty
/// [`Store`] takes a kilobyte, and every constraint has several of these that are rarely used.
#[derive(Debug)]
pub(crate) struct Slices<T>(OnceLock<Box<Store<Box<[T]>>>>);

impl<T: Clone + Eq + Hash> Slices<T> {
    pub(crate) fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the number of a slice.
    pub(crate) fn number(&self, slice: &[T]) -> u32 {
        let hash = |slice: &[T]| FxBuildHasher.hash_one(slice);
        let store = self.0.get_or_init(|| Box::new(Store::new()));
        store.intern(hash(slice), |known| **known == *slice, |known| hash(known), || slice.into())
    }

    /// Returns the slice with a number, which must come from this instance.
    pub(crate) fn get(&self, number: u32) -> &[T] {
        self.0.get().expect("a number was given").get(number)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.get().map_or(0, |store| {
            let slices = store.iter().map(|slice| size_of_val(&**slice));
            size_of_val(&**store) + store.heap_bytes() + slices.sum::<usize>()
        })
    }
}

/// An append-only table of `T` with ids from 1. Id 0 is never used: it means "not known yet".
pub(crate) struct Store<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
    tables: [OnceLock<Box<[AtomicU32]>>; TABLES],
    current: AtomicUsize,
    /// The number of entries. Its lock also serializes the writers.
    len: Mutex<u32>,
}

impl<T> Store<T> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            tables: [const { OnceLock::new() }; TABLES],
            current: AtomicUsize::new(0),
            len: Mutex::new(0),
        }
    }

    /// Returns the entry with this id, which must come from this store.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        let (chunk, at) = place(id);
        self.chunks[chunk]
            .get()
            .and_then(|entries| entries[at].get())
            .expect("an id is handed out only after its entry was written")
    }

    /// Finds an entry without taking the lock. A miss is not final; see [`Self::intern`].
    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl Fn(&T) -> bool) -> Option<u32> {
        let table = self.tables[self.current.load(Ordering::Acquire)].get()?;
        self.probe(table, hash, &same).ok()
    }

    /// Returns the id of the entry for which `same` holds. Makes and inserts one if there is none.
    pub(crate) fn intern(
        &self,
        hash: u64,
        same: impl Fn(&T) -> bool,
        rehash: impl Fn(&T) -> u64,
        make: impl FnOnce() -> T,
    ) -> u32 {
        if let Some(id) = self.find(hash, &same) {
            return id;
        }
        // A writer that panicked has left the store consistent, because entries are published last.
        let mut len = self.len.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table_with_room(*len, &rehash);
        let slot = match self.probe(table, hash, &same) {
            Ok(id) => return id,
            Err(slot) => slot,
        };
        let id = *len + 1;
        let (chunk, at) = place(id);
        let entries = self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK_ENTRIES << chunk).map(|_| OnceLock::new()).collect());
        let entry = make();
        assert!(entries[at].set(entry).is_ok(), "each id is written once");
        table[slot].store(id, Ordering::Release);
        *len = id;
        id
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        *self.len.lock().unwrap_or_else(PoisonError::into_inner) as usize
    }

    /// Iterates over all entries in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (1..=self.len() as u32).map(|id| self.get(id))
    }

    /// Returns the bytes that the store itself occupies, without what its entries point to.
    pub(crate) fn heap_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().filter_map(OnceLock::get).map(|c| c.len()).sum();
        let tables: usize = self.tables.iter().filter_map(OnceLock::get).map(|t| t.len()).sum();
        chunks * size_of::<OnceLock<T>>() + tables * size_of::<AtomicU32>()
    }

    /// Returns the id of the matching entry, or else the free slot for it.
    #[inline]
    fn probe(&self, table: &[AtomicU32], hash: u64, same: &impl Fn(&T) -> bool) -> Result<u32, usize> {
        let wrap = table.len() - 1;
        let mut slot = spread(hash) & wrap;
        loop {
            match table[slot].load(Ordering::Acquire) {
                0 => return Err(slot),
                id if same(self.get(id)) => return Ok(id),
                _ => slot = (slot + 1) & wrap,
            }
        }
    }

    /// Returns the current table, grown first if it is half full. Must be called under the lock.
    fn table_with_room(&self, len: u32, rehash: &impl Fn(&T) -> u64) -> &[AtomicU32] {
        let current = self.current.load(Ordering::Acquire);
        let size = |number: usize| (FIRST_CHUNK_ENTRIES as usize * 2) << number;
        let table = self.tables[current].get_or_init(|| free_slots(size(current)));
        if (len as usize + 1) * 2 <= table.len() {
            return table;
        }
        let next = self.tables[current + 1].get_or_init(|| free_slots(size(current + 1)));
        let wrap = next.len() - 1;
        for id in 1..=len {
            let mut slot = spread(rehash(self.get(id))) & wrap;
            while next[slot].load(Ordering::Relaxed) != 0 {
                slot = (slot + 1) & wrap;
            }
            next[slot].store(id, Ordering::Relaxed);
        }
        self.current.store(current + 1, Ordering::Release);
        next
    }
}

impl<T> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({} entries)", self.len())
    }
}

fn free_slots(size: usize) -> Box<[AtomicU32]> {
    (0..size).map(|_| AtomicU32::new(0)).collect()
}

/// Returns the chunk of an id and its position there. Chunk k holds `FIRST_CHUNK_ENTRIES << k` entries.
#[inline]
fn place(id: u32) -> (usize, usize) {
    let at = id - 1 + FIRST_CHUNK_ENTRIES;
    let chunk = (at / FIRST_CHUNK_ENTRIES).ilog2();
    (chunk as usize, (at - (FIRST_CHUNK_ENTRIES << chunk)) as usize)
}

/// Mixes the high bits of a hash into the low ones, which are weak on their own.
#[inline]
fn spread(hash: u64) -> usize {
    (hash ^ (hash >> 32)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough for several chunks and tables; Miri is a thousand times slower.
    const VALUES: u64 = if cfg!(miri) { 60 } else { 1_500 };

    fn intern(store: &Store<u64>, value: u64) -> u32 {
        let hash = |v: &u64| v.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        store.intern(hash(&value), |v| *v == value, hash, || value)
    }

    #[test]
    fn ids_are_dense_and_equal_values_share_one() {
        let store = Store::new();
        for value in 0..VALUES {
            assert_eq!(intern(&store, value), value as u32 + 1);
        }
        for value in 0..VALUES {
            assert_eq!(intern(&store, value), value as u32 + 1);
            assert_eq!(*store.get(value as u32 + 1), value);
        }
        assert_eq!(store.len() as u64, VALUES);
    }

    #[test]
    fn threads_agree_on_ids() {
        let store = Store::new();
        let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|w| {
                    let store = &store;
                    scope
                        .spawn(move || (0..VALUES * 2).map(|i| intern(store, (i * 7 + w) % VALUES)).collect())
                })
                .collect();
            workers.into_iter().map(|w| w.join().expect("no panic")).collect()
        });
        for (w, ids) in ids.iter().enumerate() {
            for (i, &id) in ids.iter().enumerate() {
                assert_eq!(*store.get(id), (i as u64 * 7 + w as u64) % VALUES);
            }
        }
        assert_eq!(store.len() as u64, VALUES);
    }
}
