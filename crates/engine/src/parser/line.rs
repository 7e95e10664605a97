//! The stacks of a walk, and what a walk reads and writes.
//!
//! A *line* is the matcher's stack as far as a walk has visited it. The result of the walk depends on nothing else of
//! the stack.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::stack::{Arena, Frame, Mark, Resume, StackId, Stacks, Top};
use super::step::Buffers;
use super::thread::Thread;
use crate::library::{BoundProgram, LineNodeId};
use crate::program::Program;
use crate::program::network::LoopId;
use crate::program::words::Question;

/// The stacks of a walk: the nodes below the thread, and everything that the walk itself pushes on top.
///
/// The nodes below are taken from the matcher's stacks one by one, only when a token reaches them. They are numbered in
/// the order in which they are found, so equal surroundings get equal numbers, and the visited nodes are all that the
/// walk depends on.
#[derive(Debug, Default)]
pub(crate) struct Line {
    nodes: Vec<LineNode>,
    /// The numbers of the nodes by their stacks, from number [`MAX_LISTED_NODES`] on.
    numbers: FxHashMap<StackId, LineNodeId>,
    /// The frames of all visited nodes, each with the node below it.
    frames: Vec<(Frame, LineNodeId)>,
    /// The visited nodes, in this order.
    looks: Vec<LineNodeId>,
    /// Whether stacks have forked, so that the nodes form a graph rather than a line.
    forked: bool,
    pushed: Arena,
    /// Whether pushed stacks are kept until the next line starts.
    keeps: bool,
    /// For each frame that is a loop, the least room that was left, and whether there was too little.
    rooms: Vec<(u32, bool)>,
    /// The questions about the words of frames, by the index of the frame.
    asked: Vec<(u32, Question)>,
}

#[derive(Clone, Copy, Debug)]
struct LineNode {
    /// The stack of the matcher.
    stack: StackId,
    /// The index of its first frame in `Line::frames`, or `NOT_LOOKED` if the node was not visited.
    start: u32,
    len: u32,
}

const NOT_LOOKED: u32 = u32::MAX;

/// Up to this many nodes, searching all of them is faster than hashing.
const MAX_LISTED_NODES: usize = 64;

impl Line {
    /// Starts a line on a stack of the matcher.
    pub(crate) fn start(&mut self, stack: StackId, merging: bool) {
        self.nodes.clear();
        self.nodes.push(LineNode { stack, start: NOT_LOOKED, len: 0 });
        if !self.numbers.is_empty() {
            self.numbers.clear();
        }
        self.frames.clear();
        self.rooms.clear();
        self.asked.clear();
        self.looks.clear();
        self.forked = false;
        self.keeps = false;
        self.pushed.clear();
        self.pushed.set_merging(merging);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<LineNode>()
            + self.frames.capacity() * size_of::<(Frame, LineNodeId)>()
            + self.rooms.capacity() * size_of::<(u32, bool)>()
            + self.pushed.heap_bytes()
    }

    /// The stack of the thread at the top of the line.
    pub(crate) const TOP: StackId = StackId::on_line(LineNodeId::TOP);

    /// Returns the number of visited nodes.
    pub(crate) fn looks(&self) -> usize {
        self.looks.len()
    }

    /// Returns a visited node and its frames, each with the node below it.
    pub(crate) fn look(&self, at: usize) -> (LineNodeId, &[(Frame, LineNodeId)]) {
        let node = self.looks[at];
        let LineNode { start, len, .. } = self.nodes[node.index()];
        (node, &self.frames[start as usize..(start + len) as usize])
    }

