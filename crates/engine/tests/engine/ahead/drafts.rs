//! Compares masks of drafts with a fork for each node.

use std::time::Duration;

use maskwright_engine::{DRAFT_ROOT, DraftError, DraftTree, Matcher};
use maskwright_oracle::generate::{self, Rng};
use maskwright_vocab::TokenId;

use super::{bind, random_grammars};
use crate::support;

struct Draft {
    tokens: Vec<TokenId>,
    parents: Vec<u32>,
}

impl Draft {
    /// Creates a random tree in which most tokens are allowed after their parents.
    fn random(rng: &mut Rng, matcher: &Matcher, nodes: usize, vocabulary: usize) -> Self {
        let mut draft = Self { tokens: Vec::new(), parents: Vec::new() };
        let mut matchers: Vec<Option<Matcher>> = Vec::new();
        for node in 0..nodes {
            // Sometimes a chain, sometimes a wide tree.
            let parent = if node > 0 && !rng.one_in(4) {
                if rng.one_in(2) { node as u32 - 1 } else { rng.below(node) as u32 }
            } else {
                DRAFT_ROOT
            };
            let mut here = match parent {
                DRAFT_ROOT => Some(matcher.fork()),
                parent => matchers[parent as usize].clone(),
            };
            let allowed: Vec<TokenId> =
                here.as_mut().map_or(Vec::new(), |here| here.mask().expect("a mask").iter().collect());
            let token = match rng.choose(&allowed) {
                Some(token) if !rng.one_in(6) => *token,
                _ => TokenId(rng.below(vocabulary + 3) as u32),
            };
            here = here.filter(|here| here.fork().accept(token).is_ok());
            if let Some(here) = &mut here {
                here.accept(token).expect("it was tried");
            }
            matchers.push(here);
            draft.tokens.push(token);
            draft.parents.push(parent);
        }
        draft
    }

    /// The slow reference: every node from the beginning, with a fork of its own.
    fn one_by_one(&self, matcher: &Matcher, stride: usize) -> (Vec<bool>, Vec<u32>) {
        let mut masks = vec![0; (self.tokens.len() + 1) * stride];
        matcher.fork().fill_mask(&mut masks[..stride]).expect("the row is large enough");
        let mut allowed = Vec::new();
        for node in 0..self.tokens.len() {
            let mut path = vec![node];
            while self.parents[path[path.len() - 1]] != DRAFT_ROOT {
                path.push(self.parents[path[path.len() - 1]] as usize);
            }
            let mut fork = matcher.fork();
            let taken = path.iter().rev().all(|node| fork.accept(self.tokens[*node]).is_ok());
            if taken {
                let row = &mut masks[(node + 1) * stride..][..stride];
                fork.fill_mask(row).expect("the row is large enough");
            }
            allowed.push(taken);
        }
        (allowed, masks)
    }

    /// Returns the same tree as servers store it.
    fn links(&self) -> (Vec<TokenId>, Vec<i64>, Vec<i64>) {
        let rows = self.tokens.len() + 1;
        let tokens = core::iter::once(TokenId(0)).chain(self.tokens.iter().copied()).collect();
        let (mut child, mut sibling) = (vec![-1; rows], vec![-1; rows]);
        for node in (0..self.tokens.len()).rev() {
            let parent = if self.parents[node] == DRAFT_ROOT { 0 } else { self.parents[node] as usize + 1 };
            sibling[node + 1] = child[parent];
            child[parent] = i64::try_from(node).expect("a small tree") + 1;
        }
        (tokens, child, sibling)
    }
}

