//! The end of a match: `lazy`, `suffix` and `stop`.
//!
//! A reader that goes from left to right and stops at the first match reads a text of the language *of which no proper
//! prefix is in the language*. So with R the body followed by the suffix,
//!
//! ```text
//! shortest(R)  =  R  without  R·(one character or more)
//! ```
//!
//! is the language of a lazy terminal: regular, and exact. `/(.|\n)*/` with the suffix `</a>` gives every text that
//! ends in `</a>` and contains it nowhere else.
//!
//! `stop` is like `suffix` without the suffix itself: llguidance lets the model write it and removes it afterwards.
//! Here nothing is removed, so the result is the text before the first stop. For a stop that is a plain text `s`, this
//! language can be expressed directly. The text `b` must match the body, and `b·s` must contain no `s` after a match of
//! the body except the one at its end. An earlier one would lie within `b`, or begin in `b` and end within `s`; the
//! second is possible only for a prefix of `s` that is also a suffix of `s`.
//!
//! With several stop texts, `b` is allowed if this holds for one of them, with respect to all. If no prefix of a stop
//! is a suffix of any stop, the second case cannot occur with that stop, and the first condition is enough for all of
//! them. A pattern has such a stop if one of its texts contains, before its last character, no character with which a
//! text of the pattern may end: `/\s*\n/` has a single line break, `/<[a-z]+>/` has `<a>`.

use maskwright_grammar::{CharSet, Diagnostic, Expr, ExprId, GrammarBuilder, Span};

/// Returns the texts of which no proper prefix matches as well.
pub(crate) fn shortest(whole: ExprId, builder: &mut GrammarBuilder) -> ExprId {
    let (any, more) = (builder.class(CharSet::all()), builder.any_text());
    let longer = builder.seq([whole, any, more]);
    let not_longer = builder.not(longer);
    builder.and([whole, not_longer])
}

/// Returns the texts of the body before the first stop that follows a match of the body.
pub(crate) fn before(body: ExprId, stop: &str, builder: &mut GrammarBuilder) -> ExprId {
    let text = builder.bytes(stop.as_bytes());
    before_one_of(body, text, &[stop], builder)
}

/// Like [`before`], for a stop that is not a single text. Returns `None` if it is neither a choice of texts nor has a
/// text that no other one overlaps, or if it may match the empty text.
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

/// Returns the texts of the body before the first stop. The stop is one of `stops`; if none are listed, no other stop
/// overlaps it.
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

/// Returns the prefixes of `stops` whose rest is a proper prefix of `stop`: after such a prefix, another stop would be
/// complete before this one is.
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

/// Checks whether the empty text matches. Returns `true` where that is unclear.
fn may_be_empty(expr: ExprId, builder: &GrammarBuilder) -> bool {
    match builder.expr(expr) {
        Expr::Bytes(_) | Expr::Class(_) => false,
        Expr::Seq(parts) => parts.iter().all(|part| may_be_empty(*part, builder)),
        Expr::Alt(parts) => parts.iter().any(|part| may_be_empty(*part, builder)),
        Expr::Repeat { body, min, .. } => *min == 0 || may_be_empty(*body, builder),
        _ => true,
    }
}

/// Returns a superset of the characters with which a text may end, or `None` where that is unclear.
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

/// Checks whether some text contains no character of `last`. With `is_end`, its last character is exempt, and must
/// exist. Returns `false` where that is unclear.
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
        // At the end one round is enough; elsewhere no round is needed if the minimum is 0.
        Expr::Repeat { body, min, .. } => match (*min, is_end) {
            (0, false) => true,
            (0 | 1, _) => ends_first(*body, is_end, last, builder),
            (_, false) => ends_first(*body, false, last, builder),
            (_, true) => ends_first(*body, false, last, builder) && ends_first(*body, is_end, last, builder),
        },
        Expr::Seq(parts) if !is_end => parts.iter().all(|part| ends_first(*part, false, last, builder)),
        // One part has the last character; the parts after it are empty.
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

/// Returns the length in bytes, if all texts have the same length.
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

/// Returns the warning that every `stop` gets.
pub(crate) fn warning(stop: &str, span: Span) -> Diagnostic {
    let (message, help) = if stop.is_empty() {
        ("an empty `stop` does nothing: the end of the text ends the whole text", "leave it out")
    } else {
        (
            "nothing is removed after the rule: the stop is not part of the text",
            "write `suffix=…` to have it in the text",
        )
    };
    Diagnostic::warning(span, message).with_help(help)
}
