//! Reproducible random numbers.

/// A small random number generator (`SplitMix64`: a counter whose bits are mixed).
#[derive(Clone, Debug)]
pub struct Rng {
    counter: u64,
}

impl Rng {
    /// Creates a generator from a seed. Adjacent seeds give unrelated numbers.
    pub fn new(seed: u64) -> Self {
        Self { counter: seed }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.counter;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of the remainder does not matter at these sizes.
        (self.bits() % bound as u64) as usize
    }

    /// Returns `true` once in `times` times on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the members; `None` if there are none.
    pub fn choose<'a, T>(&mut self, members: &'a [T]) -> Option<&'a T> {
        if members.is_empty() { None } else { members.get(self.below(members.len())) }
    }
}
