//! One walk inside a rule, from where a path comes to it: until a token ends, something is called, or the rule ends.

use core::cmp::Reverse;

use maskwright_vocab::{Trie, TrieNode};

use super::leaves::Inside;
use super::{Around, Caller, Ground, PlaceSet, Position, ShortestPaths, Work, behind};
use crate::count::{UNBOUNDED, Window};
use crate::leaf::{Leaf, LeafState, TextNext};
use crate::program::network::{Callee, Node, NodeId};
use crate::program::{LeafId, Place};

/// What a walk finds, all at the cost at which it began.
#[derive(Default)]
struct Found {
    /// The nodes at which the rule ends.
    exits: Vec<TrieNode>,
    /// Where a token ends.
    tokens: Vec<Position>,
    /// What is called, where it goes on, and at which node.
    calls: Vec<(Callee, Position, TrieNode)>,
    /// The checks of values, and at which node.
    checks: Vec<(NodeId, TrieNode)>,
}

impl ShortestPaths {
    /// Walks on from a position, at each of some nodes.
    pub(super) fn walk(&mut self, ground: Ground<'_>, work: Work) {
        let nodes = self.places.nodes(work.places);
        let mut found = Found::default();
        match work.position {
            Position::Leaf { .. } => self.walk_leaf(ground, work.position, &nodes, &mut found),
            Position::Text(leaf, state) => self.walk_text(ground, (leaf, state), &nodes, &mut found),
            _ => self.walk_network(ground, work, &nodes, &mut found),
        }
        self.follow(ground, work, found);
    }