    /// Checks whether visited stacks have forked.
    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    /// Checks whether stacks are kept and equal ones get equal ids, until the next line starts.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Visits a node and returns its frames.
    pub(crate) fn look_at(&mut self, node: LineNodeId, arena: &Arena) -> &[(Frame, LineNodeId)] {
        if self.nodes[node.index()].start == NOT_LOOKED {
            let start = self.frames.len();
            match arena.top(self.nodes[node.index()].stack) {
                Top::Frame(frame, below) => self.add_frame(frame, below),
                Top::Union(members) => {
                    for &member in members {
                        // Unions are flat: no member is a union.
                        let Top::Frame(frame, below) = arena.top(member) else { continue };
                        self.add_frame(frame, below);
                    }
                }
            }
            self.forked |= self.frames.len() > start + 1;
            self.looks.push(node);
            let looked = &mut self.nodes[node.index()];
            (looked.start, looked.len) = (start as u32, (self.frames.len() - start) as u32);
        }
        let LineNode { start, len, .. } = self.nodes[node.index()];
        &self.frames[start as usize..(start + len) as usize]
    }

    #[inline]
    fn add_frame(&mut self, frame: Frame, below: StackId) {
        let below = self.number(below);
        self.frames.push((frame, below));
    }

    /// Returns the node of a stack. Adds one if there is none.
    fn number(&mut self, stack: StackId) -> LineNodeId {
        let few = self.nodes.len().min(MAX_LISTED_NODES);
        if let Some(known) = self.nodes[..few].iter().position(|node| node.stack == stack) {
            return LineNodeId::new(known);
        }
        let new = LineNodeId::new(self.nodes.len());
        if few == MAX_LISTED_NODES {
            let number = *self.numbers.entry(stack).or_insert(new);
            if number != new {
                return number;
            }
        }
        self.nodes.push(LineNode { stack, start: NOT_LOOKED, len: 0 });
        new
    }

    /// Returns the room that a visited loop needs for the walk to be the same with any more room: the room that the
    /// walk has used up. If the room ran out, only exactly this room gives the same walk.
    pub(crate) fn room_needed(&self, program: &Program, at: usize) -> u32 {
        let (node, frames) = self.look(at);
        let [(frame, _)] = frames else { return u32::MAX };
        let Resume::Loop { index, rounds } = frame.resume() else { return 0 };
        let room = program.counts().room(rounds, program.counted(index).bounds());
        match self.rooms.get(self.nodes[node.index()].start as usize) {
            Some((_, true)) => room.saturating_add(1),
            Some((least, false)) => room.saturating_sub(*least),
            None => 0,
        }
    }

    /// Returns the questions about the words of a visited frame.
    pub(crate) fn asked(&self, at: usize) -> impl Iterator<Item = Question> {
        let start = self.nodes[self.looks[at].index()].start;
        self.asked.iter().filter(move |(frame, _)| *frame == start).map(|(_, question)| *question)
    }

    /// Returns what a stack of a walk refers to.
    pub(crate) fn spot(&self, stack: StackId) -> Spot<'_> {
        if let Some(node) = stack.line_node() {
            return Spot::OnLine { level: node.index(), below: self.nodes[node.index()].stack };
        }
        Spot::Pushed(self.pushed.top(stack))
    }

    /// Returns the frames above a node, if stacks have not forked. In that case nodes are numbered from the top down.
    pub(crate) fn frames_above(&self, level: usize) -> &[(Frame, LineNodeId)] {
        &self.frames[..level]
    }
}

/// What a stack of a walk refers to.
pub(crate) enum Spot<'l> {
    /// A node of the line, and the matcher's stack there.
    OnLine { level: usize, below: StackId },
    /// A stack that the walk has pushed.
    Pushed(Top<'l>),
}

/// A line, together with the matcher's stacks that it is taken from.
pub(crate) struct LineStacks<'a> {
    pub(crate) line: &'a mut Line,
    pub(crate) arena: &'a Arena,
}

impl LineStacks<'_> {
    pub(crate) fn mark(&self) -> Mark {
        self.line.pushed.mark()
    }

    /// Removes what was pushed since a mark, unless it is kept.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        if !self.line.keeps {
            self.line.pushed.truncate(mark);
        }
    }

    /// From now on gives equal stacks equal ids and keeps all stacks until the next line starts.
    pub(crate) fn keep(&mut self) {
        self.line.keeps = true;
        self.line.pushed.ensure_index();
    }

    /// From now on gives equal stacks equal ids.
    pub(crate) fn ensure_index(&mut self) {
        self.line.pushed.ensure_index();
    }

    /// Starts a new byte.
    pub(crate) fn next_byte(&mut self) {
        self.line.pushed.next_byte();
    }
}

