//! One walk inside a rule: from a position until a token ends, something is called, or the rule ends.

use maskwright_vocab::{Trie, TrieNode};

use super::leaves::Inside;
use super::{Around, Caller, EntryId, PlaceSet, Position, ShortestPaths, Work, position_at};
use crate::count::{UNBOUNDED, Window};
use crate::leaf::{Leaf, LeafState, TextNext};
use crate::library::BoundProgram;
use crate::program::network::{Callee, Node, NodeId};
use crate::program::{LeafId, Place};

/// The results of a walk, all at the cost at which it began.
#[derive(Default)]
struct Found {
    /// The nodes at which the rule ends.
    exits: Vec<TrieNode>,
    /// The positions at which a token ends.
    tokens: Vec<Position>,
    /// The callees, the positions after the calls, and the nodes of the calls.
    calls: Vec<(Callee, Position, TrieNode)>,
    /// The checks of values, and their nodes of the trie.
    checks: Vec<(NodeId, TrieNode)>,
    /// The nodes of the network whose bytes come next, if the next token begins here.
    bytes: Vec<NodeId>,
}

impl ShortestPaths {
    /// Walks from a position, at each of some nodes.
    pub(super) fn walk(&mut self, bound: &BoundProgram, entry: EntryId, work: Work) {
        let nodes = self.places.nodes(work.places);
        let mut found = Found::default();
        match work.position {
            Position::Leaf { .. } => self.walk_leaf(bound, work.position, &nodes, &mut found),
            Position::Text(leaf, state) => self.walk_text(bound, (leaf, state), &nodes, &mut found),
            _ => self.walk_network(bound, entry, work, &nodes, &mut found),
        }
        self.follow(bound, entry, work, found);
    }

