//! Compares the engine with two validators that are independent of it and of each other, taking our own decisions into
//! account.
//!
//! A *pair* is a schema and a document. The validators decide whether the document's value satisfies the schema; the
//! engine decides whether the document's text may be written. These are different questions, and `docs/json-schema.md`
//! describes where the answers differ. All such decisions are implemented here, each as a function with its reason;
//! everything else is a disagreement:
//!
//! | decision | where |
//! |---|---|
//! | no key occurs twice | [`Judge::pair`]: such a text must be refused, regardless of the validators |
//! | keys have an order, or any | `in_some_order`: with the schema's order, some order of the keys must be accepted; with any order, the given one, except in listed objects. `Judge::orders_of_root` knows the order if schemas are not merged |
//! | listed words have one spelling | `Spellings::strings`: words that the schema names are written with as few escapes as possible |
//! | integers and bounded numbers in plain digits, listed numbers as listed | `Spellings::numbers` |
//! | numbers are exact, and have at most 24 digits on each side of the point | `has_numbers_beyond`: the validators are not asked about more digits than a double holds |
//! | patterns are ECMA-262's | `has_line_breaks`: the validators are not asked about a dot and such a line break |
//! | some formats are not regular, and neither they nor their negation allow all strings that they could | `Judge::has_open_formats`: nothing is compared for such a string |
//! | in `regex`, a backslash before a line break is not an escape | `has_escaped_breaks`: the validators are not asked about such a string |
//! | in a quoted `email`, a blank may be escaped | `has_escaped_blanks`: the validators are not asked about such a string |
//! | `uri-template` has the characters of RFC 6570 | `has_other_characters`: the validators are not asked about such a string |
//! | white space by style | [`Settings::layouts`] |
//! | an unsatisfiable schema is an error | [`Judge::pair`]: then no document may be valid |
//! | a schema that cannot be enforced is refused | such schemas are counted, not judged |

use std::sync::Arc;

use maskwright::json_schema::{self, KeyOrder, Reason};
use maskwright::{CompiledConstraint, Compiler, Constraint, Error, Library, Options, Vocabulary};
use serde_json::{Value, json};

use crate::document::{Document, Layout, decode, encode, orders, permutations, plain_number};
use crate::find::Fault;
use crate::schema::{for_each, mentions};
use crate::second::Second;
use crate::settings::Settings;

/// A property of a string.
type AboutString = fn(&str) -> bool;

/// A schema, compiled for the engine and for both validators.
pub struct Judge {
    schema: Value,
    settings: Settings,
    first: jsonschema::Validator,
    second: Second,
    /// `None` if nothing satisfies the schema.
    compiled: Option<CompiledConstraint>,
    spellings: Spellings,
    /// The validators are not asked about strings with one of these properties.
    unasked: Vec<AboutString>,
    /// The formats of the schema that are not regular: each, and its negation.
    formats: Vec<[CompiledConstraint; 2]>,
}

impl core::fmt::Debug for Judge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Judge").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The reason why a schema is not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// The engine refuses it, with this message.
    Refused(String),
    /// A validator does not accept it.
    ByValidator,
    /// The engine calls it malformed, and no validator does.
    Fault(Fault),
}

/// The result for a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// All agree that the document is valid.
    Valid,
    /// All agree that the document is invalid.
    Invalid,
    /// The validators disagree.
    Disputed,
    /// There are too many orders of keys to try.
    Undecided,
}

/// The compiler for all schemas, which shares what is learned about the vocabulary.
#[derive(Debug)]
pub struct Bench {
    compiler: Compiler,
}

