//! Tokens that stay inside a loop, and what is left of those that do not.
//!
//! Inside a JSON string, inside `[a-z]*`, inside free text, an automaton stands still: it reads a
//! character of a class C and is in the same state again. Nearly all tokens keep it there. Every
//! token either lies wholly in C\*, or has a first character outside; so the mask of such a state is
//!
//! ```text
//! mask = run(C)  ∪  { t : the rest of t, from its first character outside C, can go on }
//! ```
//!
//! `run` and the trie of the distinct rests depend on the vocabulary and on C alone. They are built
//! once, in one pass over the token trie, and every constraint shares them. For C = the body of a JSON
//! string and the Llama-3.1 vocabulary, `run` has 122,893 of 128,000 tokens and the trie of rests has 5,489
//! nodes (914 of them behind the closing quote), where the token trie has 274,521.
//!
//! ```
//! use maskwright_vocab::{LoopClass, TokenId, Trie, VocabularyBuilder};
//! let mut builder = VocabularyBuilder::new();
//! for (id, text) in ["ab", "a!", "b!?", "!", "é"].iter().enumerate() {
//!     builder.token(TokenId(id as u32), text.as_bytes())?;
//! }
//! let vocabulary = builder.finish()?;
//! let letters = vocabulary.loops().get(LoopClass::of(|byte| byte.is_ascii_alphabetic(), true));
//! assert_eq!(letters.run().iter().collect::<Vec<_>>(), [TokenId(0), TokenId(4)]);
//! // `a!` and `b!?` leave the loop at `!`; so does `!`, at once.
//! let ends: Vec<_> = letters.exits(vocabulary.trie()).map(|(trie, node)| trie.byte(node)).collect();
//! assert!(ends.iter().all(|&byte| byte == b'!'));
//! # Ok::<(), maskwright_vocab::VocabularyError>(())
//! ```
//!
//! # Characters of several bytes
//!
//! A class holds ASCII bytes one by one, and all other characters or none of them. A token that ends
//! in the middle of a character that can still be completed belongs to the run. A token that breaks a
//! character (its bytes are no beginning of well-formed UTF-8) leaves the loop where that
//! character began, and its rest starts with the lead byte.
//!
//! # Where the rests are
//!
//! For a small class such as the digits nearly all tokens leave the loop with their very first byte,
//! and their "rest" is the whole token. Copying these would double the vocabulary for every class, so when they
//! are more than an eighth of all tokens they are left in the token trie, and the loop only
//! remembers their first bytes. [`Loop::exits`] lists both kinds of places alike.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    TokenId,
    mask::TokenMask,
    merge::{SAME_BYTES, merge},
    trie::Trie,
    utf8::{self, Inside, Next},
};

/// A set of characters: some ASCII bytes and, if `utf8`, all well-formed characters beyond ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopClass {
    /// Bit b is ASCII byte b.
    pub ascii: u128,
    /// Are all characters beyond ASCII in the class?
    pub utf8: bool,
}

impl LoopClass {
    /// The body of a JSON string without escapes: no quote, no backslash, no control character.
    pub const JSON_STRING: Self = Self { ascii: !0 << 0x20 & !(1 << b'"') & !(1 << b'\\'), utf8: true };

    /// The class of the ASCII bytes for which `ascii` holds.
    pub fn of(ascii: impl Fn(u8) -> bool, utf8: bool) -> Self {
        let bits = (0..128).filter(|&byte| ascii(byte)).fold(0, |bits, byte| bits | 1_u128 << byte);
        Self { ascii: bits, utf8 }
    }

    /// Is the ASCII byte in the class? Bytes beyond ASCII are not.
    #[inline]
    pub fn contains_ascii(self, byte: u8) -> bool {
        byte < 128 && self.ascii >> byte & 1 == 1
    }
}

/// What a vocabulary has to say about one class; see the [module](self).
#[derive(Debug)]
pub struct Loop {
    class: LoopClass,
    run: TokenMask,
    run_len: usize,
    rest: Trie,
    /// First bytes of the tokens that are to be looked up in the token trie instead of in `rest`.
    outside: [u128; 2],
    chars: Arc<[u16]>,
    by_chars: OnceLock<ByChars>,
}

