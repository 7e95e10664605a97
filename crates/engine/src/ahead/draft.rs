//! Masks for draft tokens.
//!
//! In speculative decoding, a small model writes a few tokens ahead, as a chain or as a tree, and a large model judges
//! all of them at once. The large model needs the mask after each draft token:
//!
//! ```text
//!   now ──▶ {" ──▶ name ──▶ ":          row 0: the mask now
//!            └───▶ nick                 row i + 1: the mask after node i
//! ```
//! A draft token that is not allowed has no mask: its row is empty, and so are the rows after it. Nodes that share a
//! prefix share the work for it. The matcher is unchanged.
//!
//! A tree is walked by one thread, because most trees take less time than another thread takes to wake up. If the masks
//! turn out to be slow – they are new, or must be computed on the stacks – the remaining branches are distributed to
//! several threads.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use maskwright_vocab::TokenId;

use crate::error::MatchError;
use crate::matcher::Matcher;

/// The parent of a node that directly follows the text so far.
pub const DRAFT_ROOT: u32 = u32::MAX;

/// Below this, waking threads and copying matchers costs more than it gains.
// PERF: `mwbench drafts`, 64 nodes, two processors with other work: 95 µs by one thread, 130 µs by two; new masks, 290
// µs and 490 µs. A thread that has to wait for a processor delays all others, for milliseconds.
const MIN_PARALLEL_WORK: Duration = Duration::from_millis(1);

/// Number of nodes visited between two readings of the clock.
const NODES_PER_CLOCK_CHECK: usize = 4;

/// A tree of draft tokens, whose links were checked.
#[derive(Clone, Debug)]
pub struct DraftTree {
    tokens: Vec<TokenId>,
    /// The children of the text so far, then those of every node.
    children: Vec<Vec<u32>>,
    /// The remaining work from which several threads are used.
    worth: Duration,
}

/// An error in a draft tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DraftError {
    /// The number of links differs from the number of tokens.
    Length {
        /// The number of tokens.
        tokens: usize,
        /// The number of links.
        links: usize,
    },
    /// The parent of a node does not come before it.
    Order {
        /// The node.
        node: usize,
    },
    /// A link leads to no node, or to one that another link leads to.
    Link {
        /// The node that the link starts from.
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
    /// Creates a chain: each token follows the one before.
    pub fn chain(tokens: &[TokenId]) -> Self {
        let mut children: Vec<Vec<u32>> = (0..tokens.len() as u32).map(|node| vec![node]).collect();
        children.push(Vec::new());
        Self { tokens: tokens.to_vec(), children, worth: MIN_PARALLEL_WORK }
    }

    /// Creates a tree from the parent of each node, [`DRAFT_ROOT`] for those that follow the text so far. Parents must
    /// come before their children.
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
        Ok(Self { tokens: tokens.to_vec(), children, worth: MIN_PARALLEL_WORK })
    }

    /// Creates a tree from the first child and the next sibling of each node, as servers store it: node 0 is the token
    /// that was accepted last, so row i is the mask after node i. A negative number means none.
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
        let tokens = tokens.get(1..).unwrap_or_default().to_vec();
        Ok(Self { tokens, children, worth: MIN_PARALLEL_WORK })
    }

    /// Sets how much work must remain, estimated from the nodes so far, for the branches to be distributed to threads;
    /// the default is 1 ms. [`Duration::MAX`] keeps all work on the caller's thread, for callers that process many
    /// requests at once.
    #[must_use]
    pub fn with_worth(mut self, worth: Duration) -> Self {
        self.worth = worth;
        self
    }

    /// Returns the number of rows of its masks: one more than the number of nodes.
    pub fn rows(&self) -> usize {
        self.tokens.len() + 1
    }
}

/// A row of masks, until it is written.
type Row<'m> = Option<&'m mut [u32]>;

impl Matcher {
    /// Writes the masks for a chain of draft tokens: row 0 is the mask now, and row i the mask after the first i
    /// tokens. Rows are `stride` words apart. Returns how many of the tokens are allowed; the rows after them are
    /// empty.
    pub fn fill_masks_for_chain(
        &mut self,
        tokens: &[TokenId],
        masks: &mut [u32],
        stride: usize,
    ) -> Result<usize, MatchError> {
        let allowed = self.fill_masks_for_tree(&DraftTree::chain(tokens), masks, stride)?;
        Ok(allowed.iter().take_while(|allowed| **allowed).count())
    }

    /// Writes the masks for a tree of draft tokens: row 0 is the mask now, and row i + 1 the mask after node i. Rows
    /// are `stride` words apart. Returns for each node whether it is allowed and everything before it is; if not, its
    /// row is empty.
    pub fn fill_masks_for_tree(
        &mut self,
        tree: &DraftTree,
        masks: &mut [u32],
        stride: usize,
    ) -> Result<Vec<bool>, MatchError> {
        let need = self.bound().vocabulary().size().div_ceil(32);
        if stride < need || masks.len() < tree.rows() * stride {
            return Err(MatchError::MaskTooShort { words: tree.rows() * stride.max(need) });
        }
        let mut rows: Vec<Row<'_>> = masks.chunks_exact_mut(stride).take(tree.rows()).map(Some).collect();
        let mut allowed = vec![false; tree.tokens.len()];
        self.fill_row(&mut rows[0])?;
        self.fill_tree(tree, &mut rows, &mut allowed)?;
        // Nothing follows a token that is not allowed.
        rows.into_iter().flatten().for_each(|row| row.fill(0));
        Ok(allowed)
    }

