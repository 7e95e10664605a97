//! Scopes that keep a set of words, such as the keys of an object in any order.
//!
//! Where the values that must differ are words, each with a single spelling, the values that a scope has seen form a
//! set of words. The set has a number that is the same for all requests, and the frame of the scope holds that number.
//! So masks depend on the set and are cached with it. Nothing has to be tried afterwards, unlike for values that are
//! [listed](crate::distinct).
//!
//! ```text
//!   {"a": 1, "c": {"a": …         stack:  words {a} ─▶ (after the value) ─▶ words {a, c} ─▶ bottom
//! ```
//! A place *awaits* words if one of them must come next. If all of them were seen, the place is a dead end and no
//! thread may enter it: after the last key no comma is allowed, and of `"name"` and `"nick"` only `"na` is allowed if
//! the other was written.
//!
//! That is sufficient if the scope can continue after every word, no matter what was seen: it may end, and if required
//! words are missing, each of them may come next. A word that others need counts as required once one of those was
//! seen. Objects whose members depend on one another in no other way satisfy this, and it is proved for each scope
//! ([`ScopeWords`]). All other scopes list their values.

use std::cell::OnceCell;
use std::sync::OnceLock;

use maskwright_automata::Grouped;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::joints::{Joint, Joints};
use super::network::{
    Callee, MachineId, Need, Network, Node, NodeId, Scope, ScopeId, Values, WordId, WordScope,
};
use super::required::Machines;
use crate::count::UNBOUNDED;
use crate::leaf::Leaf;
use crate::store::Slices;
use crate::tuning::{FastPath, may_take, tuning};

/// A scope with more words than this lists them, because each of its sets takes a bit for each word.
const MAX_SET_WORDS: usize = 4_096;
/// The greatest number of cells that are visited to check whether calls agree ([`ScopeWords::calls_agree`]).
const MAX_CELLS: usize = 20_000;
/// The greatest size of the table in which awaited words are computed, in words of 64 bits.
const MAX_TABLE: usize = 4_000_000;

/// The number of a set of words, which includes the scope that has seen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WordSetId(pub(crate) u32);

/// The number of a list of words in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WordListId(u32);

/// A question about the words that a scope has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Question {
    /// Whether it has seen everything that it requires.
    MayClose,
    /// Whether a word of a list is new. If words have an order: whether everything that is then missing can still come
    /// after it.
    IsAnyNew(WordListId),
    /// Which words it has seen.
    Everything,
}

/// What may come first in a place that restricts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// The words, of which one may come.
    pub(crate) list: WordListId,
    /// Whether the end of the machine may come instead.
    pub(crate) may_end: bool,
    /// Whether another value may come instead, after which only the end may follow.
    pub(crate) is_last: bool,
}

/// The words of the scopes of a program.
#[derive(Debug)]
pub(crate) struct Words {
    awaited: FxHashMap<Joint, Awaited>,
    lists: Slices<WordId>,
    /// The sets: each is the number of its scope, followed by bits.
    sets: Slices<u64>,
    /// Whether the words of some scope have an order or are written in leaves, so that calls have to be checked.
    looks_before_calls: bool,
}

impl Words {
    /// Finds the scopes of a network that can keep sets of words, and marks them. Returns `None` if there are none.
    pub(super) fn of(network: &mut Network, leaves: &[Leaf], joints: &OnceLock<Joints>) -> Option<Self> {
        if network.word_checks.is_empty() || !tuning().has(FastPath::WordSets) {
            return None;
        }
        let joints = joints.get_or_init(|| Joints::of(network));
        let machines = Machines::of(network, joints);
        let (mut places, lists) = (vec![NOWHERE; joints.len()], Slices::new());
        let parts: Vec<Vec<MachineId>> =
            network.scopes.iter().map(|scope| machines.parts(scope.body)).collect();
        let find = |(scope, parts): (&Scope, &Vec<MachineId>)| {
            ScopeWords::find(&machines, leaves, scope, parts, &mut places, &lists)
        };
        let mut found: Vec<Option<Found>> = network.scopes.iter().zip(&parts).map(find).collect();
        // A machine that is also part of a scope without a word set has to list its words. Scopes that share such a
        // machine cannot keep a set.
        let with_words: Vec<Vec<MachineId>> =
            parts.into_iter().map(|parts| machines.with_words(parts)).collect();
        let mut listing: FxHashSet<MachineId> = FxHashSet::default();
        loop {
            let before = listing.len();
            for (scope, parts) in found.iter_mut().zip(&with_words) {
                scope.take_if(|_| parts.iter().any(|part| listing.contains(part)));
                if scope.is_none() {
                    listing.extend(parts);
                }
            }
            if listing.len() == before {
                break;
            }
        }
        let is_any = found.iter().flatten().next().is_some();
        if !is_any || !may_take(FastPath::WordSets) {
            return None;
        }
        let (mut awaited, mut looks_before_calls) = (FxHashMap::default(), false);
        for (scope, found) in network.scopes.iter_mut().zip(found) {
            let Some(found) = found else { continue };
            (scope.values, scope.finite, scope.is_mixed) = (Values::Endless, 0, false);
            looks_before_calls |= found.looks_before_calls;
            scope.words = Some(Box::new(found.words));
            awaited.extend(found.awaited);
            network.set_checks.extend(found.checks);
        }
        Some(Self { awaited, lists, sets: Slices::new(), looks_before_calls })
    }

