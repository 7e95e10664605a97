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
//! With several texts to stop at, `b` is let through if that holds for one of them, with regard to all. If no beginning of a stop is an end of one, the second case does not come about with that stop, and the
//! first condition is enough for all texts. A pattern has such a stop if one of its texts has, before its last character, none with which a text of the pattern may end: `/\s*\n/` has a line break by itself, `/<[a-z]+>/` has `<a>`.

use maskwright_grammar::{CharSet, Diagnostic, Expr, ExprId, GrammarBuilder, Span};

/// The texts of which no proper beginning matches as well.
pub(crate) fn shortest(whole: ExprId, builder: &mut GrammarBuilder) -> ExprId {
    let (any, more) = (builder.class(CharSet::all()), builder.any_text());
    let longer = builder.seq([whole, any, more]);
    let not_longer = builder.not(longer);
    builder.and([whole, not_longer])
}

/// The texts of the body before the first stop behind a match of the body.
pub(crate) fn before(body: ExprId, stop: &str, builder: &mut GrammarBuilder) -> ExprId {
    let text = builder.bytes(stop.as_bytes());
    before_one_of(body, text, &[stop], builder)
}

/// The same for another stop; `None` if it is neither a choice of texts nor has a text that no other one overlaps, or is matched by nothing at all.
pub(crate) fn before_any(body: ExprId, stop: ExprId, builder: &mut GrammarBuilder) -> Option<ExprId> {
    if may_be_empty(stop, builder) {
        return None;
    }
    if last_characters(stop, builder).is_some_and(|last| ends_first(stop, true, &last, builder)) {
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

/// The texts of the body before the first stop, which is one of `stops`, or no other overlaps it if none are listed.
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

/// The characters with which a text may end, and perhaps some more. `None` where that is not clear.
fn last_characters(expr: ExprId, builder: &GrammarBuilder) -> Option<CharSet> {
    match builder.expr(expr) {
        Expr::Empty => Some(CharSet::none()),
        Expr::Class(set) => Some(set.clone()),
        Expr::Bytes(bytes) => {
            let last = str::from_utf8(bytes).ok()?.chars().next_back();
            Some(CharSet::from_ranges(last.map(|last| (last, last))))
        }
        Expr::Alt(parts) => parts
            .iter()
            .try_fold(CharSet::none(), |all, part| Some(union(&all, &last_characters(*part, builder)?))),
        Expr::Repeat { body, .. } => last_characters(*body, builder),
        Expr::Seq(parts) => {
            let mut all = CharSet::none();
            for part in parts.iter().rev() {
                all = union(&all, &last_characters(*part, builder)?);
                if !may_be_empty(*part, builder) {
                    break;
                }
            }
            Some(all)
        }
        _ => None,
    }
}

/// Whether some text has no character of `last`, or, if it is the end of a stop, none but its last one, which then must be there. False where that is not clear.
fn ends_first(expr: ExprId, is_end: bool, last: &CharSet, builder: &GrammarBuilder) -> bool {
    let others = |text: &str| !text.chars().any(|c| last.contains(c));
    match builder.expr(expr) {
        Expr::Empty => !is_end,
        Expr::Class(set) => is_end || !union(&set.complement(), last).is_all(),
        Expr::Bytes(bytes) => str::from_utf8(bytes).is_ok_and(|text| {
            let before = text.char_indices().next_back().map_or("", |(at, _)| &text[..at]);
            if is_end { !text.is_empty() && others(before) } else { others(text) }
        }),
        Expr::Alt(parts) => parts.iter().any(|part| ends_first(*part, is_end, last, builder)),
        // Once is enough for an end; before that, no time at all is, where that may be.
        Expr::Repeat { body, min, .. } => match (*min, is_end) {
            (0, false) => true,
            (0 | 1, _) => ends_first(*body, is_end, last, builder),
            (_, false) => ends_first(*body, false, last, builder),
            (_, true) => ends_first(*body, false, last, builder) && ends_first(*body, is_end, last, builder),
        },
        Expr::Seq(parts) if !is_end => parts.iter().all(|part| ends_first(*part, false, last, builder)),
        // One part has the last character, those behind it are empty.
        Expr::Seq(parts) => {
            let needed = parts.iter().rposition(|part| !may_be_empty(*part, builder)).unwrap_or(0);
            for (at, part) in parts.iter().enumerate() {
                if at >= needed && ends_first(*part, true, last, builder) {
                    return true;
                }
                if !ends_first(*part, false, last, builder) {
                    return false;
                }
            }
            false
        }
        _ => false,
    }
}

fn union(a: &CharSet, b: &CharSet) -> CharSet {
    CharSet::from_ranges(a.ranges().iter().chain(b.ranges()).copied())
}

/// The length in bytes, if all texts have the same.
pub(crate) fn length(expr: ExprId, builder: &GrammarBuilder) -> Option<usize> {
    match builder.expr(expr) {
        Expr::Empty => Some(0),
        Expr::Bytes(bytes) => Some(bytes.len()),
        Expr::Class(set) => {
            let mut lengths = set.ranges().iter().flat_map(|(from, to)| [from.len_utf8(), to.len_utf8()]);
            let first = lengths.next()?;
            lengths.all(|length| length == first).then_some(first)
        }
        Expr::Seq(parts) => parts.iter().map(|part| length(*part, builder)).sum(),
        Expr::Alt(parts) => {
            let mut lengths = parts.iter().map(|part| length(*part, builder));
            let first = lengths.next()??;
            lengths.all(|length| length == Some(first)).then_some(first)
        }
        Expr::Repeat { body, min, max } if *max == Some(*min) => {
            length(*body, builder)?.checked_mul(usize::try_from(*min).ok()?)
        }
        _ => None,
    }
}

/// What is said about every `stop`.
pub(crate) fn warning(stop: &str, span: Span) -> Diagnostic {
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
