//! How much work reading is. Readers look for the wish to stop at every step of theirs, and looks are counted; time would depend on who else
//! works on the machine, and a bound that is never met shows nothing.

use maskwright_automata::looks;
use maskwright_frontend::ebnf::MAX_REMARKS;
use maskwright_grammar::Diagnostic;

/// So many steps are taken for a byte, and for a text as such.
const STEPS: (usize, usize) = (12, 10_000);

/// Reads a text, in no more steps than its length allows.
pub(crate) fn within_steps<T>(source: &str, read: impl FnOnce(&str) -> T) -> T {
    let before = looks();
    let result = read(source);
    let steps = looks().wrapping_sub(before) as usize;
    let shown: String = source.chars().take(40).collect();
    assert!(
        steps <= source.len() * STEPS.0 + STEPS.1,
        "{shown}… of {} bytes took {steps} steps",
        source.len()
    );
    result
}

/// Remarks are few, and each is about a place in the text.
pub(crate) fn check_remarks(source: &str, remarks: &[Diagnostic]) {
    assert!(remarks.len() <= MAX_REMARKS + 1, "{} remarks", remarks.len());
    for remark in remarks {
        let span = &remark.span;
        assert!(span.start <= span.end && span.end <= source.len(), "{remark:?}");
        assert!(!remark.render("text", source).is_empty());
    }
}