    /// Returns whether a call from a live place may lead to a dead end.
    #[inline]
    pub(crate) fn looks_before_calls(&self) -> bool {
        self.looks_before_calls
    }

    /// Returns what a joint awaits.
    #[inline]
    pub(crate) fn at(&self, joint: Joint) -> Option<&Awaited> {
        self.awaited.get(&joint)
    }

    /// Returns what a set of nodes awaits, or `None` if one of them awaits nothing.
    pub(super) fn of_cell(&self, joints: &Joints, nodes: &[NodeId], returns: bool) -> Option<Awaited> {
        if nodes.is_empty() {
            return None;
        }
        let all = nodes.iter().map(|node| self.at(joints.at(*node))).collect::<Option<Vec<_>>>()?;
        let mut words: Vec<WordId> = all.iter().flat_map(|one| self.list(one.list)).copied().collect();
        words.sort_unstable();
        words.dedup();
        let list = WordListId(self.lists.number(&words));
        let may_end = returns || all.iter().any(|one| one.may_end);
        Some(Awaited { list, may_end, is_last: all.iter().any(|one| one.is_last) })
    }

    fn list(&self, list: WordListId) -> &[WordId] {
        self.lists.get(list.0)
    }

    /// Answers a question.
    pub(crate) fn answer(&self, scope: &WordScope, set: WordSetId, question: Question) -> bool {
        match question {
            Question::MayClose => self.may_close(scope, set),
            Question::IsAnyNew(list) if !scope.later.is_empty() => {
                self.list(list).iter().any(|word| self.leads_on(scope, set, *word))
            }
            Question::IsAnyNew(list) => {
                let (list, seen) = (self.list(list), self.bits(set).iter().map(|bits| bits.count_ones()));
                // PERF: nearly always there are more words than were seen.
                list.len() > seen.sum::<u32>() as usize
                    || list.iter().any(|word| !self.has(scope, set, *word))
            }
            Question::Everything => false,
        }
    }

    /// Returns the empty set of a scope.
    pub(crate) fn empty(&self, index: ScopeId, scope: &WordScope) -> WordSetId {
        let mut set = vec![0; 1 + scope.required.len()];
        set[0] = u64::from(index.0);
        WordSetId(self.sets.number(&set))
    }

    fn bits(&self, set: WordSetId) -> &[u64] {
        &self.sets.get(set.0)[1..]
    }

    /// Returns the set with one more word, or `None` if the set has the word already or the scope does not.
    pub(crate) fn with(&self, scope: &WordScope, set: WordSetId, word: WordId) -> Option<WordSetId> {
        let at = scope.words.binary_search(&word).ok()?;
        let (of, bit) = (1 + at / 64, 1 << (at % 64));
        let mut set = self.sets.get(set.0).to_vec();
        if set[of] & bit != 0 {
            return None;
        }
        set[of] |= bit;
        Some(WordSetId(self.sets.number(&set)))
    }

    /// Checks whether a word was seen.
    pub(crate) fn has(&self, scope: &WordScope, set: WordSetId, word: WordId) -> bool {
        let bits = self.bits(set);
        scope.words.binary_search(&word).is_ok_and(|at| bits[at / 64] >> (at % 64) & 1 == 1)
    }

    /// Checks whether a scope has seen everything that it requires.
    fn may_close(&self, scope: &WordScope, set: WordSetId) -> bool {
        let bits = self.bits(set);
        let has = |bit: u32| bits[bit as usize / 64] >> (bit % 64) & 1 == 1;
        bits.iter().zip(&scope.required).all(|(seen, required)| seen & required == *required)
            && scope.needs.iter().all(|&(one, other)| !has(one) || has(other))
    }

