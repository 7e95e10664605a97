//! Walking a trie of tokens with a set of threads: which tokens can be read from here?
//!
//! This is the definition of a mask, made fast only by not looking where nothing can be: a node of the trie is visited if some
//! thread survived its byte, and of its children only those are tried whose byte some thread may take.
//!
//! One shortcut is taken: a thread that comes to the inside of a plain JSON string at a node with many children. What the tokens
//! below do inside the string is the same wherever the string stands, so it is worked out once for all grammars.
//!
//! The walk runs on a *line*: the frames below the thread, taken from the matcher's stacks one by one and only when a token
//! reaches them. How far the line was followed is what the result depends on ([`crate::bind::memo`]). Where the stacks fork there
//! is no line; then the walk runs on the stacks themselves, and its result is not remembered.

use std::sync::Arc;

use maskwright_automata::ByteSet;
use maskwright_vocab::Trie;

use super::stack::{Arena, Frame, Mark, Stacks, Top};
use super::step::{Buffers, NETWORK, Thread, leave, live, step_all, step_inside};
use crate::bind::BoundProgram;
use crate::leaf::{Leaf, Text, TextNext, json_string};
use crate::program::Program;

/// Stacks for a walk: a line of frames below, and whatever the walk itself pushes on top.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// The frames from the top down.
    frames: Vec<Frame>,
    /// The matcher's stack below the last of them.
    below: u32,
    /// How many of them were looked at.
    looked: usize,
    /// A union of stacks was reached: there is no line, and what the walk found is not all.
    pub(crate) forked: bool,
    pushed: Arena,
}

/// Stacks with this bit are places on the line; the rest of the number says how many frames are above.
const ON_LINE: u32 = 1 << 31;
/// Stacks with this bit are the matcher's.
const OF_MATCHER: u32 = 1 << 30;

impl Line {
    /// Starts a line with frames that are known to matter, and the stack below them.
    pub(crate) fn start(&mut self, frames: &[Frame], below: u32) {
        self.frames.clear();
        self.frames.extend_from_slice(frames);
        self.below = below;
        self.looked = 0;
        self.forked = false;
        self.pushed.clear();
    }

    /// The stack that the thread at the top of the line has.
    pub(crate) const TOP: u32 = ON_LINE;

    /// The frames that were looked at.
    pub(crate) fn looked(&self) -> &[Frame] {
        &self.frames[..self.looked]
    }

    /// A stack of the matcher's, for a walk that does not run on the line.
    pub(crate) fn of_matcher(stack: u32) -> u32 {
        stack | OF_MATCHER
    }
}

/// A line together with the stacks that it is taken from.
pub(crate) struct LineStacks<'a> {
    pub(crate) line: &'a mut Line,
    pub(crate) arena: &'a Arena,
}

impl LineStacks<'_> {
    fn pop_line(&mut self, stack: u32, out: &mut Vec<(Frame, u32)>) {
        let line = &mut *self.line;
        let at = (stack & !ON_LINE) as usize;
        if at == line.frames.len() {
            match self.arena.top(line.below) {
                Top::Frame(frame, below) => {
                    line.frames.push(frame);
                    line.below = below;
                }
                // Below the last frame there is nothing; a true union stops the walk.
                Top::Union(members) => {
                    line.forked |= !members.is_empty();
                    return;
                }
            }
        }
        line.looked = line.looked.max(at + 1);
        out.push((line.frames[at], stack + 1));
    }

    fn mark(&self) -> Mark {
        self.line.pushed.mark()
    }

    fn truncate(&mut self, mark: Mark) {
        self.line.pushed.truncate(mark);
    }
}

