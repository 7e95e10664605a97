//! Reads a DFA over UTF-8 character by character: which state does each character lead to?
//!
//! ```text
//!   state: [a-c] → 4, [à-ý] → 7         0 →·  a → 4  d →·  à → 7  þ →·       (· is the dead state)
//! ```
//! A [`CharMap`] is an ascending list of ranges: each entry holds the first character of a range and its target, and
//! the range ends where the next begins. Bytes of one class are read once, and what follows a lead byte is computed
//! once for each state after it.

use std::rc::Rc;

use maskwright_automata::{Dfa, DfaState};
use rustc_hash::FxHashMap;

/// Maps with more ranges than this are given up.
const MAX_RANGES: usize = 20_000;

/// The first character of each range with the range's target, ascending. The first entry is at 0.
pub(super) type CharMap = Vec<(u32, DfaState)>;

/// The same map for the remaining bytes of a character.
type Tails = Rc<[(u32, DfaState)]>;

/// The lead bytes of characters of one length: the first such character, the number of bytes that follow, and the lead
/// bytes by class.
type Leads = (u32, u32, Vec<(u8, u8)>);

/// Reads a DFA by characters.
pub(super) struct Characters<'d> {
    dfa: &'d Dfa,
    ascii: Vec<(u8, u8)>,
    leads: [Leads; 3],
    /// The continuation bytes.
    following: Vec<(u8, u8)>,
    /// The maps of remaining bytes, by state and number of bytes to come.
    tails: FxHashMap<(DfaState, u32), Tails>,
}

impl<'d> Characters<'d> {
    pub(super) fn of(dfa: &'d Dfa) -> Self {
        Self {
            dfa,
            ascii: runs(dfa, 0x00, 0x7F),
            leads: [
                (0x80, 1, runs(dfa, 0xC2, 0xDF)),
                (0x800, 2, runs(dfa, 0xE0, 0xEF)),
                (0x1_0000, 3, runs(dfa, 0xF0, 0xF4)),
            ],
            following: runs(dfa, 0x80, 0xBF),
            tails: FxHashMap::default(),
        }
    }

    /// Computes where the characters lead from a state. Returns `None` if that takes too many ranges.
    pub(super) fn map(&mut self, state: DfaState, map: &mut CharMap) -> Option<()> {
        let dfa = self.dfa;
        map.clear();
        for &(byte, _) in &self.ascii {
            add(map, u32::from(byte), dfa.next(state, byte));
        }
        let leads = core::mem::take(&mut self.leads);
        for (least, left, bytes) in &leads {
            let base = |lead: u8| u32::from(lead & (0x3F >> left)) << (6 * left);
            for &(low, high) in bytes {
                let tails = self.tails(dfa.next(state, low), *left)?;
                if let [(_, target)] = *tails {
                    add(map, base(low).max(*least), target);
                    continue;
                }
                for base in (low..=high).map(base) {
                    for (index, &(at, target)) in tails.iter().enumerate() {
                        let end = tails.get(index + 1).map_or(1 << (6 * left), |next| next.0);
                        if base + end > *least {
                            add(map, (base + at).max(*least), target);
                        }
                    }
                }
            }
            if map.len() > MAX_RANGES {
                return None;
            }
        }
        self.leads = leads;
        Some(())
    }

    /// Returns where the remaining `left` bytes of a character lead.
    fn tails(&mut self, state: DfaState, left: u32) -> Option<Tails> {
        if let Some(found) = self.tails.get(&(state, left)) {
            return Some(found.clone());
        }
        let mut ranges = CharMap::new();
        if state == Dfa::DEAD {
            ranges.push((0, Dfa::DEAD));
        } else {
            for at in 0..self.following.len() {
                let (low, high) = self.following[at];
                let base = |byte: u8| u32::from(byte & 0x3F) << (6 * (left - 1));
                let next = self.dfa.next(state, low);
                if left == 1 {
                    add(&mut ranges, base(low), next);
                    continue;
                }
                let tails = self.tails(next, left - 1)?;
                // All bytes of the class have the same targets. If there is only one target, they form one range.
                let last = if tails.len() == 1 { low } else { high };
                for base in (low..=last).map(base) {
                    tails.iter().for_each(|&(at, target)| add(&mut ranges, base + at, target));
                }
                if ranges.len() > MAX_RANGES {
                    return None;
                }
            }
        }
        let ranges: Tails = ranges.into();
        self.tails.insert((state, left), ranges.clone());
        Some(ranges)
    }
}

/// Splits the bytes from `low` to `high` into runs of one class.
pub(super) fn runs(dfa: &Dfa, low: u8, high: u8) -> Vec<(u8, u8)> {
    let classes = dfa.classes();
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for byte in low..=high {
        match runs.last_mut() {
            Some((first, last)) if classes.class(*first) == classes.class(byte) => *last = byte,
            _ => runs.push((byte, byte)),
        }
    }
    runs
}

/// Begins a range, unless the previous one has the same target.
fn add(map: &mut CharMap, at: u32, target: DfaState) {
    if map.last().is_none_or(|last| last.1 != target) {
        map.push((at, target));
    }
}