impl Loop {
    /// Builds the loop of a class in one pass over the token trie.
    fn build(class: LoopClass, trie: &Trie, chars: Arc<[u16]>, shape: &Shape) -> Self {
        let pass = Pass::new(class, trie, shape);
        let (at_once, mut exits) = pass.exits();
        let count: usize =
            at_once.iter().map(|&node| shape.first_bytes[usize::from(trie.byte(node))] as usize).sum();
        let mut outside = [0; 2];
        if count <= trie.all_tokens().len() / 8 {
            exits.extend(at_once);
        } else {
            for byte in at_once.into_iter().map(|node| trie.byte(node)) {
                outside[usize::from(byte / 128)] |= 1_u128 << (byte % 128);
            }
        }
        let rest = merge(trie, &exits, &Trie::build(pass.broken()), &SAME_BYTES);
        Self::from_parts(class, pass.run(), rest, outside, chars)
    }

    /// The class.
    pub fn class(&self) -> LoopClass {
        self.class
    }

    /// The tokens that lie wholly in the loop, or end inside a character that may still be completed.
    #[inline]
    pub fn run(&self) -> &TokenMask {
        &self.run
    }

    /// Number of tokens in [`run`](Self::run).
    pub fn run_len(&self) -> usize {
        self.run_len
    }

    /// The rests of tokens that leave the loop – of all others, unless some first bytes are
    /// [outside](Self::is_outside). Usually [`exits`](Self::exits) is what to walk.
    #[inline]
    pub fn rest(&self) -> &Trie {
        &self.rest
    }

    /// Do the tokens that begin with `byte` have to be looked up in the token trie?
    #[inline]
    pub fn is_outside(&self, byte: u8) -> bool {
        self.outside[usize::from(byte / 128)] >> (byte % 128) & 1 == 1
    }

    /// Every place where a token leaves the loop: a trie and a node on its first level, whose edge
    /// byte is the first that the loop does not take. `trie` is the vocabulary's.
    ///
    /// The mask is [`run`](Self::run) together with the tokens found by going on from these.
    pub fn exits<'a>(&'a self, trie: &'a Trie) -> impl Iterator<Item = (&'a Trie, u32)> {
        let own = self.rest.children(Trie::ROOT).map(|node| (&self.rest, node));
        let there = if self.outside == [0; 2] { 0..0 } else { trie.children(Trie::ROOT) };
        own.chain(there.filter(|&node| self.is_outside(trie.byte(node))).map(move |node| (trie, node)))
    }

    /// Number of characters that begin in a token.
    #[inline]
    pub fn chars(&self, token: TokenId) -> u16 {
        self.chars.get(token.index()).copied().unwrap_or(0)
    }

    /// The greatest number of characters in a token of the run.
    pub fn max_chars(&self) -> usize {
        self.by_chars().max()
    }

    /// The tokens of the run in which at most `limit` characters begin. Built on first use, then shared.
    pub fn run_up_to(&self, limit: usize) -> &TokenMask {
        let by_chars = self.by_chars();
        by_chars
            .masks
            .get(limit)
            .map_or(&self.run, |mask| mask.get_or_init(|| by_chars.mask(limit, &self.run)))
    }

    /// Bytes held on the heap, without what is built on demand.
    pub fn heap_bytes(&self) -> usize {
        self.run.heap_bytes() + self.rest.heap_bytes()
    }

    fn by_chars(&self) -> &ByChars {
        self.by_chars.get_or_init(|| ByChars::new(&self.run, &self.chars))
    }

    pub(crate) fn outside(&self) -> [u128; 2] {
        self.outside
    }

    /// Puts a loop together from stored parts.
    pub(crate) fn from_parts(
        class: LoopClass,
        run: TokenMask,
        rest: Trie,
        outside: [u128; 2],
        chars: Arc<[u16]>,
    ) -> Self {
        Self { class, run_len: run.count(), run, rest, outside, chars, by_chars: OnceLock::new() }
    }
}

/// What all passes over the token trie need, made once.
#[derive(Debug)]
struct Shape {
    /// The node above each node; the root is above itself.
    parent: Vec<u32>,
    /// The node of each token; the root for tokens that are not on the trie.
    node: Vec<u32>,
    /// How many tokens begin with each byte.
    first_bytes: [u32; 256],
}

