//! Long texts, the same in every run.

/// A text of some 20,000 tokens for some of the languages.
pub fn long(_case: &str) -> Option<String> {
    None
}
