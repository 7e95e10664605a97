//! Structural tags: the cases of `testdata/tag`, run through the engine.

use std::path::Path;

use maskwright::{Compiler, Constraint, Error, Strategy, tag};
use serde::Deserialize;

use crate::tag_support::{tokens, vocabulary};

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
            let rows = [Strategy::Reference, Strategy::Fast].map(|way| {
                matcher.set_strategy(way);
                matcher.mask().expect("a mask").clone()
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

/// Free text by its definition: the first marker that is complete ends it, and what it calls for follows.
fn follows(text: &str, rules: &[(String, String)], excludes: &[String]) -> bool {
    let mut rest = text;
    loop {
        let first = |marker: &String| rest.find(&**marker).map(|at| at + marker.len());
        let excluded = excludes.iter().filter_map(first).min();
        let ends = rules.iter().filter_map(|(marker, then)| first(marker).map(|end| (end, then)));
        match ends.min() {
            None => return excluded.is_none(),
            Some((end, _)) if excluded.is_some_and(|excluded| excluded <= end) => return false,
            Some((end, then)) => match rest[end..].strip_prefix(&**then) {
                Some(behind) => rest = behind,
                None => return false,
            },
        }
    }
}

#[test]
fn free_text_is_what_its_definition_says() {
    let vocabulary = vocabulary(&[], &[]);
    let compiler = Compiler::new(vocabulary);
    let mut seed = 12_345_u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut letters = |longest: usize| -> String {
        let length = 1 + random(longest);
        (0..length).map(|_| ['a', 'b', 'c'][random(3)]).collect()
    };
    let mut compiled = 0;
    for round in 0..300 {
        let rules: Vec<(String, String)> =
            (0..=round % 3).map(|i| (letters(4), format!("{i}{}", letters(2)))).collect();
        let excludes: Vec<String> = (0..round % 2).map(|_| letters(3)).collect();
        let pairs: Vec<String> = rules
            .iter()
            .map(|(marker, then)| format!(r#"["{marker}", {{"type": "const_string", "value": "{then}"}}]"#))
            .collect();
        let tag =
            format!(r#"{{"type": "dispatch", "rules": [{}], "excludes": {:?}}}"#, pairs.join(", "), excludes);
        let Ok(bound) = compiler.compile(&Constraint::structural_tag(&tag)) else {
            // Markers that contain one another are refused; nothing else is.
            let mut markers: Vec<&String> = rules.iter().map(|(marker, _)| marker).collect();
            markers.extend(&excludes);
            let contains = |a: usize, b: usize| a != b && markers[a].contains(&**markers[b]);
            assert!((0..markers.len()).any(|a| (0..markers.len()).any(|b| contains(a, b))), "{tag}");
            continue;
        };
        compiled += 1;
        for _ in 0..200 {
            let mut text = String::new();
            for _ in 0..6 {
                let (marker, then) = &rules[letters(9).len() % rules.len()];
                match letters(4).len() {
                    1 => text.push_str(&letters(3)),
                    2 => text.push_str(marker),
                    3 => text.extend([&**marker, &**then]),
                    _ => text.push_str(then),
                }
            }
            let mut matcher = bound.matcher();
            let accepted = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting();
            // An excluded text that is a marker as well leads on.
            let excludes: Vec<String> = excludes
                .iter()
                .filter(|text| rules.iter().all(|(marker, _)| marker != *text))
                .cloned()
                .collect();
            let same =
                rules.iter().filter(|(marker, _)| rules.iter().filter(|(m, _)| m == marker).count() > 1);
            if same.count() == 0 {
                assert_eq!(accepted, follows(&text, &rules, &excludes), "{tag}: {text:?}");
            }
        }
    }
    assert!(compiled > 100, "only {compiled} tags were compiled");
}

#[test]
fn damaged_tags_are_refused_or_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tag");
    let mut seed = 99_u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "null",
        "-1",
        "1e9",
        "\"type\"",
        "\"tag\"",
        "\"begin\"",
        "\"\"",
        "<",
        "é",
    ];
    let (mut read, mut refused) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let file: File = toml::from_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        for case in &file.case {
            for _ in 0..40 {
                let mut text: Vec<char> = case.tag.chars().collect();
                for _ in 0..=random(3) {
                    let (at, end) = (random(text.len() + 1), random(text.len() + 1));
                    match random(3) {
                        0 => drop(text.drain(at.min(end)..at.max(end).min(at.min(end) + 12))),
                        1 => drop(text.splice(at..at, pieces[random(pieces.len())].chars())),
                        _ => {
                            let part: Vec<char> = text[at.min(end)..at.max(end)].to_vec();
                            drop(text.splice(at..at, part));
                        }
                    }
                }
                let text: String = text.into_iter().collect();
                match tag::grammar(&text, &tag::Options::default()) {
                    Ok(_) => read += 1,
                    Err(error) => {
                        assert!(!error.problems().is_empty() && !error.to_string().is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(read > 10 && refused > 500, "{read} read, {refused} refused");
    let deep = format!(
        "{}{{\"type\":\"any_text\"}}{}",
        "{\"type\":\"star\",\"content\":".repeat(100),
        "}".repeat(100)
    );
    let error = tag::grammar(&deep, &tag::Options::default()).unwrap_err();
    assert!(error.to_string().contains("levels deep"), "{error}");
    let deeper = "{\"type\":\"star\",\"content\":".repeat(100_000);
    assert!(tag::grammar(&deeper, &tag::Options::default()).is_err());
}
