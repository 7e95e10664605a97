//! Grammars with probabilities: the Python interface of the crate `maskwright-weighted`.
//!
//! A `Pcfg` is a grammar with functions for sequences of words (lists of strings) or texts (strings or bytes). A
//! `Scorer` is used in parallel with a `Matcher`: it computes how likely each of some tokens is to come next.

use std::sync::Arc;

use maskwright::weighted::{
    self, ByteParser, GuidanceError, Log, Random, Real, STEPS, ScoreError, Training, Weights, best_parse,
    best_parse_of_text, expected_counts, expected_counts_of_text,
};
use maskwright::{Category, Diagnostic, Error};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::{Class, raise, refused};
use crate::numbers;
use crate::slot::Slot;

/// A grammar with probabilities.
#[pyclass(frozen, module = "maskwright")]
#[derive(Debug)]
pub(crate) struct Pcfg {
    inner: Arc<weighted::Pcfg>,
}

/// A derivation.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Tree {
    tree: weighted::Tree,
    grammar: Arc<weighted::Pcfg>,
}

/// A sentence as words, or a text as bytes.
enum Text {
    Words(Vec<String>),
    Bytes(Vec<u8>),
}

impl Text {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self::Bytes(text.to_str()?.as_bytes().to_vec()));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        let words = value.extract::<Vec<String>>().map_err(|_| {
            PyTypeError::new_err("a text is a string or bytes, and a sequence of words a list of strings")
        })?;
        Ok(Self::Words(words))
    }
}

/// The log probabilities of each prefix, and of the whole sentence.
#[derive(Debug)]
struct Likely {
    prefixes: Vec<f64>,
    sentence: f64,
}

#[pymethods]
impl Pcfg {
    #[new]
    #[pyo3(signature = (source, *, normalise = false, start = None))]
    fn new(py: Python<'_>, source: &str, normalise: bool, start: Option<String>) -> PyResult<Self> {
        let options = weighted::Options { normalise, start, ..weighted::Options::default() };
        let read = py.detach(|| weighted::Pcfg::parse(source, &options));
        let inner = read.map_err(|errors| refused(py, &Error::Source(errors)))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The warnings about the grammar.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().iter().map(ToString::to_string).collect()
    }

    /// All rules: left side, right side in its notation, probability.
    #[getter]
    fn rules(&self) -> Vec<(String, Vec<String>, f64)> {
        let name = |symbol: &weighted::Symbol| match symbol {
            weighted::Symbol::Nonterminal(id) => self.inner.name(*id).to_owned(),
            weighted::Symbol::Terminal(id) => self.inner.terminal(*id).to_string(),
        };
        let rule = |rule: &weighted::Rule| {
            let right = rule.right.iter().map(name).collect();
            (self.inner.name(rule.left).to_owned(), right, rule.probability)
        };
        self.inner.rules().iter().map(rule).collect()
    }

