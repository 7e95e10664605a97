//! llguidance behind the harness's bridge, set up as its own tools do: the tokenizer through
//! `toktrie_hf_tokenizers`, `ParserFactory::new_simple` (default slices and limits), one parser per schema that is
//! cloned for every instance so that its lexer's caches carry over.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::SimpleVob;
use llguidance::{Matcher, ParserFactory};
use mwbench_abi::{Kind, Peer, Session, Source, Vocabulary, export_peer};
use serde_json::{Value, json};
use toktrie_hf_tokenizers::ByteTokenizer;

export_peer!(Llguidance);

struct Llguidance {
    factory: ParserFactory,
}

impl Peer for Llguidance {
    type Compiled = Matcher;
    type Session<'a> = Running;

    const NAME: &'static str = "llguidance";
    const RELEASE: &'static str = "1.9.1";
    const END_IN_MASK: bool = true;

    fn open(vocabulary: &Vocabulary<'_>) -> Result<Self, String> {
        let tokenizer = ByteTokenizer::from_file(vocabulary.path).map_err(|error| error.to_string())?;
        let environment =
            tokenizer.into_tok_env(Some(vocabulary.tokens.len())).map_err(|error| error.to_string())?;
        check_tokens(vocabulary, environment.tok_trie())?;
        let mut factory = ParserFactory::new_simple(&environment).map_err(|error| error.to_string())?;
        factory.quiet();
        // Errors otherwise carry the whole grammar and text, which only costs time when they are printed.
        factory.limits_mut().verbose_errors = false;
        Ok(Llguidance { factory })
    }

    fn compile(&self, source: Source<'_>) -> Result<Matcher, String> {
        let grammar = match source.kind {
            Kind::JsonSchema => {
                let mut schema = serde_json::from_str(source.text).map_err(|error| error.to_string())?;
                take_one_of_as_any_of(&mut schema);
                TopLevelGrammar::from_json_schema(schema)
            }
            Kind::Regex => TopLevelGrammar::from_regex(source.text),
            Kind::Lark => TopLevelGrammar::from_lark(source.text.to_owned()),
            Kind::Gbnf => return Err("does not read GBNF".into()),
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(message) => Err(message),
            None => Ok(matcher),
        }
    }

    fn start<'a>(&'a self, compiled: &'a Matcher) -> Result<Running, String> {
        Ok(Running { matcher: compiled.clone(), mask: None })
    }
}

struct Running {
    matcher: Matcher,
    /// The mask that was computed last.
    mask: Option<SimpleVob>,
}

impl Session for Running {
    fn fill(&mut self, mask: &mut [u32]) -> bool {
        let Ok(allowed) = self.matcher.compute_mask_or_eos() else { return false };
        let words = allowed.as_slice();
        let shared = words.len().min(mask.len());
        mask[..shared].copy_from_slice(&words[..shared]);
        mask[shared..].fill(0);
        true
    }

    fn mask<'s>(&'s mut self, _: &'s mut [u32]) -> Option<&'s [u32]> {
        let allowed = self.matcher.compute_mask_or_eos().ok()?;
        Some(self.mask.insert(allowed).as_slice())
    }

    fn accept(&mut self, token: u32) -> bool {
        self.matcher.consume_token(token).is_ok()
    }

    fn accepting(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }
}

/// By default `oneOf` is refused where branches may overlap; its authors offer `anyOf` in its place, which gets more
/// schemas right than refusing them.
fn take_one_of_as_any_of(schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.entry("x-guidance").or_insert_with(|| json!({"coerce_one_of": true}));
    }
}

/// Both loaders must spell every ordinary token alike, or the comparison would be of two vocabularies.
fn check_tokens(vocabulary: &Vocabulary<'_>, trie: &llguidance::toktrie::TokTrie) -> Result<(), String> {
    for (id, bytes) in vocabulary.tokens.iter().enumerate() {
        if !bytes.is_empty() && trie.token(id as u32) != bytes.as_slice() {
            let theirs = String::from_utf8_lossy(trie.token(id as u32));
            return Err(format!(
                "token {id} is {:?} here and {theirs:?} there",
                String::from_utf8_lossy(bytes)
            ));
        }
    }
    Ok(())
}
