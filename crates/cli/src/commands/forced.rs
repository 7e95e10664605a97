//! `maskwright forced`: what must come next, whatever the model prefers, and how far is it to the end?
//!
//! ```text
//! forced text    ame":
//! forced tokens  `ame` `":`
//! the text can be completed in 4 tokens, the end included
//! ```

use std::io::Write;

use maskwright::{TokenHealing, TokenId};
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::commands::mask::reject;
use crate::failure::{Failure, Verdict};
use crate::readable;
use crate::rejection::{Reading, read};

/// Show what must come next, whatever the model prefers: bytes, text and tokens; and how many tokens complete the text
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// The text so far
    #[arg(long, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    after: String,
    /// The maximum number of forced bytes to compute
    #[arg(long, value_name = "BYTES", default_value_t = 4_096)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  maskwright forced --choice 'the answer is yes' --choice 'the answer is no'
  maskwright forced --schema person.json --after '{\"n'
  maskwright forced --regex '[0-9]{4}-[0-9]{2}' --after 2024 --json

The tokens are those with which the tokenizer itself would continue, whatever text follows; they may have fewer bytes than are
forced.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let tokenizer = args.tokenizer.load()?;
    let vocabulary = tokenizer.vocabulary();
    let compiled = source.compile(vocabulary.clone())?;
    let mut matcher = compiled.constraint.matcher();
    if let Reading::Rejected(rejection) = read(&mut matcher, "after", args.after.as_bytes(), false)? {
        return reject(&rejection, args.json, out);
    }
    let before = tokenizer.encode(&args.after)?;
    let bytes = matcher.forced_bytes(args.limit);
    let text = matcher.forced_text(args.limit);
    let encode = |text: &str| tokenizer.encode(text).ok();
    let tokens = matcher.forced_tokens(&before, args.limit, TokenHealing::Keep, &encode).tokens;
    let need = matcher.shortest_completion();
    if args.json {
        let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
        let answer = json!({
            "ok": true, "position": args.after.len(), "bytes": bytes, "completes": text.completes, "text": text.text,
            "tokens": ids, "shortest_completion": need,
        });
        writeln!(out, "{answer:#}")?;
        return Ok(Verdict::Yes);
    }
    let name = |token: &TokenId| format!("`{}`", readable::token(vocabulary, *token));
    if bytes.is_empty() {
        writeln!(out, "no text is forced")?;
    } else {
        writeln!(out, "forced text    {}", readable::visible(&bytes))?;
    }
    if !tokens.is_empty() {
        let names: Vec<String> = tokens.iter().map(name).collect();
        writeln!(out, "forced tokens  {}", names.join(" "))?;
    }
    match need {
        Some(0 | 1) => writeln!(out, "the text is complete")?,
        Some(need) => writeln!(out, "the text can be completed in {need} tokens, the end included")?,
        None => writeln!(out, "no way to complete the text with these tokens is known")?,
    }
    Ok(Verdict::Yes)
}
