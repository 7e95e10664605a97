//! What became of each keyword.

use std::collections::HashSet;

use core::fmt;

use maskwright_grammar::ExprId;

use super::path::{PathId, Paths};

/// The coverage report: each keyword that was met, by JSON pointer.
///
/// A schema that is reached only through a definition that nobody refers to is not met, and neither is one
/// below a keyword that cannot apply.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) paths: Paths,
    entries: Vec<(PathId, &'static str, Coverage)>,
    /// Where arrays or objects of any kind are allowed, and so recursion.
    pub(crate) free: Vec<PathId>,
    /// The schemas that have rules of their own, which are named by the last part of their places.
    pub(crate) called: Vec<PathId>,
    /// From which expression on they were made for which schema, ascending.
    origins: Vec<(u32, PathId)>,
}

/// One line of the [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The JSON pointer of the keyword, or of the schema for a [`Coverage::Note`].
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
    /// The keyword constrains nothing: it is a remark, unknown to the standard, or ignored by its draft.
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
}

impl Report {
    /// The lines, in the order in which the keywords were met, each place once.
    pub fn entries(&self) -> Vec<Entry> {
        let mut seen = HashSet::new();
        let entries = self.entries.iter();
        let entries = entries.map(|&(path, keyword, coverage)| {
            let mut pointer = self.paths.pointer(path);
            if !keyword.is_empty() {
                pointer.push('/');
                pointer.push_str(keyword);
            }
            Entry { pointer, coverage }
        });
        entries.filter(|entry| seen.insert((entry.pointer.clone(), entry.coverage))).collect()
    }

    /// The JSON pointer of the schema that an expression of the grammar was first made for, if that is known. For what is found out about the
    /// grammar later.
    pub fn origin(&self, expr: ExprId) -> Option<String> {
        let behind = self.origins.partition_point(|(first, _)| *first as usize <= expr.index());
        let (_, path) = self.origins.get(behind.checked_sub(1)?)?;
        Some(self.paths.pointer(*path))
    }

    pub(crate) fn new() -> Self {
        Self {
            paths: Paths::new(),
            entries: Vec::with_capacity(128),
            free: Vec::new(),
            called: Vec::new(),
            origins: Vec::with_capacity(64),
        }
    }

    /// Expressions from this number on are made for the schema at a place.
    pub(crate) fn begin(&mut self, expr: usize, path: PathId) {
        match self.origins.last_mut() {
            Some(last) if last.0 as usize == expr => last.1 = path,
            _ => self.origins.push((expr as u32, path)),
        }
    }

    /// The expressions have other numbers now.
    pub(crate) fn forget_origins(&mut self) {
        self.origins.clear();
    }

    /// Says something about a place.
    pub(crate) fn push(&mut self, path: PathId, coverage: Coverage) {
        self.entries.push((path, "", coverage));
    }

    /// Says something about a keyword of the schema at a place.
    pub(crate) fn keyword(&mut self, path: PathId, keyword: &'static str, coverage: Coverage) {
        self.entries.push((path, keyword, coverage));
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeverWritten => "no value satisfies this schema, so it is never written",
            Self::BoundOutOfReach => "the bound is beyond reach and taken as no bound",
        })
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
