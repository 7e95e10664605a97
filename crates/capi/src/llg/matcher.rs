//! `LlgMatcher`: the state of one text, with persistent errors.

use core::ffi::c_char;
use core::ptr;
use std::ffi::CString;

use maskwright::TokenId;
use maskwright::backend::Status as Place;

use super::ConstraintInit;
use super::source::read_source;
use super::tokenizer::Tokenizer;
use crate::guard::{catch, discard};
use crate::matcher::Matcher as Inner;
use crate::pointer::{Given, Mut, Owned, Ref};
use crate::status::{Failure, Status};
use crate::vocabulary::numbers;

/// `LlgMatcher`.
#[derive(Debug)]
pub struct Matcher {
    /// The engine's matcher; `None` if the grammar was invalid.
    inner: Option<Inner>,
    /// The first error, which persists.
    error: Option<CString>,
    mask: Vec<u32>,
    /// Whether the mask belongs to the current state.
    has_mask: bool,
    /// The tokens so far.
    tokens: Vec<TokenId>,
    /// The number of tokens that came after the end.
    surplus: usize,
}

/// Creates a matcher for a grammar. It always returns one, which may contain an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_matcher(
    init: Ref<'_, ConstraintInit<'_>>,
    constraint_type: Ref<'_, c_char>,
    data: Ref<'_, c_char>,
) -> Given<Matcher> {
    let texts = || Ok((constraint_type.c_text("constraint_type")?, data.c_text("data")?));
    Given::new(Matcher::new(init, texts))
}

/// Computes the mask into the caller's words.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_compute_mask_into(
    matcher: Mut<'_, Matcher>,
    mask_dest: Mut<'_, u32>,
    mask_byte_len: usize,
) -> i32 {
    run(matcher, |matcher| {
        let bytes = matcher.mask_bytes();
        if mask_byte_len != bytes {
            return Err(Failure::argument(format!("mask_byte_len is {mask_byte_len} and must be {bytes}")));
        }
        let mut target = mask_dest.room("mask_dest", bytes / 4)?;
        // This call does not make a mask available to `llg_matcher_get_mask`, but a failure invalidates a stored one.
        let mut mask = core::mem::take(&mut matcher.mask);
        let filled = matcher.fill(&mut mask);
        matcher.mask = mask;
        matcher.has_mask &= filled.is_ok();
        filled?;
        target.write(0, &matcher.mask);
        Ok(0)
    })
}

/// Computes and stores the mask.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_compute_mask(matcher: Mut<'_, Matcher>) -> i32 {
    run(matcher, |matcher| matcher.compute_mask().map(|_| 0))
}

/// Returns the stored mask if it belongs to the current state, or null.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_mask(matcher: Mut<'_, Matcher>) -> *const u32 {
    match matcher.get("matcher") {
        Ok(matcher) if matcher.has_mask && matcher.error.is_none() => matcher.mask.as_ptr(),
        _ => ptr::null(),
    }
}

/// Returns the size of a mask in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_mask_byte_size(matcher: Ref<'_, Matcher>) -> usize {
    matcher.get("matcher").map_or(0, Matcher::mask_bytes)
}

/// Accepts a token.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_consume_token(matcher: Mut<'_, Matcher>, token: u32) -> i32 {
    run(matcher, |matcher| matcher.consume(TokenId(token)).map(|()| 0))
}

/// Accepts some tokens.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_consume_tokens(
    matcher: Mut<'_, Matcher>,
    tokens: Ref<'_, u32>,
    n_tokens: usize,
) -> i32 {
    run(matcher, |matcher| {
        for token in tokens.list("tokens", n_tokens)? {
            matcher.consume(TokenId(*token))?;
        }
        Ok(0)
    })
}

/// Returns the error, or null.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_error(matcher: Mut<'_, Matcher>) -> *const c_char {
    match matcher.get("matcher") {
        Ok(matcher) => matcher.error_text(),
        Err(_) => c"matcher is null".as_ptr(),
    }
}

/// Returns whether there is an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_error(matcher: Ref<'_, Matcher>) -> bool {
    matcher.get("matcher").map_or(true, |matcher| matcher.error.is_some())
}

/// Frees a matcher.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_matcher(matcher: Owned<Matcher>) {
    discard(matcher);
}

/// Undoes the last tokens.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_rollback(matcher: Mut<'_, Matcher>, num_tokens: usize) -> i32 {
    run(matcher, |matcher| matcher.rollback(num_tokens).map(|()| 0))
}

/// Returns to the beginning.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_reset(matcher: Mut<'_, Matcher>) -> i32 {
    run(matcher, |matcher| {
        matcher.rollback(matcher.tokens.len())?;
        Ok(0)
    })
}

/// Returns whether the text is complete.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_accepting(matcher: Mut<'_, Matcher>) -> bool {
    matcher.get("matcher").is_ok_and(|matcher| matcher.place().is_ok_and(|place| place >= Place::Accepting))
}

/// Returns whether only the end can follow, or there is an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_stopped(matcher: Mut<'_, Matcher>) -> bool {
    matcher.get("matcher").map_or(true, Matcher::is_stopped)
}

/// Returns how many of some tokens could be accepted, or −1.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_validate_tokens(
    matcher: Mut<'_, Matcher>,
    tokens: Ref<'_, u32>,
    n_tokens: usize,
) -> i32 {
    run(matcher, |matcher| {
        let taken = matcher.working()?.validate(&tokens.tokens("tokens", n_tokens)?)?;
        Ok(i32::try_from(taken).unwrap_or(i32::MAX))
    })
}

