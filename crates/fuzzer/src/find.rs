//! Faults and how they are shown.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use crate::settings::Settings;

/// A wrong behavior. The text demonstrates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Both validators call the text invalid, but the engine accepts it.
    AcceptsInvalid(String),
    /// A key occurs twice, but the engine accepts it.
    AcceptsRepeatedKey(String),
    /// Both validators call the value valid, but the engine accepts none of its spellings.
    RefusesValid(String),
    /// An allowed spelling is refused.
    RefusesSpelling(String),
    /// A forbidden spelling is accepted.
    AcceptsSpelling(String),
    /// One order of keys accepts what the other refuses in every order.
    OrdersDiffer(String),
    /// The schema is reported to have no value, but this is one.
    CallsUnsatisfiable(String),
    /// The schema is reported to be malformed, but no validator agrees.
    Malformed(String),
    /// A walk under the mask cannot continue.
    Stuck(String),
    /// A token of the mask is refused.
    MaskLies(String),
    /// The text of a walk is not JSON, or is refused when it is read again.
    NotRead(String),
    /// A sufficient budget is refused, or a budget is not kept.
    Budget(String),
    /// A mask differs from the result of trying every token, or two notations differ in meaning.
    Mask(String),
    /// The code panicked.
    Panic(String),
}

impl Fault {
    /// Returns its kind, and the text that demonstrates it.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::AcceptsInvalid(text) => ("accepts an invalid document", text),
            Self::AcceptsRepeatedKey(text) => ("accepts a key twice", text),
            Self::RefusesValid(text) => ("refuses a valid document", text),
            Self::RefusesSpelling(text) => ("refuses a spelling", text),
            Self::AcceptsSpelling(text) => ("accepts a spelling", text),
            Self::OrdersDiffer(text) => ("the orders of keys disagree", text),
            Self::CallsUnsatisfiable(text) => ("calls a schema unsatisfiable", text),
            Self::Malformed(text) => ("calls a schema malformed", text),
            Self::Stuck(text) => ("a walk is stuck", text),
            Self::MaskLies(text) => ("a token of the mask is refused", text),
            Self::NotRead(text) => ("a finished text is not accepted", text),
            Self::Budget(text) => ("a budget is not kept", text),
            Self::Mask(text) => ("a mask is wrong", text),
            Self::Panic(text) => ("panic", text),
        }
    }

    /// Whether two faults are of the same kind, so that a smaller case may replace a larger one.
    pub fn is_like(&self, other: &Self) -> bool {
        core::mem::discriminant(self) == core::mem::discriminant(other)
    }
}

/// A fault with everything that is needed to reproduce it.
#[derive(Clone, Debug)]
pub struct Find {
    /// The seed of the round.
    pub seed: u64,
    /// The kind of round.
    pub kind: &'static str,
    /// The schema, or the text of another constraint.
    pub constraint: Value,
    /// The options of the schema.
    pub settings: Option<Settings>,
    /// The fault.
    pub fault: Fault,
    /// The verdicts of the first validator, the second one and the engine.
    pub verdicts: Option<[bool; 3]>,
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = self.fault.parts();
        writeln!(f, "FOUND: {kind}")?;
        writeln!(f, "  seed       {} ({})", self.seed, self.kind)?;
        match &self.constraint {
            Value::String(text) => writeln!(f, "  constraint {text}")?,
            schema => writeln!(f, "  schema     {schema}")?,
        }
        if let Some(settings) = &self.settings {
            writeln!(
                f,
                "  options    key order {:?}, white space {:?}, limit on cases {:?}",
                settings.order, settings.whitespace, settings.cases
            )?;
        }
        writeln!(f, "  shown by   {text}")?;
        if let Some([first, second, engine]) = self.verdicts {
            let word = |valid| if valid { "valid" } else { "invalid" };
            let ours = if engine { "accepted" } else { "refused" };
            writeln!(
                f,
                "  verdicts   jsonschema: {}, boon: {}, maskwright: {ours}",
                word(first),
                word(second)
            )?;
        }
        write!(
            f,
            "  again      make fuzz-schema ARGS=\"--seed {} --count 1 --only {}\"",
            self.seed, self.kind
        )
    }
}

/// Converts a panic to a fault.
pub fn caught<T>(act: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Fault::Panic(text.unwrap_or_default()))
    })
}
