//! The report: for each keyword, whether it is enforced, an annotation, unenforced, or worth a note.

use std::collections::HashSet;

use core::fmt;

use maskwright_grammar::ExprId;

use super::path::{PathId, Paths};
use crate::notation::nearest;

/// The keywords that constrain something in at least one draft.
const CONSTRAINING: &[&str] = &[
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Keywords that are known to constrain nothing, and are never reported as misspelled.
const ANNOTATIONS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "example",
    "examples",
    "id",
    "name",
    "note",
    "nullable",
    "order",
    "readOnly",
    "title",
    "unit",
    "units",
    "version",
    "writeOnly",
];

/// The coverage of each keyword that was read, by JSON pointer.
///
/// Schemas that lowering does not visit are not listed: definitions without a reference, and schemas below a keyword
/// that cannot apply.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) paths: Paths,
    lines: Vec<Line>,
    /// The schemas that allow arbitrary arrays or objects, and so unbounded nesting.
    pub(crate) free: Vec<PathId>,
    /// The schemas with a separate rule. Each rule is named after the last segment of the schema's place.
    pub(crate) called: Vec<PathId>,
    /// The schemas for which expressions were made, each with the index of its first expression, in ascending order.
    origins: Vec<(u32, PathId)>,
}

/// An [`Entry`] whose pointer is not written out yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) path: PathId,
    /// Empty if the line concerns the place itself.
    pub(crate) keyword: &'static str,
    pub(crate) coverage: Coverage,
}

/// One line of the [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The JSON pointer of the keyword, or of the schema if a [`Coverage::Note`] concerns the whole schema.
    pub pointer: String,
    /// Whether the keyword is enforced.
    pub coverage: Coverage,
}

/// How a keyword is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coverage {
    /// Every document that the grammar allows satisfies the keyword.
    Enforced,
    /// The keyword constrains nothing: it is an annotation, unknown to the standard, or ignored by its draft.
    Annotation,
    /// The keyword is not enforced. Occurs only under [`Strictness::Lenient`](super::Strictness::Lenient).
    Unenforced,
    /// A fact that the reader should know about this place.
    Note(Note),
}

/// A fact that the reader of a [`Report`] should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Note {
    /// No value satisfies this schema, so the optional property, item or branch is never written.
    NeverWritten,
    /// The bound is above 2³²−1 and is taken as no bound, because no text of that size can be written.
    BoundOutOfReach,
    /// The standard has no format of this name, so it constrains nothing.
    UnknownFormat {
        /// A known format with a similar name.
        near: Option<&'static str>,
    },
}

impl Report {
    /// Returns the entries in the order in which the keywords were read, without repetitions.
    pub fn entries(&self) -> Vec<Entry> {
        let mut seen = HashSet::new();
        let entries = self.lines.iter().map(|line| Entry {
            pointer: self.paths.pointer_to(line.path, line.keyword),
            coverage: line.coverage,
        });
        entries.filter(|entry| seen.insert((entry.pointer.clone(), entry.coverage))).collect()
    }

    /// Returns probable mistakes that the standard does not call errors: a keyword that constrains nothing but is
    /// spelled almost like one that does, and an unknown format. Each comes with its JSON pointer and a message. Only
    /// the first hundred annotations and the first hundred formats are checked.
    ///
    /// ```
    /// use maskwright_frontend::json_schema;
    ///
    /// let schema = r#"{"type": "string", "maxLenght": 5, "format": "e-mail"}"#;
    /// let (_, report) = json_schema::grammar(schema, &json_schema::Options::default())?;
    /// let warnings = report.warnings();
    /// assert_eq!(warnings[0], ("/maxLenght".to_owned(), "constrains nothing; did you mean maxLength?".to_owned()));
    /// assert_eq!(warnings[1].1, "constrains nothing, because there is no format of this name; did you mean email?");
    /// # Ok::<(), json_schema::SchemaError>(())
    /// ```
    pub fn warnings(&self) -> Vec<(String, String)> {
        let mut seen = HashSet::new();
        let is_unknown = |line: &&Line| line.coverage == Coverage::Annotation && line.keyword.is_empty();
        let keywords = self.lines.iter().filter(is_unknown).take(100).filter_map(|line| {
            let pointer = self.paths.pointer(line.path);
            let name = pointer.rsplit('/').next().unwrap_or_default();
            let is_known = CONSTRAINING.contains(&name) || ANNOTATIONS.contains(&name);
            let word = nearest(name, CONSTRAINING.iter().copied().filter(|_| !is_known))?;
            Some((pointer, format!("constrains nothing; did you mean {word}?")))
        });
        let formats = self.lines.iter().filter_map(|line| match line.coverage {
            Coverage::Note(note @ Note::UnknownFormat { .. }) => Some((line, note)),
            _ => None,
        });
        let formats = formats
            .take(100)
            .map(|(line, note)| (self.paths.pointer_to(line.path, line.keyword), note.to_string()));
        keywords.chain(formats).filter(|(pointer, _)| seen.insert(pointer.clone())).collect()
    }

    /// Returns the JSON pointer of the schema for which an expression of the grammar was first made, if known. Later
    /// stages use it to name the place of an error in the grammar.
    pub fn origin(&self, expr: ExprId) -> Option<String> {
        let end = self.origins.partition_point(|(first, _)| *first as usize <= expr.index());
        let (_, path) = self.origins.get(end.checked_sub(1)?)?;
        Some(self.paths.pointer(*path))
    }

    pub(crate) fn new() -> Self {
        Self {
            paths: Paths::new(),
            lines: Vec::with_capacity(128),
            free: Vec::new(),
            called: Vec::new(),
            origins: Vec::with_capacity(64),
        }
    }

    /// Keeps the places and lines, and drops everything that refers to expressions.
    pub(crate) fn again(self) -> Self {
        Self { paths: self.paths, lines: self.lines, ..Self::new() }
    }

    /// Records that the expressions from index `expr` on are made for the schema at `path`.
    pub(crate) fn begin(&mut self, expr: usize, path: PathId) {
        match self.origins.last_mut() {
            Some(last) if last.0 as usize == expr => last.1 = path,
            _ => self.origins.push((expr as u32, path)),
        }
    }

    pub(crate) fn line(&mut self, path: PathId, keyword: &'static str, coverage: Coverage) {
        self.lines.push(Line { path, keyword, coverage });
    }

    pub(crate) fn extend(&mut self, lines: &[Line]) {
        self.lines.extend_from_slice(lines);
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeverWritten => "no value satisfies this schema, so it is never written",
            Self::BoundOutOfReach => "the bound is beyond reach and taken as no bound",
            Self::UnknownFormat { .. } => "constrains nothing, because there is no format of this name",
        })?;
        match self {
            Self::UnknownFormat { near: Some(near) } => write!(f, "; did you mean {near}?"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced => f.write_str("enforced"),
            Self::Annotation => f.write_str("annotation"),
            Self::Unenforced => f.write_str("unenforced"),
            Self::Note(note) => write!(f, "note: {note}"),
        }
    }
}
