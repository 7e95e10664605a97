//! Tiktoken: ranks in a file, or encodings known by name.
//!
//! A rank file has a token in base64 and its rank, which is also its id, on each line:
//!
//! ```text
//! IQ== 0
//! Ig== 1
//! IHRoZQ== 262
//! ```
//!
//! It says neither which special tokens there are nor how text is cut into words, and without the latter
//! no text can be encoded exactly. So a file whose ranks are those of a known encoding *is* that
//! encoding; any other gives a vocabulary (with [`Options::specials`]) that can decode, but not encode.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use tiktoken_rs::CoreBPE;

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::Encoder,
};

/// The encodings that are known by name.
pub const NAMES: &[&str] =
    &["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base"];

/// A known encoding, with its special tokens.
pub fn named(name: &str) -> Result<Tokenizer, Error> {
    named_with(name, &Options::default())
}

/// Like [`named`], with options.
pub fn named_with(name: &str, options: &Options) -> Result<Tokenizer, Error> {
    let (core, ranks) = known_encoding(name).ok_or_else(|| {
        let reason = format!("there is no encoding {name:?}; known are {}", NAMES.join(", "));
        Error::unsupported(Format::Tiktoken, reason)
    })?;
    let numbered = |name| match core.encode_with_special_tokens(name)[..] {
        [id] => Some((id, name)),
        _ => None,
    };
    let mut specials: Vec<(u32, &str)> = core.special_tokens().into_iter().filter_map(numbered).collect();
    specials.sort_unstable();
    let mut tokens: Vec<(u32, Piece)> =
        specials.iter().map(|(id, name)| (*id, Piece::Special((*name).to_owned()))).collect();
    // Ids are tried until every rank was seen: special tokens lie behind the ranks or among them, and some ids are free.
    let is_special = |id: &u32| specials.binary_search_by_key(id, |(id, _)| *id).is_ok();
    let ordinary = (0..MOST_IDS)
        .filter(|id| !is_special(id))
        .filter_map(|id| Some((id, Piece::Text(core.decode_bytes(&[id]).ok()?))));
    tokens.extend(ordinary.take(ranks));
    if tokens.len() != ranks + specials.len() {
        let found = tokens.len() - specials.len();
        let reason = format!("the encoding {name} has {ranks} ranks, and only {found} of them were found");
        return Err(Error::malformed(Format::Tiktoken, reason));
    }
    Draft::new(Format::Tiktoken, tokens, Encoder::Tiktoken(core)).finish(options)
}

/// The vocabulary of a rank file.
pub fn from_ranks(file: &[u8]) -> Result<Tokenizer, Error> {
    from_ranks_with(file, &Options::default())
}

/// Like [`from_ranks`], with options.
pub fn from_ranks_with(file: &[u8], options: &Options) -> Result<Tokenizer, Error> {
    let ranks = parse(file)?;
    if options.specials.is_empty()
        && let Some(name) = known(&ranks)
    {
        return named_with(name, options);
    }
    let tokens = ranks.into_iter().map(|(bytes, rank)| (rank, Piece::Text(bytes))).collect();
    let reason =
        "a rank file does not say how text is cut into words; use the model's tokenizer.json to encode";
    Draft::new(Format::Tiktoken, tokens, Encoder::None(Format::Tiktoken, reason.into())).finish(options)
}

/// Is the first line a token and a rank?
pub(crate) fn looks_like_ranks(content: &[u8]) -> bool {
    content.split(|&byte| byte == b'\n').next().is_some_and(|line| parse_line(line).is_some())
}

fn parse(file: &[u8]) -> Result<Vec<(Vec<u8>, u32)>, Error> {
    let mut ranks = Vec::new();
    for (index, line) in file.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        ranks.push(parse_line(line).ok_or_else(|| {
            Error::malformed(Format::Tiktoken, format!("line {} is no token in base64 and a rank", index + 1))
        })?);
    }
    Ok(ranks)
}

fn parse_line(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let line = std::str::from_utf8(line).ok()?.trim_ascii_end();
    let (token, rank) = line.split_once(' ')?;
    Some((BASE64_STANDARD.decode(token).ok()?, rank.parse().ok()?))
}

/// The name of the encoding that has exactly these ranks.
fn known(ranks: &[(Vec<u8>, u32)]) -> Option<&'static str> {
    let name = match ranks.len() {
        199_998 => "o200k_base",
        100_256 => "cl100k_base",
        50_280 => "p50k_base",
        50_256 => "r50k_base",
        _ => return None,
    };
    let (core, _) = known_encoding(name)?;
    let same =
        ranks.iter().all(|(bytes, rank)| core.decode_bytes(&[*rank]).is_ok_and(|known| known == *bytes));
    same.then_some(name)
}

/// More ids than any encoding has.
const MOST_IDS: u32 = 1 << 20;

