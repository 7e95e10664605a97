//! Flags that several commands share: for the constraint, and for the tokenizer.

use core::str::FromStr;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use maskwright::Constraint;
use maskwright::regex::Dialect;
use maskwright_frontend::choice;
use maskwright_tokenizers::Tokenizer;

use crate::failure::Failure;
use crate::schema_args::SchemaArgs;
use crate::source::Source;

/// The maximum size of a file that is read as a constraint or as a text.
const MAX_BYTES: u64 = 256 << 20;

/// Exactly one constraint, with the options for reading it.
#[derive(Debug, clap::Args)]
pub(crate) struct ConstraintArgs {
    #[command(flatten)]
    one: OneConstraint,
    #[command(flatten)]
    reading: SchemaArgs,
    #[command(flatten)]
    patterns: PatternArgs,
    #[command(flatten)]
    weights: WeightArgs,
}

/// Options for regular expressions.
#[derive(Debug, clap::Args)]
struct PatternArgs {
    /// The dialect of regular expressions: `ecma`, `python` or `rust`; by default `ecma` in a tag, and `rust` elsewhere
    #[arg(long, value_name = "DIALECT", value_parser = Dialect::from_str, help_heading = "Regular expressions")]
    dialect: Option<Dialect>,
}

/// Exactly one constraint.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct OneConstraint {
    /// A regular expression that the whole text must match
    #[arg(
        long,
        value_name = "PATTERN",
        allow_hyphen_values = true,
        help_heading = "Constraint (exactly one)"
    )]
    regex: Option<String>,
    /// A file with a regular expression; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    regex_file: Option<PathBuf>,
    /// An allowed text; repeat the flag for each text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Constraint (exactly one)")]
    choice: Vec<String>,
    /// A file with the choices: one per line, or a JSON array of strings; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    choices: Option<PathBuf>,
    /// A file with an EBNF grammar (`root ::= …`); `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    ebnf: Option<PathBuf>,
    /// An EBNF grammar as text
    #[arg(long, value_name = "GRAMMAR", help_heading = "Constraint (exactly one)")]
    ebnf_text: Option<String>,
    /// A file with a GBNF grammar in the notation of llama.cpp (`root ::= …`); `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    gbnf: Option<PathBuf>,
    /// A GBNF grammar as text
    #[arg(long, value_name = "GRAMMAR", help_heading = "Constraint (exactly one)")]
    gbnf_text: Option<String>,
    /// A file with a Lark grammar (`start: …`); `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    lark: Option<PathBuf>,
    /// A Lark grammar as text
    #[arg(long, value_name = "GRAMMAR", help_heading = "Constraint (exactly one)")]
    lark_text: Option<String>,
    /// A file with a JSON Schema; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    schema: Option<PathBuf>,
    /// A JSON Schema as text
    #[arg(long, value_name = "SCHEMA", help_heading = "Constraint (exactly one)")]
    schema_text: Option<String>,
    /// A file with a structural tag, as JSON; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    tag: Option<PathBuf>,
    /// A structural tag as text
    #[arg(long, value_name = "TAG", help_heading = "Constraint (exactly one)")]
    tag_text: Option<String>,
    /// A file with a grammar with probabilities (`S -> NP VP [0.9] | …`); `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Constraint (exactly one)")]
    pcfg: Option<PathBuf>,
    /// A grammar with probabilities as text
    #[arg(long, value_name = "GRAMMAR", help_heading = "Constraint (exactly one)")]
    pcfg_text: Option<String>,
}

/// Options for grammars with probabilities.
#[derive(Debug, clap::Args)]
struct WeightArgs {
    /// Divide the probabilities of each symbol by their sum if it is not one
    #[arg(long, help_heading = "Grammars with probabilities")]
    normalise: bool,
    /// The symbol that a whole text must match; by default that of the first rule
    #[arg(long, value_name = "SYMBOL", help_heading = "Grammars with probabilities")]
    start: Option<String>,
}

impl WeightArgs {
    fn is_given(&self) -> bool {
        self.normalise || self.start.is_some()
    }
}

impl ConstraintArgs {
    /// Returns the constraint with the text it was read from.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        read_by(&self.one, &self.reading, &self.patterns, &self.weights)
    }

    /// Whether the constraint comes from standard input, which can be read only once.
    pub(crate) fn reads_stdin(&self) -> bool {
        let OneConstraint { regex_file, choices, ebnf, gbnf, lark, schema, tag, pcfg, .. } = &self.one;
        let files = [regex_file, choices, ebnf, gbnf, lark, schema, tag, pcfg];
        files.into_iter().flatten().any(|path| is_stdin(path))
    }
}

