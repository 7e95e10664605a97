//! The options of a schema, and the layouts of a document that they allow.

use maskwright::json_schema::{KeyOrder, Whitespace};

use crate::document::{Document, Layout};

/// The options of one schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The order of keys.
    pub order: KeyOrder,
    /// The white space.
    pub whitespace: Whitespace,
    /// The limit on cases. If it is low, choices between conditions on keys are not expanded.
    pub cases: Option<usize>,
}

impl Settings {
    /// Returns allowed layouts, and layouts that are forbidden if they differ from all allowed ones.
    pub fn layouts(&self, document: &Document, seed: u64) -> (Vec<Layout>, Vec<Layout>) {
        let (random, all) = (Layout::Random(seed), [Layout::Compact, Layout::Spaced, Layout::Indented]);
        match self.whitespace {
            Whitespace::Compact => (vec![Layout::Compact], vec![random, Layout::Spaced, Layout::Indented]),
            Whitespace::Spaced => (vec![Layout::Spaced], vec![random, Layout::Compact, Layout::Indented]),
            Whitespace::Indent(2) => (vec![Layout::Indented], vec![random, Layout::Compact, Layout::Spaced]),
            // At deeper levels, the indentation is too large.
            Whitespace::Tidy if document.depth() > 20 => (vec![Layout::Compact, Layout::Spaced], Vec::new()),
            Whitespace::Tidy => (all.to_vec(), Vec::new()),
            // Lines are indented by up to 64 characters.
            Whitespace::Natural if document.depth() * 2 > 64 => {
                (vec![Layout::Compact, Layout::Spaced], Vec::new())
            }
            Whitespace::Natural => (all.to_vec(), Vec::new()),
            Whitespace::Flexible { max_run } if document.depth() * 2 + 1 > max_run as usize => {
                (vec![Layout::Compact, random, Layout::Spaced], Vec::new())
            }
            _ => (vec![Layout::Compact, random, Layout::Spaced, Layout::Indented], Vec::new()),
        }
    }
}