/// An encoding, and how many ranks it has. The special tokens are not among these.
fn known_encoding(name: &str) -> Option<(&'static CoreBPE, usize)> {
    match name {
        "o200k_base" => Some((tiktoken_rs::o200k_base_singleton(), 199_998)),
        "o200k_harmony" => Some((tiktoken_rs::o200k_harmony_singleton(), 199_998)),
        "cl100k_base" => Some((tiktoken_rs::cl100k_base_singleton(), 100_256)),
        "p50k_base" => Some((tiktoken_rs::p50k_base_singleton(), 50_280)),
        "p50k_edit" => Some((tiktoken_rs::p50k_edit_singleton(), 50_280)),
        "r50k_base" => Some((tiktoken_rs::r50k_base_singleton(), 50_256)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use maskwright_vocab::TokenId;

    use super::*;

    #[test]
    fn a_rank_file_gives_tokens_but_no_encoder() {
        let options = Options { specials: vec![(TokenId(3), "</s>".into())], ..Options::default() };
        let tokenizer = from_ranks_with(b"IQ== 0\nIg== 1\nIHRoZQ== 2\n", &options).unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!(vocabulary.bytes(TokenId(2)), b" the");
        assert_eq!((vocabulary.eos(), vocabulary.size()), (&[TokenId(3)][..], 4));
        let error = tokenizer.encode("!").unwrap_err().to_string();
        assert!(error.contains("does not say how text is cut into words"), "{error}");
        assert_eq!(tokenizer.decode(&[TokenId(0), TokenId(2), TokenId(3)]), b"! the");
    }

    #[test]
    fn broken_lines_are_named() {
        for broken in ["IQ== 0\nIg==\n", "IQ== 0\n!!! 1", "IQ== 0\nIg== -1", "IQ== 0\nIg== 99999999999"] {
            let error = from_ranks(broken.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("line 2 is no token in base64 and a rank"), "{broken:?}: {error}");
        }
        let error = from_ranks(b"IQ== 0\nIg== 0\n").unwrap_err().to_string();
        assert!(error.contains("token id 0 is given twice"), "{error}");
        assert!(!looks_like_ranks(b"hello world 1") && !looks_like_ranks(b"") && !looks_like_ranks(b"\n"));
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let error = named("k9").unwrap_err().to_string();
        assert!(error.contains("o200k_base") && error.contains("\"k9\""), "{error}");
    }

    #[test]
    fn a_known_encoding_has_its_special_tokens_and_encodes() {
        let tokenizer = named("r50k_base").unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!((vocabulary.size(), vocabulary.len()), (50_257, 50_257));
        assert_eq!(vocabulary.eos(), [TokenId(50_256)]);
        assert_eq!(tokenizer.encode("hello world").unwrap(), [TokenId(31_373), TokenId(995)]);
        // What looks like a special token is text.
        assert!(tokenizer.encode("<|endoftext|>").unwrap().len() > 1);
        let error = tokenizer.encode(&" ".repeat(1_000_000)).unwrap_err().to_string();
        assert!(error.contains("more than 100000 spaces in a row"), "{error}");
        assert!(tokenizer.encode(&format!("{}x", " ".repeat(100_000))).is_ok());
        let lines =
            vocabulary.ordinary().map(|(id, bytes)| format!("{} {id}", BASE64_STANDARD.encode(bytes)));
        let file = lines.collect::<Vec<String>>().join("\n");
        let from_file = from_ranks(file.as_bytes()).unwrap();
        assert_eq!(from_file.vocabulary().fingerprint(), vocabulary.fingerprint());
        assert_eq!(from_file.encode("hello").unwrap(), [TokenId(31_373)]);
    }

    #[test]
    fn every_known_encoding_has_all_its_ranks() {
        for name in NAMES {
            let (core, ranks) = known_encoding(name).unwrap();
            let tokenizer = named(name).unwrap();
            let vocabulary = tokenizer.vocabulary();
            assert_eq!(vocabulary.ordinary().count(), ranks, "{name}");
            assert_eq!(vocabulary.specials().count(), core.special_tokens().len(), "{name}");
            for (id, bytes) in vocabulary.ordinary() {
                assert_eq!(core.decode_bytes(&[id.0]).unwrap(), bytes, "{name}: {id}");
                // A token that is text is cut into tokens that are known and spell it.
                if let Ok(text) = core::str::from_utf8(bytes) {
                    let cut = tokenizer.encode(text).unwrap();
                    assert_eq!(tokenizer.decode(&cut), bytes, "{name}: {id}");
                }
            }
            let spaces = "a          b";
            let cut = tokenizer.encode(spaces).unwrap();
            assert!(cut.iter().all(|id| !vocabulary.bytes(*id).is_empty()), "{name}: {cut:?}");
            assert_eq!(tokenizer.decode(&cut), spaces.as_bytes(), "{name}");
        }
        // Runs of spaces have the ids behind the only special token.
        let p50k = named("p50k_base").unwrap();
        assert_eq!((p50k.vocabulary().size(), p50k.vocabulary().eos()), (50_281, &[TokenId(50_256)][..]));
        assert_eq!(p50k.encode("a          b").unwrap().len(), 3);
    }
}
