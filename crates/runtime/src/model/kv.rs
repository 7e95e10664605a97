//! The KV cache: keys and values, in pages that sequences share.
//!
//! For each token, the model computes a key and a value for each layer and head. They are kept in *pages* of [`PAGE`]
//! positions, which hold all layers. A page is behind an [`Arc`]: a fork only copies the list of pages, and a sequence
//! that writes into a shared page first gets a copy of that page. So `n` answers to one prompt, or a hundred requests
//! with the same prefix, hold the prompt only once:
//!
//! ```text
//! A: [page 1][page 2][page 3 …]
//!       ▲       ▲
//! B: [  ┴  ][   ┴  ][page 4 …]         forked from A within page 3, which was copied when B wrote
//! ```
//!
//! The layout of a page is `[layer][key or value][head][position][number]`, so that the data for one head of one layer
//! is contiguous.

use std::sync::Arc;

use super::Config;

/// The number of positions in a page.
pub(crate) const PAGE: usize = 32;

/// The sizes that determine the layout of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    layers: usize,
    heads: usize,
    head_size: usize,
}

impl Layout {
    pub(crate) fn new(config: &Config) -> Self {
        Self { layers: config.layers, heads: config.kv_heads, head_size: config.head_size }
    }

    fn page_len(self) -> usize {
        self.layers * 2 * self.heads * PAGE * self.head_size
    }

    /// Returns where the positions of a head begin.
    fn head(self, layer: usize, part: Part, head: usize) -> usize {
        ((layer * 2 + part as usize) * self.heads + head) * PAGE * self.head_size
    }
}

/// Queries are compared with keys, and the result consists of values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Key,
    Value,
}

type Page = Vec<f32>;

/// The keys and values of one text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cache {
    pages: Vec<Arc<Page>>,
    len: usize,
}

impl Cache {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns a prefix, which shares the pages.
    pub(crate) fn prefix(&self, len: usize) -> Self {
        let len = len.min(self.len);
        Self { pages: self.pages.iter().take(len.div_ceil(PAGE)).cloned().collect(), len }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.pages.truncate(self.len.div_ceil(PAGE));
    }

    /// Makes room for more positions and counts them; [`Self::write`] fills them.
    pub(crate) fn extend(&mut self, more: usize, layout: Layout) {
        self.len += more;
        while self.pages.len() * PAGE < self.len {
            self.pages.push(Arc::new(vec![0.0; layout.page_len()]));
        }
    }

    /// Writes all heads of a layer at one position.
    pub(crate) fn write(
        &mut self,
        layout: Layout,
        layer: usize,
        part: Part,
        position: usize,
        numbers: &[f32],
    ) {
        let page = Arc::make_mut(&mut self.pages[position / PAGE]);
        for (head, numbers) in numbers.chunks_exact(layout.head_size).enumerate() {
            let at = layout.head(layer, part, head) + position % PAGE * layout.head_size;
            page[at..at + layout.head_size].copy_from_slice(numbers);
        }
    }

    /// Returns the data of a head of a layer at the first positions, page by page.
    pub(crate) fn read(
        &self,
        layout: Layout,
        layer: usize,
        part: Part,
        head: usize,
        positions: usize,
    ) -> impl Iterator<Item = &[f32]> {
        let start = layout.head(layer, part, head);
        self.pages.iter().take(positions.div_ceil(PAGE)).enumerate().map(move |(index, page)| {
            let here = (positions - index * PAGE).min(PAGE);
            &page[start..start + here * layout.head_size]
        })
    }

    /// Returns the pages, for counting.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (*const Page, usize)> {
        self.pages.iter().map(|page| (Arc::as_ptr(page), page.len() * size_of::<f32>()))
    }
}