impl Stacks for LineStacks<'_> {
    #[inline]
    fn push(&mut self, frame: Frame, below: u32) -> u32 {
        self.line.pushed.push(frame, below)
    }

    #[inline]
    fn pop(&mut self, stack: u32, out: &mut Vec<(Frame, u32)>) {
        if stack & ON_LINE != 0 {
            return self.pop_line(stack, out);
        }
        if stack & OF_MATCHER != 0 {
            let from = out.len();
            self.arena.frames(stack & !OF_MATCHER, out);
            out[from..].iter_mut().for_each(|(_, below)| *below |= OF_MATCHER);
            return;
        }
        match self.line.pushed.top(stack) {
            Top::Frame(frame, below) => out.push((frame, below)),
            Top::Union(members) => {
                let members = members.to_vec();
                for member in members {
                    self.pop(member, out);
                }
            }
        }
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        // Equal sets of stacks must become equal unions, or they multiply: the matcher's unions are taken apart, too.
        let mut members = Vec::new();
        for stack in [a, b] {
            let from = members.len();
            if stack & ON_LINE == 0 && stack & OF_MATCHER != 0 {
                self.arena.flatten(stack & !OF_MATCHER, &mut members);
                members[from..].iter_mut().for_each(|member| *member |= OF_MATCHER);
            } else {
                self.line.pushed.flatten(stack, &mut members);
            }
        }
        self.line.pushed.union_of(members)
    }
}

/// The walk itself, with buffers that are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walker {
    /// The threads of all open nodes, one node after the other.
    threads: Vec<Thread>,
    levels: Vec<Level>,
    next: Vec<Thread>,
}

/// A node that is being worked through.
#[derive(Clone, Debug)]
struct Level {
    /// The children that are left.
    child: u32,
    end: u32,
    /// The bytes that are worth trying.
    live: ByteSet,
    /// Its threads, in `Walker::threads`.
    start: u32,
    mark: Mark,
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
}

/// A thread that came to a node and has the tokens below it read another way.
#[derive(Clone, Copy, Debug)]
struct Shortcut {
    thread: Thread,
    node: u32,
}

/// The children of a node with no more than this are simply tried.
const FEW_CHILDREN: usize = 2;

/// A node with this many children is worth a shortcut.
const MANY_CHILDREN: usize = 8;

impl Walker {
    /// Finds every token of the trie that can be read from the threads.
    pub(crate) fn walk(&mut self, walk: &mut Walk<'_, '_>, trie: &Trie, number: u32, threads: &[Thread]) {
        self.threads.clear();
        self.threads.extend_from_slice(threads);
        self.walk_below(walk, trie, number, 0);
    }

    /// The same for the tokens at and below a node, for a thread that has taken the bytes up to it.
    pub(crate) fn walk_from(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        number: u32,
        node: u32,
        thread: Thread,
    ) {
        walk.found.extend_from_slice(trie.tokens(node));
        if !trie.children(node).is_empty() {
            self.threads.clear();
            self.threads.push(thread);
            self.walk_below(walk, trie, number, node);
        }
    }

    fn walk_below(&mut self, walk: &mut Walk<'_, '_>, trie: &Trie, number: u32, node: u32) {
        self.levels.clear();
        let mut shortcuts = Vec::new();
        self.open(walk, trie, node, 0, &mut shortcuts);
        while let Some(level) = self.levels.last_mut() {
            while level.child < level.end && !level.live.contains(trie.byte(level.child)) {
                level.child += 1;
            }
            if level.child == level.end {
                self.threads.truncate(level.start as usize);
                if shortcuts.is_empty() {
                    walk.stacks.truncate(level.mark);
                }
                self.levels.pop();
                continue;
            }
            let (child, start) = (level.child, level.start as usize);
            level.child += 1;
            self.visit(walk, trie, child, start, &mut shortcuts);
        }
        for shortcut in shortcuts {
            self.take(walk, trie, number, shortcut);
        }
    }

    /// Steps the threads from `start` on by a child's byte, and opens the child if any survive.
    fn visit(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        child: u32,
        start: usize,
        shortcuts: &mut Vec<Shortcut>,
    ) {
        let byte = trie.byte(child);
        let program = walk.bound.program();
        self.next.clear();
        if let [thread] = self.threads[start..]
            && let Some(thread) = step_inside(program, thread, byte)
        {
            self.next.push(thread);
        } else {
            walk.stacks.line.pushed.next_byte();
            step_all(program, walk.stacks, walk.buffers, &self.threads[start..], byte, &mut self.next);
        }
        if self.next.is_empty() {
            return;
        }
        walk.found.extend_from_slice(trie.tokens(child));
        if !trie.children(child).is_empty() {
            let start = self.threads.len();
            self.threads.append(&mut self.next);
            self.open(walk, trie, child, start, shortcuts);
        }
    }

