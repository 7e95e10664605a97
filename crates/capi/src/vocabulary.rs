//! Vocabularies, read from a tokenizer's file or built from tokens in memory.

use core::ffi::c_char;
use std::sync::Arc;

use maskwright::{TokenId, VocabularyBuilder};
use maskwright_tokenizers::{Options, Tokenizer, load_with};

use crate::guard::{discard, guard, write_list};
use crate::pointer::{Given, Mut, Out, Owned, Ref, UserData, Versioned, read, read_or_zero};
use crate::status::{Failure, Status};

/// `mw_vocabulary`: tokens, and an encoder for text.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    pub(crate) tokens: Arc<maskwright::Vocabulary>,
    pub(crate) encoder: Arc<Encoder>,
}

/// The encoder of text into tokens.
#[derive(Debug)]
pub(crate) enum Encoder {
    /// There is no encoder.
    Unknown,
    /// A built-in tokenizer.
    Tokenizer(Tokenizer),
    /// A function of the caller.
    Function(EncodeFn, UserData),
}

/// A function of the caller that encodes a text: `mw_encode_fn`, and `LlgTokenizeFn`. It gets room for some tokens,
/// writes as many as fit, and returns how many there are.
pub type EncodeFn = extern "C" fn(UserData, *const u8, usize, *mut u32, usize) -> usize;

/// `mw_vocabulary_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct VocabularyOptions<'c> {
    struct_size: usize,
    eos: Ref<'c, u32>,
    eos_count: usize,
    size: usize,
}

// SAFETY: it is `repr(C)`, and holds a size, pointers and numbers.
unsafe impl Versioned for VocabularyOptions<'_> {
    const NAME: &'static str = "mw_vocabulary_options";
    const FIRST: usize = size_of::<Self>();
}

/// `mw_tokens`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Tokens<'c> {
    struct_size: usize,
    count: usize,
    bytes: Ref<'c, u8>,
    lengths: Ref<'c, u32>,
    kinds: Ref<'c, u8>,
    encode: Option<EncodeFn>,
    encode_data: UserData,
}

// SAFETY: it is `repr(C)`, and holds a size, pointers, numbers and a function that may be null.
unsafe impl Versioned for Tokens<'_> {
    const NAME: &'static str = "mw_tokens";
    const FIRST: usize = size_of::<Self>();
}

/// Reads a tokenizer from a file or folder.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_load(
    path: Ref<'_, c_char>,
    options: Ref<'_, VocabularyOptions<'_>>,
    vocabulary: Out<'_, Given<Vocabulary>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let vocabulary = vocabulary.get("vocabulary")?.write(Given::none());
        let options = read_or_zero(options, "options")?;
        let (eos, size) = (options.eos()?, (options.size > 0).then_some(options.size));
        let options = Options { eos, size, specials: Vec::new() };
        let tokenizer = load_with(path.c_text("path")?, &options).map_err(refused)?;
        *vocabulary = Given::new(Vocabulary::of(tokenizer));
        Ok(())
    })
}

/// Creates a vocabulary from tokens in memory.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_new(
    tokens: Ref<'_, Tokens<'_>>,
    options: Ref<'_, VocabularyOptions<'_>>,
    vocabulary: Out<'_, Given<Vocabulary>>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let vocabulary = vocabulary.get("vocabulary")?.write(Given::none());
        let options = read_or_zero(options, "options")?;
        let tokens = read(tokens, "tokens")?;
        let encoder = tokens
            .encode
            .map_or(Encoder::Unknown, |function| Encoder::Function(function, tokens.encode_data));
        let list = tokens.list()?;
        let eos = options.eos()?.unwrap_or_default();
        *vocabulary = Given::new(Vocabulary::build(&list, &eos, options.size, encoder)?);
        Ok(())
    })
}

/// Returns the number of ids, which is the width of a row of logits; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_size(vocabulary: Ref<'_, Vocabulary>) -> usize {
    vocabulary.get("vocabulary").map_or(0, |vocabulary| vocabulary.tokens.size())
}

