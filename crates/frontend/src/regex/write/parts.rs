//! Parts of a regular expression, in an arena in which equal parts are stored once.
//!
//! The constructors simplify patterns that the two sources of parts often produce: grammars, in which an optional
//! member is written `x·rest | rest`, and automata, whose eliminated states leave `a·x* | b·x*`. Common prefixes and
//! suffixes are factored out, `x·x*` becomes `x+`, and one-character alternatives become one class. The length of the
//! text is known for each part.

use maskwright_grammar::CharSet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::syntax;

/// The id of a part. Equal parts have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PartId(u32);

impl PartId {
    pub(super) const NEVER: Self = Self(0);
    pub(super) const EMPTY: Self = Self(1);
}

/// A part of a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// Matches nothing; never an operand of another part.
    Never,
    Empty,
    /// One character of a nonempty set.
    Class(CharSet),
    /// At least two parts, none of them a `Seq`.
    Seq(Box<[PartId]>),
    /// At least two parts, none of them an `Alt` or `Empty`, at most one a `Class`.
    Alt(Box<[PartId]>),
    Repeat {
        body: PartId,
        min: u32,
        max: Option<u32>,
    },
}

pub(super) struct Parts {
    list: Vec<Part>,
    lengths: Vec<u64>,
    nullable: Vec<bool>,
    index: FxHashMap<Part, PartId>,
    /// The number of operands of all parts together.
    operands: usize,
    /// The results for lists of alternatives, because the same lists recur often.
    choices: FxHashMap<Box<[PartId]>, PartId>,
    /// The number of nested choices that are being simplified.
    depth: usize,
}

/// The depth to which nested choices are simplified.
const MAX_DEPTH: usize = 64;

impl Parts {
    pub(super) fn new() -> Self {
        let mut parts = Self {
            list: Vec::new(),
            lengths: Vec::new(),
            nullable: Vec::new(),
            index: FxHashMap::default(),
            operands: 0,
            choices: FxHashMap::default(),
            depth: 0,
        };
        parts.intern(Part::Never);
        parts.intern(Part::Empty);
        parts
    }

    pub(super) fn get(&self, id: PartId) -> &Part {
        &self.list[id.0 as usize]
    }

    /// Returns an upper bound on the number of bytes of the printed part, which is nearly exact.
    pub(super) fn length(&self, id: PartId) -> u64 {
        self.lengths[id.0 as usize]
    }

    /// Returns the number of operands of all parts together, which determines their cost.
    pub(super) fn operands(&self) -> usize {
        self.operands
    }

    fn is_nullable(&self, id: PartId) -> bool {
        self.nullable[id.0 as usize]
    }

    pub(super) fn text(&mut self, text: &str) -> PartId {
        let letters: Vec<PartId> = text.chars().map(|c| self.class(CharSet::from_ranges([(c, c)]))).collect();
        self.seq(letters)
    }

    pub(super) fn class(&mut self, set: CharSet) -> PartId {
        if set.is_empty() { PartId::NEVER } else { self.intern(Part::Class(set)) }
    }

    pub(super) fn seq(&mut self, list: impl IntoIterator<Item = PartId>) -> PartId {
        let mut flat: Vec<PartId> = Vec::new();
        for id in list {
            match self.get(id) {
                Part::Never => return PartId::NEVER,
                Part::Empty => {}
                Part::Seq(inner) => {
                    for id in inner.clone() {
                        self.push_joined(&mut flat, id);
                    }
                }
                _ => self.push_joined(&mut flat, id),
            }
        }
        match *flat {
            [] => PartId::EMPTY,
            [only] => only,
            _ => self.intern(Part::Seq(flat.into())),
        }
    }

    /// Appends to a sequence, and merges adjacent repetitions of one body.
    fn push_joined(&mut self, flat: &mut Vec<PartId>, id: PartId) {
        if let Some(&last) = flat.last()
            && (matches!(self.get(last), Part::Repeat { .. }) || matches!(self.get(id), Part::Repeat { .. }))
        {
            let ((a, low, high), (b, more_low, more_high)) = (self.times(last), self.times(id));
            if a == b
                && let Some(min) = low.checked_add(more_low)
            {
                let max = match (high, more_high) {
                    (Some(high), Some(more)) => high.checked_add(more).map(Some),
                    _ => Some(None),
                };
                if let Some(max) = max {
                    flat.pop();
                    flat.push(self.repeat(a, min, max));
                    return;
                }
            }
        }
        flat.push(id);
    }

    /// Returns a part as a repetition of a body.
    fn times(&self, id: PartId) -> (PartId, u32, Option<u32>) {
        match self.get(id) {
            Part::Repeat { body, min, max } => (*body, *min, *max),
            _ => (id, 1, Some(1)),
        }
    }