    /// Checks whether a word may come next, where words have an order: everything missing after it can still come after
    /// it.
    fn leads_on(&self, scope: &WordScope, set: WordSetId, word: WordId) -> bool {
        let Ok(at) = scope.words.binary_search(&word) else { return false };
        let (seen, stride) = (self.bits(set), scope.required.len());
        let has = |bits: &[u64], bit: usize| bits[bit / 64] >> (bit % 64) & 1 == 1;
        let later = &scope.later[at * stride..(at + 1) * stride];
        // The pairs are transitively closed: they include what a word needs through others.
        scope.needs.iter().all(|&(one, other)| {
            let (one, other) = (one as usize, other as usize);
            !(has(seen, one) || one == at) || has(seen, other) || other == at || has(later, other)
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let awaited = self.awaited.len() * size_of::<(Joint, Awaited)>();
        awaited + self.lists.heap_bytes() + self.sets.heap_bytes()
    }
}

/// The analysis of a scope that can keep a set of words.
struct Found {
    words: WordScope,
    awaited: Vec<(Joint, Awaited)>,
    /// The checks of its words.
    checks: Vec<NodeId>,
    /// Whether a leaf may be called that is a dead end for some sets: a word that is written in a leaf, or white space
    /// before some of the words. Leaves do not depend on what was seen, so the call has to be checked.
    looks_before_calls: bool,
}

/// Returns the transitive closure of some pairs.
fn closed(needs: &[(u32, u32)], count: usize) -> Box<[(u32, u32)]> {
    let next = Grouped::new(count, needs.iter().copied());
    let mut all = Vec::with_capacity(needs.len());
    for word in 0..count as u32 {
        let (mut seen, mut work) = (FxHashSet::default(), next.of(word).to_vec());
        while let Some(other) = work.pop() {
            if other != word && seen.insert(other) {
                all.push((word, other));
                work.extend_from_slice(next.of(other));
            }
        }
    }
    all.into()
}

/// Marks a joint that is not in `ScopeWords::nodes`.
const NOWHERE: u32 = u32::MAX;

/// The analysis of one scope's words.
struct ScopeWords<'n> {
    network: &'n Network,
    joints: &'n Joints,
    machines: &'n Machines<'n>,
    body: MachineId,
    words: Vec<WordId>,
    /// The words that are required, and those that others need.
    wanted: Vec<u64>,
    /// The joints of the scope's body and of the machines that it calls, with their machines.
    nodes: Vec<(Joint, MachineId)>,
    /// The index of each joint in `nodes`.
    places: &'n mut [u32],
    /// The words that may come first in each of these nodes, as bits.
    first: Vec<u64>,
    /// Whether the end of the machine may come first.
    ends: Vec<bool>,
    /// Whether another value may come first.
    others: Vec<bool>,
    /// See [`Self::follow`].
    followed: FxHashSet<MachineId>,
    /// The words that were seen before each of these nodes, if they were computed.
    seen: Option<Seen>,
    /// See [`Found::looks_before_calls`].
    looks_before_calls: bool,
}

/// The words that were seen before nodes, as bits.
struct Seen {
    stride: usize,
    /// On every path to a node.
    surely: Vec<u64>,
    /// On some path.
    perhaps: Vec<u64>,
    /// Whether a path to a node was found.
    reached: Vec<bool>,
}

impl Seen {
    fn new(nodes: usize, stride: usize) -> Self {
        let len = nodes * stride;
        Self { stride, surely: vec![u64::MAX; len], perhaps: vec![0; len], reached: vec![false; nodes] }
    }

    /// Returns the words seen before a node: surely, and perhaps.
    fn at(&self, at: usize) -> (Vec<u64>, Vec<u64>) {
        let range = at * self.stride..(at + 1) * self.stride;
        (self.surely[range.clone()].to_vec(), self.perhaps[range].to_vec())
    }

    /// Returns the words seen before one node and then before another.
    fn both(&self, one: usize, other: usize) -> (Vec<u64>, Vec<u64>) {
        let either = |bits: &[u64]| {
            let stride = self.stride;
            (0..stride).map(|word| bits[one * stride + word] | bits[other * stride + word]).collect()
        };
        (either(&self.surely), either(&self.perhaps))
    }

