//! `LlgTokenizer`: a vocabulary and a compiler for it.

use core::ffi::c_char;
use core::mem::offset_of;
use std::fmt::Write as _;
use std::sync::Arc;

use maskwright::service::Settings;
use maskwright::{Options, TokenId};
use maskwright_tokenizers::{Options as TokenizerOptions, hf};

use super::guarded;
use crate::compiler::Compiler;
use crate::guard::{catch, discard};
use crate::pointer::{Given, Mut, Owned, Ref, UserData, Versioned, read};
use crate::status::Failure;
use crate::vocabulary::{EncodeFn, Encoder, TokenKind, Vocabulary, numbers, refused, total};

/// The byte before a special token's name.
const MARK: u8 = 0xFF;
/// The id that means no token.
const NO_TOKEN: u32 = u32::MAX;
/// `LLG_DECODE_INCLUDE_SPECIAL` and `LLG_DECODE_VALID_UTF8`.
const INCLUDE_SPECIAL: u32 = 1;
const VALID_UTF8: u32 = 2;

/// `LlgTokenizer`. A copy shares everything.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    compiler: Arc<Compiler>,
}

/// `LlgTokenizerInit`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TokenizerInit<'c> {
    vocab_size: u32,
    tok_eos: u32,
    token_lens: Ref<'c, u32>,
    token_bytes: Ref<'c, u8>,
    tokenizer_json: Ref<'c, c_char>,
    tokenize_assumes_string: u8,
    tokenize_fn: Option<EncodeFn>,
    use_approximate_greedy_tokenize_fn: u8,
    tokenize_user_data: UserData,
    slices: Ref<'c, Ref<'c, c_char>>,
}

/// `LlgTokenizerInitV2`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TokenizerInitV2<'c> {
    struct_size: usize,
    first: TokenizerInit<'c>,
    tok_eos_extra: Ref<'c, u32>,
    tok_eos_extra_count: u32,
}

// SAFETY: it is `repr(C)`, and holds a size, pointers, numbers and a function that may be null.
unsafe impl Versioned for TokenizerInitV2<'_> {
    const NAME: &'static str = "LlgTokenizerInitV2";
    const FIRST: usize = offset_of!(Self, first) + offset_of!(TokenizerInit<'_>, token_lens);
}

/// Creates a tokenizer with one token that ends a text.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_tokenizer(
    tok_init: Ref<'_, TokenizerInit<'_>>,
    error_string: Mut<'_, c_char>,
    error_string_len: usize,
) -> Given<Tokenizer> {
    guarded(error_string, error_string_len, Given::none(), || {
        Tokenizer::new(tok_init.get("tok_init")?, &[]).map(Given::new)
    })
}

/// Creates a tokenizer with any number of tokens that end a text.
#[unsafe(no_mangle)]
pub extern "C" fn llg_new_tokenizer_v2(
    tok_init: Ref<'_, TokenizerInitV2<'_>>,
    error_string: Mut<'_, c_char>,
    error_string_len: usize,
) -> Given<Tokenizer> {
    guarded(error_string, error_string_len, Given::none(), || {
        let init = read(tok_init, "tok_init")?;
        let extra = if init.tok_eos_extra.optional("tok_eos_extra")?.is_some() {
            init.tok_eos_extra.list("tok_eos_extra", init.tok_eos_extra_count as usize)?
        } else {
            &[]
        };
        Tokenizer::new(&init.first, extra).map(Given::new)
    })
}

/// Creates another handle to the same tokenizer.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_tokenizer(tok: Ref<'_, Tokenizer>) -> Given<Tokenizer> {
    tok.get("tok").map_or_else(|_| Given::none(), |tokenizer| Given::new(tokenizer.clone()))
}

/// Frees a tokenizer.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_tokenizer(tok: Owned<Tokenizer>) {
    discard(tok);
}

/// Encodes text, and returns the number of tokens.
#[unsafe(no_mangle)]
pub extern "C" fn llg_tokenize_bytes(
    tok: Ref<'_, Tokenizer>,
    bytes: Ref<'_, u8>,
    bytes_len: usize,
    output_tokens: Mut<'_, u32>,
    output_tokens_len: usize,
) -> usize {
    listed(output_tokens, output_tokens_len, || {
        Ok(numbers(&tok.get("tok")?.encode(bytes.list("bytes", bytes_len)?)))
    })
}