    /// Returns which of some tokens may come next, without a whole mask. Errors are those of [`Self::allows`].
    pub fn allowed_of(&mut self, candidates: &[TokenId]) -> Result<Vec<bool>, MatchError> {
        candidates.iter().map(|token| self.allows(*token)).collect()
    }

    fn fill_row(&mut self, row: &mut Row<'_>) -> Result<(), MatchError> {
        row.take().map_or(Ok(()), |row| self.fill_mask(row))
    }

    /// Writes the masks of all nodes, one after the other as long as that is fast enough.
    fn fill_tree(
        &mut self,
        tree: &DraftTree,
        rows: &mut [Row<'_>],
        allowed: &mut [bool],
    ) -> Result<(), MatchError> {
        let mut walk = Walk::of(&tree.children[0]);
        // The last two time spans; the shorter one counts, because a thread that once had to wait for a processor is
        // not slow.
        let (mut spans, mut last) = ([Duration::ZERO; 2], Instant::now());
        while self.walk(tree, &mut walk, NODES_PER_CLOCK_CHECK, rows, allowed)? {
            let now = Instant::now();
            spans = [spans[1], now - last];
            last = now;
            let checks = (tree.tokens.len() - walk.visited).div_ceil(NODES_PER_CLOCK_CHECK) as u32;
            let left = spans[0].min(spans[1]).saturating_mul(checks);
            if left >= tree.worth && walk.is_wide() && rayon::current_num_threads() > 1 {
                return self.fill_branches(tree, walk, rows, allowed);
            }
        }
        Ok(())
    }

    /// Visits some nodes and writes their masks. Returns whether there are more; if not, or after an error, all steps
    /// are undone.
    fn walk(
        &mut self,
        tree: &DraftTree,
        walk: &mut Walk,
        nodes: usize,
        rows: &mut [Row<'_>],
        allowed: &mut [bool],
    ) -> Result<bool, MatchError> {
        let end = walk.visited.saturating_add(nodes);
        while walk.visited < end {
            match walk.work.pop() {
                None => return Ok(false),
                Some(Step::Back) => self.leave(walk),
                Some(Step::Visit(node)) => {
                    walk.visited += 1;
                    if let Err(error) = self.accept(tree.tokens[node as usize]) {
                        if error.is_undecided() {
                            self.undo(walk.depth);
                            return Err(error);
                        }
                        continue;
                    }
                    allowed[node as usize] = true;
                    walk.enter(&tree.children[node as usize + 1]);
                    if let Err(error) = self.fill_row(&mut rows[node as usize + 1]) {
                        self.undo(walk.depth);
                        return Err(error);
                    }
                }
            }
        }
        Ok(true)
    }

    fn leave(&mut self, walk: &mut Walk) {
        self.undo(1);
        walk.depth -= 1;
    }

    /// Finishes a walk on several threads, each branch with a matcher of its own.
    fn fill_branches(
        &mut self,
        tree: &DraftTree,
        mut walk: Walk,
        rows: &mut [Row<'_>],
        allowed: &mut [bool],
    ) -> Result<(), MatchError> {
        let mut branches = Vec::new();
        while let Some(step) = walk.work.pop() {
            match step {
                Step::Back => self.leave(&mut walk),
                Step::Visit(top) => branches.push((self.fork(), Branch::take(tree, top, rows))),
            }
        }
        let done: Result<Vec<Branch<'_>>, MatchError> = branches
            .into_par_iter()
            .map(|(mut matcher, mut branch)| {
                let mut walk = Walk::of(&[branch.top]);
                matcher.walk(tree, &mut walk, usize::MAX, &mut branch.rows, &mut branch.allowed)?;
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

/// A depth-first walk through a tree: the remaining steps, the depth below the start, and the number of visited nodes.
struct Walk {
    work: Vec<Step>,
    depth: usize,
    visited: usize,
}

#[derive(Clone, Copy)]
enum Step {
    Visit(u32),
    Back,
}

impl Walk {
    fn of(nodes: &[u32]) -> Self {
        let work = nodes.iter().rev().map(|node| Step::Visit(*node)).collect();
        Self { work, depth: 0, visited: 0 }
    }

    /// Enters the visited node: its children come next, and then the way back.
    fn enter(&mut self, children: &[u32]) {
        self.depth += 1;
        self.work.push(Step::Back);
        self.work.extend(children.iter().rev().map(|node| Step::Visit(*node)));
    }

    /// Checks whether more than one branch is left.
    fn is_wide(&self) -> bool {
        self.work.iter().filter(|step| matches!(step, Step::Visit(_))).nth(1).is_some()
    }
}

/// The rows of a node and of its descendants.
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
        Self { top, rows: taken, allowed: vec![false; tree.tokens.len()] }
    }
}
