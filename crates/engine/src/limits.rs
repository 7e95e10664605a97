//! Limits on what a constraint may cost.

/// Limits on compiling and matching. They count steps and bytes, never time, so a constraint that compiles on one
/// machine compiles on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// The number of expressions in a grammar.
    pub exprs: usize,
    /// The depth to which the operands of an expression may nest, not counting rules.
    pub depth: u32,
    /// The number of nodes in the network.
    pub nodes: usize,
    /// The number of states in the table of one leaf. A leaf beyond this limit becomes part of the network, which is
    /// built lazily.
    pub leaf_states: usize,
    /// The number of steps for building the table of one leaf.
    pub leaf_steps: usize,
    /// The number of bytes that building the table of one leaf may take.
    pub leaf_bytes: usize,
    /// The number of bytes in all tables of a constraint together.
    pub table_bytes: usize,
    /// The number of partial parses that a matcher follows at the same time.
    pub parses: usize,
    /// The number of entries in a matcher's stacks.
    pub stack: usize,
    /// The number of steps for one mask, or for accepting one token. A step takes about as long as visiting one node of
    /// the vocabulary's trie: some nanoseconds.
    pub mask_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            exprs: 4_000_000,
            depth: 1_000,
            nodes: 8_000_000,
            leaf_states: 16_384,
            leaf_steps: 8_000_000,
            leaf_bytes: 64 << 20,
            table_bytes: 128 << 20,
            parses: 20_000,
            stack: 50_000_000,
            mask_steps: 20_000_000,
        }
    }
}
