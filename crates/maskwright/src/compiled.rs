//! The result of compiling: the compiled constraint, and the frontend's remarks about its source.

use std::sync::Arc;

use maskwright_engine::{AutomatonCache, BoundProgram, Library, Limits, Matcher};
use maskwright_frontend::json_schema::Report;
use maskwright_grammar::{Diagnostic, Grammar};
use maskwright_vocab::Vocabulary;
use maskwright_weighted::Weights;

/// A compiled constraint: immutable, cheap to clone, and shared by any number of texts.
///
/// ```
/// use std::sync::Arc;
/// use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
///
/// # let mut vocabulary = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     vocabulary.token(TokenId(byte.into()), &[byte])?;
/// # }
/// let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
/// let compiled = compiler.compile(&Constraint::json_schema(r#"{"type": "integer", "title": "Age"}"#))?;
/// let report = compiled.remarks().report.as_ref().expect("a schema has a report");
/// let lines: Vec<_> = report.entries().into_iter().map(|entry| format!("{}: {}", entry.pointer, entry.coverage)).collect();
/// assert_eq!(lines, ["/type: enforced", "/title: annotation"]);
/// assert!(compiled.matcher().accept_bytes(b"42").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompiledConstraint {
    bound: Arc<BoundProgram>,
    remarks: Arc<Remarks>,
}

/// The remarks of a frontend about a constraint that it accepts.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let compiled = compiler.compile(&Constraint::ebnf("root ::= \"a\"\nunused ::= \"b\""))?;
/// let warnings = &compiled.remarks().warnings;
/// assert!(warnings[0].message.contains("unused"), "{warnings:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Remarks {
    /// Warnings about a grammar that is accepted but may not mean what its author intended.
    pub warnings: Vec<Diagnostic>,
    /// How each keyword of a JSON Schema was treated. `None` for other constraints.
    pub report: Option<Report>,
    /// The probabilities of a weighted grammar. `None` for other constraints.
    pub weights: Option<Arc<Weights>>,
    /// The temperatures that rules of a grammar request. `None` if no rule does.
    pub temperatures: Option<Temperatures>,
    /// The length of the schema that the report is about, in bytes.
    schema_bytes: usize,
}

impl CompiledConstraint {
    pub(crate) fn new(bound: Arc<BoundProgram>, remarks: Remarks) -> Self {
        Self { bound, remarks: Arc::new(remarks) }
    }

    /// Returns a matcher at the beginning of a text.
    pub fn matcher(&self) -> Matcher {
        self.bound.matcher()
    }

    /// Returns the frontend's remarks about the constraint.
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Returns the program, bound to the vocabulary.
    pub fn bound(&self) -> &Arc<BoundProgram> {
        &self.bound
    }

    /// Returns the vocabulary that it was compiled for.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.bound.vocabulary()
    }

    /// Returns the number of bytes that it holds now. It grows while texts are matched.
    pub fn heap_bytes(&self) -> usize {
        self.bound.heap_bytes() + self.remarks.heap_bytes()
    }
}

impl Remarks {
    pub(crate) const NONE: Self =
        Self { warnings: Vec::new(), report: None, weights: None, temperatures: None, schema_bytes: 0 };

    /// Creates remarks with warnings about a grammar.
    pub(crate) fn warnings(warnings: Vec<Diagnostic>) -> Self {
        Self { warnings, ..Self::default() }
    }

    /// Creates remarks with warnings about a weighted grammar, and its weights.
    pub(crate) fn weights(warnings: Vec<Diagnostic>, weights: Weights) -> Self {
        Self { warnings, weights: Some(Arc::new(weights)), ..Self::default() }
    }

    /// Creates remarks with the report about a schema of this length.
    pub(crate) fn report(report: Report, schema_bytes: usize) -> Self {
        Self { report: Some(report), schema_bytes, ..Self::default() }
    }

    /// Returns the warnings about a JSON Schema, each with its JSON pointer: see [`Report::warnings`].
    pub fn schema_warnings(&self) -> Vec<(String, String)> {
        self.report.as_ref().map(Report::warnings).unwrap_or_default()
    }

    /// Returns approximately how many bytes they hold.
    pub fn heap_bytes(&self) -> usize {
        // A keyword takes about 25 bytes in a schema, and about 50 in its report.
        let report = 2 * self.schema_bytes;
        let text =
            |warning: &Diagnostic| warning.message.len() + warning.help.as_ref().map_or(0, String::len);
        let warnings = self.warnings.iter().map(|warning| size_of::<Diagnostic>() + text(warning));
        let weights = self.weights.as_ref().map_or(0, |weights| weights.heap_bytes());
        let temperatures = self.temperatures.as_ref().map_or(0, Temperatures::heap_bytes);
        report + weights + temperatures + warnings.sum::<usize>()
    }
}

/// A grammar in which some rules request a temperature. A [`Follower`](crate::locate::Follower) finds out which
/// temperature applies at a place in a text.
#[derive(Clone, Debug)]
pub struct Temperatures {
    pub(crate) grammar: Arc<Grammar>,
    pub(crate) library: Arc<Library>,
    pub(crate) tables: Arc<AutomatonCache>,
    pub(crate) limits: Limits,
}

impl Temperatures {
    /// Collects the temperatures of a grammar. Returns `None` if no rule requests one.
    pub(crate) fn of(
        grammar: &Grammar,
        library: &Arc<Library>,
        tables: &Arc<AutomatonCache>,
        limits: Limits,
    ) -> Option<Self> {
        let is_wanted =
            grammar.rules().iter().any(|rule| rule.notes().is_some_and(|notes| notes.temperature.is_some()));
        let (library, tables) = (library.clone(), tables.clone());
        is_wanted.then(|| Self { grammar: Arc::new(grammar.clone()), library, tables, limits })
    }

    /// Returns approximately how many bytes it holds.
    fn heap_bytes(&self) -> usize {
        self.grammar.exprs().len() * 64
    }
}
