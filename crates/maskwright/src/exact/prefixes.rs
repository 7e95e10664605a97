//! Remembers what is known about a model's mass below the prefixes that were seen.

use hashbrown::HashMap;
use maskwright_vocab::TokenId;

/// The maximum number of remembered prefixes. Texts below a prefix that is not remembered are drawn as if it had never
/// been seen: the draw is still exact, but nothing is learned from it.
const MAX_PREFIXES: usize = 1 << 20;

/// A tree of prefixes, with the mass that is known to be lost below each; see the [module](super).
///
/// ```
/// use maskwright::exact::{Mode, Prefixes, Row, Step};
///
/// // Two tokens, of which the mask allows the first alone. The model gives it a quarter.
/// let row = Row::new(&[0.0, 3f32.ln()], &[0b01]);
/// let mut prefixes = Prefixes::new();
/// let first = prefixes.step(Some(prefixes.root()), &row, 0.9, Mode::Try);
/// assert_eq!(first, Step::Rejected);                      // the second token was drawn: this try is over
/// prefixes.learn();                                   // and the next one knows
/// assert!((prefixes.known().lost - 0.75).abs() < 1e-6);
/// assert!(matches!(prefixes.step(Some(prefixes.root()), &row, 0.9, Mode::Try), Step::Token(..)));
/// ```
#[derive(Clone, Debug)]
pub struct Prefixes {
    nodes: Vec<Node>,
    /// Prefixes about which the current round has learned something.
    touched: Vec<u32>,
}

/// A remembered prefix.
///
/// ```
/// use maskwright::exact::Prefixes;
///
/// let prefixes = Prefixes::new();
/// assert_eq!(prefixes.root(), prefixes.root()); // the empty prefix, where every try begins
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(u32);

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    /// The model's share of the last token, given the tokens before it.
    share: f64,
    /// The share of the mass below that is not known to be lost, as of the beginning of the round.
    alive: f64,
    /// The share of the mass below that is known to be valid.
    valid: f64,
    /// Whether `alive` was computed. A prefix that is new in this round has all of its mass.
    is_known: bool,
    /// The allowed tokens after this prefix, once it was visited.
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    /// The model's share of all allowed tokens.
    allowed: f64,
    children: HashMap<TokenId, u32>,
}

/// The model's probabilities of the allowed tokens after a prefix.
///
/// ```
/// use maskwright::exact::Row;
///
/// let row = Row::new(&[0.0, 0.0, 0.0, 0.0], &[0b0101]); // four tokens alike, two of them allowed
/// assert!((row.allowed() - 0.5).abs() < 1e-6);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The allowed tokens by id, with the model's share of each.
    shares: Vec<(TokenId, f64)>,
    /// The sum of the shares.
    allowed: f64,
}

/// How a token is drawn.
///
/// ```
/// use maskwright::exact::{Mode, Prefixes, Row, Step};
///
/// // The token that is not allowed has nearly all of the mass. Under a mask it is never drawn.
/// let row = Row::new(&[0.0, 9.0], &[0b01]);
/// let mut prefixes = Prefixes::new();
/// let root = Some(prefixes.root());
/// assert_eq!(prefixes.clone().step(root, &row, 0.5, Mode::Try), Step::Rejected);
/// assert!(matches!(prefixes.step(root, &row, 0.5, Mode::Masked), Step::Token(..)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The draw may be rejected if the model chooses a token that is not allowed.
    Try,
    /// Only allowed tokens are drawn, weighted by what is known. The text is always valid, but its distribution is not
    /// exact.
    Masked,
}

/// The result of drawing one token.
///
/// ```
/// use maskwright::exact::{Mode, Prefixes, Row, Step};
///
/// let nothing = Row::new(&[0.0], &[0]); // one token, which is not allowed
/// let mut prefixes = Prefixes::new();
/// let root = Some(prefixes.root());
/// assert_eq!(prefixes.step(root, &nothing, 0.5, Mode::Masked), Step::Nothing);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This token, and the prefix extended by it, if that is remembered.
    Token(TokenId, Option<Place>),
    /// The model chose a token that is not allowed: the try has failed.
    Rejected,
    /// All allowed tokens have a share of zero.
    Nothing,
}

/// How the model's mass is divided, as far as it is known: the three shares add up to 1.
///
/// ```
/// use maskwright::exact::Prefixes;
///
/// let known = Prefixes::new().known();
/// assert_eq!((known.valid, known.lost, known.unaccounted), (0.0, 0.0, 1.0)); // nothing was seen yet
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The mass of texts that are known to be valid, because they were drawn.
    pub valid: f64,
    /// The mass of texts that are known to be invalid.
    pub lost: f64,
    /// The mass of all other texts.
    pub unaccounted: f64,
}

impl Row {
    /// Computes the shares of the allowed tokens from a row of logits and the words of a mask. A logit that is not
    /// finite has no share.
    pub fn new(logits: &[f32], mask: &[u32]) -> Self {
        let best = logits.iter().copied().filter(|logit| logit.is_finite()).fold(f32::NEG_INFINITY, f32::max);
        let weight = |logit: f32| if logit.is_finite() { f64::from(logit - best).exp() } else { 0.0 };
        let total: f64 = logits.iter().map(|&logit| weight(logit)).sum();
        let mut shares = Vec::new();
        let mut allowed = 0.0;
        for (number, &word) in mask.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let token = number * 32 + left.trailing_zeros() as usize;
                left &= left - 1;
                let share = logits.get(token).map_or(0.0, |&logit| weight(logit) / total);
                if share > 0.0 {
                    allowed += share;
                    shares.push((TokenId(token as u32), share));
                }
            }
        }
        Self { shares, allowed: allowed.min(1.0) }
    }

    /// Returns the model's share of all allowed tokens.
    pub fn allowed(&self) -> f64 {
        self.allowed
    }

    /// Returns the number of bytes that it holds.
    pub fn heap_bytes(&self) -> usize {
        self.shares.capacity() * size_of::<(TokenId, f64)>()
    }
}

