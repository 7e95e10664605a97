//! Compiles constraints for a vocabulary.

use core::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, IndexError, Library, LibraryLoadError, Limits, Program,
    Resolved, compile, compile_without, resolve,
};
use maskwright_frontend::{choice, ebnf, gbnf, json_schema, lark, regex, tag};
use maskwright_grammar::{Diagnostic, Grammar, GrammarBuilder, Span};
use maskwright_vocab::Vocabulary;
use maskwright_weighted::{Options as PcfgOptions, Pcfg, Weights};

use crate::compiled::Temperatures;
use crate::{CompiledConstraint, Constraint, Remarks};

/// How each language is read, and how much a constraint may cost.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Options, TokenId, VocabularyBuilder, json_schema, regex};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// // Compact JSON, and patterns as in JavaScript.
/// let mut options = Options::default().with_dialect(regex::Dialect::Ecma);
/// options.json_schema.whitespace = json_schema::Whitespace::Compact;
/// let compiled = compiler.compile_with(&Constraint::json_schema(r#"{"type": "array"}"#), &options)?;
/// assert!(compiled.matcher().accept_bytes(b"[1, 2]").is_err());
/// assert!(compiled.matcher().accept_bytes(b"[1,2]").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Options {
    /// For [`Constraint::Regex`].
    pub regex: regex::Options,
    /// For [`Constraint::Choice`].
    pub choice: choice::Limits,
    /// For [`Constraint::Ebnf`] and [`Constraint::Gbnf`].
    pub ebnf: ebnf::Options,
    /// For [`Constraint::Lark`].
    pub lark: lark::Options,
    /// For [`Constraint::JsonSchema`], and for schemas in a Lark grammar.
    pub json_schema: json_schema::Options,
    /// For [`Constraint::StructuralTag`], in addition to the options of the languages inside it.
    pub structural_tag: TagOptions,
    /// For [`Constraint::Pcfg`].
    pub pcfg: PcfgOptions,
    /// For all stages after the frontend.
    pub limits: Limits,
    /// The text that the output must begin with, before the text that the constraint describes: the end of a prompt
    /// that was [cut back](crate::heal()).
    pub prefix: String,
}

/// How structural tags are read. The languages inside them have their own options.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Options, TagOptions, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut options = Options::default();
/// options.structural_tag = TagOptions { specials: false, ..TagOptions::default() }; // markers are written as characters alone
/// let tag = r#"{"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</a>"}"#;
/// let compiled = compiler.compile_with(&Constraint::structural_tag(tag), &options)?;
/// assert!(compiled.matcher().accept_bytes(b"<a>42</a>").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct TagOptions {
    /// Whether markers may be written with special tokens, and whether free text may contain special tokens. If
    /// `false`, the text consists of characters only, except where the tag explicitly requires a token.
    pub specials: bool,
    /// The dialect of the patterns in it; ECMA-262 by default. All other options for patterns are in
    /// [`Options::regex`].
    pub dialect: regex::Dialect,
    /// The maximum length of the tag in bytes; 64 MiB by default.
    pub source_bytes: usize,
}

impl Default for TagOptions {
    fn default() -> Self {
        Self { specials: true, dialect: regex::Dialect::Ecma, source_bytes: 64 << 20 }
    }
}

impl Options {
    /// Returns the options for structural tags, with the names of the special tokens of a vocabulary.
    pub fn tag(&self, vocabulary: Option<&Vocabulary>) -> tag::Options {
        let vocabulary = vocabulary.filter(|_| self.structural_tag.specials);
        let specials = vocabulary
            .map(|vocabulary| vocabulary.specials().map(|(_, name)| name.to_owned()).collect())
            .unwrap_or_default();
        tag::Options {
            json_schema: self.json_schema.clone(),
            regex: self.regex.clone().with_dialect(self.structural_tag.dialect),
            ebnf: self.ebnf.clone(),
            lark: self.lark.clone(),
            specials,
            source_bytes: self.structural_tag.source_bytes,
        }
    }

    /// Sets the dialect of patterns, also of those in structural tags.
    #[must_use]
    pub fn with_dialect(mut self, dialect: regex::Dialect) -> Self {
        self.regex.dialect = dialect;
        self.structural_tag.dialect = dialect;
        self
    }

