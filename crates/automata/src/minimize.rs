//! From any deterministic automaton to the one minimal, trimmed, canonical automaton of its language.
//!
//! 1. *Trim*: states from which nothing can be accepted go, and with them their transitions.
//! 2. *Merge*: states with the same future become one, by partition refinement after A. Valmari ("Fast brief
//!    practical DFA minimization", 2012). Two partitions refine each other: *blocks* of states, and *cords* of
//!    transitions with the same byte class into the same block. A block is split when a cord leaves only
//!    some of its states; a cord is split when only some of its transitions enter a block. Of the two
//!    parts of a split the smaller one is new and causes further work, which bounds the whole by
//!    O(m log m) for m transitions. Missing transitions need no sink state.
//! 3. *Number*: breadth first from the start, by ascending byte, after the dead state 0. Byte classes that no state
//!    tells apart are merged. Both depend on the language alone.

use crate::determinize::NONE;
use crate::{Dfa, Draft};

/// The minimal automaton of the draft's language.
pub fn minimize(draft: &Draft) -> Dfa {
    let live = live_states(draft);
    if !live.first().is_some_and(|&live| live) {
        return Dfa::never();
    }
    let blocks = equivalent_states(draft, &live);
    number(draft, &blocks)
}

/// Which states can reach an accepting one.
fn live_states(draft: &Draft) -> Vec<bool> {
    let width = draft.classes.len();
    let edges = draft.table.iter().enumerate().filter(|edge| *edge.1 != NONE);
    let sources = Grouped::new(draft.len(), edges.map(|(at, &head)| (head, (at / width) as u32)));
    let mut live = draft.accepting.clone();
    let mut work: Vec<u32> = (0..draft.len() as u32).filter(|&state| live[state as usize]).collect();
    while let Some(state) = work.pop() {
        for &source in sources.of(state) {
            if !core::mem::replace(&mut live[source as usize], true) {
                work.push(source);
            }
        }
    }
    live
}

/// The number of the block of each state; [`NONE`] for dead states.
fn equivalent_states(draft: &Draft, live: &[bool]) -> Vec<u32> {
    // Live states get numbers without gaps.
    let mut dense = vec![NONE; draft.len()];
    let mut states = Vec::new();
    for (state, _) in live.iter().enumerate().filter(|state| *state.1) {
        dense[state] = states.len() as u32;
        states.push(state);
    }
    // The transitions between them, by class.
    let width = draft.classes.len();
    let (mut tails, mut heads, mut cords) = (Vec::new(), Vec::new(), Vec::new());
    for class in 0..width {
        let first = tails.len();
        for &state in &states {
            let head = draft.table[state * width + class];
            if head != NONE && live[head as usize] {
                tails.push(dense[state]);
                heads.push(dense[head as usize]);
            }
        }
        if tails.len() > first {
            cords.push(first);
        }
    }
    let incoming = Grouped::new(states.len(), (0..).zip(&heads).map(|(t, &head)| (head, t)));

    let mut blocks = Partition::new(states.len(), &[0]);
    for (state, _) in states.iter().enumerate().filter(|state| draft.accepting[*state.1]) {
        blocks.mark(state as u32);
    }
    blocks.split();
    let mut cords = Partition::new(tails.len(), &cords);
    let (mut next_block, mut next_cord) = (1, 0);
    while next_cord < cords.len() {
        for at in cords.range(next_cord) {
            blocks.mark(tails[cords.element(at) as usize]);
        }
        blocks.split();
        next_cord += 1;
        while next_block < blocks.len() {
            for at in blocks.range(next_block) {
                for &transition in incoming.of(blocks.element(at)) {
                    cords.mark(transition);
                }
            }
            cords.split();
            next_block += 1;
        }
    }
    dense.iter().map(|&state| if state == NONE { NONE } else { blocks.part_of(state) }).collect()
}

