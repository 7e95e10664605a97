//! The documents name files, folders, headings, targets of the Makefile and test binaries that exist.
//!
//! A word in backticks is the name of a file if it ends like one (`mask.rs`, `docs/server.md`), and the name of a folder if it ends in a slash or
//! begins at a folder that everybody knows (`crates/…`, `engine/tests/…`). Documents do not spell out every path, so a name is looked for where
//! a reader would: from the root; below `crates`, with or without `src`; in the `src` of a crate; beside the document; and in the folders that the
//! same section, or row of a table, has named before, the last one first. So `judge.rs` behind `matcher/gauge.rs` is `crates/engine/src/matcher/judge.rs`. `*` and `{a,b}` mean what
//! they mean in a shell, and `<language>` stands for anything.
//!
//! What is made by building (`target/…`), paths of URLs (`/v1/models`) and names that are a user's (`tokenizer.json`) are no names of ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use maskwright::{IndexLimits, Options, service};

/// How the names of our files end.
const FILES: [&str; 13] =
    [".rs", ".md", ".sh", ".py", ".pyi", ".toml", ".json", ".h", ".c", ".cpp", ".mjs", ".svg", ".html"];

/// Alone, these endings are as likely to be a file of the user's: `config.json`.
const NOT_ALONE: [&str; 3] = [".json", ".toml", ".py"];

/// Where the paths of folders begin, besides the crates.
const ROOTS: [&str; 10] =
    [".ci", "crates", "bench", "docs", "examples", "fuzz", "python", "scripts", "testdata", "tests"];

