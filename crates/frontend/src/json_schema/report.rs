//! What became of each keyword.

use std::collections::HashSet;

use core::fmt;

use maskwright_grammar::ExprId;

use super::path::{PathId, Paths};
use crate::notation::nearest;

/// The keywords that constrain something, in some draft.
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
/// Words that are meant to constrain nothing.
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

/// The coverage report: each keyword that was met, by JSON pointer.
///
/// Schemas that lowering does not visit are not listed: a definition without a reference to it, and what is below a
/// keyword that cannot apply.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) paths: Paths,
    lines: Vec<Line>,
    /// The schemas that allow arbitrary arrays or objects, and so recursion.
    pub(crate) free: Vec<PathId>,
    /// The schemas with a rule of their own. The rule is named by the last segment of the place.
    pub(crate) called: Vec<PathId>,
    /// The schemas that expressions were made for: each with the first of its expressions, ascending.
    origins: Vec<(u32, PathId)>,
}

/// An [`Entry`] before its pointer is spelled out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) path: PathId,
    /// Empty if the line is about the place itself.
    pub(crate) keyword: &'static str,
    pub(crate) coverage: Coverage,
}

/// One line of the [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The JSON pointer of the keyword, or of the schema if a [`Coverage::Note`] is about a whole one.
    pub pointer: String,
    /// What became of it.
    pub coverage: Coverage,
}

/// What became of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coverage {
    /// Every document that the grammar allows satisfies the keyword.
    Enforced,
    /// The keyword constrains nothing: it is an annotation, unknown to the standard, or ignored by its draft.
    Annotation,
    /// The keyword is not enforced. Only under [`Strictness::Lenient`](super::Strictness::Lenient).
    Unenforced,
    /// Something that the reader should know about this place.
    Note(Note),
}

/// Something that the reader of a [`Report`] should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Note {
    /// No value satisfies this schema, so that the optional property, item or branch is never written.
    NeverWritten,
    /// The bound lies above 2³²−1 and is taken as no bound: no text of that size can be written.
    BoundOutOfReach,
    /// The standard has no such format, so it constrains nothing.
    UnknownFormat {
        /// The format that is spelled almost like it.
        near: Option<&'static str>,
    },
}

impl Report {
    /// The lines, in the order in which the keywords were met, each place once.
    pub fn entries(&self) -> Vec<Entry> {
        let mut seen = HashSet::new();
        let entries = self.lines.iter().map(|line| Entry {
            pointer: self.paths.pointer_to(line.path, line.keyword),
            coverage: line.coverage,
        });
        entries.filter(|entry| seen.insert((entry.pointer.clone(), entry.coverage))).collect()
    }

    /// What is probably a mistake, and no error by the standard: a keyword that constrains nothing and is spelled almost like one that does, and a format that is not known. Each has its JSON
    /// pointer and what is wrong. A hundred annotations and a hundred formats are looked at.
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

    /// The JSON pointer of the schema that an expression of the grammar was first made for, if it is known. Errors that
    /// are found in the grammar later can name the place with it.
    pub fn origin(&self, expr: ExprId) -> Option<String> {
        let behind = self.origins.partition_point(|(first, _)| *first as usize <= expr.index());
        let (_, path) = self.origins.get(behind.checked_sub(1)?)?;
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

    /// The same before any expression was made.
    pub(crate) fn again(self) -> Self {
        Self { paths: self.paths, lines: self.lines, ..Self::new() }
    }

    /// Records that the expressions from this number on are made for the schema at a place.
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