impl Stacks for LineStacks<'_> {
    #[inline]
    fn push(&mut self, program: &Program, frame: Frame, below: StackId) -> StackId {
        self.line.pushed.push(program, frame, below)
    }

    #[inline]
    fn pop(&mut self, stack: StackId, out: &mut Vec<(Frame, StackId)>) {
        if let Some(node) = stack.line_node() {
            let frames = self.line.look_at(node, self.arena);
            out.extend(frames.iter().map(|&(frame, below)| (frame, StackId::on_line(below))));
            return;
        }
        match self.line.pushed.top(stack) {
            Top::Frame(frame, below) => out.push((frame, below)),
            Top::Union(members) => {
                let members: SmallVec<[StackId; 8]> = SmallVec::from_slice(members);
                for member in members {
                    self.pop(member, out);
                }
            }
        }
    }

    fn token(&self) -> u32 {
        self.arena.token
    }

    fn union_all(&mut self, program: &Program, stacks: &mut dyn Iterator<Item = StackId>) -> StackId {
        self.line.pushed.union_all(program, stacks)
    }

    fn covers(&self, program: &Program, outer: StackId, inner: StackId) -> bool {
        self.line.pushed.covers(program, outer, inner)
    }

    fn merges(&self) -> bool {
        self.line.pushed.merges()
    }

    #[inline]
    fn is_wide(&self, stack: StackId) -> bool {
        self.line.pushed.is_wide(stack)
    }

    fn effort(&mut self) -> u32 {
        self.line.pushed.effort()
    }

    fn asks(&mut self, words: Frame, below: StackId, question: Question) {
        let Some(below) = below.line_node() else { return };
        let line = &mut *self.line;
        let at = line.frames.iter().position(|frame| *frame == (words, below));
        if let Some(asked) = at.map(|at| (at as u32, question))
            && !line.asked.contains(&asked)
        {
            line.asked.push(asked);
        }
    }

    fn counts(&mut self, index: LoopId, below: StackId, room: Option<u32>) {
        let Some(below) = below.line_node() else { return };
        let line = &mut *self.line;
        // This also matches a loop that the walk itself has begun there, which does no harm.
        let is_it = |(frame, node): &(Frame, LineNodeId)| {
            *node == below && matches!(frame.resume(), Resume::Loop { index: other, .. } if other == index)
        };
        if let Some(at) = line.frames.iter().position(is_it) {
            line.rooms.resize(line.rooms.len().max(at + 1), (u32::MAX, false));
            let (least, too_little) = &mut line.rooms[at];
            match room {
                Some(room) => *least = (*least).min(room),
                None => *too_little = true,
            }
        }
    }
}

/// The inputs and outputs of a walk.
pub(crate) struct Walk<'w, 'a> {
    pub(crate) bound: &'w BoundProgram,
    pub(crate) stacks: &'w mut LineStacks<'a>,
    pub(crate) buffers: &'w mut Buffers,
    /// The list to which every token that can be read is added.
    pub(crate) found: &'w mut Vec<u32>,
    /// Whether parts of tries may be read from cached tables.
    pub(crate) shortcuts: bool,
    /// Whether a long walk may continue with `Sets`.
    pub(crate) sets: bool,
    /// A function that is called with all tokens found and the threads they lead to. Only for walks without shortcuts.
    pub(crate) visitor: Option<&'w mut Visitor<'w>>,
}

/// See [`Walk::visitor`].
pub(crate) type Visitor<'j> = dyn FnMut(&[u32], &[Thread], &Line) + 'j;

impl Walk<'_, '_> {
    #[inline]
    pub(crate) fn find(&mut self, tokens: &[u32], threads: &[Thread]) {
        self.found.extend_from_slice(tokens);
        if let Some(visit) = &mut self.visitor {
            visit(tokens, threads, self.stacks.line);
        }
    }
}
