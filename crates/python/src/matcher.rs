//! The state of one text.

use std::time::Instant;

use maskwright::backend::Status;
use maskwright::explain::{Expectation, Explanation};
use maskwright::{Budget, DraftTree, MatchError, TokenHealing, service};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::buffer::{Access, Row, View};
use crate::draft::{self, Rows};
use crate::errors::{Class, match_error, raise, taken, token_error};
use crate::numbers::{NO_TOKEN, seconds, token, tokens};
use crate::slot::{Lease, Slot};
use crate::vocabulary::Vocabulary;

/// The state of one text under a constraint.
#[pyclass(frozen, module = "maskwright", weakref)]
pub(crate) struct Matcher {
    pub(crate) slot: Slot<service::Matcher>,
    pub(crate) vocabulary: Py<Vocabulary>,
}

#[pymethods]
impl Matcher {
    /// Writes the mask into a row of a buffer: bit t % 32 of word t // 32 is set if token t may come next.
    #[pyo3(signature = (mask, row = 0))]
    fn fill_mask(&self, py: Python<'_>, mask: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let view = View::words(mask, Access::Write)?;
        let mut row = view.row(row)?;
        let mut matcher = self.slot.lease()?;
        let filled =
            py.detach(|| fill_row(&mut matcher, &mut row, self.size().div_ceil(32), false)).map(drop);
        filled.map_err(|error| match_error(py, &error))
    }

