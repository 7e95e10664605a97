//! The common representation of all formats, before it is checked and frozen.

use std::sync::Arc;

use maskwright_vocab::{TokenId, VocabularyBuilder};

use crate::{Error, Format, Options, Tokenizer, encode::Encoder};

/// The tokens of a file, with further information from it.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) format: Format,
    pub(crate) tokens: Vec<(u32, Piece)>,
    /// The tokens that end the text, if the file or the files next to it name them.
    pub(crate) eos: Vec<u32>,
    pub(crate) bos: Option<u32>,
    /// The width of the model's output, if known.
    pub(crate) size: Option<usize>,
    pub(crate) chat_template: Option<String>,
    pub(crate) encoder: Encoder,
}

/// The meaning of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    Special(String),
}

impl Draft {
    pub(crate) fn new(format: Format, tokens: Vec<(u32, Piece)>, encoder: Encoder) -> Self {
        Self { format, tokens, eos: vec![], bos: None, size: None, chat_template: None, encoder }
    }

    /// Returns the special token with this name.
    pub(crate) fn special(&self, name: &str) -> Option<u32> {
        let named = |piece: &Piece| matches!(piece, Piece::Special(known) if known == name);
        self.tokens.iter().find(|(_, piece)| named(piece)).map(|(id, _)| *id)
    }

    /// Returns the token with this name, whether it is special or ordinary text.
    pub(crate) fn named(&self, name: &str) -> Option<u32> {
        let text = |piece: &Piece| matches!(piece, Piece::Text(bytes) if bytes == name.as_bytes());
        self.special(name).or_else(|| self.tokens.iter().find(|(_, piece)| text(piece)).map(|(id, _)| *id))
    }

    /// Applies the options, determines the EOS tokens and builds the vocabulary.
    pub(crate) fn finish(mut self, options: &Options) -> Result<Tokenizer, Error> {
        for (id, name) in &options.specials {
            self.set_special(id.0, Some(name));
        }
        if let Some(eos) = &options.eos {
            self.eos = eos.iter().map(|id| id.0).collect();
            if let Some(id) = self.eos.iter().find(|id| !self.has(**id)) {
                let reason = format!("token {id} is to end the text, but the tokenizer has no such token");
                return Err(Error::Settings { place: "the options".into(), reason });
            }
        } else if self.eos.is_empty() {
            self.eos = WELL_KNOWN_EOS.iter().filter_map(|name| self.special(name)).collect();
        }
        for id in self.eos.clone() {
            self.set_special(id, None);
        }
        let mut builder = VocabularyBuilder::new();
        for (id, piece) in &self.tokens {
            match piece {
                Piece::Text(bytes) => builder.token(TokenId(*id), bytes)?,
                Piece::Special(name) => builder.special(TokenId(*id), name)?,
            };
        }
        for &id in &self.eos {
            builder.eos(TokenId(id));
        }
        builder.size(options.size.or(self.size).unwrap_or(0));
        Ok(Tokenizer {
            vocabulary: Arc::new(builder.finish()?),
            format: self.format,
            bos: self.bos.map(TokenId),
            chat_template: self.chat_template,
            encoder: self.encoder,
        })
    }

    fn has(&self, id: u32) -> bool {
        self.tokens.iter().any(|(known, _)| *known == id)
    }

    /// Makes a token special, so that no text spells it any more. Without a name it keeps its text as its name.
    fn set_special(&mut self, id: u32, name: Option<&str>) {
        match self.tokens.iter_mut().find(|(known, _)| *known == id) {
            None => self.tokens.push((id, Piece::Special(name.unwrap_or_default().into()))),
            Some((_, piece)) => {
                let name = match (name, &*piece) {
                    (Some(name), _) => name.to_owned(),
                    (None, Piece::Special(name)) => name.clone(),
                    (None, Piece::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
                };
                *piece = Piece::Special(name);
            }
        }
    }
}

/// The usual names of tokens that end a text or a turn. They are only used if no file names such a token.
const WELL_KNOWN_EOS: &[&str] = &[
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|return|>",
    "<|call|>",
    "<|end|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        let tokens = vec![
            (0, Piece::Text(b"a".to_vec())),
            (1, Piece::Special("</s>".into())),
            (2, Piece::Special("<|im_end|>".into())),
            (3, Piece::Text(b"\n\n".to_vec())),
        ];
        Draft::new(
            Format::TokenizerJson,
            tokens,
            Encoder::None(Format::TokenizerJson, "this is a test".into()),
        )
    }

    fn eos(tokenizer: &Tokenizer) -> Vec<u32> {
        tokenizer.vocabulary().eos().iter().map(|id| id.0).collect()
    }

    #[test]
    fn well_known_names_end_the_text_only_if_nothing_else_is_said() {
        assert_eq!(eos(&draft().finish(&Options::default()).unwrap()), [1, 2]);
        let mut told = draft();
        told.eos = vec![1];
        assert_eq!(eos(&told.finish(&Options::default()).unwrap()), [1]);
    }

    #[test]
    fn options_overrule_the_file() {
        let options = Options {
            eos: Some(vec![TokenId(3)]),
            size: Some(64),
            specials: vec![(TokenId(9), "<tool>".into())],
        };
        let tokenizer = draft().finish(&options).unwrap();
        let vocabulary = tokenizer.vocabulary();
        assert_eq!((eos(&tokenizer), vocabulary.size()), (vec![3], 64));
        // A token that ends the text becomes special.
        assert_eq!(vocabulary.special_name(TokenId(3)), Some("\n\n"));
        assert_eq!(vocabulary.special("<tool>"), Some(TokenId(9)));
    }

    #[test]
    fn an_eos_that_does_not_exist_is_an_error() {
        let options = Options { eos: Some(vec![TokenId(77)]), ..Options::default() };
        let error = draft().finish(&options).unwrap_err().to_string();
        assert_eq!(error, "the options: token 77 is to end the text, but the tokenizer has no such token");
    }
}