    /// Merges in another path to a node. Returns whether something changed.
    fn meet(&mut self, at: usize, (surely, perhaps): &(Vec<u64>, Vec<u64>)) -> bool {
        let mut changed = !core::mem::replace(&mut self.reached[at], true);
        for word in 0..self.stride {
            let (all, any) =
                (&mut self.surely[at * self.stride + word], &mut self.perhaps[at * self.stride + word]);
            changed |= *all & !surely[word] != 0 || perhaps[word] & !*any != 0;
            *all &= surely[word];
            *any |= perhaps[word];
        }
        changed
    }
}

impl<'n> ScopeWords<'n> {
    /// Analyzes a scope. Returns `None` if it cannot keep a set of its words: there are none or too many, or it is not
    /// proved that it can always continue. All `places` must be `NOWHERE`, and are so again at the end.
    fn find(
        machines: &'n Machines<'n>,
        leaves: &[Leaf],
        scope: &Scope,
        parts: &[MachineId],
        places: &'n mut [u32],
        lists: &Slices<WordId>,
    ) -> Option<Found> {
        let &Machines { network, joints, .. } = machines;
        let of_part = |part: &MachineId| {
            machines.nodes[part.index()].iter().map(|node| (*node, *part)).collect::<Vec<_>>()
        };
        let nodes: Vec<(Joint, MachineId)> = parts.iter().flat_map(of_part).collect();
        let is_check =
            |node: &NodeId| matches!(network.nodes[node.index()], Node::Call { callee: Callee::Check, .. });
        let all = nodes.iter().map(|(node, _)| joints.node(*node)).filter(is_check);
        let (checks, others): (Vec<NodeId>, Vec<NodeId>) =
            all.partition(|node| network.word_checks.contains_key(node));
        let mut words: Vec<WordId> = checks.iter().map(|check| network.word_checks[check]).collect();
        words.sort_unstable();
        words.dedup();
        let stride = words.len().div_ceil(64);
        if words.is_empty() || words.len() > MAX_SET_WORDS || nodes.len().saturating_mul(stride) > MAX_TABLE {
            return None;
        }
        // Other values must always have a new one, and must not be words.
        for other in &others {
            let leaf =
                network.endless_checks.get(other).filter(|_| network.lasting_checks.contains(other))?;
            let leaf = &leaves[leaf.index()];
            if words.iter().any(|word| leaf.may_be(&network.words[word.0 as usize])) {
                return None;
            }
        }
        let of_form: FxHashMap<&[u8], u32> =
            (0..).zip(&words).map(|(at, word)| (&*network.words[word.0 as usize], at)).collect();
        let bits = |names: &[Box<[u8]>]| {
            let mut bits = vec![0; stride];
            for name in names {
                let at = *of_form.get(&**name)?;
                bits[at as usize / 64] |= 1 << (at % 64);
            }
            Some(bits)
        };
        let (required, wanted) = (bits(&scope.required)?, bits(&scope.wanted)?);
        let pair = |(one, other): &Need| Some((*of_form.get(&**one)?, *of_form.get(&**other)?));
        let mut needs: Box<[(u32, u32)]> = scope.needs.iter().map(pair).collect::<Option<_>>()?;
        for (at, (node, _)) in nodes.iter().enumerate() {
            places[node.index()] = at as u32;
        }
        let mut scope = Self {
            network,
            joints,
            machines,
            body: scope.body,
            wanted,
            places,
            first: vec![0; nodes.len() * stride],
            ends: vec![false; nodes.len()],
            others: vec![false; nodes.len()],
            followed: FxHashSet::default(),
            seen: None,
            looks_before_calls: false,
            words,
            nodes,
        };
        while scope.look() {}
        scope.follow();
        let (mut awaited, mut later) = (None, Vec::new());
        if scope.can_go_on() || scope.can_always_go_on() {
            awaited = Some(scope.awaited(lists));
        } else if !needs.is_empty()
            && required.iter().all(|bits| *bits == 0)
            && let Some(order) = scope.order()
        {
            (awaited, later) = (Some(scope.awaited_in_order(lists)), order);
            needs = closed(&needs, scope.words.len());
        }
        for (node, _) in &scope.nodes {
            scope.places[node.index()] = NOWHERE;
        }
        let is_word_in_leaf = |(node, _): &(Joint, MachineId)| match joints.get(network, *node) {
            Node::Call { callee: Callee::Leaf(_), next } => network.word_checks.contains_key(&next),
            _ => false,
        };
        let looks_before_calls =
            scope.looks_before_calls || !later.is_empty() || scope.nodes.iter().any(is_word_in_leaf);
        let words = WordScope {
            words: scope.words.into(),
            required: required.into(),
            needs,
            later: later.into(),
            has_others: !others.is_empty(),
        };
        Some(Found { words, awaited: awaited?, checks, looks_before_calls })
    }

    fn stride(&self) -> usize {
        self.wanted.len()
    }

