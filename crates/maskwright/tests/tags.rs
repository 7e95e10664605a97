//! Structural tags: the cases of `testdata/tag`, run through the engine.

mod tag_support;

use std::path::Path;

use maskwright::{Compiler, Constraint, Error, Way};
use serde::Deserialize;
use tag_support::{tokens, vocabulary};

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// A tag, and what it accepts. A special token is written `⟦name⟧` in a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    why: String,
    tag: String,
    /// Special tokens of the vocabulary; those of `ends` end the text.
    #[serde(default)]
    specials: Vec<String>,
    #[serde(default)]
    ends: Vec<String>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    /// The beginnings of texts: something can follow, and something must.
    #[serde(default)]
    begin: Vec<String>,
    /// Parts of the message, if the tag is refused.
    #[serde(default)]
    error: Vec<String>,
}

fn check(case: &Case) -> Result<(), String> {
    let vocabulary = vocabulary(&case.specials, &case.ends);
    let compiler = Compiler::new(vocabulary.clone());
    let bound = match compiler.compile(&Constraint::structural_tag(&case.tag)) {
        Ok(bound) if case.error.is_empty() => bound,
        Ok(_) => return Err("an error was expected".into()),
        Err(error) => return judge_error(&error, case),
    };
    let read = |text: &String| {
        let mut matcher = bound.matcher();
        for token in tokens(text, &vocabulary) {
            let rows = [Way::Plain, Way::Fast].map(|way| {
                matcher.set_way(way);
                matcher.mask().clone()
            });
            assert_eq!(rows[0], rows[1], "{}: masks differ in {text:?}", case.name);
            let allowed = rows[1].iter().any(|one| one == token);
            let accepted = matcher.accept(token).is_ok();
            assert_eq!(allowed, accepted, "{}: mask and accept differ in {text:?}", case.name);
            if !accepted {
                return (false, false);
            }
        }
        (true, matcher.is_accepting())
    };
    for (texts, expected) in [(&case.accept, (true, true)), (&case.begin, (true, false))] {
        for text in texts {
            if read(text) != expected {
                return Err(format!("{text:?}: (alive, complete) is {:?} and not {expected:?}", read(text)));
            }
        }
    }
    for text in &case.reject {
        if read(text).1 {
            return Err(format!("{text:?} is accepted"));
        }
    }
    Ok(())
}

fn judge_error(error: &Error, case: &Case) -> Result<(), String> {
    let message = error.to_string();
    if case.error.is_empty() {
        return Err(format!("refused: {message}"));
    }
    match case.error.iter().find(|part| !message.contains(part.as_str())) {
        Some(part) => Err(format!("{message:?} does not say {part:?}")),
        None => Ok(()),
    }
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tag");
    let mut count = 0;
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file: File = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in &file.case {
            assert!(!case.why.is_empty());
            count += 1;
            if let Err(message) = check(case) {
                failed.push(format!("{}: {}: {message}", path.display(), case.name));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count > 40, "only {count} cases were found");
}