/// Returns the number of words of a mask; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_mask_words(vocabulary: Ref<'_, Vocabulary>) -> usize {
    mw_vocabulary_size(vocabulary).div_ceil(32)
}

/// Returns the tokens that end a text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_eos(
    vocabulary: Ref<'_, Vocabulary>,
    tokens: Mut<'_, u32>,
    capacity: usize,
    count: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let eos = numbers(vocabulary.get("vocabulary")?.tokens.eos());
        write_list(&eos, tokens, capacity, count, "tokens")
    })
}

/// Returns the kind of a token, and its bytes or its name.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_token(
    vocabulary: Ref<'_, Vocabulary>,
    token: u32,
    kind: Out<'_, u32>,
    bytes: Mut<'_, u8>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let tokens = &vocabulary.get("vocabulary")?.tokens;
        let kind = kind.get("kind")?;
        let token = TokenId(token);
        check_token(token, tokens)?;
        let (number, content) = match tokens.special_name(token) {
            Some(name) => (TokenKind::Special, name.as_bytes()),
            None if tokens.is_used(token) => (TokenKind::Ordinary, tokens.bytes(token)),
            None => (TokenKind::Unused, &[][..]),
        };
        kind.write(number as u32);
        write_list(content, bytes, capacity, length, "bytes")
    })
}

/// Encodes a text that is a continuation.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_encode(
    vocabulary: Ref<'_, Vocabulary>,
    text: Ref<'_, u8>,
    text_length: usize,
    tokens: Mut<'_, u32>,
    capacity: usize,
    count: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let vocabulary = vocabulary.get("vocabulary")?;
        let encoded = vocabulary.encode(text.text("text", text_length)?)?;
        write_list(&numbers(&encoded), tokens, capacity, count, "tokens")
    })
}

/// Returns the bytes that tokens add to a text.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_decode(
    vocabulary: Ref<'_, Vocabulary>,
    tokens: Ref<'_, u32>,
    token_count: usize,
    bytes: Mut<'_, u8>,
    capacity: usize,
    length: Out<'_, usize>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let vocabulary = &vocabulary.get("vocabulary")?.tokens;
        let tokens = tokens.list("tokens", token_count)?;
        tokens.iter().try_for_each(|token| check_token(TokenId(*token), vocabulary))?;
        let text: Vec<u8> =
            tokens.iter().flat_map(|token| vocabulary.bytes(TokenId(*token))).copied().collect();
        write_list(&text, bytes, capacity, length, "bytes")
    })
}

/// Frees a vocabulary.
#[unsafe(no_mangle)]
pub extern "C" fn mw_vocabulary_free(vocabulary: Owned<Vocabulary>) {
    discard(vocabulary);
}

/// `MW_TOKEN_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum TokenKind {
    Ordinary = 0,
    Special = 1,
    Unused = 2,
}

impl VocabularyOptions<'_> {
    /// Returns the tokens that end a text, if the caller gives them.
    fn eos(&self) -> Result<Option<Vec<TokenId>>, Failure> {
        let eos = self.eos.tokens("options.eos", self.eos_count)?;
        Ok((!eos.is_empty()).then_some(eos))
    }
}

impl<'c> Tokens<'c> {
    fn list(&self) -> Result<Vec<(TokenKind, &'c [u8])>, Failure> {
        let lengths = self.lengths.list("tokens.lengths", self.count)?;
        let mut rest = self.bytes.list("tokens.bytes", total(lengths)?)?;
        let mut list = Vec::with_capacity(lengths.len());
        let kinds = if self.kinds.optional("tokens.kinds")?.is_some() {
            self.kinds.list("tokens.kinds", self.count)?
        } else {
            &[]
        };
        for (id, length) in lengths.iter().enumerate() {
            let (bytes, behind) = rest.split_at(*length as usize);
            rest = behind;
            let kind = match kinds.get(id).copied().unwrap_or(0) {
                0 => TokenKind::Ordinary,
                1 => TokenKind::Special,
                2 => TokenKind::Unused,
                other => {
                    return Err(Failure::argument(format!(
                        "token {id} is of kind {other}; 0, 1 and 2 are known"
                    )));
                }
            };
            list.push((kind, bytes));
        }
        Ok(list)
    }
}