impl Bench {
    /// Creates a bench for a vocabulary.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { compiler: Compiler::with_library(Arc::new(Library::new(vocabulary)), Options::default()) }
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.compiler.vocabulary()
    }

    /// Returns the compiler, for constraints other than schemas.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Drops what the compiler has learned if it is large.
    pub fn tidy(&self) {
        self.compiler.renew(64 << 20);
    }

    /// Returns the same schema with the other order of keys; `None` if it is refused there, which is counted where that
    /// order is judged.
    pub fn in_other_order(&self, judge: &Judge) -> Option<Judge> {
        let order = if judge.settings.order == KeyOrder::Any { KeyOrder::Schema } else { KeyOrder::Any };
        self.judge(&judge.schema, &Settings { order, ..judge.settings.clone() }).ok()
    }

    /// Compiles a schema and builds its validators.
    pub fn judge(&self, schema: &Value, settings: &Settings) -> Result<Judge, Unjudged> {
        let first = jsonschema(schema).ok_or(Unjudged::ByValidator)?;
        let second = Second::new(schema).ok_or(Unjudged::ByValidator)?;
        let mut limits = json_schema::Limits::default();
        limits.cases = settings.cases.unwrap_or(limits.cases);
        let options = Options {
            json_schema: json_schema::Options::default()
                .with_key_order(settings.order)
                .with_whitespace(settings.whitespace.clone())
                .with_limits(limits),
            ..Options::default()
        };
        let compiled =
            match self.compiler.compile_with(&Constraint::json_schema(schema.to_string()), &options) {
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
        let mut has_dots = false;
        for_each(schema, &mut |one| {
            for keyword in ["pattern", "patternProperties"] {
                has_dots |= one.get(keyword).is_some_and(|patterns| patterns.to_string().contains('.'));
            }
        });
        let formats = self.irregular_formats(schema);
        let has_format = |name: &str| {
            let mut found = false;
            for_each(schema, &mut |one| found |= one.get("format").is_some_and(|format| format == name));
            found
        };
        let cases: [(bool, AboutString); 4] = [
            (has_dots, has_line_breaks),
            (has_format("regex"), has_escaped_breaks),
            (has_format("email") || has_format("idn-email"), has_escaped_blanks),
            (has_format("uri-template"), has_other_characters),
        ];
        let unasked = cases.into_iter().filter(|(is_so, _)| *is_so).map(|(_, case)| case).collect();
        let (schema, settings) = (schema.clone(), settings.clone());
        Ok(Judge { schema, settings, first, second, compiled, spellings, unasked, formats })
    }
}

/// The formats that are not regular according to `docs/json-schema.md`.
const IRREGULAR: [&str; 5] = ["time", "date-time", "email", "idn-email", "regex"];

impl Bench {
    fn irregular_formats(&self, schema: &Value) -> Vec<[CompiledConstraint; 2]> {
        let mut formats: Vec<Value> = Vec::new();
        for_each(schema, &mut |one| {
            let format = one.get("format").filter(|format| IRREGULAR.iter().any(|name| *name == **format));
            if let Some(format) = format.filter(|format| !formats.contains(format)) {
                formats.push(format.clone());
            }
        });
        let compile =
            |schema: Value| self.compiler.compile(&Constraint::json_schema(schema.to_string())).ok();
        let both = |format: Value| {
            let not = json!({"type": "string", "not": {"format": format}});
            Some([compile(json!({"type": "string", "format": format}))?, compile(not)?])
        };
        formats.into_iter().filter_map(both).collect()
    }
}

fn jsonschema(schema: &Value) -> Option<jsonschema::Validator> {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.should_validate_formats(true).build(schema).ok()
}

fn accepts(compiled: &CompiledConstraint, text: &str) -> bool {
    let mut matcher = compiled.matcher();
    matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting()
}

impl Judge {
    /// Returns the schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns the compiled schema; `None` if nothing satisfies it.
    pub fn compiled(&self) -> Option<&CompiledConstraint> {
        self.compiled.as_ref()
    }

    /// Returns the common verdict of both validators; `None` if they disagree, or if one does not finish.
    pub fn validators(&self, value: &Value) -> Option<bool> {
        let first = self.first.is_valid(value);
        let second = self.second.is_valid(value)?;
        (first == second).then_some(first)
    }

