//! Checks whether a set is empty, and computes the distance to its end.
//!
//! For unions, sequences and repetitions the answer follows from the parts. For intersections and complements there is
//! no such rule: their derivatives are explored, nearest first, until one contains the empty text. If none does, the
//! set is empty; if there are too many to visit, the answer is [`Unknown`].
//!
//! Bytes that no part of a node distinguishes have the same derivative, so one of each kind is tried ([`Arena::cuts`]).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{Arena, Node, NodeId, Stage, Unknown};

/// The greatest number of bytes that spell one byte of text. It is a simple bound for all cases: `\ud83d\ude00` for a
/// character of four bytes has fewer per byte, and `\u0000` for one of one byte has fewer in all.
const MAX_BYTES_PER_BYTE: u64 = 12;

impl Arena {
    /// Checks whether no text is in the set.
    pub(crate) fn is_empty(&mut self, node: NodeId) -> Result<bool, Unknown> {
        Ok(self.distance(node)?.is_none())
    }

    /// Returns the distance to the end of some text of the set: `None` if the set is empty, 0 if and only if it
    /// contains the empty text.
    ///
    /// It is the length of a shortest text, except for JSON strings, where it is an upper bound. In every case some
    /// byte leads to a derivative with a smaller distance.
    pub(crate) fn distance(&mut self, node: NodeId) -> Result<Option<u64>, Unknown> {
        if let Some(&known) = self.shortest.get(&node) {
            return Ok(known);
        }
        if self.is_nullable(node) {
            return Ok(Some(0));
        }
        let distance = match self.nodes[node.0 as usize].clone() {
            Node::Never => None,
            Node::Empty => Some(0),
            Node::Range(..) => Some(1),
            Node::Seq(first, rest) => match (self.distance(first)?, self.distance(rest)?) {
                (Some(first), Some(rest)) => Some(first.saturating_add(rest)),
                _ => None,
            },
            Node::Alt(parts) => {
                let mut nearest = None;
                for &part in &parts {
                    nearest = nearer(nearest, self.distance(part)?);
                }
                nearest
            }
            Node::Repeat { body, min, .. } => self.distance(body)?.map(|d| d.saturating_mul(min.into())),
            Node::Json(stage, text) => self.json_distance(stage, text)?,
            Node::And(_) | Node::Complement(_) => return self.explore(node),
        };
        self.shortest.insert(node, distance);
        Ok(distance)
    }

    /// Returns the byte that leads nearest to the end; `None` if no byte leads there.
    pub(crate) fn nearest_byte(&mut self, node: NodeId) -> Result<Option<u8>, Unknown> {
        let mut nearest: Option<(u64, u8)> = None;
        for byte in representatives(self.cuts(node)) {
            let next = self.derivative(node, byte);
            if let Some(distance) = self.distance(next)?
                && nearest.is_none_or(|(least, _)| distance < least)
            {
                nearest = Some((distance, byte));
            }
        }
        Ok(nearest.map(|(_, byte)| byte))
    }

    fn json_distance(&mut self, stage: Stage, text: NodeId) -> Result<Option<u64>, Unknown> {
        let Some(spellable) = stage.spellable() else {
            // Every text has a spelling, so the string has one if there is a text.
            let quotes = if stage == Stage::Open { 2 } else { 1 };
            return Ok(self.distance(text)?.map(|d| quotes + MAX_BYTES_PER_BYTE * d));
        };
        let (character, anything) = (self.class(&spellable), self.any_bytes());
        let starts = self.seq(character, anything);
        let possible = self.and(vec![text, starts]);
        // The escape already accounts for one byte of the text.
        Ok(self
            .distance(possible)?
            .map(|d| stage.longest_rest() + 1 + MAX_BYTES_PER_BYTE * d.saturating_sub(1)))
    }

