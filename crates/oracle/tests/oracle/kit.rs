//! Tests of the laws: a correct subject obeys all of them, and each law catches the subjects that break it.

use std::cell::RefCell;
use std::rc::Rc;

use maskwright_grammar::{CharSet, Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng, Shape};
use maskwright_oracle::laws::{self, Broken, Case, Effort, Plain, Subject, Tally};
use maskwright_oracle::{Oracle, Tokens};

#[test]
fn the_oracle_keeps_its_own_laws() {
    let mut tally = Tally::default();
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let oracle = Oracle::new(&generate::grammar(&mut rng, &Shape::default()));
        let tokens = with_eos(&generate::vocabulary(&mut rng, b"ab\"\\", 20));
        let case = Case::new(format!("seed {seed}"), &oracle, &tokens);
        let effort = Effort { accepts: 100, ..Effort::default() };
        match laws::all(&case, &|| Plain::new(&oracle, &tokens), &mut rng, &effort) {
            Ok(more) => tally += more,
            Err(broken) => panic!("{broken}"),
        }
    }
    assert!(tally.bits > 50_000 && tally.accepts > 3_000 && tally.texts > 200, "{tally:?}");
}

/// Returns the tokens and two more: one that ends a text and one that is special.
fn with_eos(tokens: &[Vec<u8>]) -> Tokens {
    let size = tokens.len();
    let listed = (0..).zip(tokens.iter().map(Vec::as_slice));
    Tokens::new(size + 2, listed).with_eos([size as u32])
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// No fault: the laws must pass.
    Nothing,
    /// The mask sometimes allows a wrong token.
    ExtraBit,
    /// The mask sometimes misses one token.
    MissingBit,
    /// The mask keeps the previous content of the buffer.
    DirtyBuffer,
    /// The special token is allowed.
    SpecialAllowed,
    /// The token that ends a text is always allowed.
    AlwaysEnds,
    /// A token is accepted that the mask forbids.
    AcceptsTooMuch,
    /// A token is rejected that the mask allows.
    AcceptsTooLittle,
    /// A rejected token changes the state.
    RefusalLeavesTrace,
    /// Rejected bytes are read up to the mistake.
    TakesAPart,
    /// Bytes in a second call are rejected if a quote or a letter was split.
    HatesCuts,
    /// Pieces of two bytes lead to a wrong state.
    LosesAByte,
    /// A rollback takes back one token too few.
    RollbackShort,
    /// A rollback may go beyond the beginning.
    RollbackTooFar,
    /// A fork shares its history.
    SharedFork,
    /// A fork cannot be rolled back.
    ForkWithoutHistory,
    /// A reset keeps the last token.
    ResetKeepsOne,
    /// A reset keeps the history.
    ResetKeepsHistory,
    /// A text is never reported as complete.
    NeverAccepting,
    /// The mask is empty after three tokens.
    GetsStuck,
}

/// The oracle with a fault.
struct Faulty<'a> {
    inner: Rc<RefCell<Plain<'a>>>,
    fault: Fault,
    calls: usize,
    taken: usize,
    /// The number of tokens that a kept history pretends to have.
    kept: usize,
}

impl<'a> Faulty<'a> {
    fn new(oracle: &'a Oracle, tokens: &'a Tokens, fault: Fault) -> Self {
        let inner = Rc::new(RefCell::new(Plain::new(oracle, tokens)));
        Self { inner, fault, calls: 0, taken: 0, kept: 0 }
    }
}

const LETTER: u32 = b'a' as u32;

impl Subject for Faulty<'_> {
    fn fill(&mut self, words: &mut [u32]) {
        let dirty = words.to_vec();
        self.inner.borrow_mut().fill(words);
        match self.fault {
            Fault::ExtraBit if self.taken % 3 == 1 => words[0] |= 1 << 7,
            Fault::MissingBit if self.taken % 3 == 1 => {
                if let Some(word) = words.iter_mut().find(|word| **word != 0) {
                    *word &= *word - 1;
                }
            }
            Fault::DirtyBuffer => words[3] |= dirty[3],
            Fault::SpecialAllowed => words[256 / 32] |= 1 << 1,
            Fault::AlwaysEnds => words[256 / 32] |= 1,
            Fault::GetsStuck if self.taken >= 3 && !self.inner.borrow_mut().is_accepting() => words.fill(0),
            _ => {}
        }
    }

    fn accept(&mut self, token: u32) -> bool {
        match self.fault {
            Fault::AcceptsTooMuch if token == u32::from(b'z') => return true,
            Fault::AcceptsTooLittle if token == LETTER && self.taken >= 1 => return false,
            Fault::ExtraBit if token == 7 && self.taken % 3 == 1 => {
                self.taken += 1;
                return true;
            }
            _ => {}
        }
        let accepted = self.inner.borrow_mut().accept(token);
        if !accepted && self.fault == Fault::RefusalLeavesTrace {
            self.inner.borrow_mut().reset();
        }
        self.taken += usize::from(accepted);
        accepted
    }

    fn accept_bytes(&mut self, bytes: &[u8]) -> bool {
        self.calls += 1;
        match self.fault {
            Fault::TakesAPart => {
                return bytes.iter().all(|&byte| self.inner.borrow_mut().accept_bytes(&[byte]));
            }
            Fault::HatesCuts if self.calls > 1 && bytes[0] == b'a' => return false,
            Fault::LosesAByte if self.calls == 2 && bytes.len() > 1 => {
                return self.inner.borrow_mut().accept_bytes(&bytes[1..]);
            }
            _ => {}
        }
        self.inner.borrow_mut().accept_bytes(bytes)
    }

    fn rollback(&mut self, count: usize) -> bool {
        match self.fault {
            Fault::RollbackShort if count > 0 => {
                // Fails where it should, but takes back too little.
                let mut whole = self.inner.borrow().clone();
                return whole.rollback(count) && self.inner.borrow_mut().rollback(count - 1);
            }
            Fault::RollbackTooFar => {
                if !self.inner.borrow_mut().rollback(count) {
                    self.inner.borrow_mut().reset();
                }
                return true;
            }
            Fault::ForkWithoutHistory if self.kept > 0 && count > 0 => return false,
            Fault::ResetKeepsHistory if self.kept > 0 => return true,
            _ => {}
        }
        self.inner.borrow_mut().rollback(count)
    }

    fn fork(&self) -> Self {
        let shared = self.fault == Fault::SharedFork;
        let inner =
            if shared { Rc::clone(&self.inner) } else { Rc::new(RefCell::new(self.inner.borrow().clone())) };
        let kept = usize::from(self.fault == Fault::ForkWithoutHistory);
        Self { inner, fault: self.fault, calls: 0, taken: self.taken, kept }
    }

    fn reset(&mut self) {
        let mut inner = self.inner.borrow_mut();
        if self.fault == Fault::ResetKeepsOne {
            while inner.rollback(2) {}
        } else {
            inner.reset();
        }
        self.kept = usize::from(self.fault == Fault::ResetKeepsHistory);
        self.taken = 0;
    }

    fn is_accepting(&mut self) -> bool {
        self.fault != Fault::NeverAccepting && self.inner.borrow_mut().is_accepting()
    }
}