    /// Returns the dialect that the patterns of a constraint are read in. Returns `None` if the constraint has a fixed
    /// one: schemas always use ECMA-262, and Lark grammars Rust's.
    pub fn dialect_of(&self, constraint: &Constraint) -> Option<regex::Dialect> {
        match constraint {
            Constraint::Regex(_) => Some(self.regex.dialect),
            Constraint::StructuralTag(_) => Some(self.structural_tag.dialect),
            _ => None,
        }
    }

    /// Lowers the limits so that compiling takes at most about this many bytes, not counting what constraints share.
    #[must_use]
    pub fn within(mut self, bytes: usize) -> Self {
        let lower = |limit: &mut usize, each: usize| *limit = (*limit).min(bytes / each);
        // The cost of one item of each kind with its intermediate data, measured on constraints that were written to be
        // expensive.
        lower(&mut self.limits.exprs, 160);
        lower(&mut self.limits.nodes, 64);
        lower(&mut self.limits.leaf_bytes, 6);
        lower(&mut self.limits.table_bytes, 2);
        lower(&mut self.regex.source_bytes, 256);
        lower(&mut self.choice.bytes, 64);
        lower(&mut self.ebnf.limits.source_bytes, 32);
        lower(&mut self.lark.limits.source_bytes, 64);
        lower(&mut self.lark.limits.expansion, 512);
        lower(&mut self.json_schema.limits.schema_bytes, 16);
        lower(&mut self.structural_tag.source_bytes, 16);
        lower(&mut self.pcfg.source_bytes, 256);
        lower(&mut self.pcfg.symbols, 256);
        // There are five tables with this many entries of at most 24 bytes.
        lower(&mut self.pcfg.entries, 128);
        lower(&mut self.pcfg.patterns.bytes, 4);
        lower(&mut self.json_schema.limits.rules, 2_048);
        lower(&mut self.json_schema.limits.literals, 512);
        self
    }
}

/// Compiles constraints for one vocabulary. All of them share what it learns about the vocabulary.
///
/// ```
/// use std::sync::Arc;
/// use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
///
/// let mut vocabulary = VocabularyBuilder::new();
/// vocabulary.token(TokenId(0), b"1")?.token(TokenId(1), b"23")?.token(TokenId(2), b"x")?;
/// let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
/// // Shared by threads: what one constraint teaches it about the vocabulary, the next one knows.
/// let (number, word) = (Constraint::regex("[0-9]+"), Constraint::regex("[a-z]+"));
/// assert_eq!(compiler.compile(&number)?.matcher().mask_words()?, [0b011]);
/// assert_eq!(compiler.compile(&word)?.matcher().mask_words()?, [0b100]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Compiler {
    vocabulary: Arc<Vocabulary>,
    shared: RwLock<Arc<Shared>>,
    /// Former libraries, which some constraints may still use.
    former: Mutex<Vec<Weak<Library>>>,
    options: Options,
}

/// The data that all constraints share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) library: Arc<Library>,
    pub(crate) tables: Arc<AutomatonCache>,
    /// The library for grammars that refer to ordinary tokens by number.
    numbered: OnceLock<Arc<Library>>,
    /// The size of a library that has learned nothing yet, in bytes.
    empty: usize,
}

impl Shared {
    fn new(library: Arc<Library>, tables: AutomatonCache) -> Arc<Self> {
        let (empty, tables) = (library.heap_bytes(), Arc::new(tables));
        Arc::new(Self { empty, library, tables, numbered: OnceLock::new() })
    }

    fn bytes(&self) -> usize {
        let numbered = self.numbered.get().map_or(0, |library| library.heap_bytes());
        self.library.heap_bytes() + self.tables.heap_bytes() + numbered
    }

    fn numbered(&self) -> &Arc<Library> {
        let vocabulary = self.library.vocabulary();
        self.numbered.get_or_init(|| Arc::new(Library::new(Arc::new(vocabulary.numbered()))))
    }
}

