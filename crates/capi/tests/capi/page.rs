//! The programs of `docs/c.md`, each followed by what it writes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::compile::{Language, Linked, run};

#[test]
fn the_programs_of_the_page_write_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tokenizer = root.join("target/assets/llama3_1/tokenizer.json");
    let page = fs::read_to_string(root.join("docs/c.md")).unwrap();
    let blocks = blocks(&page);
    let programs = blocks.windows(2).filter(|pair| pair[0].0 == "c");
    let mut count = 0;
    for pair in programs {
        let [(_, program), (kind, expected)] = pair else { unreachable!("a window of two") };
        assert_eq!(*kind, "text", "a program is followed by what it writes");
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{count}.c"));
        fs::write(&path, program).unwrap();
        for language in [Language::C99, Language::Cpp17] {
            assert_eq!(run(&path, language, Linked::Shared, &[&tokenizer]), *expected);
        }
        count += 1;
    }
    assert!(count >= 2 && blocks.last().unwrap().0 != "c");
}

/// The code blocks of a page: language and content.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                blocks.push((language, String::new()));
                is_open = true;
            }
            None => {
                if let Some((_, content)) = blocks.last_mut().filter(|_| is_open) {
                    content.push_str(line);
                    content.push('\n');
                }
            }
        }
    }
    blocks
}
