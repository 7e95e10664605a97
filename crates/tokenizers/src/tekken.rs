//! Tekken: the `tekken.json` of Mistral's models.
//!
//! It has ranks like tiktoken, and also what a [rank file](crate::tiktoken) lacks: the rules for splitting text into
//! words, and the special tokens. Special tokens come first, so with n special tokens the token of rank r has the id r
//! + n:
//!
//! ```text
//! {"config": {"pattern": "\\s+|…", "default_vocab_size": 131072, "default_num_special_tokens": 1000, …},
//!  "special_tokens": [{"rank": 0, "token_str": "<unk>", …}, …],
//!  "vocab": [{"rank": 0, "token_bytes": "AA==", …}, …]}
//! ```
//!
//! Special tokens that are not listed are named after their id, and ranks beyond the size of the vocabulary are not
//! used. Old files list no special tokens; their names are then part of the format.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use fancy_regex::Regex;
use maskwright_vocab::Vocabulary;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::Encoder,
    ranks::Ranks,
    words::Words,
};

/// Reads a `tekken.json`.
pub fn from_bytes(json: &[u8]) -> Result<Tokenizer, Error> {
    from_bytes_with(json, &Options::default())
}

/// Like [`from_bytes`], with options.
pub fn from_bytes_with(json: &[u8], options: &Options) -> Result<Tokenizer, Error> {
    let file: File = serde_json::from_slice(json).map_err(|error| malformed(error.to_string()))?;
    let Config { pattern, default_vocab_size: size, default_num_special_tokens: first } = file.config;
    let Some(ordinary) = size.checked_sub(first).map(|count| count as usize) else {
        return Err(malformed(format!("there are {first} special tokens, and {size} tokens in all")));
    };
    if size as usize > Vocabulary::MAX_SIZE {
        return Err(malformed(format!("there are {size} tokens, and the limit is {}", Vocabulary::MAX_SIZE)));
    }
    if file.vocab.len() < ordinary {
        return Err(malformed(format!("there are {} ranks, and {ordinary} are used", file.vocab.len())));
    }
    let mut tokens: Vec<(u32, Piece)> = specials(file.special_tokens, first)?
        .into_iter()
        .map(|(id, name)| (id, Piece::Special(name)))
        .collect();
    let mut ranks = Ranks::default();
    for (rank, token) in file.vocab[..ordinary].iter().enumerate() {
        let bytes = BASE64_STANDARD.decode(&token.token_bytes).unwrap_or_default();
        if bytes.is_empty() || token.rank as usize != rank {
            return Err(malformed(format!(
                "entry {rank} of `vocab` is no token in base64 with the rank {rank}"
            )));
        }
        ranks.push(&bytes);
        tokens.push((first + token.rank, Piece::Text(bytes)));
    }
    if let Some(byte) = (0..=u8::MAX).find(|byte| ranks.rank(&[*byte]).is_none()) {
        return Err(malformed(format!("there is no token for the byte {byte:#04x}")));
    }
    let pattern =
        Regex::new(&pattern).map_err(|error| malformed(format!("the pattern cannot be read: {error}")))?;
    let encoder = Encoder::Tekken(Box::new(Words { ranks, pattern, first }));
    let mut draft = Draft::new(Format::Tekken, tokens, encoder);
    draft.bos = draft.special("<s>");
    draft.finish(options)
}

/// Whether JSON is such a file.
pub(crate) fn looks_like_tekken(content: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Shape {
        config: Config,
        #[serde(rename = "vocab")]
        _vocab: IgnoredAny,
    }
    // Both entries are large, and the beginning of the file is usually enough.
    let beginning = &content[..content.len().min(SEARCHED_BYTES)];
    let has = |name: &[u8]| beginning.windows(name.len()).any(|part| part == name);
    (has(b"\"token_bytes\"") || has(b"\"default_vocab_size\""))
        && serde_json::from_slice::<Shape>(content).is_ok_and(|shape| shape.config.default_vocab_size > 0)
}

/// How many bytes of a file [`looks_like_tekken`] searches first: more than its special tokens occupy.
const SEARCHED_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct File {
    config: Config,
    vocab: Vec<Ranked>,
    #[serde(default)]
    special_tokens: Option<Vec<Special>>,
}

#[derive(Deserialize)]
struct Config {
    pattern: String,
    default_vocab_size: u32,
    default_num_special_tokens: u32,
}

#[derive(Deserialize)]
struct Ranked {
    rank: u32,
    token_bytes: String,
}

#[derive(Deserialize)]
struct Special {
    rank: u32,
    token_str: String,
}

/// Returns the `count` special tokens, by id.
fn specials(listed: Option<Vec<Special>>, count: u32) -> Result<Vec<(u32, String)>, Error> {
    let mut names: Vec<Option<String>> = vec![None; count as usize];
    let listed = listed.unwrap_or_else(|| {
        let old = (0..count).zip(OLD_SPECIALS);
        old.map(|(rank, name)| Special { rank, token_str: (*name).to_owned() }).collect()
    });
    for Special { rank, token_str } in listed {
        match names.get_mut(rank as usize) {
            Some(name @ None) => *name = Some(token_str),
            Some(Some(_)) => return Err(malformed(format!("special token {rank} is given twice"))),
            None => {
                return Err(malformed(format!("special token {rank} is beyond the {count} that there are")));
            }
        }
    }
    let named = |(id, name): (u32, Option<String>)| (id, name.unwrap_or_else(|| format!("<SPECIAL_{id}>")));
    Ok((0..).zip(names).map(named).collect())
}

