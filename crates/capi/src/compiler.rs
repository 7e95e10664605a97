//! Compilers and compiled constraints, on the compile service.

use core::ffi::c_char;
use core::mem::offset_of;
use core::time::Duration;
use std::sync::Arc;

use maskwright::json_schema::{Entry, Report, to_regex};
use maskwright::locate::Written;
use maskwright::regex::WriteLimits;
use maskwright::service::{self, Client, Service, Settings, Ticket};
use maskwright::{Diagnostic, Options, Span};
use serde_json::{Value, json};

use crate::guard::{discard, guard, write_list, write_whole};
use crate::pointer::{Given, Mut, Out, Owned, Ref, Versioned, read_or_zero};
use crate::status::{Failure, Status};
use crate::vocabulary::Vocabulary;

/// `mw_compiler`: a vocabulary, workers, a cache.
#[derive(Debug)]
pub struct Compiler {
    pub(crate) client: Client,
    pub(crate) vocabulary: Vocabulary,
    backend: Arc<maskwright::Compiler>,
    languages: Options,
}

/// `mw_compiled_constraint`: a compiled constraint, shared by any number of texts.
#[derive(Debug)]
pub struct CompiledConstraint {
    pub(crate) inner: Arc<service::CompiledConstraint>,
    pub(crate) vocabulary: Vocabulary,
}

/// `mw_request`: a constraint that is being compiled.
#[derive(Debug)]
pub struct Request {
    ticket: Ticket,
    vocabulary: Vocabulary,
}

/// `mw_compiler_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CompilerOptions<'c> {
    struct_size: usize,
    workers: usize,
    cache_bytes: usize,
    compile_bytes: usize,
    queue: usize,
    timeout_ms: usize,
    failures_ms: usize,
    languages: Ref<'c, c_char>,
    mask_steps: usize,
}

// SAFETY: it is `repr(C)`, and holds a size, numbers and a pointer.
unsafe impl Versioned for CompilerOptions<'_> {
    const NAME: &'static str = "mw_compiler_options";
    const FIRST: usize = offset_of!(Self, mask_steps);
}

/// Creates a compiler for a vocabulary.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiler_new(
    vocabulary: Ref<'_, Vocabulary>,
    options: Ref<'_, CompilerOptions<'_>>,
    compiler: Out<'_, Given<Compiler>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let compiler = compiler.get("compiler")?.write(Given::none());
        let options = read_or_zero(options, "options")?;
        let languages = options.languages()?;
        *compiler = Given::new(Compiler::new(vocabulary.get("vocabulary")?, options.settings(), languages)?);
        Ok(())
    })
}

/// Frees a compiler.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiler_free(compiler: Owned<Compiler>) {
    discard(compiler);
}

/// Saves what a compiler has learned and its compiled constraints, for another process.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiler_save(
    compiler: Ref<'_, Compiler>,
    bytes: Mut<'_, u8>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let mut file = Vec::new();
        let saved = compiler.get("compiler")?.client.save(&mut file);
        saved.map_err(|error| Failure::new(Status::File, error.to_string()))?;
        write_list(&file, bytes, capacity, length, "bytes")
    })
}

/// Loads what was saved.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiler_load(
    compiler: Ref<'_, Compiler>,
    bytes: Ref<'_, u8>,
    length: usize,
    ready: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let ready = ready.get("ready")?.write(0);
        let loaded = compiler.get("compiler")?.client.load(bytes.list("bytes", length)?);
        *ready = loaded.map_err(|error| Failure::new(Status::File, error.to_string()))?.ready;
        Ok(())
    })
}

/// Compiles a constraint, or finds it in the cache, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compile(
    compiler: Ref<'_, Compiler>,
    kind: u32,
    text: Ref<'_, u8>,
    text_length: usize,
    constraint: Out<'_, Given<CompiledConstraint>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let constraint = constraint.get("constraint")?.write(Given::none());
        let compiler = compiler.get("compiler")?;
        let source = source(kind, text.text("text", text_length)?)?;
        *constraint = Given::new(compiler.compile(&source)?);
        Ok(())
    })
}

/// Does the same for a list of choices.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compile_choice(
    compiler: Ref<'_, Compiler>,
    choices: Ref<'_, Ref<'_, c_char>>,
    choice_count: usize,
    constraint: Out<'_, Given<CompiledConstraint>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let constraint = constraint.get("constraint")?.write(Given::none());
        let compiler = compiler.get("compiler")?;
        let choices = choices.list("choices", choice_count)?;
        let choices =
            choices.iter().map(|choice| choice.c_text("a choice")).collect::<Result<Vec<_>, _>>()?;
        *constraint = Given::new(compiler.compile(&maskwright::Constraint::choice(choices))?);
        Ok(())
    })
}