#[test]
fn masks_of_drafts_are_those_of_forks() {
    let (mut compared, mut right, mut wrong) = (0, 0, 0);
    for (seed, mut rng, grammar) in random_grammars(8_000..8_060) {
        let mut tokens = generate::vocabulary(&mut rng, b"ab\" ", 60);
        tokens.retain(|token| !token.is_empty());
        let Some(bound) = bind(&grammar, support::vocabulary(&tokens)) else { continue };
        let mut matcher = bound.matcher();
        let large = if seed % 12 == 0 { 400 } else { 40 };
        for nodes in [0, 1, 5, large] {
            let draft = Draft::random(&mut rng, &matcher, nodes, tokens.len());
            // A row may be longer than necessary.
            let stride = (tokens.len() + 1).div_ceil(32) + rng.below(3);
            let (allowed, masks) = draft.one_by_one(&matcher, stride);
            let before = matcher.steps();
            let (linked, child, sibling) = draft.links();
            let by_parents = DraftTree::from_parents(&draft.tokens, &draft.parents).expect("a tree");
            let by_links = DraftTree::from_links(&linked, &child, &sibling).expect("a tree");
            // By one thread, by several from the start, and as the clock decides.
            let trees = [
                by_parents.clone().with_worth(Duration::MAX),
                by_parents.with_worth(Duration::ZERO),
                by_links,
            ];
            for tree in trees {
                let mut found = vec![0xA5A5_A5A5; masks.len()];
                let which = matcher.fill_masks_for_tree(&tree, &mut found, stride).expect("room");
                assert_eq!((&which, &found), (&allowed, &masks), "seed {seed}, {nodes} nodes\n{grammar}");
                assert_eq!(matcher.steps(), before);
            }
            compared += 1;
            right += allowed.iter().filter(|allowed| **allowed).count();
            wrong += allowed.iter().filter(|allowed| !**allowed).count();
            // A chain is a tree.
            let chain = Draft { parents: (0..nodes as u32).map(|n| n.wrapping_sub(1)).collect(), ..draft };
            let (allowed, masks) = chain.one_by_one(&matcher, stride);
            let mut found = vec![0xA5A5_A5A5; masks.len()];
            let count = matcher.fill_masks_for_chain(&chain.tokens, &mut found, stride).expect("room");
            assert_eq!(count, allowed.iter().filter(|allowed| **allowed).count(), "seed {seed}");
            assert_eq!(found, masks, "seed {seed}");
            // Candidates.
            let candidates: Vec<TokenId> = (0..tokens.len() as u32 + 3).map(TokenId).collect();
            let mask = matcher.mask().expect("a mask").clone();
            let wanted: Vec<bool> = candidates.iter().map(|token| mask.contains(*token)).collect();
            assert_eq!(matcher.allowed_of(&candidates), Ok(wanted), "seed {seed}");
            let next: Vec<TokenId> = mask.iter().collect();
            match rng.choose(&next) {
                Some(token) => matcher.accept(*token).expect("it is in the mask"),
                None => matcher.reset(),
            }
        }
    }
    eprintln!("{compared} trees, {right} nodes allowed and {wrong} not");
    assert!(right > 500 && wrong > 200, "nothing was compared");
}

#[test]
fn broken_drafts_are_refused() {
    let tokens = [TokenId(0), TokenId(1)];
    let parents = |parents: &[u32]| DraftTree::from_parents(&tokens, parents).expect_err("broken");
    assert_eq!(parents(&[DRAFT_ROOT]), DraftError::Length { tokens: 2, links: 1 });
    assert_eq!(parents(&[0, DRAFT_ROOT]), DraftError::Order { node: 0 });
    assert_eq!(parents(&[1, 0]), DraftError::Order { node: 0 });
    let links =
        |child: &[i64], sibling: &[i64]| DraftTree::from_links(&tokens, child, sibling).expect_err("broken");
    assert_eq!(links(&[1], &[-1, -1]), DraftError::Length { tokens: 2, links: 1 });
    assert_eq!(links(&[2, -1], &[-1, -1]), DraftError::Link { node: 0 });
    assert_eq!(links(&[1, 0], &[-1, -1]), DraftError::Link { node: 1 });
    assert_eq!(links(&[1, -1], &[-1, 1]), DraftError::Link { node: 0 });
    assert_eq!(DraftTree::from_links(&[], &[], &[]).expect("an empty tree").rows(), 1);
}