/// Returns the total length of all tokens in bytes.
pub(crate) fn total(lengths: &[u32]) -> Result<usize, Failure> {
    let total = lengths.iter().map(|length| u64::from(*length)).sum::<u64>();
    usize::try_from(total).map_err(|_| Failure::argument(format!("the tokens cannot have {total} bytes")))
}

impl Vocabulary {
    pub(crate) fn of(tokenizer: Tokenizer) -> Self {
        Self { tokens: tokenizer.vocabulary().clone(), encoder: Arc::new(Encoder::Tokenizer(tokenizer)) }
    }

    /// Builds a vocabulary from tokens in memory. Tokens that end a text become special, even if they were ordinary.
    pub(crate) fn build(
        list: &[(TokenKind, &[u8])],
        eos: &[TokenId],
        size: usize,
        encoder: Encoder,
    ) -> Result<Self, Failure> {
        if let Some(token) = eos.iter().find(|token| token.index() >= list.len()) {
            let count = list.len();
            let text = format!("token {token} is to end the text, but there are only {count} tokens");
            return Err(Failure::new(Status::Vocabulary, text));
        }
        let mut eos = eos.to_vec();
        eos.sort_unstable();
        let mut builder = VocabularyBuilder::new();
        for (id, (kind, bytes)) in (0..).map(TokenId).zip(list) {
            let is_special = *kind == TokenKind::Special || eos.binary_search(&id).is_ok();
            let added = match kind {
                _ if is_special => builder.special(id, &String::from_utf8_lossy(bytes)),
                TokenKind::Unused => continue,
                _ => builder.token(id, bytes),
            };
            added.map_err(|error| Failure::new(Status::Vocabulary, error))?;
        }
        for token in eos {
            builder.eos(token);
        }
        builder.size(list.len().max(size));
        let tokens = builder.finish().map_err(|error| Failure::new(Status::Vocabulary, error))?;
        Ok(Self { tokens: Arc::new(tokens), encoder: Arc::new(encoder) })
    }

    /// Encodes a text that is a continuation. The bytes of the tokens are exactly the text.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Failure> {
        match &*self.encoder {
            Encoder::Unknown => {
                let text = "this vocabulary does not know how text is cut into tokens; set tokens.encode";
                Err(Failure::new(Status::Vocabulary, text))
            }
            Encoder::Tokenizer(tokenizer) => tokenizer.encode(text).map_err(refused),
            Encoder::Function(function, data) => self.encode_by(*function, *data, text),
        }
    }

    fn encode_by(&self, function: EncodeFn, data: UserData, text: &str) -> Result<Vec<TokenId>, Failure> {
        // No token is empty, so this is enough. A few more are for functions that add a token at the beginning.
        let mut buffer = vec![0; text.len() + 16];
        let count = function(data, text.as_ptr(), text.len(), buffer.as_mut_ptr(), buffer.len());
        let tokens = buffer.get(..count).unwrap_or_default();
        let spelled = tokens.iter().flat_map(|token| self.tokens.bytes(TokenId(*token)));
        if spelled.eq(text.as_bytes()) {
            return Ok(tokens.iter().copied().map(TokenId).collect());
        }
        let text = "the function that cuts text into tokens gave tokens that do not spell the text";
        Err(Failure::new(Status::Vocabulary, text))
    }
}

pub(crate) fn numbers(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}

/// Returns an error if there is no such token.
pub(crate) fn check_token(token: TokenId, vocabulary: &maskwright::Vocabulary) -> Result<(), Failure> {
    let size = vocabulary.size();
    if token.index() < size {
        return Ok(());
    }
    let text = format!("there is no token {token}: the vocabulary has {size} ids");
    Err(Failure::new(Status::NoToken, text))
}

pub(crate) fn refused(error: maskwright_tokenizers::Error) -> Failure {
    let status = match &error {
        maskwright_tokenizers::Error::Io { .. } => Status::File,
        _ => Status::Vocabulary,
    };
    Failure::new(status, error)
}