/// Builds `list ::= "[" (letter ("," letter)*)? "]"`, with two letters or more in a row.
fn lists() -> Grammar {
    let mut g = GrammarBuilder::new();
    let letters = g.class(CharSet::from_ranges([('a', 'c')]));
    let word = g.repeat(letters, 2, None);
    let comma = g.bytes(b",");
    let more = g.seq([comma, word]);
    let more = g.star(more);
    let items = g.seq([word, more]);
    let items = g.optional(items);
    let (open, close) = (g.bytes(b"["), g.bytes(b"]"));
    let body = g.seq([open, items, close]);
    let list = g.declare("list");
    g.define(list, body);
    g.finish(list).expect("defined")
}

type Law = fn(&Case<'_>, &dyn Fn() -> Faulty<'static>, &mut Rng, &Effort) -> Result<Tally, Broken>;

/// Runs one law on one faulty subject, over a few seeds, until it reports a violation.
fn complaint(law: Law, fault: Fault) -> Option<Broken> {
    // Leaked, so that the law's type has no lifetime to generalize over; a few kilobytes for each fault.
    let oracle: &'static Oracle = Box::leak(Box::new(Oracle::new(&lists())));
    let tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let tokens: &'static Tokens = Box::leak(Box::new(with_eos(&tokens)));
    (0..20).find_map(|seed| {
        let case = Case::new(format!("seed {seed}"), oracle, tokens);
        law(&case, &|| Faulty::new(oracle, tokens, fault), &mut Rng::new(seed), &Effort::default()).err()
    })
}

#[test]
fn each_law_catches_its_faults() {
    let faults: [(Law, &[Fault]); 7] = [
        (
            laws::masks_are_exact,
            &[
                Fault::ExtraBit,
                Fault::MissingBit,
                Fault::DirtyBuffer,
                Fault::SpecialAllowed,
                Fault::AlwaysEnds,
                Fault::AcceptsTooLittle,
                Fault::NeverAccepting,
                Fault::GetsStuck,
            ],
        ),
        (
            laws::accept_follows_the_mask,
            &[
                Fault::AcceptsTooMuch,
                Fault::AcceptsTooLittle,
                Fault::RefusalLeavesTrace,
                Fault::NeverAccepting,
                Fault::MissingBit,
                Fault::AlwaysEnds,
            ],
        ),
        (
            laws::segmentation_is_free,
            &[Fault::TakesAPart, Fault::HatesCuts, Fault::LosesAByte, Fault::NeverAccepting],
        ),
        (laws::rollback_is_replay, &[Fault::RollbackShort, Fault::RollbackTooFar]),
        (laws::fork_is_a_copy, &[Fault::SharedFork, Fault::ForkWithoutHistory]),
        (laws::reset_is_fresh, &[Fault::ResetKeepsOne, Fault::ResetKeepsHistory]),
        (laws::walks_finish, &[Fault::ExtraBit, Fault::GetsStuck, Fault::NeverAccepting]),
    ];
    for (law, faults) in faults {
        assert_eq!(complaint(law, Fault::Nothing), None);
        for &fault in faults {
            assert!(complaint(law, fault).is_some(), "{fault:?} was not caught");
        }
    }
}

#[test]
fn complaints_say_all_that_is_needed() {
    let broken = complaint(laws::masks_are_exact, Fault::SpecialAllowed).expect("caught");
    for part in ["masks are exact", "seed 0", "token 257", "must not be allowed", "list ::= \"[\""] {
        assert!(broken.contains(part), "{part:?} is missing in\n{broken}");
    }
}