    /// Returns the mask as bytes: token t is bit t % 8 of byte t // 8.
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let words = self.words(py)?;
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the tokens that may come next, in ascending order.
    fn allowed_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let words = self.words(py)?;
        let ones = |(word, bits): (u32, u32)| {
            (0..32).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 32 + bit)
        };
        Ok((0..).zip(words).flat_map(ones).collect())
    }

    /// Returns whether one token may come next, without computing the whole mask.
    fn allows(&self, py: Python<'_>, token: i64) -> PyResult<bool> {
        let allowed = self.slot.lease()?.allows(self::token(token));
        allowed.map_err(|error| match_error(py, &error))
    }

    /// Returns which of some candidates may come next. For a short list this is much less work than a mask.
    fn allowed_of(&self, py: Python<'_>, candidates: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
        let candidates = tokens(candidates)?;
        let mut matcher = self.slot.lease()?;
        let allowed: Result<Vec<bool>, MatchError> =
            py.detach(|| candidates.iter().map(|token| matcher.allows(*token)).collect());
        allowed.map_err(|error| match_error(py, &error))
    }

    /// Accepts a token. Raises `TokenError` if it may not come next; then nothing changes.
    fn accept(&self, py: Python<'_>, token: i64) -> PyResult<()> {
        let id = self::token(token);
        let accepted = self.slot.lease()?.accept(id);
        accepted.map_err(|error| {
            if id == NO_TOKEN {
                return Class::Token.err(py, format!("token {token}: {error}"));
            }
            token_error(py, id.0, &error)
        })
    }

    /// Accepts a token if it may come next. Returns whether it was accepted. Raises `LimitError` if that is unknown
    /// within the limits.
    fn try_accept(&self, py: Python<'_>, token: i64) -> PyResult<bool> {
        let accepted = self.slot.lease()?.accept(self::token(token));
        taken(py, accepted)
    }

    /// Accepts tokens one after the other as long as they are allowed. Returns how many were accepted. After a
    /// `LimitError` none of them is.
    fn accept_all(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = self::tokens(tokens)?;
        let mut matcher = self.slot.lease()?;
        for (taken, token) in tokens.iter().enumerate() {
            match matcher.accept(*token) {
                Ok(()) => {}
                Err(error) if error.is_undecided() => {
                    matcher.rollback(taken).map_err(|error| match_error(py, &error))?;
                    return Err(match_error(py, &error));
                }
                Err(_) => return Ok(taken),
            }
        }
        Ok(tokens.len())
    }

    /// Accepts some text, as one step, which counts as one token, or as none if it is `given`: text that the model did
    /// not write. Raises `TokenError` if it may not come next.
    #[pyo3(signature = (text, *, given = false))]
    fn accept_bytes(&self, py: Python<'_>, text: Text, given: bool) -> PyResult<()> {
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let accepted =
            if given { engine.accept_given_bytes(text.bytes()) } else { engine.accept_bytes(text.bytes()) };
        accepted.map_err(|error| match_error(py, &error))
    }

    /// Returns how many of these tokens, from the first on, could be accepted one after the other. Nothing changes.
    fn validate(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = self::tokens(tokens)?;
        let mut matcher = self.slot.lease()?;
        matcher.validate(&tokens).map_err(|error| match_error(py, &error))
    }

    /// Computes masks that may be needed after the next token, for at most this many seconds. Call it while the model
    /// computes. Returns how many were new.
    fn prepare(&self, py: Python<'_>, seconds: f64) -> PyResult<u64> {
        let until = Instant::now().checked_add(self::seconds(seconds)?);
        let until = until.ok_or_else(|| PyValueError::new_err(format!("{seconds} seconds are too many")))?;
        let mut matcher = self.slot.lease()?;
        let matcher = &mut *matcher;
        Ok(py.detach(move || matcher.prepare(until)).masks)
    }

    /// Lets an idle worker of the compiler do that, if there is one and the compiler was created with `prepare`.
    /// Returns at once, and returns whether there was one.
    fn prepare_soon(&self) -> PyResult<bool> {
        Ok(self.slot.lease()?.prepare_soon())
    }

    /// Undoes the last steps, including the end.
    #[pyo3(signature = (steps = 1))]
    fn rollback(&self, py: Python<'_>, steps: usize) -> PyResult<()> {
        let undone = self.slot.lease()?.rollback(steps);
        undone.map_err(|error| match_error(py, &error))
    }

    /// Returns to the beginning of the text, and removes a budget.
    fn reset(&self) -> PyResult<()> {
        self.slot.lease()?.reset();
        Ok(())
    }

    /// Returns an independent matcher in the same state, with the same history.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let forked = self.slot.lease()?.fork();
        Ok(Self::new(forked, self.vocabulary.clone_ref(py)))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.fork(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.fork(py)
    }

    /// The number of steps (tokens, and calls of `accept_bytes`) that were accepted.
    #[getter]
    fn steps(&self) -> PyResult<usize> {
        let mut matcher = self.slot.lease()?;
        Ok(self.engine(&mut matcher)?.steps())
    }

    /// The tokens that end this text.
    #[getter]
    fn stop_tokens(&self) -> PyResult<Vec<u32>> {
        let mut matcher = self.slot.lease()?;
        Ok(self.engine(&mut matcher)?.stops().iter().map(|token| token.0).collect())
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// Returns whether the text so far is complete. It may still continue.
    fn is_accepting(&self) -> PyResult<bool> {
        let mut matcher = self.slot.lease()?;
        Ok(self.engine(&mut matcher)?.is_accepting())
    }

    /// Returns whether only the end can follow.
    fn is_stopped(&self) -> PyResult<bool> {
        Ok(self.slot.lease()?.status() >= Status::Stopped)
    }

    /// Returns whether the end was accepted.
    fn is_terminated(&self) -> PyResult<bool> {
        let mut matcher = self.slot.lease()?;
        Ok(self.engine(&mut matcher)?.is_terminated())
    }

    /// Returns the bytes that must come next in every complete text.
    #[pyo3(signature = (limit = 4096))]
    fn forced_bytes<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let forced = py.detach(|| engine.forced_bytes(limit));
        Ok(PyBytes::new(py, &forced))
    }

    /// Returns the same as whole characters. If the text so far ends inside a character, there are none: complete that
    /// first.
    #[pyo3(signature = (limit = 4096))]
    fn forced_text(&self, py: Python<'_>, limit: usize) -> PyResult<String> {
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let forced = py.detach(|| engine.forced_text(limit));
        Ok(if forced.completes.is_empty() { forced.text } else { String::new() })
    }

    /// Returns the tokens that the tokenizer itself has next in every complete text: first the number of tokens to
    /// remove, then the tokens.
    ///
    /// `before` are the last tokens of the text, including those of the prompt. `encode` splits a text into tokens, if
    /// the vocabulary cannot do that. Only with `retokenize` may tokens be removed.
    #[pyo3(signature = (before = None, *, limit = 4096, retokenize = false, encode = None))]
    fn forced_tokens(
        &self,
        py: Python<'_>,
        before: Option<&Bound<'_, PyAny>>,
        limit: usize,
        retokenize: bool,
        encode: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(usize, Vec<u32>)> {
        let before = before.map_or_else(|| Ok(Vec::new()), tokens)?;
        let healing = if retokenize { TokenHealing::Retokenize } else { TokenHealing::Keep };
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        if let Some(unknown) = before.iter().find(|token| token.index() >= self.size()) {
            return Err(token_error(py, unknown.0, &MatchError::UnknownToken));
        }
        let forced = match (encode, &self.vocabulary.get().tokenizer) {
            (Some(encode), _) => {
                let raised = core::cell::RefCell::new(None);
                let cut = |text: &str| {
                    let cut = encode.call1((text,)).and_then(|cut| tokens(&cut));
                    cut.map_err(|error| raised.borrow_mut().get_or_insert(error).to_string()).ok()
                };
                let forced = engine.forced_tokens(&before, limit, healing, &cut);
                if let Some(error) = raised.into_inner() {
                    return Err(error);
                }
                forced
            }
            (None, Some(tokenizer)) => py.detach(|| {
                engine.forced_tokens(&before, limit, healing, &|text| tokenizer.encode(text).ok())
            }),
            (None, None) => {
                return Err(PyValueError::new_err(
                    "the vocabulary does not know how text is cut; give a function as `encode`",
                ));
            }
        };
        Ok((forced.taken_back, forced.tokens.into_iter().map(|token| token.0).collect()))
    }

    /// Returns everything that must come next: the bytes that complete a character, whole characters, and the tokens
    /// that the tokenizer itself would write. The arguments are those of `forced_tokens`; without an encoder there are
    /// no tokens.
    #[pyo3(signature = (before = None, *, limit = 4096, retokenize = false, encode = None))]
    fn forced(
        &self,
        py: Python<'_>,
        before: Option<&Bound<'_, PyAny>>,
        limit: usize,
        retokenize: bool,
        encode: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Forced> {
        let cuts = encode.is_some() || self.vocabulary.get().tokenizer.is_some();
        let tokens =
            if cuts { Some(self.forced_tokens(py, before, limit, retokenize, encode)?) } else { None };
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let text = py.detach(|| engine.forced_text(limit));
        let (taken_back, tokens) =
            tokens.map_or((0, None), |(taken_back, tokens)| (taken_back, Some(tokens)));
        Ok(Forced { completes: text.completes, text: text.text, taken_back, tokens })
    }

    /// Describes what may come next, in words and in numbers.
    fn expected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let expectation = py.detach(|| Expectation::of(engine));
        expectation_dict(py, &expectation)
    }

    /// Explains why a token may come next or not, in words and in numbers. Nothing changes.
    fn explain<'py>(&self, py: Python<'py>, token: i64) -> PyResult<Bound<'py, PyDict>> {
        let id = self::token(token);
        if id.index() >= self.size() {
            return Err(Class::Token.err(py, format!("token {token}: {}", MatchError::UnknownToken)));
        }
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let why = py.detach(|| Explanation::of(engine, id));
        let told = PyDict::new(py);
        told.set_item("token", why.token.0)?;
        told.set_item("bytes", PyBytes::new(py, &why.bytes))?;
        told.set_item("allowed", why.is_allowed())?;
        told.set_item("fitting", why.fitting)?;
        told.set_item("reason", why.reason())?;
        told.set_item("then", expectation_dict(py, &why.expectation)?)?;
        Ok(told)
    }

    /// Returns the minimum number of tokens that complete the text, including the one that ends it; `None` if no way is
    /// known.
    fn shortest_completion(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        Ok(py.detach(|| engine.shortest_completion()))
    }

    /// Allows from now on only what can be completed within this many tokens, including the one that ends the text;
    /// `None` removes the limit. Raises `BudgetError` if it is too low.
    fn set_budget(&self, py: Python<'_>, tokens: Option<u32>) -> PyResult<()> {
        let mut matcher = self.slot.lease()?;
        let budget = tokens.map(Budget::new);
        let engine = self.engine(&mut matcher)?;
        py.detach(|| engine.set_budget(budget)).map_err(|error| raise(py, (&error).into(), error))
    }

    /// The number of tokens that are left of the budget, including the one that ends the text; `None` without a budget.
    #[getter]
    fn budget_left(&self) -> PyResult<Option<u32>> {
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        Ok(engine.budget_left())
    }

    /// Fills the masks for a chain of guessed tokens: row `row` is the current mask, the next row is the mask after the
    /// first token, and so on. Returns how many of the tokens are allowed; the rows after them are empty. The matcher
    /// does not change.
    #[pyo3(signature = (tokens, mask, row = 0))]
    fn fill_draft_chain(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        mask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<usize> {
        let allowed = self.fill_draft(py, &draft::chain(tokens)?, mask, row)?;
        Ok(allowed.iter().take_while(|allowed| **allowed).count())
    }

    /// Fills the masks for a tree of guessed tokens, given by the parent of each node, or −1 for nodes that follow the
    /// text so far; parents come before children. Row `row` is the current mask, row `row` + i + 1 that after node i.
    /// Returns for each node whether it, and everything before it, is allowed; if not, its row is empty. The matcher
    /// does not change.
    #[pyo3(signature = (tokens, parents, mask, row = 0))]
    fn fill_draft_tree(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        parents: &Bound<'_, PyAny>,
        mask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<Vec<bool>> {
        self.fill_draft(py, &draft::by_parents(tokens, parents)?, mask, row)
    }

    /// Does the same for a tree given by the first child and the next sibling of each node, as servers keep it: node 0
    /// is the token that was accepted last, so row `row` + i is the mask after node i. A negative number means none.
    #[pyo3(signature = (tokens, first_child, next_sibling, mask, row = 0))]
    fn fill_draft_links(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        first_child: &Bound<'_, PyAny>,
        next_sibling: &Bound<'_, PyAny>,
        mask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<Vec<bool>> {
        self.fill_draft(py, &draft::by_links(tokens, first_child, next_sibling)?, mask, row)
    }

    /// Describes the state for people: the open rules, and the bytes that may come next.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut matcher = self.slot.lease()?;
        let info = self.engine(&mut matcher)?.state_info();
        let state = PyDict::new(py);
        state.set_item("bytes", info.bytes)?;
        state.set_item("steps", info.steps)?;
        state.set_item("accepting", info.accepting)?;
        state.set_item("stopped", info.stopped)?;
        state.set_item("terminated", info.terminated)?;
        state.set_item("next_bytes", info.next_bytes)?;
        state.set_item("rules", info.threads.into_iter().map(|thread| thread.rules).collect::<Vec<_>>())?;
        Ok(state)
    }

    fn __repr__(&self) -> String {
        let Ok(mut matcher) = self.slot.lease() else { return "<Matcher, in use>".to_owned() };
        let status = match matcher.status() {
            Status::Open => "open",
            Status::Accepting => "accepting",
            Status::Stopped => "stopped",
            Status::Terminated => "terminated",
        };
        let steps = self.engine(&mut matcher).map_or(0, |engine| engine.steps());
        format!("<Matcher, {steps} steps, {status}>")
    }
}

impl Matcher {
    pub(crate) fn new(matcher: service::Matcher, vocabulary: Py<Vocabulary>) -> Self {
        Self { slot: Slot::new(matcher), vocabulary }
    }

    /// Fills the masks of a tree, starting at row `row`.
    fn fill_draft(
        &self,
        py: Python<'_>,
        tree: &DraftTree,
        mask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<Vec<bool>> {
        let rows = Rows::new(py, tree, mask, row, self.size().div_ceil(32))?;
        let mut matcher = self.slot.lease()?;
        rows.fill(py, tree, self.engine(&mut matcher)?)
    }

    /// Returns our engine's matcher, for features that only it has.
    #[expect(clippy::unused_self, reason = "it is asked of a matcher")]
    pub(crate) fn engine<'l>(
        &self,
        matcher: &'l mut Lease<'_, service::Matcher>,
    ) -> PyResult<&'l mut maskwright::Matcher> {
        matcher
            .inner()
            .as_engine()
            .ok_or_else(|| PyRuntimeError::new_err("the matcher is not of the engine maskwright"))
    }

    /// Returns the width of a mask in tokens.
    pub(crate) fn size(&self) -> usize {
        self.vocabulary.get().vocabulary.size()
    }

    fn words(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let mut words = vec![0; self.size().div_ceil(32)];
        let mut matcher = self.slot.lease()?;
        let filled = py.detach(|| matcher.fill_mask(&mut words));
        filled.map_err(|error| match_error(py, &error)).map(|()| words)
    }
}

