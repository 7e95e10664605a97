//! Grammars with probabilities: scores for the tokens that may come next.

use core::ffi::c_char;

use maskwright::TokenId;
use maskwright::weighted::{self, ScoreError};

use crate::compiler::CompiledConstraint;
use crate::guard::{Whole, discard, guard};
use crate::pointer::{Given, Mut, Out, Owned, Ref};
use crate::status::{Failure, Status};
use crate::vocabulary::{Vocabulary, check_token};

/// `mw_scorer`: the state of one text, used in parallel with a matcher.
#[derive(Debug)]
pub struct Scorer {
    inner: Whole<weighted::Scorer>,
    vocabulary: Vocabulary,
}

/// Creates a scorer at the beginning of a text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_new(
    constraint: Ref<'_, CompiledConstraint>,
    scorer: Out<'_, Given<Scorer>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let scorer = scorer.get("scorer")?.write(Given::none());
        let constraint = constraint.get("constraint")?;
        let Some(weights) = &constraint.inner.remarks().weights else {
            let text = "this constraint has no probabilities; compile one as MW_PCFG";
            return Err(Failure::argument(text.to_owned()));
        };
        let vocabulary = constraint.vocabulary.clone();
        let inner = Whole::new(weights.scorer(vocabulary.tokens.clone()));
        *scorer = Given::new(Scorer { inner, vocabulary });
        Ok(())
    })
}

/// Creates an independent scorer in the same state.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_fork(
    scorer: Mut<'_, Scorer>,
    copy: Out<'_, Given<Scorer>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let copy = copy.get("copy")?.write(Given::none());
        let scorer = scorer.get("scorer")?;
        let inner = Whole::new(scorer.inner.get()?.clone());
        *copy = Given::new(Scorer { inner, vocabulary: scorer.vocabulary.clone() });
        Ok(())
    })
}

/// Returns how likely each of some tokens is to come next.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_scores(
    scorer: Mut<'_, Scorer>,
    tokens: Ref<'_, u32>,
    token_count: usize,
    scores: Mut<'_, f64>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let scorer = scorer.get("scorer")?;
        let tokens = tokens.tokens("tokens", token_count)?;
        tokens.iter().try_for_each(|token| check_token(*token, &scorer.vocabulary.tokens))?;
        let mut room = scores.room("scores", token_count)?;
        let found = scorer.inner.run(|inner| inner.scores(&tokens).map_err(Failure::from))?;
        room.write(0, &found);
        Ok(())
    })
}

/// Accepts a token.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_accept(
    scorer: Mut<'_, Scorer>,
    token: u32,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let scorer = scorer.get("scorer")?;
        check_token(TokenId(token), &scorer.vocabulary.tokens)?;
        scorer.inner.run(|inner| inner.accept(TokenId(token)).map_err(Failure::from))
    })
}

/// Undoes the last tokens.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_rollback(
    scorer: Mut<'_, Scorer>,
    steps: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        scorer.get("scorer")?.inner.run(|inner| {
            let taken = inner.position();
            if steps > taken {
                return Err(Failure::argument(format!("{steps} steps cannot be undone: there were {taken}")));
            }
            inner.rollback(steps);
            Ok(())
        })
    })
}

/// Returns how likely the text is.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_logprob(
    scorer: Mut<'_, Scorer>,
    prefix: Out<'_, f64>,
    text: Out<'_, f64>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let (prefix, text) = (prefix.get("prefix")?, text.get("text")?);
        let found = scorer.get("scorer")?.inner.run(|inner| Ok((inner.prefix_logprob(), inner.logprob())))?;
        prefix.write(found.0);
        text.write(found.1);
        Ok(())
    })
}

/// Frees a scorer.
#[unsafe(no_mangle)]
pub extern "C" fn mw_scorer_free(scorer: Owned<Scorer>) {
    discard(scorer);
}

impl From<ScoreError> for Failure {
    fn from(error: ScoreError) -> Self {
        let status = match error {
            ScoreError::Token(_) => Status::NotAllowed,
            ScoreError::Limit(_) => Status::Limit,
            _ => Status::Constraint,
        };
        Self::new(status, error)
    }
}