/// Does the same, with special tokens after bytes FF.
#[unsafe(no_mangle)]
pub extern "C" fn llg_tokenize_bytes_marker(
    tok: Ref<'_, Tokenizer>,
    bytes: Ref<'_, u8>,
    bytes_len: usize,
    output_tokens: Mut<'_, u32>,
    output_tokens_len: usize,
) -> usize {
    listed(output_tokens, output_tokens_len, || {
        Ok(numbers(&tok.get("tok")?.encode_marked(bytes.list("bytes", bytes_len)?)))
    })
}

/// Formats tokens for people, and returns the length including a zero at the end.
#[unsafe(no_mangle)]
pub extern "C" fn llg_stringify_tokens(
    tok: Ref<'_, Tokenizer>,
    tokens: Ref<'_, u32>,
    n_tokens: usize,
    output: Mut<'_, u8>,
    output_len: usize,
) -> usize {
    ended(output, output_len, || {
        let tokenizer = tok.get("tok")?;
        Ok(tokenizer.describe(tokens.list("tokens", n_tokens)?).into_bytes())
    })
}

/// Decodes tokens, and returns the length including a zero at the end.
#[unsafe(no_mangle)]
pub extern "C" fn llg_decode_tokens(
    tok: Ref<'_, Tokenizer>,
    tokens: Ref<'_, u32>,
    n_tokens: usize,
    output: Mut<'_, u8>,
    output_len: usize,
    flags: u32,
) -> usize {
    ended(output, output_len, || {
        let tokenizer = tok.get("tok")?;
        Ok(tokenizer.decode(tokens.list("tokens", n_tokens)?, flags))
    })
}

impl Tokenizer {
    fn new(init: &TokenizerInit<'_>, extra: &[u32]) -> Result<Self, Failure> {
        let eos = [init.tok_eos].into_iter().chain(extra.iter().copied());
        let eos: Vec<_> = eos.filter(|token| *token != NO_TOKEN).map(TokenId).collect();
        let vocabulary = if init.tokenizer_json.optional("tokenizer_json")?.is_some() {
            let size = Some(init.vocab_size as usize).filter(|size| *size > 0);
            let options = TokenizerOptions { eos: Some(eos), size, specials: Vec::new() };
            let json = init.tokenizer_json.c_text("tokenizer_json")?;
            Vocabulary::of(hf::from_bytes_with(json.as_bytes(), &options).map_err(refused)?)
        } else {
            let encoder = match init.tokenize_fn {
                Some(function) if init.use_approximate_greedy_tokenize_fn == 0 => {
                    Encoder::Function(function, init.tokenize_user_data)
                }
                _ => Encoder::Unknown,
            };
            Vocabulary::build(&init.tokens()?, &eos, 0, encoder)?
        };
        // The caller waits while a worker compiles, so more workers would only help callers on several threads. As in
        // llguidance, no ignored text may precede a text unless its grammar says so.
        let mut options = Options::default();
        options.lark.ignored_first = false;
        let compiler = Compiler::new(&vocabulary, Settings::default(), options)?;
        Ok(Self { compiler: Arc::new(compiler) })
    }