    /// Returns the same grammar with other probabilities, one for each rule; those of a symbol are divided by their
    /// sum.
    fn with_probabilities(&self, probabilities: Vec<f64>) -> PyResult<Self> {
        let inner = self.inner.with_probabilities(&probabilities).ok_or_else(|| {
            let rules = self.inner.rules().len();
            PyValueError::new_err(format!(
                "a grammar of {rules} rules needs {rules} probabilities, none negative and those of no symbol all zero"
            ))
        })?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the most probable derivation of words or of a text, or `None`.
    #[pyo3(signature = (text, *, steps = STEPS))]
    fn best_parse(&self, py: Python<'_>, text: &Bound<'_, PyAny>, steps: u64) -> PyResult<Option<Tree>> {
        let text = Text::of(text)?;
        let found = py.detach(|| match &text {
            Text::Words(words) => best_parse(&self.inner, words),
            Text::Bytes(bytes) => best_parse_of_text(&self.inner, bytes, steps),
        });
        let tree = found.map_err(|error| wrong(py, error))?;
        Ok(tree.map(|tree| Tree { tree, grammar: self.inner.clone() }))
    }

    /// Returns, after each word or byte, the logarithm of the probability of all sentences with that prefix; minus
    /// infinity from the first word or byte on that is not allowed.
    #[pyo3(signature = (text, *, steps = STEPS))]
    fn prefix_logprobs(&self, py: Python<'_>, text: &Bound<'_, PyAny>, steps: u64) -> PyResult<Vec<f64>> {
        let text = Text::of(text)?;
        let likely = py.detach(|| self.likely(&text, steps));
        likely.map(|likely| likely.prefixes).map_err(|error| wrong(py, error))
    }

    /// Returns the logarithm of the probability of a whole sentence or text; minus infinity if it is not in the
    /// language.
    #[pyo3(signature = (text, *, steps = STEPS))]
    fn logprob(&self, py: Python<'_>, text: &Bound<'_, PyAny>, steps: u64) -> PyResult<f64> {
        let text = Text::of(text)?;
        let likely = py.detach(|| self.likely(&text, steps));
        likely.map(|likely| likely.sentence).map_err(|error| wrong(py, error))
    }

    /// Returns how likely each terminal is to come after these words; `None` stands for the end.
    fn next_words<'py>(&self, py: Python<'py>, words: Vec<String>) -> PyResult<Bound<'py, PyDict>> {
        let next = py.detach(|| {
            let mut parser = weighted::Parser::<Real>::new(&self.inner)?;
            let fits = words.iter().all(|word| parser.step_word(word));
            Ok(fits.then(|| parser.next_terminal_distribution()))
        });
        let out = PyDict::new(py);
        let Some(next) = next.map_err(|error| wrong(py, error))? else { return Ok(out) };
        for (terminal, share) in next.terminals {
            let shown = match self.inner.terminal(terminal) {
                weighted::Terminal::Literal(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                pattern @ weighted::Terminal::Pattern(_) => pattern.to_string(),
            };
            out.set_item(shown, share)?;
        }
        if next.end > 0.0 {
            out.set_item(py.None(), next.end)?;
        }
        Ok(out)
    }

    /// Returns how often each rule is expected in the derivations of words or of a text, in the order of `rules`;
    /// `None` if there is no derivation.
    #[pyo3(signature = (text, *, steps = STEPS))]
    fn expected_counts(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        steps: u64,
    ) -> PyResult<Option<Vec<f64>>> {
        let text = Text::of(text)?;
        let counts = py.detach(|| match &text {
            Text::Words(words) => expected_counts(&self.inner, words),
            Text::Bytes(bytes) => expected_counts_of_text(&self.inner, bytes, steps),
        });
        Ok(counts.map_err(|error| wrong(py, error))?.map(|counts| counts.rules))
    }

    /// Returns random sentences, each a list of words. The same seed gives the same sentences.
    #[pyo3(signature = (count = 1, *, seed = 0, max_words = 10_000))]
    fn sample(
        &self,
        py: Python<'_>,
        count: usize,
        seed: u64,
        max_words: usize,
    ) -> PyResult<Vec<Vec<String>>> {
        let sampled = py.detach(|| {
            let sampler = weighted::Sampler::new(&self.inner, max_words)?;
            let mut random = Random::new(seed);
            (0..count).map(|_| sampler.sentence(&mut random)).collect::<Result<Vec<_>, Diagnostic>>()
        });
        sampled.map_err(|error| wrong(py, error))
    }

    /// Finds probabilities that make sentences likely, by expectation maximization. Returns the grammar with them, and
    /// the logarithm of the likelihood before the first round and after each round.
    #[pyo3(signature = (sentences, *, rounds = 50, tolerance = 1e-6, prior = 0.0))]
    fn train(
        &self,
        py: Python<'_>,
        sentences: Vec<Vec<String>>,
        rounds: usize,
        tolerance: f64,
        prior: f64,
    ) -> PyResult<(Self, Vec<f64>)> {
        for (name, number) in [("tolerance", tolerance), ("prior", prior)] {
            if !(number.is_finite() && number >= 0.0) {
                return Err(PyValueError::new_err(format!(
                    "{name} is {number}, and must be a number that is not negative"
                )));
            }
        }
        let how = Training { rounds, tolerance, prior };
        let trained = py.detach(|| weighted::train(&self.inner, &sentences, &how));
        let trained = trained.map_err(|error| wrong(py, error))?;
        Ok((Self { inner: Arc::new(trained.grammar) }, trained.log_likelihoods))
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Pcfg of {} rules>", self.inner.rules().len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().__str__(),))
    }
}

impl Pcfg {
    pub(crate) fn of(weights: &Weights) -> Self {
        Self { inner: weights.grammar().clone() }
    }

