//! The store of schemas: every schema that the root reaches, read and resolved before lowering starts.
//!
//! ```text
//! documents ── load ──> Schemas     frozen: id ─> place, dialect, Keywords
//! ```
//!
//! A schema is identified by the memory address of its JSON value. So a schema that is reached in two ways has one id,
//! and recursion ends. Where `$dynamicRef` is used, the dynamic scope is part of the identity. In [`Keywords`],
//! subschemas and the targets of references are ids: after loading, the JSON text is needed only for the values of
//! `enum` and `const`.
//!
//! Loading reports nothing immediately. A schema that lowering never visits may be malformed, or refer to a document
//! that does not exist. So report lines and faults are kept with their schema ([`Schemas::lines`], [`Schemas::faults`])
//! until it is visited.

mod dialect;
mod keywords;
mod load;
pub(crate) mod metaschemas;
mod miss;
mod uri;

use core::ops::Range;
use std::rc::Rc;

use super::error::Reason;
use super::path::PathId;
use super::report::Line;

pub(crate) use dialect::Dialect;
pub(crate) use keywords::{Bound, Conditional, Keywords, Properties, Reference, Window};
pub(crate) use load::{Source, load};
pub(crate) use miss::Miss;

/// The id of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SchemaId(pub(crate) u32);

impl SchemaId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One schema.
#[derive(Clone, Debug)]
pub(crate) struct Schema<'s> {
    pub(crate) path: PathId,
    pub(crate) dialect: Dialect,
    /// Whether the schema is the literal `false`.
    pub(crate) is_false: bool,
    pub(crate) keywords: Rc<Keywords<'s>>,
    lines: Range<u32>,
}

impl<'s> Schema<'s> {
    /// Creates a schema that occurs in no document.
    pub(crate) fn derived(path: PathId, dialect: Dialect, keywords: Keywords<'s>) -> Self {
        let is_false = keywords.types.is_empty();
        Self { path, dialect, is_false, keywords: Rc::new(keywords), lines: 0..0 }
    }
}

/// The schemas of all documents.
#[derive(Debug)]
pub(crate) struct Schemas<'s> {
    root: SchemaId,
    list: Vec<Schema<'s>>,
    /// Lines of the report, grouped by schema.
    lines: Vec<Line>,
    faults: Vec<(SchemaId, Fault)>,
}

/// An error in a schema.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) reason: Reason,
    pub(crate) path: PathId,
    pub(crate) keyword: &'static str,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl<'s> Schemas<'s> {
    /// Returns the id of the root schema.
    pub(crate) fn root(&self) -> SchemaId {
        self.root
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the schema with this id, if it is in the store.
    pub(crate) fn get(&self, id: SchemaId) -> Option<&Schema<'s>> {
        self.list.get(id.index())
    }

    /// Returns the lines of the report for the keywords of a schema.
    pub(crate) fn lines(&self, id: SchemaId) -> &[Line] {
        let Range { start, end } = self.list[id.index()].lines;
        &self.lines[start as usize..end as usize]
    }

    /// Returns the errors in a schema.
    pub(crate) fn faults(&self, id: SchemaId) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(move |(owner, _)| *owner == id).map(|(_, fault)| fault)
    }
}