/// Locates the end of a text under a constraint, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn mw_locate(
    compiler: Ref<'_, Compiler>,
    kind: u32,
    text: Ref<'_, u8>,
    text_length: usize,
    tokens: Ref<'_, u32>,
    token_count: usize,
    location: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let compiler = compiler.get("compiler")?;
        let source = source(kind, text.text("text", text_length)?)?;
        let tokens = tokens.tokens("tokens", token_count)?;
        let located = compiler.backend.locate(&source, &compiler.languages, Written::Tokens(&tokens));
        let located = located.map_err(|error| Failure::new(error.category().into(), error))?;
        write_whole(&located.json().to_string(), location, capacity, length)
    })
}

/// Converts a schema to one regular expression.
#[unsafe(no_mangle)]
pub extern "C" fn mw_schema_to_regex(
    schema: Ref<'_, u8>,
    schema_length: usize,
    languages: Ref<'_, c_char>,
    max_length: usize,
    regex: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let options = self::languages(languages, "languages")?;
        let mut limits = WriteLimits::default();
        if max_length > 0 {
            limits.length = max_length;
        }
        let written = to_regex(schema.text("schema", schema_length)?, &options.json_schema, &limits);
        let (written, _) = written.map_err(|error| Failure::new(Status::Constraint, error))?;
        write_whole(&written, regex, capacity, length)
    })
}

/// Requests a constraint without waiting for it.
#[unsafe(no_mangle)]
pub extern "C" fn mw_request_new(
    compiler: Ref<'_, Compiler>,
    kind: u32,
    text: Ref<'_, u8>,
    text_length: usize,
    request: Out<'_, Given<Request>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let request = request.get("request")?.write(Given::none());
        let compiler = compiler.get("compiler")?;
        let source = source(kind, text.text("text", text_length)?)?;
        let ticket = compiler.client.request(&source);
        *request = Given::new(Request { ticket, vocabulary: compiler.vocabulary.clone() });
        Ok(())
    })
}

/// Waits for a constraint with a time limit.
#[unsafe(no_mangle)]
pub extern "C" fn mw_request_wait(
    request: Ref<'_, Request>,
    milliseconds: u64,
    constraint: Out<'_, Given<CompiledConstraint>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let constraint = constraint.get("constraint")?.write(Given::none());
        let request = request.get("request")?;
        let time = Duration::from_millis(milliseconds);
        let result = if time.is_zero() { request.ticket.try_get() } else { request.ticket.wait_for(time) };
        let pending = || Failure::new(Status::Pending, "the constraint is not compiled yet");
        let inner = result.ok_or_else(pending)??;
        *constraint = Given::new(CompiledConstraint { inner, vocabulary: request.vocabulary.clone() });
        Ok(())
    })
}

/// Frees a request. If no other request waits for its constraint, compiling stops.
#[unsafe(no_mangle)]
pub extern "C" fn mw_request_free(request: Owned<Request>) {
    discard(request);
}

/// Returns the remarks about a constraint, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiled_constraint_remarks(
    constraint: Ref<'_, CompiledConstraint>,
    text: Mut<'_, c_char>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let remarks = constraint.get("constraint")?.remarks();
        write_whole(&remarks.to_string(), text, capacity, length)
    })
}

/// Frees a constraint.
#[unsafe(no_mangle)]
pub extern "C" fn mw_compiled_constraint_free(constraint: Owned<CompiledConstraint>) {
    discard(constraint);
}

impl CompilerOptions<'_> {
    /// Returns the settings of the service. A zero means the default.
    fn settings(&self) -> Settings {
        let default = Settings::default();
        let number = |given: usize, usual: usize| if given == 0 { usual } else { given };
        let time = |given: usize, usual| if given == 0 { usual } else { Duration::from_millis(given as u64) };
        Settings {
            workers: number(self.workers, default.workers),
            budget: number(self.cache_bytes, default.budget),
            memory: number(self.compile_bytes, default.memory),
            queue: number(self.queue, default.queue),
            timeout: time(self.timeout_ms, default.timeout),
            failures_for: time(self.failures_ms, default.failures_for),
            ..default
        }
    }

    fn languages(&self) -> Result<Options, Failure> {
        let mut options = languages(self.languages, "options.languages")?;
        if self.mask_steps > 0 {
            options.limits.mask_steps = self.mask_steps as u64;
        }
        Ok(options)
    }
}

/// Parses the options of the languages from JSON; null means the defaults.
fn languages(text: Ref<'_, c_char>, name: &'static str) -> Result<Options, Failure> {
    match text.optional(name)? {
        Some(_) => read_languages(text.c_text(name)?).map_err(|failure| failure.about(name)),
        None => Ok(Options::default()),
    }
}