impl Compiler {
    /// Creates a compiler with default options.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::with_options(vocabulary, Options::default())
    }

    /// Creates a compiler with these options.
    pub fn with_options(vocabulary: Arc<Vocabulary>, options: Options) -> Self {
        Self::with_library(Arc::new(Library::new(vocabulary)), options)
    }

    /// Creates a compiler that shares its library, but nothing else, with other compilers.
    pub fn with_library(library: Arc<Library>, options: Options) -> Self {
        let vocabulary = library.vocabulary().clone();
        let shared = RwLock::new(Shared::new(library, AutomatonCache::default()));
        Self { vocabulary, shared, former: Mutex::default(), options }
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the library that the constraints of this vocabulary share.
    pub fn library(&self) -> Arc<Library> {
        self.shared().library.clone()
    }

    /// Compiles a constraint.
    pub fn compile(&self, constraint: &Constraint) -> Result<CompiledConstraint, Error> {
        self.compile_with(constraint, &self.options)
    }

    /// Compiles a constraint with these options instead of those of the compiler.
    pub fn compile_with(
        &self,
        constraint: &Constraint,
        options: &Options,
    ) -> Result<CompiledConstraint, Error> {
        let (grammar, mut remarks) = constraint.grammar(options, Some(&self.vocabulary))?;
        let placed = |error| self.placed(error, constraint, options);
        let shared = self.shared();
        let temperatures =
            |grammar: &Grammar| Temperatures::of(grammar, &shared.library, &shared.tables, options.limits);
        if options.prefix.is_empty() {
            remarks.temperatures = temperatures(&grammar);
            return self.bind(&grammar, remarks, &options.limits).map_err(placed);
        }
        let longer = with_prefix(&options.prefix, &grammar)?;
        remarks.temperatures = temperatures(&longer);
        match self.bind(&longer, Remarks::default(), &options.limits) {
            Ok(compiled) => Ok(CompiledConstraint::new(compiled.bound().clone(), remarks)),
            // The places in the report refer to the grammar without the prefix, so it is compiled again without the
            // prefix.
            Err(error) => Err(placed(self.bind(&grammar, remarks, &options.limits).err().unwrap_or(error))),
        }
    }

    /// Adds the place in the source to an error, if no text matches and the cause can be located.
    fn placed(&self, error: Error, constraint: &Constraint, options: &Options) -> Error {
        if !matches!(error, Error::Compile(CompileError::Empty { .. })) {
            return error;
        }
        let is_empty = |grammar: &Grammar| match self.bind(grammar, Remarks::default(), &options.limits) {
            Ok(_) => Some(false),
            Err(Error::Compile(CompileError::Empty { .. })) => Some(true),
            Err(_) => None,
        };
        let found = match constraint {
            Constraint::Regex(pattern) => regex::why_empty(pattern, &options.regex, is_empty),
            Constraint::Lark(source) => {
                lark::why_empty(source, &options.lark, &options.json_schema, is_empty)
            }
            _ => None,
        };
        found.map_or(error, |place| Error::Source(vec![place]))
    }

    /// Compiles a grammar: one that [`grammar`](Self::grammar) has read, with its remarks, or one from another source,
    /// with [`Remarks::default`].
    pub fn compile_grammar(&self, grammar: &Grammar, remarks: Remarks) -> Result<CompiledConstraint, Error> {
        self.bind(grammar, remarks, &self.options.limits)
    }

    /// Runs the first stage only: reads a constraint into a grammar with the frontend's remarks.
    pub fn grammar(&self, constraint: &Constraint) -> Result<(Grammar, Remarks), Error> {
        constraint.grammar(&self.options, Some(&self.vocabulary))
    }

    /// Runs the second stage only: compiles a grammar into a program.
    pub fn program(&self, grammar: &Grammar) -> Result<Program, Error> {
        let resolved = self.resolve(grammar)?;
        compile(&resolved.grammar, &self.shared().tables, &self.options.limits).map_err(Error::Compile)
    }

    /// Returns the number of bytes that the constraints of this compiler share: its library, and former libraries that
    /// are still in use.
    pub fn shared_bytes(&self) -> usize {
        let former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        let former =
            former.iter().filter_map(Weak::upgrade).map(|library| library.heap_bytes()).sum::<usize>();
        self.shared().bytes() + former
    }

    /// Starts a new library if the current one has learned more than `share` bytes, or is nearly full. Constraints that
    /// were compiled before keep the old one. Returns whether a new one was started.
    pub fn renew(&self, share: usize) -> bool {
        let old = self.shared();
        if old.bytes().saturating_sub(old.empty) <= share && !old.library.is_nearly_full() {
            return false;
        }
        let library = Arc::new(Library::new(self.vocabulary.clone()));
        self.replace(&old, Shared::new(library, AutomatonCache::default()))
    }

    /// Writes what the constraints of this compiler share, for [`load_learnt`](Self::load_learnt).
    pub fn save_learnt(&self, target: impl Write) -> io::Result<()> {
        let shared = self.shared();
        shared.library.save(&shared.tables, target)
    }

    /// Replaces what this compiler has learned with what a compiler for the same vocabulary has saved. Constraints that
    /// were compiled before keep the old data. If the file is refused, nothing changes.
    pub fn load_learnt(&self, file: &[u8]) -> Result<(), LibraryLoadError> {
        let (library, tables) = Library::load(self.vocabulary.clone(), file)?;
        let new = Shared::new(Arc::new(library), tables);
        while !self.replace(&self.shared(), new.clone()) {}
        Ok(())
    }

    /// Replaces the shared data, unless another thread has replaced it before. Returns whether it did.
    fn replace(&self, old: &Arc<Shared>, new: Arc<Shared>) -> bool {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&shared, old) {
            return false;
        }
        *shared = new;
        drop(shared);
        let mut former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        former.retain(|library| library.strong_count() > 0);
        former.push(Arc::downgrade(&old.library));
        true
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn bind(
        &self,
        grammar: &Grammar,
        remarks: Remarks,
        limits: &Limits,
    ) -> Result<CompiledConstraint, Error> {
        let bind = || -> Result<_, Error> {
            let shared = self.shared();
            let resolved = self.resolve(grammar)?;
            let library = if resolved.needs_numbers { shared.numbered() } else { &shared.library };
            // One branch of a grammar may run out of values that must differ. The grammar is then compiled again
            // without that branch, since the others may still work.
            let mut dead = Vec::new();
            let bound = loop {
                let program = compile_without(&resolved.grammar, &dead, &shared.tables, limits)
                    .map_err(Error::Compile)?;
                let bound = BoundProgram::new(Arc::new(program), library.clone());
                match bound.dead_scopes() {
                    none if none.is_empty() => break bound,
                    more => dead.extend(more),
                }
            };
            bound.check_limits().map_err(Error::Compile)?;
            Ok(bound)
        };
        match (bind(), &remarks.report) {
            (Ok(bound), _) => Ok(CompiledConstraint::new(bound, remarks)),
            (Err(error), Some(report)) => Err(error.in_schema(report)),
            (Err(error), None) => Err(error),
        }
    }

    /// Resolves the tokens that a grammar refers to, if any.
    pub(crate) fn resolve<'g>(&self, grammar: &'g Grammar) -> Result<Resolved<'g>, Error> {
        resolve(grammar, &self.vocabulary).map_err(Error::Compile)
    }
}

