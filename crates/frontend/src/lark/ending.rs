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

use maskwright_grammar::{CharSet, Diagnostic, ExprId, GrammarBuilder, Span};

/// The texts of which no proper beginning matches as well.
pub(super) fn shortest(whole: ExprId, builder: &mut GrammarBuilder) -> ExprId {
    let (any, more) = (builder.class(CharSet::all()), builder.any_text());
    let longer = builder.seq([whole, any, more]);
    let not_longer = builder.not(longer);
    builder.and([whole, not_longer])
}

/// The texts of the body before the first stop behind a match of the body.
pub(super) fn before(body: ExprId, stop: &str, builder: &mut GrammarBuilder) -> ExprId {
    let (text, more) = (builder.bytes(stop.as_bytes()), builder.any_text());
    let within = builder.seq([body, text, more]);
    let mut all = vec![body, builder.not(within)];
    for (at, _) in stop.char_indices().skip(1).filter(|(at, _)| stop.starts_with(&stop[*at..])) {
        let begun = builder.bytes(&stop.as_bytes()[..at]);
        let across = builder.seq([body, begun]);
        all.push(builder.not(across));
    }
    builder.and(all)
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
