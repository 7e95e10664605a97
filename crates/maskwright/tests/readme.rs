//! The example of README.md, executed, and the check that it is the same there and here.

/// Between the two markers stands the example, word for word.
#[test]
fn the_example_runs() -> Result<(), Box<dyn std::error::Error>> {
    // example
    use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};

    let mut vocabulary = VocabularyBuilder::new(); // normally read from a tokenizer file
    for (id, token) in (0..).zip(["yes", "no", "n", "o", "maybe"]) {
        vocabulary.token(TokenId(id), token.as_bytes())?;
    }
    vocabulary.special(TokenId(5), "<end>")?.eos(TokenId(5));

    let compiler = Compiler::new(vocabulary.finish()?.into());
    let mut matcher = compiler.compile(&Constraint::regex("yes|no"))?.matcher();
    let mut mask = [0u32; 1]; // one bit for each token
    matcher.fill_mask(&mut mask)?;
    assert_eq!(mask, [0b00_0111]); // yes, no, n
    matcher.accept(TokenId(2))?; // n
    matcher.fill_mask(&mut mask)?;
    assert_eq!(mask, [0b00_1000]); // o
    matcher.accept(TokenId(3))?;
    assert!(matcher.is_stopped()); // nothing but the end can follow
    // end of the example
    Ok(())
}

#[test]
fn the_readme_shows_it() {
    let shown = between(include_str!("../../../README.md"), "```rust\n", "```\n");
    let run = between(include_str!("readme.rs"), "    // example\n", "    // end of the example\n");
    let run: String =
        run.lines().flat_map(|line| [line.strip_prefix("    ").unwrap_or(line), "\n"]).collect();
    assert_eq!(shown, run, "copy the example from tests/readme.rs to README.md");
}

/// What stands between the first `from` and the next `to`.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, rest) = text.split_once(from).expect("the beginning is marked");
    rest.split_once(to).expect("the end is marked").0
}