impl Constraint {
    /// Reads the constraint into a grammar with the frontend's remarks. Structural tags need the vocabulary for the
    /// names of special tokens; without a vocabulary they are read as if there were none.
    pub fn grammar(
        &self,
        options: &Options,
        vocabulary: Option<&Vocabulary>,
    ) -> Result<(Grammar, Remarks), Error> {
        let silent = |grammar| (grammar, Remarks::default());
        match self {
            Self::Regex(pattern) => regex::grammar(pattern, &options.regex)
                .map(silent)
                .map_err(|error| Error::Source(vec![error])),
            Self::Choice(choices) => {
                choice::grammar(choices, &options.choice).map(silent).map_err(Error::Choice)
            }
            Self::Ebnf(source) => warned(ebnf::grammar(source, &options.ebnf)),
            Self::Gbnf(source) => warned(gbnf::grammar(source, &options.ebnf)),
            Self::Lark(source) => warned(lark::grammar(source, &options.lark, &options.json_schema)),
            Self::JsonSchema(schema) => json_schema::grammar(schema, &options.json_schema)
                .map(|(grammar, report)| (grammar, Remarks::report(report, schema.len())))
                .map_err(Error::Schema),
            Self::StructuralTag(source) => {
                tag::grammar(source, &options.tag(vocabulary)).map(silent).map_err(Error::Tag)
            }
            Self::Pcfg(source) => weighted(source, &options.pcfg).map_err(Error::Source),
        }
    }
}

/// Returns a grammar for the same texts, each preceded by a prefix.
fn with_prefix(prefix: &str, grammar: &Grammar) -> Result<Grammar, Error> {
    let mut builder = GrammarBuilder::new();
    let prefix = builder.bytes(prefix.as_bytes());
    let text = builder.embed(grammar);
    let body = builder.seq([prefix, text]);
    let root = builder.declare("after a prefix");
    builder.define(root, body);
    builder
        .finish(root)
        .map_err(|error| Error::Source(vec![Diagnostic::error(Span::at(0), error.to_string())]))
}

