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
//! string and the Llama-3.1 vocabulary, `run` has 123,177 of 128,000 tokens and the rests have under two
//! thousand nodes, where the token trie has 274,520.
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
    fn build(class: LoopClass, trie: &Trie, chars: Arc<[u16]>, first_bytes: &[u32; 256]) -> Self {
        let mut pass = Pass {
            class,
            trie,
            run: TokenMask::new(chars.len()),
            exits: vec![],
            at_once: vec![],
            broken: vec![],
        };
        pass.walk();
        let Pass { run, mut exits, at_once, broken, .. } = pass;
        let count: usize =
            at_once.iter().map(|&node| first_bytes[usize::from(trie.byte(node))] as usize).sum();
        let mut outside = [0; 2];
        if count <= trie.all_tokens().len() / 8 {
            exits.extend(at_once);
        } else {
            for byte in at_once.into_iter().map(|node| trie.byte(node)) {
                outside[usize::from(byte / 128)] |= 1_u128 << (byte % 128);
            }
        }
        let rest = merge(trie, &exits, &Trie::build(broken), &SAME_BYTES);
        Self { class, run_len: run.count(), run, rest, outside, chars, by_chars: OnceLock::new() }
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

/// The walk that sorts tokens into the run and the places where others leave it.
struct Pass<'a> {
    class: LoopClass,
    trie: &'a Trie,
    run: TokenMask,
    /// Nodes by which a token leaves the loop after at least one character.
    exits: Vec<u32>,
    /// Nodes by which a token leaves the loop with its first byte.
    at_once: Vec<u32>,
    /// Rests that begin with a broken character.
    broken: Vec<(Vec<u8>, u32)>,
}

impl Pass<'_> {
    fn walk(&mut self) {
        let trie = self.trie;
        // Nodes at which a whole number of characters has been read. Breadth first reads memory forward.
        let mut whole = vec![Trie::ROOT];
        let mut next = 0;
        while let Some(&node) = whole.get(next) {
            next += 1;
            for (child, &byte) in trie.children(node).zip(trie.child_bytes(node)) {
                if self.class.contains_ascii(byte) {
                    self.run.insert_all(trie.tokens(child));
                    whole.push(child);
                } else if let Some(state) = utf8::lead(byte).filter(|_| self.class.utf8) {
                    self.character(child, state, &mut whole);
                } else if node == Trie::ROOT {
                    self.at_once.push(child);
                } else {
                    self.exits.push(child);
                }
            }
        }
    }

    /// Reads the characters that begin with the lead byte of `lead`.
    fn character(&mut self, lead: u32, state: Inside, whole: &mut Vec<u32>) {
        let trie = self.trie;
        let mut inside = vec![(lead, state, vec![trie.byte(lead)])];
        while let Some((node, state, path)) = inside.pop() {
            self.run.insert_all(trie.tokens(node));
            for (child, &byte) in trie.children(node).zip(trie.child_bytes(node)) {
                let longer = || [&path[..], &[byte]].concat();
                match utf8::next(state, byte) {
                    Next::Done => {
                        self.run.insert_all(trie.tokens(child));
                        whole.push(child);
                    }
                    Next::More(state) => inside.push((child, state, longer())),
                    Next::Broken => self.broken_below(child, longer()),
                }
            }
        }
    }

    /// All tokens from `node` on leave the loop; `path` spells what they have of the broken character.
    fn broken_below(&mut self, node: u32, path: Vec<u8>) {
        let trie = self.trie;
        let mut below = vec![(node, path)];
        while let Some((node, path)) = below.pop() {
            self.broken.extend(trie.tokens(node).iter().map(|&id| (path.clone(), id)));
            for child in trie.children(node) {
                below.push((child, [&path[..], &[trie.byte(child)]].concat()));
            }
        }
    }
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
    /// How many tokens begin with each byte.
    first_bytes: Box<[u32; 256]>,
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
            first_bytes: Box::new(count_first_bytes(&trie)),
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
        2 * self.chars.len()
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
        Loop::build(class, &self.trie, Arc::clone(&self.chars), &self.first_bytes)
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

/// The classes built together with a vocabulary.
fn common_classes() -> impl Iterator<Item = LoopClass> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    [
        LoopClass::JSON_STRING,
        LoopClass::of(|_| true, true),
        LoopClass::of(|b| b != b'\n', true),
        LoopClass::of(|b| b.is_ascii_digit(), false),
        LoopClass::of(|b| b.is_ascii_hexdigit(), false),
        LoopClass::of(|b| b.is_ascii_lowercase(), false),
        LoopClass::of(|b| b.is_ascii_uppercase(), false),
        LoopClass::of(|b| b.is_ascii_alphabetic(), false),
        LoopClass::of(|b| b.is_ascii_alphanumeric(), false),
        LoopClass::of(word, false),
        LoopClass::of(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'), false),
    ]
    .into_iter()
}

/// How many tokens begin with each byte.
fn count_first_bytes(trie: &Trie) -> [u32; 256] {
    let mut counts = [0; 256];
    // Children have greater numbers than their parents, so one pass forward reaches all.
    let mut first_byte = vec![0_u8; trie.len()];
    for node in 0..trie.len() as u32 {
        for child in trie.children(node) {
            first_byte[child as usize] =
                if node == Trie::ROOT { trie.byte(child) } else { first_byte[node as usize] };
        }
        counts[usize::from(first_byte[node as usize])] += trie.tokens(node).len() as u32;
    }
    counts
}