impl Shape {
    fn new(trie: &Trie, size: usize) -> Self {
        let mut shape = Self { parent: vec![0; trie.len()], node: vec![0; size], first_bytes: [0; 256] };
        let mut first_byte = vec![0_u8; trie.len()];
        for node in 0..trie.len() as u32 {
            let begins = first_byte[node as usize];
            for child in trie.children(node) {
                shape.parent[child as usize] = node;
                first_byte[child as usize] = if node == Trie::ROOT { trie.byte(child) } else { begins };
            }
            for &token in trie.tokens(node) {
                shape.node[token as usize] = node;
                shape.first_bytes[usize::from(begins)] += 1;
            }
        }
        shape
    }
}

/// The walk that sorts tokens into the run and the places where others leave it.
///
/// It is a run of a small automaton over the whole trie. A node comes after its parent, so one
/// pass over the arrays, forward, gives every node its state: no queue, no stack, no branch.
struct Pass<'a> {
    trie: &'a Trie,
    shape: &'a Shape,
    states: Vec<u8>,
}

/// The states of the walk. From `WHOLE` to before `EXIT` the loop goes on: at the end of a character,
/// or inside one.
const BEYOND: u8 = 0;
const WHOLE: u8 = 1;
const EXIT: u8 = 9;
const BROKEN: u8 = 10;
const STATES: usize = 11;

impl<'a> Pass<'a> {
    fn new(class: LoopClass, trie: &'a Trie, shape: &'a Shape) -> Self {
        let next = transitions(class);
        let mut states = vec![BEYOND; trie.len()];
        states[Trie::ROOT as usize] = WHOLE;
        for (node, (&parent, &byte)) in shape.parent.iter().zip(&trie.bytes).enumerate().skip(1) {
            states[node] = next[usize::from(states[parent as usize])][usize::from(byte)];
        }
        Self { trie, shape, states }
    }

    fn run(&self) -> TokenMask {
        // The root stands for all tokens that have no node, and these are in no run.
        let goes_on = |node: u32| node != Trie::ROOT && (WHOLE..EXIT).contains(&self.states[node as usize]);
        let word =
            |nodes: &[u32]| nodes.iter().rev().fold(0, |word, &node| word << 1 | u32::from(goes_on(node)));
        let words: Vec<u32> = self.shape.node.chunks(32).map(word).collect();
        TokenMask::from_words(&words, self.shape.node.len())
    }

    /// The nodes by which tokens leave the loop: with their very first byte, and later.
    fn exits(&self) -> (Vec<u32>, Vec<u32>) {
        let exits = self.nodes_in(EXIT);
        let later = exits.partition_point(|&node| node < self.trie.children(Trie::ROOT).end);
        (exits[..later].to_vec(), exits[later..].to_vec())
    }

    /// The rests that begin with a broken character, with their tokens.
    fn broken(&self) -> Vec<(Vec<u8>, u32)> {
        let trie = self.trie;
        let mut rests = Vec::new();
        for node in self.nodes_in(BROKEN) {
            let mut below = vec![(node, self.since_whole(node))];
            while let Some((node, path)) = below.pop() {
                rests.extend(trie.tokens(node).iter().map(|&id| (path.clone(), id)));
                for child in trie.children(node) {
                    below.push((child, [&path[..], &[trie.byte(child)]].concat()));
                }
            }
        }
        rests
    }

    /// The bytes from the last whole character to `node`.
    fn since_whole(&self, mut node: u32) -> Vec<u8> {
        let mut path = Vec::new();
        while self.states[node as usize] != WHOLE {
            path.insert(0, self.trie.byte(node));
            node = self.shape.parent[node as usize];
        }
        path
    }

    fn nodes_in(&self, state: u8) -> Vec<u32> {
        (0..).zip(&self.states).filter(|(_, known)| **known == state).map(|(node, _)| node).collect()
    }
}