    /// Explores the derivatives of a node, nearest first.
    fn explore(&mut self, start: NodeId) -> Result<Option<u64>, Unknown> {
        let mut found: FxHashMap<NodeId, (u64, NodeId)> = FxHashMap::default();
        let mut queue = VecDeque::from([start]);
        found.insert(start, (0, start));
        let mut nearest: Option<(u64, NodeId)> = None;
        let begin = self.steps;
        while let Some(node) = queue.pop_front() {
            let depth = found[&node].0;
            if nearest.is_some_and(|(total, _)| total <= depth) {
                break;
            }
            match self.without_exploring(node)? {
                Answer::Distance(distance) => {
                    if nearest.is_none_or(|(total, _)| depth + distance < total) {
                        nearest = Some((depth + distance, node));
                    }
                    continue;
                }
                Answer::Empty => continue,
                Answer::Open => {}
            }
            for byte in representatives(self.cuts(node)) {
                // A cached step counts for this query, too.
                self.steps += self.operand_count(node);
                let next = self.derivative(node, byte);
                found.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    (depth + 1, node)
                });
            }
            if self.steps - begin > self.limit {
                return Err(Unknown { steps: self.steps - begin });
            }
        }
        let Some((total, end)) = nearest else {
            // Everything reachable has been visited, and none of it ends.
            #[expect(clippy::iter_over_hash_type, reason = "the same is recorded for each, in any order")]
            for &node in found.keys() {
                self.shortest.insert(node, None);
            }
            return Ok(None);
        };
        let mut node = end;
        while node != start {
            node = found[&node].1;
            self.shortest.insert(node, Some(total - found[&node].0));
        }
        Ok(Some(total))
    }

    /// Returns the distance if it can be determined without another exploration.
    fn without_exploring(&mut self, node: NodeId) -> Result<Answer, Unknown> {
        if let Some(&known) = self.shortest.get(&node) {
            return Ok(known.map_or(Answer::Empty, Answer::Distance));
        }
        if self.is_nullable(node) {
            return Ok(Answer::Distance(0));
        }
        match self.nodes[node.0 as usize].clone() {
            Node::And(parts) => {
                for &part in &parts {
                    let complement = matches!(self.nodes[part.0 as usize], Node::Complement(_));
                    if !complement && self.distance(part)?.is_none() {
                        self.shortest.insert(node, None);
                        return Ok(Answer::Empty);
                    }
                }
                Ok(Answer::Open)
            }
            Node::Complement(_) => Ok(Answer::Open),
            _ => Ok(self.distance(node)?.map_or(Answer::Empty, Answer::Distance)),
        }
    }

    fn operand_count(&self, node: NodeId) -> u64 {
        match &self.nodes[node.0 as usize] {
            Node::Alt(parts) | Node::And(parts) => parts.len() as u64,
            _ => 1,
        }
    }

    /// Returns the bytes at which the derivative may change: if `b` is not in this set, the derivatives by `b` and by
    /// `b - 1` are the same.
    pub(super) fn cuts(&self, node: NodeId) -> Bytes {
        match &self.nodes[node.0 as usize] {
            Node::Never | Node::Empty => Bytes::default(),
            Node::Range(low, high) => Bytes::of([Some(*low), high.checked_add(1)]),
            Node::Seq(first, rest) => {
                let cuts = self.cuts(*first);
                if self.is_nullable(*first) { cuts.or(self.cuts(*rest)) } else { cuts }
            }
            Node::Alt(parts) | Node::And(parts) => {
                parts.iter().fold(Bytes::default(), |cuts, &part| cuts.or(self.cuts(part)))
            }
            Node::Repeat { body, .. } => self.cuts(*body),
            Node::Complement(inner) => self.cuts(*inner),
            Node::Json(Stage::Open | Stage::Text, text) => {
                let special = [0x20, b'"', b'"' + 1, b'\\', b'\\' + 1].map(Some);
                self.cuts(*text).or(Bytes::of(special))
            }
            Node::Json(..) => {
                const ESCAPES: &[u8; 29] = b"\"\\/bfnrtu0123456789acdeABCDEF";
                Bytes::of(ESCAPES.map(Some)).or(Bytes::of(ESCAPES.map(|byte| Some(byte + 1))))
            }
        }
    }
}

/// The knowledge about a set before it is explored.
enum Answer {
    /// There is a text at this distance.
    Distance(u64),
    /// There is no text.
    Empty,
    /// Nothing is known yet.
    Open,
}

fn nearer(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    }
}

/// A set of bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Bytes([u64; 4]);

impl Bytes {
    fn of<const N: usize>(members: [Option<u8>; N]) -> Self {
        let mut set = Self::default();
        for byte in members.into_iter().flatten() {
            set.0[usize::from(byte / 64)] |= 1 << (byte % 64);
        }
        set
    }

    fn or(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub(super) fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }
}

/// Returns one byte of each kind.
fn representatives(cuts: Bytes) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).filter(move |&byte| byte == 0 || cuts.contains(byte))
}
