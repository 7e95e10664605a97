//! Strings that are written as they are, up to a closing marker.

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

use super::error::TagError;
use super::format::Marker;
use super::spelling::{Names, Symbol, spellings, symbols_expr};

/// A text up to and with its closing marker, which it does not contain. If `trims`, one line break on each side is no part of it.
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
        // A marker that is begun with characters is finished with characters: where it begins, nothing can be told apart from the text.
        if matches!(spelling.symbols.first(), Some(Symbol::Token(_))) {
            let text = unclosed(text, close, trims, g);
            let symbols = symbols_expr(&spelling.symbols, g);
            ways.push(g.seq([text, symbols]));
        }
    }
    Ok(g.alt(ways))
}

/// The same, in characters alone.
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

/// A text that does not contain its closing tag.
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

/// A text between its tags: for some styles with a line break on each side that does not count.
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

/// Any text up to and with a marker, as a leaf that all constraints share.
fn up_to(close: &str, g: &mut GrammarBuilder) -> ExprId {
    let all = g.any_text();
    let any = g.class(CharSet::all());
    let end = g.bytes(close.as_bytes());
    let ended = g.seq([all, end]);
    let early = g.seq([all, end, any, all]);
    let in_time = g.not(early);
    g.and([ended, in_time])
}