#[test]
fn every_name_of_a_file_is_one() {
    let mut names = 0;
    let mut missing = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        // The folders that the section has named so far, the last one first.
        let mut named: Vec<PathBuf> = Vec::new();
        let mut is_code = false;
        for (line, number) in text.lines().zip(1..) {
            is_code ^= line.trim_start().starts_with("```");
            if is_code {
                continue;
            }
            if line.starts_with(['#', '|']) {
                named.clear();
            }
            for name in in_backticks(line).into_iter().filter(|name| is_path(name)) {
                names += 1;
                let found = find(name, &document, &named);
                if found.is_empty() {
                    missing.push(format!("{}:{number}: `{name}`", document.display()));
                }
                for path in found {
                    named.insert(0, path.parent().unwrap().to_owned());
                    if path.is_dir() {
                        named.insert(0, path);
                    }
                }
            }
        }
    }
    assert!(missing.is_empty(), "there is no such file or folder:\n{}", missing.join("\n"));
    assert!(names > 150, "only {names} names were found; are they still recognised?");
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in links_of(&text) {
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            let leads = match fs::read_to_string(&path) {
                Ok(page) => heading.is_empty() || headings(&page).contains(heading),
                Err(_) => heading.is_empty() && path.exists(),
            };
            if !leads {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
    assert!(links > 60, "only {links} links were found; are they still recognised?");
}

#[test]
fn every_command_can_be_given() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', ' ', '#', '.']))
        .filter_map(|line| line.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    let mut commands = 0;
    let mut wrong = Vec::new();
    for document in documents().into_iter().chain([root().join("Makefile"), root().join(".ci/run")]) {
        let text = fs::read_to_string(&document).unwrap();
        let is_page = document.extension().is_some_and(|ending| ending == "md");
        for code in if is_page { code_of(&text) } else { text.lines().collect() } {
            let words: Vec<&str> = code.split_whitespace().collect();
            for (at, pair) in words.windows(2).enumerate() {
                let is_known = match pair {
                    ["make", target] if at == 0 && target.starts_with(|c: char| c.is_ascii_lowercase()) => {
                        targets.contains(target)
                    }
                    ["--test", binary] => has_test(&words, binary),
                    _ => continue,
                };
                commands += 1;
                if !is_known {
                    wrong.push(format!("{}: {}", document.display(), pair.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no target of the Makefile, or no test binary:\n{}", wrong.join("\n"));
    assert!(commands > 25, "only {commands} commands were found; are they still recognised?");
}

/// A limit in SECURITY.md names the tests that hold it: `test`, or `file::test`.
#[test]
fn every_test_that_holds_a_limit_is_there() {
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = crates().collect();
    while let Some(folder) = folders.pop() {
        for entry in sorted(&folder) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&entry).unwrap();
                sources.push((entry.file_stem().unwrap().to_string_lossy().into_owned(), text));
            }
        }
    }
    let rows = limits_of_the_page();
    assert!(rows.len() >= 20, "only {} rows were found", rows.len());
    for [what, _, tests] in rows {
        let tests = in_backticks(&tests);
        assert!(!tests.is_empty(), "nothing holds the limit of {what}");
        for test in tests {
            let (file, name) = test.split_once("::").map_or((None, test), |(file, name)| (Some(file), name));
            let definition = format!("#[test]\nfn {name}(");
            let later = format!("#[tokio::test]\nasync fn {name}(");
            let is_there = sources
                .iter()
                .filter(|(stem, _)| file.is_none_or(|file| file == stem))
                .filter(|(_, text)| text.contains(&definition) || text.contains(&later))
                .count();
            assert_eq!(is_there, 1, "SECURITY.md names {test}, and there are {is_there} tests of that name");
        }
    }
}

/// The numbers in SECURITY.md are the defaults.
#[test]
fn limits_are_those_of_the_security_page() {
    let options = Options::default();
    let service = service::Settings::default();
    let count = |number: u64| {
        let digits = number.to_string();
        let parts: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
        parts.join(",")
    };
    let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
    let schema = &options.json_schema.limits;
    let limits = &options.limits;
    assert_eq!(options.lark.limits.source_bytes, options.ebnf.limits.source_bytes);
    assert_eq!(options.lark.limits.repetition, options.ebnf.limits.repetition);
    let expected = [
        ("text of a pattern", mib(options.regex.source_bytes)),
        (
            "text and nesting of a JSON Schema",
            format!("{}, {} levels", mib(schema.schema_bytes), schema.depth),
        ),
        ("branches of combinators", format!("{} cases", count(schema.cases as u64))),
        (
            "text of a grammar",
            format!(
                "{}; {}",
                mib(options.lark.limits.source_bytes),
                count(options.lark.limits.repetition.into())
            ),
        ),
        (
            "expressions, nodes, tables",
            format!(
                "{}; {}; {}",
                count(limits.exprs as u64),
                count(limits.nodes as u64),
                mib(limits.table_bytes)
            ),
        ),
        ("steps of one mask", count(limits.mask_steps)),
        ("states of an index", count(IndexLimits::default().states as u64)),
        ("time of one compilation", format!("{} s", service.timeout.as_secs())),
        ("memory of one compilation", mib(service.memory)),
    ];
    let rows = limits_of_the_page();
    for (what, default) in expected {
        let row =
            rows.iter().find(|[name, ..]| name.starts_with(what)).unwrap_or_else(|| panic!("no row {what}"));
        assert_eq!(row[1], default, "{what}");
    }
}

/// The rows of the table of limits in SECURITY.md: what, default, tests.
fn limits_of_the_page() -> Vec<[String; 3]> {
    let text = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.contains("| test |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<String> =
                row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            cells.try_into().expect("three cells")
        })
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages that describe what is; the changelog tells what was.
fn documents() -> Vec<PathBuf> {
    let mut documents: Vec<PathBuf> = [
        "README",
        "ARCHITECTURE",
        "CONTRIBUTING",
        "RELEASING",
        "SECURITY",
        "bench/README",
        "fuzz/README",
        "python/README",
    ]
    .map(|name| root().join(name).with_extension("md"))
    .into();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in sorted(&folder) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "md") {
                documents.push(entry);
            }
        }
    }
    documents.extend(crates().map(|folder| folder.join("README.md")).filter(|page| page.is_file()));
    documents
}

fn crates() -> impl Iterator<Item = PathBuf> {
    sorted(&root().join("crates")).into_iter()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// What stands between pairs of backticks.
fn in_backticks(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn is_path(name: &str) -> bool {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./*{},<>".contains(c)) {
        return false;
    }
    if name.starts_with(['/', '<']) || name.starts_with("target/") || name.contains("</") {
        return false;
    }
    let Some((first, _)) = name.split_once('/') else {
        return FILES.iter().any(|end| name.len() > end.len() && name.ends_with(end))
            && (name.starts_with('_') || !NOT_ALONE.iter().any(|end| name.ends_with(end)));
    };
    name.ends_with('/')
        || FILES.iter().any(|end| name.ends_with(end))
        || ROOTS.contains(&first)
        || root().join("crates").join(first).is_dir()
}

/// The paths that a name means, in the first place where there is such a path; empty if one of its alternatives is nowhere.
fn find(name: &str, document: &Path, named: &[PathBuf]) -> Vec<PathBuf> {
    let root = root();
    let mut bases = vec![root.clone(), root.join("crates"), document.parent().unwrap().to_owned()];
    bases.extend(named.iter().cloned());
    bases.extend(crates().map(|folder| folder.join("src")));
    bases.extend(crates());
    bases.extend(["python", "python/maskwright", "crates/capi/include"].map(|folder| root.join(folder)));
    let mut found = Vec::new();
    for name in alternatives(name) {
        let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
        // `vocab/vocabulary.rs` leaves out the `src`.
        let (first, behind) = parts.split_first().expect("a name is not empty");
        let source = root.join("crates").join(first).join("src");
        let places = bases.iter().map(|base| (base, &parts[..])).chain([(&source, behind)]);
        let Some(paths) = places.map(|(base, parts)| below(base, parts)).find(|paths| !paths.is_empty())
        else {
            return Vec::new();
        };
        found.extend(paths);
    }
    found
}

/// `{a,b}.rs` is `a.rs` and `b.rs`.
fn alternatives(name: &str) -> Vec<String> {
    match name.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        None => vec![name.to_owned()],
        Some((before, (inside, behind))) => {
            inside.split(',').map(|part| format!("{before}{part}{behind}")).collect()
        }
    }
}

/// What lies below a folder under these names.
fn below(folder: &Path, parts: &[&str]) -> Vec<PathBuf> {
    let [part, rest @ ..] = parts else {
        return if folder.exists() { vec![folder.to_owned()] } else { Vec::new() };
    };
    let star = if part.starts_with('<') { Some(("", "")) } else { part.split_once('*') };
    let Some((start, end)) = star else {
        return below(&folder.join(part), rest);
    };
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    };
    sorted(folder).into_iter().filter(fits).flat_map(|path| below(&path, rest)).collect()
}

/// The targets of links that stay in the repository.
fn links_of(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        // Outside of backticks, where `[a](b)` would be an example.
        for prose in line.split('`').step_by(2) {
            for (at, _) in prose.match_indices("](") {
                let target = prose[at + 2..].split(')').next().unwrap();
                if !target.contains("://") && !target.is_empty() {
                    links.push(target);
                }
            }
        }
    }
    links
}

/// The anchors of a page's headings, as GitHub makes them.
fn headings(page: &str) -> BTreeSet<String> {
    page.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// The lines of code blocks, and what stands in backticks.
fn code_of(text: &str) -> Vec<&str> {
    let mut code = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            code.push(line);
        } else {
            code.extend(in_backticks(line));
        }
    }
    code
}

/// Whether `cargo test -p PACKAGE --test BINARY` names a test binary.
fn has_test(words: &[&str], binary: &str) -> bool {
    let package = words.iter().skip_while(|word| **word != "-p").nth(1);
    let tests = |folder: &Path| {
        folder.join("tests").join(binary).join("main.rs").is_file()
            || folder.join("tests").join(format!("{binary}.rs")).is_file()
    };
    package.is_some_and(|package| {
        let folder = package.strip_prefix("maskwright-").unwrap_or(package);
        tests(&root().join("crates").join(folder))
    })
}