    /// Whether the engine accepts a complete text.
    pub fn accepts(&self, text: &str) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| accepts(compiled, text))
    }

    /// Returns the verdicts of the first validator, the second one and the engine.
    pub fn verdicts(&self, value: &Value, text: &str) -> [bool; 3] {
        let first = self.first.is_valid(value);
        [first, self.second.is_valid(value).unwrap_or(first), self.accepts(text)]
    }

    /// Parses a finished text, and checks that it is JSON and accepted as a whole.
    pub fn reads(&self, text: &[u8]) -> Result<Document, Fault> {
        let read = core::str::from_utf8(text).ok().filter(|text| self.accepts(text));
        read.and_then(Document::parse)
            .ok_or_else(|| Fault::NotRead(String::from_utf8_lossy(text).into_owned()))
    }

    /// Judges a document. `seed` determines the white space.
    pub fn pair(&self, document: &Document, seed: u64) -> Result<Pair, Fault> {
        let (layouts, foreign) = self.settings.layouts(document, seed);
        let texts: Vec<String> = layouts.iter().map(|layout| layout.write(document)).collect();
        if document.repeats_a_key() {
            return match texts.into_iter().find(|text| self.accepts(text)) {
                Some(text) => Err(Fault::AcceptsRepeatedKey(text)),
                None => Ok(Pair::Invalid),
            };
        }
        let Some(value) = document.value() else { return Ok(Pair::Disputed) };
        if any_string(&value, &|text| self.unasked.iter().any(|is_so| is_so(text)))
            || has_numbers_beyond(document, DIGITS_OF_A_DOUBLE)
        {
            return Ok(Pair::Disputed);
        }
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
        let accepted = match self.some_spelling(document, layout) {
            Search::Found(accepted) => accepted,
            Search::TooMany => return Ok(Pair::Undecided),
            Search::Nothing if self.has_open_formats(&value) => return Ok(Pair::Undecided),
            Search::Nothing => return Err(Fault::RefusesValid(layout.write(document))),
        };
        // From here on the document is in an accepted spelling, and one thing is changed that must not matter, or must.
        for layout in layouts {
            self.must_accept(&layout.write(&accepted))?;
        }
        for (order, allowed) in self.orders_of_root(&accepted) {
            let text = layout.write(&order);
            if allowed { self.must_accept(&text) } else { self.must_refuse(text) }?;
        }
        // Listed objects keep the order of their keys.
        if self.settings.order == KeyOrder::Any && !self.spellings.lists_objects {
            for order in permutations(&accepted, MORE_ORDERS) {
                self.must_accept(&layout.write(&order))?;
            }
        }
        self.must_accept(&layout.write(&self.spellings.restore_strings(document, &accepted)))?;
        if self.spellings.numbers_are_free {
            self.must_accept(&layout.write(&restore_numbers(document, &accepted)))?;
        }
        let ours = layout.write(&accepted);
        for text in foreign.iter().map(|layout| layout.write(&accepted)).filter(|text| *text != ours) {
            self.must_refuse(text)?;
        }
        self.must_refuse(format!(" {ours}"))?;
        self.must_refuse(format!("{ours}\n"))?;
        Ok(Pair::Valid)
    }

    /// Whether the document has a string that neither a format of the schema nor its negation allows.
    fn has_open_formats(&self, value: &Value) -> bool {
        any_string(value, &|text| {
            let text = Value::from(text).to_string();
            let is_open =
                |[format, not]: &[CompiledConstraint; 2]| !accepts(format, &text) && !accepts(not, &text);
            self.formats.iter().any(is_open)
        })
    }

    /// Checks that the same schema with another order of keys accepts a document, in some order of its keys and some
    /// spelling, if and only if this one does. The validators do not matter here.
    pub fn agrees_with(&self, other: &Self, document: &Document, seed: u64) -> Result<Pair, Fault> {
        if document.repeats_a_key() {
            return Ok(Pair::Disputed);
        }
        let layout = self.settings.layouts(document, seed).0[0];
        let found = |judge: &Self| judge.some_order(&judge.spellings.all(document), layout);
        match (found(self), found(other)) {
            (Search::Found(_), Search::Found(_)) => Ok(Pair::Valid),
            (Search::Nothing, Search::Nothing) => Ok(Pair::Invalid),
            (Search::Found(one), Search::Nothing) | (Search::Nothing, Search::Found(one)) => {
                Err(Fault::OrdersDiffer(layout.write(&one)))
            }
            _ => Ok(Pair::Undecided),
        }
    }

    /// Returns other orders of the document's own keys, and whether they are allowed: the keys of `properties` in their
    /// order, then those of `required` and `dependentRequired`, then others in any order. Only for schemas that are not
    /// merged with others, where the order is obvious.
    fn orders_of_root(&self, accepted: &Document) -> Vec<(Document, bool)> {
        const MAX_ORDERS: usize = 24;
        let combined = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "enum", "const"];
        let (Document::Object(members), KeyOrder::Schema) = (accepted, self.settings.order) else {
            return Vec::new();
        };
        if combined.iter().any(|keyword| self.schema.get(*keyword).is_some()) {
            return Vec::new();
        }
        let listed = self.schema.get("properties").and_then(Value::as_object);
        let mut names: Vec<&str> =
            listed.into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
        let required = self.schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let dependent = self.schema.get("dependentRequired").and_then(Value::as_object);
        for (name, needed) in dependent.into_iter().flatten() {
            let needed = needed.as_array().into_iter().flatten().filter_map(Value::as_str);
            for name in [name.as_str()].into_iter().chain(needed) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let place = |key: &str| {
            let key = decode(key).unwrap_or_default();
            names.iter().position(|name| *name == key).unwrap_or(names.len())
        };
        orders(members.len(), MAX_ORDERS)
            .into_iter()
            .map(|order| {
                let members: Vec<_> = order.into_iter().map(|at| members[at].clone()).collect();
                let allowed = members.is_sorted_by_key(|(key, _)| place(key));
                (Document::Object(members), allowed)
            })
            .collect()
    }

    fn must_accept(&self, text: &str) -> Result<(), Fault> {
        if self.accepts(text) { Ok(()) } else { Err(Fault::RefusesSpelling(text.to_owned())) }
    }

    fn must_refuse(&self, text: String) -> Result<(), Fault> {
        if self.accepts(&text) { Err(Fault::AcceptsSpelling(text)) } else { Ok(()) }
    }

    /// Searches for a spelling of the document that the engine accepts, in some order of keys if the schema determines
    /// the order.
    fn some_spelling(&self, document: &Document, layout: Layout) -> Search {
        let spelled = self.spellings.all(document);
        let accepts = |document: &Document| self.accepts(&layout.write(document));
        if let Some(found) = spelled.iter().find(|document| accepts(document)) {
            return Search::Found(found.clone());
        }
        // Listed objects keep the order of their keys.
        if self.settings.order == KeyOrder::Any && !self.spellings.lists_objects {
            return Search::Nothing;
        }
        self.some_order(&spelled, layout)
    }

    /// Does the same in some order of keys.
    fn some_order(&self, spelled: &[Document], layout: Layout) -> Search {
        let accepts = |document: &Document| self.accepts(&layout.write(document));
        let mut result = Search::Nothing;
        for document in spelled {
            match in_some_order(document, &self.spellings.names, &accepts) {
                Search::Nothing => {}
                Search::TooMany => result = Search::TooMany,
                found @ Search::Found(_) => return found,
            }
        }
        result
    }
}

