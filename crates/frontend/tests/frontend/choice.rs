//! Runs the cases in `testdata/choice/*.toml`.

use std::fs;
use std::path::Path;

use maskwright_frontend::choice::{self, ChoiceError, Limits};
use serde::Deserialize;

use crate::recognize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The list, as one would write it on a command line.
    source: String,
    /// What it is read as.
    choices: Option<Vec<String>>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    /// Part of the error.
    error: Option<String>,
    /// Line and column of the error.
    at: Option<String>,
    #[expect(dead_code, reason = "for the reader of the file; deserializing checks that it is there")]
    why: String,
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/choice");
    let mut run = 0;
    for entry in fs::read_dir(&folder).expect("testdata/choice is there") {
        let path = entry.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("a case file is UTF-8");
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in file.case {
            check(&format!("{}: {}", path.display(), case.name), &case);
            run += 1;
        }
    }
    assert!(run > 12, "only {run} cases were found");
}

fn check(place: &str, case: &Case) {
    let choices = match choice::parse_list(&case.source) {
        Ok(choices) => choices,
        Err(remark) => {
            let (line, column) = remark.line_column(&case.source);
            let text = remark.render("list", &case.source);
            assert!(case.error.as_ref().is_some_and(|error| text.contains(error)), "{place}: {text}");
            assert_eq!(case.at, Some(format!("{line}:{column}")), "{place}: {text}");
            return;
        }
    };
    if let Some(expected) = &case.choices {
        assert_eq!(&choices, expected, "{place}");
    }
    match choice::grammar(&choices, &Limits::default()) {
        Err(error) => {
            assert!(case.error.as_ref().is_some_and(|e| error.to_string().contains(e)), "{place}: {error}");
        }
        Ok(grammar) => {
            assert_eq!(case.error, None, "{place}: an error was expected");
            for text in &case.accept {
                assert!(recognize::matches(&grammar, text.as_bytes()), "{place}: should accept {text:?}");
            }
            for text in &case.reject {
                assert!(!recognize::matches(&grammar, text.as_bytes()), "{place}: should reject {text:?}");
            }
        }
    }
}

#[test]
fn choices_need_not_be_text() {
    let grammar = choice::grammar(&[&b"\xFF\x00"[..], b"\xC3"], &Limits::default()).expect("good");
    assert!(recognize::matches(&grammar, b"\xC3"));
    assert!(recognize::matches(&grammar, b"\xFF\x00"));
    assert!(!recognize::matches(&grammar, b"\xFF"));
}

#[test]
fn limits_are_named() {
    let limits = Limits { choices: 2, bytes: 5 };
    assert_eq!(choice::grammar(&["a", "b", "c"], &limits), Err(ChoiceError::TooMany { found: 3, limit: 2 }));
    assert_eq!(choice::grammar(&["abc", "def"], &limits), Err(ChoiceError::TooLong { index: 1, limit: 5 }));
    assert!(choice::grammar(&["abc", "de"], &limits).is_ok());
}
