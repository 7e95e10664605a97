//! Masks for tokens that were only guessed.
//!
//! Speculative decoding lets a small model write a few tokens ahead, as a chain or as a tree, and a large model judge all of them at once. The
//! judge needs the mask behind each guess:
//!
//! ```text
//!   now ──▶ {" ──▶ name ──▶ ":          row 0: the mask now
//!            └───▶ nick                 row i + 1: the mask behind node i
//! ```
//! A guess that is not allowed has no mask: its row is empty, and so are the rows behind it. Nodes that share a prefix share the
//! work for it, and the branches of large trees are worked on in parallel. The matcher is left as it was.

use rayon::prelude::*;

use maskwright_vocab::TokenId;

use super::{MatchError, Matcher};

/// The parent of a node that hangs on the text so far.
pub const DRAFT_ROOT: u32 = u32::MAX;

/// With fewer nodes than this below a fork, copying matchers and waking threads costs more than it gains.
// PERF: `mwbench drafts`, 64 nodes on a busy machine of two processors: 140 µs by one thread, 260 µs by two.
const PARALLEL: usize = 256;

/// A tree of guessed tokens: the links between its nodes, checked.
#[derive(Clone, Debug)]
pub struct DraftTree {
    tokens: Vec<TokenId>,
    /// The children of the text so far, and then of every node.
    children: Vec<Vec<u32>>,
}

/// What is wrong with a draft tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DraftError {
    /// There are not as many links as tokens.
    Length {
        /// How many tokens there are.
        tokens: usize,
        /// How many links there are.
        links: usize,
    },
    /// A node's parent does not come before it.
    Order {
        /// The node.
        node: usize,
    },
    /// A link leads to no node, or to one that another link leads to.
    Link {
        /// The node that it starts from.
        node: usize,
    },
}

impl core::fmt::Display for DraftError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length { tokens, links } => {
                write!(f, "a draft of {tokens} tokens has {links} links; there must be one for each token")
            }
            Self::Order { node } => {
                write!(f, "the parent of draft node {node} does not come before it; number parents first")
            }
            Self::Link { node } => {
                write!(f, "a link of draft node {node} leads to no node, or to one that was reached before")
            }
        }
    }
}

impl core::error::Error for DraftError {}

impl DraftTree {
    /// Every token behind the one before.
    pub fn chain(tokens: &[TokenId]) -> Self {
        let mut children: Vec<Vec<u32>> = (0..tokens.len() as u32).map(|node| vec![node]).collect();
        children.push(Vec::new());
        Self { tokens: tokens.to_vec(), children }
    }

    /// A tree by the parent of each node, [`DRAFT_ROOT`] for those that follow the text so far. Parents come before their
    /// children.
    pub fn from_parents(tokens: &[TokenId], parents: &[u32]) -> Result<Self, DraftError> {
        if tokens.len() != parents.len() {
            return Err(DraftError::Length { tokens: tokens.len(), links: parents.len() });
        }
        let mut children = vec![Vec::new(); tokens.len() + 1];
        for (node, &parent) in parents.iter().enumerate() {
            let place = match parent {
                DRAFT_ROOT => 0,
                parent if (parent as usize) < node => parent as usize + 1,
                _ => return Err(DraftError::Order { node }),
            };
            children[place].push(node as u32);
        }
        Ok(Self { tokens: tokens.to_vec(), children })
    }

    /// A tree by the first child and the next sibling of each node, as servers keep it: node 0 is the token that was accepted last, so
    /// row i is the mask behind node i. A negative number stands for none.
    pub fn from_links(tokens: &[TokenId], child: &[i64], sibling: &[i64]) -> Result<Self, DraftError> {
        for links in [child, sibling] {
            if links.len() != tokens.len() {
                return Err(DraftError::Length { tokens: tokens.len(), links: links.len() });
            }
        }
        let mut children = vec![Vec::new(); tokens.len().max(1)];
        let mut reached = vec![false; tokens.len()];
        let mut work = vec![0usize];
        while let Some(node) = work.pop().filter(|_| !tokens.is_empty()) {
            let mut next = child[node];
            while let Ok(to) = usize::try_from(next) {
                if to == 0 || core::mem::replace(reached.get_mut(to).ok_or(DraftError::Link { node })?, true)
                {
                    return Err(DraftError::Link { node });
                }
                children[node].push(to as u32 - 1);
                work.push(to);
                next = sibling[to];
            }
        }
        Ok(Self { tokens: tokens.get(1..).unwrap_or_default().to_vec(), children })
    }

    /// How many rows its masks take: one more than it has nodes.
    pub fn rows(&self) -> usize {
        self.tokens.len() + 1
    }

    /// How many nodes there are below some of them.
    fn size(&self, nodes: &[u32]) -> usize {
        let mut work = nodes.to_vec();
        let mut size = 0;
        while let Some(node) = work.pop() {
            size += 1;
            work.extend_from_slice(&self.children[node as usize + 1]);
        }
        size
    }
}

/// One row of masks, until it is written.
type Row<'m> = Option<&'m mut [u32]>;

impl Matcher {
    /// Writes the masks for a chain of guessed tokens: row 0 is the mask now, row i that behind the first i tokens. Rows are `stride` words
    /// apart. Returns how many of the tokens are allowed; the rows behind them are empty.
    pub fn fill_masks_for_chain(
        &mut self,
        tokens: &[TokenId],
        masks: &mut [u32],
        stride: usize,
    ) -> Result<usize, MatchError> {
        let allowed = self.fill_masks_for_tree(&DraftTree::chain(tokens), masks, stride)?;
        Ok(allowed.iter().take_while(|allowed| **allowed).count())
    }

