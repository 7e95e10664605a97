//! The meta-schemas of the supported drafts, to which any schema may refer.
//!
//! `{"$ref": "https://json-schema.org/draft/2020-12/schema"}` describes documents that are schemas themselves. The
//! meta-schemas of all supported drafts are part of this crate, without their annotations. The caller's resolver takes
//! precedence.

use serde_json::{Map, Value};

const ALL: &str = include_str!("metaschemas.json");

/// Returns the document at a well-known address.
pub(crate) fn find(address: &str) -> Option<Value> {
    let address = address.trim_end_matches('#');
    let known =
        address.starts_with("http://json-schema.org/") || address.starts_with("https://json-schema.org/");
    if !known {
        return None;
    }
    let mut all: Map<String, Value> = serde_json::from_str(ALL).ok()?;
    all.remove(address)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_drafts_are_there() {
        for address in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema",
            "http://json-schema.org/draft-07/schema",
            "https://json-schema.org/draft/2019-09/meta/validation",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            assert!(find(address).is_some_and(|schema| schema.is_object()), "{address}");
        }
        assert!(find("https://json-schema.org/draft/2021-01/schema").is_none());
    }
}
