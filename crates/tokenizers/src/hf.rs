//! tokenizer.json, the format of the Hugging Face tokenizers library.
//!
//! The file contains a *model* (tokens, and how to merge or choose them), *added tokens* (special ones and ordinary
//! text), and the steps before and after the model. The bytes of a token are determined by the *decoder*, which is read
//! as a list of steps on the text of a single token:
//!
//! ```json
//! {"added_tokens": [{"id": 2, "content": "</s>", "special": true}],
//!  "decoder": {"type": "ByteLevel"},
//!  "model": {"type": "BPE", "vocab": {"a": 0, "Ġa": 1}, "merges": [["Ġ", "a"]]}}
//! ```
//!
//! Supported are BPE and Unigram models whose decoder acts on single tokens (`ByteLevel`, `Metaspace`, `Replace`,
//! `ByteFallback`, and the harmless `Fuse` and `Strip`). `WordPiece`, `WordLevel` and `CTC` put spaces between tokens
//! by rules that depend on adjacent tokens; they are refused.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::{Encoder, Library, kind},
    spelling::{Spelling, Step},
};

/// Reads a tokenizer from the content of a tokenizer.json only, without the files next to it.
pub fn from_bytes(json: &[u8]) -> Result<Tokenizer, Error> {
    from_bytes_with(json, &Options::default())
}

/// Like [`from_bytes`], with options.
pub fn from_bytes_with(json: &[u8], options: &Options) -> Result<Tokenizer, Error> {
    parse(json.to_vec())?.finish(options)
}

pub(crate) fn parse(json: Vec<u8>) -> Result<Draft, Error> {
    let file: File<'_> = serde_json::from_slice(&json)
        .map_err(|error| Error::malformed(Format::TokenizerJson, error.to_string()))?;
    let spelling = file.spelling()?;
    let tokens = file.tokens(&spelling)?;
    let special = |piece: &Piece| matches!(piece, Piece::Special(_));
    let hidden = if file.model.vocab.scored {
        let listed = file.model.vocab.entries.len() as u32;
        tokens.iter().filter(|(id, piece)| *id < listed && special(piece)).map(|(id, _)| *id).collect()
    } else {
        vec![]
    };
    let texts = file.added_tokens.into_iter().flatten().filter(|added| !added.special);
    let added = texts.map(|added| (added.content.into_owned(), added.id)).collect();
    let (normalizer, pre_tokenizer) = (file.normalizer, file.pre_tokenizer);
    let library = Library { format: Format::TokenizerJson, json, normalizer, pre_tokenizer, added, hidden };
    Ok(Draft::new(Format::TokenizerJson, tokens, Encoder::library(library)))
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    added_tokens: Option<Vec<Added<'a>>>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
    #[serde(borrow)]
    model: Model<'a>,
}

#[derive(Deserialize)]
struct Added<'a> {
    id: u32,
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(borrow)]
    vocab: Entries<'a>,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    unk_id: Option<u32>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
}

impl File<'_> {
    /// Returns how the text of a token is converted to bytes.
    fn spelling(&self) -> Result<Spelling, Error> {
        let refuse = |reason: String| Err(Error::unsupported(Format::TokenizerJson, reason));
        match self.model.kind.as_deref() {
            None | Some("BPE" | "Unigram") => {}
            Some(other) => {
                return refuse(format!("a {other} model does not say which bytes a token represents"));
            }
        }
        let affixes = [&self.model.continuing_subword_prefix, &self.model.end_of_word_suffix];
        if let Some(affix) = affixes.into_iter().flatten().find(|affix| !affix.is_empty()) {
            return refuse(format!("its tokens mark words by {affix:?}"));
        }
        let mut spelling = Spelling::default();
        if self.decoder.is_null() {
            spelling.steps.extend(encoder_steps(&self.pre_tokenizer));
            if spelling.steps.is_empty() && !self.model.byte_fallback {
                return refuse("it has no decoder, and its pre-tokenizer does not show one".into());
            }
        } else {
            let mut fused = false;
            decoder_steps(&self.decoder, &mut spelling.steps, &mut fused)?;
        }
        if self.model.byte_fallback && !spelling.steps.contains(&Step::ByteFallback) {
            spelling.steps.push(Step::ByteFallback);
        }
        Ok(spelling)
    }

    fn tokens(&self, spelling: &Spelling) -> Result<Vec<(u32, Piece)>, Error> {
        // Added tokens come first: if the model has the same id, they determine its meaning.
        let mut tokens: BTreeMap<u32, Piece> = BTreeMap::new();
        for added in self.added_tokens.iter().flatten() {
            let piece = if added.special {
                Piece::Special(added.content.to_string())
            } else {
                Piece::Text(spelling.added_bytes(&added.content))
            };
            if let Some(other) = tokens.insert(added.id, piece.clone()).filter(|other| *other != piece) {
                let reason = format!("added token {} is both {other:?} and {piece:?}", added.id);
                return Err(Error::malformed(Format::TokenizerJson, reason));
            }
        }
        let added: Vec<u32> = tokens.keys().copied().collect();
        for (text, id) in &self.model.vocab.entries {
            if added.binary_search(id).is_ok() {
                continue;
            }
            let unknown = self.model.unk_id == Some(*id) || self.model.unk_token.as_deref() == Some(text);
            let piece =
                if unknown { Piece::Special(text.to_string()) } else { Piece::Text(spelling.bytes(text)) };
            if tokens.insert(*id, piece).is_some() {
                let reason = format!("id {id} is given to {text:?} and to another token");
                return Err(Error::malformed(Format::TokenizerJson, reason));
            }
        }
        Ok(tokens.into_iter().collect())
    }
}