    /// Hands on what a walk has found.
    fn follow(&mut self, ground: Ground<'_>, work: Work, mut found: Found) {
        let Work { cost, entry, context, .. } = work;
        let between = found.exits.contains(&Trie::ROOT);
        found.exits.retain(|node| *node != Trie::ROOT);
        let begun = (!found.exits.is_empty()).then(|| self.places.intern(found.exits));
        for places in between.then_some(PlaceSet::BETWEEN).into_iter().chain(begun) {
            self.work.push(Reverse(Work { position: Position::End, places, ..work }));
        }
        for position in found.tokens {
            if self.entries[entry as usize].walked.insert((position, Trie::ROOT, context)) {
                let scope = Around::Goes;
                let caller = Caller {
                    entry,
                    cost: cost.saturating_add(1),
                    behind: Position::End,
                    limit: u32::MAX,
                    scope,
                };
                self.call((position, PlaceSet::BETWEEN, context), caller);
            }
        }
        found.calls.sort_unstable();
        for group in found.calls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (callee, behind, _) = group[0];
            let places = self.places.intern(group.iter().map(|(_, _, node)| *node).collect());
            self.call_callee(ground.program, callee, work, behind, places);
        }
        found.checks.sort_unstable();
        for group in found.checks.chunk_by(|a, b| a.0 == b.0) {
            let check = group[0].0;
            let Node::Call { next, .. } = ground.program.network().nodes[check.index()] else { continue };
            let Some((more, context)) = self.check(ground.program, check, context) else { continue };
            let places = self.places.intern(group.iter().map(|(_, node)| *node).collect());
            let position = behind(ground.program, next);
            let cost = cost.saturating_add(more);
            self.work.push(Reverse(Work { cost, entry, position, places, context }));
        }
    }

    fn walk_network(&mut self, ground: Ground<'_>, work: Work, nodes: &[TrieNode], found: &mut Found) {
        let Ground { program, trie } = ground;
        let network = program.network();
        let walked = &mut self.entries[work.entry as usize].walked;
        let mut todo: Vec<(Position, TrieNode)> = nodes.iter().map(|node| (work.position, *node)).collect();
        let mut steps = 0;
        while let Some((position, node)) = todo.pop() {
            steps += 1;
            if !walked.insert((position, node, work.context)) {
                continue;
            }
            match position {
                Position::End => found.exits.push(node),
                Position::Machine(machine) => {
                    let starts = network.machines[machine as usize].start.iter();
                    todo.extend(starts.map(|start| (behind(program, *start), node)));
                }
                Position::State(state) => match program.place(state) {
                    Place::Done => found.exits.push(node),
                    Place::Node { .. } => {
                        todo.extend(state.node().map(|at| (Position::Node(at), node)));
                    }
                    Place::Cell(cell) => {
                        todo.extend(cell.nodes.iter().map(|at| (Position::Node(*at), node)));
                        if cell.returns {
                            todo.push((Position::End, node));
                        }
                    }
                },
                Position::Rounds { index, need, room } => {
                    if need == 0 {
                        todo.push((Position::End, node));
                    }
                    if room > 0 {
                        let room = if room == UNBOUNDED { UNBOUNDED } else { room - 1 };
                        let next = Position::Rounds { index, need: need.saturating_sub(1), room };
                        found.calls.push((Callee::Machine(program.counted(index).body), next, node));
                    }
                }
                Position::Node(at) => match network.nodes[at.index()] {
                    Node::Final => todo.push((Position::End, node)),
                    Node::Split { start, len } => {
                        let targets = network.targets(start, len).iter();
                        todo.extend(targets.map(|to| (behind(program, *to), node)));
                    }
                    Node::Call { callee: Callee::Check, .. } => found.checks.push((at, node)),
                    Node::Call { callee, next } => {
                        found.calls.push((callee, behind(program, next), node));
                    }
                    Node::Byte { low, high, next } => {
                        let next = behind(program, next);
                        let mut take = |child: TrieNode| {
                            if !trie.tokens(child).is_empty() {
                                found.tokens.push(next);
                            }
                            if !trie.children(child).is_empty() {
                                todo.push((next, child));
                            }
                        };
                        if low == high {
                            trie.child(node, low).into_iter().for_each(&mut take);
                        } else {
                            let children = trie.children(node);
                            steps += children.len() as u64;
                            let in_range = |child: &TrieNode| (low..=high).contains(&trie.byte(*child));
                            children.filter(in_range).for_each(&mut take);
                        }
                    }
                },
                Position::Leaf { .. } | Position::Text(..) => {}
            }
        }
        self.steps = self.steps.saturating_sub(steps);
    }

    fn walk_leaf(&mut self, ground: Ground<'_>, position: Position, nodes: &[TrieNode], found: &mut Found) {
        let Ground { program, trie } = ground;
        let Position::Leaf { leaf, state, need, room } = position else { return };
        let Leaf::Window { automaton, .. } = program.leaf(leaf) else { return };
        if need == 0 && automaton.is_accepting(state) {
            found.exits.extend_from_slice(nodes);
        }
        for &node in nodes {
            let (moves, steps) = self.leaves.moves((leaf, automaton), state, trie, node);
            let length = moves.inside.len() + moves.ends.len();
            self.steps = self.steps.saturating_sub(steps + length as u64 + 1);
            for &Inside { state, units, is_closed } in &moves.inside {
                let left = if room == UNBOUNDED { Some(UNBOUNDED) } else { room.checked_sub(units) };
                let is_enough = !is_closed || units >= need;
                if let Some(room) = left.filter(|room| is_enough && automaton.tail(state) <= *room) {
                    let window = Window { need: need.saturating_sub(units), room };
                    found.tokens.push(self.in_leaf(program, leaf, state, window));
                }
            }
            let in_window = |units: u32| need <= units && units <= room;
            found.exits.extend(moves.ends.iter().filter(|end| in_window(end.1)).map(|end| end.0));
        }
    }

    fn walk_text(
        &mut self,
        ground: Ground<'_>,
        (leaf, state): (LeafId, LeafState),
        nodes: &[TrieNode],
        found: &mut Found,
    ) {
        let Ground { program, trie } = ground;
        let Leaf::Text(text) = program.leaf(leaf) else { return };
        let plain = self.same[program.plain_string().index()];
        let Leaf::Window { automaton, .. } = program.leaf(plain) else { return };
        let in_plain = |state| Position::Leaf { leaf: plain, state, need: 0, room: UNBOUNDED };
        let mut todo: Vec<(LeafState, TrieNode)> = nodes.iter().map(|node| (state, *node)).collect();
        while let Some((state, node)) = todo.pop() {
            self.steps = self.steps.saturating_sub(trie.children(node).len() as u64 + 1);
            for child in trie.children(node) {
                let (has_token, goes_on) = (!trie.tokens(child).is_empty(), !trie.children(child).is_empty());
                match text.next(state, trie.byte(child)) {
                    TextNext::Dead => {}
                    TextNext::Stay(state) => {
                        found.tokens.extend(has_token.then_some(Position::Text(leaf, state)));
                        todo.extend(goes_on.then_some((state, child)));
                    }
                    TextNext::Plain(state) => {
                        found.tokens.extend(has_token.then(|| in_plain(state)));
                        if !goes_on {
                            continue;
                        }
                        found.exits.extend(automaton.is_accepting(state).then_some(child));
                        let (moves, steps) = self.leaves.moves((plain, automaton), state, trie, child);
                        self.steps = self.steps.saturating_sub(steps + moves.ends.len() as u64);
                        found.tokens.extend(moves.inside.iter().map(|to| in_plain(to.state)));
                        found.exits.extend(moves.ends.iter().map(|end| end.0));
                    }
                }
            }
        }
    }
}