    pub(super) fn repeat(&mut self, body: PartId, min: u32, max: Option<u32>) -> PartId {
        if max.is_some_and(|max| max < min) {
            return PartId::NEVER;
        }
        match (self.get(body), min, max) {
            (_, _, Some(0)) | (Part::Empty, ..) | (Part::Never, 0, _) => return PartId::EMPTY,
            (Part::Never, ..) => return PartId::NEVER,
            (_, 1, Some(1)) => return body,
            (Part::Repeat { min: 0, max: None, .. }, ..) => return body,
            // (x?)*, (x+)*, (x+)?: one repetition of x.
            (&Part::Repeat { body: inner, min: 0 | 1, max: Some(1) }, 0, None)
            | (&Part::Repeat { body: inner, min: 1, max: None }, 0, None | Some(1)) => {
                return self.repeat(inner, 0, None);
            }
            _ => {}
        }
        // A nullable body needs no minimum count.
        let min = if self.is_nullable(body) { 0 } else { min };
        if (min, max) == (0, Some(1)) && self.is_nullable(body) {
            return body;
        }
        self.intern(Part::Repeat { body, min, max })
    }

    pub(super) fn alt(&mut self, list: impl IntoIterator<Item = PartId>) -> PartId {
        let mut list: Vec<PartId> = list.into_iter().filter(|id| *id != PartId::NEVER).collect();
        let mut seen = FxHashSet::default();
        list.retain(|id| seen.insert(*id));
        let key: Box<[PartId]> = list.clone().into();
        if let Some(&known) = self.choices.get(&key) {
            return known;
        }
        self.depth += 1;
        let choice = self.new_alt(list);
        self.depth -= 1;
        self.choices.insert(key, choice);
        choice
    }

    fn new_alt(&mut self, mut list: Vec<PartId>) -> PartId {
        if self.depth <= MAX_DEPTH {
            // Common suffixes come first, while a choice that ends several alternatives is still one part.
            self.share(&mut list, End::Back);
            self.share(&mut list, End::Front);
            if let Some(chain) = self.chain(&list) {
                return chain;
            }
        }
        let mut flat: Vec<PartId> = Vec::new();
        let (mut optional, mut set, mut set_at) = (false, CharSet::none(), None);
        for id in list {
            match self.get(id) {
                Part::Alt(inner) => {
                    for &id in inner {
                        Self::push_choice(&self.list, id, &mut flat, &mut set, &mut set_at);
                    }
                }
                &Part::Repeat { body, min: 0, max: Some(1) } => {
                    optional = true;
                    match self.get(body) {
                        Part::Alt(inner) => {
                            for &id in inner {
                                Self::push_choice(&self.list, id, &mut flat, &mut set, &mut set_at);
                            }
                        }
                        _ => Self::push_choice(&self.list, body, &mut flat, &mut set, &mut set_at),
                    }
                }
                Part::Empty => optional = true,
                _ => Self::push_choice(&self.list, id, &mut flat, &mut set, &mut set_at),
            }
        }
        if let Some(at) = set_at {
            flat[at] = self.class(set);
        }
        let mut seen = FxHashSet::default();
        flat.retain(|id| seen.insert(*id));
        let choice = match *flat {
            [] => PartId::NEVER,
            [only] => only,
            _ => self.intern(Part::Alt(flat.into())),
        };
        if optional { self.optional(choice) } else { choice }
    }

    /// Simplifies the members of an object: the text after a member is `R = ,K | }` where `K = p·R' | K'` and `R' = ,K'
    /// | }`. Written like this, each `K'` occurs twice, and the length doubles with every member. But `R` equals
    /// `(,p)?·R'`.
    fn chain(&mut self, list: &[PartId]) -> Option<PartId> {
        let &[start, end] = list else { return None };
        let Part::Seq(factors) = self.get(start) else { return None };
        let (&choice, comma) = factors.split_last()?;
        let comma = comma.to_vec();
        let Part::Alt(ways) = self.get(choice) else { return None };
        let (&first, others) = ways.split_first()?;
        let (others, member, closing) = (others.to_vec(), self.factors(first), self.factors(end));
        // Only a part with something optional before its end can end with R'. This check excludes most choices.
        let last = member.strip_suffix(&*closing)?.last()?;
        if !matches!(self.get(*last), Part::Repeat { min: 0, max: Some(1), .. }) {
            return None;
        }
        let others = self.alt(others);
        let rest = self.seq([&*comma, &[others]].concat());
        let rest = self.alt([rest, end]);
        let rest = self.factors(rest);
        let own = member.strip_suffix(&*rest)?;
        let own = self.seq([&*comma, own].concat());
        // The rest may be a choice of members that share the following text, and so a chain again.
        let own = self.alt([own, PartId::EMPTY]);
        Some(self.seq([&[own], &*rest].concat()))
    }

    fn optional(&mut self, id: PartId) -> PartId {
        match self.get(id) {
            Part::Never => PartId::EMPTY,
            _ if self.is_nullable(id) => id,
            &Part::Repeat { body, min: 1, max } => self.repeat(body, 0, max),
            _ => self.repeat(id, 0, Some(1)),
        }
    }

