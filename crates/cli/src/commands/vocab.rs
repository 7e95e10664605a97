//! `maskwright vocab`: shows what a tokenizer contains.

use std::io::Write;
use std::time::Instant;

use maskwright::{TokenId, Vocabulary};
use maskwright_tokenizers::Tokenizer;
use serde_json::{Value, json};

use crate::args::TokenizerArgs;
use crate::failure::{Failure, Verdict};
use crate::readable;

/// Show the statistics of a tokenizer's vocabulary
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  maskwright vocab --tokenizer tokenizer.json
  maskwright vocab --tokenizer model.gguf --json";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let begin = Instant::now();
    let tokenizer = args.tokenizer.load()?;
    let loaded = begin.elapsed();
    let numbers = Numbers::of(tokenizer.vocabulary());
    if args.json {
        let mut value = numbers.json(&tokenizer);
        value["load_ms"] = (loaded.as_secs_f64() * 1e3).into();
        writeln!(out, "{value:#}")?;
    } else {
        let path = args.tokenizer.path()?;
        writeln!(out, "{}: a {}, loaded in {}", path.display(), tokenizer.format(), readable::time(loaded))?;
        numbers.write(&tokenizer, out)?;
    }
    Ok(Verdict::Yes)
}

struct Numbers {
    ordinary: usize,
    /// The total length of all ordinary tokens in bytes.
    text: usize,
    /// The number of ordinary tokens without any byte.
    without_text: usize,
    /// The number of tokens with the same bytes as a token with a smaller id.
    aliases: usize,
    /// The number of single bytes that are tokens.
    bytes: usize,
    longest: Option<TokenId>,
}

impl Numbers {
    fn of(vocabulary: &Vocabulary) -> Self {
        let trie = vocabulary.trie();
        let mut single = [false; 256];
        let mut numbers = Self { ordinary: 0, text: 0, without_text: 0, aliases: 0, bytes: 0, longest: None };
        for (token, bytes) in vocabulary.ordinary() {
            numbers.ordinary += 1;
            numbers.text += bytes.len();
            numbers.without_text += usize::from(bytes.is_empty());
            if let &[byte] = bytes {
                single[usize::from(byte)] = true;
            }
            if numbers.longest.is_none_or(|longest| vocabulary.bytes(longest).len() < bytes.len()) {
                numbers.longest = Some(token);
            }
        }
        numbers.bytes = single.iter().filter(|is_there| **is_there).count();
        numbers.aliases = trie.nodes().map(|node| trie.tokens(node).len().saturating_sub(1)).sum();
        numbers
    }

    fn write(&self, tokenizer: &Tokenizer, out: &mut dyn Write) -> Result<(), Failure> {
        let vocabulary = tokenizer.vocabulary();
        let name = |token: TokenId| format!("{} {}", token.0, readable::token(vocabulary, token));
        let eos: Vec<String> = vocabulary.eos().iter().copied().map(name).collect();
        let mut line = |label: &str, value: String| writeln!(out, "  {label:<16}{value}");
        line(
            "tokens",
            format!("{} in {} ids", readable::count(vocabulary.len()), readable::count(vocabulary.size())),
        )?;
        line(
            "ordinary",
            format!("{}, {} of text", readable::count(self.ordinary), readable::size(self.text)),
        )?;
        line("special", readable::count(vocabulary.specials().len()))?;
        line("end of text", if eos.is_empty() { "none is known".into() } else { eos.join(", ") })?;
        if let Some(bos) = tokenizer.bos() {
            line("begin of text", name(bos))?;
        }
        line("single bytes", format!("{} of 256", self.bytes))?;
        line("aliases", readable::count(self.aliases))?;
        line("without text", readable::count(self.without_text))?;
        if let Some(longest) = self.longest {
            let bytes = vocabulary.bytes(longest);
            let shown = readable::clipped(&readable::visible(bytes), 40);
            line("longest token", format!("{} `{shown}`, {} bytes", longest.0, bytes.len()))?;
        }
        line("trie", format!("{} nodes", readable::count(vocabulary.trie().len())))?;
        let classes: Vec<String> =
            vocabulary.class_tries().iter().map(|class| readable::count(class.trie().len())).collect();
        line("class tries", format!("{} nodes", classes.join(" and ")))?;
        line("memory", readable::size(vocabulary.heap_bytes()))?;
        Ok(())
    }

    fn json(&self, tokenizer: &Tokenizer) -> Value {
        let vocabulary = tokenizer.vocabulary();
        let eos: Vec<u32> = vocabulary.eos().iter().map(|token| token.0).collect();
        let classes: Vec<usize> = vocabulary.class_tries().iter().map(|class| class.trie().len()).collect();
        json!({
            "ok": true,
            "format": tokenizer.format().to_string(),
            "tokens": vocabulary.len(),
            "size": vocabulary.size(),
            "ordinary": self.ordinary,
            "special": vocabulary.specials().len(),
            "eos": eos,
            "bos": tokenizer.bos().map(|token| token.0),
            "single_bytes": self.bytes,
            "aliases": self.aliases,
            "without_text": self.without_text,
            "text_bytes": self.text,
            "max_token_bytes": self.longest.map_or(0, |token| vocabulary.bytes(token).len()),
            "longest_token": self.longest.map(|token| token.0),
            "trie_nodes": vocabulary.trie().len(),
            "class_trie_nodes": classes,
            "heap_bytes": vocabulary.heap_bytes(),
            "fingerprint": format!("{:032x}", vocabulary.fingerprint()),
        })
    }
}
