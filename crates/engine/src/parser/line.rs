//! Where a walk stands and what it reads: the stacks below its threads, taken from the matcher's one by one.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::stack::{Arena, Frame, Mark, Resume, StackId, Stacks, Top};
use super::step::Buffers;
use super::thread::Thread;
use crate::library::{BoundProgram, LineNodeId};
use crate::program::Program;
use crate::program::network::LoopId;
use crate::program::words::Question;

/// Stacks for a walk: what lies below the thread, and whatever the walk itself pushes on top.
///
/// What lies below is taken from the matcher's stacks node by node, and only when a token reaches it. Nodes are numbered in the order in which
/// they are found, so equal surroundings have equal numbers, and what was looked at is all that the walk depends on.
#[derive(Debug, Default)]
pub(crate) struct Line {
    nodes: Vec<LineNode>,
    /// The numbers of the nodes by their stacks, from [`NUMBERED`] on.
    numbers: FxHashMap<StackId, LineNodeId>,
    /// The frames of all nodes that were looked at, each with the node below it.
    frames: Vec<(Frame, LineNodeId)>,
    /// The nodes that were looked at, in this order.
    looks: Vec<LineNodeId>,
    /// Where stacks have forked, the nodes are no line.
    forked: bool,
    pushed: Arena,
    /// What was pushed is not forgotten.
    keeps: bool,
    /// For each frame, if it is a loop, the least room that was left of it, and whether there was too little.
    rooms: Vec<(u32, bool)>,
    /// What was asked of the words of frames, by the places of the frames.
    asked: Vec<(u32, Question)>,
}

#[derive(Clone, Copy, Debug)]
struct LineNode {
    /// The matcher's stack.
    stack: StackId,
    /// Its frames in `Line::frames`; `NOT_LOOKED` while nobody has looked.
    start: u32,
    len: u32,
}

const NOT_LOOKED: u32 = u32::MAX;

/// Up to so many nodes, looking through them all beats hashing.
const NUMBERED: usize = 64;

impl Line {
    /// Starts a line on a stack of the matcher's.
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

    /// The stack that the thread at the top of the line has.
    pub(crate) const TOP: StackId = StackId::on_line(LineNodeId::TOP);

    /// How many nodes were looked at.
    pub(crate) fn looks(&self) -> usize {
        self.looks.len()
    }

    /// Which node was looked at, and what was seen: frames, with the nodes below them.
    pub(crate) fn look(&self, at: usize) -> (LineNodeId, &[(Frame, LineNodeId)]) {
        let node = self.looks[at];
        let LineNode { start, len, .. } = self.nodes[node.index()];
        (node, &self.frames[start as usize..(start + len) as usize])
    }

    /// Whether stacks have forked on the way.
    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    /// Whether equal stacks have equal numbers from now on, until the next line starts.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Looks at a node.
    pub(crate) fn look_at(&mut self, node: LineNodeId, arena: &Arena) -> &[(Frame, LineNodeId)] {
        if self.nodes[node.index()].start == NOT_LOOKED {
            let start = self.frames.len();
            match arena.top(self.nodes[node.index()].stack) {
                Top::Frame(frame, below) => self.add_frame(frame, below),
                Top::Union(members) => {
                    for &member in members {
                        // Unions are flat: their members are plain.
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

    /// The node of a stack, which may be new.
    fn number(&mut self, stack: StackId) -> LineNodeId {
        let few = self.nodes.len().min(NUMBERED);
        if let Some(known) = self.nodes[..few].iter().position(|node| node.stack == stack) {
            return LineNodeId::new(known);
        }
        let new = LineNodeId::new(self.nodes.len());
        if few == NUMBERED {
            let number = *self.numbers.entry(stack).or_insert(new);
            if number != new {
                return number;
            }
        }
        self.nodes.push(LineNode { stack, start: NOT_LOOKED, len: 0 });
        new
    }

    /// How much room a loop that was looked at must have for the walk to be the same with any more: as much as was used up. If there was too
    /// little, no other room is the same.
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

    /// What was asked of the words of a frame that was looked at.
    pub(crate) fn asked(&self, at: usize) -> impl Iterator<Item = Question> {
        let start = self.nodes[self.looks[at].index()].start;
        self.asked.iter().filter(move |(frame, _)| *frame == start).map(|(_, question)| *question)
    }

    /// Where a stack of a walk leads to.
    pub(crate) fn spot(&self, stack: StackId) -> Spot<'_> {
        if let Some(node) = stack.line_node() {
            return Spot::OnLine { level: node.index(), below: self.nodes[node.index()].stack };
        }
        Spot::Pushed(self.pushed.top(stack))
    }

    /// The frames above a node, if stacks have not forked: nodes are numbered from the top down then.
    pub(crate) fn frames_above(&self, level: usize) -> &[(Frame, LineNodeId)] {
        &self.frames[..level]
    }
}

/// What a stack of a walk is.
pub(crate) enum Spot<'l> {
    /// A node of the line, and the matcher's stack there.
    OnLine { level: usize, below: StackId },
    /// Pushed by the walk.
    Pushed(Top<'l>),
}

/// A line together with the stacks that it is taken from.
pub(crate) struct LineStacks<'a> {
    pub(crate) line: &'a mut Line,
    pub(crate) arena: &'a Arena,
}

impl LineStacks<'_> {
    pub(crate) fn mark(&self) -> Mark {
        self.line.pushed.mark()
    }

    /// Forgets what was pushed since, unless it is kept.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        if !self.line.keeps {
            self.line.pushed.truncate(mark);
        }
    }

    /// From now on, equal stacks have equal numbers, and are kept until the next line starts.
    pub(crate) fn keep(&mut self) {
        self.line.keeps = true;
        self.line.pushed.number_equally();
    }

    /// From now on, equal stacks have equal numbers.
    pub(crate) fn number_equally(&mut self) {
        self.line.pushed.number_equally();
    }

    /// A new byte begins.
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
        // A loop that the walk itself has begun there counts as well; it does no harm.
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

/// What a walk reads, and where it writes.
pub(crate) struct Walk<'w, 'a> {
    pub(crate) bound: &'w BoundProgram,
    pub(crate) stacks: &'w mut LineStacks<'a>,
    pub(crate) buffers: &'w mut Buffers,
    /// Every token that can be read is added here.
    pub(crate) found: &'w mut Vec<u32>,
    /// Whether parts of tries may be read from what is remembered of them.
    pub(crate) shortcuts: bool,
    /// Whether a long walk may go on with `Sets`.
    pub(crate) sets: bool,
    /// Is told of all tokens that are found, with the threads that they lead to. Only for walks without shortcuts.
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
