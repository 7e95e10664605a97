//! The masks of a constraint. Cargo.toml needs the crates maskwright and maskwright-tokenizers.

use maskwright::{
    Compiler, Constraint, Options,
    json_schema::{KeyOrder, Whitespace},
    regex::Dialect,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokenizer = maskwright_tokenizers::load("tokenizer.json")?;
    let vocabulary = tokenizer.vocabulary().clone();
    let mut mask = vec![0; vocabulary.size().div_ceil(32)];
    let mut options = Options::default().with_dialect(Dialect::Ecma);
    options.json_schema.whitespace = Whitespace::Tidy;
    options.json_schema.key_order = KeyOrder::Any;
    let compiler = Compiler::with_options(vocabulary, options);
    let constraint = Constraint::json_schema(r#"{"type": "boolean"}"#);
    let mut matcher = compiler.compile(&constraint)?.matcher();
    matcher.fill_mask(&mut mask)?; // one bit for each token that may come next
    Ok(())
}