/// At most one constraint, with the options for reading it.
#[cfg(feature = "runtime")]
#[derive(Debug, clap::Args)]
#[command(mut_group("OneConstraint", |group| group.required(false)))]
pub(crate) struct MaybeConstraintArgs {
    #[command(flatten)]
    one: Option<OneConstraint>,
    #[command(flatten)]
    reading: SchemaArgs,
    #[command(flatten)]
    patterns: PatternArgs,
    #[command(flatten)]
    weights: WeightArgs,
}

#[cfg(feature = "runtime")]
impl MaybeConstraintArgs {
    /// Returns the constraint, if there is one, with the text it was read from.
    pub(crate) fn source(&self) -> Result<Option<Source>, Failure> {
        match &self.one {
            Some(one) => read_by(one, &self.reading, &self.patterns, &self.weights).map(Some),
            None if self.reading.is_given() => Err(Failure::sentence(ABOUT_SCHEMAS)),
            None if self.patterns.dialect.is_some() => Err(Failure::sentence(ABOUT_PATTERNS)),
            None if self.weights.is_given() => Err(Failure::sentence(ABOUT_WEIGHTS)),
            None => Ok(None),
        }
    }
}

const ABOUT_SCHEMAS: &str = "--whitespace, --whitespace-pattern, --key-order, --objects, --numbers and --formats are about JSON Schemas";

const ABOUT_PATTERNS: &str =
    "--dialect is about --regex and --tag; schemas have ECMA-262, and Lark grammars the dialect of Rust";

const ABOUT_WEIGHTS: &str = "--normalise and --start are about --pcfg";

fn read_by(
    one: &OneConstraint,
    reading: &SchemaArgs,
    patterns: &PatternArgs,
    weights: &WeightArgs,
) -> Result<Source, Failure> {
    let mut source = one.read()?;
    if weights.is_given() && !matches!(source.constraint, Constraint::Pcfg(_)) {
        return Err(Failure::sentence(ABOUT_WEIGHTS));
    }
    source.options.pcfg.normalise = weights.normalise;
    source.options.pcfg.start.clone_from(&weights.start);
    let has_schemas = matches!(
        source.constraint,
        Constraint::JsonSchema(_) | Constraint::Lark(_) | Constraint::StructuralTag(_)
    );
    if reading.is_given() && !has_schemas {
        return Err(Failure::sentence(ABOUT_SCHEMAS));
    }
    source.options.json_schema = reading.options();
    if let Some(dialect) = patterns.dialect {
        if source.options.dialect_of(&source.constraint).is_none() {
            return Err(Failure::sentence(ABOUT_PATTERNS));
        }
        source.options = source.options.with_dialect(dialect);
    }
    Ok(source)
}

