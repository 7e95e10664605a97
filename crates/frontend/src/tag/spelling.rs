//! The ways to write a marker.
//!
//! A marker is a text such as `<|tool_call_begin|>functions.`. In most vocabularies its first part is the name of a
//! special token, which the model writes as one token without text. Readers of the decoded text see the name in both
//! cases, so both are the marker:
//!
//! ```text
//!   ⟨<|tool_call_begin|>⟩ f u n c t i o n s .        the token, then characters
//!   < | t o o l _ c a l l _ b e g i n | > f u n …    characters alone
//! ```
//!
//! A name may also belong to a token that ends the text elsewhere, as `<|call|>` does for gpt-oss. As a marker it is
//! required like any other; free text never contains it.
//!
//! Only the vocabulary knows the names of special tokens. Without it ([`Options::specials`](super::Options::specials)
//! is empty) markers consist of characters.

use maskwright_grammar::{ExprId, GrammarBuilder, TokenRef, TokenSet};

use super::Options;
use super::error::{Reason, TagError};
use super::format::Marker;

/// One step of a marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Symbol {
    /// A character.
    Char(char),
    /// A token.
    Token(TokenRef),
}

/// One way to write a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spelling {
    pub(super) symbols: Vec<Symbol>,
    /// For each symbol, the number of bytes of the marker that are written after it.
    reach: Vec<usize>,
}

/// The names of special tokens, for finding them in markers.
#[derive(Clone, Debug, Default)]
pub(super) struct Names<'o> {
    /// The names by their first byte.
    by_first: Vec<(u8, Vec<&'o str>)>,
}

impl<'o> Names<'o> {
    pub(super) fn of(options: &'o Options) -> Self {
        let mut by_first: Vec<(u8, Vec<&'o str>)> = Vec::new();
        for name in &options.specials {
            let Some(first) = name.bytes().next() else { continue };
            match by_first.iter_mut().find(|(byte, _)| *byte == first) {
                Some((_, names)) => names.push(name),
                None => by_first.push((first, vec![name])),
            }
        }
        Self { by_first }
    }

    /// Returns the length of the longest name at the start of a text.
    fn at(&self, text: &str) -> Option<usize> {
        let first = text.bytes().next()?;
        let (_, names) = self.by_first.iter().find(|(byte, _)| *byte == first)?;
        names.iter().filter(|name| text.starts_with(**name)).map(|name| name.len()).max()
    }
}

/// The maximum number of names in one marker.
const MAX_SPECIAL_NAMES: usize = 4;

/// Returns all ways to write a marker that was described at a place, or an error if it contains too many names.
pub(super) fn spellings(marker: &Marker, names: &Names<'_>, at: &str) -> Result<Vec<Spelling>, TagError> {
    let text = match marker {
        Marker::Text(text) => text,
        Marker::Token(token) => {
            return Ok(vec![Spelling { symbols: vec![Symbol::Token(token.clone())], reach: vec![0] }]);
        }
    };
    let pieces = pieces(text, names);
    if pieces.iter().filter(|piece| piece.is_name).count() > MAX_SPECIAL_NAMES {
        let message = format!("{} contains the names of more than four special tokens", marker.shown());
        return Err(TagError::of(Reason::Limit, at, message, "write it as a sequence of shorter texts"));
    }
    let mut all = vec![Spelling { symbols: Vec::new(), reach: Vec::new() }];
    for piece in &pieces {
        let mut longer = Vec::with_capacity(all.len() * 2);
        for spelling in &all {
            if piece.is_name {
                let mut token = spelling.clone();
                token.symbols.push(Symbol::Token(TokenRef::name(piece.text)));
                token.reach.push(piece.start + piece.text.len());
                longer.push(token);
            }
            let mut plain = spelling.clone();
            for (at, c) in piece.text.char_indices() {
                plain.symbols.push(Symbol::Char(c));
                plain.reach.push(piece.start + at + c.len_utf8());
            }
            longer.push(plain);
        }
        all = longer;
    }
    Ok(all)
}

/// Returns a marker, in all its spellings, followed by an expression.
pub(super) fn marker_expr(
    marker: &Marker,
    then: ExprId,
    at: &str,
    names: &Names<'_>,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    let mut ways = Vec::new();
    for spelling in spellings(marker, names, at)? {
        let symbols = symbols_expr(&spelling.symbols, g);
        ways.push(g.seq([symbols, then]));
    }
    Ok(g.alt(ways))
}

impl Spelling {
    /// Returns the number of symbols after which at least this many bytes of the marker are written.
    pub(super) fn symbols_for(&self, bytes: usize) -> usize {
        self.reach.iter().position(|reach| *reach >= bytes).map_or(self.symbols.len(), |at| at + 1)
    }
}

/// A piece of a marker: the name of a token, or the text between two names.
struct Piece<'t> {
    start: usize,
    text: &'t str,
    is_name: bool,
}

/// Splits a text at the names in it, from the left, the longest name first.
fn pieces<'t>(text: &'t str, names: &Names<'_>) -> Vec<Piece<'t>> {
    let mut pieces = Vec::new();
    let (mut plain, mut at) = (0, 0);
    while at < text.len() {
        if let Some(len) = names.at(&text[at..]) {
            if plain < at {
                pieces.push(Piece { start: plain, text: &text[plain..at], is_name: false });
            }
            pieces.push(Piece { start: at, text: &text[at..at + len], is_name: true });
            at += len;
            plain = at;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    if plain < text.len() {
        pieces.push(Piece { start: plain, text: &text[plain..], is_name: false });
    }
    pieces
}

/// Returns the expression of a sequence of symbols.
pub(super) fn symbols_expr(symbols: &[Symbol], g: &mut GrammarBuilder) -> ExprId {
    let mut parts = Vec::new();
    let mut text = String::new();
    for symbol in symbols {
        match symbol {
            Symbol::Char(c) => text.push(*c),
            Symbol::Token(token) => {
                parts.push(g.bytes(text.as_bytes()));
                text.clear();
                parts.push(g.token(TokenSet::these([token.clone()])));
            }
        }
    }
    parts.push(g.bytes(text.as_bytes()));
    g.seq(parts)
}
