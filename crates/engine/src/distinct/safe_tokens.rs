//! Finds tokens inside a string that need no trial.
//!
//! While a string is still open, most tokens leave so many ways to finish it that one of them must be new. Such tokens
//! skip the (slow) search for a way out.

use std::sync::Arc;

use maskwright_vocab::Trie;

use super::trial::Trial;
use crate::count::UNBOUNDED;
use crate::leaf::{Leaf, LeafState, json_string};
use crate::library::{AMPLE_VALUES, Tokens, set_bits};
use crate::parser::stack::{Register, Resume, Top};
use crate::parser::thread::Thread;
use crate::program::LeafId;
use crate::program::network::ScopeId;
use crate::tuning::tuning;
use crate::value;

impl Trial<'_> {
    /// Returns tokens that certainly do not lead to a dead end, as a bitset. They leave the current string open, and
    /// its value can still become new.
    pub(super) fn safe_tokens(&mut self) -> Option<Vec<u32>> {
        let (program, bytes) = (self.bound.program(), self.bound.library().bytes());
        let mut safe: Option<Vec<u32>> = None;
        for thread in self.threads {
            let Some((leaf, state)) = thread.leaf().filter(|(leaf, _)| program.leaf(*leaf).is_string())
            else {
                continue;
            };
            // Keys with `dependentRequired` impose further keys, so nothing is known about them without a trial.
            let has_needs = |(index, _): &(ScopeId, Register)| program.scope(*index).has_listed_needs();
            if self.scopes_below(thread.stack, true).iter().any(has_needs) {
                continue;
            }
            let found = self.other_strings(thread, leaf, state);
            let Some(found) = found.or_else(|| self.long_strings(thread, leaf, state)) else { continue };
            let words = safe.get_or_insert_with(|| vec![0; bytes.words()]);
            words.iter_mut().zip(found).for_each(|(word, found)| *word |= found);
        }
        if let Some(words) = &mut safe {
            words.iter_mut().zip(bytes.with(b'"')).for_each(|(word, quoted)| *word &= !quoted);
        }
        safe
    }

    /// Returns the tokens after which the current string of a thread can continue in more ways than there are values to
    /// avoid.
    fn long_strings(&mut self, thread: &Thread, leaf: LeafId, state: LeafState) -> Option<Vec<u32>> {
        let bytes = self.bound.library().bytes();
        let values = self.values_to_avoid(thread)?;
        match (self.bound.program().leaf(leaf), self.units_with_more_values(thread, values)) {
            // A token that keeps this string open cannot also close it, so every such token is safe. The caller removes
            // tokens with a quote.
            (Leaf::Text(_), Some(_)) => Some(bytes.all().to_vec()),
            (Leaf::Window { automaton, .. }, Some(units)) if Arc::ptr_eq(automaton, json_string()) => {
                Some(bytes.no_longer(bytes.all(), units as usize))
            }
            (Leaf::Window { .. }, Some(units)) => {
                Some(bytes.no_longer(&self.inner_tokens(thread, leaf, state, units), units as usize))
            }
            (Leaf::Window { max: UNBOUNDED, .. }, None) if values < AMPLE_VALUES as usize => {
                Some(self.bound.ample(leaf, state).to_vec())
            }
            _ => None,
        }
    }

    /// Returns the tokens that stay inside a leaf and begin at most `units` units, as a bitset.
    fn inner_tokens(&self, thread: &Thread, leaf: LeafId, state: LeafState, units: u32) -> Vec<u32> {
        let (program, bytes) = (self.bound.program(), self.bound.library().bytes());
        let room = program.counts().room(thread.count, program.leaf(leaf).bounds());
        match self.bound.entry(leaf, state, room).inner(units.min(room), bytes) {
            Tokens::Many(tokens) => tokens.to_vec(),
            Tokens::Few(tokens) => {
                let mut words = vec![0; bytes.words()];
                set_bits(&mut words, tokens);
                words
            }
        }
    }

    /// Returns the tokens that extend the current string of a thread, but not towards a string that must be avoided:
    /// whatever the string becomes, it is new. Returns `None` if the strings to avoid are unknown or too many.
    fn other_strings(&mut self, thread: &Thread, leaf: LeafId, state: LeafState) -> Option<Vec<u32>> {
        let (program, bytes) = (self.bound.program(), self.bound.library().bytes());
        let scopes = self.scopes_below(thread.stack, false);
        let seen: usize = scopes.iter().map(|(_, register)| self.registers.count(*register)).sum();
        if program.has_nested_values() || seen > tuning().scope_values {
            return None;
        }
        if matches!(program.leaf(leaf), Leaf::Text(_)) {
            return None;
        }
        let written = self.strings_after(thread)?;
        let mut found = self.inner_tokens(thread, leaf, state, UNBOUNDED);
        let avoided = || {
            let seen = scopes.iter().flat_map(|(_, register)| self.registers.forms(*register));
            let followed = program.network().followed_words().iter().map(|word| &**word);
            seen.chain(followed).chain(written.iter().map(|form| &**form))
        };
        let longest = avoided().map(<[u8]>::len).max().unwrap_or(0);
        let Some(quote) = self.quote(longest) else { return Some(found) };
        let (typed, is_whole) = value::prefix(&self.text[quote + 1..]);
        if !is_whole {
            return None;
        }
        let trie = self.bound.vocabulary().trie();
        let rests: Vec<&[u8]> = avoided().filter_map(|form| form.strip_prefix(&*typed)).collect();
        // An escape may spell any character, but not the closing quote.
        if rests.iter().any(|rest| *rest != b"\"") {
            found.iter_mut().zip(bytes.with(b'\\')).for_each(|(word, escaped)| *word &= !escaped);
        }
        for rest in rests {
            let mut node = Trie::ROOT;
            for &byte in rest {
                let Some(child) = trie.child(node, byte) else { break };
                node = child;
                for &token in trie.tokens(node) {
                    found[token as usize / 32] &= !(1 << (token % 32));
                }
            }
        }
        Some(found)
    }

    /// Returns the strings written on some way out after the current string of a thread. That way out exists if the
    /// string is none of them, no value already seen, and no followed word. Returns `None` if it may depend on the
    /// string.
    fn strings_after(&mut self, thread: &Thread) -> Option<Vec<Vec<u8>>> {
        if self.threads_after_check(thread)?.iter().any(|after| self.has_known_exit(after)) {
            return Some(Vec::new());
        }
        let program = self.bound.program();
        let requires = |(index, _): &(ScopeId, Register)| !program.scope(*index).listed().is_empty();
        if self.scopes_below(thread.stack, false).iter().any(requires) {
            return None;
        }
        // If the string ended here, it would be recorded as seen like any other value.
        self.attempt(|this, _| {
            let mut after = vec![*thread];
            if !this.steps(b"\"", &mut after) {
                return None;
            }
            this.completion(&after).map(|text| value::strings(&text))
        })
    }

    /// Returns the threads after the check of a thread's current string, if that string is a value that must be new.
    fn threads_after_check(&self, thread: &Thread) -> Option<Vec<Thread>> {
        let Top::Frame(frame, below) = self.arena.top(thread.stack) else { return None };
        let Resume::At(state) = frame.resume() else { return None };
        let after = || self.checked(state).map(|(next, _)| Thread::network(next, below)).collect();
        self.is_check(state).then(after)
    }

    /// Returns how many values the current string of a thread has to avoid so that a way out follows it. Returns `None`
    /// if the existence of a way out may depend on the string.
    fn values_to_avoid(&mut self, thread: &Thread) -> Option<usize> {
        if self.has_known_exit(thread) {
            return Some(self.values_on_the_way_out(thread));
        }
        let after = self.threads_after_check(thread)?;
        if after.iter().any(|thread| self.has_known_exit(thread)) {
            return Some(self.values_on_the_way_out(thread));
        }
        // The values that were seen, and those written on the way out, each of which takes at least one byte.
        let written = self.completion(&after)?.len();
        Some(self.seen_below(thread.stack).saturating_add(written))
    }

    /// Searches briefly for a text that leads from some threads, none of which has a known exit, to a place that has
    /// one.
    fn completion(&mut self, threads: &[Thread]) -> Option<Vec<u8>> {
        let before = core::mem::take(&mut self.known_exits.completions);
        let found = self.search_briefly(threads);
        let completion = core::mem::replace(&mut self.known_exits.completions, before).into_iter().next();
        completion.filter(|_| found == Some(true))
    }

    /// Counts the values to avoid if a way out is known: the values seen, and the words that may be written on it.
    fn values_on_the_way_out(&self, thread: &Thread) -> usize {
        let program = self.bound.program();
        if program.has_nested_values() {
            return self.values_below(thread.stack);
        }
        self.seen_below(thread.stack).saturating_add(program.network().followed_words().len())
    }
}
