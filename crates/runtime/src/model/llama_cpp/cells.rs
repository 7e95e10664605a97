//! Counts which cells of the cache are in use, and by how many sequences.
//!
//! llama.cpp does not report how many cells are free, and only fails in the middle of a step if there are too few. This
//! module counts in parallel. Its indices are not llama.cpp's: free cells are interchangeable, so only their number
//! must agree.

/// A cell for one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell(u32);

/// All cells.
#[derive(Debug)]
pub(super) struct Cells {
    /// The number of sequences that use each cell.
    holders: Vec<u32>,
    free: Vec<Cell>,
}

impl Cells {
    pub(super) fn new(count: usize) -> Self {
        Self { holders: vec![0; count], free: (0..count as u32).map(Cell).collect() }
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn used(&self) -> usize {
        self.holders.len() - self.free.len()
    }

    /// Takes cells for this number of tokens. There must be enough.
    pub(super) fn take(&mut self, count: usize) -> impl Iterator<Item = Cell> {
        let taken = self.free.split_off(self.free.len().saturating_sub(count));
        self.share(&taken);
        taken.into_iter()
    }

    /// Adds a sequence that uses these cells.
    pub(super) fn share(&mut self, cells: &[Cell]) {
        for cell in cells {
            self.holders[cell.0 as usize] += 1;
        }
    }

    /// Removes a sequence that uses these cells.
    pub(super) fn release(&mut self, cells: impl IntoIterator<Item = Cell>) {
        for cell in cells {
            let holders = &mut self.holders[cell.0 as usize];
            *holders -= 1;
            if *holders == 0 {
                self.free.push(cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_cell_is_free_when_all_have_left() {
        let mut cells = Cells::new(4);
        let three: Vec<Cell> = cells.take(3).collect();
        assert_eq!((cells.used(), cells.free()), (3, 1));
        cells.share(&three[..2]);
        cells.release(three.clone());
        assert_eq!(cells.used(), 2);
        cells.release(three[..2].iter().copied());
        assert_eq!((cells.used(), cells.free()), (0, 4));
        assert_eq!(cells.take(4).count(), 4);
    }
}
