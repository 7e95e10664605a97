//! The formats in which models write tool calls, and the parser for them.
//!
//! A `ToolFormat` creates the structural tag of a request. The tag is a constraint, and a `StreamReader` with the same
//! tag parses the text that was written under it, so both always agree. Requests and tags are passed as JSON; Python
//! code (`maskwright/tools.py`) converts dicts to JSON.

use maskwright::formats::{ModelFormat, Request};
use maskwright::stream::{self, Reader};
use maskwright::tag;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString};

use crate::errors::Class;
use crate::numbers;
use crate::slot::{Lease, Slot};
use crate::vocabulary::Vocabulary;

/// The format in which one family of models writes its tool calls.
#[pyclass(frozen, eq, module = "maskwright")]
#[derive(Debug, PartialEq)]
pub(crate) struct ToolFormat {
    format: ModelFormat,
}

#[pymethods]
impl ToolFormat {
    /// Returns the names of the built-in formats.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        ModelFormat::names().collect()
    }

    /// Returns the built-in format with this name.
    #[staticmethod]
    fn named(py: Python<'_>, name: &str) -> PyResult<Self> {
        let format = ModelFormat::named(name).map_err(|error| Class::Constraint.err(py, error))?;
        Ok(Self { format })
    }

    /// Parses the description of a format, in JSON.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let format = ModelFormat::parse(text).map_err(|error| Class::Constraint.err(py, error))?;
        Ok(Self { format })
    }

    /// The name of the format.
    #[getter]
    fn name(&self) -> &str {
        self.format.name()
    }

    /// The models that use this format, for people.
    #[getter]
    fn models(&self) -> &str {
        self.format.models()
    }

    /// Whether the format can distinguish reasoning from answers.
    #[getter]
    fn can_reason(&self) -> bool {
        self.format.can_reason()
    }

    /// The marker that begins reasoning, and a list of those that may end it. `None` if the format has none, or puts
    /// everything in messages or blocks.
    #[getter]
    fn reasoning_markers(&self) -> Option<(&str, Vec<&str>)> {
        let (begin, ends) = self.format.reasoning_markers()?;
        Some((begin, ends.iter().map(String::as_str).collect()))
    }

    /// Returns the constraint for a request. `tools` are dicts with a `name` and, for the input, `parameters` (a schema
    /// or a Pydantic model), `regex`, `lark`, `ebnf` or `text`; or the tools of OpenAI's API. The options are `choice`,
    /// `one_call`, `thinking`, `answer`, `any_order`, and those of `structural_tag`.
    #[pyo3(signature = (tools = None, **options))]
    fn constraint<'py>(
        slf: &Bound<'py, Self>,
        tools: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static CONSTRAINT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        CONSTRAINT.import(slf.py(), "maskwright.tools", "constraint")?.call((slf, tools), options)
    }

    /// Returns the structural tag of a request, both as JSON.
    fn tag_of(&self, py: Python<'_>, request: &str) -> PyResult<String> {
        let wrong = |error: &dyn core::fmt::Display| Class::Constraint.err(py, error);
        let request: serde_json::Value = serde_json::from_str(request)
            .map_err(|error| wrong(&format!("the request is no JSON: {error}")))?;
        let request = Request::from_json(&request).map_err(|error| wrong(&error))?;
        let tree = self.format.tag(&request).map_err(|error| wrong(&error))?;
        Ok(serde_json::json!({"type": "structural_tag", "format": tree.to_value()}).to_string())
    }

    fn __repr__(&self) -> String {
        format!("<ToolFormat {}>", self.format.name())
    }
}

/// Something that the reader has recognized.
///
/// `kind` is "text", "reasoning", "call", "call_id", "arguments", "call_done", "call_failed", "tag", "tag_text",
/// "tag_done" or "tag_failed". `text` is what was read: more of the answer or of the arguments, all arguments of a
/// completed call, or the marker that began a tag. `index` counts calls and tags, `name` is the name of the tool.
#[pyclass(frozen, eq, module = "maskwright")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event(stream::Event);

#[pymethods]
impl Event {
    /// The kind of event.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// The index of the call or tag; `None` for text and reasoning.
    #[getter]
    fn index(&self) -> Option<usize> {
        self.0.index()
    }

