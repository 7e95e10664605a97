//! The reasons why a reference leads to no schema.

use super::super::error::Reason;

/// Why a reference leads to no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// The document with this address was not loaded.
    Document(String),
    Anchor,
    Nothing,
    /// The target depends on the dynamic scope, which was not tracked.
    Scope,
}

impl Miss {
    /// Returns the error for a reference with this text.
    pub(crate) fn explain(&self, reference: &str) -> (Reason, String, &'static str) {
        match self {
            Self::Document(_) => (
                Reason::Unsupported,
                format!("`{reference}` is in another document, which is not available"),
                "copy the schema into `$defs` and refer to it there, or pass a resolver",
            ),
            Self::Anchor => (
                Reason::Reference,
                format!("`{reference}` names an anchor that no schema declares"),
                "declare it with `$anchor` or fix the reference",
            ),
            Self::Nothing | Self::Scope => (
                Reason::Reference,
                format!("`{reference}` leads to no schema"),
                "define the schema there or fix the reference",
            ),
        }
    }
}