/// The automaton of a loop: the next state by state and byte.
fn transitions(class: LoopClass) -> [[u8; 256]; STATES] {
    use Inside::{E0, Ed, F0, F4, One, Three, Two};
    const INSIDE: [Inside; 7] = [One, Two, Three, E0, Ed, F0, F4];
    let number =
        |inside: Inside| INSIDE.iter().position(|&known| known == inside).map_or(EXIT, |at| at as u8 + 2);
    let mut next = [[BEYOND; 256]; STATES];
    for byte in 0..=255_u8 {
        let at = usize::from(byte);
        next[usize::from(WHOLE)][at] = match utf8::lead(byte) {
            _ if class.contains_ascii(byte) => WHOLE,
            Some(inside) if class.utf8 => number(inside),
            _ => EXIT,
        };
        for inside in INSIDE {
            next[usize::from(number(inside))][at] = match utf8::next(inside, byte) {
                Next::Done => WHOLE,
                Next::More(inside) => number(inside),
                Next::Broken => BROKEN,
            };
        }
    }
    next
}

/// The run sorted by length in characters, and the masks of its beginnings.
#[derive(Debug)]
struct ByChars {
    tokens: Vec<u32>,
    /// Tokens with fewer than n characters are `tokens[..start[n]]`.
    start: Vec<u32>,
    /// Mask n holds the tokens of at most n characters; there is none for the greatest length,
    /// because that is the run.
    masks: Vec<OnceLock<TokenMask>>,
}

impl ByChars {
    fn new(run: &TokenMask, chars: &[u16]) -> Self {
        let len = |token: TokenId| usize::from(chars[token.index()]);
        let max = run.iter().map(len).max().unwrap_or(0);
        let mut start = vec![0; max + 2];
        for token in run.iter() {
            start[len(token) + 1] += 1;
        }
        for n in 1..start.len() {
            start[n] += start[n - 1];
        }
        let mut place = start.clone();
        let mut tokens = vec![0; start[max + 1] as usize];
        for token in run.iter() {
            let at = &mut place[len(token)];
            tokens[*at as usize] = token.0;
            *at += 1;
        }
        Self { tokens, start, masks: (0..max).map(|_| OnceLock::new()).collect() }
    }

    fn max(&self) -> usize {
        self.masks.len()
    }

    fn mask(&self, limit: usize, run: &TokenMask) -> TokenMask {
        let (short, long) = self.tokens.split_at(self.start[limit + 1] as usize);
        if short.len() < long.len() {
            let mut mask = TokenMask::new(run.size());
            mask.insert_all(short);
            return mask;
        }
        let mut mask = run.clone();
        for &token in long {
            mask.remove(TokenId(token));
        }
        mask
    }
}

/// The loops of one vocabulary: common classes ready, others built on first use and then shared.
///
/// A lookup takes no lock. The table only grows; it has a fixed number of places and a budget of
/// bytes, and when either is spent a new class is built for its caller alone.
#[derive(Debug)]
pub struct LoopLibrary {
    trie: Arc<Trie>,
    chars: Arc<[u16]>,
    shape: OnceLock<Shape>,
    /// Open addressing: a class is in the first free or equal place from its hash on.
    places: Box<[OnceLock<Place>]>,
    held: AtomicUsize,
}

#[derive(Debug)]
struct Place {
    class: LoopClass,
    entry: OnceLock<Arc<Loop>>,
}

impl LoopLibrary {
    /// The most classes that are kept.
    pub const MAX_CLASSES: usize = 256;
    /// No further class is kept once the library holds this many bytes.
    pub const MAX_BYTES: usize = 1 << 26;

    pub(crate) fn new(trie: Arc<Trie>, chars: Arc<[u16]>) -> Self {
        Self {
            shape: OnceLock::new(),
            trie,
            chars,
            places: (0..Self::MAX_CLASSES).map(|_| OnceLock::new()).collect(),
            held: AtomicUsize::new(0),
        }
    }

    /// The loop of a class, if it is there already.
    pub fn find(&self, class: LoopClass) -> Option<&Arc<Loop>> {
        let place = self.probe(class).map_while(OnceLock::get).find(|place| place.class == class)?;
        place.entry.get()
    }

    /// The loop of a class; built now if it is not there yet. Threads that ask for the same class
    /// wait for one of them.
    pub fn get(&self, class: LoopClass) -> Arc<Loop> {
        if let Some(known) = self.find(class) {
            return Arc::clone(known);
        }
        match self.place(class) {
            Some(place) => Arc::clone(place.entry.get_or_init(|| self.kept(self.build(class)))),
            None => Arc::new(self.build(class)),
        }
    }

