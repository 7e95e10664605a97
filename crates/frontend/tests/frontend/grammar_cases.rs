//! Runs the cases in `testdata/<notation>/*.toml` and the examples in `docs/<notation>.md`, for any notation of grammars.

use std::fs;
use std::path::{Path, PathBuf};

use maskwright_grammar::{Diagnostic, Grammar};
use serde::Deserialize;

/// What reading a source gives.
pub(crate) type Read = Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>>;

/// A notation, and the judge of what its grammars match.
#[derive(Clone, Copy)]
pub(crate) struct Notation {
    pub(crate) name: &'static str,
    /// Reads a source; the second argument is the rule to begin with, if it is not the usual one.
    pub(crate) read: fn(&str, Option<&str>) -> Read,
    pub(crate) matches: fn(&Grammar, &[u8]) -> bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// One case. A source with neither `error` nor `warning` must give a grammar and not one remark.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    source: String,
    /// The rule to begin with, if not the usual one.
    root: Option<String>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    /// Part of a rendered error.
    error: Option<String>,
    /// Part of a rendered warning.
    warning: Option<String>,
    /// Line and column of that error or warning.
    at: Option<String>,
    /// How many remarks there are in all; one unless told otherwise.
    count: Option<usize>,
    /// Why the case is here.
    #[expect(dead_code, reason = "for the reader of the file; deserializing checks that it is there")]
    why: String,
}

impl Notation {
    /// Runs all cases, of which there must be more than so many.
    pub(crate) fn cases(&self, least: usize) {
        let (mut run, mut failures) = (0, Vec::new());
        for (path, case) in self.read_cases() {
            run += 1;
            if let Err(failure) = self.check(&case) {
                failures.push(format!("{}: {}: {failure}", path.display(), case.name));
            }
        }
        assert!(failures.is_empty(), "{} of {run} cases failed\n{}", failures.len(), failures.join("\n"));
        assert!(run > least, "only {run} cases were found");
    }

    /// The sources of all cases, sound or not.
    pub(crate) fn sources(&self) -> Vec<String> {
        self.read_cases().into_iter().map(|(_, case)| case.source).collect()
    }

    fn read_cases(&self) -> Vec<(PathBuf, Case)> {
        let mut cases = Vec::new();
        let folder = repository().join("testdata").join(self.name);
        for entry in fs::read_dir(folder).expect("the folder of the cases is there") {
            let path = entry.expect("the folder can be read").path();
            let text = fs::read_to_string(&path).expect("a case file is UTF-8");
            let file: File =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            cases.extend(file.case.into_iter().map(|case| (path.clone(), case)));
        }
        cases.sort_by(|(a, _), (b, _)| a.cmp(b));
        cases
    }

    fn check(&self, case: &Case) -> Result<(), String> {
        match (self.read)(&case.source, case.root.as_deref()) {
            Ok((grammar, _)) if case.error.is_some() => Err(format!("an error was expected\n{grammar}")),
            Err(errors) if case.error.is_none() => Err(format!("refused\n{}", render(&errors, &case.source))),
            Err(errors) => check_remarks(&errors, case),
            Ok((grammar, warnings)) => {
                self.check_texts(&grammar, case)?;
                check_remarks(&warnings, case)
            }
        }
    }

    fn check_texts(&self, grammar: &Grammar, case: &Case) -> Result<(), String> {
        let wrongly = |text: &&String, expected| (self.matches)(grammar, text.as_bytes()) != expected;
        if let Some(text) = case.accept.iter().find(|text| wrongly(text, true)) {
            return Err(format!("should accept {text:?}\n{grammar}"));
        }
        if let Some(text) = case.reject.iter().find(|text| wrongly(text, false)) {
            return Err(format!("should reject {text:?}\n{grammar}"));
        }
        Ok(())
    }

    /// The fenced blocks of the page: one that is named like the notation is a grammar; `accept` and `reject` hold texts, one a line,
    /// for the grammar before; `remarks` is exactly what is said about it.
    pub(crate) fn documentation(&self, least: usize) {
        let page = repository().join("docs").join(format!("{}.md", self.name));
        let page = fs::read_to_string(page).expect("the page is there");
        let (mut source, mut said, mut checked) = (String::new(), String::new(), 0);
        for (kind, block) in fenced_blocks(&page) {
            match &*kind {
                kind if kind == self.name => {
                    assert_eq!(said, "", "a remark about this grammar is not on the page:\n{source}");
                    said = self.remarks_about(&block);
                    source = block;
                }
                "remarks" => {
                    assert_eq!(said, block);
                    said.clear();
                }
                "accept" | "reject" => {
                    let (grammar, _) = (self.read)(&source, None).expect("the grammar is good");
                    for text in block.lines() {
                        let matches = (self.matches)(&grammar, text.as_bytes());
                        assert_eq!(matches, kind == "accept", "{kind} {text:?}\n{source}");
                        checked += 1;
                    }
                }
                // What is run elsewhere, or cannot be run without a vocabulary.
                "sh" | "text" => {}
                other => panic!("what is a block of {other:?}?"),
            }
        }
        assert_eq!(said, "", "a remark about this grammar is not on the page:\n{source}");
        assert!(checked > least, "only {checked} texts were checked");
    }

    fn remarks_about(&self, source: &str) -> String {
        let remarks = match (self.read)(source, None) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        };
        remarks.iter().map(|remark| remark.render(&format!("g.{}", self.name), source)).collect()
    }
}

fn check_remarks(remarks: &[Diagnostic], case: &Case) -> Result<(), String> {
    let all = render(remarks, &case.source);
    let Some(expected) = case.error.as_ref().or(case.warning.as_ref()) else {
        return if remarks.is_empty() { Ok(()) } else { Err(format!("unexpected remarks\n{all}")) };
    };
    let says_it = |remark: &&Diagnostic| remark.render("g", &case.source).contains(expected);
    let Some(found) = remarks.iter().find(says_it) else {
        return Err(format!("{expected:?} was not said\n{all}"));
    };
    let (line, column) = found.line_column(&case.source);
    let at = format!("{line}:{column}");
    if case.at.as_ref().is_some_and(|expected| *expected != at) {
        return Err(format!("said at {at}\n{all}"));
    }
    if remarks.len() != case.count.unwrap_or(1) {
        return Err(format!("{} remarks\n{all}", remarks.len()));
    }
    let helpless = remarks.iter().any(|remark| remark.help.is_none());
    if helpless { Err(format!("a remark has no way out\n{all}")) } else { Ok(()) }
}

/// The remarks as people see them.
pub(crate) fn render(remarks: &[Diagnostic], source: &str) -> String {
    remarks.iter().map(|remark| remark.render("g", source)).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Kind and content of every fenced block.
fn fenced_blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside;
            if inside {
                blocks.push((kind.to_owned(), String::new()));
            }
        } else if let (true, Some((_, content))) = (inside, blocks.last_mut()) {
            content.push_str(line);
            content.push('\n');
        }
    }
    blocks
}
