//! The state of one text.

use core::ffi::c_char;

use maskwright::backend::Status as Place;
use maskwright::{Budget, DRAFT_ROOT, DraftTree, MatchError, TokenHealing, TokenId, service};
use serde_json::json;

use crate::compiler::CompiledConstraint;
use crate::guard::{Whole, discard, guard, write_list, write_whole};
use crate::pointer::{Given, Mut, Out, Owned, Ref, Room};
use crate::status::{Failure, Status};
use crate::vocabulary::{Vocabulary, check_token, numbers};

/// The maximum number of forced bytes that one call computes.
pub(crate) const FORCED_BYTES: usize = 1_024;

/// `MW_ROOT`.
const ROOT: u32 = u32::MAX;

/// `MW_NO_BUDGET`.
const NO_BUDGET: u32 = u32::MAX;

/// `mw_matcher`: the state of one text.
#[derive(Debug)]
pub struct Matcher {
    inner: Whole<service::Matcher>,
    vocabulary: Vocabulary,
}

/// Creates a matcher at the beginning of a text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_new(
    constraint: Ref<'_, CompiledConstraint>,
    matcher: Out<'_, Given<Matcher>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?.write(Given::none());
        *matcher = Given::new(Matcher::new(constraint.get("constraint")?));
        Ok(())
    })
}

/// Creates an independent matcher in the same state, with the same history.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_fork(
    matcher: Ref<'_, Matcher>,
    copy: Out<'_, Given<Matcher>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let copy = copy.get("copy")?.write(Given::none());
        *copy = Given::new(matcher.get("matcher")?.fork()?);
        Ok(())
    })
}

/// Writes the mask.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_fill_mask(
    matcher: Mut<'_, Matcher>,
    words: Mut<'_, u32>,
    word_count: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        matcher.fill_mask(&mut words.room("words", word_count)?, false).map(drop)
    })
}

/// Accepts a token.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_accept(
    matcher: Mut<'_, Matcher>,
    token: u32,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || matcher.get("matcher")?.accept(TokenId(token)))
}

/// Accepts some tokens, all or none.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_accept_tokens(
    matcher: Mut<'_, Matcher>,
    tokens: Ref<'_, u32>,
    token_count: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        matcher.accept_all(tokens.list("tokens", token_count)?)
    })
}

/// Accepts some bytes, as one step.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_accept_bytes(
    matcher: Mut<'_, Matcher>,
    bytes: Ref<'_, u8>,
    byte_count: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        let bytes = bytes.list("bytes", byte_count)?;
        matcher.engine(|engine| engine.accept_bytes(bytes).map_err(Failure::from))
    })
}

/// Counts how many of some tokens could be accepted, one after the other.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_validate(
    matcher: Mut<'_, Matcher>,
    tokens: Ref<'_, u32>,
    token_count: usize,
    accepted: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let accepted = accepted.get("accepted")?.write(0);
        *accepted = matcher.get("matcher")?.validate(&tokens.tokens("tokens", token_count)?)?;
        Ok(())
    })
}

/// Writes the masks after guessed tokens that form a chain.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_fill_draft_chain(
    matcher: Mut<'_, Matcher>,
    tokens: Ref<'_, u32>,
    token_count: usize,
    words: Mut<'_, u32>,
    stride: usize,
    allowed: Mut<'_, u8>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let tree = DraftTree::chain(&tokens.tokens("tokens", token_count)?);
        matcher.get("matcher")?.fill_draft(&tree, words, stride, allowed)
    })
}

/// Does the same for a tree, given by the parents of its tokens.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_fill_draft_tree(
    matcher: Mut<'_, Matcher>,
    tokens: Ref<'_, u32>,
    parents: Ref<'_, u32>,
    token_count: usize,
    words: Mut<'_, u32>,
    stride: usize,
    allowed: Mut<'_, u8>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let parents: Vec<u32> = parents
            .list("parents", token_count)?
            .iter()
            .map(|parent| if *parent == ROOT { DRAFT_ROOT } else { *parent })
            .collect();
        let tree = DraftTree::from_parents(&tokens.tokens("tokens", token_count)?, &parents)
            .map_err(|error| Failure::new(Status::Argument, error.to_string()))?;
        matcher.get("matcher")?.fill_draft(&tree, words, stride, allowed)
    })
}

/// Undoes the last steps.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_rollback(
    matcher: Mut<'_, Matcher>,
    steps: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || matcher.get("matcher")?.rollback(steps))
}

/// Returns to the beginning of the text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_reset(
    matcher: Mut<'_, Matcher>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || matcher.get("matcher")?.reset())
}

