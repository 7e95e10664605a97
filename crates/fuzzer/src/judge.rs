//! The judges: two validators that know nothing of us and of one another, and what we have decided to do otherwise.
//!
//! A *pair* is a schema and a document. The validators say whether the document's value satisfies the schema; the engine says whether the
//! document's text may be written. These are different questions, and `docs/json-schema.md` says where the answers differ. All such decisions are
//! here, each a function with its reason, and everything else is a disagreement:
//!
//! | decision | where |
//! |---|---|
//! | no key stands twice | [`Judge::pair`]: such a text must be refused, whatever validators think of the last member |
//! | keys have an order, or any | [`in_some_order`]: with the schema's order, some order of the keys must be accepted; with any order, the one at hand |
//! | listed words have one spelling | [`Spellings::strings`]: words that the schema names are written with as few escapes as possible |
//! | integers and bounded numbers in plain digits, listed numbers as listed | [`Spellings::numbers`] |
//! | white space by style | [`Settings::layouts`] |
//! | a schema that nothing satisfies is an error | [`Judge::pair`]: then no document may be valid |
//! | what cannot be enforced is refused | such schemas are counted, not judged |
//!
//! Numbers stay below the cap on digits, because [`crate::sample`] draws no longer ones.

use std::sync::Arc;

use maskwright::json_schema::{self, KeyOrder, Reason, Whitespace};
use maskwright::{CompiledConstraint, Compiler, Constraint, Error, Library, Options, Vocabulary};
use serde_json::Value;

use crate::document::{Document, Layout, decode, encode, permutations, plain_number};
use crate::find::Fault;
use crate::schema::{for_each, mentions};

/// The options of one schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The order of keys.
    pub order: KeyOrder,
    /// The white space.
    pub whitespace: Whitespace,
}

impl Settings {
    /// Layouts that may be written, and layouts that may not if they differ from all of the former.
    fn layouts(&self, seed: u64) -> (Vec<Layout>, Vec<Layout>) {
        let (random, all) = (Layout::Random(seed), [Layout::Compact, Layout::Spaced, Layout::Indented]);
        match self.whitespace {
            Whitespace::Compact => (vec![Layout::Compact], vec![random, Layout::Spaced, Layout::Indented]),
            Whitespace::Spaced => (vec![Layout::Spaced], vec![random, Layout::Compact, Layout::Indented]),
            Whitespace::Indent(2) => (vec![Layout::Indented], vec![random, Layout::Compact, Layout::Spaced]),
            Whitespace::Tidy => (all.to_vec(), Vec::new()),
            Whitespace::Natural => (all.to_vec(), Vec::new()),
            _ => (vec![Layout::Compact, random, Layout::Spaced, Layout::Indented], Vec::new()),
        }
    }
}

/// A schema as the engine and both validators see it.
pub struct Judge {
    schema: Value,
    settings: Settings,
    first: jsonschema::Validator,
    second: (boon::Schemas, boon::SchemaIndex),
    /// None where nothing satisfies the schema.
    compiled: Option<CompiledConstraint>,
    spellings: Spellings,
}

impl core::fmt::Debug for Judge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Judge").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Why a schema is not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// We refuse it, and say so: the message.
    Refused(String),
    /// A validator does not take it.
    ByValidator,
    /// We call it malformed, and no validator does.
    Fault(Fault),
}

/// What came of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// All agree that the document is valid.
    Valid,
    /// All agree that it is not.
    Invalid,
    /// The validators disagree with one another.
    Disputed,
}

/// What the engine is asked through: one compiler for all schemas, so that they share what the vocabulary is known to do.
#[derive(Debug)]
pub struct Bench {
    compiler: Compiler,
}