    /// Turns the results of a walk into work and calls.
    fn follow(&mut self, bound: &BoundProgram, entry: EntryId, work: Work, found: Found) {
        let Work { cost, context, .. } = work;
        let program = bound.program();
        for places in self.split(found.exits) {
            self.add_work(entry, Work { position: Position::End, places, ..work });
        }
        for node in found.bytes {
            let (cost, position) = (cost.saturating_add(1), Position::Byte(node));
            self.add_work(entry, Work { cost, position, ..work });
        }
        for position in found.tokens {
            if self.entries[entry as usize].walked.insert((position, context), Trie::ROOT) {
                let scope = Around::Goes;
                let caller = Caller { entry, cost, after: Position::End, limit: u32::MAX, scope };
                self.call(program, (position, PlaceSet::BETWEEN, context), caller);
            }
        }
        let mut calls = found.calls;
        calls.sort_unstable();
        for group in calls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (callee, after, _) = group[0];
            for places in self.split(group.iter().map(|(_, _, node)| *node).collect()) {
                self.call_callee(program, callee, (entry, work), after, places);
            }
        }
        let mut checks = found.checks;
        checks.sort_unstable();
        for group in checks.chunk_by(|a, b| a.0 == b.0) {
            let check = group[0].0;
            let Node::Call { next, .. } = program.network().nodes[check.index()] else { continue };
            let Some((more, context)) = self.check(bound, check, context) else { continue };
            for places in self.split(group.iter().map(|(_, node)| *node).collect()) {
                // Another value may have to be written, so no token runs from this one into what follows.
                if more == 0 || places == PlaceSet::BETWEEN {
                    let position = position_at(program, next);
                    let cost = cost.saturating_add(more);
                    self.add_work(entry, Work { cost, position, places, context });
                }
            }
        }
    }

    /// Interns these nodes. The place between two tokens gets its own set.
    fn split(&mut self, mut nodes: Vec<TrieNode>) -> impl Iterator<Item = PlaceSet> + use<> {
        let between = nodes.contains(&Trie::ROOT).then_some(PlaceSet::BETWEEN);
        nodes.retain(|node| *node != Trie::ROOT);
        let begun = (!nodes.is_empty()).then(|| self.places.intern(nodes));
        between.into_iter().chain(begun)
    }

    /// Returns the cost of a new value at a check, and the context after it.
    fn check(
        &mut self,
        bound: &BoundProgram,
        check: NodeId,
        context: super::Context,
    ) -> Option<(u32, super::Context)> {
        if let Some(word) = bound.program().network().followed_word(check) {
            return self.contexts.after_word(context, word).map(|context| (0, context));
        }
        let more = if self.contexts.is_sure(context) { 0 } else { bound.new_values().of_check(check)? };
        Some((more, self.contexts.after_value(context)))
    }

    fn walk_network(
        &mut self,
        bound: &BoundProgram,
        entry: EntryId,
        work: Work,
        nodes: &[TrieNode],
        found: &mut Found,
    ) {
        let (program, trie) = (bound.program(), bound.vocabulary().trie());
        let network = program.network();
        let next_words = self.contexts.next_words(work.context);
        let walked = &mut self.entries[entry as usize].walked;
        let first = walked.insert_all((work.position, work.context), nodes);
        let mut todo: Vec<(Position, TrieNode)> =
            first.into_iter().map(|node| (work.position, node)).collect();
        let mut steps = super::places::steps(nodes.len());
        // The last `first` of them are the initial ones, which are known to be new.
        let mut first = todo.len();
        while let Some((position, node)) = todo.pop() {
            if todo.len() < first {
                first = todo.len();
            } else {
                steps += 1;
                if !walked.insert((position, work.context), node) {
                    continue;
                }
            }
            match position {
                Position::End => found.exits.push(node),
                Position::Machine(machine) => {
                    let starts = network.machines[machine.index()].start.iter();
                    todo.extend(starts.map(|start| (position_at(program, *start), node)));
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
                Position::Node(at) | Position::Byte(at)
                    if self.contexts.leads_to_other_words_only(at, next_words) => {}
                Position::Node(at) | Position::Byte(at) => match network.nodes[at.index()] {
                    Node::Final => todo.push((Position::End, node)),
                    Node::Split { start, len } => {
                        let targets = network.targets(start, len).iter();
                        todo.extend(targets.map(|to| (position_at(program, *to), node)));
                    }
                    Node::Call { callee: Callee::Check, .. } => found.checks.push((at, node)),
                    Node::Call { callee, next } => {
                        found.calls.push((callee, position_at(program, next), node));
                    }
                    // The next token costs one more, so this comes later.
                    Node::Byte { .. } if node == Trie::ROOT && position == Position::Node(at) => {
                        found.bytes.push(at);
                    }
                    Node::Byte { low, high, next } => {
                        let next = position_at(program, next);
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

    fn walk_leaf(&mut self, bound: &BoundProgram, position: Position, nodes: &[TrieNode], found: &mut Found) {
        let program = bound.program();
        let Position::Leaf { leaf, state, need, room } = position else { return };
        let Leaf::Window { automaton, .. } = program.leaf(leaf) else { return };
        for &node in nodes {
            if node != Trie::ROOT && need == 0 && automaton.is_accepting(state) {
                found.exits.push(node);
            }
            let moves = bound.leaf_moves(leaf, state, node);
            self.steps = self.steps.saturating_sub(moves.steps + moves.inside.len() as u64);
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
        bound: &BoundProgram,
        (leaf, state): (LeafId, LeafState),
        nodes: &[TrieNode],
        found: &mut Found,
    ) {
        let (program, trie) = (bound.program(), bound.vocabulary().trie());
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
                        let moves = bound.leaf_moves(plain, state, child);
                        self.steps = self.steps.saturating_sub(moves.steps);
                        found.tokens.extend(moves.inside.iter().map(|to| in_plain(to.state)));
                        found.exits.extend(moves.ends.iter().map(|end| end.0));
                    }
                }
            }
        }
    }
}
