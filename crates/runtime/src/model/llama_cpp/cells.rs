//! Which cells of the cache are taken, and by how many sequences.
//!
//! llama.cpp does not say how many cells are free, and finds out in the middle of a step that there are too few. This is the same count,
//! kept beside it. The numbers here are not llama.cpp's: any free cell is as good as another, so only how many there are has to agree.

/// A place for one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell(u32);

/// All cells.
#[derive(Debug)]
pub(super) struct Cells {
    /// How many sequences have each cell.
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

    /// Cells for so many tokens, of which there must be enough.
    pub(super) fn take(&mut self, count: usize) -> impl Iterator<Item = Cell> {
        let taken = self.free.split_off(self.free.len().saturating_sub(count));
        self.share(&taken);
        taken.into_iter()
    }

    /// One sequence more has these cells.
    pub(super) fn share(&mut self, cells: &[Cell]) {
        for cell in cells {
            self.holders[cell.0 as usize] += 1;
        }
    }

    /// One sequence less has these cells.
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