impl Bench {
    /// A bench for a vocabulary.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { compiler: Compiler::with_library(Arc::new(Library::new(vocabulary)), Options::default()) }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.compiler.vocabulary()
    }

    /// The compiler, for other constraints than schemas.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Forgets what the compiler has learnt if it is much.
    pub fn tidy(&self) {
        self.compiler.renew(64 << 20);
    }

    /// Compiles a schema and builds its validators.
    pub fn judge(&self, schema: &Value, settings: &Settings) -> Result<Judge, Unjudged> {
        let first = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(schema)
            .map_err(|_| Unjudged::ByValidator)?;
        let second = boon(schema).ok_or(Unjudged::ByValidator)?;
        let options = Options {
            json_schema: json_schema::Options::default()
                .with_key_order(settings.order)
                .with_whitespace(settings.whitespace.clone()),
            ..Options::default()
        };
        let compiled = match self.compiler.compile_with(&Constraint::json_schema(schema.to_string()), &options) {
            Ok(compiled) => Some(compiled),
            Err(Error::Schema(error)) => {
                let has = |reason| error.problems().iter().any(|problem| problem.reason == reason);
                if error.problems().iter().all(|problem| problem.reason == Reason::Unsatisfiable) {
                    None
                } else if has(Reason::NotJson) || has(Reason::Malformed) || has(Reason::Reference) {
                    return Err(Unjudged::Fault(Fault::Malformed(error.to_string())));
                } else {
                    return Err(Unjudged::Refused(error.to_string()));
                }
            }
            Err(error) => return Err(Unjudged::Refused(error.to_string())),
        };
        let spellings = Spellings::of(schema);
        Ok(Judge { schema: schema.clone(), settings: settings.clone(), first, second, compiled, spellings })
    }
}

fn boon(schema: &Value) -> Option<(boon::Schemas, boon::SchemaIndex)> {
    const PLACE: &str = "http://localhost/schema.json";
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource(PLACE, schema.clone()).ok()?;
    let index = compiler.compile(PLACE, &mut schemas).ok()?;
    Some((schemas, index))
}

impl Judge {
    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The compiled schema; none where nothing satisfies it.
    pub fn compiled(&self) -> Option<&CompiledConstraint> {
        self.compiled.as_ref()
    }

    /// What both validators say; `None` if they disagree.
    pub fn validators(&self, value: &Value) -> Option<bool> {
        let first = self.first.is_valid(value);
        let second = self.second.0.validate(value, self.second.1).is_ok();
        (first == second).then_some(first)
    }

    /// Whether the engine takes a text as a whole.
    pub fn accepts(&self, text: &str) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| {
            let mut matcher = compiled.matcher();
            matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting()
        })
    }

    /// What the first validator, the second one and the engine say, each by itself.
    pub fn verdicts(&self, value: &Value, text: &str) -> [bool; 3] {
        let second = self.second.0.validate(value, self.second.1).is_ok();
        [self.first.is_valid(value), second, self.accepts(text)]
    }

    /// Reads a finished text back: it is JSON, and accepted as a whole.
    pub fn reads(&self, text: &[u8]) -> Result<Document, Fault> {
        let read = core::str::from_utf8(text).ok().filter(|text| self.accepts(text));
        read.and_then(Document::parse).ok_or_else(|| Fault::NotRead(String::from_utf8_lossy(text).into_owned()))
    }

    /// Judges a document. `seed` chooses the white space.
    pub fn pair(&self, document: &Document, seed: u64) -> Result<Pair, Fault> {
        let (layouts, foreign) = self.settings.layouts(seed);
        let texts: Vec<String> = layouts.iter().map(|layout| layout.write(document)).collect();
        if document.repeats_a_key() {
            return match texts.into_iter().find(|text| self.accepts(text)) {
                Some(text) => Err(Fault::AcceptsRepeatedKey(text)),
                None => Ok(Pair::Invalid),
            };
        }
        let Some(value) = document.value() else { return Ok(Pair::Disputed) };
        let Some(valid) = self.validators(&value) else { return Ok(Pair::Disputed) };
        if !valid {
            return match texts.into_iter().find(|text| self.accepts(text)) {
                Some(text) => Err(Fault::AcceptsInvalid(text)),
                None => Ok(Pair::Invalid),
            };
        }
        if self.compiled.is_none() {
            return Err(Fault::CallsUnsatisfiable(document.to_string()));
        }
        let layout = layouts[0];
        let Some(accepted) = self.some_spelling(document, layout) else {
            return Err(Fault::RefusesValid(layout.write(document)));
        };
        // From here on the document is written as it was accepted, and one thing is changed that must not matter, or must.
        for layout in layouts {
            self.must_accept(&layout.write(&accepted))?;
        }
        self.must_accept(&layout.write(&self.spellings.restore_strings(document, &accepted)))?;
        if self.spellings.numbers_are_free {
            self.must_accept(&layout.write(&self.spellings.restore_numbers(document, &accepted)))?;
        }
        let ours = layout.write(&accepted);
        for text in foreign.iter().map(|layout| layout.write(&accepted)).filter(|text| *text != ours) {
            self.must_refuse(text)?;
        }
        self.must_refuse(format!(" {ours}"))?;
        self.must_refuse(format!("{ours}\n"))?;
        Ok(Pair::Valid)
    }

    fn must_accept(&self, text: &str) -> Result<(), Fault> {
        if self.accepts(text) { Ok(()) } else { Err(Fault::RefusesSpelling(text.to_owned())) }
    }

    fn must_refuse(&self, text: String) -> Result<(), Fault> {
        if self.accepts(&text) { Err(Fault::AcceptsSpelling(text)) } else { Ok(()) }
    }

    /// A spelling of the document, in some order of keys if the schema decides about the order, that the engine takes.
    fn some_spelling(&self, document: &Document, layout: Layout) -> Option<Document> {
        let spelled = self.spellings.all(document);
        let accepts = |document: &Document| self.accepts(&layout.write(document));
        if let Some(at) = spelled.iter().position(accepts) {
            return spelled.into_iter().nth(at);
        }
        match self.settings.order {
            KeyOrder::Any => None,
            _ => spelled.iter().find_map(|document| in_some_order(document, &self.spellings.names, &accepts)),
        }
    }
}

