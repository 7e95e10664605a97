//! `maskwright explain`: why is this token allowed here, or why not?
//!
//! ```text
//! token 33370 `USA` is not allowed here
//!   USA
//!   ^^~
//!   2 of its 3 bytes fit; after `US` the text must go on with `D`
//! ```

use std::io::Write;

use maskwright::explain::Explanation;
use maskwright::{TokenId, Vocabulary};
use maskwright_tokenizers::Tokenizer;
use serde_json::{Value, json};

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::commands::mask::{reject, tokens_named};
use crate::failure::{Failure, Verdict};
use crate::paint::{Ink, Paint};
use crate::readable;
use crate::rejection::{Reading, read};

/// Explain why a token is allowed or not: how much of it matches, and what was expected instead
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    token: TokenArgs,
    /// The text so far
    #[arg(long, default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    after: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TokenArgs {
    /// The id of the token
    #[arg(long, value_name = "ID")]
    token: Option<u32>,
    /// The text of the token, or its name if it is special
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    token_text: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  maskwright explain --choice EUR --choice USD --token-text USA
  maskwright explain --schema person.json --after '{\"age\": ' --token 330
  maskwright explain --regex '[a-z]+' --after abc --token-text '<|eot_id|>' --json

Exit code 0 means that the token is allowed, 1 that it is not.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let tokenizer = args.tokenizer.load()?;
    let token = find_token(&args.token, &tokenizer)?;
    let compiled = source.compile(tokenizer.vocabulary().clone())?;
    let mut matcher = compiled.constraint.matcher();
    if let Reading::Rejected(rejection) = read(&mut matcher, "after", args.after.as_bytes(), false)? {
        return reject(&rejection, args.json, out);
    }
    let explanation = Explanation::of(&matcher, token);
    if args.json {
        writeln!(out, "{:#}", json(&explanation, tokenizer.vocabulary(), args.after.len()))?;
    } else {
        write(&explanation, tokenizer.vocabulary(), &args.after, Paint::detect(false), out)?;
    }
    Ok(if explanation.is_allowed() { Verdict::Yes } else { Verdict::No })
}

fn find_token(args: &TokenArgs, tokenizer: &Tokenizer) -> Result<TokenId, Failure> {
    let vocabulary = tokenizer.vocabulary();
    if let Some(id) = args.token {
        if id as usize >= vocabulary.size() {
            let last = vocabulary.size().saturating_sub(1);
            return Err(Failure::sentence(format!("there is no token {id}; the ids go from 0 to {last}")));
        }
        return Ok(TokenId(id));
    }
    let text = args.token_text.as_deref().unwrap_or_default();
    if let Some(&token) = tokens_named(vocabulary, text).first() {
        return Ok(token);
    }
    let quoted = readable::quoted(text.as_bytes());
    Err(Failure::sentence(match tokenizer.encode(text) {
        Ok(tokens) if !tokens.is_empty() => {
            let parts: Vec<String> = tokens.iter().map(|&t| readable::quoted(vocabulary.bytes(t))).collect();
            format!("no token is {quoted}; this tokenizer writes it as {}", parts.join(" "))
        }
        _ => format!("no token is {quoted}"),
    }))
}

/// Writes the explanation for people.
pub(crate) fn write(
    explanation: &Explanation,
    vocabulary: &Vocabulary,
    after: &str,
    paint: Paint,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let bytes = &explanation.bytes;
    let name = readable::token(vocabulary, explanation.token);
    let verdict = match explanation.problem {
        None => paint.text(Ink::Green, "is allowed"),
        Some(_) => paint.text(Ink::Red, "is not allowed"),
    };
    let place = if after.is_empty() { "at the beginning".into() } else { format!("at byte {}", after.len()) };
    writeln!(out, "token {} `{}` {verdict} {place}", explanation.token.0, paint.text(Ink::Bold, &name))?;
    if !bytes.is_empty() {
        write_caret(explanation.fitting, bytes, after, paint, out)?;
    }
    writeln!(out, "  {}", explanation.reason())?;
    for rules in explanation.expectation.rules.iter().take(8) {
        writeln!(out, "  {}", paint.text(Ink::Dim, format!("in {}", rules.join(" ← "))))?;
    }
    Ok(())
}

/// Writes the text and the token after it, with marks under the bytes that match and those that do not.
fn write_caret(
    fitting: usize,
    bytes: &[u8],
    after: &str,
    paint: Paint,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (fits, fails) = bytes.split_at_checked(fitting).unwrap_or((bytes, &[]));
    let (fits, fails) = (readable::visible(fits), readable::visible(fails));
    let before = readable::visible(after.as_bytes());
    let skip = before.chars().count().saturating_sub(50);
    let tail: String = before.chars().skip(skip).collect();
    let before = if skip > 0 { format!("…{tail}") } else { tail };
    writeln!(
        out,
        "  {}{}{}",
        paint.text(Ink::Dim, &before),
        paint.text(Ink::Green, &fits),
        paint.text(Ink::Red, &fails)
    )?;
    let wide = |text: &str, mark: &str| mark.repeat(text.chars().count());
    writeln!(
        out,
        "  {}{}{}",
        wide(&before, " "),
        paint.text(Ink::Green, wide(&fits, "~")),
        paint.text(Ink::Red, wide(&fails, "^"))
    )?;
    Ok(())
}

fn json(explanation: &Explanation, vocabulary: &Vocabulary, position: usize) -> Value {
    let mut value = explanation.expectation.json();
    value["ok"] = true.into();
    value["token"] = explanation.token.0.into();
    value["text"] = readable::token(vocabulary, explanation.token).into();
    value["bytes"] = json!(explanation.bytes);
    value["allowed"] = explanation.is_allowed().into();
    value["position"] = position.into();
    value["fitting_bytes"] = explanation.fitting.into();
    value["reason"] = explanation.reason().into();
    value
}
