//! The format `regex`: a regular subset of the syntax of ECMA-262.

/// The maximum nesting depth of groups.
const MAX_GROUP_DEPTH: usize = 2;

/// Returns the patterns of the subset.
pub(super) fn regex() -> String {
    let mut inner = alternatives(&atom(None));
    for _ in 0..MAX_GROUP_DEPTH {
        inner = alternatives(&atom(Some(&inner)));
    }
    inner
}

/// Returns all texts except some that are not a pattern under any flags: those that begin with a quantifier, end in a
/// lone backslash, or have an unmatched bracket.
pub(super) fn wide_regex() -> String {
    let free = r"[^()\[\]\\]*";
    let wrong = format!(r"(?:[*+?].*|(?:[^\\]|\\.)*\\|{free}\).*|{free}\([^)\\\[]*|{free}\[[^\]]*)");
    format!(r"(?!{wrong}$).*")
}

/// Returns sequences of terms, separated by bars.
fn alternatives(atom: &str) -> String {
    // The second number of a repetition is never below the first: it has more digits, or the first is 0 or 1, or both
    // are single digits in order.
    let count = r"\{(?:[0-9]{1,4}(?:,)?|[01],[1-9][0-9]{0,3}|[0-9],[1-9][0-9]{1,3}|[0-9]{2},[1-9][0-9]{2,3}|2,[2-9]|3,[3-9]|4,[4-9]|5,[5-9]|6,[6-9]|7,[7-9]|8,[89]|9,9)\}";
    let quantifier = format!(r"(?:(?:[*+?]|{count})\??)?");
    let term = format!(r"(?:{atom}{quantifier}|[\^$]|\\[bB])");
    format!(r"{term}*(?:\|{term}*)*")
}

/// Returns everything that a quantifier may follow: a character, a class, an escape, a group.
fn atom(group: Option<&str>) -> String {
    // `\0` is left out, because no digit may follow it.
    let plain = r"[^\^$\\.*+?()\[\]{}|]";
    let escape = r"\\(?:[dDwWsStnrvf^$\\.*+?()\[\]{}|/]|x[0-9A-Fa-f]{2}|u[0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|u[Dd][0-7][0-9A-Fa-f]{2})";
    let class_escape = r"\\(?:[dDwWsStnrvf^$\\.*+?()\[\]{}|/-]|x[0-9A-Fa-f]{2})";
    let class = format!(r"\[\^?(?:{}|[^\\\]\[^-]|{class_escape})*-?\]", ranges());
    let group = group.map(|inner| format!(r"|\((?:\?[:=!])?{inner}\)")).unwrap_or_default();
    format!(r"(?:{plain}|\.|{escape}|{class}{group})")
}

/// Returns ranges of lowercase letters, uppercase letters or digits whose end is not before their start.
fn ranges() -> String {
    let mut ways = Vec::with_capacity(62);
    for (first, last) in [(b'a', b'z'), (b'A', b'Z'), (b'0', b'9')] {
        for start in first..=last {
            ways.push(format!("{}-[{}-{}]", char::from(start), char::from(start), char::from(last)));
        }
    }
    format!("(?:{})", ways.join("|"))
}
