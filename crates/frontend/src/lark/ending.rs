//! Where a match ends: `lazy`, `suffix` and `stop`.
//!
//! Whoever reads from left to right and stops at the first match reads a text of the language *of which no proper beginning is in the
//! language too*. So with R the body, and the suffix behind it,
//!
//! ```text
//! shortest(R)  =  R  without  R·(one character or more)
//! ```
//!
//! is the language of a lazy terminal: regular, and exact. `/(.|\n)*/` with the suffix `</a>` gives every text that ends in `</a>` and has it
//! nowhere else.
//!
//! `stop` means what `suffix` does, less the suffix itself: llguidance lets the model write it and takes it away again. Here nothing is
//! taken away, so what is left is the text before the first stop. It is what `shortest` gives, cut short; for a stop that is a plain text `s` that
//! can be said without cutting. The text `b` must match the body, and `b·s` must have no `s` behind a match of the body but the one
//! at its end. One further to the left would lie within `b`, or begin in `b` and end within `s`; the second is possible only for a beginning
//! of `s` that is also an end of `s`.
//!
//! With several texts to stop at, `b` is let through if that holds for one of them, with regard to all. A stop of one character leaves no room for the second case. So a pattern
//! that a single character matches, such as `/\s*\n/`, needs the first condition alone.

use maskwright_grammar::{CharSet, Diagnostic, Expr, ExprId, GrammarBuilder, Span};

/// The texts of which no proper beginning matches as well.
pub(crate) fn shortest(whole: ExprId, builder: &mut GrammarBuilder) -> ExprId {
    let (any, more) = (builder.class(CharSet::all()), builder.any_text());
    let longer = builder.seq([whole, any, more]);
    let not_longer = builder.not(longer);
    builder.and([whole, not_longer])
}

/// The texts of the body before the first stop behind a match of the body.
pub(super) fn before(body: ExprId, stop: &str, builder: &mut GrammarBuilder) -> ExprId {
    let text = builder.bytes(stop.as_bytes());
    before_one_of(body, text, &[stop], builder)
}

/// The same for another stop; `None` if it is neither a choice of texts nor matched by a single character, or is matched by nothing at all.
pub(super) fn before_any(body: ExprId, stop: ExprId, builder: &mut GrammarBuilder) -> Option<ExprId> {
    if may_be_empty(stop, builder) {
        return None;
    }
    if may_be_one_character(stop, builder) {
        return Some(before_one_of(body, stop, &[], builder));
    }
    let parts = match builder.expr(stop) {
        Expr::Alt(parts) => parts.to_vec(),
        _ => vec![stop],
    };
    let text = |part: &ExprId| match builder.expr(*part) {
        Expr::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    };
    let texts: Vec<String> = parts.iter().map(text).collect::<Option<_>>()?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Some(before_one_of(body, stop, &texts, builder))
}

/// The texts of the body before the first stop, which is one of `stops`, or a single character if none are listed.
fn before_one_of(body: ExprId, stop: ExprId, stops: &[&str], builder: &mut GrammarBuilder) -> ExprId {
    let more = builder.any_text();
    let within = builder.seq([body, stop, more]);
    let first = [body, builder.not(within)];
    let ways: Vec<ExprId> = stops
        .iter()
        .map(|stop| {
            let mut all = first.to_vec();
            for begun in across(stop, stops) {
                let begun = builder.bytes(begun.as_bytes());
                let across = builder.seq([body, begun]);
                all.push(builder.not(across));
            }
            builder.and(all)
        })
        .collect();
    if ways.is_empty() { builder.and(first) } else { builder.alt(ways) }
}

/// The beginnings of `stops` whose rest is a proper beginning of `stop`: behind them, a stop would be over before this one is.
fn across<'s>(stop: &str, stops: &[&'s str]) -> Vec<&'s str> {
    let mut found: Vec<&str> = Vec::new();
    for other in stops {
        for (at, _) in other.char_indices().skip(1) {
            let (begun, rest) = other.split_at(at);
            if rest.len() < stop.len() && stop.starts_with(rest) && !found.contains(&begun) {
                found.push(begun);
            }
        }
    }
    found
}

/// Whether the empty text matches. Where that is not clear it may.
fn may_be_empty(expr: ExprId, builder: &GrammarBuilder) -> bool {
    match builder.expr(expr) {
        Expr::Bytes(_) | Expr::Class(_) => false,
        Expr::Seq(parts) => parts.iter().all(|part| may_be_empty(*part, builder)),
        Expr::Alt(parts) => parts.iter().any(|part| may_be_empty(*part, builder)),
        Expr::Repeat { body, min, .. } => *min == 0 || may_be_empty(*body, builder),
        _ => true,
    }
}

/// Whether some text of one character matches for certain.
fn may_be_one_character(expr: ExprId, builder: &GrammarBuilder) -> bool {
    match builder.expr(expr) {
        Expr::Class(_) => true,
        Expr::Bytes(bytes) => str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1),
        Expr::Alt(parts) => parts.iter().any(|part| may_be_one_character(*part, builder)),
        Expr::Repeat { body, min, .. } => *min <= 1 && may_be_one_character(*body, builder),
        Expr::Seq(parts) => {
            let is_empty =
                |part: &ExprId| matches!(builder.expr(*part), Expr::Repeat { min: 0, .. } | Expr::Empty);
            let mut others = parts.iter().filter(|part| !is_empty(part));
            match (others.next(), others.next()) {
                (Some(only), None) => may_be_one_character(*only, builder),
                _ => false,
            }
        }
        _ => false,
    }
}

/// What is said about every `stop`.
pub(super) fn warning(stop: &str, span: Span) -> Diagnostic {
    let (message, help) = if stop.is_empty() {
        ("an empty `stop` does nothing: the end of the text ends the whole text", "leave it out")
    } else {
        (
            "nothing is taken away behind the rule: the stop is not part of the text",
            "write `suffix=…` to have it in the text",
        )
    };
    Diagnostic::warning(span, message).with_help(help)
}
