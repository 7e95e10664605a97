//! `maskwright mask`: which tokens may come next?

use std::io::Write;
use std::sync::Arc;

use maskwright::explain::Expectation;
use maskwright::weighted::{Adapter, ByteParser, Log, STEPS, Weights};
use maskwright::{Matcher, TokenId, TokenMask, Vocabulary};
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::failure::{Failure, Verdict};
use crate::readable;
use crate::rejection::{Reading, Rejection, read};

/// List the tokens that may come next, at the beginning or after some text
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
    /// The maximum number of tokens in the table; JSON lists all of them
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Print JSON, with the ids of all allowed tokens
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  maskwright mask --regex '[0-9]+ (EUR|USD)' --after '12 '
  maskwright mask --schema person.json --after '{\"na' --limit 50
  maskwright mask --choice yes --choice no --json | jq '.tokens | length'

Exit code 1 means that the text so far does not fit the constraint.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let tokenizer = args.tokenizer.load()?;
    let compiled = source.compile(tokenizer.vocabulary().clone())?;
    let mut matcher = compiled.constraint.matcher();
    if let Reading::Rejected(rejection) = read(&mut matcher, "after", args.after.as_bytes(), false)? {
        return reject(&rejection, args.json, out);
    }
    if let Spelling::Impossible { sentence } = spelling(&mut matcher)? {
        return Err(Failure::sentence(sentence));
    }
    let accepting = matcher.is_accepting();
    let expectation = Expectation::of(&matcher);
    let mask = matcher.mask().map_err(|error| Failure::sentence(error.to_string()))?;
    let vocabulary = tokenizer.vocabulary();
    let weights = compiled.constraint.remarks().weights.as_ref();
    let shown = if args.json { usize::MAX } else { args.limit };
    let scores = weights.map(|weights| scores(weights, mask, vocabulary, &args.after, shown)).transpose()?;
    if args.json {
        let tokens: Vec<u32> = mask.iter().map(|token| token.0).collect();
        let mut value = expectation.json();
        value["ok"] = true.into();
        value["allowed"] = tokens.len().into();
        value["size"] = vocabulary.size().into();
        value["accepting"] = accepting.into();
        value["tokens"] = tokens.into();
        if let Some(scores) = scores {
            value["logprobs"] = scores.into();
        }
        writeln!(out, "{value}")?;
    } else {
        let (allowed, size) = (readable::count(mask.count()), readable::count(vocabulary.size()));
        writeln!(out, "{allowed} of {size} tokens may come next; expected: {}", expectation.phrase())?;
        write_table(mask, vocabulary, args.limit, scores.as_deref(), out)?;
    }
    Ok(Verdict::Yes)
}

/// Reports that the text so far does not match.
pub(super) fn reject(rejection: &Rejection, as_json: bool, out: &mut dyn Write) -> Result<Verdict, Failure> {
    if as_json {
        writeln!(out, "{:#}", json!({"ok": false, "rejection": rejection.json()}))?;
    } else {
        write!(out, "{}", rejection.shown())?;
    }
    Ok(Verdict::No)
}

/// Returns log P(token | text so far) of a weighted grammar for the first tokens of a mask.
fn scores(
    weights: &Arc<Weights>,
    mask: &TokenMask,
    vocabulary: &Arc<Vocabulary>,
    after: &str,
    count: usize,
) -> Result<Vec<f64>, Failure> {
    let sentence = |error: &dyn std::fmt::Display| Failure::sentence(error.to_string());
    let mut parser = ByteParser::<Log>::new(weights.grammar()).map_err(|error| sentence(&error))?;
    parser.read_within(after.as_bytes(), STEPS, |_| {}).map_err(|error| sentence(&error))?;
    let mut adapter = Adapter::behind(parser, weights.grammar().clone(), vocabulary.clone());
    let tokens: Vec<TokenId> = mask.iter().take(count).collect();
    Ok(adapter.scores_of(&tokens))
}

fn write_table(
    mask: &TokenMask,
    vocabulary: &Vocabulary,
    limit: usize,
    scores: Option<&[f64]>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if limit > 0 {
        let logs = if scores.is_some() { "     log P" } else { "" };
        writeln!(out, "{:>8}{logs}  text", "token")?;
    }
    for (at, token) in mask.iter().take(limit).enumerate() {
        let shown = match vocabulary.special_name(token) {
            Some(name) => format!("{name} (special)"),
            None => readable::quoted(vocabulary.bytes(token)),
        };
        let log =
            scores.and_then(|scores| scores.get(at)).map_or(String::new(), |log| format!("{log:>10.3}"));
        writeln!(out, "{:>8}{log}  {shown}", token.0)?;
    }
    let more = mask.count().saturating_sub(limit);
    if more > 0 {
        writeln!(out, "          … and {} more (--limit N shows more, --json all)", readable::count(more))?;
    }
    Ok(())
}

/// Whether the vocabulary has a token for what must come next.
#[derive(Debug)]
pub(crate) enum Spelling {
    /// The number of allowed tokens.
    Possible { allowed: usize },
    /// The text must continue, but no token can do that.
    Impossible { sentence: String },
}

/// Checks whether the tokens of the vocabulary can continue or end the text.
pub(crate) fn spelling(matcher: &mut Matcher) -> Result<Spelling, Failure> {
    let size = matcher.bound().vocabulary().size();
    let mut words = vec![0; size.div_ceil(32)];
    matcher.fill_mask(&mut words).map_err(|error| Failure::sentence(error.to_string()))?;
    let allowed = TokenMask::from_words(&words, size).count();
    if allowed > 0 || matcher.is_accepting() {
        return Ok(Spelling::Possible { allowed });
    }
    let expectation = Expectation::of(matcher);
    let sentence = format!(
        "this vocabulary cannot spell the constraint: no token begins with what must come next, {}",
        expectation.phrase()
    );
    Ok(Spelling::Impossible { sentence })
}

/// Returns the tokens with this text, or the special token with this name.
pub(super) fn tokens_named(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let trie = vocabulary.trie();
    let spelled =
        trie.find(text.as_bytes()).filter(|_| !text.is_empty()).map_or(&[][..], |node| trie.tokens(node));
    if spelled.is_empty() {
        return vocabulary.special(text).into_iter().collect();
    }
    spelled.iter().copied().map(TokenId).collect()
}