impl Default for Prefixes {
    fn default() -> Self {
        Self { nodes: vec![Node::new(0, 1.0)], touched: Vec::new() }
    }
}

impl Node {
    fn new(parent: u32, share: f64) -> Self {
        Self { parent, share, alive: 1.0, valid: 0.0, is_known: false, seen: None }
    }
}

impl Prefixes {
    /// Creates a tree that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the empty prefix.
    pub fn root(&self) -> Place {
        Place(0)
    }

    /// Draws the next token of a text with the prefix `at`. `chance` is a random number from 0 to 1. What is learned
    /// takes effect in the next [round](Self::learn).
    pub fn step(&mut self, at: Option<Place>, row: &Row, chance: f64, mode: Mode) -> Step {
        let node = at.and_then(|Place(at)| self.nodes.get(at as usize));
        let (alive, is_known) = node.map_or((1.0, false), |node| (node.alive, node.is_known));
        let seen = node.and_then(|node| node.seen.as_ref());
        let left = |token: TokenId| {
            let child = seen.and_then(|seen| seen.children.get(&token));
            child.and_then(|child| self.nodes.get(*child as usize)).map_or(1.0, |child| child.alive)
        };
        let weights = || row.shares.iter().map(|&(token, share)| (token, share, share * left(token)));
        let sum: f64 = weights().map(|(_, _, weight)| weight).sum();
        // If the lost mass below this prefix is known, a draw cannot fail here: `sum` and `alive` are then the same
        // number, computed in two ways.
        let whole = if mode == Mode::Masked || is_known { sum } else { alive };
        let goal = chance * whole;
        let mut reached = 0.0;
        let mut chosen = None;
        for (token, share, weight) in weights().filter(|(_, _, weight)| *weight > 0.0) {
            if reached > goal {
                break;
            }
            reached += weight;
            chosen = Some((token, share));
        }
        if reached <= goal && mode == Mode::Try && !is_known {
            chosen = None;
        }
        let is_hopeless = sum <= 0.0;
        self.look(at, row);
        match chosen {
            Some((token, share)) => Step::Token(token, at.and_then(|at| self.child(at, token, share))),
            None if is_hopeless && (mode == Mode::Masked || is_known) => Step::Nothing,
            None => Step::Rejected,
        }
    }

    /// Records which mass is allowed after a prefix.
    fn look(&mut self, at: Option<Place>, row: &Row) {
        let Some(Place(at)) = at else { return };
        if let Some(node) = self.nodes.get_mut(at as usize).filter(|node| node.seen.is_none()) {
            node.seen = Some(Seen { allowed: row.allowed, children: HashMap::new() });
            self.touched.push(at);
        }
    }

    fn child(&mut self, Place(at): Place, token: TokenId, share: f64) -> Option<Place> {
        let next = self.nodes.len();
        let seen = self.nodes.get_mut(at as usize)?.seen.as_mut()?;
        if let Some(&child) = seen.children.get(&token) {
            return Some(Place(child));
        }
        if next >= MAX_PREFIXES {
            return None;
        }
        let child = u32::try_from(next).ok()?;
        seen.children.insert(token, child);
        self.nodes.push(Node::new(at, share));
        Some(Place(child))
    }

    /// Records that the text ends here, and is valid.
    pub fn end(&mut self, at: Option<Place>) {
        let Some(Place(at)) = at else { return };
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.valid = 1.0;
            self.touched.push(at);
        }
    }

    /// Ends a round: later tries use what this one has learned.
    pub fn learn(&mut self) {
        // A child has a larger number than its parent, so it is updated first.
        let mut open: std::collections::BTreeSet<u32> = self.touched.drain(..).collect();
        while let Some(at) = open.pop_last() {
            self.sum_up(at as usize);
            if at > 0
                && let Some(node) = self.nodes.get(at as usize)
            {
                open.insert(node.parent);
            }
        }
    }

    fn sum_up(&mut self, at: usize) {
        let Some(seen) = self.nodes.get(at).and_then(|node| node.seen.as_ref()) else { return };
        let (mut rest, mut alive, mut valid) = (seen.allowed, 0.0, 0.0);
        // Floating-point sums depend on the order, and the same seed must give the same text. So the order must not
        // depend on the hash table or on the order of the tries.
        let mut children: Vec<(TokenId, u32)> =
            seen.children.iter().map(|(&token, &child)| (token, child)).collect();
        children.sort_unstable();
        for child in children.into_iter().filter_map(|(_, child)| self.nodes.get(child as usize)) {
            rest -= child.share;
            alive += child.share * child.alive;
            valid += child.share * child.valid;
        }
        if let Some(node) = self.nodes.get_mut(at) {
            (node.alive, node.valid, node.is_known) = (rest.max(0.0) + alive, valid, true);
        }
    }

    /// Returns what is known at the beginning of the round.
    pub fn known(&self) -> Known {
        let (alive, valid) = self.nodes.first().map_or((1.0, 0.0), |root| (root.alive, root.valid));
        let alive = alive.min(1.0);
        Known { valid: valid.min(alive), lost: 1.0 - alive, unaccounted: (alive - valid).max(0.0) }
    }

    /// Returns the number of remembered prefixes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no token was drawn yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }
}