/// Reads the steps of a decoder. `fused` tells whether the text is already in one piece, so that the following steps
/// only affect its two ends.
fn decoder_steps(decoder: &Value, steps: &mut Vec<Step>, fused: &mut bool) -> Result<(), Error> {
    let refuse =
        |what: &str| Err(Error::unsupported(Format::TokenizerJson, format!("its decoder has {what}")));
    let text = |key: &str| decoder.get(key).and_then(Value::as_str);
    match kind(decoder) {
        "ByteLevel" => steps.push(Step::ByteLevel),
        "ByteFallback" => steps.push(Step::ByteFallback),
        "Metaspace" => steps.push(Step::Replace(text("replacement").unwrap_or("▁").to_owned(), " ".into())),
        "Fuse" => *fused = true,
        "Replace" => {
            let pattern = decoder.get("pattern").and_then(|pattern| pattern.get("String")?.as_str());
            match (pattern, text("content")) {
                (Some(pattern), Some(content)) if !pattern.is_empty() => {
                    steps.push(Step::Replace(pattern.to_owned(), content.to_owned()));
                }
                _ => return refuse("a replacement by regular expression"),
            }
        }
        // The first characters of a whole text are stripped because the encoder has added them.
        "Strip" if *fused && decoder.get("stop").and_then(Value::as_u64).unwrap_or(0) == 0 => {}
        "Strip" => return refuse("a step that strips every token"),
        "Sequence" => {
            for step in decoder.get("decoders").and_then(Value::as_array).into_iter().flatten() {
                if kind(step) == "Sequence" {
                    return refuse("a sequence within a sequence");
                }
                decoder_steps(step, steps, fused)?;
            }
        }
        other => {
            return refuse(&format!(
                "the step {other:?}, which looks at neighbouring tokens or is not known"
            ));
        }
    }
    Ok(())
}

/// Inverts the steps of an encoder, for files without a decoder.
fn encoder_steps(pre_tokenizer: &Value) -> Option<Step> {
    match kind(pre_tokenizer) {
        "ByteLevel" => Some(Step::ByteLevel),
        "Metaspace" => {
            let replacement = pre_tokenizer.get("replacement").and_then(Value::as_str).unwrap_or("▁");
            Some(Step::Replace(replacement.to_owned(), " ".into()))
        }
        "Sequence" => {
            let steps = pre_tokenizer.get("pretokenizers").and_then(Value::as_array)?;
            steps.iter().filter(|step| kind(step) != "Sequence").find_map(encoder_steps)
        }
        _ => None,
    }
}

/// Tokens and ids: a map from token to id (BPE), or a list of tokens with scores (Unigram).
struct Entries<'a> {
    entries: Vec<(Cow<'a, str>, u32)>,
    /// Whether it was a list with scores.
    scored: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tokens to ids, or a list of tokens with scores")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((Text(text), id)) = map.next_entry()? {
            entries.push((text, id));
        }
        Ok(Entries { entries, scored: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((Text(text), IgnoredAny)) = list.next_element()? {
            entries.push((text, entries.len() as u32));
        }
        Ok(Entries { entries, scored: true })
    }
}

/// A string, borrowed unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