    /// Opens a node: works out which of its children are worth trying.
    fn open(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        node: u32,
        start: usize,
        shortcuts: &mut Vec<Shortcut>,
    ) {
        let children = trie.children(node);
        if walk.shortcuts && children.len() >= MANY_CHILDREN {
            let mut at = start;
            while at < self.threads.len() {
                if is_in_string(walk.bound.program(), &self.threads[at]) {
                    shortcuts.push(Shortcut { thread: self.threads.swap_remove(at), node });
                } else {
                    at += 1;
                }
            }
            if self.threads.len() == start {
                return;
            }
        }
        let mark = walk.stacks.mark();
        // With so few children it is cheaper to try them than to ask which are worth trying.
        let live = if children.len() <= FEW_CHILDREN {
            ByteSet::ALL
        } else {
            live(walk.bound.program(), walk.stacks, walk.buffers, &self.threads[start..])
        };
        self.levels.push(Level { child: children.start, end: children.end, live, start: start as u32, mark });
    }

    /// Reads the tokens below a node from what is remembered of the leaf and the trie.
    fn take(&mut self, walk: &mut Walk<'_, '_>, trie: &Trie, number: u32, shortcut: Shortcut) {
        let Shortcut { thread, node } = shortcut;
        let bound = walk.bound;
        let program = bound.program();
        let text = match program.leaf(thread.leaf) {
            Leaf::Text(text) => Some(text),
            Leaf::Window { .. } => None,
        };
        let state = text.map_or(thread.state, |text| text.spelling(thread.state));
        let entry = bound.entry_below(thread.leaf, state, trie, number, node);
        walk.found.extend_from_slice(entry.inner(u32::MAX));
        let before = walk.found.len();
        walk.found.extend(entry.closing(0, u32::MAX));
        if entry.has_exits() {
            let mut behind = Vec::new();
            walk.buffers.begin();
            leave(program, walk.stacks, walk.buffers, thread.stack, &mut behind);
            let follow = live(program, walk.stacks, walk.buffers, &behind);
            for byte in follow.iter() {
                for rests in entry.rests(byte, 0, u32::MAX, trie) {
                    self.walk(walk, &rests.trie, rests.number, &behind);
                }
            }
        }
        if let Some(text) = text {
            let less = completions(text, thread.state, trie, node);
            if !less.is_empty() {
                let mut at = 0;
                walk.found.retain(|token| {
                    at += 1;
                    at <= before || !less.contains(token)
                });
            }
        }
    }
}

/// Whether a thread stands in a plain string, or in one that must only not be one of some words: then the tokens that
/// stay inside are the same wherever the string stands.
fn is_in_string(program: &Program, thread: &Thread) -> bool {
    if thread.leaf == NETWORK {
        return false;
    }
    match program.leaf(thread.leaf) {
        Leaf::Window { automaton, min: 0, max: u32::MAX } => Arc::ptr_eq(automaton, json_string()),
        Leaf::Window { .. } => false,
        Leaf::Text(text) => text.is_except(),
    }
}

/// The tokens below a node on which a text would be one of the forbidden words: it never leaves the list of words before
/// it closes the string.
fn completions(text: &Text, state: u32, trie: &Trie, from: u32) -> Vec<u32> {
    let mut tokens = Vec::new();
    completion_nodes(text, state, trie, from, |node| {
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            tokens.extend_from_slice(trie.tokens(node));
            work.extend(trie.children(node));
        }
    });
    tokens
}

/// The nodes at which such a text closes the string.
pub(crate) fn completion_nodes(text: &Text, state: u32, trie: &Trie, from: u32, mut add: impl FnMut(u32)) {
    let mut work = vec![(from, state)];
    while let Some((node, state)) = work.pop() {
        for byte in text.on_list(state).iter() {
            let Some(child) = trie.child(node, byte) else { continue };
            match text.next(state, byte) {
                TextNext::Stay(next) => work.push((child, next)),
                TextNext::Plain(_) => {}
                // A quote that the plain string would take, but this one does not.
                TextNext::Dead if text.live(state).contains(byte) => add(child),
                TextNext::Dead => {}
            }
        }
    }
}
