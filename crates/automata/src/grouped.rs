//! Values grouped by a key in one array, such as the edges of a graph by their target.

use core::ops::Range;

/// Values grouped by a key.
///
/// ```
/// use maskwright_automata::Grouped;
/// let before = Grouped::new(3, [(2, 'a'), (0, 'b'), (2, 'c')].into_iter());
/// assert_eq!((before.of(0), before.of(1), before.of(2)), (&['b'][..], &[][..], &['a', 'c'][..]));
/// ```
#[derive(Clone, Debug)]
pub struct Grouped<T> {
    /// The position of the first value of each key, and the end of the last one.
    pub(crate) firsts: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl<T: Copy + Default> Grouped<T> {
    /// Groups pairs of a key below `keys` and a value. Iterates over them twice; the values of a key keep their order.
    pub fn new(keys: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut firsts = vec![0; keys + 1];
        for (key, _) in pairs.clone() {
            firsts[key as usize + 1] += 1;
        }
        for key in 0..keys {
            firsts[key + 1] += firsts[key];
        }
        let mut values = vec![T::default(); firsts[keys] as usize];
        let mut next = firsts.clone();
        for (key, value) in pairs {
            values[next[key as usize] as usize] = value;
            next[key as usize] += 1;
        }
        Self { firsts, values }
    }

    /// Returns the values of a key.
    pub fn of(&self, key: u32) -> &[T] {
        self.within(key..key + 1)
    }

    /// Returns the values of a range of keys, in the order of the keys.
    pub fn within(&self, keys: Range<u32>) -> &[T] {
        &self.values[self.firsts[keys.start as usize] as usize..self.firsts[keys.end as usize] as usize]
    }
}