    /// Updates all nodes once, the last first. Returns whether something changed.
    fn look(&mut self) -> bool {
        let mut changed = false;
        for at in (0..self.nodes.len()).rev() {
            let joint = self.nodes[at].0;
            match self.joints.get(self.network, joint) {
                Node::Final => changed |= !core::mem::replace(&mut self.ends[at], true),
                Node::Call { callee: Callee::Check, .. } => {
                    match self.network.word_checks.get(&self.joints.node(joint)) {
                        Some(word) => {
                            let bit = self.words.binary_search(word).unwrap_or(0);
                            let bits = &mut self.first[at * self.wanted.len() + bit / 64];
                            changed |= *bits >> (bit % 64) & 1 == 0;
                            *bits |= 1 << (bit % 64);
                        }
                        None => changed |= !core::mem::replace(&mut self.others[at], true),
                    }
                }
                Node::Call { next, .. } => match self.machines.part_at(joint) {
                    None => changed |= self.include(at, next, true),
                    Some(part) => {
                        let starts = &self.network.machines[part.index()].start;
                        let mut ends = false;
                        for &start in starts {
                            changed |= self.include(at, start, false);
                            ends |= self.at(start).is_some_and(|start| self.ends[start]);
                        }
                        if ends {
                            changed |= self.include(at, next, true);
                        }
                    }
                },
                Node::Split { start, len } => {
                    for &next in self.network.targets(start, len) {
                        changed |= self.include(at, next, true);
                    }
                }
                Node::Byte { .. } => {}
            }
        }
        changed
    }

    fn at(&self, node: NodeId) -> Option<usize> {
        Some(self.places[self.joints.at(node).index()])
            .filter(|place| *place != NOWHERE)
            .map(|place| place as usize)
    }

    /// Adds what may come first in one node to another, with or without the end.
    fn include(&mut self, at: usize, other: NodeId, with_end: bool) -> bool {
        let Some(other) = self.at(other) else { return false };
        let mut changed = self.others[other] && !self.others[at];
        self.others[at] |= self.others[other];
        if with_end {
            changed |= self.ends[other] && !self.ends[at];
            self.ends[at] |= self.ends[other];
        }
        let stride = self.stride();
        for word in 0..stride {
            let more = self.first[other * stride + word];
            let bits = &mut self.first[at * stride + word];
            changed |= more & !*bits != 0;
            *bits |= more;
        }
        changed
    }

    /// Checks whether everything required was seen or may come first in a node, or in another round of the machine
    /// `again`.
    fn has_required(&self, node: NodeId, again: Option<MachineId>) -> bool {
        let again = again.map_or(&[][..], |part| &self.network.machines[part.index()].start);
        let places: Vec<usize> = again.iter().chain([&node]).filter_map(|node| self.at(*node)).collect();
        (0..self.stride()).all(|word| {
            let first = places.iter().fold(0, |all, at| all | self.first[at * self.stride() + word]);
            let seen = match &self.seen {
                Some(seen) => {
                    places.iter().fold(u64::MAX, |all, at| all & seen.surely[at * self.stride() + word])
                }
                None => 0,
            };
            (first | seen) & self.wanted[word] == self.wanted[word]
        })
    }

    /// Checks whether every word may come first in a node.
    fn has_all(&self, at: usize) -> bool {
        let bits = &self.first[at * self.stride()..(at + 1) * self.stride()];
        bits.iter().map(|bits| bits.count_ones() as usize).sum::<usize>() == self.words.len()
    }

    /// Checks whether the scope can continue after every value: its machine may end, and if something required is
    /// missing, it may come first.
    fn can_go_on(&self) -> bool {
        self.all_go_on(|next, machine| self.may_end_at(next, machine), || false)
    }

    /// Checks whether the scope can continue after every value even where its machine may not end: values that are
    /// certainly new lead to a place where it may.
    fn can_always_go_on(&mut self) -> bool {
        self.seen = Some(self.find_seen());
        self.follow();
        let good = self.find_good();
        let is_good = |next, _| self.at(next).is_some_and(|next| good[next]);
        let agree = OnceCell::new();
        let goes_on = self.all_go_on(is_good, || *agree.get_or_init(|| self.calls_agree()));
        self.looks_before_calls = agree.get().is_some();
        goes_on
    }

