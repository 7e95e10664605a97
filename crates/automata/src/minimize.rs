//! Turns a deterministic automaton into the minimal, trimmed, canonical automaton of its language.
//!
//! 1. *Trim*: removes the states from which nothing can be accepted, and their transitions.
//! 2. *Merge*: states with the same future become one. A few rounds of E. Moore's algorithm come first. They
//!    distinguish states by hashes of the targets of their transitions, which takes one pass over the table per round,
//!    and most automata need only a handful of rounds. Long chains need as many rounds as they are long; so when a
//!    round gains little, A. Valmari's algorithm takes over ("Fast brief practical DFA minimization", 2012). Two
//!    partitions refine each other: *blocks* of states, and *cords* of transitions with the same byte class into the
//!    same block. A block is split when a cord leaves only some of its states; a cord is split when only some of its
//!    transitions enter a block. The smaller part of each split is new and causes further work, which bounds the total
//!    by O(m log m) for m transitions. Missing transitions need no sink state.
//! 3. *Number*: breadth-first from the start, by ascending byte, after the dead state 0. Byte classes that no state
//!    distinguishes are merged. Both depend on the language alone.

use rustc_hash::FxHashMap;

use crate::determinize::NONE;
use crate::{Dfa, DfaState, Draft, Grouped};

/// Builds the minimal automaton of the draft's language.
pub fn minimize(draft: &Draft) -> Dfa {
    let live = live_states(draft);
    if !live.first().is_some_and(|&live| live) {
        return Dfa::never();
    }
    let blocks = equivalent_states(draft, &live);
    number(draft, &blocks)
}

/// Finds the states that can reach an accepting one.
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

/// Computes the number of the block of each state; [`NONE`] for dead states.
fn equivalent_states(draft: &Draft, live: &[bool]) -> Vec<u32> {
    let accepting = draft.accepting.iter().zip(live);
    let mut blocks: Vec<u32> =
        accepting.map(|(&accepting, &live)| if live { u32::from(accepting) } else { NONE }).collect();
    let mut count = 0;
    loop {
        let (finer, finer_count) = refine(draft, &blocks);
        let (done, slow) = (finer_count == count, finer_count <= count + count / 8);
        (blocks, count) = (finer, finer_count);
        if done && is_stable(draft, &blocks, count) {
            return blocks;
        }
        if slow {
            return refine_fully(draft, &blocks, count);
        }
    }
}

/// Splits blocks whose states lead into different blocks, and counts them. States with colliding hashes stay together,
/// so blocks are never too fine.
fn refine(draft: &Draft, blocks: &[u32]) -> (Vec<u32>, usize) {
    let width = draft.classes.len();
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut next_blocks = vec![NONE; blocks.len()];
    for (state, row) in draft.table.chunks_exact(width).enumerate().filter(|row| blocks[row.0] != NONE) {
        let mix = |hash: u64, block: u32| (hash.rotate_left(5) ^ u64::from(block)).wrapping_mul(MIX);
        let hash = row.iter().fold(mix(MIX, blocks[state]), |hash, &head| mix(hash, block_of(blocks, head)));
        let new = numbers.len() as u32;
        next_blocks[state] = *numbers.entry(hash).or_insert(new);
    }
    (next_blocks, numbers.len())
}

/// The golden ratio as an odd number: its bits have no pattern.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Checks whether all states of a block agree on acceptance and on the blocks that their transitions lead to.
fn is_stable(draft: &Draft, blocks: &[u32], count: usize) -> bool {
    let width = draft.classes.len();
    let row = |state: usize| draft.table[state * width..][..width].iter().map(|&head| block_of(blocks, head));
    let mut members = vec![NONE; count];
    blocks.iter().enumerate().filter(|state| *state.1 != NONE).all(|(state, &block)| {
        let member = &mut members[block as usize];
        if *member == NONE {
            *member = state as u32;
        }
        let member = *member as usize;
        member == state || draft.accepting[member] == draft.accepting[state] && row(member).eq(row(state))
    })
}

fn block_of(blocks: &[u32], head: u32) -> u32 {
    if head == NONE { NONE } else { blocks[head as usize] }
}

/// Refines blocks until they are stable.
fn refine_fully(draft: &Draft, blocks: &[u32], count: usize) -> Vec<u32> {
    // Live states get numbers without gaps.
    let mut dense = vec![NONE; draft.len()];
    let states: Vec<usize> = (0..draft.len()).filter(|&state| blocks[state] != NONE).collect();
    for (number, &state) in (0..).zip(&states) {
        dense[state] = number;
    }
    let width = draft.classes.len();
    let (mut tails, mut heads, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for &state in &states {
        for (class, &head) in (0..).zip(&draft.table[state * width..][..width]) {
            if block_of(blocks, head) != NONE {
                tails.push(dense[state]);
                heads.push(dense[head as usize]);
                classes.push(class);
            }
        }
    }
    let incoming =
        Grouped::new(states.len(), (0..).zip(&heads).map(|(transition, &head)| (head, transition)));
    let mut cords = Partition::new(classes, width);
    let mut blocks = Partition::new(states.iter().map(|&state| blocks[state]).collect(), count);

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

/// Numbers the blocks breadth-first from that of state 0 and builds the final automaton. Dead states have no block
/// ([`NONE`]).
pub(crate) fn number(draft: &Draft, blocks: &[u32]) -> Dfa {
    if blocks[0] == NONE {
        return Dfa::never();
    }
    let width = draft.classes.len();
    let count = blocks.iter().filter(|&&block| block != NONE).max().map_or(0, |&last| last as usize + 1);
    // Number 0 is the dead state. `order` contains a member of each block, in the order of their numbers.
    let mut numbers = vec![NONE; count];
    numbers[blocks[0] as usize] = 1;
    let mut order: Vec<usize> = vec![0];
    let mut rows = vec![Dfa::DEAD; width];
    let mut at = 0;
    while let Some(&state) = order.get(at) {
        for &head in &draft.table[state * width..][..width] {
            let block = if head == NONE { NONE } else { blocks[head as usize] };
            rows.push(if block == NONE {
                Dfa::DEAD
            } else {
                let number = &mut numbers[block as usize];
                if *number == NONE {
                    order.push(head as usize);
                    *number = order.len() as u32;
                }
                DfaState(*number)
            });
        }
        at += 1;
    }
    let accepting = core::iter::once(false).chain(order.iter().map(|&state| draft.accepting[state]));
    Dfa::freeze(&draft.classes, &rows, accepting.collect())
}

/// A partition of `0..n` that is refined by marking elements and splitting the parts that contain marked and unmarked
/// ones. The elements of a part are contiguous, with the marked ones first.
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
    /// Creates the partition in which each element has the given part. Parts may be empty.
    fn new(part_of: Vec<u32>, parts: usize) -> Self {
        let grouped = Grouped::new(parts, (0..).zip(&part_of).map(|(element, &part)| (part, element)));
        let mut location = vec![0; part_of.len()];
        for (at, &element) in (0..).zip(&grouped.values) {
            location[element as usize] = at;
        }
        let Grouped { firsts, values: elements } = grouped;
        let past = firsts[1..].to_vec();
        let first = firsts[..parts].to_vec();
        Self { elements, location, part_of, first, past, marked: vec![0; parts], touched: Vec::new() }
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

    /// Splits the touched parts; the smaller part of each gets a new number. Unmarks everything.
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
