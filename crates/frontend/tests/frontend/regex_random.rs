//! Random patterns: the lowered grammar against two judges.
//!
//! The first is the definition of what a pattern matches, a matcher that tries everything: for a part of a
//! pattern and a place in a text it finds all places where a match of that part can end. Anchors and
//! look-around are then what the books say they are, and nothing is shared with the lowering but the parser.
//! The second judge is the `regex` crate, which shares nothing but Unicode tables; it knows no look-around,
//! so its patterns are about syntax and classes.

use std::collections::BTreeSet;

use maskwright_automata::Limits;
use maskwright_frontend::regex::{Ast, Dialect, Kind, Look, Options, Place, grammar, parse};

use crate::regex_support;

/// All places where a match that begins at `from` can end.
fn ends(ast: &Ast, text: &[char], from: usize) -> BTreeSet<usize> {
    let here = |holds: bool| holds.then_some(from).into_iter().collect();
    match ast.kind() {
        Kind::Empty => here(true),
        Kind::Char(c) => (text.get(from) == Some(c)).then_some(from + 1).into_iter().collect(),
        Kind::Class(set) => {
            text.get(from).is_some_and(|&c| set.contains(c)).then_some(from + 1).into_iter().collect()
        }
        Kind::Concat(parts) => parts.iter().fold(BTreeSet::from([from]), |places, part| {
            places.into_iter().flat_map(|place| ends(part, text, place)).collect()
        }),
        Kind::Alt(parts) => parts.iter().flat_map(|part| ends(part, text, from)).collect(),
        Kind::Repeat { body, min, max } => {
            let round = |places: &BTreeSet<usize>| -> BTreeSet<usize> {
                places.iter().flat_map(|&place| ends(body, text, place)).collect()
            };
            let mut places = BTreeSet::from([from]);
            for _ in 0..*min {
                places = round(&places);
            }
            let mut all = places.clone();
            // Every useful round reads at least one character.
            for _ in 0..max.map_or(text.len(), |max| (max - min) as usize) {
                places = round(&places);
                all.extend(&places);
            }
            all
        }
        Kind::Place(place) => here(holds(place, text, from)),
        Kind::Look(Look { ahead: true, negated }, body) => {
            here(ends(body, text, from).is_empty() == *negated)
        }
        Kind::Look(Look { ahead: false, negated }, body) => {
            let found = (0..=from).any(|start| ends(body, text, start).contains(&from));
            here(found != *negated)
        }
    }
}

fn holds(place: &Place, text: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| text[at]);
    let after = text.get(at).copied();
    match place {
        Place::TextStart => before.is_none(),
        Place::TextEnd => after.is_none(),
        Place::LineStart => before.is_none_or(|c| c == '\n'),
        Place::LineEnd => after.is_none_or(|c| c == '\n'),
        Place::Word { word, holds } => {
            let is_word = |c: Option<char>| usize::from(c.is_some_and(|c| word.contains(c)));
            holds[2 * is_word(before) + is_word(after)]
        }
    }
}

fn matches(ast: &Ast, text: &[char], anchored: bool) -> bool {
    if anchored {
        ends(ast, text, 0).contains(&text.len())
    } else {
        (0..=text.len()).any(|start| !ends(ast, text, start).is_empty())
    }
}