impl OneConstraint {
    fn read(&self) -> Result<Source, Failure> {
        if let Some(pattern) = &self.regex {
            return Ok(Source::new("regex", pattern, Constraint::regex(pattern)));
        }
        if let Some(path) = &self.regex_file {
            let text = read_text(path)?;
            let pattern = text.strip_suffix('\n').unwrap_or(&text);
            let pattern = pattern.strip_suffix('\r').unwrap_or(pattern);
            return Ok(Source::new(&file_name(path), pattern, Constraint::regex(pattern)));
        }
        if !self.choice.is_empty() {
            let text = self.choice.join("\n");
            return Ok(Source::new("choices", &text, Constraint::choice(self.choice.clone())));
        }
        if let Some(path) = &self.choices {
            return choices(path);
        }
        if let Some(source) = &self.ebnf_text {
            return Ok(Source::new("ebnf", source, Constraint::ebnf(source)));
        }
        if let Some(path) = &self.ebnf {
            let text = read_text(path)?;
            return Ok(Source::new(&file_name(path), &text, Constraint::ebnf(&text)));
        }
        if let Some(source) = &self.gbnf_text {
            return Ok(Source::new("gbnf", source, Constraint::gbnf(source)));
        }
        if let Some(path) = &self.gbnf {
            let text = read_text(path)?;
            return Ok(Source::new(&file_name(path), &text, Constraint::gbnf(&text)));
        }
        if let Some(source) = &self.lark_text {
            return Ok(Source::new("lark", source, Constraint::lark(source)));
        }
        if let Some(path) = &self.lark {
            let text = read_text(path)?;
            return Ok(Source::new(&file_name(path), &text, Constraint::lark(&text)));
        }
        if let Some(schema) = &self.schema_text {
            return Ok(Source::new("schema", schema, Constraint::json_schema(schema)));
        }
        if let Some(path) = &self.schema {
            let text = read_text(path)?;
            return Ok(Source::new(&file_name(path), &text, Constraint::json_schema(&text)));
        }
        if let Some(tag) = &self.tag_text {
            return Ok(Source::new("tag", tag, Constraint::structural_tag(tag)));
        }
        if let Some(path) = &self.tag {
            let text = read_text(path)?;
            return Ok(Source::new(&file_name(path), &text, Constraint::structural_tag(&text)));
        }
        if let Some(source) = &self.pcfg_text {
            return Ok(Source::new("pcfg", source, Constraint::pcfg(source)));
        }
        if let Some(path) = &self.pcfg {
            let text = read_text(path)?;
            return Ok(Source::new(&file_name(path), &text, Constraint::pcfg(&text)));
        }
        Err(Failure::sentence(
            "no constraint was given; use --regex, --choice, --ebnf, --gbnf, --lark, --schema, --tag or --pcfg",
        ))
    }
}

fn choices(path: &Path) -> Result<Source, Failure> {
    let (name, text) = (file_name(path), read_text(path)?);
    match choice::parse_list(&text) {
        Ok(choices) => Ok(Source::new(&name, &text, Constraint::Choice(choices))),
        Err(remark) => {
            let source = Source::new(&name, &text, Constraint::Choice(Vec::new()));
            Err(source.failure(&maskwright::Error::Source(vec![remark])))
        }
    }
}

/// The source of the tokenizer.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenizerArgs {
    /// A tokenizer.json or tekken.json, a GGUF, `SentencePiece` or tiktoken file, a folder with one, or the name of a
    /// tiktoken encoding. By default `$MASKWRIGHT_TOKENIZER`, then the Llama 3.1 tokenizer that `make assets` fetches,
    /// then that of the model that `make serve` fetches
    #[arg(long, value_name = "FILE", help_heading = "Tokenizer")]
    tokenizer: Option<PathBuf>,
}

/// The path where `make assets` puts the default tokenizer, and the one where `make serve` puts that of its model.
const FETCHED: [&str; 2] = ["target/assets/llama3_1/tokenizer.json", "target/assets/smollm2"];

impl TokenizerArgs {
    /// Returns the path of the tokenizer.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.tokenizer {
            return Ok(path.clone());
        }
        if let Some(path) = env::var_os("MASKWRIGHT_TOKENIZER").filter(|path| !path.is_empty()) {
            return Ok(path.into());
        }
        if let Some(fetched) = FETCHED.iter().map(PathBuf::from).find(|path| path.exists()) {
            return Ok(fetched);
        }
        Err(Failure::sentence(format!(
            "no tokenizer was given and neither {} nor {} exists; run `make assets`, or give --tokenizer FILE",
            FETCHED[0], FETCHED[1]
        )))
    }

    /// Whether the tokenizer was given by the flag.
    pub(crate) fn is_named(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Loads it.
    pub(crate) fn load(&self) -> Result<Tokenizer, Failure> {
        Ok(maskwright_tokenizers::load(self.path()?)?)
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of a file for messages.
pub(crate) fn file_name(path: &Path) -> String {
    if is_stdin(path) { "<stdin>".into() } else { path.display().to_string() }
}

/// Reads a file or standard input, which must be UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::sentence(format!("{} is not UTF-8: byte {at} begins no character", file_name(path)))
    })
}

/// Reads a file or standard input.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error: io::Error| Failure::sentence(format!("cannot read {}: {error}", file_name(path)));
    let mut content = Vec::new();
    if is_stdin(path) {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut content).map_err(cannot)?;
    } else {
        let file = fs::File::open(path).map_err(cannot)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(cannot)?;
    }
    if content.len() as u64 > MAX_BYTES {
        return Err(Failure::sentence(format!("{} has more than {MAX_BYTES} bytes", file_name(path))));
    }
    Ok(content)
}
