//! A constraint: a text in one of the languages, with the options for reading it.
//!
//! Options are passed as JSON, in the serialized form of [`Options`]; the public functions (`maskwright.json_schema(…,
//! whitespace="compact")`) are in Python and create that JSON.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use maskwright::json_schema::{Report, Resolver, to_regex};
use maskwright::regex::WriteLimits;
use maskwright::{Error, Kind, Options, Remarks};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::{Class, refused};
use crate::vocabulary::Vocabulary;

/// A constraint in one of the languages, with its options. Created by `json_schema`, `regex`, `choice`, `ebnf`, `gbnf`,
/// `lark`, `structural_tag` and `pcfg`.
#[pyclass(frozen, eq, module = "maskwright")]
#[derive(Debug, PartialEq)]
pub(crate) struct Constraint {
    pub(crate) source: maskwright::Constraint,
    pub(crate) options: Options,
    /// The documents that a schema refers to, as JSON.
    documents: Option<String>,
}

/// How each keyword of a schema is treated, and the warnings about a grammar or a schema.
type Checked = (Vec<(String, String)>, Vec<String>);

/// The arguments to recreate it from: kind, source, options and documents.
type Parts = (&'static str, Source, String, Option<String>);

/// A text, or a list of choices.
#[derive(IntoPyObject)]
pub(crate) enum Source {
    Text(String),
    List(Vec<String>),
}

impl Source {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return text_of(text).map(Self::Text);
        }
        let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
        if !is_list {
            let name = value.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a constraint is a string or a list of strings, and this is {name}"
            )));
        }
        let texts = value.try_iter()?.map(|item| {
            let item = item?;
            let text = item
                .cast::<PyString>()
                .map_err(|_| PyTypeError::new_err("choices must be a list of strings"))?;
            text_of(text)
        });
        texts.collect::<PyResult<_>>().map(Self::List)
    }
}

/// Returns the text of a Python string, which may contain unpaired surrogates.
fn text_of(text: &Bound<'_, PyString>) -> PyResult<String> {
    text.to_str().map(str::to_owned).map_err(|_| {
        let message = "the text contains half of a surrogate pair, such as \\ud800, which is not a character; write both halves, or leave it out";
        Class::Constraint.err(text.py(), message)
    })
}

#[pymethods]
impl Constraint {
    #[new]
    #[pyo3(signature = (kind, source, options = None, documents = None))]
    fn new(
        kind: &str,
        source: &Bound<'_, PyAny>,
        options: Option<&str>,
        documents: Option<String>,
    ) -> PyResult<Self> {
        let source = Source::of(source)?;
        let constraint = match (kind, source) {
            ("choice", Source::List(choices)) => maskwright::Constraint::Choice(choices),
            ("choice", Source::Text(_)) => {
                return Err(PyTypeError::new_err(
                    "choices must be a list of strings, and this is one string",
                ));
            }
            (_, Source::List(_)) => {
                return Err(PyTypeError::new_err(format!(
                    "a constraint of kind {kind:?} is a string, and this is a list"
                )));
            }
            ("regex", Source::Text(text)) => maskwright::Constraint::regex(text),
            ("ebnf", Source::Text(text)) => maskwright::Constraint::ebnf(text),
            ("gbnf", Source::Text(text)) => maskwright::Constraint::gbnf(text),
            ("lark", Source::Text(text)) => maskwright::Constraint::lark(text),
            ("json_schema", Source::Text(text)) => maskwright::Constraint::json_schema(text),
            ("structural_tag", Source::Text(text)) => maskwright::Constraint::structural_tag(text),
            ("pcfg", Source::Text(text)) => maskwright::Constraint::pcfg(text),
            ("grammar", Source::Text(text)) => {
                maskwright::Constraint::guess_grammar(text).ok_or_else(|| {
                    PyValueError::new_err(
                        "this does not look like a known grammar notation; say whether it is ebnf, gbnf or lark",
                    )
                })?
            }
            _ => {
                let known = Kind::ALL.map(Kind::name).join(", ");
                return Err(PyValueError::new_err(format!(
                    "there is no kind of constraint {kind:?}; known are {known}"
                )));
            }
        };
        let mut options: Options = serde_json::from_str(options.unwrap_or("{}"))
            .map_err(|error| PyValueError::new_err(format!("the options cannot be read: {error}")))?;
        if let Some(documents) = &documents {
            options.json_schema.resolver = Some(resolver(documents)?);
        }
        Ok(Self { source: constraint, options, documents })
    }