/// The document with its keys in an order that is accepted. The order in which the schema names them is tried first, and then every other.
fn in_some_order(
    document: &Document,
    names: &[String],
    accepts: &dyn Fn(&Document) -> bool,
) -> Option<Document> {
    /// Enough for five keys in one object.
    const ORDERS: usize = 720;
    let sorted = sorted(document, names);
    permutations(&sorted, ORDERS).into_iter().find(|document| accepts(document))
}

fn sorted(document: &Document, names: &[String]) -> Document {
    match document {
        Document::Scalar(_) => document.clone(),
        Document::Array(items) => Document::Array(items.iter().map(|item| sorted(item, names)).collect()),
        Document::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| (key.clone(), sorted(value, names))).collect();
            let place = |key: &str| {
                let key = decode(key);
                names.iter().position(|name| Some(name) == key.as_ref()).unwrap_or(names.len())
            };
            members.sort_by_key(|(key, _)| place(key));
            Document::Object(members)
        }
    }
}

/// What a schema says about how things are spelled.
#[derive(Clone, Debug)]
struct Spellings {
    /// Keys that the schema names, in the order of its text.
    names: Vec<String>,
    /// These, and strings in `enum` and `const`.
    words: Vec<String>,
    /// Numbers in `enum` and `const`, as they are spelled.
    listed: Vec<String>,
    /// Whether no number is listed, bounded or an integer, so that each may be spelled in any way.
    numbers_are_free: bool,
}

impl Spellings {
    fn of(schema: &Value) -> Self {
        const NUMERIC: [&str; 5] =
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        let (mut names, mut words, mut listed) = (Vec::new(), Vec::new(), Vec::new());
        let mut integers = false;
        for_each(schema, &mut |one| {
            for keyword in ["properties", "dependentSchemas", "dependentRequired"] {
                names.extend(one.get(keyword).and_then(Value::as_object).into_iter().flat_map(|map| map.keys().cloned()));
            }
            let lists = one.get("dependentRequired").and_then(Value::as_object);
            let lists = lists.into_iter().flat_map(|map| map.values()).chain(one.get("required"));
            for name in lists.filter_map(Value::as_array).flatten() {
                names.extend(name.as_str().map(str::to_owned));
            }
            for value in one.get("enum").into_iter().chain(one.get("const")) {
                collect(value, &mut words, &mut listed);
            }
            integers |= one.get("type").is_some_and(|kind| kind.to_string().contains("integer"));
        });
        words.extend(names.iter().cloned());
        let numbers_are_free = !integers && listed.is_empty() && !mentions(schema, &NUMERIC);
        Self { names, words, listed, numbers_are_free }
    }