    /// Checks whether the scope can continue after every value, given which places after checks are good. `agree`
    /// checks whether calls do not distinguish what follows.
    fn all_go_on(&self, is_good: impl Fn(NodeId, MachineId) -> bool, agree: impl Fn() -> bool) -> bool {
        (0..self.nodes.len()).all(|at| {
            let (joint, machine) = self.nodes[at];
            let Node::Call { callee, next } = self.joints.get(self.network, joint) else { return true };
            let is_part = self.machines.part_at(joint).is_some();
            if callee != Callee::Check && !is_part {
                // Inside a called part, nothing checks whether its words were seen, so a call must not be what
                // distinguishes words. The exception is a leaf that spells one word: before it is called, the state
                // after it is checked.
                let is_word =
                    matches!(callee, Callee::Leaf(_)) && self.network.word_checks.contains_key(&next);
                return is_word || self.has_all(at) || !self.must_look(at) || agree();
            }
            let rounds = self.network.rounds(callee);
            let is_counted = rounds.min > 1 || self.requires() && !matches!(rounds.max, 1 | UNBOUNDED);
            let goes_on = if is_part {
                self.at(next).is_some_and(|next| self.ends[next])
            } else {
                is_good(next, machine)
            };
            goes_on && !is_counted && !matches!(callee, Callee::Limit(_))
        })
    }

    /// Checks whether a machine may end at a node, where either nothing is missing or what is missing may come.
    fn may_end_at(&self, node: NodeId, machine: MachineId) -> bool {
        self.at(node).is_some_and(|at| self.ends[at])
            && (!self.requires() || self.has_required(node, None) || self.is_followed(machine))
    }

    /// Finds the nodes from which the scope can continue, no matter what was seen before.
    fn find_good(&self) -> Vec<bool> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let mut good = vec![false; self.nodes.len()];
        loop {
            let mut changed = false;
            for at in (0..self.nodes.len()).rev() {
                let (joint, machine) = self.nodes[at];
                let node = self.joints.node(joint);
                let is_good = |node: &NodeId| self.at(*node).is_some_and(|at| good[at]);
                let leads_on = || match self.joints.get(self.network, joint) {
                    Node::Call { callee: Callee::Check, next } => {
                        let was_seen = |word| {
                            let bit = self.words.binary_search(word).unwrap_or(0);
                            seen.perhaps[at * self.stride() + bit / 64] >> (bit % 64) & 1 == 1
                        };
                        is_good(&next) && !self.network.word_checks.get(&node).is_some_and(was_seen)
                    }
                    Node::Call { next, .. } => match self.machines.part_at(joint) {
                        None => is_good(&next),
                        Some(part) => {
                            let starts = &self.network.machines[part.index()].start;
                            let ends = |start: &NodeId| self.at(*start).is_some_and(|at| self.ends[at]);
                            starts.iter().any(is_good) || starts.iter().any(ends) && is_good(&next)
                        }
                    },
                    Node::Split { start, len } => self.network.targets(start, len).iter().any(is_good),
                    Node::Byte { .. } | Node::Final => false,
                };
                if !good[at] && (self.may_end_at(node, machine) || leads_on()) {
                    good[at] = true;
                    changed = true;
                }
            }
            if !changed {
                return good;
            }
        }
    }

    /// Finds the words that were seen before each node.
    fn find_seen(&self) -> Seen {
        let (mut calls, mut ends) = (FxHashMap::default(), FxHashMap::default());
        for (at, &(joint, machine)) in self.nodes.iter().enumerate() {
            match (self.joints.get(self.network, joint), self.machines.part_at(joint)) {
                (Node::Call { callee, next }, Some(part)) => {
                    calls.entry(part).or_insert_with(Vec::new).push((at, callee, next));
                }
                (Node::Final, _) => ends.entry(machine).or_insert_with(Vec::new).push(at),
                _ => {}
            }
        }
        let start = |machine: MachineId| &self.network.machines[machine.index()].start;
        let mut seen = Seen::new(self.nodes.len(), self.stride());
        let mut work: Vec<usize> = Vec::new();
        let nothing = (vec![0; self.stride()], vec![0; self.stride()]);
        let meet = |seen: &mut Seen, work: &mut Vec<usize>, node: &NodeId, of: &_| {
            work.extend(self.at(*node).filter(|at| seen.meet(*at, of)));
        };
        start(self.body).iter().for_each(|node| meet(&mut seen, &mut work, node, &nothing));
        while let Some(at) = work.pop() {
            let (joint, machine) = self.nodes[at];
            let mut of = seen.at(at);
            match self.joints.get(self.network, joint) {
                Node::Call { callee, next } => {
                    if let Some(part) = self.machines.part_at(joint) {
                        if self.network.rounds(callee).min == 0 {
                            meet(&mut seen, &mut work, &next, &of);
                        }
                        start(part).iter().for_each(|node| meet(&mut seen, &mut work, node, &of));
                        for &end in ends.get(&part).into_iter().flatten() {
                            if seen.reached[end] {
                                let of = seen.both(at, end);
                                meet(&mut seen, &mut work, &next, &of);
                            }
                        }
                        continue;
                    }
                    if let Some(word) = self.network.word_checks.get(&self.joints.node(joint)) {
                        let bit = self.words.binary_search(word).unwrap_or(0);
                        of.0[bit / 64] |= 1 << (bit % 64);
                        of.1[bit / 64] |= 1 << (bit % 64);
                    }
                    meet(&mut seen, &mut work, &next, &of);
                }
                Node::Split { start, len } => {
                    let targets = self.network.targets(start, len);
                    for node in targets {
                        meet(&mut seen, &mut work, node, &of);
                    }
                }
                Node::Final => {
                    for &(call, callee, next) in calls.get(&machine).into_iter().flatten() {
                        if seen.reached[call] {
                            let of = seen.both(call, at);
                            meet(&mut seen, &mut work, &next, &of);
                        }
                        if self.network.rounds(callee).max > 1 {
                            start(machine).iter().for_each(|node| meet(&mut seen, &mut work, node, &of));
                        }
                    }
                }
                Node::Byte { .. } => {}
            }
        }
        seen
    }