/// The result of searching for an accepted text.
enum Search {
    Found(Document),
    Nothing,
    TooMany,
}

/// Searches for an accepted order of the document's keys. The order of the schema is tried first, and then all others.
fn in_some_order(document: &Document, names: &[String], accepts: &dyn Fn(&Document) -> bool) -> Search {
    /// Enough for six keys in one object.
    const MAX_ORDERS: usize = 721;
    let all = permutations(&sorted(document, names), MAX_ORDERS);
    let too_many = all.len() == MAX_ORDERS;
    match all.into_iter().find(|document| accepts(document)) {
        Some(found) => Search::Found(found),
        None if too_many => Search::TooMany,
        None => Search::Nothing,
    }
}

/// Whether a string has a line break that the dot of ECMA-262 does not match, but that of the validators does: both use
/// the crate `regex`, whose dot only excludes `\n`.
fn has_line_breaks(text: &str) -> bool {
    text.contains(['\r', '\u{2028}', '\u{2029}'])
}

/// Whether some string, including keys, has a property.
fn any_string(value: &Value, is_so: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_so(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, is_so)),
        Value::Object(members) => members.iter().any(|(key, value)| is_so(key) || any_string(value, is_so)),
        _ => false,
    }
}

/// Whether a string has a backslash before a line break. With the flag `u`, ECMA-262 has no such escape, but both
/// validators accept it.
fn has_escaped_breaks(text: &str) -> bool {
    ["\\\n", "\\\r", "\\\u{2028}", "\\\u{2029}"].iter().any(|escape| text.contains(escape))
}

/// Whether a string has a backslash before a blank. RFC 5321 allows this in quoted text, but both validators refuse it.
fn has_escaped_blanks(text: &str) -> bool {
    text.contains("\\ ")
}

