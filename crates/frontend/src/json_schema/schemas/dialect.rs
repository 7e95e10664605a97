//! The draft of the standard in which a schema is written.

/// A draft of JSON Schema, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft04,
    Draft06,
    Draft07,
    Draft2019,
    Draft2020,
}

impl Dialect {
    /// Returns the draft that a `$schema` address names. An unknown address is a custom dialect, and is read as the
    /// newest draft. Returns `None` for drafts before draft-04, which are not supported.
    pub(crate) fn named(address: &str) -> Option<Self> {
        let address = address.trim_end_matches('#').trim_end_matches('/');
        let address = address.split_once("://").map_or(address, |(_, rest)| rest);
        Some(match address {
            "json-schema.org/draft-00/schema"
            | "json-schema.org/draft-01/schema"
            | "json-schema.org/draft-02/schema"
            | "json-schema.org/draft-03/schema" => return None,
            "json-schema.org/draft-04/schema" => Self::Draft04,
            "json-schema.org/draft-06/schema" => Self::Draft06,
            "json-schema.org/draft-07/schema" => Self::Draft07,
            "json-schema.org/draft/2019-09/schema" => Self::Draft2019,
            _ => Self::Draft2020,
        })
    }

    /// Checks whether the keywords beside a `$ref` are ignored.
    pub(crate) fn reference_stands_alone(self) -> bool {
        self <= Self::Draft07
    }

    /// Checks whether `1.0` is an integer.
    pub(crate) fn integer_by_value(self) -> bool {
        self > Self::Draft04
    }

    /// Returns the keyword that gives a schema its address.
    pub(crate) fn id_keyword(self) -> &'static str {
        if self == Self::Draft04 { "id" } else { "$id" }
    }
}
