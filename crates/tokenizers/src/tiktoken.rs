//! Tiktoken: ranks in a file, or built-in encodings.
//!
//! A rank file has a token in base64 and its rank, which is also its id, on each line:
//!
//! ```text
//! IQ== 0
//! Ig== 1
//! IHRoZQ== 262
//! ```
//!
//! It contains neither the special tokens nor the rules for splitting text into words, and without the latter no text
//! can be encoded exactly. So a file whose ranks are those of a known encoding is treated as that encoding; any other
//! file gives a vocabulary (with [`Options::specials`]) that can decode, but not encode.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::Encoder,
    ranks::{self, Encoding},
};

/// The names of the built-in encodings.
pub const NAMES: &[&str] = ranks::NAMES;

/// Returns a built-in encoding, with its special tokens.
pub fn named(name: &str) -> Result<Tokenizer, Error> {
    named_with(name, &Options::default())
}

/// Like [`named`], with options.
pub fn named_with(name: &str, options: &Options) -> Result<Tokenizer, Error> {
    let encoding = Encoding::named(name).ok_or_else(|| {
        let reason = format!("there is no encoding {name:?}; known are {}", NAMES.join(", "));
        Error::unsupported(Format::Tiktoken, reason)
    })?;
    let ordinary = encoding.tokens().map(|(id, bytes)| (id, Piece::Text(bytes.to_vec())));
    let special = encoding.specials().iter().map(|(id, name)| (*id, Piece::Special(name.clone())));
    let mut tokens: Vec<(u32, Piece)> = ordinary.chain(special).collect();
    tokens.sort_unstable_by_key(|(id, _)| *id);
    Draft::new(Format::Tiktoken, tokens, Encoder::Tiktoken(encoding)).finish(options)
}

/// Reads the vocabulary of a rank file.
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

/// Whether the first line is a token and a rank.
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

/// Returns the name of the encoding that has exactly these ranks.
fn known(ranks: &[(Vec<u8>, u32)]) -> Option<&'static str> {
    let name = match ranks.len() {
        199_998 => "o200k_base",
        100_256 => "cl100k_base",
        50_280 => "p50k_base",
        50_256 => "r50k_base",
        _ => return None,
    };
    let encoding = Encoding::named(name)?;
    ranks.iter().all(|(bytes, rank)| encoding.token(*rank) == Some(bytes)).then_some(name)
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
        assert!(!tokenizer.can_encode());
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
        // Text that looks like a special token is ordinary text.
        assert!(tokenizer.encode("<|endoftext|>").unwrap().len() > 1);
        let error = tokenizer.encode(&" ".repeat(1_000_000)).unwrap_err().to_string();
        assert!(error.contains("more than 100000 spaces in a row"), "{error}");
        assert!(tokenizer.encode(&format!("{}x", " ".repeat(100_000))).is_ok());
    }

    /// The file of each encoding, with special tokens among and after its ranks, is recognized and read completely.
    #[test]
    fn every_rank_file_of_a_known_encoding_is_whole() {
        let encodings = [
            ("r50k_base", 50_256, &[50_256][..]),
            ("p50k_base", 50_280, &[50_256]),
            ("cl100k_base", 100_256, &[100_257, 100_258, 100_259, 100_260, 100_276]),
            ("o200k_base", 199_998, &[199_999, 200_018]),
        ];
        for (name, count, specials) in encodings {
            let vocabulary = named(name).unwrap().vocabulary().clone();
            let lines =
                vocabulary.ordinary().map(|(id, bytes)| format!("{} {id}\n", BASE64_STANDARD.encode(bytes)));
            let file: Vec<String> = lines.collect();
            assert_eq!(file.len(), count, "{name}");
            let known = from_ranks(file.concat().as_bytes()).unwrap();
            assert_eq!(known.vocabulary().fingerprint(), vocabulary.fingerprint(), "{name}");
            assert_eq!(vocabulary.specials().map(|(id, _)| id.0).collect::<Vec<_>>(), specials, "{name}");
            let text = "a          b";
            assert!(
                known.can_encode() && known.decode(&known.encode(text).unwrap()) == text.as_bytes(),
                "{name}"
            );
            // The same ranks with other special tokens, one of them after a gap.
            let mine = count as u32 + 100;
            let options = Options {
                specials: vec![(TokenId(specials[0]), "<end>".into()), (TokenId(mine), "<turn>".into())],
                ..Options::default()
            };
            let own = from_ranks_with(file.concat().as_bytes(), &options).unwrap();
            assert_eq!(
                (own.vocabulary().len(), own.vocabulary().size()),
                (count + 2, mine as usize + 1),
                "{name}"
            );
            assert!(vocabulary.ordinary().all(|(id, bytes)| own.vocabulary().bytes(id) == bytes), "{name}");
        }
    }

    /// Another program reads the original files; both must have the same tokens and encode texts alike.
    #[test]
    fn known_encodings_are_those_of_tiktoken() {
        let texts = [
            "",
            "Hello, world! I'm here; they'LL've 12345678 of them.\r\n\r\n  x",
            "   \t\t\n  tabs    and   spaces      ",
            "Grüße, Καλημέρα, 你好世界, مرحبا, नमस्ते, 👩‍👩‍👧‍👦 e\u{301}",
            "{\"name\": \"Ada\", \"list\": [1, 2.5e-7, null]}//path/to\n",
            "fn main() { println!(\"{}\", 1_000_000); } // ___ *** ---",
            "HTTPServer CamelCase snake_case ABCdefGHI don't DON'T",
            "\u{0}\u{7f}\u{a0}\u{2028}\u{feff}",
        ];
        let (letters, mixed) = ("ab".repeat(3000), "xyz 9é\n".repeat(500));
        for name in NAMES {
            let theirs = match *name {
                "o200k_base" => tiktoken_rs::o200k_base_singleton(),
                "o200k_harmony" => tiktoken_rs::o200k_harmony_singleton(),
                "cl100k_base" => tiktoken_rs::cl100k_base_singleton(),
                "p50k_base" => tiktoken_rs::p50k_base_singleton(),
                "p50k_edit" => tiktoken_rs::p50k_edit_singleton(),
                _ => tiktoken_rs::r50k_base_singleton(),
            };
            let ours = named(name).unwrap();
            let vocabulary = ours.vocabulary();
            for id in 0..vocabulary.size() as u32 {
                let special = vocabulary.special_name(TokenId(id));
                let bytes = special.map_or(vocabulary.bytes(TokenId(id)), str::as_bytes);
                assert_eq!(theirs.decode_bytes(&[id]).unwrap_or_default(), bytes, "{name}: token {id}");
            }
            assert!(theirs.decode_bytes(&[vocabulary.size() as u32]).is_err());
            let specials =
                (0..vocabulary.size() as u32).filter(|id| vocabulary.special_name(TokenId(*id)).is_some());
            assert_eq!(specials.count(), theirs.special_tokens().len(), "{name}");
            for text in texts.into_iter().chain([&*letters, &*mixed]) {
                let expected: Vec<TokenId> = theirs.encode_ordinary(text).into_iter().map(TokenId).collect();
                assert_eq!(ours.encode(text).unwrap(), expected, "{name}: {text:?}");
            }
        }
    }
}
