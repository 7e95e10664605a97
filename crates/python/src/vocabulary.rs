//! The tokens of a model.

use std::path::PathBuf;
use std::sync::Arc;

use maskwright::{TokenId, VocabularyBuilder};
use maskwright_tokenizers::{Options, Tokenizer, gguf, hf, sentencepiece, tekken, tiktoken};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::Class;

/// The tokens of a model: their bytes, which of them are special, and which end a text.
#[pyclass(frozen, module = "maskwright", weakref)]
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) vocabulary: Arc<maskwright::Vocabulary>,
    /// The tokenizer, if the source was one.
    pub(crate) tokenizer: Option<Arc<Tokenizer>>,
}

#[pymethods]
impl Vocabulary {
    /// Reads a tokenizer: a file (tokenizer.json, tiktoken ranks, SentencePiece, GGUF), a folder with one, or the name
    /// of a known encoding such as "o200k_base".
    #[staticmethod]
    #[pyo3(signature = (path, *, eos = None, size = None, specials = None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        eos: Option<Vec<u32>>,
        size: Option<usize>,
        specials: Option<Vec<(u32, String)>>,
    ) -> PyResult<Self> {
        let options = options(eos, size, specials);
        let loaded = py.detach(|| maskwright_tokenizers::load_with(&path, &options));
        loaded.map(Self::from).map_err(|error| Class::Vocabulary.err(py, error))
    }

    /// Reads the content of a tokenizer file; `format` is "tokenizer.json", "tiktoken", "tekken.json", "sentencepiece" or "gguf".
    #[staticmethod]
    #[pyo3(signature = (content, format, *, eos = None, size = None, specials = None))]
    fn parse(
        py: Python<'_>,
        content: &[u8],
        format: &str,
        eos: Option<Vec<u32>>,
        size: Option<usize>,
        specials: Option<Vec<(u32, String)>>,
    ) -> PyResult<Self> {
        let options = options(eos, size, specials);
        let read: fn(&[u8], &Options) -> Result<Tokenizer, maskwright_tokenizers::Error> = match format {
            "tokenizer.json" => hf::from_bytes_with,
            "tiktoken" => tiktoken::from_ranks_with,
            "tekken.json" => tekken::from_bytes_with,
            "sentencepiece" => sentencepiece::from_bytes_with,
            "gguf" => |content, options| gguf::read_with(content, options),
            _ => {
                let message = format!(
                    "there is no format {format:?}; known are tokenizer.json, tiktoken, tekken.json, sentencepiece and gguf"
                );
                return Err(PyValueError::new_err(message));
            }
        };
        let loaded = py.detach(|| read(content, &options));
        loaded.map(Self::from).map_err(|error| Class::Vocabulary.err(py, error))
    }

    /// Creates a vocabulary from tokens by id, special tokens by id, and the ids that end a text.
    #[staticmethod]
    #[pyo3(signature = (tokens, specials, eos, size = None))]
    fn build(
        py: Python<'_>,
        tokens: Vec<(u32, Bound<'_, PyBytes>)>,
        specials: Vec<(u32, String)>,
        eos: Vec<u32>,
        size: Option<usize>,
    ) -> PyResult<Self> {
        let wrong = |error| Class::Vocabulary.err(py, error);
        let mut builder = VocabularyBuilder::new();
        for (id, bytes) in &tokens {
            builder.token(TokenId(*id), bytes.as_bytes()).map_err(wrong)?;
        }
        for (id, name) in &specials {
            builder.special(TokenId(*id), name).map_err(wrong)?;
        }
        for id in eos {
            builder.eos(TokenId(id));
        }
        builder.size(size.unwrap_or(0));
        let vocabulary = py.detach(|| builder.finish()).map_err(wrong)?;
        Ok(Self { vocabulary: Arc::new(vocabulary), tokenizer: None })
    }

    /// Creates a vocabulary from tokens: a list of bytes, or a dict from id to bytes.
    ///
    /// `eos` is the id of the token that ends a text, or several ids; `specials` are names of special tokens by id;
    /// `size` is the width of the model's output, if that is larger.
    #[staticmethod]
    #[pyo3(signature = (tokens, **options))]
    fn from_tokens<'py>(
        tokens: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static FROM_TOKENS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let function = FROM_TOKENS.import(tokens.py(), "maskwright._tokenizers", "from_tokens")?;
        function.call((tokens,), options)
    }

    /// Creates a vocabulary from a tokenizer: of transformers, tokenizers, tiktoken, SentencePiece, mistral_common,
    /// mlx-lm or llama-cpp-python, a path, or a dict.
    ///
    /// `eos` and `size` override those of the tokenizer.
    #[staticmethod]
    #[pyo3(signature = (tokenizer, **options))]
    fn from_tokenizer<'py>(
        tokenizer: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static FROM_TOKENIZER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let function = FROM_TOKENIZER.import(tokenizer.py(), "maskwright._tokenizers", "from_tokenizer")?;
        function.call((tokenizer,), options)
    }

    /// The width of a mask in tokens: the model's output, including unused ids.
    #[getter]
    fn size(&self) -> usize {
        self.vocabulary.size()
    }

    /// The width of a mask in 32-bit words.
    #[getter]
    fn words(&self) -> usize {
        self.vocabulary.size().div_ceil(32)
    }

    /// The tokens that end a text.
    #[getter]
    fn eos(&self) -> Vec<u32> {
        self.vocabulary.eos().iter().map(|token| token.0).collect()
    }

    /// The special tokens: a dict from name to id.
    #[getter]
    fn specials(&self) -> std::collections::BTreeMap<String, u32> {
        self.vocabulary.specials().map(|(token, name)| (name.to_owned(), token.0)).collect()
    }

    /// The format that the vocabulary was read from, such as "tokenizer.json"; `None` if it was built from tokens.
    #[getter]
    fn format(&self) -> Option<String> {
        self.tokenizer.as_ref().map(|tokenizer| tokenizer.format().to_string())
    }

    /// The token that begins a text, if the source names one.
    #[getter]
    fn bos(&self) -> Option<u32> {
        self.tokenizer.as_ref()?.bos().map(|token| token.0)
    }

    /// The template that turns a conversation into a prompt, if the source has one.
    #[getter]
    fn chat_template(&self) -> Option<&str> {
        self.tokenizer.as_ref()?.chat_template()
    }

    /// A number that identifies the vocabulary: equal for equal tokens.
    #[getter]
    fn fingerprint(&self) -> u128 {
        self.vocabulary.fingerprint()
    }

    /// Whether text can be encoded. Not if the vocabulary was built from tokens, or if its file lacks what is needed.
    #[getter]
    fn can_encode(&self) -> bool {
        self.tokenizer.as_ref().is_some_and(|tokenizer| tokenizer.can_encode())
    }

    /// Returns the bytes of a token; special and unused tokens have none.
    fn token_bytes<'py>(&self, py: Python<'py>, token: i64) -> PyResult<Bound<'py, PyBytes>> {
        let token = self.known(py, token)?;
        Ok(PyBytes::new(py, self.vocabulary.bytes(token)))
    }

    /// Returns the name of a special token; `None` for others.
    fn special_name(&self, py: Python<'_>, token: i64) -> PyResult<Option<&str>> {
        let token = self.known(py, token)?;
        Ok(self.vocabulary.special_name(token))
    }

    /// Returns whether a token is special, so that it has no text.
    fn is_special(&self, py: Python<'_>, token: i64) -> PyResult<bool> {
        let token = self.known(py, token)?;
        Ok(self.vocabulary.is_special(token))
    }

    /// Encodes a text as the tokenizer does in the middle of a text: no token is added before it, and special tokens
    /// are ordinary text.
    fn encode(&self, py: Python<'_>, text: &str) -> PyResult<Vec<u32>> {
        let Some(tokenizer) = &self.tokenizer else {
            return Err(Class::Vocabulary
                .err(py, "this vocabulary was built of tokens and does not know how text is cut"));
        };
        let tokens =
            py.detach(|| tokenizer.encode(text)).map_err(|error| Class::Vocabulary.err(py, error))?;
        Ok(tokens.into_iter().map(|token| token.0).collect())
    }

    /// Returns the bytes that some tokens add to a text. Special tokens add nothing.
    fn decode<'py>(&self, py: Python<'py>, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        for token in crate::numbers::tokens(tokens)? {
            bytes.extend_from_slice(self.vocabulary.bytes(self.known(py, i64::from(token.0))?));
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// Removes tokens from the end of a prompt, back to a place where the tokenizer would split for any continuation.
    /// Returns the remaining tokens, and the text of the removed ones, which the answer must begin with:
    /// `constraint.behind(text)`.
    fn heal(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<(Vec<u32>, String)> {
        let numbers = crate::numbers::numbers(tokens)?;
        let known: PyResult<Vec<TokenId>> = numbers.into_iter().map(|token| self.known(py, token)).collect();
        let mut known = known?;
        let healed = maskwright::heal(&self.vocabulary, &known);
        known.truncate(healed.kept);
        Ok((known.into_iter().map(|token| token.0).collect(), healed.prefix))
    }

    fn __len__(&self) -> usize {
        self.vocabulary.len()
    }

    fn __repr__(&self) -> String {
        let eos: Vec<u32> = self.eos();
        format!(
            "<Vocabulary of {} tokens, size {}, eos {eos:?}>",
            self.vocabulary.len(),
            self.vocabulary.size()
        )
    }
}

impl Vocabulary {
    fn known(&self, py: Python<'_>, token: i64) -> PyResult<TokenId> {
        match u32::try_from(token) {
            Ok(id) if (id as usize) < self.vocabulary.size() => Ok(TokenId(id)),
            _ => {
                let message = format!(
                    "token {token}: there is no such token; the vocabulary has the numbers from 0 to {}",
                    self.vocabulary.size() - 1
                );
                Err(Class::Token.err(py, message))
            }
        }
    }
}

impl From<Tokenizer> for Vocabulary {
    fn from(tokenizer: Tokenizer) -> Self {
        Self { vocabulary: tokenizer.vocabulary().clone(), tokenizer: Some(Arc::new(tokenizer)) }
    }
}

fn options(eos: Option<Vec<u32>>, size: Option<usize>, specials: Option<Vec<(u32, String)>>) -> Options {
    let specials = specials.unwrap_or_default().into_iter().map(|(id, name)| (TokenId(id), name)).collect();
    Options { eos: eos.map(|eos| eos.into_iter().map(TokenId).collect()), size, specials }
}