fn warned(result: Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>>) -> Result<(Grammar, Remarks), Error> {
    result.map(|(grammar, warnings)| (grammar, Remarks::warnings(warnings))).map_err(Error::Source)
}

/// Reads a weighted grammar. Its weights must be finite.
fn weighted(source: &str, options: &PcfgOptions) -> Result<(Grammar, Remarks), Vec<Diagnostic>> {
    let pcfg = Pcfg::parse(source, options)?;
    let warnings = pcfg.warnings().to_vec();
    let grammar = pcfg.to_grammar().map_err(|error| vec![error])?;
    let weights = Weights::new(pcfg).map_err(|error| vec![error])?;
    Ok((grammar, Remarks::weights(warnings, weights)))
}

/// The reason why a constraint was refused.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Error, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let schema = r#"{"minLength": 9, "maxLength": 4, "type": "string"}"#;
/// let error = compiler.compile(&Constraint::json_schema(schema)).unwrap_err();
/// assert!(matches!(error, Error::Schema(_)));
/// assert!(error.render("schema.json", schema).starts_with("schema.json: error: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source text is invalid; each diagnostic has a place.
    Source(Vec<Diagnostic>),
    /// The list of choices is invalid.
    Choice(choice::ChoiceError),
    /// The schema is invalid, or uses a feature that cannot be enforced.
    Schema(json_schema::SchemaError),
    /// The structural tag is invalid, or uses a feature that cannot be enforced.
    Tag(tag::TagError),
    /// The grammar could not be compiled.
    Compile(CompileError),
    /// Another backend does not support this feature.
    Unsupported {
        /// The backend's name.
        backend: &'static str,
        /// The unsupported feature, such as "EBNF grammars".
        what: String,
    },
    /// Another backend refused the constraint.
    Backend {
        /// The backend's name.
        backend: &'static str,
        /// Its message.
        message: String,
    },
    /// The constraint has no index.
    Index(IndexError),
}

impl Error {
    /// Adds the place in the schema that a place in the grammar comes from.
    fn in_schema(self, report: &json_schema::Report) -> Self {
        match self {
            // The same error that the frontend reports when it finds this itself.
            Self::Compile(CompileError::ValuesRunOut { place, is_endless }) => {
                let pointer = if is_endless { None } else { report.origin(place.expr()) };
                Self::Schema(json_schema::SchemaError::unsatisfiable(
                    &pointer.unwrap_or_default(),
                    is_endless,
                ))
            }
            Self::Compile(error) => {
                let pointer = error.place().and_then(|place| report.origin(place.expr()));
                Self::Compile(match pointer.as_deref() {
                    Some("") => error.with_place("(root)"),
                    Some(pointer) => error.with_place(pointer),
                    None => error,
                })
            }
            other => other,
        }
    }

    /// Renders the error for people, with the source lines that it refers to.
    pub fn render(&self, file: &str, source: &str) -> String {
        match self {
            Self::Source(diagnostics) => diagnostics.iter().map(|d| d.render(file, source)).collect(),
            _ => format!("{file}: error: {self}\n"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(diagnostics) => {
                for (i, diagnostic) in diagnostics.iter().enumerate() {
                    if i > 0 {
                        f.write_str("; ")?;
                    }
                    write!(f, "{diagnostic}")?;
                }
                Ok(())
            }
            Self::Choice(error) => write!(f, "{error}"),
            Self::Schema(error) => write!(f, "{error}"),
            Self::Tag(error) => write!(f, "{error}"),
            Self::Compile(error) => write!(f, "{error}"),
            Self::Unsupported { backend, what } => {
                write!(f, "the backend {backend} has no {what}; use the backend maskwright, or leave it out")
            }
            Self::Backend { backend, message } => write!(f, "{backend}: {message}"),
            Self::Index(error) => write!(f, "{error}"),
        }
    }
}

/// `source()` is the error of the stage that refused the constraint. It has the same message, so print only one of
/// them.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source(diagnostics) => diagnostics.first().map(|diagnostic| diagnostic as _),
            Self::Choice(error) => Some(error),
            Self::Schema(error) => Some(error),
            Self::Tag(error) => Some(error),
            Self::Compile(error) => Some(error),
            Self::Index(error) => Some(error),
            Self::Unsupported { .. } | Self::Backend { .. } => None,
        }
    }
}