/// Fills the mask inside the matcher, and copies it into a row of foreign memory; with `keep`, only if it may have
/// changed. Returns whether it may have changed.
pub(crate) fn fill_row(
    matcher: &mut service::Matcher,
    row: &mut Row,
    words: usize,
    keep: bool,
) -> Result<bool, MatchError> {
    if row.width() < words {
        return Err(MatchError::MaskTooShort { words });
    }
    match matcher.borrow_mask() {
        Ok((mask, has_changed)) => {
            if has_changed || !keep {
                row.write_mask(mask);
            }
            Ok(has_changed)
        }
        Err(error) => {
            row.write_mask(&[]);
            Err(error)
        }
    }
}

/// Text that must come next, whatever the model prefers.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Forced {
    completes: Vec<u8>,
    text: String,
    taken_back: usize,
    tokens: Option<Vec<u32>>,
}

#[pymethods]
impl Forced {
    /// The bytes that complete the character that the text so far ends in.
    #[getter]
    fn completes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.completes)
    }

    /// The whole characters after them.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The number of tokens to remove before appending `tokens`.
    #[getter]
    fn taken_back(&self) -> usize {
        self.taken_back
    }

    /// The tokens that the tokenizer itself has next in every complete text; `None` without an encoder.
    #[getter]
    fn tokens(&self) -> Option<Vec<u32>> {
        self.tokens.clone()
    }

    fn __repr__(&self) -> String {
        let Self { completes, text, taken_back, tokens } = self;
        format!("<Forced {completes:?} {text:?}, taking {taken_back} back: {tokens:?}>")
    }
}

fn expectation_dict<'py>(py: Python<'py>, expectation: &Expectation) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("expected", expectation.phrase())?;
    told.set_item("next_bytes", &expectation.ranges)?;
    told.set_item("forced", expectation.forced.as_ref().map(|bytes| PyBytes::new(py, bytes)))?;
    told.set_item("end", expectation.end)?;
    told.set_item("rules", &expectation.rules)?;
    Ok(told)
}

/// A text, as a string or as bytes.
#[derive(FromPyObject)]
pub(crate) enum Text {
    Text(String),
    Bytes(Vec<u8>),
}

impl Text {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}