/// Whether a string has a non-ASCII code point that RFC 6570 excludes: controls, specials, noncharacters, and tags.
/// Both validators accept them.
fn has_other_characters(text: &str) -> bool {
    text.chars().any(|c| {
        matches!(c, '\u{80}'..='\u{9F}' | '\u{FDD0}'..='\u{FDEF}' | '\u{FFF0}'..='\u{FFFF}' | '\u{E0000}'..='\u{E0FFF}')
            || c as u32 & 0xFFFE == 0xFFFE
    })
}

/// How many orders of a document's keys are judged if any order is allowed.
const MORE_ORDERS: usize = 8;

/// The number of digits that a double can always hold. With more, both validators read `84202447271010757981.5` as an
/// integer, while we count digits.
const DIGITS_OF_A_DOUBLE: usize = 15;

/// Whether some number has more than this number of digits in plain notation. Such numbers may also be too long to be
/// written: a number has at most 24 digits on each side of the point, so that no model writes digits forever.
fn has_numbers_beyond(document: &Document, digits: usize) -> bool {
    match document {
        Document::Scalar(text) if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
            let count = |plain: String| plain.bytes().filter(u8::is_ascii_digit).count();
            plain_number(text).is_none_or(|plain| count(plain) > digits)
        }
        Document::Scalar(_) => false,
        Document::Array(items) => items.iter().any(|item| has_numbers_beyond(item, digits)),
        Document::Object(members) => members.iter().any(|(_, value)| has_numbers_beyond(value, digits)),
    }
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

/// The parts of a schema that determine spelling.
#[derive(Clone, Debug)]
struct Spellings {
    /// Keys that the schema names, in the order of its text.
    names: Vec<String>,
    /// These keys, and the strings in `enum` and `const`.
    words: Vec<String>,
    /// The numbers in `enum` and `const`, in their notation.
    listed: Vec<String>,
    /// Whether some object is listed.
    lists_objects: bool,
    /// Whether no number is listed, bounded or an integer, so that numbers may have any notation.
    numbers_are_free: bool,
}

impl Spellings {
    fn of(schema: &Value) -> Self {
        const NUMERIC: [&str; 5] =
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        let (mut names, mut words, mut listed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut integers, mut lists_objects) = (false, false);
        for_each(schema, &mut |one| {
            for keyword in ["properties", "dependentSchemas", "dependentRequired"] {
                names.extend(
                    one.get(keyword)
                        .and_then(Value::as_object)
                        .into_iter()
                        .flat_map(|map| map.keys().cloned()),
                );
            }
            let lists = one.get("dependentRequired").and_then(Value::as_object);
            let lists = lists.into_iter().flat_map(|map| map.values()).chain(one.get("required"));
            for name in lists.filter_map(Value::as_array).flatten() {
                names.extend(name.as_str().map(str::to_owned));
            }
            for value in one.get("enum").into_iter().chain(one.get("const")) {
                collect(value, &mut words, &mut listed);
                lists_objects |= value.to_string().contains('{');
            }
            integers |= one.get("type").is_some_and(|kind| kind.to_string().contains("integer"));
        });
        words.extend(names.iter().cloned());
        let numbers_are_free = !integers && listed.is_empty() && !mentions(schema, &NUMERIC);
        Self { names, words, listed, lists_objects, numbers_are_free }
    }

    /// Returns spellings of which one must be accepted: numbers in their own, in plain, and in the schema's notation.
    fn all(&self, document: &Document) -> Vec<Document> {
        let mut all: Vec<Document> = Vec::new();
        for how in [Numbers::Plain, Numbers::Listed, Numbers::AsIs] {
            let spelled = document.respelled(
                &mut |scalar| {
                    if scalar.starts_with('"') { plain_string(scalar) } else { self.numbers(scalar, how) }
                },
                &mut plain_string,
            );
            if !all.contains(&spelled) {
                all.push(spelled);
            }
        }
        all
    }

    /// Respells a number. Integers are written in plain digits because some readers do not accept `1.0` as an integer,
    /// numbers with bounds without exponents because an automaton compares digits, and listed numbers as they are
    /// listed.
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

    /// Respells a string. Keys that the schema names and listed words have one spelling, because a model has no reason
    /// to escape them. All other strings may have any spelling.
    fn strings(&self, spelled: &str) -> String {
        match decode(spelled) {
            Some(word) if self.words.contains(&word) => encode(&word),
            _ => spelled.to_owned(),
        }
    }