fn malformed(reason: impl Into<String>) -> Error {
    Error::malformed(Format::Tekken, reason)
}

/// The special tokens of files that list none.
const OLD_SPECIALS: &[&str] = &[
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

#[cfg(test)]
mod tests {
    use maskwright_vocab::TokenId;
    use serde_json::{Value, json};

    use super::*;

    /// All bytes and two more tokens after three special ones, and a rank that is not used.
    fn file() -> Value {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let all = bytes.chain([b"th".to_vec(), b" the".to_vec(), b"unused".to_vec()]).enumerate();
        let vocab = all.map(|(rank, bytes)| {
            json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(bytes), "token_str": null})
        });
        json!({
            "config": {"pattern": " ?\\p{L}+|\\s|.", "num_vocab_tokens": 300, "default_vocab_size": 261, "default_num_special_tokens": 3, "version": "v3"},
            "vocab": vocab.collect::<Vec<_>>(),
        })
    }

    fn read(file: &Value) -> Result<Tokenizer, Error> {
        from_bytes(file.to_string().as_bytes())
    }

    #[test]
    fn ranks_stand_behind_the_special_tokens() {
        let tokenizer = read(&file()).unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!((vocabulary.size(), vocabulary.eos()), (261, &[TokenId(2)][..]));
        assert_eq!((tokenizer.bos(), tokenizer.format()), (Some(TokenId(1)), Format::Tekken));
        assert_eq!(vocabulary.bytes(TokenId(3 + 256)), b"th");
        let id = |byte: u8| TokenId(3 + u32::from(byte));
        assert_eq!(tokenizer.encode("the the").unwrap(), [TokenId(259), id(b'e'), TokenId(260)]);
        // Text that looks like a special token is ordinary text.
        assert_eq!(tokenizer.encode("</s>").unwrap(), b"</s>".map(id));
        assert_eq!(tokenizer.decode(&tokenizer.encode("é\n").unwrap()), "é\n".as_bytes());
    }

    #[test]
    fn special_tokens_may_be_listed() {
        let mut listed = file();
        listed["special_tokens"] = json!([
            {"rank": 2, "token_str": "<end>", "is_control": true}, {"rank": 0, "token_str": "[THINK]", "is_control": false}]);
        let options = Options { eos: Some(vec![TokenId(2)]), ..Options::default() };
        let tokenizer = from_bytes_with(listed.to_string().as_bytes(), &options).unwrap();
        let names: Vec<_> = (0..4).map(|id| tokenizer.vocabulary().special_name(TokenId(id))).collect();
        assert_eq!(names, [Some("[THINK]"), Some("<SPECIAL_1>"), Some("<end>"), None]);
    }

    #[test]
    fn broken_files_are_named() {
        let broken = |pointer: &str, value: Value| {
            let mut file = file();
            *file.pointer_mut(pointer).unwrap() = value;
            read(&file).unwrap_err().to_string()
        };
        for (pointer, value, reason) in [
            ("/vocab/7/token_bytes", json!("!"), "entry 7 of `vocab` is no token in base64 with the rank 7"),
            ("/vocab/7/rank", json!(8), "entry 7 of `vocab`"),
            ("/vocab/7/token_bytes", json!("dGg="), "there is no token for the byte 0x07"),
            ("/config/default_vocab_size", json!(2), "there are 3 special tokens, and 2 tokens in all"),
            ("/config/default_vocab_size", json!(1000), "there are 259 ranks, and 997 are used"),
            ("/config/pattern", json!("("), "the pattern cannot be read"),
            ("/config/default_vocab_size", json!(-1), "-1"),
            ("/config/default_vocab_size", json!(u32::MAX), "there are 4294967295 tokens, and the limit is "),
        ] {
            let error = broken(pointer, value);
            assert!(error.contains(reason), "{pointer}: {error}");
        }
        for (rank, reason) in
            [(3, "special token 3 is beyond the 3 that there are"), (0, "special token 0 is given twice")]
        {
            let mut file = file();
            file["special_tokens"] = json!([{"rank": 0, "token_str": "a"}, {"rank": rank, "token_str": "b"}]);
            let error = read(&file).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn it_is_told_from_other_json() {
        assert!(looks_like_tekken(file().to_string().as_bytes()));
        let mut without = file();
        without["config"]["default_vocab_size"] = Value::Null;
        assert!(!looks_like_tekken(without.to_string().as_bytes()));
        let other = json!({"model": {"vocab": {"\"token_bytes\"": 1, "token_bytes": 2}}});
        assert!(!looks_like_tekken(other.to_string().as_bytes()) && !looks_like_tekken(b"{"));
    }
}
