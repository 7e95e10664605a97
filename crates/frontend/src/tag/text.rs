//! Strings that are written without quotes, up to a closing marker.

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

use super::error::TagError;
use super::format::Marker;
use super::spelling::{Names, Symbol, spellings, symbols_expr};

/// Returns a text with its closing marker, which it does not contain. If `trims`, one line break on each side is not
/// part of the text.
pub(super) fn closed(
    text: ExprId,
    close: &str,
    trims: bool,
    names: &Names<'_>,
    at: &str,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    let spellings = spellings(&Marker::Text(close.into()), names, at)?;
    let mut ways = vec![spelled(text, close, trims, g)];
    for spelling in &spellings {
        // A marker that begins with characters is written with characters only, because its start cannot be
        // distinguished from text.
        if matches!(spelling.symbols.first(), Some(Symbol::Token(_))) {
            let text = unclosed(text, close, trims, g);
            let symbols = symbols_expr(&spelling.symbols, g);
            ways.push(g.seq([text, symbols]));
        }
    }
    Ok(g.alt(ways))
}

/// Like [`closed`], with characters only.
fn spelled(text: ExprId, close: &str, trims: bool, g: &mut GrammarBuilder) -> ExprId {
    if text == g.any_text() {
        // The most frequent case: every text, line breaks or not, up to the first closing tag.
        return up_to(close, g);
    }
    let written = written(text, trims, g);
    let (all, any, end) = (g.any_text(), g.class(CharSet::all()), g.bytes(close.as_bytes()));
    let early = g.seq([all, end, any, all]);
    let in_time = g.not(early);
    let written = g.seq([written, end]);
    g.and([written, in_time])
}

/// Returns a text that does not contain its closing tag.
fn unclosed(text: ExprId, close: &str, trims: bool, g: &mut GrammarBuilder) -> ExprId {
    let (all, end) = (g.any_text(), g.bytes(close.as_bytes()));
    let marked = g.seq([all, end, all]);
    let clean = g.not(marked);
    if text == all {
        return clean;
    }
    let written = written(text, trims, g);
    g.and([written, clean])
}

/// Returns a text between its tags: for some styles with a line break on each side that does not count.
fn written(text: ExprId, trims: bool, g: &mut GrammarBuilder) -> ExprId {
    if !trims {
        return text;
    }
    let (all, line) = (g.any_text(), g.bytes(b"\n"));
    let first = g.seq([line, all]);
    let last = g.seq([all, line]);
    let (no_first, no_last) = (g.not(first), g.not(last));
    let both = g.seq([line, text, line]);
    let left = g.and([text, no_last]);
    let left = g.seq([line, left]);
    let right = g.and([text, no_first]);
    let right = g.seq([right, line]);
    let neither = g.and([text, no_first, no_last]);
    g.alt([both, left, right, neither])
}

/// Returns any text up to and including a marker, as a leaf that all constraints share.
fn up_to(close: &str, g: &mut GrammarBuilder) -> ExprId {
    let all = g.any_text();
    let any = g.class(CharSet::all());
    let end = g.bytes(close.as_bytes());
    let ended = g.seq([all, end]);
    let early = g.seq([all, end, any, all]);
    let in_time = g.not(early);
    g.and([ended, in_time])
}
