//! Corrects a mask by the values that were already seen.
//!
//! A mask is computed as if every value were new to its scope ([`super::registers`]). That is nearly always right.
//! Where it is not, a token completes a value that its scope has seen before. Those tokens are few, and there are only
//! a few kinds of them:
//!
//! * The text ends inside a string that is the beginning of a seen value: tokens that continue with the rest of that
//!   value and its quote.
//! * The token contains the value completely ([`crate::library::ValueTokens`]).
//! * The value is an array or object, and the token closes it.
//!
//! Each such token is *tried* on the actual stacks and registers, and is removed from the mask if no thread survives.
//! There is one opposite case: a scope that lacks a required key may not close, which the mask takes into account, but
//! a token that writes the last such key and closes the scope at once must be added.
//!
//! # Dead ends
//!
//! If values come from a finite set, a token may begin a value of which every continuation was seen. No value is
//! repeated yet, but the mask would lead to a dead end. So where this is possible, a token is kept only if a
//! [search](super::search) finds a way out after it. Tokens that leave an endlessly extensible string open all have
//! one, and need no search.

use core::cmp::Reverse;

use maskwright_vocab::{TokenId, Trie, number_spelling};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::dead_end_cache;
use super::trial::Trial;
use crate::library::{BoundProgram, ones};
use crate::parser::frames::Frames;
use crate::parser::mask::{is_in_string, state_key};
use crate::parser::row::Row;
use crate::parser::stack::{Register, Resume, Top};
use crate::parser::thread::Thread;
use crate::program::network::{ScopeId, Values};
use crate::tuning::tuning;
use crate::value;

/// Maximum length of the written part of a value, perhaps with what precedes it.
const MAX_WRITTEN_BYTES: usize = 64;

/// The position at the end of the text.
struct Place {
    /// Whether it is inside a string.
    in_string: bool,
    /// Whether it may be inside a value that must be new.
    in_value: bool,
}

/// A mask, and the state by which to correct it.
pub(crate) struct DistinctFilter<'m> {
    trial: Trial<'m>,
    row: &'m mut dyn Row,
    /// Tokens already checked for dead ends, and tokens already tried. PERF: where a scope holds a thousand numbers,
    /// the same few tokens are on the way to many of them.
    checked_for_exit: FxHashSet<u32>,
    tried: FxHashSet<u32>,
    /// Tokens that were added.
    added: Vec<u32>,
}

impl<'m> DistinctFilter<'m> {
    pub(crate) fn new(trial: Trial<'m>, row: &'m mut dyn Row) -> Self {
        let (checked_for_exit, tried) = (FxHashSet::default(), FxHashSet::default());
        Self { trial, row, checked_for_exit, tried, added: Vec::new() }
    }
}