    /// Spellings of which one must be accepted: numbers as they are, plain, and as the schema has them.
    fn all(&self, document: &Document) -> Vec<Document> {
        let mut all: Vec<Document> = Vec::new();
        for how in [Numbers::Plain, Numbers::Listed, Numbers::AsIs] {
            let spelled = document.respelled(
                &mut |scalar| if scalar.starts_with('"') { plain_string(scalar) } else { self.numbers(scalar, how) },
                &mut plain_string,
            );
            if !all.contains(&spelled) {
                all.push(spelled);
            }
        }
        all
    }

    /// Integers are written in plain digits because a reader might not take `1.0` for one, numbers with bounds without exponents because an
    /// automaton compares digits, and listed numbers as they are listed.
    fn numbers(&self, scalar: &str, how: Numbers) -> String {
        let Some(plain) = plain_number(scalar) else { return scalar.to_owned() };
        match how {
            Numbers::AsIs => scalar.to_owned(),
            Numbers::Plain => plain,
            Numbers::Listed => {
                let same = self.listed.iter().find(|one| plain_number(one).as_ref() == Some(&plain));
                same.cloned().unwrap_or(plain)
            }
        }
    }

    /// Keys that the schema names and listed words have one spelling, because a model has no reason to escape them. All other strings may be
    /// spelled in any way.
    fn strings(&self, spelled: &str) -> String {
        match decode(spelled) {
            Some(word) if self.words.contains(&word) => encode(&word),
            _ => spelled.to_owned(),
        }
    }

    /// `accepted` with strings and keys spelled as in `document`.
    fn restore_strings(&self, document: &Document, accepted: &Document) -> Document {
        restore(document, accepted, &|theirs, ours| {
            if theirs.starts_with('"') { self.strings(theirs) } else { ours.to_owned() }
        })
    }

    /// `accepted` with numbers spelled as in `document`.
    fn restore_numbers(&self, document: &Document, accepted: &Document) -> Document {
        restore(document, accepted, &|theirs, ours| {
            if theirs.starts_with('"') { ours.to_owned() } else { theirs.to_owned() }
        })
    }
}

#[derive(Clone, Copy)]
enum Numbers {
    Plain,
    Listed,
    AsIs,
}

fn plain_string(spelled: &str) -> String {
    decode(spelled).map_or_else(|| spelled.to_owned(), |text| encode(&text))
}

/// The strings and numbers in a listed value.
fn collect(value: &Value, words: &mut Vec<String>, numbers: &mut Vec<String>) {
    match value {
        Value::String(word) => words.push(word.clone()),
        Value::Number(number) => numbers.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words, numbers)),
        Value::Object(members) => {
            for (key, value) in members {
                words.push(key.clone());
                collect(value, words, numbers);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// `ours` with its scalars and keys replaced by what `choose` makes of their two spellings. Both have the same keys, perhaps in other orders.
fn restore(theirs: &Document, ours: &Document, choose: &dyn Fn(&str, &str) -> String) -> Document {
    match (theirs, ours) {
        (Document::Scalar(theirs), Document::Scalar(ours)) => Document::Scalar(choose(theirs, ours)),
        (Document::Array(theirs), Document::Array(ours)) => Document::Array(
            theirs.iter().zip(ours).map(|(theirs, ours)| restore(theirs, ours, choose)).collect(),
        ),
        (Document::Object(theirs), Document::Object(ours)) => {
            let member = |(key, value): &(String, Document)| {
                match theirs.iter().find(|(other, _)| decode(other) == decode(key)) {
                    Some((other, theirs)) => (choose(other, key), restore(theirs, value, choose)),
                    None => (key.clone(), value.clone()),
                }
            };
            Document::Object(ours.iter().map(member).collect())
        }
        _ => ours.clone(),
    }
}