/// A linear congruential generator: tests must fail the same way twice.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn pattern(&mut self, depth: usize) -> String {
        let branches: Vec<String> = (0..=self.below(3) / 2).map(|_| self.sequence(depth)).collect();
        branches.join("|")
    }

    fn sequence(&mut self, depth: usize) -> String {
        (0..self.below(4)).map(|_| self.repeated(depth)).collect()
    }

    fn repeated(&mut self, depth: usize) -> String {
        let atom = self.atom(depth);
        let repetition = self.pick(&["", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"]);
        format!("{atom}{repetition}")
    }

    fn atom(&mut self, depth: usize) -> String {
        if depth > 0 && self.below(3) == 0 {
            let open = self.pick(&["(?:", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!"]);
            return format!("{open}{})", self.pattern(depth - 1));
        }
        self.pick(&[
            "a",
            "b",
            "é",
            "-",
            "\\n",
            "a",
            "[ab]",
            "[^a]",
            ".",
            "\\w",
            "\\W",
            "(?i:É)",
            "^",
            "$",
            "(?m:^)",
            "(?m:$)",
            "\\b",
            "\\B",
            "\\<",
            "\\b{end-half}",
        ])
        .into()
    }
}

/// All texts of at most `longest` characters.
fn texts(letters: &[char], longest: usize) -> Vec<Vec<char>> {
    let mut all = vec![Vec::new()];
    let mut first = 0;
    for _ in 0..longest {
        let last = all.len();
        for at in first..last {
            for &letter in letters {
                let mut text = all[at].clone();
                text.push(letter);
                all.push(text);
            }
        }
        first = last;
    }
    all
}

#[test]
fn lowering_agrees_with_the_definition() {
    let texts = texts(&['a', 'b', '-', 'é', '\n'], 4);
    let mut random = Random(7);
    let (mut lowered, mut with_places, mut refused) = (0, 0, 0);
    for round in 0..2500 {
        let pattern = random.pattern(1 + round % 3);
        let anchored = round % 4 != 3;
        let dialect =
            if round % 2 == 0 || pattern.contains(['<', '{']) { Dialect::Rust } else { Dialect::Ecma };
        // Automata of Unicode classes are large; a few will do.
        let options = Options { anchored, dialect, ascii: round % 16 > 0, ..Options::default() };
        let Ok(ast) = parse(&pattern, &options) else {
            refused += 1;
            continue;
        };
        let grammar = match grammar(&pattern, &options) {
            Ok(grammar) => grammar,
            Err(remark) => {
                let known = ["unbounded repetition", "in one pattern", "steps to resolve"];
                assert!(known.iter().any(|text| remark.message.contains(text)), "{pattern}: {remark}");
                refused += 1;
                continue;
            }
        };
        lowered += 1;
        with_places +=
            usize::from(["^", "$", "\\b", "\\B", "(?=", "(?!", "(?<"].iter().any(|s| pattern.contains(s)));
        let dfa = regex_support::automaton(&grammar, &Limits::default())
            .unwrap_or_else(|error| panic!("`{pattern}`, {options:?}: {error}"));
        for text in &texts {
            let bytes: String = text.iter().collect();
            assert_eq!(
                dfa.matches(bytes.as_bytes()),
                matches(&ast, text, anchored),
                "`{pattern}` on {bytes:?}, {options:?}, round {round}"
            );
        }
    }
    assert!(
        lowered > 1500 && with_places > 700,
        "{lowered} lowered, {with_places} with places, {refused} refused"
    );
}

/// Patterns full of syntax that the Rust dialect shares with the `regex` crate.
fn rich_pattern(random: &mut Random, depth: usize) -> String {
    let mut pattern = String::new();
    for _ in 0..=random.below(4) {
        if depth > 0 && random.below(3) == 0 {
            let open =
                random.pick(&["(", "(?:", "(?i:", "(?s:", "(?P<n>", "(?i-s:", "(?x: ", "(?U:", "[", "[^"]);
            if open.starts_with('[') {
                pattern += open;
                pattern += &rich_class(random, depth);
                pattern.push(']');
            } else {
                // The `regex` crate wants names to differ.
                let open = if open.starts_with("(?P") {
                    format!("(?P<n{}>", random.below(1 << 30))
                } else {
                    open.into()
                };
                pattern += &open;
                pattern += &rich_pattern(random, depth - 1);
                pattern.push(')');
            }
        } else {
            pattern += random.pick(&[
                "a",
                "B",
                "é",
                "ß",
                "k",
                "7",
                "_",
                "-",
                ".",
                r"\.",
                r"\d",
                r"\D",
                r"\w",
                r"\W",
                r"\s",
                r"\S",
                r"\n",
                r"\t",
                r"\x41",
                r"\x{e9}",
                r"\u00e9",
                r"\u{1F600}",
                r"\pL",
                r"\p{Greek}",
                r"\P{Lu}",
                "^",
                "$",
                r"\A",
                r"\z",
                "(?m:^)",
                "(?m:$)",
                "|",
                "|",
                "(?i)",
                "(?s)",
                r"\-",
                r"\]",
                r"\&",
                " ",
                "[[:alpha:]]",
                "(?-i)",
            ]);
            continue;
        }
        pattern += random.pick(&["", "", "*", "+?", "?", "{2}", "{1,}", "{0,2}?"]);
    }
    pattern
}

fn rich_class(random: &mut Random, depth: usize) -> String {
    let mut class = String::new();
    for _ in 0..=random.below(3) {
        class += random.pick(&[
            "a",
            "a-f",
            "é-ü",
            r"\d",
            r"\W",
            r"\]",
            r"\x41-\x5A",
            "[:digit:]",
            "[[:^punct:]]",
            "&&[a-z7]",
            "--k",
            "~~[k-z]",
            r"\p{L}",
            "K",
            "ſ",
            "^",
            ".",
        ]);
        if depth > 1 && random.below(4) == 0 {
            class.push('[');
            class += &rich_class(random, depth - 1);
            class.push(']');
        }
    }
    class
}

#[test]
fn the_rust_dialect_agrees_with_the_regex_crate() {
    let letters: Vec<char> = "aABkKſ\u{212A}éÉßüz7٣λ_-. \n\t]&^\u{1F600}\u{1F601}".chars().collect();
    let mut random = Random(11);
    let (mut compared, mut accepted) = (0, 0);
    for round in 0..2000 {
        let pattern = rich_pattern(&mut random, 1 + round % 3);
        let theirs = regex::Regex::new(&format!(r"\A(?:{pattern})\z"));
        let ours = grammar(&pattern, &Options::default());
        let (theirs, ours) = match (theirs, ours) {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (Err(_), Err(_)) => continue,
            (Ok(_), Err(remark)) if remark.message.contains("unbounded repetition") => continue,
            (Ok(_), Err(remark)) => panic!("only we refuse `{pattern}`: {remark}"),
            (Err(error), Ok(_)) => panic!("only they refuse `{pattern}`: {error}"),
        };
        let Ok(dfa) = regex_support::automaton(&ours, &Limits::default()) else { continue };
        compared += 1;
        for _ in 0..60 {
            let text: String = (0..random.below(5)).map(|_| letters[random.below(letters.len())]).collect();
            let expected = theirs.is_match(&text);
            accepted += usize::from(expected);
            assert_eq!(dfa.matches(text.as_bytes()), expected, "`{pattern}` on {text:?}");
        }
    }
    assert!(compared > 1200 && accepted > 2500, "{compared} compared, {accepted} accepted");
}