    /// Finds the machines after whose calls everything required may come first.
    fn follow(&mut self) {
        self.followed =
            self.nodes.iter().map(|(_, machine)| *machine).filter(|part| *part != self.body).collect();
        loop {
            let is_bad = |&(joint, machine): &(Joint, MachineId)| {
                let part = self.machines.part_at(joint)?;
                let Node::Call { callee, next } = self.joints.get(self.network, joint) else { return None };
                let again = Some(part).filter(|_| self.network.rounds(callee).max == UNBOUNDED);
                let is_good = self.has_required(next, again) || self.is_followed(machine);
                (!is_good && self.is_followed(part)).then_some(part)
            };
            let bad: Vec<MachineId> = self.nodes.iter().filter_map(is_bad).collect();
            if bad.is_empty() {
                return;
            }
            self.followed.retain(|part| !bad.contains(part));
        }
    }

    fn is_followed(&self, machine: MachineId) -> bool {
        self.followed.contains(&machine)
    }

    fn requires(&self) -> bool {
        self.wanted.iter().any(|bits| *bits != 0)
    }

    /// Checks whether a node is a dead end for some sets of words. If something required is missing, ending is no way
    /// out, unless it may come first here or after the call of the machine.
    fn must_look(&self, at: usize) -> bool {
        let (joint, machine) = self.nodes[at];
        let node = self.joints.node(joint);
        let may_end = self.ends[at];
        !self.others[at]
            && (!may_end || self.requires() && !self.is_followed(machine) && !self.has_required(node, None))
    }

    /// Returns the nodes that await words.
    fn awaited(&self, lists: &Slices<WordId>) -> Vec<(Joint, Awaited)> {
        let awaiting = (0..self.nodes.len()).filter(|at| self.must_look(*at));
        let mut words: Vec<WordId> = Vec::new();
        let await_words = |at: usize| {
            let bits = &self.first[at * self.stride()..(at + 1) * self.stride()];
            let has = |(bit, _): &(usize, &WordId)| bits[bit / 64] >> (bit % 64) & 1 == 1;
            words.clear();
            words.extend(self.words.iter().enumerate().filter(has).map(|(_, word)| *word));
            let list = WordListId(lists.number(&words));
            (self.nodes[at].0, Awaited { list, may_end: self.ends[at], is_last: false })
        };
        awaiting.map(await_words).collect()
    }

    /// If the words have an order, returns for each of them the words that may come after it: every later word may come
    /// next, and other values come after all words.
    fn order(&self) -> Option<Vec<u64>> {
        let stride = self.stride();
        let bits = |node: NodeId| self.at(node).map(|at| &self.first[at * stride..(at + 1) * stride]);
        let mut after: Vec<Option<Vec<u64>>> = vec![None; self.words.len()];
        for &(joint, _) in &self.nodes {
            let node = self.joints.node(joint);
            let Node::Call { callee, next } = self.network.nodes[node.index()] else { continue };
            let first = bits(next)?;
            match (callee, self.network.word_checks.get(&node)) {
                (Callee::Check, Some(word)) => {
                    let of = &mut after[self.words.binary_search(word).ok()?];
                    if *of.get_or_insert_with(|| first.to_vec()) != first {
                        return None;
                    }
                }
                // No word may follow another value, or a machine that writes words.
                _ if (callee == Callee::Check || self.machines.part_at(joint).is_some())
                    && (first.iter().any(|bits| *bits != 0) || matches!(callee, Callee::Limit(_))) =>
                {
                    return None;
                }
                _ => {}
            }
        }
        let after = after.into_iter().collect::<Option<Vec<Vec<u64>>>>()?;
        let count = |of: &[u64]| of.iter().map(|bits| bits.count_ones() as usize).sum::<usize>();
        let mut order: Vec<usize> = (0..self.words.len()).collect();
        order.sort_by_key(|at| count(&after[*at]));
        let mut later = vec![0; stride];
        for at in order {
            if after[at] != later {
                return None;
            }
            later[at / 64] |= 1 << (at % 64);
        }
        self.calls_agree().then(|| after.concat())
    }