/// Numbers the blocks breadth first and writes the final automaton.
fn number(draft: &Draft, blocks: &[u32]) -> Dfa {
    let width = draft.classes.len();
    let count = blocks.iter().filter(|&&block| block != NONE).max().map_or(0, |&last| last as usize + 1);
    // Number 0 is the dead state; `order` holds a member of each block, in order of its number.
    let mut numbers = vec![NONE; count];
    numbers[blocks[0] as usize] = 1;
    let mut order: Vec<usize> = vec![0];
    let mut rows: Vec<u32> = vec![0; width];
    let mut at = 0;
    while let Some(&state) = order.get(at) {
        for &head in &draft.table[state * width..][..width] {
            let block = if head == NONE { NONE } else { blocks[head as usize] };
            rows.push(if block == NONE {
                0
            } else {
                let number = &mut numbers[block as usize];
                if *number == NONE {
                    order.push(head as usize);
                    *number = order.len() as u32;
                }
                *number
            });
        }
        at += 1;
    }
    let accepting = core::iter::once(false).chain(order.iter().map(|&state| draft.accepting[state]));
    Dfa::freeze(&draft.classes, &rows, accepting.collect())
}

/// Values grouped by a key, in one array.
struct Grouped {
    firsts: Vec<u32>,
    values: Vec<u32>,
}

impl Grouped {
    fn new(keys: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut firsts = vec![0; keys + 1];
        for (key, _) in pairs.clone() {
            firsts[key as usize + 1] += 1;
        }
        for key in 0..keys {
            firsts[key + 1] += firsts[key];
        }
        let mut values = vec![0; firsts[keys] as usize];
        let mut next = firsts.clone();
        for (key, value) in pairs {
            values[next[key as usize] as usize] = value;
            next[key as usize] += 1;
        }
        Self { firsts, values }
    }

    fn of(&self, key: u32) -> &[u32] {
        let key = key as usize;
        &self.values[self.firsts[key] as usize..self.firsts[key + 1] as usize]
    }
}

/// A partition of `0..n` that is refined by marking elements and splitting the parts that hold marked and
/// unmarked ones. The elements of a part are neighbours; its marked ones come first.
struct Partition {
    elements: Vec<u32>,
    location: Vec<u32>,
    part_of: Vec<u32>,
    first: Vec<u32>,
    past: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    /// The parts begin at the given elements, ascending, the first one at 0.
    fn new(count: usize, begins: &[usize]) -> Self {
        let mut part_of = vec![0; count];
        let ends = begins.iter().skip(1).copied().chain([count]);
        let (mut first, mut past) = (Vec::new(), Vec::new());
        if count > 0 {
            for (part, (&begin, end)) in begins.iter().zip(ends).enumerate() {
                part_of[begin..end].fill(part as u32);
                first.push(begin as u32);
                past.push(end as u32);
            }
        }
        let marked = vec![0; first.len()];
        let identity: Vec<u32> = (0..count as u32).collect();
        Self {
            elements: identity.clone(),
            location: identity,
            part_of,
            first,
            past,
            marked,
            touched: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.first.len()
    }

    fn range(&self, part: usize) -> core::ops::Range<usize> {
        self.first[part] as usize..self.past[part] as usize
    }

    fn element(&self, at: usize) -> u32 {
        self.elements[at]
    }

    fn part_of(&self, element: u32) -> u32 {
        self.part_of[element as usize]
    }

    fn mark(&mut self, element: u32) {
        let part = self.part_of[element as usize] as usize;
        let at = self.location[element as usize];
        let boundary = self.first[part] + self.marked[part];
        if at < boundary {
            return;
        }
        let other = self.elements[boundary as usize];
        self.elements.swap(at as usize, boundary as usize);
        self.location[other as usize] = at;
        self.location[element as usize] = boundary;
        if self.marked[part] == 0 {
            self.touched.push(part as u32);
        }
        self.marked[part] += 1;
    }

    /// Splits the touched parts; the smaller half of each gets a new number. Unmarks everything.
    fn split(&mut self) {
        while let Some(part) = self.touched.pop() {
            let part = part as usize;
            let (first, end) = (self.first[part], self.past[part]);
            let middle = first + core::mem::take(&mut self.marked[part]);
            if middle == end {
                continue;
            }
            let new = self.first.len() as u32;
            let (from, to) = if middle - first <= end - middle {
                self.first[part] = middle;
                (first, middle)
            } else {
                self.past[part] = middle;
                (middle, end)
            };
            self.first.push(from);
            self.past.push(to);
            self.marked.push(0);
            for at in from..to {
                self.part_of[self.elements[at as usize] as usize] = new;
            }
        }
    }
}