    /// Writes the masks for a tree of guessed tokens: row 0 is the mask now, row i + 1 that behind node i. Rows are `stride`
    /// words apart. Returns for each node whether it, and everything before it, is allowed; where not, its row is empty.
    pub fn fill_masks_for_tree(
        &mut self,
        tree: &DraftTree,
        masks: &mut [u32],
        stride: usize,
    ) -> Result<Vec<bool>, MatchError> {
        let need = self.bound.vocabulary().size().div_ceil(32);
        if stride < need || masks.len() < tree.rows() * stride {
            return Err(MatchError::MaskTooShort { words: tree.rows() * stride.max(need) });
        }
        let mut rows: Vec<Row<'_>> = masks.chunks_exact_mut(stride).take(tree.rows()).map(Some).collect();
        let mut allowed = vec![false; tree.tokens.len()];
        self.fill_row(&mut rows[0])?;
        // 1. What all branches have in common.
        let mut branches = &*tree.children[0];
        let mut depth = 0;
        while let &[only] = branches {
            if !self.try_node(tree, only, &mut rows, &mut allowed)? {
                branches = &[];
                break;
            }
            depth += 1;
            branches = &tree.children[only as usize + 1];
        }
        // 2. The branches.
        let result =
            if branches.len() > 1 && tree.size(branches) >= PARALLEL && rayon::current_num_threads() > 1 {
                self.fill_branches(tree, branches, &mut rows, &mut allowed)
            } else {
                self.fill_below(tree, branches, &mut rows, &mut allowed)
            };
        self.undo(depth);
        // 3. Nobody comes behind what is not allowed.
        rows.into_iter().flatten().for_each(|row| row.fill(0));
        result.map(|()| allowed)
    }

    /// Which of some tokens may come next, without a whole mask.
    pub fn allowed_of(&mut self, candidates: &[TokenId]) -> Vec<bool> {
        candidates.iter().map(|token| self.allows(*token)).collect()
    }

    fn fill_row(&mut self, row: &mut Row<'_>) -> Result<(), MatchError> {
        row.take().map_or(Ok(()), |row| self.fill_mask(row))
    }

    /// Takes the token of a node, and writes its mask. Returns whether it is allowed.
    fn try_node(
        &mut self,
        tree: &DraftTree,
        node: u32,
        rows: &mut [Row<'_>],
        allowed: &mut [bool],
    ) -> Result<bool, MatchError> {
        if self.accept(tree.tokens[node as usize]).is_err() {
            return Ok(false);
        }
        allowed[node as usize] = true;
        let filled = self.fill_row(&mut rows[node as usize + 1]);
        if filled.is_err() {
            self.undo(1);
        }
        filled.map(|()| true)
    }

    /// The masks of some nodes and of all below, one after the other.
    fn fill_below(
        &mut self,
        tree: &DraftTree,
        nodes: &[u32],
        rows: &mut [Row<'_>],
        allowed: &mut [bool],
    ) -> Result<(), MatchError> {
        // Nodes to visit, and steps to undo in between.
        let mut work: Vec<Option<u32>> = nodes.iter().rev().map(|node| Some(*node)).collect();
        let (mut depth, mut result) = (0, Ok(()));
        while let Some(next) = work.pop() {
            let Some(node) = next else {
                self.undo(1);
                depth -= 1;
                continue;
            };
            match self.try_node(tree, node, rows, allowed) {
                Ok(false) => {}
                Ok(true) => {
                    depth += 1;
                    work.push(None);
                    work.extend(tree.children[node as usize + 1].iter().rev().map(|node| Some(*node)));
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.undo(depth);
        result
    }

    /// The same, each branch by a matcher of its own.
    fn fill_branches(
        &self,
        tree: &DraftTree,
        branches: &[u32],
        rows: &mut [Row<'_>],
        allowed: &mut [bool],
    ) -> Result<(), MatchError> {
        let jobs: Vec<Branch<'_>> = branches.iter().map(|node| Branch::take(tree, *node, rows)).collect();
        let done: Result<Vec<Branch<'_>>, MatchError> = jobs
            .into_par_iter()
            .map(|mut branch| {
                branch.allowed = vec![false; tree.tokens.len()];
                let top = [branch.top];
                self.fork().fill_below(tree, &top, &mut branch.rows, &mut branch.allowed)?;
                Ok(branch)
            })
            .collect();
        for branch in done? {
            for (allowed, here) in allowed.iter_mut().zip(&branch.allowed) {
                *allowed |= here;
            }
            for (row, left) in rows.iter_mut().zip(branch.rows) {
                *row = row.take().or(left);
            }
        }
        Ok(())
    }
}

/// The rows of a node and of all below it.
struct Branch<'m> {
    top: u32,
    rows: Vec<Row<'m>>,
    allowed: Vec<bool>,
}

impl<'m> Branch<'m> {
    fn take(tree: &DraftTree, top: u32, rows: &mut [Row<'m>]) -> Self {
        let mut taken: Vec<Row<'m>> = rows.iter().map(|_| None).collect();
        let mut work = vec![top];
        while let Some(node) = work.pop() {
            let row = node as usize + 1;
            taken[row] = rows[row].take();
            work.extend_from_slice(&tree.children[row]);
        }
        Self { top, rows: taken, allowed: Vec::new() }
    }
}