    /// Checks whether every call leads to the same as everything else in its place. Inside a called part nothing checks
    /// words, except before leaves.
    fn calls_agree(&self) -> bool {
        let mut cells: FxHashSet<SmallVec<[NodeId; 8]>> = FxHashSet::default();
        let mut work: Vec<SmallVec<[NodeId; 8]>> = Vec::new();
        let mut parts: Vec<MachineId> = self.nodes.iter().map(|(_, machine)| *machine).collect();
        parts.dedup();
        let cell = |from: &[NodeId], work: &mut Vec<SmallVec<[NodeId; 8]>>| {
            let mut nodes = SmallVec::new();
            let returns = self.network.wide_closure(from, &mut nodes);
            work.push(nodes.clone());
            (nodes, returns)
        };
        let agree = |nodes: &[NodeId], returns: bool| {
            let Some(places) = nodes.iter().map(|node| self.at(*node)).collect::<Option<Vec<_>>>() else {
                return false;
            };
            let stride = self.stride();
            let of =
                |at: usize| (&self.first[at * stride..(at + 1) * stride], self.ends[at], self.others[at]);
            // Before a leaf is called, the state after it is checked, if there is one.
            let is_call = |at: &&usize| {
                let joint = self.nodes[**at].0;
                let Node::Call { callee, next } = self.joints.get(self.network, joint) else { return false };
                let is_last = || matches!(self.network.nodes[next.index()], Node::Final);
                match callee {
                    Callee::Check => false,
                    Callee::Leaf(_) => is_last(),
                    _ => self.machines.part_at(joint).is_none(),
                }
            };
            let Some(&call) = places.iter().find(is_call) else { return true };
            !returns && places.iter().all(|at| of(*at) == of(call))
        };
        let starts: Vec<Vec<NodeId>> =
            parts.iter().map(|part| self.network.machines[part.index()].start.to_vec()).collect();
        for start in &starts {
            let (nodes, returns) = cell(start, &mut work);
            if !agree(&nodes, returns) {
                return false;
            }
        }
        while let Some(nodes) = work.pop() {
            if !cells.insert(nodes.clone()) {
                continue;
            }
            if cells.len() > MAX_CELLS {
                return false;
            }
            let mut targets: Vec<Vec<NodeId>> = Vec::new();
            let mut callees: FxHashMap<(Callee, Option<WordId>), Vec<NodeId>> = FxHashMap::default();
            let mut ends: Vec<u16> = Vec::new();
            for node in &nodes {
                match self.network.nodes[node.index()] {
                    Node::Byte { low, high, .. } => ends.extend([u16::from(low), u16::from(high) + 1]),
                    Node::Call { callee, next } => {
                        let word = self.network.word_checks.get(node).copied();
                        callees.entry((callee, word)).or_default().push(next);
                    }
                    Node::Split { .. } | Node::Final => {}
                }
            }
            ends.sort_unstable();
            ends.dedup();
            for start in ends {
                let step = |node: &NodeId| match self.network.nodes[node.index()] {
                    Node::Byte { low, high, next } if (u16::from(low)..=u16::from(high)).contains(&start) => {
                        Some(next)
                    }
                    _ => None,
                };
                targets.push(nodes.iter().filter_map(step).collect());
            }
            targets.extend(callees.into_values());
            for target in targets.iter().filter(|target| !target.is_empty()) {
                let (nodes, returns) = cell(target, &mut work);
                if !agree(&nodes, returns) {
                    return false;
                }
            }
        }
        true
    }

    /// Returns what every node awaits, where the words have an order.
    fn awaited_in_order(&self, lists: &Slices<WordId>) -> Vec<(Joint, Awaited)> {
        let stride = self.stride();
        let await_words = |at: usize| {
            let bits = &self.first[at * stride..(at + 1) * stride];
            let has = |(bit, _): &(usize, &WordId)| bits[bit / 64] >> (bit % 64) & 1 == 1;
            let words: Vec<WordId> =
                self.words.iter().enumerate().filter(has).map(|(_, word)| *word).collect();
            let list = WordListId(lists.number(&words));
            (self.nodes[at].0, Awaited { list, may_end: self.ends[at], is_last: self.others[at] })
        };
        (0..self.nodes.len()).map(await_words).collect()
    }
}
