//! Random grammars: what lowering folds, joins, flattens and leaves out must not change the language.
//!
//! The plain twin takes the document apart into productions of the simplest kind, one for every node, and
//! never touches the builder: `x{2,3}` becomes `x x | x x x`, `x*` becomes `s ::= "" | x s`. Both judge every
//! text over two letters up to a small length. GBNF and Lark must say the same of the same grammars.

use std::collections::BTreeSet;

use maskwright_frontend::ebnf::{
    self, Options,
    ast::{Alternation, Atom, Document},
};
use maskwright_frontend::{gbnf, json_schema, lark};
use maskwright_grammar::Grammar;

use crate::recognize;

const LETTERS: [u8; 2] = *b"ab";
const LONGEST: usize = 4;
const GRAMMARS: u64 = 250;

#[test]
fn lowering_keeps_the_language() {
    let (mut good, mut warned, mut empty, mut accepted) = (0, 0, 0, 0);
    for seed in 1..=GRAMMARS {
        let source = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)).grammar();
        let document =
            ebnf::parse(&source, &Options::default()).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
        let twin = Twin::new(&document);
        let others = [as_gbnf(&source), as_lark(&source)];
        match ebnf::lower(&document, &Options::default()) {
            Ok((grammar, warnings)) => {
                good += 1;
                assert!(others.iter().all(Option::is_some), "{source}");
                warned += usize::from(!warnings.is_empty());
                for text in all_texts() {
                    let expected = twin.matches(&text);
                    accepted += usize::from(expected);
                    let shown = String::from_utf8_lossy(&text);
                    for grammar in [&grammar].into_iter().chain(others.iter().flatten()) {
                        assert_eq!(
                            recognize::matches(grammar, &text),
                            expected,
                            "{shown:?}\n{source}\n{grammar}"
                        );
                    }
                }
            }
            // Nothing else can be wrong with these grammars.
            Err(errors) => {
                empty += 1;
                assert!(others.iter().all(Option::is_none), "{source}");
                assert!(
                    errors[0].message.starts_with("no text can match rule `root`"),
                    "{source}\n{errors:?}"
                );
                assert!(all_texts().iter().all(|text| !twin.matches(text)), "{source}");
            }
        }
    }
    // The mixture must exercise every way out, or the test says little.
    assert!(good > 150 && warned > 25 && empty > 5 && accepted > 1000, "{good} {warned} {empty} {accepted}");
}

/// The same grammar in the notation of llama.cpp; `None` if nothing can match it.
fn as_gbnf(source: &str) -> Option<Grammar> {
    let source = source.replace('\'', "\"");
    gbnf::grammar(&source, &Options::default()).ok().map(|(grammar, _)| grammar)
}

/// The same grammar in Lark, where classes are patterns; `None` if nothing can match it.
fn as_lark(source: &str) -> Option<Grammar> {
    let source = source.replace('\'', "\"").replace("::=", ":").replace('[', "/[").replace(']', "]/");
    let options = lark::Options { start: "root".into(), ..lark::Options::default() };
    lark::grammar(&source, &options, &json_schema::Options::default()).ok().map(|(grammar, _)| grammar)
}

fn all_texts() -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..LONGEST {
        let to = texts.len();
        for i in from..to {
            texts.extend(LETTERS.map(|letter| [&*texts[i], &[letter]].concat()));
        }
        from = to;
    }
    texts
}

/// xorshift64*: random enough, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    fn grammar(&mut self) -> String {
        ["root", "x", "y"].map(|name| format!("{name} ::= {}\n", self.alternation(3))).concat()
    }

    fn alternation(&mut self, depth: u32) -> String {
        let count = 1 + self.roll(3);
        (0..count).map(|_| self.sequence(depth)).collect::<Vec<_>>().join(" | ")
    }

    fn sequence(&mut self, depth: u32) -> String {
        let count = self.roll(4);
        (0..count).map(|_| self.atom(depth) + self.repeat()).collect::<Vec<_>>().join(" ")
    }

    fn atom(&mut self, depth: u32) -> String {
        let plain = ["\"\"", "\"a\"", "\"b\"", "'ab'", "[a]", "[ab]", "[^a]", "root", "x", "y"];
        match self.roll(if depth == 0 { 10 } else { 14 }) {
            pick @ 0..10 => plain[usize::try_from(pick).unwrap_or(0)].to_owned(),
            _ => format!("({})", self.alternation(depth - 1)),
        }
    }

    fn repeat(&mut self) -> &'static str {
        match self.roll(14) {
            0 => "*",
            1 => "+",
            2 | 3 => "?",
            4 => "{1}",
            5 => "{0}",
            6 => "{2,3}",
            7 => "{2,}",
            _ => "",
        }
    }
}