    fn likely(&self, text: &Text, steps: u64) -> Result<Likely, Diagnostic> {
        let mut prefixes = Vec::new();
        match text {
            Text::Words(words) => {
                let mut parser = weighted::Parser::<Real>::new(&self.inner)?;
                let mut fits = true;
                for word in words {
                    fits = fits && parser.step_word(word);
                    prefixes.push(if fits { parser.prefix_logprob() } else { f64::NEG_INFINITY });
                }
                let sentence = if fits { parser.sentence_logprob() } else { f64::NEG_INFINITY };
                Ok(Likely { prefixes, sentence })
            }
            Text::Bytes(bytes) => {
                let mut parser = ByteParser::<Log>::new(&self.inner)?;
                let is_complete = parser.read_within(bytes, steps, |prefix| prefixes.push(prefix))?;
                prefixes.resize(bytes.len(), f64::NEG_INFINITY);
                let sentence = if is_complete { parser.sentence_logprob() } else { f64::NEG_INFINITY };
                Ok(Likely { prefixes, sentence })
            }
        }
    }
}

#[pymethods]
impl Tree {
    /// The logarithm of its probability.
    #[getter]
    fn logprob(&self) -> f64 {
        self.tree.log_probability
    }

    /// Returns it in brackets: `(S (NP Alice) (VP sleeps))`.
    fn brackets(&self) -> String {
        self.tree.brackets(&self.grammar)
    }

    /// Returns it as lines for a terminal.
    fn draw(&self) -> String {
        self.tree.draw(&self.grammar)
    }

    /// Returns it as an SVG picture.
    fn svg(&self) -> String {
        self.tree.svg(&self.grammar)
    }

    fn __str__(&self) -> String {
        self.brackets()
    }

    fn __repr__(&self) -> String {
        format!("<Tree {}>", self.brackets())
    }
}

/// Scores of a weighted grammar for the tokens that may come next, used in parallel with a matcher. Created by
/// `CompiledConstraint.scorer`.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct Scorer {
    inner: Slot<weighted::Scorer>,
}

#[pymethods]
impl Scorer {
    /// Returns log P(token | text so far) for each of these tokens; minus infinity for a token that is not allowed.
    fn scores(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let tokens = numbers::tokens(tokens)?;
        let mut inner = self.inner.lease()?;
        let scores = py.detach(|| inner.scores(&tokens));
        scores.map_err(|error| score_error(py, &error))
    }

    /// Accepts a token.
    fn accept(&self, py: Python<'_>, token: i64) -> PyResult<()> {
        let mut inner = self.inner.lease()?;
        inner.accept(numbers::token(token)).map_err(|error| score_error(py, &error))
    }

    /// Undoes the last tokens, at most all of them.
    fn rollback(&self, tokens: usize) -> PyResult<()> {
        self.inner.lease()?.rollback(tokens);
        Ok(())
    }

    /// Returns an independent scorer in the same state.
    fn fork(&self) -> PyResult<Self> {
        Ok(Self { inner: Slot::new(self.inner.lease()?.clone()) })
    }

    /// The number of accepted tokens.
    #[getter]
    fn steps(&self) -> PyResult<usize> {
        Ok(self.inner.lease()?.position())
    }

    /// The logarithm of the probability of all texts with this prefix.
    #[getter]
    fn prefix_logprob(&self) -> PyResult<f64> {
        Ok(self.inner.lease()?.prefix_logprob())
    }

    /// The logarithm of the probability of this text; minus infinity if it is not complete.
    #[getter]
    fn logprob(&self) -> PyResult<f64> {
        Ok(self.inner.lease()?.logprob())
    }
}

impl Scorer {
    pub(crate) fn new(inner: weighted::Scorer) -> Self {
        Self { inner: Slot::new(inner) }
    }
}

/// Checks the weight and the number of candidates for guiding a model. Raises if they are invalid.
#[pyfunction]
pub(crate) fn check_guidance(lambda: f64, top_k: usize) -> PyResult<()> {
    let guidance = weighted::Guidance::new(lambda, top_k);
    guidance.map(drop).map_err(|error: GuidanceError| PyValueError::new_err(error.to_string()))
}

fn wrong(py: Python<'_>, error: Diagnostic) -> PyErr {
    refused(py, &Error::Source(vec![error]))
}

fn score_error(py: Python<'_>, error: &ScoreError) -> PyErr {
    match error {
        ScoreError::Token(_) => Class::Token.err(py, error),
        ScoreError::Limit(_) => raise(py, Category::Limit, error),
        _ => Class::Constraint.err(py, error),
    }
}
