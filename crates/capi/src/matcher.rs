//! One text being written.

use core::ffi::c_char;

use maskwright::backend::Status as Place;
use maskwright::{Budget, DRAFT_ROOT, DraftTree, MatchError, TokenHealing, TokenId, service};
use serde_json::json;

use crate::compiler::CompiledConstraint;
use crate::guard::{Whole, discard, guard, write_list, write_whole};
use crate::pointer::{Given, Mut, Out, Owned, Ref, Room};
use crate::status::{Failure, Status};
use crate::vocabulary::{Vocabulary, check_token, numbers};

/// So many forced bytes are looked at in one call.
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

/// A matcher at the beginning of a text.
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

/// An independent matcher at the same place, with the same history.
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

/// Writes which tokens may come next.
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

/// Takes a token.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_accept(
    matcher: Mut<'_, Matcher>,
    token: u32,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || matcher.get("matcher")?.accept(TokenId(token)))
}

/// Takes some tokens, all or none.
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

/// Takes some bytes, as one step.
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

/// How many of some tokens could be taken, one after the other.
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

/// The masks behind guessed tokens, each behind the one before.
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

/// The same for a tree, by the parents of its tokens.
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

/// Back to the beginning of the text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_reset(
    matcher: Mut<'_, Matcher>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || matcher.get("matcher")?.reset())
}

/// Where the text stands.
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

/// From now on only what can be completed in time is allowed.
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

/// The bytes that every complete text must go on with.
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

/// The tokens that the tokenizer itself has next in every complete text.
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
        // The beginning of what is forced is forced.
        forced.truncate(capacity);
        write_list(&numbers(&forced), tokens, capacity, count, "tokens")
    })
}

/// Everything that must come next, as JSON.
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

/// The least number of tokens that complete the text.
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

/// Gives a matcher back.
#[unsafe(no_mangle)]
pub extern "C" fn mw_matcher_free(matcher: Owned<Matcher>) {
    discard(matcher);
}

impl Matcher {
    /// At the beginning of a text.
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

    /// Fills the mask where the matcher keeps it, and copies it to where the caller wants it; with `keep`, not if it is the mask of before. Says whether it may be another.
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

    /// Fills the rows of a draft, and says which of its tokens may come.
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
            return Err(Failure::new(Status::Argument, "so many rows have no room in memory"));
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

    /// Fills the mask into memory of ours.
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

    /// Whether the end was accepted. This is less work than to find out where the text stands.
    pub(crate) fn is_terminated(&mut self) -> Result<bool, Failure> {
        self.engine(|engine| Ok(engine.is_terminated()))
    }

    pub(crate) fn forced_tokens(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, Failure> {
        let vocabulary = self.vocabulary.clone();
        // Where the tokenizer does not say how a text is cut, nothing is certain.
        let encode = |text: &str| vocabulary.encode(text).ok();
        self.engine(|engine| {
            Ok(engine.forced_tokens(before, FORCED_BYTES, TokenHealing::Keep, &encode).tokens)
        })
    }

    /// Does something that only our own engine can do.
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
        // A failure is no panic.
        assert!(matcher.accept(TokenId(1)).is_err() && matcher.accept(TokenId(9)).is_err());
        let mut copy = matcher.fork().unwrap();
        let failed = catch(|| matcher.engine(|_| -> Result<(), Failure> { panic!("oh") }));
        assert!(failed.unwrap_err().to_string().contains("oh"));
        let refused = matcher.fill_words(&mut [0]).unwrap_err().to_string();
        assert!(refused.contains("start anew"), "{refused}");
        assert!(matcher.accept(TokenId(0)).is_err() && matcher.reset().is_err() && matcher.fork().is_err());
        // Others do not mind.
        copy.accept(TokenId(0)).unwrap();
        assert_eq!(copy.place().unwrap(), Place::Stopped);
    }
}