/// Returns whether the text is complete, and whether it can continue.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_state(
    matcher: Mut<'_, Matcher>,
    state: Out<'_, u32>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let state = state.get("state")?.write(0);
        *state = match matcher.get("matcher")?.place()? {
            Place::Open => 0,
            Place::Accepting => 1,
            Place::Stopped => 2,
            Place::Terminated => 3,
        };
        Ok(())
    })
}

/// Allows from now on only what can be completed in time.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_set_budget(
    matcher: Mut<'_, Matcher>,
    tokens: u32,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let budget = (tokens != NO_BUDGET).then_some(Budget::new(tokens));
        matcher.get("matcher")?.engine(|engine| engine.set_budget(budget).map_err(Failure::from))
    })
}

/// Returns the bytes that must come next in every complete text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_forced_bytes(
    matcher: Mut<'_, Matcher>,
    bytes: Mut<'_, u8>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        let limit = capacity.min(FORCED_BYTES);
        let forced = matcher.engine(|engine| Ok(engine.forced_bytes(limit)))?;
        write_list(&forced, bytes, capacity, length, "bytes")
    })
}

/// Returns the tokens that the tokenizer itself has next in every complete text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_forced_tokens(
    matcher: Mut<'_, Matcher>,
    before: Ref<'_, u32>,
    before_count: usize,
    tokens: Mut<'_, u32>,
    capacity: usize,
    count: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        let before = before.tokens("before", before_count)?;
        let mut forced = matcher.forced_tokens(&before)?;
        // Every prefix of forced tokens is forced, too.
        forced.truncate(capacity);
        write_list(&numbers(&forced), tokens, capacity, count, "tokens")
    })
}

/// Returns everything that must come next, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_forced(
    matcher: Mut<'_, Matcher>,
    before: Ref<'_, u32>,
    before_count: usize,
    forced: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matcher = matcher.get("matcher")?;
        let before = before.tokens("before", before_count)?;
        let tokens = matcher.forced_tokens(&before)?;
        let text = matcher.engine(|engine| Ok(engine.forced_text(FORCED_BYTES)))?;
        let told = json!({"completes": text.completes, "text": text.text, "tokens": numbers(&tokens)});
        write_whole(&told.to_string(), forced, capacity, length)
    })
}

/// Returns the minimum number of tokens that complete the text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_shortest_completion(
    matcher: Mut<'_, Matcher>,
    tokens: Out<'_, u32>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let tokens = tokens.get("tokens")?.write(NO_BUDGET);
        let least = matcher.get("matcher")?.engine(|engine| Ok(engine.shortest_completion()))?;
        *tokens = least.unwrap_or(NO_BUDGET);
        Ok(())
    })
}

/// Frees a matcher.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_free(matcher: Owned<Matcher>) {
    discard(matcher);
}