    /// The language: "regex", "choice", "ebnf", "gbnf", "lark", "json_schema", "structural_tag" or "pcfg".
    #[getter]
    fn kind(&self) -> &'static str {
        self.source.kind().name()
    }

    /// The text of the constraint; for a choice the list of texts.
    #[getter]
    fn source(&self) -> Source {
        match &self.source {
            maskwright::Constraint::Choice(choices) => Source::List(choices.clone()),
            maskwright::Constraint::Regex(text)
            | maskwright::Constraint::Ebnf(text)
            | maskwright::Constraint::Gbnf(text)
            | maskwright::Constraint::Lark(text)
            | maskwright::Constraint::JsonSchema(text)
            | maskwright::Constraint::StructuralTag(text)
            | maskwright::Constraint::Pcfg(text) => Source::Text(text.clone()),
            // There is no other kind; a new one must be added here.
            _ => Source::Text(String::new()),
        }
    }

    /// All options as JSON.
    #[getter]
    fn options(&self) -> PyResult<String> {
        serde_json::to_string(&self.options).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns the same constraint for a text that must begin with `prefix`: the end of a prompt that `Vocabulary.heal`
    /// has cut back.
    fn behind(&self, prefix: String) -> Self {
        let options = Options { prefix, ..self.options.clone() };
        Self { source: self.source.clone(), options, documents: self.documents.clone() }
    }

    /// Reads the constraint without compiling it. Returns how each keyword of a schema is treated, as pairs of a JSON
    /// pointer and a word, and the warnings about a grammar or a schema. Raises `ConstraintError` if it is invalid.
    #[pyo3(signature = (vocabulary = None))]
    fn check(&self, py: Python<'_>, vocabulary: Option<&Vocabulary>) -> PyResult<Checked> {
        let checked = py.detach(|| self.read(vocabulary));
        checked.map_err(|error| refused(py, &error))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.source.hash(&mut hasher);
        self.options.hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let this = slf.get();
        Ok((slf.get_type().into_any(), (this.kind(), this.source(), this.options()?, this.documents.clone())))
    }

    fn __repr__(&self) -> String {
        let mut text = match &self.source {
            maskwright::Constraint::Choice(choices) => format!("{choices:?}"),
            _ => match self.source() {
                Source::Text(text) => format!("{text:?}"),
                Source::List(_) => String::new(),
            },
        };
        if let Some((at, _)) = text.char_indices().nth(70) {
            text.truncate(at);
            text.push('…');
        }
        format!("<Constraint {} {text}>", self.kind())
    }
}

impl Constraint {
    /// Returns a constraint as it is, and converts other values such as dicts.
    pub(crate) fn of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        static COERCE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if let Ok(constraint) = value.cast::<Self>() {
            return Ok(constraint.clone());
        }
        let coerced = COERCE.import(value.py(), "maskwright.constraints", "coerce")?.call1((value,))?;
        Ok(coerced.cast_into::<Self>()?)
    }

    fn read(&self, vocabulary: Option<&Vocabulary>) -> Result<Checked, Error> {
        let vocabulary = vocabulary.map(|vocabulary| &*vocabulary.vocabulary);
        let (_grammar, remarks) = self.source.grammar(&self.options, vocabulary)?;
        Ok((report(&remarks), warnings(&remarks)))
    }
}

/// Returns how each keyword of a schema is treated: a JSON pointer, and a word.
pub(crate) fn report(remarks: &Remarks) -> Vec<(String, String)> {
    let entries = remarks.report.as_ref().map(Report::entries).unwrap_or_default();
    entries.into_iter().map(|entry| (entry.pointer, entry.coverage.to_string())).collect()
}

/// Returns the warnings about a grammar or a schema.
pub(crate) fn warnings(remarks: &Remarks) -> Vec<String> {
    let of_schema =
        remarks.schema_warnings().into_iter().map(|(pointer, message)| format!("{pointer} {message}"));
    remarks.warnings.iter().map(ToString::to_string).chain(of_schema).collect()
}

/// Returns a resolver that finds documents in a JSON object by URI.
fn resolver(documents: &str) -> PyResult<Resolver> {
    let documents: HashMap<String, serde_json::Value> = serde_json::from_str(documents).map_err(|error| {
        PyValueError::new_err(format!("the documents must be an object of schemas by address: {error}"))
    })?;
    Ok(Resolver::new(move |address| documents.get(address).cloned()))
}

/// Converts a schema to one regular expression of at most this many bytes. Raises `ConstraintError` if it is not
/// regular.
#[pyfunction]
pub(crate) fn schema_to_regex(
    py: Python<'_>,
    schema: &Constraint,
    max_length: Option<usize>,
) -> PyResult<String> {
    let maskwright::Constraint::JsonSchema(text) = &schema.source else {
        return Err(PyValueError::new_err("only a schema can be written as a regular expression"));
    };
    let mut limits = WriteLimits::default();
    limits.length = max_length.unwrap_or(limits.length);
    let written = py.detach(|| to_regex(text, &schema.options.json_schema, &limits));
    written.map(|(regex, _)| regex).map_err(|error| Class::Constraint.err(py, error))
}
