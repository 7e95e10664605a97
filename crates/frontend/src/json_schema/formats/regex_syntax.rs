//! The format `regex`: a regular subset of the syntax of ECMA-262.

/// How deep groups nest.
const MAX_GROUP_DEPTH: usize = 2;

/// A pattern.
pub(super) fn regex() -> String {
    let mut inner = alternatives(&atom(None));
    for _ in 0..MAX_GROUP_DEPTH {
        inner = alternatives(&atom(Some(&inner)));
    }
    inner
}

/// Every text but some that are no pattern whatever the flags: they begin with a quantifier, end in a lone backslash, or have a bracket without
/// its partner.
pub(super) fn wide_regex() -> String {
    let free = r"[^()\[\]\\]*";
    let wrong = format!(r"(?:[*+?].*|(?:[^\\]|\\.)*\\|{free}\).*|{free}\([^)\\\[]*|{free}\[[^\]]*)");
    format!(r"(?!{wrong}$).*")
}

/// Terms, with bars between sequences of them.
fn alternatives(atom: &str) -> String {
    // The second number of a repetition is not below the first: by having more digits, or because the first is
    // 0 or 1.
    let count = r"\{(?:[0-9]{1,4}(?:,)?|[01],[1-9][0-9]{0,3}|[0-9],[1-9][0-9]{1,3}|[0-9]{2},[1-9][0-9]{2,3}|2,[2-9]|3,[3-9]|4,[4-9]|5,[5-9]|6,[6-9]|7,[7-9]|8,[89]|9,9)\}";
    let quantifier = format!(r"(?:(?:[*+?]|{count})\??)?");
    let term = format!(r"(?:{atom}{quantifier}|[\^$]|\\[bB])");
    format!(r"{term}*(?:\|{term}*)*")
}

/// What a quantifier may follow: a character, a class, an escape, a group.
fn atom(group: Option<&str>) -> String {
    // No `\0`: a digit must not follow it.
    let plain = r"[^\^$\\.*+?()\[\]{}|]";
    let escape = r"\\(?:[dDwWsStnrvf^$\\.*+?()\[\]{}|/]|x[0-9A-Fa-f]{2}|u[0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|u[Dd][0-7][0-9A-Fa-f]{2})";
    let class_escape = r"\\(?:[dDwWsStnrvf^$\\.*+?()\[\]{}|/-]|x[0-9A-Fa-f]{2})";
    let class = format!(r"\[\^?(?:{}|[^\\\]\[^-]|{class_escape})*-?\]", ranges());
    let group = group.map(|inner| format!(r"|\((?:\?[:=!])?{inner}\)")).unwrap_or_default();
    format!(r"(?:{plain}|\.|{escape}|{class}{group})")
}

/// Ranges of small letters, capital letters or digits whose end is not before their start.
fn ranges() -> String {
    let mut ways = Vec::with_capacity(62);
    for (first, last) in [(b'a', b'z'), (b'A', b'Z'), (b'0', b'9')] {
        for start in first..=last {
            ways.push(format!("{}-[{}-{}]", char::from(start), char::from(start), char::from(last)));
        }
    }
    format!("(?:{})", ways.join("|"))
}