    pub(super) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.compiler.vocabulary
    }

    /// Encodes a text with the tokenizer if that is possible, otherwise with the longest tokens that fit. Bytes without
    /// a token are left out.
    fn encode(&self, bytes: &[u8]) -> Vec<TokenId> {
        let vocabulary = self.vocabulary();
        let own = str::from_utf8(bytes).ok().and_then(|text| vocabulary.encode(text).ok());
        own.unwrap_or_else(|| longest(&vocabulary.tokens, bytes))
    }

    /// Encodes a text in which `FF<name>` and `FF[number]` are tokens. A mark before anything else is left out.
    fn encode_marked(&self, bytes: &[u8]) -> Vec<TokenId> {
        let mut parts = bytes.split(|byte| *byte == MARK);
        let mut tokens = self.encode(parts.next().unwrap_or_default());
        for part in parts {
            let (token, length) = self.marked(part).unzip();
            tokens.extend(token);
            tokens.extend(self.encode(&part[length.unwrap_or(0)..]));
        }
        tokens
    }

    /// Returns the token that a text after a mark begins with, and the length of its name.
    fn marked(&self, text: &[u8]) -> Option<(TokenId, usize)> {
        let tokens = &self.vocabulary().tokens;
        let close = match text.first()? {
            b'<' => b'>',
            b'[' => b']',
            _ => return None,
        };
        let end = text.iter().position(|byte| *byte == close)? + 1;
        let name = str::from_utf8(&text[..end]).ok()?;
        let token = if close == b'>' {
            tokens.special(name)?
        } else {
            let number = TokenId(name[1..end - 1].parse().ok()?);
            (number.index() < tokens.size()).then_some(number)?
        };
        Some((token, end))
    }

    fn decode(&self, tokens: &[u32], flags: u32) -> Vec<u8> {
        let vocabulary = &self.vocabulary().tokens;
        let mut text = Vec::new();
        for token in tokens.iter().copied().map(TokenId) {
            match vocabulary.special_name(token) {
                Some(name) if flags & INCLUDE_SPECIAL != 0 => text.extend_from_slice(name.as_bytes()),
                _ => text.extend_from_slice(vocabulary.bytes(token)),
            }
        }
        if flags & VALID_UTF8 != 0 { String::from_utf8_lossy(&text).into_owned().into_bytes() } else { text }
    }

    /// Formats tokens one by one: their text in quotes, special tokens by name, others by id.
    fn describe(&self, tokens: &[u32]) -> String {
        let vocabulary = &self.vocabulary().tokens;
        let mut text = String::new();
        for token in tokens.iter().copied().map(TokenId) {
            let space = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = match vocabulary.special_name(token) {
                Some(name) => write!(text, "{space}{name}"),
                None if vocabulary.is_used(token) => {
                    write!(text, "{space}{:?}", String::from_utf8_lossy(vocabulary.bytes(token)))
                }
                None => write!(text, "{space}[{token}]"),
            };
        }
        text
    }
}

impl<'c> TokenizerInit<'c> {
    /// Returns the tokens. Tokens that begin with a mark are special, and those without text do not exist. A mark alone
    /// is a byte.
    fn tokens(&self) -> Result<Vec<(TokenKind, &'c [u8])>, Failure> {
        let lengths = self.token_lens.list("token_lens", self.vocab_size as usize)?;
        let mut rest = self.token_bytes.list("token_bytes", total(lengths)?)?;
        let tokens = lengths.iter().map(|length| {
            let (bytes, behind) = rest.split_at(*length as usize);
            rest = behind;
            match bytes {
                [] => (TokenKind::Unused, bytes),
                [MARK, name @ ..] if !name.is_empty() => (TokenKind::Special, name),
                _ => (TokenKind::Ordinary, bytes),
            }
        });
        Ok(tokens.collect())
    }
}

/// Encodes bytes with the longest tokens that fit.
fn longest(vocabulary: &maskwright::Vocabulary, bytes: &[u8]) -> Vec<TokenId> {
    let trie = vocabulary.trie();
    let (mut rest, mut tokens) = (bytes, Vec::new());
    while !rest.is_empty() {
        let lengths = (1..=rest.len().min(vocabulary.max_token_bytes())).rev();
        let fits = lengths.map(|length| (length, trie.find(&rest[..length])));
        let mut fits = fits.filter_map(|(length, node)| Some((length, *trie.tokens(node?).first()?)));
        let fit = fits.find(|(_, token)| !vocabulary.is_special(TokenId(*token)));
        tokens.extend(fit.map(|(_, token)| TokenId(token)));
        rest = &rest[fit.map_or(1, |(length, _)| length)..];
    }
    tokens
}

/// Writes as much of a list as fits, and returns its length; 0 if it cannot be computed.
fn listed(output: Mut<'_, u32>, room: usize, body: impl FnOnce() -> Result<Vec<u32>, Failure>) -> usize {
    let list = catch(body).unwrap_or_default();
    if let Ok(Some(mut output)) = output.optional_room("output", room) {
        output.write(0, &list[..list.len().min(room)]);
    }
    list.len()
}

/// Does the same for a text with a zero at the end.
fn ended(output: Mut<'_, u8>, room: usize, body: impl FnOnce() -> Result<Vec<u8>, Failure>) -> usize {
    let text = catch(body).unwrap_or_default();
    if let Ok(Some(mut output)) = output.optional_room("output", room)
        && room > 0
    {
        let end = text.len().min(room - 1);
        output.write(0, &text[..end]);
        output.write(end, &[0]);
    }
    text.len() + 1
}