impl Matcher {
    /// Creates a matcher at the beginning of a text.
    pub(crate) fn new(constraint: &CompiledConstraint) -> Self {
        let vocabulary = constraint.vocabulary.clone();
        Self { inner: Whole::new(constraint.inner.matcher()), vocabulary }
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(crate) fn fork(&self) -> Result<Self, Failure> {
        let inner = Whole::new(self.inner.get()?.fork());
        Ok(Self { inner, vocabulary: self.vocabulary.clone() })
    }

    /// Fills the mask inside the matcher, and copies it to the caller's words; with `keep`, only if it may have
    /// changed. Returns whether it may have changed.
    pub(crate) fn fill_mask(&mut self, room: &mut Room<'_, u32>, keep: bool) -> Result<bool, Failure> {
        let words = self.vocabulary.tokens.size().div_ceil(32);
        if room.len() < words {
            return Err(MatchError::MaskTooShort { words }.into());
        }
        self.inner.run(|inner| match inner.borrow_mask() {
            Ok((mask, has_changed)) => {
                if has_changed || !keep {
                    room.write(0, mask);
                    room.fill(mask.len(), 0);
                }
                Ok(has_changed)
            }
            Err(error) => {
                room.fill(0, 0);
                Err(error.into())
            }
        })
    }

    /// Fills the rows of a draft, and reports which of its tokens are allowed.
    fn fill_draft(
        &mut self,
        tree: &DraftTree,
        words: Mut<'_, u32>,
        stride: usize,
        allowed: Mut<'_, u8>,
    ) -> Result<(), Failure> {
        let need = self.vocabulary.tokens.size().div_ceil(32);
        if stride < need {
            return Err(MatchError::MaskTooShort { words: need }.into());
        }
        let rows = tree.rows();
        let Some(count) = rows.checked_mul(stride) else {
            return Err(Failure::new(Status::Argument, "there is no memory for this many rows"));
        };
        let mut room = words.room("words", count)?;
        let mut told = allowed.optional_room("allowed", rows - 1)?;
        let mut masks = vec![0; count];
        let may = self
            .engine(|engine| engine.fill_masks_for_tree(tree, &mut masks, stride).map_err(Failure::from))?;
        room.write(0, &masks);
        if let Some(told) = &mut told {
            let may: Vec<u8> = may.into_iter().map(u8::from).collect();
            told.write(0, &may);
        }
        Ok(())
    }

    /// Fills the mask into our own memory.
    pub(crate) fn fill_words(&mut self, words: &mut [u32]) -> Result<(), Failure> {
        self.inner.run(|inner| inner.fill_mask(words).map_err(Failure::from))
    }

    pub(crate) fn accept(&mut self, token: TokenId) -> Result<(), Failure> {
        check_token(token, &self.vocabulary.tokens)?;
        self.inner.run(|inner| {
            inner.accept(token).map_err(|error| Failure::from(error).about(&format!("token {token}")))
        })
    }

    pub(crate) fn accept_all(&mut self, tokens: &[u32]) -> Result<(), Failure> {
        for (taken, token) in tokens.iter().enumerate() {
            if let Err(failure) = self.accept(TokenId(*token)) {
                self.rollback(taken)?;
                return Err(failure.about(&format!("number {taken} of {}", tokens.len())));
            }
        }
        Ok(())
    }

    pub(crate) fn validate(&mut self, tokens: &[TokenId]) -> Result<usize, Failure> {
        self.inner.run(|inner| inner.validate(tokens).map_err(Failure::from))
    }

    pub(crate) fn rollback(&mut self, steps: usize) -> Result<(), Failure> {
        self.inner.run(|inner| inner.rollback(steps).map_err(Failure::from))
    }

    pub(crate) fn reset(&mut self) -> Result<(), Failure> {
        self.inner.run(|inner| {
            inner.reset();
            Ok(())
        })
    }

    pub(crate) fn place(&mut self) -> Result<Place, Failure> {
        self.inner.run(|inner| Ok(inner.status()))
    }

    /// Returns whether the end was accepted. This is less work than computing the state.
    pub(crate) fn is_terminated(&mut self) -> Result<bool, Failure> {
        self.engine(|engine| Ok(engine.is_terminated()))
    }

    pub(crate) fn forced_tokens(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, Failure> {
        let vocabulary = self.vocabulary.clone();
        // If the tokenizer cannot encode text, no token is certain.
        let encode = |text: &str| vocabulary.encode(text).ok();
        self.engine(|engine| {
            Ok(engine.forced_tokens(before, FORCED_BYTES, TokenHealing::Keep, &encode).tokens)
        })
    }

    /// Runs a function that needs our engine's matcher.
    pub(crate) fn engine<R>(
        &mut self,
        body: impl FnOnce(&mut maskwright::Matcher) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.inner.run(|inner| match inner.inner().as_engine() {
            Some(engine) => body(engine),
            None => Err(Failure::new(Status::Internal, "this is no matcher of our engine")),
        })
    }
}

#[cfg(test)]
mod tests {
    use maskwright::Options;
    use maskwright::service::Settings;

    use super::*;
    use crate::compiler::Compiler;
    use crate::guard::catch;
    use crate::vocabulary::{Encoder, TokenKind};

    #[test]
    fn a_matcher_in_which_something_panicked_refuses_to_go_on() {
        let tokens = [(TokenKind::Ordinary, &b"a"[..]), (TokenKind::Special, b"<end>")];
        let vocabulary = Vocabulary::build(&tokens, &[TokenId(1)], 0, Encoder::Unknown).unwrap();
        let compiler = Compiler::new(&vocabulary, Settings::default(), Options::default()).unwrap();
        let constraint = compiler.compile(&maskwright::Constraint::regex("aa")).unwrap();
        let mut matcher = Matcher::new(&constraint);
        matcher.accept(TokenId(0)).unwrap();
        // An error is not a panic.
        assert!(matcher.accept(TokenId(1)).is_err() && matcher.accept(TokenId(9)).is_err());
        let mut copy = matcher.fork().unwrap();
        let failed = catch(|| matcher.engine(|_| -> Result<(), Failure> { panic!("oh") }));
        assert!(failed.unwrap_err().to_string().contains("oh"));
        let refused = matcher.fill_words(&mut [0]).unwrap_err().to_string();
        assert!(refused.contains("create a new one"), "{refused}");
        assert!(matcher.accept(TokenId(0)).is_err() && matcher.reset().is_err() && matcher.fork().is_err());
        // Other matchers are not affected.
        copy.accept(TokenId(0)).unwrap();
        assert_eq!(copy.place().unwrap(), Place::Stopped);
    }
}
