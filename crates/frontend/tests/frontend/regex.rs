//! The cases of `testdata/regex`, and patterns that want to do harm.
//!
//! A pattern is lowered to a grammar, the grammar is turned into an automaton by the plain translation of
//! `regex_support`, and the automaton answers.

use std::fs;
use std::path::Path;

use maskwright_automata::{Dfa, Limits, Resource};
use maskwright_frontend::regex::{Dialect, Options, grammar};
use serde::Deserialize;

use crate::frugal::within_steps;
use crate::regex_support;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "the fields are named as the options are"
)]
struct Case {
    name: String,
    pattern: String,
    #[serde(default)]
    dialect: String,
    anchored: Option<bool>,
    #[serde(default)]
    ascii: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    multi_line: bool,
    #[serde(default)]
    dot_all: bool,
    #[serde(default)]
    extended: bool,
    accept: Option<Vec<String>>,
    reject: Option<Vec<String>>,
    /// How many states the minimal automaton has, the dead one included.
    states: Option<usize>,
    /// A part of the message.
    error: Option<String>,
    /// The bytes of the pattern that the message points at.
    place: Option<[usize; 2]>,
    why: String,
}

impl Case {
    fn options(&self) -> Options {
        let dialect = match &*self.dialect {
            "" => Dialect::Rust,
            name => name.parse().unwrap_or_else(|error| panic!("{}: {error}", self.name)),
        };
        Options {
            dialect,
            anchored: self.anchored.unwrap_or(true),
            ascii: self.ascii,
            ignore_case: self.ignore_case,
            multi_line: self.multi_line,
            dot_all: self.dot_all,
            extended: self.extended,
            ..Options::default()
        }
    }

    fn run(&self) -> Result<(), String> {
        if self.why.is_empty() {
            return Err("says nothing about why it exists".into());
        }
        match (grammar(&self.pattern, &self.options()), &self.error) {
            (Err(remark), None) => {
                Err(format!("unexpected error\n{}", remark.render("pattern", &self.pattern)))
            }
            (Ok(_), Some(error)) => Err(format!("no error, but {error:?} was expected")),
            (Err(remark), Some(error)) => {
                let place = [remark.span.start, remark.span.end];
                let text = remark.render("pattern", &self.pattern);
                if !text.contains(error) {
                    return Err(format!("{error:?} is not in\n{text}"));
                }
                match self.place {
                    Some(expected) if expected != place => Err(format!("points at {place:?}\n{text}")),
                    _ => Ok(()),
                }
            }
            (Ok(grammar), None) => {
                let dfa = regex_support::automaton(&grammar, &Limits::default())
                    .map_err(|error| error.to_string())?;
                self.check(&dfa)
            }
        }
    }

    fn check(&self, dfa: &Dfa) -> Result<(), String> {
        let (Some(accept), Some(reject)) = (&self.accept, &self.reject) else {
            return Err("needs both `accept` and `reject`, or `error`".into());
        };
        if let Some(text) = accept.iter().find(|text| !dfa.matches(text.as_bytes())) {
            return Err(format!("does not accept {text:?}"));
        }
        if let Some(text) = reject.iter().find(|text| dfa.matches(text.as_bytes())) {
            return Err(format!("does not reject {text:?}"));
        }
        match self.states {
            Some(states) if states != dfa.len() => Err(format!("has {} states, not {states}", dfa.len())),
            _ => Ok(()),
        }
    }
}

#[test]
fn all_cases_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/regex");
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let cases: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        for case in cases.case {
            count += 1;
            if let Err(failure) = case.run() {
                failures.push(format!("{file}/{} `{}`: {failure} ({})", case.name, case.pattern, case.why));
            }
        }
    }
    assert!(count > 100, "only {count} cases were found");
    assert!(failures.is_empty(), "{} of {count} fail\n{}", failures.len(), failures.join("\n"));
}