    /// Adds an alternative, and collects the classes among the alternatives into one.
    fn push_choice(
        parts: &[Part],
        id: PartId,
        flat: &mut Vec<PartId>,
        set: &mut CharSet,
        set_at: &mut Option<usize>,
    ) {
        if let Part::Class(class) = &parts[id.0 as usize] {
            *set = set.union(class);
            if set_at.is_none() {
                *set_at = Some(flat.len());
                flat.push(id);
            }
        } else {
            flat.push(id);
        }
    }

    /// Factors out common prefixes or suffixes of several alternatives: `x·a | y·a` becomes `(x|y)·a`.
    fn share(&mut self, list: &mut Vec<PartId>, end: End) {
        if list.len() < 2 {
            return;
        }
        let mut groups: Vec<(PartId, Vec<PartId>)> = Vec::new();
        let mut at: FxHashMap<PartId, usize> = FxHashMap::default();
        for &id in &*list {
            let key = self.outermost(id, end);
            let place = *at.entry(key).or_insert_with(|| {
                groups.push((key, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(id);
        }
        if groups.len() == list.len() {
            return;
        }
        list.clear();
        for (_, members) in groups {
            if let [only] = *members {
                list.push(only);
                continue;
            }
            let factors: Vec<Vec<PartId>> = members.iter().map(|id| self.factors(*id)).collect();
            let shared = common(&factors, end);
            // Factoring out a few letters saves little, and would hide the form of members that `chain` recognizes.
            let outside = match end {
                End::Front => &factors[0][..shared],
                End::Back => &factors[0][factors[0].len() - shared..],
            };
            let is_letter = |id: &PartId| matches!(self.get(*id), Part::Class(_));
            if outside.iter().all(is_letter) && factors.iter().all(|list| list.len() > shared) {
                list.extend(members);
                continue;
            }
            let rests: Vec<PartId> = factors
                .iter()
                .map(|list| match end {
                    End::Front => self.seq(list[shared..].to_vec()),
                    End::Back => self.seq(list[..list.len() - shared].to_vec()),
                })
                .collect();
            let rest = self.alt(rests);
            let whole = match end {
                End::Front => [&factors[0][..shared], &[rest]].concat(),
                End::Back => [&[rest], &factors[0][factors[0].len() - shared..]].concat(),
            };
            list.push(self.seq(whole));
        }
    }

    fn factors(&self, id: PartId) -> Vec<PartId> {
        match self.get(id) {
            Part::Seq(list) => list.to_vec(),
            Part::Empty => Vec::new(),
            _ => vec![id],
        }
    }

    fn outermost(&self, id: PartId, end: End) -> PartId {
        match (self.get(id), end) {
            (Part::Seq(list), End::Front) => list.first().copied().unwrap_or(id),
            (Part::Seq(list), End::Back) => list.last().copied().unwrap_or(id),
            _ => id,
        }
    }

    fn intern(&mut self, part: Part) -> PartId {
        if let Some(&found) = self.index.get(&part) {
            return found;
        }
        let id = PartId(self.list.len() as u32);
        self.lengths.push(self.length_of(&part));
        self.nullable.push(match &part {
            Part::Never | Part::Class(_) => false,
            Part::Empty => true,
            Part::Seq(list) => list.iter().all(|id| self.is_nullable(*id)),
            Part::Alt(list) => list.iter().any(|id| self.is_nullable(*id)),
            Part::Repeat { body, min, .. } => *min == 0 || self.is_nullable(*body),
        });
        if let Part::Seq(list) | Part::Alt(list) = &part {
            self.operands += list.len();
        }
        self.index.insert(part.clone(), id);
        self.list.push(part);
        id
    }

    fn length_of(&self, part: &Part) -> u64 {
        // Four bytes for the parentheses that may be needed.
        const GROUP: u64 = 4;
        match part {
            Part::Never | Part::Empty => GROUP,
            Part::Class(set) => syntax::class(set).len() as u64,
            Part::Seq(list) | Part::Alt(list) => {
                let sum = list.iter().map(|id| self.length(*id) + 1);
                sum.fold(GROUP, u64::saturating_add)
            }
            Part::Repeat { body, min, max } => {
                self.length(*body).saturating_add(syntax::times(*min, *max).len() as u64 + GROUP)
            }
        }
    }
}

/// The end at which alternatives are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// Returns the number of factors that all lists have in common at one end.
fn common(lists: &[Vec<PartId>], end: End) -> usize {
    let shortest = lists.iter().map(Vec::len).min().unwrap_or(0);
    let factor = |list: &[PartId], at: usize| match end {
        End::Front => list[at],
        End::Back => list[list.len() - 1 - at],
    };
    (0..shortest).take_while(|&at| lists.iter().all(|list| factor(list, at) == factor(&lists[0], at))).count()
}