    /// Returns `accepted` with strings and keys spelled as in `document`.
    fn restore_strings(&self, document: &Document, accepted: &Document) -> Document {
        restore(document, accepted, &|theirs, ours| {
            if theirs.starts_with('"') { self.strings(theirs) } else { ours.to_owned() }
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

/// Collects the strings and numbers in a listed value.
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

/// Returns `accepted` with numbers spelled as in `document`.
fn restore_numbers(document: &Document, accepted: &Document) -> Document {
    restore(document, accepted, &|theirs, ours| {
        if theirs.starts_with('"') { ours.to_owned() } else { theirs.to_owned() }
    })
}

/// Returns `ours` with its scalars and keys replaced by the choice between both spellings. Both have the same keys,
/// possibly in different orders.
fn restore(theirs: &Document, ours: &Document, choose: &dyn Fn(&str, &str) -> String) -> Document {
    match (theirs, ours) {
        (Document::Scalar(theirs), Document::Scalar(ours)) => Document::Scalar(choose(theirs, ours)),
        (Document::Array(theirs), Document::Array(ours)) => Document::Array(
            theirs.iter().zip(ours).map(|(theirs, ours)| restore(theirs, ours, choose)).collect(),
        ),
        (Document::Object(theirs), Document::Object(ours)) => {
            let member = |(key, value): &(String, Document)| match theirs
                .iter()
                .find(|(other, _)| decode(other) == decode(key))
            {
                Some((other, theirs)) => (choose(other, key), restore(theirs, value, choose)),
                None => (key.clone(), value.clone()),
            };
            Document::Object(ours.iter().map(member).collect())
        }
        _ => ours.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::vocabulary;
    use maskwright::json_schema::Whitespace;
    use serde_json::json;

    fn settings(order: KeyOrder) -> Settings {
        Settings { order, whitespace: Whitespace::Compact, cases: None }
    }

    /// Returns the judge's fault if the engine has the schema `ours`, and the validators have `theirs`.
    fn fault(ours: &Value, theirs: &Value, text: &str) -> Option<Fault> {
        let bench = Bench::new(vocabulary());
        let mut judge = bench.judge(ours, &settings(KeyOrder::Schema)).unwrap();
        judge.first = jsonschema(theirs).unwrap();
        judge.second = Second::new(theirs).unwrap();
        judge.pair(&Document::parse(text).unwrap(), 0).err()
    }

    #[test]
    fn mistakes_are_noticed() {
        let (short, long) = (json!({"maxLength": 1}), json!({"maxLength": 2}));
        assert_eq!(fault(&long, &short, "\"ab\""), Some(Fault::AcceptsInvalid("\"ab\"".to_owned())));
        assert_eq!(fault(&short, &long, "\"ab\""), Some(Fault::RefusesValid("\"ab\"".to_owned())));
        assert_eq!(fault(&short, &long, "\"a\""), None);
        let (never, always) = (json!(false), json!({"type": "null"}));
        assert_eq!(fault(&never, &always, "null"), Some(Fault::CallsUnsatisfiable("null".to_owned())));
        // A listed word has one spelling, and others are refused; any other word has all spellings.
        let (listed, free) = (json!({"enum": ["a"]}), json!({"type": "string"}));
        assert_eq!(fault(&listed, &listed, r#""\u0061""#), None);
        assert_eq!(fault(&free, &free, r#""\u0061""#), None);
    }

    #[test]
    fn decisions_are_no_mistakes() {
        let bench = Bench::new(vocabulary());
        let schema =
            json!({"properties": {"a": {"type": "integer"}, "b": {"const": "x"}}, "required": ["c"]});
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let judge = bench.judge(&schema, &settings(order)).unwrap();
            for text in
                [r#"{"c":1,"a":1.0}"#, r#"{"b":"\u0078","c":0,"a":1}"#, r#"{"\u0061":1,"c":[],"z":1}"#]
            {
                assert_eq!(judge.pair(&Document::parse(text).unwrap(), 0), Ok(Pair::Valid), "{text}");
            }
            for text in [r#"{"c":1,"c":1}"#, r#"{"c":1,"a":1,"\u0061":2}"#, r#"{"a":1}"#] {
                assert_eq!(judge.pair(&Document::parse(text).unwrap(), 0), Ok(Pair::Invalid), "{text}");
            }
        }
    }
}