/// Parses options. Missing options have their defaults; unknown options are an error.
fn read_languages(text: &str) -> Result<Options, Failure> {
    let wrong = Failure::argument;
    let given: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let options: Options = serde_json::from_value(given.clone()).map_err(|error| wrong(error.to_string()))?;
    // Serde ignores unknown fields. So the options are serialized again, and the result must contain every field of the
    // input.
    let read = serde_json::to_value(&options).map_err(|error| wrong(error.to_string()))?;
    match unknown(&given, &read, "") {
        Some(place) => Err(wrong(format!("there is no option {place}"))),
        None => Ok(options),
    }
}

/// Returns the path of an option that was given but not read. The recursion is as deep as the JSON that serde has
/// parsed, which is limited.
fn unknown(given: &Value, read: &Value, path: &str) -> Option<String> {
    let given = given.as_object()?;
    given.iter().find_map(|(key, value)| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match read.get(key) {
            Some(read) => unknown(value, read, &path),
            None => Some(path),
        }
    })
}

/// Creates a constraint from `MW_REGEX` and so on.
fn source(kind: u32, text: &str) -> Result<maskwright::Constraint, Failure> {
    Ok(match kind {
        1 => maskwright::Constraint::regex(text),
        2 => maskwright::Constraint::Choice(read_choices(text)?),
        3 => maskwright::Constraint::ebnf(text),
        4 => maskwright::Constraint::gbnf(text),
        5 => maskwright::Constraint::lark(text),
        6 => maskwright::Constraint::json_schema(text),
        7 => maskwright::Constraint::structural_tag(text),
        8 => maskwright::Constraint::pcfg(text),
        _ => return Err(Failure::argument(format!("there is no kind of constraint {kind}"))),
    })
}

fn read_choices(text: &str) -> Result<Vec<String>, Failure> {
    let wrong = |error| format!("choices are a JSON array of strings: {error}");
    serde_json::from_str(text).map_err(|error| Failure::new(Status::Constraint, wrong(error)))
}

impl Compiler {
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        settings: Settings,
        languages: Options,
    ) -> Result<Self, Failure> {
        let service = Service::new(settings)
            .map_err(|error| Failure::new(Status::Limit, format!("cannot start a thread: {error}")))?;
        let backend = Arc::new(maskwright::Compiler::new(vocabulary.tokens.clone()));
        let client = service.client(backend.clone()).with_options(languages.clone());
        Ok(Self { client, vocabulary: vocabulary.clone(), backend, languages })
    }

    pub(crate) fn compile(&self, source: &maskwright::Constraint) -> Result<CompiledConstraint, Failure> {
        let inner = self.client.compile(source)?;
        Ok(CompiledConstraint { inner, vocabulary: self.vocabulary.clone() })
    }
}

impl CompiledConstraint {
    /// Returns the report about a schema, and the warnings about a grammar or a schema.
    fn remarks(&self) -> Value {
        let remarks = self.inner.remarks();
        let entries = remarks.report.as_ref().map(Report::entries).unwrap_or_default();
        let entry = |entry: &Entry| json!({"pointer": entry.pointer, "coverage": entry.coverage.to_string()});
        let warning = |warning: &Diagnostic| {
            let Span { start, end } = warning.span;
            json!({"message": warning.message, "help": warning.help, "start": start, "end": end})
        };
        let of_schema = remarks
            .schema_warnings()
            .into_iter()
            .map(|(pointer, message)| json!({"message": message, "pointer": pointer}));
        json!({
            "report": entries.iter().map(entry).collect::<Vec<_>>(),
            "warnings": remarks.warnings.iter().map(warning).chain(of_schema).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_languages_are_read_whole_or_not_at_all() {
        let options =
            read_languages(r#"{"json_schema": {"whitespace": "compact", "limits": {"rules": 7}}}"#).unwrap();
        assert_eq!(options.json_schema.whitespace, maskwright::json_schema::Whitespace::Compact);
        assert_eq!(options.json_schema.limits.rules, 7);
        assert_eq!(options.regex, Options::default().regex);
        let flexible = r#"{"json_schema": {"whitespace": {"flexible": {"max_run": 3}}}}"#;
        let flexible = read_languages(flexible).unwrap();
        assert_eq!(
            flexible.json_schema.whitespace,
            maskwright::json_schema::Whitespace::Flexible { max_run: 3 }
        );
        let message = |text| read_languages(text).unwrap_err().to_string();
        assert_eq!(message(r#"{"json_schema": {"colour": 1}}"#), "there is no option json_schema.colour");
        assert_eq!(message(r#"{"yaml": {}}"#), "there is no option yaml");
        assert!(message(r#"{"json_schema": {"whitespace": "wide"}}"#).contains("unknown variant"));
        assert!(message("{").starts_with("EOF"));
    }
}