/// Writes the tokens that must come next; returns how many were written, or −1.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_compute_ff_tokens(
    matcher: Mut<'_, Matcher>,
    output: Mut<'_, u32>,
    output_len: usize,
) -> i32 {
    run(matcher, |matcher| {
        let mut output = output.room("output", output_len)?;
        let forced = numbers(&matcher.forced()?);
        let written = forced.len().min(output.len());
        output.write(0, &forced[..written]);
        Ok(i32::try_from(written).unwrap_or(i32::MAX))
    })
}

/// Creates an independent matcher in the same state.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_matcher(matcher: Ref<'_, Matcher>) -> Given<Matcher> {
    let copy = catch(|| Ok(matcher.get("matcher")?.copy()));
    Given::new(copy.unwrap_or_else(|failure| Matcher::failed(&failure)))
}

impl Matcher {
    /// Creates a matcher for a grammar, given as a type and a text.
    pub(super) fn new<'c>(
        init: Ref<'_, ConstraintInit<'_>>,
        texts: impl FnOnce() -> Result<(&'c str, &'c str), Failure>,
    ) -> Self {
        let started = catch(|| {
            let (kind, data) = texts()?;
            let tokenizer = init.get("init")?.tokenizer()?;
            Self::start(tokenizer, kind, data)
        });
        started.unwrap_or_else(|failure| Self::failed(&failure))
    }

    fn start(tokenizer: &Tokenizer, kind: &str, data: &str) -> Result<Self, Failure> {
        let inner = Inner::new(&tokenizer.compiler().compile(&read_source(kind, data)?)?);
        let words = tokenizer.vocabulary().tokens.size().div_ceil(32);
        let (mask, tokens) = (vec![0; words], Vec::new());
        Ok(Self { inner: Some(inner), error: None, mask, has_mask: false, tokens, surplus: 0 })
    }

    pub(super) fn failed(failure: &Failure) -> Self {
        let mut matcher = Self {
            inner: None,
            error: None,
            mask: Vec::new(),
            has_mask: false,
            tokens: Vec::new(),
            surplus: 0,
        };
        matcher.fail(failure);
        matcher
    }

    pub(super) fn copy(&self) -> Self {
        let inner = self.inner.as_ref().map(Inner::fork).transpose();
        inner.map_or_else(
            |failure| Self::failed(&failure),
            |inner| Self {
                inner,
                error: self.error.clone(),
                mask: vec![0; self.mask.len()],
                has_mask: false,
                tokens: self.tokens.clone(),
                surplus: self.surplus,
            },
        )
    }

    pub(super) fn error_text(&self) -> *const c_char {
        self.error.as_ref().map_or(ptr::null(), |error| error.as_ptr())
    }

    fn mask_bytes(&self) -> usize {
        self.mask.len() * 4
    }

    pub(super) fn is_stopped(&mut self) -> bool {
        self.place().map_or(true, |place| place >= Place::Stopped)
    }

    fn place(&mut self) -> Result<Place, Failure> {
        let inner = self.working()?;
        catch(|| inner.place())
    }

    pub(super) fn compute_mask(&mut self) -> Result<&[u32], Failure> {
        let mut mask = core::mem::take(&mut self.mask);
        let filled = self.fill(&mut mask);
        self.mask = mask;
        self.has_mask = filled.is_ok();
        filled.map(|()| &*self.mask)
    }

    /// Writes the mask. After the end it allows only the end.
    fn fill(&mut self, words: &mut [u32]) -> Result<(), Failure> {
        let inner = self.working()?;
        inner.fill_words(words)?;
        if inner.is_terminated()? {
            for token in inner.vocabulary().tokens.eos() {
                if let Some(word) = words.get_mut(token.index() / 32) {
                    *word |= 1 << (token.0 % 32);
                }
            }
        }
        Ok(())
    }

    pub(super) fn consume(&mut self, token: TokenId) -> Result<(), Failure> {
        self.has_mask = false;
        let inner = self.working()?;
        if let Err(failure) = inner.accept(token) {
            let is_end = inner.vocabulary().tokens.eos().contains(&token);
            if !is_end || !inner.is_terminated()? {
                return Err(failure);
            }
            self.surplus += 1;
        }
        self.tokens.push(token);
        Ok(())
    }

    fn rollback(&mut self, count: usize) -> Result<(), Failure> {
        self.has_mask = false;
        let surplus = self.surplus.min(count);
        self.working()?.rollback(count - surplus)?;
        self.surplus -= surplus;
        self.tokens.truncate(self.tokens.len().saturating_sub(count));
        Ok(())
    }

    pub(super) fn forced(&mut self) -> Result<Vec<TokenId>, Failure> {
        let tokens = core::mem::take(&mut self.tokens);
        let forced = self.working().and_then(|inner| inner.forced_tokens(&tokens));
        self.tokens = tokens;
        forced
    }

    fn working(&mut self) -> Result<&mut Inner, Failure> {
        match &mut self.inner {
            Some(inner) if self.error.is_none() => Ok(inner),
            _ => Err(Failure::new(Status::Internal, "there was an error before")),
        }
    }

    /// Runs a function. The first error persists.
    fn attempt<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R, Failure>) -> Option<R> {
        let result = catch(|| body(self));
        result.map_err(|failure| self.fail(&failure)).ok()
    }

    pub(super) fn fail(&mut self, failure: &Failure) {
        if self.error.is_none() {
            let text = failure.to_string().replace('\0', "\u{FFFD}");
            // All zeros were replaced, so this cannot fail.
            self.error = Some(CString::new(text).unwrap_or_default());
        }
    }
}

fn run(matcher: Mut<'_, Matcher>, body: impl FnOnce(&mut Matcher) -> Result<i32, Failure>) -> i32 {
    matcher.get("matcher").ok().and_then(|matcher| matcher.attempt(body)).unwrap_or(-1)
}
