//! The examples of README.md and docs/indexes.md, executed, and the check that they are the same there and here.

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
fn the_example_of_indexes_runs() -> Result<(), Box<dyn std::error::Error>> {
    // example of indexes
    use maskwright::{Compiler, Constraint, Index, IndexLimits, TokenId, VocabularyBuilder};

    let mut vocabulary = VocabularyBuilder::new();
    vocabulary.token(TokenId(0), b"1")?.token(TokenId(1), b"22")?.token(TokenId(2), b"x")?;
    let compiler = Compiler::new(vocabulary.finish()?.into());
    let index = compiler.index(&Constraint::regex("[0-9]{2}"), &IndexLimits::default())?;

    let state = index.initial_state();
    let mut row = vec![0u32; index.mask_words()];
    index.fill_mask(state, &mut row)?; // bit t % 32 of word t / 32
    assert_eq!(row, [0b011]);
    let state = index.next_state(state, TokenId(1))?; // an illegal token is an error
    assert!(index.is_terminal(state));

    let mut file = Vec::new();
    index.save(&mut file)?;
    let index = Index::from_bytes(file)?; // or maskwright::map_index(path), with the feature `mmap`
    index.check_vocabulary(compiler.vocabulary())?;
    // end of the example
    Ok(())
}

#[test]
fn the_pages_show_them() {
    check(include_str!("../../../../README.md"), "    // example\n");
    check(include_str!("../../../../docs/indexes.md"), "    // example of indexes\n");
}

fn check(page: &str, marker: &str) {
    let shown = between(page, "```rust\n", "```\n");
    let run = between(include_str!("readme.rs"), marker, "    // end of the example\n");
    let run: String =
        run.lines().flat_map(|line| [line.strip_prefix("    ").unwrap_or(line), "\n"]).collect();
    assert_eq!(shown, run, "copy the example from tests/maskwright/readme.rs to the page");
}

/// What stands between the first `from` and the next `to`.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, rest) = text.split_once(from).expect("the beginning is marked");
    rest.split_once(to).expect("the end is marked").0
}