    /// The classes that are there, by value.
    pub fn classes(&self) -> Vec<LoopClass> {
        let mut classes: Vec<_> = self.entries().map(|entry| entry.class).collect();
        classes.sort_unstable();
        classes
    }

    /// Bytes held on the heap, without what a loop builds on demand.
    pub fn heap_bytes(&self) -> usize {
        let shape = self.shape.get().map_or(0, |shape| 4 * (shape.parent.len() + shape.node.len()));
        shape
            + 2 * self.chars.len()
            + self.places.len() * size_of::<OnceLock<Place>>()
            + self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn chars(&self) -> &Arc<[u16]> {
        &self.chars
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Loop>> {
        self.places.iter().filter_map(|place| place.get()?.entry.get())
    }

    /// Puts in a loop that was built before.
    pub(crate) fn put(&self, entry: Loop) {
        if let Some(place) = self.place(entry.class) {
            place.entry.get_or_init(|| self.kept(entry));
        }
    }

    /// Builds the classes that most constraints meet.
    pub(crate) fn build_common(&self) {
        for class in common_classes() {
            self.get(class);
        }
    }

    /// The loop of a class, built for the caller alone.
    pub fn build(&self, class: LoopClass) -> Loop {
        let shape = self.shape.get_or_init(|| Shape::new(&self.trie, self.chars.len()));
        Loop::build(class, &self.trie, Arc::clone(&self.chars), shape)
    }

    fn kept(&self, entry: Loop) -> Arc<Loop> {
        self.held.fetch_add(entry.heap_bytes() + size_of::<Loop>(), Ordering::Relaxed);
        Arc::new(entry)
    }

    /// The place of a class, taken now if need be; `None` if the library is full.
    fn place(&self, class: LoopClass) -> Option<&Place> {
        let full = self.held.load(Ordering::Relaxed) >= Self::MAX_BYTES;
        for slot in self.probe(class) {
            if full && slot.get().is_none() {
                return None;
            }
            let place = slot.get_or_init(|| Place { class, entry: OnceLock::new() });
            if place.class == class {
                return Some(place);
            }
        }
        None
    }

    fn probe(&self, class: LoopClass) -> impl Iterator<Item = &OnceLock<Place>> {
        let mixed = (class.ascii ^ class.ascii >> 61 ^ u128::from(class.utf8))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15_D1B5_4A32_D192_ED03);
        let start = (mixed >> 100) as usize % self.places.len();
        self.places[start..].iter().chain(&self.places[..start])
    }
}

/// The classes built together with a vocabulary: what strings, identifiers, numbers, spaces and free text
/// usually loop on. Each takes about a millisecond for 128,000 tokens.
fn common_classes() -> impl Iterator<Item = LoopClass> {
    let text = |but: &'static [u8]| LoopClass::of(|byte| !but.contains(&byte), true);
    let bytes = |set: fn(&u8) -> bool, more: &'static [u8]| {
        LoopClass::of(|byte| set(&byte) || more.contains(&byte), false)
    };
    [
        LoopClass::JSON_STRING,
        text(b""),
        text(b"\n"),
        text(b"\r\n"),
        text(b"\""),
        text(b"<"),
        text(b" \t\n\r\x0b\x0c"),
        bytes(u8::is_ascii_digit, b""),
        bytes(u8::is_ascii_hexdigit, b""),
        bytes(u8::is_ascii_digit, b"abcdef"),
        bytes(u8::is_ascii_lowercase, b""),
        bytes(u8::is_ascii_uppercase, b""),
        bytes(u8::is_ascii_alphabetic, b""),
        bytes(u8::is_ascii_alphabetic, b" "),
        bytes(u8::is_ascii_alphanumeric, b""),
        bytes(u8::is_ascii_alphanumeric, b"_"),
        bytes(u8::is_ascii_alphanumeric, b"-"),
        bytes(u8::is_ascii_alphanumeric, b"_-"),
        bytes(u8::is_ascii_alphanumeric, b"_.-"),
        bytes(u8::is_ascii_alphanumeric, b"+/"),
        bytes(u8::is_ascii_graphic, b" "),
        bytes(|_| false, b" \t\n\r"),
    ]
    .into_iter()
}
