//! How much a constraint may cost.

/// Limits on compiling and matching. They are counted in steps and bytes, never in time, so that a
/// constraint that compiles on one machine compiles on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Expressions in a grammar.
    pub exprs: usize,
    /// How deep the operands of an expression may nest, not counting rules.
    pub depth: u32,
    /// Nodes of the network.
    pub nodes: usize,
    /// States of one leaf's table. Beyond it the leaf becomes part of the network, which is built lazily.
    pub leaf_states: usize,
    /// Steps for building one leaf's table.
    pub leaf_steps: usize,
    /// Bytes that building one leaf's table may take.
    pub leaf_bytes: usize,
    /// Bytes of all tables of a constraint together.
    pub table_bytes: usize,
    /// Partial parses that a matcher follows at the same time.
    pub parses: usize,
    /// Entries of a matcher's stack.
    pub stack: usize,
    /// Steps for one mask, or for taking one token. A step is about as long as looking at one node of the vocabulary's trie, some nanoseconds.
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
