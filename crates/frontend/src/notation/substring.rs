//! `%regex { "substring_…": … }`: any run of adjacent chunks of a text.
//!
//! ```text
//! chunks  a b a b c      "", "a", "ab", "abab", "babc", … but not "aa" or "ac"
//! ```
//!
//! There are about n² runs of n chunks, so they are not listed. The *suffix automaton* (Blumer and others, 1985) of a
//! text has at most 2n states and reads exactly its substrings. Each state becomes a rule, and a text may end in every
//! state.

use std::collections::BTreeMap;

use maskwright_grammar::{ExprId, GrammarBuilder, RuleId};

/// Splits a text into characters.
pub(crate) fn chars(text: &str) -> Vec<Box<str>> {
    text.chars().map(|c| c.to_string().into()).collect()
}

/// Splits a text into words, runs of white space, and runs of other characters.
pub(crate) fn words(text: &str) -> Vec<Box<str>> {
    let sort = |c: char| (c.is_whitespace(), c.is_alphanumeric() || c == '_');
    let mut chunks: Vec<String> = Vec::new();
    let mut before = None;
    for c in text.chars() {
        match chunks.last_mut() {
            Some(chunk) if before == Some(sort(c)) => chunk.push(c),
            _ => chunks.push(c.into()),
        }
        before = Some(sort(c));
    }
    chunks.into_iter().map(Into::into).collect()
}

/// Returns the expression that matches every run of adjacent chunks, including the empty run.
pub(crate) fn lower(chunks: &[Box<str>], builder: &mut GrammarBuilder) -> ExprId {
    let states = states(chunks);
    let rules: Vec<RuleId> = states.iter().map(|_| builder.declare("substring")).collect();
    // The last state is built first, so that rules are defined before they are called where possible.
    for (state, rule) in states.iter().zip(&rules).rev() {
        let mut ways = vec![builder.empty()];
        for (chunk, &next) in &state.next {
            let (text, rest) = (builder.bytes(chunk.as_bytes()), builder.rule(rules[next]));
            ways.push(builder.seq([text, rest]));
        }
        let body = builder.alt(ways);
        builder.define(*rule, body);
    }
    builder.rule(rules[0])
}

/// A set of substrings that end at the same places of the text.
#[derive(Clone, Debug, Default)]
struct State<'t> {
    /// The length of the longest of them, in chunks.
    len: usize,
    /// The state of their longest suffix that ends at more places.
    link: Option<usize>,
    next: BTreeMap<&'t str, usize>,
}

/// Returns the suffix automaton of the chunks, built one chunk at a time. State 0 is the start.
fn states(chunks: &[Box<str>]) -> Vec<State<'_>> {
    let mut states = vec![State::default()];
    let mut last = 0;
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        let whole = states.len();
        states.push(State { len: states[last].len + 1, ..State::default() });
        let mut at = Some(last);
        while let Some(state) = at
            && !states[state].next.contains_key(&**chunk)
        {
            states[state].next.insert(chunk, whole);
            at = states[state].link;
        }
        states[whole].link = Some(match at {
            None => 0,
            Some(state) => suffix(&mut states, state, chunk),
        });
        last = whole;
    }
    states
}

/// Returns the state of the suffix that `chunk` makes of `from`. If that state also contains longer texts, the suffix
/// is split off into a new state.
fn suffix<'t>(states: &mut Vec<State<'t>>, from: usize, chunk: &'t str) -> usize {
    let next = states[from].next[chunk];
    if states[next].len == states[from].len + 1 {
        return next;
    }
    let copy = states.len();
    states.push(State { len: states[from].len + 1, ..states[next].clone() });
    states[next].link = Some(copy);
    let mut at = Some(from);
    while let Some(state) = at
        && states[state].next.get(chunk) == Some(&next)
    {
        states[state].next.insert(chunk, copy);
        at = states[state].link;
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(states: &[State<'_>], run: &[&str]) -> bool {
        let step = |at: usize, chunk: &&str| states[at].next.get(chunk).copied();
        run.iter().try_fold(0, step).is_some()
    }

    #[test]
    fn the_automaton_reads_the_runs_and_no_others() {
        for text in ["", "a", "abab", "aaaa", "abcabd", "abbaabba", "abacabadabacaba"] {
            let chunks = chars(text);
            let states = states(&chunks);
            assert!(states.len() <= 2 * chunks.len() + 1);
            let alphabet = ["a", "b", "c"];
            let mut runs: Vec<Vec<&str>> = vec![vec![]];
            for _ in 0..5 {
                for run in &runs {
                    assert_eq!(reads(&states, run), text.contains(&run.concat()), "{text} {run:?}");
                }
                runs = runs.iter().flat_map(|run| alphabet.map(|c| [&run[..], &[c]].concat())).collect();
            }
        }
    }

    #[test]
    fn chunks() {
        assert_eq!(words("foo bar.  baz"), ["foo", " ", "bar", ".", "  ", "baz"].map(Into::into));
        assert_eq!(chars("aé"), ["a", "é"].map(Into::into));
        assert!(words("").is_empty());
    }
}
