//! Lowers patterns and case-insensitive texts, using the regex frontend.

use maskwright_grammar::{Diagnostic, ExprId, GrammarBuilder, Span};

use crate::notation::remarks::Remarks;
use crate::regex;

/// Lowers a pattern. It applies only to the text of its terminal, so anchors and look-around behave as in a text that
/// consists of this terminal only; a warning says so.
pub(super) fn regex(
    pattern: &str,
    flags: &str,
    at: Option<usize>,
    span: Span,
    builder: &mut GrammarBuilder,
    warnings: &mut Remarks,
) -> Result<ExprId, Diagnostic> {
    if let Some(unknown) = flags.chars().find(|flag| !"imsux".contains(*flag)) {
        let remark = Diagnostic::error(span, format!("a pattern has no flag `{unknown}`"));
        return Err(remark.with_help("there are i, m, s, u and x"));
    }
    // Patterns use Unicode anyway.
    let flags: String = flags.chars().filter(|flag| *flag != 'u').collect();
    let prefix = if flags.is_empty() { String::new() } else { format!("(?{flags})") };
    let whole = format!("{prefix}{pattern}");
    let options = regex::Options::default();
    let lowered = regex::parse(&whole, &options).and_then(|ast| {
        if !ast.is_plain() {
            let message = "anchors, word boundaries and look-around see the text of their terminal alone";
            let help =
                "this is fine if it is intended; the text before and after the terminal is not considered";
            warnings.push(Diagnostic::warning(span, message).with_help(help));
        }
        regex::lower_ast(&ast, &options, builder)
    });
    lowered.map_err(|remark| moved(remark, at, prefix.len(), span))
}

/// Moves a remark about a pattern to its place in the source.
fn moved(mut remark: Diagnostic, at: Option<usize>, prefix: usize, span: Span) -> Diagnostic {
    let place = |offset: usize| at.map_or(span.start, |at| at + offset.saturating_sub(prefix));
    remark.span = Span::new(place(remark.span.start), place(remark.span.end));
    if remark.help.is_none() {
        remark = remark.with_help("fix the pattern; docs/regex.md describes what a pattern can contain");
    }
    remark
}

/// Returns a text whose letters may have either case.
pub(super) fn any_case(text: &str, span: Span, builder: &mut GrammarBuilder) -> Result<ExprId, Diagnostic> {
    let options = regex::Options { ignore_case: true, ..regex::Options::default() };
    let pattern: Vec<String> = text.chars().map(|c| format!("\\u{{{:x}}}", u32::from(c))).collect();
    let pattern = pattern.concat();
    regex::lower(&pattern, &options, builder).map_err(|mut remark| {
        remark.span = span;
        remark.with_help("write the text without the flag `i`")
    })
}