    /// The name of the tool, when a call begins and when it ends.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    /// The text that was read.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    fn __repr__(&self) -> String {
        let index = self.0.index().map_or_else(String::new, |index| format!(" {index}"));
        let name = self.0.name().map_or_else(String::new, |name| format!(" {name}"));
        format!("<Event {}{index}{name} {:?}>", self.0.kind(), self.0.text())
    }
}

/// Parses what a model writes under a structural tag, piece by piece: text, reasoning and tool calls.
#[pyclass(frozen, module = "maskwright", weakref)]
pub(crate) struct StreamReader {
    slot: Slot<Reader>,
    vocabulary: Option<Py<Vocabulary>>,
}

#[pymethods]
impl StreamReader {
    /// Creates a reader for texts under a structural tag: a constraint, a dict, or JSON. To feed it with tokens, pass a
    /// vocabulary.
    #[new]
    #[pyo3(signature = (tag, vocabulary = None))]
    fn new(tag: &Bound<'_, PyAny>, vocabulary: Option<Py<Vocabulary>>) -> PyResult<Self> {
        static TAG_TEXT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = tag.py();
        let text: String = TAG_TEXT.import(py, "maskwright.tools", "tag_text")?.call1((tag,))?.extract()?;
        let wrong = |error: &dyn core::fmt::Display| Class::Constraint.err(py, error);
        let tree = tag::parse(&text, &tag::Options::default()).map_err(|error| wrong(&error))?;
        let reader = Reader::new(&tree).map_err(|error| wrong(&error))?;
        Ok(Self { slot: Slot::new(reader), vocabulary })
    }

    /// Reads a piece: text, bytes, a token, or a list of tokens. Returns the events in it.
    fn feed(&self, py: Python<'_>, piece: &Bound<'_, PyAny>) -> PyResult<Vec<Event>> {
        let mut events = Vec::new();
        let mut reader = self.lease()?;
        if let Ok(text) = piece.cast::<PyString>() {
            let text = text.to_str().map_err(|_| {
                PyValueError::new_err("the text contains half of a surrogate pair, which is not a character")
            })?;
            reader.feed(text, &mut events);
        } else if let Ok(bytes) = piece.cast::<PyBytes>() {
            reader.feed_bytes(bytes.as_bytes(), &mut events);
        } else {
            let tokens = if piece.is_instance_of::<PyInt>() {
                vec![numbers::token(piece.extract()?)]
            } else {
                numbers::tokens(piece)?
            };
            let Some(vocabulary) = &self.vocabulary else {
                return Err(PyTypeError::new_err(
                    "a reader without a vocabulary is fed with text; give the vocabulary when the reader is made",
                ));
            };
            let vocabulary = &vocabulary.get().vocabulary;
            if let Some(unknown) = tokens.iter().find(|token| token.index() >= vocabulary.size()) {
                return Err(Class::Token.err(py, format!("token {}: there is no such token", unknown.0)));
            }
            for token in tokens {
                reader.feed_token(token, vocabulary, &mut events);
            }
        }
        Ok(told(events))
    }

    /// Ends the text. Returns the events at the end, and how the text ended: "complete"; "cut", if it ended too early;
    /// or "strayed", if a part of it did not fit the tag.
    fn finish(&self) -> PyResult<(Vec<Event>, &'static str)> {
        let mut events = Vec::new();
        let finish = self.lease()?.finish(&mut events);
        Ok((told(events), finish.name()))
    }

    /// Returns a reader for the same tag at the beginning of another text.
    fn fresh(&self, py: Python<'_>) -> PyResult<Self> {
        let reader = self.lease()?.fresh();
        let vocabulary = self.vocabulary.as_ref().map(|vocabulary| vocabulary.clone_ref(py));
        Ok(Self { slot: Slot::new(reader), vocabulary })
    }
}

impl StreamReader {
    fn lease(&self) -> PyResult<Lease<'_, Reader>> {
        self.slot.lease().map_err(|_| {
            PyRuntimeError::new_err("the reader is in use by another call; a reader belongs to one text")
        })
    }
}

fn told(events: Vec<stream::Event>) -> Vec<Event> {
    events.into_iter().map(Event).collect()
}
