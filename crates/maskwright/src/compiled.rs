//! What compiling gives: the compiled constraint, and what the frontend remarked about its text.

use std::sync::Arc;

use maskwright_engine::{AutomatonCache, BoundProgram, Library, Limits, Matcher};
use maskwright_frontend::json_schema::Report;
use maskwright_grammar::{Diagnostic, Grammar};
use maskwright_vocab::Vocabulary;
use maskwright_weighted::Weights;

/// A compiled constraint: frozen, cheap to clone, and shared by any number of texts.
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

/// What a frontend says about a constraint that it accepts.
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
    /// Warnings about a grammar: it is accepted, but its author may have meant something else.
    pub warnings: Vec<Diagnostic>,
    /// What became of each keyword of a JSON Schema. `None` for other constraints.
    pub report: Option<Report>,
    /// What a grammar with probabilities says about texts. `None` for other constraints.
    pub weights: Option<Arc<Weights>>,
    /// The temperatures that rules of a grammar want. `None` if none does.
    pub temperatures: Option<Temperatures>,
    /// Bytes of the schema that the report is about.
    schema_bytes: usize,
}

impl CompiledConstraint {
    pub(crate) fn new(bound: Arc<BoundProgram>, remarks: Remarks) -> Self {
        Self { bound, remarks: Arc::new(remarks) }
    }

    /// A matcher at the beginning of a text.
    pub fn matcher(&self) -> Matcher {
        self.bound.matcher()
    }

    /// What the frontend said about the constraint.
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// The program, bound to the vocabulary.
    pub fn bound(&self) -> &Arc<BoundProgram> {
        &self.bound
    }

    /// The vocabulary that it was compiled for.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.bound.vocabulary()
    }

    /// Bytes that it holds now. They become more while texts are matched.
    pub fn heap_bytes(&self) -> usize {
        self.bound.heap_bytes() + self.remarks.heap_bytes()
    }
}

impl Remarks {
    pub(crate) const NONE: Self =
        Self { warnings: Vec::new(), report: None, weights: None, temperatures: None, schema_bytes: 0 };

    /// Warnings about a grammar.
    pub(crate) fn warnings(warnings: Vec<Diagnostic>) -> Self {
        Self { warnings, ..Self::default() }
    }

    /// Warnings about a weighted grammar, and its weights.
    pub(crate) fn weights(warnings: Vec<Diagnostic>, weights: Weights) -> Self {
        Self { warnings, weights: Some(Arc::new(weights)), ..Self::default() }
    }

    /// The report about a schema of so many bytes.
    pub(crate) fn report(report: Report, schema_bytes: usize) -> Self {
        Self { report: Some(report), schema_bytes, ..Self::default() }
    }

    /// Warnings about a JSON Schema, each with its JSON pointer: see [`Report::warnings`].
    pub fn schema_warnings(&self) -> Vec<(String, String)> {
        self.report.as_ref().map(Report::warnings).unwrap_or_default()
    }

    /// About how many bytes they hold.
    pub fn heap_bytes(&self) -> usize {
        // A keyword takes some 25 bytes of a schema, and some 50 of its report.
        let report = 2 * self.schema_bytes;
        let text =
            |warning: &Diagnostic| warning.message.len() + warning.help.as_ref().map_or(0, String::len);
        let warnings = self.warnings.iter().map(|warning| size_of::<Diagnostic>() + text(warning));
        let weights = self.weights.as_ref().map_or(0, |weights| weights.heap_bytes());
        let temperatures = self.temperatures.as_ref().map_or(0, Temperatures::heap_bytes);
        report + weights + temperatures + warnings.sum::<usize>()
    }
}

/// A grammar of which some rules want a temperature; a [`Follower`](crate::locate::Follower) tells which holds where.
#[derive(Clone, Debug)]
pub struct Temperatures {
    pub(crate) grammar: Arc<Grammar>,
    pub(crate) library: Arc<Library>,
    pub(crate) tables: Arc<AutomatonCache>,
    pub(crate) limits: Limits,
}

impl Temperatures {
    /// Those of a grammar; `None` if no rule wants one.
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

    /// About how many bytes it holds.
    fn heap_bytes(&self) -> usize {
        self.grammar.exprs().len() * 64
    }
}
