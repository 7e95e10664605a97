//! How an answer is written, other than token by token under a mask: the fields `mass`, `sampling`, `draft` and `heal`
//! of `maskwright`.

use maskwright::exact::MAX_TRIES;

use super::{Fields, fields::not_among};
use crate::error::{ApiError, Result};

/// The default number of tries.
const DEFAULT_TRIES: usize = 64;
/// The default text between a draft and the answer.
const THEN: &str = "\n\n";

/// How an answer is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decoding {
    /// Whether to report the mass of masks.
    pub(crate) mass: bool,
    /// The number of tries, with exact sampling.
    pub(crate) tries: Option<usize>,
    /// The draft that the model writes first, without a constraint.
    pub(crate) draft: Option<Draft>,
    /// Whether a prompt that ends inside a token is cut back; yes by default.
    pub(crate) heal: Option<bool>,
}

/// A text that comes before the answer, without a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) max_tokens: usize,
    /// The text after it.
    pub(crate) then: String,
}

/// Reads these fields from the object `maskwright`.
pub(crate) fn take(own: &mut Fields) -> Result<Decoding> {
    let mass = own.flag("mass")?.unwrap_or(false);
    let most = i64::try_from(MAX_TRIES).unwrap_or(i64::MAX);
    let tries = own.whole("tries", 1, most)?.and_then(|tries| usize::try_from(tries).ok());
    let tries = match own.text("sampling")?.as_deref() {
        Some("exact") => Some(tries.unwrap_or(DEFAULT_TRIES)),
        None | Some("masked") if tries.is_some() => {
            let message =
                format!("'{0}' is only allowed when '{1}' is 'exact'", own.at("tries"), own.at("sampling"));
            return Err(ApiError::value(own.at("tries"), message));
        }
        None | Some("masked") => None,
        Some(other) => return Err(not_among(own, "sampling", other, "masked, exact")),
    };
    let draft = own.object("draft")?.map(|mut draft| {
        let max_tokens =
            draft.count("max_tokens")?.ok_or_else(|| ApiError::missing(draft.at("max_tokens")))?;
        let then = draft.text("then")?.unwrap_or_else(|| THEN.to_owned());
        draft.finish()?;
        Ok::<_, ApiError>(Draft { max_tokens, then })
    });
    Ok(Decoding { mass, tries, draft: draft.transpose()?, heal: own.flag("heal")? })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Decoding> {
        let mut own = Fields::new(value, "maskwright").unwrap();
        let decoding = take(&mut own)?;
        own.finish()?;
        Ok(decoding)
    }

    #[test]
    fn what_is_said_is_read() {
        assert_eq!(read(json!({})), Ok(Decoding::default()));
        assert_eq!(read(json!({"sampling": "exact"})).unwrap().tries, Some(DEFAULT_TRIES));
        let decoding = read(
            json!({"mass": true, "sampling": "exact", "tries": 5, "draft": {"max_tokens": 9, "then": "!"}, "heal": false}),
        );
        let draft = Some(Draft { max_tokens: 9, then: "!".into() });
        assert_eq!(decoding, Ok(Decoding { mass: true, tries: Some(5), draft, heal: Some(false) }));
    }

    #[test]
    fn absurd_values_are_refused_by_name() {
        for (value, param) in [
            (json!({"tries": 3}), "maskwright.tries"),
            (json!({"sampling": "exact", "tries": 0}), "maskwright.tries"),
            (json!({"sampling": "exact", "tries": 1_000_000_000}), "maskwright.tries"),
            (json!({"sampling": "exact", "tries": 1.5}), "maskwright.tries"),
            (json!({"sampling": "fair"}), "maskwright.sampling"),
            (json!({"mass": 1}), "maskwright.mass"),
            (json!({"draft": {}}), "maskwright.draft.max_tokens"),
            (json!({"draft": {"max_tokens": 0}}), "maskwright.draft.max_tokens"),
            (json!({"draft": {"max_tokens": 5, "words": 3}}), "maskwright.draft.words"),
            (json!({"draft": true}), "maskwright.draft"),
            (json!({"heal": "yes"}), "maskwright.heal"),
        ] {
            assert_eq!(read(value.clone()).unwrap_err().param.as_deref(), Some(param), "{value}");
        }
    }
}
