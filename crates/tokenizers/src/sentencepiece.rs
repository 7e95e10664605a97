//! SentencePiece models, `tokenizer.model` or `spiece.model`.
//!
//! The file is a protocol buffer: pieces with scores and types, and the settings of their training. A piece is text
//! with `▁` for a space; a piece of type *byte* is `<0xAB>`.
//!
//! | type | meaning |
//! |---|---|
//! | normal, user-defined | text |
//! | byte | one byte |
//! | control, unknown, unused | special: no text spells it |
//!
//! BPE models encode by merging pieces, Unigram models by the most probable segmentation. Both omit SentencePiece's
//! normalization, and the space that it adds before a text.

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::Encoder,
    piece_lattice::PieceLattice,
    piece_merge::PieceMerge,
    protobuf::Fields,
    scored_piece::{Kind, ScoredPiece},
    spelling::{Spelling, fallback_byte},
};

/// Reads a tokenizer from the content of a SentencePiece model.
pub fn from_bytes(file: &[u8]) -> Result<Tokenizer, Error> {
    from_bytes_with(file, &Options::default())
}

/// Like [`from_bytes`], with options.
pub fn from_bytes_with(file: &[u8], options: &Options) -> Result<Tokenizer, Error> {
    let model = parse(file).map_err(|reason| Error::malformed(Format::SentencePiece, reason))?;
    let mut draft = Draft::new(Format::SentencePiece, draft_tokens(&model.pieces), encoder(&model));
    // In a model without such a token, the id is negative, or that of an ordinary piece.
    let special = |id: i64| {
        let id = u32::try_from(id).ok()?;
        matches!(model.pieces.get(id as usize)?.kind, Kind::Control).then_some(id)
    };
    draft.eos = special(model.eos_id).into_iter().collect();
    draft.bos = special(model.bos_id);
    draft.finish(options)
}

/// Whether the content begins with a piece.
pub(crate) fn looks_like_model(content: &[u8]) -> bool {
    match Fields(content).next() {
        Some(Ok((1, value))) => value.bytes().is_some_and(
            |piece| matches!(Fields(piece).next(), Some(Ok((1, text))) if text.bytes().is_some()),
        ),
        _ => false,
    }
}

/// Returns the meaning of each piece.
pub(crate) fn draft_tokens(pieces: &[ScoredPiece]) -> Vec<(u32, Piece)> {
    let spelling = Spelling::meta_space();
    let token = |piece: &ScoredPiece| match piece.kind {
        Kind::Normal | Kind::UserDefined => Piece::Text(spelling.bytes(&piece.text)),
        Kind::Byte => match fallback_byte(&piece.text) {
            Some(byte) => Piece::Text(vec![byte]),
            None => Piece::Special(piece.text.clone()),
        },
        Kind::Unknown | Kind::Control | Kind::Unused => Piece::Special(piece.text.clone()),
    };
    (0..).zip(pieces.iter().map(token)).collect()
}

/// Returns the encoder of a BPE model.
pub(crate) fn piece_merge(pieces: &[ScoredPiece]) -> Encoder {
    let mut merge = PieceMerge::default();
    for (id, piece) in (0..).zip(pieces) {
        match piece.kind {
            Kind::Normal => merge.piece(&piece.text, id, piece.score),
            Kind::Unused => merge.unused(&piece.text, id, piece.score),
            Kind::UserDefined if !piece.text.is_empty() => merge.user_defined(&piece.text, id),
            Kind::Byte => {
                if let Some(byte) = fallback_byte(&piece.text) {
                    merge.byte(byte, id);
                }
            }
            Kind::Unknown | Kind::Control | Kind::UserDefined => {}
        }
    }
    Encoder::PieceMerge(Box::new(merge))
}

struct Model {
    pieces: Vec<ScoredPiece>,
    algorithm: i64,
    spaces_at_end: bool,
    bos_id: i64,
    eos_id: i64,
}

const UNIGRAM: i64 = 1;
const BPE: i64 = 2;

fn encoder(model: &Model) -> Encoder {
    let refuse = |reason: &str| Encoder::None(Format::SentencePiece, reason.into());
    match model.algorithm {
        _ if model.spaces_at_end => refuse("its pieces carry their space at the end"),
        BPE => piece_merge(&model.pieces),
        UNIGRAM => Encoder::PieceLattice(Box::new(PieceLattice::new(&model.pieces))),
        _ => refuse("it is neither a BPE nor a Unigram model"),
    }
}

fn parse(file: &[u8]) -> Result<Model, String> {
    let mut model =
        Model { pieces: Vec::new(), algorithm: UNIGRAM, spaces_at_end: false, bos_id: 1, eos_id: 2 };
    for field in Fields(file) {
        match field? {
            (1, value) => {
                let at = model.pieces.len();
                let message = value.bytes().ok_or_else(|| format!("piece {at} is no message"))?;
                model.pieces.push(parse_piece(message).map_err(|reason| format!("piece {at}: {reason}"))?);
            }
            (2, value) => parse_settings(value.bytes().ok_or("its settings are no message")?, &mut model)?,
            _ => {}
        }
    }
    Ok(model)
}

fn parse_piece(message: &[u8]) -> Result<ScoredPiece, String> {
    let mut piece = ScoredPiece { text: String::new(), score: 0.0, kind: Kind::Normal };
    for field in Fields(message) {
        match field? {
            (1, value) => {
                let bytes = value.bytes().ok_or("its text is no string")?;
                let text = std::str::from_utf8(bytes).map_err(|_| "its text is no UTF-8")?;
                text.clone_into(&mut piece.text);
            }
            (2, value) => piece.score = value.float().ok_or("its score is no number")?,
            (3, value) => {
                let number = value.int().ok_or("its type is no number")?;
                piece.kind =
                    Kind::from_number(number).ok_or_else(|| format!("its type {number} is not known"))?;
            }
            _ => {}
        }
    }
    Ok(piece)
}

fn parse_settings(message: &[u8], model: &mut Model) -> Result<(), String> {
    for field in Fields(message) {
        let (number, value) = field?;
        let Some(value) = value.int() else { continue };
        // Ids are 32-bit numbers; a negative id means that there is no such token.
        match number {
            3 => model.algorithm = value,
            24 => model.spaces_at_end = value != 0,
            41 => model.bos_id = value,
            42 => model.eos_id = value,
            _ => {}
        }
    }
    Ok(())
}