impl DistinctFilter<'_> {
    /// Corrects the mask. `several` are its tokens that contain more than one value.
    pub(crate) fn apply(&mut self, several: &[u32]) {
        let program = self.trial.bound.program();
        let mut open: SmallVec<[(ScopeId, Register); 8]> = SmallVec::new();
        self.open_scopes(&mut open);
        // Values are JSON, and in JSON all threads agree whether the text ends inside a string.
        let in_string = self.trial.threads.iter().any(|thread| is_in_string(program, thread));
        if open.iter().any(|(_, register)| !register.may_close()) {
            self.add_key_closers(in_string);
        }
        self.keep_alive(several);
        let has_dead_ends = program.may_run_out() && program.open().has_dead_ends();
        if program.may_run_out() {
            // A scope may begin in the token.
            let whole = self.trial.bound.library().value_tokens();
            let openers = if has_dead_ends { &whole.openers } else { &whole.opened_commas };
            self.remove_dead_ends(openers.at(in_string));
        }
        // A mask does not see that a value may require another one before its scope may close.
        let has_needs = open.iter().any(|(index, _)| program.scope(*index).has_listed_needs());
        if !has_needs
            && open.iter().all(|(index, register)| {
                register.is_empty() && program.scope(*index).values == Values::Endless
            })
        {
            return;
        }
        let may_be_value = |thread: &Thread| thread.is_in_network() || self.ends_in_check(thread);
        let in_value = !in_string || self.trial.threads.iter().any(may_be_value);
        let place = Place { in_string, in_value };
        // The first value of a scope is always new and has a way out after it, unless the scope may not close without
        // another. Where a value may be a dead end, even the first one may be.
        let is_first = |index: ScopeId, register: Register| {
            register.is_empty() && register.may_close() && !program.open().may_have_dead_ends(index)
        };
        let is_finite = |&(index, register): &(ScopeId, Register)| {
            let values = program.scope(index).values;
            // PERF: finding such scopes takes a look at the whole program, and most programs have endless values
            // only.
            values != Values::Endless
                && !is_first(index, register)
                && (values == Values::Nested || self.scope_may_run_out(index, register, &place))
        };
        if has_needs {
            return self.try_each(in_string);
        }
        let finite: SmallVec<[(ScopeId, Register); 8]> =
            open.iter().filter(|scope| is_finite(scope)).copied().collect();
        if !finite.is_empty() {
            let bracketed = self.trial.bracketed_scopes();
            if !finite.iter().all(|scope| bracketed.contains(scope)) {
                return self.try_each(in_string);
            }
            open.retain(|scope| !bracketed.contains(scope));
            // A thread may be in a word of an enumeration, which is not a string leaf.
            let in_strings = self.trial.threads.iter().all(|thread| is_in_string(program, thread));
            self.remove_dead_ends(self.trial.bound.library().value_tokens().closers.at(in_strings));
        }
        let may_end_badly = |index: ScopeId| {
            program.scope(index).is_mixed || has_dead_ends && program.open().may_have_dead_ends(index)
        };
        if open.iter().any(|(index, _)| may_end_badly(*index)) {
            self.keep_value_ends(in_string);
        }
        let mut begun = false;
        for (index, register) in open {
            // The current value can be extended far, but a token may end it and begin another value that cannot be new.
            let may_begin = match program.scope(index).values {
                Values::Endless => false,
                _ if register.is_empty() => true,
                Values::Simple | Values::Nested => self.may_repeat(register, &place),
                Values::Integers | Values::Long(_) => false,
            };
            if may_begin && !begun {
                self.keep_commas(in_string);
                begun = true;
            }
            if program.scope(index).values == Values::Integers && !in_string {
                // The only integer that cannot be extended. It may have been seen, or be the one that is being written.
                self.remove_dead_ends(&self.trial.bound.library().value_tokens().zeros);
            }
            if !register.is_empty() {
                self.filter_scope(register, &place);
            }
        }
    }

    /// Returns the tokens that were added, which the parts of the mask do not contain.
    pub(crate) fn into_added(self) -> Vec<u32> {
        self.added
    }

    /// Checks whether some token may leave no new value for a scope.
    fn scope_may_run_out(&self, index: ScopeId, register: Register, place: &Place) -> bool {
        let program = self.trial.bound.program();
        // Where a value may be a dead end, it must also differ from the words that have to follow it.
        let words = if program.open().may_have_dead_ends(index) {
            program.network().followed_words().len()
        } else {
            0
        };
        let seen = self.trial.registers.count(register) + words;
        // Either the current value is the only one for a while (`in_long`), or a new one begins after it.
        let in_long = place.in_string && place.in_value;
        let has_more_values_after_token =
            || self.trial.threads.iter().all(|thread| self.trial.has_more_values_after_token(thread, seen));
        match program.scope(index).values {
            Values::Endless => false,
            // Zero cannot be extended, and other integers not forever.
            Values::Integers => self.trial.threads.iter().any(|thread| {
                let is_integer = |(leaf, _)| program.leaf(leaf).is_integers();
                thread.leaf().is_some_and(is_integer)
                    && !program.live_at(thread.at).is_empty()
                    && !self.trial.has_more_values_after_token(thread, seen)
            }),
            Values::Long(Reverse(room)) => {
                (room as usize) <= seen + 1 + self.trial.bound.horizon() as usize
                    || in_long && !has_more_values_after_token()
            }
            Values::Simple | Values::Nested => !(in_long && has_more_values_after_token()),
        }
    }

    /// Checks whether a value after a comma in the next token may repeat a seen value or the current one.
    fn may_repeat(&self, register: Register, place: &Place) -> bool {
        let is_written = if place.in_string {
            place.in_value
        } else {
            let is_scalar = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'"';
            self.trial.text.last().is_some_and(is_scalar) || self.may_be_in_word()
        };
        self.trial.registers.summary(register).simple || is_written
    }

    /// Checks whether the text may end inside a string, that is, whether its last quote may be an opening one. Words of
    /// an enumeration are not leaves, so threads do not show it.
    fn may_be_in_word(&self) -> bool {
        let Some(quote) = value::opening_quote(self.trial.text, MAX_WRITTEN_BYTES) else {
            return self.trial.text.len() > MAX_WRITTEN_BYTES;
        };
        let before = self.trial.text[..quote].trim_ascii_end().last();
        before.is_none_or(|byte| matches!(byte, b'{' | b'[' | b',' | b':'))
    }

    /// Keeps only tokens with a way out: values may run out.
    fn try_each(&mut self, in_string: bool) {
        let program = self.trial.bound.program();
        if let [thread] = self.trial.threads
            && thread.leaf().is_some_and(|(leaf, _)| program.leaf(leaf).is_string())
            && !self.trial.may_be_checked(thread)
            && !self.trial.arena.forks(thread.stack)
        {
            // This string is not part of a value that must be new, and there is only one thread. So whatever ends the
            // string has a way out, as the text has one now, until another value must follow.
            return self.keep_commas(in_string);
        }
        let place = self.place_in_free_string();
        if let Some(out) = place.as_ref().and_then(|place| self.trial.searches.tokens.at(place)) {
            return out.iter().for_each(|&token| self.row.set(token, false));
        }
        let safe = if in_string || self.may_be_in_word() { self.trial.safe_tokens() } else { None };
        let tokens: Vec<u32> = match safe {
            Some(safe) => ones(self.row.words().iter().zip(safe).map(|(word, safe)| word & !safe)).collect(),
            None => self.allowed(),
        };
        let out = self.keep_each(tokens);
        if let Some(place) = place {
            self.trial.searches.tokens.learn(place, out);
        }
    }

    /// Removes the tokens that lead to a dead end, and returns them.
    fn keep_each(&mut self, mut tokens: Vec<u32>) -> Vec<u32> {
        let mut out = Vec::new();
        if tokens.is_empty() {
            return out;
        }
        let bound = self.trial.bound;
        let order = bound.library().token_order();
        // Longer texts before their prefixes.
        tokens.sort_unstable_by_key(|&token| Reverse(order.place(token)));
        let mut of = tokens.iter();
        let texts = tokens.iter().map(|&token| bound.vocabulary().spelling(TokenId(token)));
        self.trial.each_has_exit(texts, |has_exit| out.extend(of.next().filter(|_| !has_exit)));
        for &token in &out {
            self.row.set(token, false);
        }
        out
    }

    /// Removes tokens that end a value and lead to a dead end. It is for scopes in which something else may need any
    /// value. Inside a string, only tokens with a quote end it.
    fn keep_value_ends(&mut self, in_string: bool) {
        let ends =
            if in_string { tokens_with(self.row.words(), self.trial.bound, b'"') } else { self.allowed() };
        self.remove_dead_ends(&ends);
    }

    fn allowed(&self) -> Vec<u32> {
        ones(self.row.words().iter().copied()).collect()
    }

    /// Tries every token, as a reference. If only endless strings have to differ, nothing can happen before a quote.
    pub(crate) fn try_all(&mut self) {
        let may_run_out = self.trial.bound.program().may_run_out();
        let is_numbered = self.trial.bound.vocabulary().is_numbered();
        for (token, bytes) in self.trial.bound.vocabulary().spelled() {
            if !may_run_out && !bytes.contains(&b'"') {
                continue;
            }
            let mut is_right = |bytes: &[u8]| {
                if may_run_out { self.trial.has_exit_after(bytes) } else { self.trial.is_alive_after(bytes) }
            };
            let is_right = is_right(bytes) || is_numbered && is_right(&number_spelling(token));
            if is_right {
                self.allow(token.0);
            } else {
                self.forbid(token.0);
            }
        }
    }

    /// Collects all open scopes, the innermost first.
    fn open_scopes(&mut self, open: &mut SmallVec<[(ScopeId, Register); 8]>) {
        let stacks = self.trial.threads.iter().map(|thread| thread.stack);
        let mut frames = Frames::of(self.trial.arena, stacks);
        while let Some((frame, below)) = frames.next() {
            if !self.trial.buffers.meter.spend(1) {
                break;
            }
            if let Resume::Scope { index, register } = frame.resume()
                && !open.contains(&(index, register))
            {
                open.push((index, register));
            }
            frames.follow(below);
        }
    }

    fn filter_scope(&mut self, register: Register, place: &Place) {
        let whole = self.trial.bound.library().value_tokens();
        let summary = self.trial.registers.summary(register);
        if summary.in_token {
            let forms: Vec<Vec<u8>> =
                self.trial.registers.forms_in_tokens(register).map(<[u8]>::to_vec).collect();
            for form in forms {
                self.keep_alive(whole.tokens_with(&form).unwrap_or_default());
            }
        }
        let in_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        if !place.in_string && summary.unquoted && self.trial.text.last().is_some_and(in_number) {
            self.keep_alive(&whole.number_ends);
        }
        if place.in_value {
            self.filter_string(register, summary.longest as usize);
        }
        if summary.nested && self.may_be_nested(register, place.in_string) {
            self.keep_alive(whole.closers.at(place.in_string));
        }
    }

    /// Checks whether the leaf of a thread is a value that must be new.
    fn ends_in_check(&self, thread: &Thread) -> bool {
        let mut stack = thread.stack;
        loop {
            let Top::Frame(frame, below) = self.trial.arena.top(stack) else { return true };
            match frame.resume() {
                Resume::At(state) => return self.trial.is_check(state),
                Resume::Finish => return false,
                // The value may end further below.
                Resume::Loop { .. } | Resume::Scope { .. } | Resume::Words { .. } | Resume::Limit { .. } => {
                    stack = below;
                }
            }
        }
    }

    /// Removes tokens that complete the current string to one that was seen.
    fn filter_string(&mut self, register: Register, longest: usize) {
        let Some(quote) = self.trial.quote(longest) else { return };
        let (typed, is_whole) = value::prefix(&self.trial.text[quote + 1..]);
        if is_whole && self.trial.registers.count(register) > tuning().scope_values {
            return self.filter_suffixes(register, &typed);
        }
        let matching: Vec<Vec<u8>> = self
            .trial
            .registers
            .forms(register)
            .filter(|form| form.starts_with(&typed))
            .map(<[u8]>::to_vec)
            .collect();
        if matching.is_empty() {
            return;
        }
        let bound = self.trial.bound;
        let trie = bound.vocabulary().trie();
        let whole = bound.library().value_tokens();
        if !is_whole {
            // The text ends inside an escape, or inside a character.
            let quoted = tokens_with(self.row.words(), bound, b'"');
            for form in &matching {
                self.keep_unless_equal(quote, form, &quoted);
            }
            return;
        }
        for form in &matching {
            self.filter_path(trie, &form[typed.len()..]);
            self.keep_alive(whole.escaped(&form[typed.len()..]));
        }
    }

    /// Does the same for a scope with many values: looks up each ending that a token can write, instead of each value.
    fn filter_suffixes(&mut self, register: Register, typed: &[u8]) {
        let bound = self.trial.bound;
        let (trie, whole) = (bound.vocabulary().trie(), bound.library().value_tokens());
        let mut form = typed.to_vec();
        for rest in &whole.rests {
            form.truncate(typed.len());
            form.extend_from_slice(rest);
            if self.trial.registers.has(register, &form) {
                self.filter_path(trie, rest);
                self.keep_alive(whole.escaped(rest));
            }
        }
    }

    /// Tries the tokens that would write exactly this value and its quote.
    fn keep_unless_equal(&mut self, quote: usize, form: &[u8], tokens: &[u32]) {
        for &token in tokens.iter().filter(|token| self.allows(**token)).collect::<Vec<_>>() {
            let bytes = self.trial.bound.vocabulary().spelling(TokenId(token));
            let (mut written, _) = value::prefix(&[&self.trial.text[quote + 1..], bytes].concat());
            written.push(b'"');
            if written == form {
                self.keep_if_alive(token);
            }
        }
    }

    /// Follows the trie along the rest of a string. If no thread survives that rest, all tokens below are removed; if
    /// the value is not new to some thread, they are tried one by one.
    fn filter_path(&mut self, trie: &Trie, rest: &[u8]) {
        let mut node = Trie::ROOT;
        for &byte in rest {
            let Some(child) = trie.child(node, byte) else { return };
            node = child;
        }
        let below = self.trial.bound.library().tokens_below(node);
        if !below.iter().any(|token| self.allows(*token)) {
            return;
        }
        let refused = self.trial.registers.refused();
        if self.trial.is_alive_after(rest) {
            // Otherwise the value belongs to another scope, like the key of a nested object, and is new to every
            // thread.
            if self.trial.registers.refused() > refused {
                self.keep_alive(&below);
            }
        } else {
            for &token in below.iter() {
                self.forbid(token);
            }
        }
    }

    /// Checks whether the array or object that is being written may become one that was seen. Equal values contain
    /// equal strings, so every complete string in it must occur there.
    fn may_be_nested(&self, register: Register, in_string: bool) -> bool {
        if self.trial.registers.count(register) > tuning().scope_values {
            return true;
        }
        let quote = if in_string { value::opening_quote(self.trial.text, usize::MAX) } else { None };
        let strings = open_strings(&self.trial.text[..quote.unwrap_or(self.trial.text.len())]);
        let mut forms = self.trial.registers.forms(register).filter(|form| value::is_nested(form));
        forms.any(|form| strings.iter().all(|string| contains(form, string)))
    }

    /// Adds tokens that end a key and close the object at once.
    fn add_key_closers(&mut self, in_string: bool) {
        let bound = self.trial.bound;
        let live = self.trial.attempt(|trial, threads| trial.live(threads));
        for &token in bound.library().value_tokens().key_closers.at(in_string) {
            let bytes = bound.vocabulary().spelling(TokenId(token));
            let may_come = bytes.first().is_some_and(|&byte| live.contains(byte)) && !self.allows(token);
            if may_come && self.trial.is_alive_after(bytes) {
                self.allow(token);
            }
        }
    }

    /// Removes the tokens that no thread survives.
    fn keep_alive(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.keep_if_alive(token);
        }
    }

    /// Removes the tokens that lead to a dead end.
    fn remove_dead_ends(&mut self, tokens: &[u32]) {
        let new = tokens.iter().filter(|token| self.allows(**token)).copied().collect::<Vec<u32>>();
        let new = new.into_iter().filter(|token| self.checked_for_exit.insert(*token)).collect();
        self.keep_each(new);
    }

    /// Removes the tokens that end a value, begin another, and lead to a dead end.
    fn keep_commas(&mut self, in_string: bool) {
        let commas = self.trial.bound.library().value_tokens().commas.at(in_string);
        let Some(place) = self.place_in_free_string() else { return self.remove_dead_ends(commas) };
        if let Some(out) = self.trial.searches.commas.at(&place) {
            return out.iter().for_each(|&token| self.row.set(token, false));
        }
        let before: Vec<u32> = commas.iter().copied().filter(|&token| self.allows(token)).collect();
        self.remove_dead_ends(commas);
        let out = before.into_iter().filter(|&token| !self.allows(token)).collect();
        self.trial.searches.commas.learn(place, out);
    }

    /// Returns the position if all threads are in strings that are not part of a value that must be new.
    fn place_in_free_string(&self) -> Option<dead_end_cache::Place> {
        let trial = &self.trial;
        let is_free = |thread| is_in_string(trial.bound.program(), thread) && !trial.may_be_checked(thread);
        let place = |thread| is_free(thread).then(|| (state_key(trial.bound, thread), thread.stack));
        trial
            .threads
            .iter()
            .map(place)
            .collect::<Option<dead_end_cache::Place>>()
            .filter(|place| !place.is_empty())
    }

    fn allows(&self, token: u32) -> bool {
        self.row.words()[token as usize / 32] >> (token % 32) & 1 == 1
    }

    fn allow(&mut self, token: u32) {
        if !self.allows(token) {
            self.added.push(token);
            self.row.set(token, true);
        }
    }

    fn forbid(&mut self, token: u32) {
        self.row.set(token, false);
    }

    /// Removes a token from the mask if no thread survives it.
    fn keep_if_alive(&mut self, token: u32) {
        if self.allows(token)
            && self.tried.insert(token)
            && !self.trial.is_alive_after(self.trial.bound.vocabulary().spelling(TokenId(token)))
        {
            self.forbid(token);
        }
    }
}

/// Returns the tokens of a mask that contain a byte.
fn tokens_with(words: &[u32], bound: &BoundProgram, byte: u8) -> Vec<u32> {
    let with = bound.library().bytes().with(byte);
    ones(words.iter().zip(with).map(|(word, with)| word & with)).collect()
}

/// Returns the forms of the complete strings in the array or object that a text ends in. The text must not end in a
/// string.
fn open_strings(text: &[u8]) -> Vec<Vec<u8>> {
    let mut strings = Vec::new();
    let (mut at, mut open) = (text.len(), 0usize);
    while at > 0 {
        at -= 1;
        match text[at] {
            b'"' => {
                let Some(start) = value::opening_quote(&text[..at], usize::MAX) else { return Vec::new() };
                strings.extend(value::ending(&text[start..=at]));
                at = start;
            }
            b'}' | b']' => open += 1,
            b'{' | b'[' if open == 0 => return strings,
            b'{' | b'[' => open -= 1,
            _ => {}
        }
    }
    strings
}

fn contains(form: &[u8], string: &[u8]) -> bool {
    form.windows(string.len()).any(|window| window == string)
}