/// Productions, by the number of what they define; the first number is the root.
struct Twin {
    productions: Vec<Vec<Vec<Symbol>>>,
}

#[derive(Clone)]
enum Symbol {
    /// One of these letters.
    Letter(Vec<u8>),
    Defined(usize),
}

impl Twin {
    fn new(document: &Document) -> Self {
        let names: Vec<&str> = document.rules.iter().map(|rule| &*rule.name).collect();
        let mut twin = Self { productions: vec![Vec::new(); names.len()] };
        for (i, rule) in document.rules.iter().enumerate() {
            twin.productions[i] = twin.alternatives(&rule.body, &names);
        }
        twin
    }

    fn alternatives(&mut self, alternation: &Alternation, names: &[&str]) -> Vec<Vec<Symbol>> {
        let mut alternatives = Vec::new();
        for sequence in &alternation.alternatives {
            let mut symbols = Vec::new();
            for item in &sequence.items {
                let body = self.atom(&item.atom, names);
                symbols.push(match item.repeat {
                    None => body,
                    Some(repeat) => self.repeat(&body, repeat.min, repeat.max),
                });
            }
            alternatives.push(symbols);
        }
        alternatives
    }

    fn atom(&mut self, atom: &Atom, names: &[&str]) -> Symbol {
        match atom {
            Atom::Literal(text) => {
                let letters = text.bytes().map(|letter| Symbol::Letter(vec![letter])).collect();
                self.define(vec![letters])
            }
            Atom::Class(set) => Symbol::Letter(
                LETTERS.into_iter().filter(|letter| set.contains(char::from(*letter))).collect(),
            ),
            Atom::Any => Symbol::Letter(LETTERS.into()),
            Atom::Token(_) | Atom::Dispatch(_) | Atom::Quoted(_) => unreachable!("the dice know no macros"),
            Atom::Rule(name) => Symbol::Defined(
                names.iter().position(|other| *other == &**name).expect("the dice know the names"),
            ),
            Atom::Group(inner) => {
                let alternatives = self.alternatives(inner, names);
                self.define(alternatives)
            }
        }
    }

    fn repeat(&mut self, body: &Symbol, min: u32, max: Option<u32>) -> Symbol {
        let times = |count: u32| vec![body.clone(); count as usize];
        let Some(max) = max else {
            let Symbol::Defined(star) = self.define(Vec::new()) else { unreachable!("just defined") };
            self.productions[star] = vec![Vec::new(), vec![body.clone(), Symbol::Defined(star)]];
            let mut symbols = times(min);
            symbols.push(Symbol::Defined(star));
            return self.define(vec![symbols]);
        };
        self.define((min..=max).map(times).collect())
    }

    fn define(&mut self, alternatives: Vec<Vec<Symbol>>) -> Symbol {
        self.productions.push(alternatives);
        Symbol::Defined(self.productions.len() - 1)
    }

    /// Adds facts "this matches from here to there" until there are no more.
    fn matches(&self, text: &[u8]) -> bool {
        let mut facts: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
        loop {
            let before = facts.len();
            for (defined, alternatives) in self.productions.iter().enumerate() {
                for start in 0..=text.len() {
                    for symbols in alternatives {
                        for end in ends(symbols, start, text, &facts) {
                            facts.insert((defined, start, end));
                        }
                    }
                }
            }
            if facts.len() == before {
                return facts.contains(&(0, 0, text.len()));
            }
        }
    }
}

fn ends(
    symbols: &[Symbol],
    start: usize,
    text: &[u8],
    facts: &BTreeSet<(usize, usize, usize)>,
) -> BTreeSet<usize> {
    symbols.iter().fold(BTreeSet::from([start]), |starts, symbol| {
        let step = |&start: &usize| match symbol {
            Symbol::Letter(letters) => match text.get(start) {
                Some(letter) if letters.contains(letter) => vec![start + 1],
                _ => vec![],
            },
            Symbol::Defined(defined) => facts
                .range((*defined, start, 0)..=(*defined, start, text.len()))
                .map(|(_, _, end)| *end)
                .collect(),
        };
        starts.iter().flat_map(step).collect()
    })
}