/// An answer, whatever it is, after few steps, and a place inside the pattern.
fn survives(pattern: &str) -> bool {
    let mut accepted = false;
    for options in [Options::default(), Options::json_schema()] {
        match within_steps(pattern, |pattern| grammar(pattern, &options)) {
            Ok(grammar) => {
                accepted = true;
                assert!(grammar.exprs().len() < 100_000);
            }
            Err(remark) => {
                assert!(
                    remark.span.start <= remark.span.end && remark.span.end <= pattern.len(),
                    "{remark:?}"
                );
                assert!(!remark.render("pattern", pattern).is_empty());
            }
        }
    }
    accepted
}

#[test]
fn hostile_patterns_are_answered() {
    const MANY: usize = 100_000;
    for opening in ["(", "(?:", "[", "(?=", "(?<!", "((a|", "(a?", "[^["] {
        assert!(!survives(&opening.repeat(MANY)), "{opening}");
    }
    assert!(!survives(&format!("{}a{}", "(".repeat(MANY), ")".repeat(MANY))));
    assert!(!survives(&format!("a{}", "{2}".repeat(MANY))));
    assert!(!survives(&format!("a{}", "*".repeat(MANY))));
    for fine in
        ["(a*)*", ".{1,1000000}", "a{1000}{1000}", ".*a.{30}", "(a?){1000000}", "\0", "((a{0,9}){0,9}){0,9}"]
    {
        assert!(survives(fine), "{fine}");
    }
    for repeated in [
        "a",
        "[a]",
        "(a|a)",
        "a|",
        "|",
        ".",
        "\\w",
        "(?i)k",
        "[a-z]",
        "a?",
        "$",
        "^",
        "a$|",
        "\\b",
        "a?\\b",
        "(?=a)",
        "(?!a)b",
        "(?<=a)",
        "(?<=ab)",
        "(?:^|a)",
        "(?:$|a)?",
        "{",
        "a{1",
        "[[:",
        "\\p{L}",
        "\\u{41}",
        "\\x{",
        "(?#)",
        "(?i)",
        "é",
        "😀",
        "x{2}",
        "(?:a\\b){9}",
        "[a&&b]",
        "(?m)^",
        "(?<=[a-c])(?<=[b-d])",
        "\\bé",
        "(a\\b)?",
    ] {
        survives(&repeated.repeat(MANY / 4));
    }
    // Many different look-behinds tell many characters apart.
    let looks: Vec<String> = ('Ѐ'..'ӈ').map(|letter| format!("(?<=[{letter}x])")).collect();
    let looks = looks.concat();
    assert!(!survives(&looks));
    let nested = (0..100).fold(String::from("a\\b"), |inner, _| format!("(?:{inner}){{2}}"));
    assert!(!survives(&nested));
}

#[test]
fn every_prefix_and_every_cut_is_answered() {
    let patterns = [
        r"^(?i:[a-z&&[^x]]{2,5}|\p{Greek}+?)(?<=a)(?!b)\b\x{41}\u0042(?P<n>[[:alpha:]--é])$",
        r"(?x) a # b
           (?<=ab|c) \d{1,} [^\]\-\w] (?#c) \U0001F600 \uD83D\uDE00",
    ];
    for pattern in patterns {
        for (i, _) in pattern.char_indices() {
            survives(&pattern[..i]);
            survives(&pattern[i..]);
            let next = pattern[i..].chars().next().map_or(0, char::len_utf8);
            survives(&[&pattern[..i], &pattern[i + next..]].concat());
        }
    }
}

#[test]
fn large_bounds_stay_as_they_are() {
    let grammar = grammar(".{1,1000000}", &Options::default()).unwrap();
    assert!(grammar.exprs().len() < 10, "{grammar:?}");
}

#[test]
fn automata_of_hostile_patterns_are_refused() {
    for (pattern, first) in [
        (".*a.{30}", Resource::States),
        (".{1,1000000}", Resource::States),
        ("a{1000}{1000}", Resource::States),
        ("(?:.*a.{9}){9}", Resource::Steps),
    ] {
        let grammar = grammar(pattern, &Options::default()).unwrap();
        let limits = Limits { steps: 5_000_000, ..Limits::default() };
        let error = regex_support::automaton(&grammar, &limits).unwrap_err();
        assert_eq!(error.resource(), first, "{pattern}");
    }
}
