//! Random constraints in other notations: regular expressions, EBNF, GBNF, Lark and structural tags.
//!
//! One tree is written in four notations. Each must have exact masks, compared with the oracle and with trying every
//! token, and all must have the same meaning.

use core::fmt::Write as _;

use maskwright::{Compiler, Constraint, MatchError, Matcher, TokenId};
use maskwright_oracle::generate::{self, Rng};
use maskwright_oracle::laws::{self, Case, Effort, Subject};
use maskwright_oracle::{Oracle, Tokens};
use serde_json::{Value, json};

use crate::find::Fault;
use crate::walk::{Tried, Walker, plan};

/// An expression that can be written in all notations.
#[derive(Clone, Debug)]
enum Tree {
    Word(&'static str),
    Class(&'static str),
    Seq(Vec<Tree>),
    Alt(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
    Rule(usize),
}

const WORDS: [&str; 8] = ["a", "b", "ab", "ba", "abc", "null", "10", "{}"];
const CLASSES: [&str; 5] = ["[ab]", "[a-c]", "[^a]", "[0-9]", "[é\\u0061]"];

fn tree(rng: &mut Rng, depth: usize, rules: usize) -> Tree {
    let leaf = |rng: &mut Rng| {
        if rng.one_in(3) {
            Tree::Class(CLASSES[rng.below(4)])
        } else {
            Tree::Word(WORDS[rng.below(WORDS.len())])
        }
    };
    if depth == 0 {
        return leaf(rng);
    }
    let some = |rng: &mut Rng| (0..2 + rng.below(2)).map(|_| tree(rng, depth - 1, rules)).collect();
    match rng.below(8) {
        0 => leaf(rng),
        1 | 2 => Tree::Seq(some(rng)),
        3 | 4 => Tree::Alt(some(rng)),
        5 if rules > 0 => Tree::Rule(rng.below(rules)),
        _ => {
            let min = rng.below(3) as u32;
            let max = if rng.one_in(2) { None } else { Some(min + 1 + rng.below(3) as u32) };
            Tree::Repeat(Box::new(tree(rng, depth - 1, rules)), min, max)
        }
    }
}

/// A notation for the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Regex,
    Ebnf,
    Gbnf,
    Lark,
}

impl Notation {
    fn write(self, tree: &Tree) -> String {
        let list = |parts: &[Tree], between: &str| {
            let parts: Vec<String> = parts.iter().map(|part| self.write(part)).collect();
            format!("({})", parts.join(between))
        };
        match tree {
            Tree::Word(word) if self == Self::Regex => word.replace('{', "\\{").replace('}', "\\}"),
            Tree::Word(word) => format!("\"{word}\""),
            Tree::Class(class) if self == Self::Lark => format!("/{class}/"),
            Tree::Class(class) => (*class).to_owned(),
            Tree::Seq(parts) => list(parts, if self == Self::Regex { "" } else { " " }),
            Tree::Alt(parts) => list(parts, "|"),
            Tree::Repeat(body, min, max) => {
                let max = max.map_or(String::new(), |max| max.to_string());
                format!("({}){{{min},{max}}}", self.write(body))
            }
            Tree::Rule(number) => format!("r{number}"),
        }
    }

    fn constraint(self, root: &Tree, rules: &[Tree]) -> Constraint {
        let (start, arrow) = if self == Self::Lark { ("start", ":") } else { ("root", " ::=") };
        let mut text = format!("{start}{arrow} {}\n", self.write(root));
        for (number, rule) in rules.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "r{number}{arrow} {}", self.write(rule));
        }
        match self {
            Self::Regex => Constraint::regex(self.write(root)),
            Self::Ebnf => Constraint::ebnf(text),
            Self::Gbnf => Constraint::gbnf(text),
            Self::Lark => Constraint::lark(text),
        }
    }
}

/// What a round has compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// The number of masks that were compared with trying every token.
    pub masks: u64,
    /// The number of walks.
    pub walks: u64,
    /// The number of constraints that were refused.
    pub refused: u64,
}

/// Checks one random tree in all notations. A fault comes with the constraint that has it.
pub fn grammars(compiler: &Compiler, seed: u64) -> Result<Tally, (Value, Fault)> {
    let mut rng = Rng::new(seed);
    let count = rng.below(3);
    let rules: Vec<Tree> = (0..count).map(|_| tree(&mut rng, 2, count)).collect();
    let root = tree(&mut rng, 3, count);
    let mut tally = Tally::default();
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut compiled = Vec::new();
    for notation in [Notation::Ebnf, Notation::Gbnf, Notation::Lark, Notation::Regex] {
        if notation == Notation::Regex && count > 0 {
            continue;
        }
        let constraint = notation.constraint(&root, &rules);
        let name = json!(format!("{constraint:?}"));
        let Ok(bound) = compiler.compile(&constraint) else {
            tally.refused += 1;
            continue;
        };
        let mut walker = Walker::new(&bound);
        for tried in [Tried::None, Tried::All] {
            let text = walker
                .walk(&plan(&mut rng, tried), &mut rng, &mut None)
                .map_err(|fault| (name.clone(), fault))?;
            tally.walks += 1;
            texts.extend(text);
        }
        tally.masks += walker.masks;
        obey_laws(compiler, &constraint, || bound.matcher(), &mut rng)
            .map_err(|fault| (name.clone(), fault))?;
        compiled.push((name, bound));
    }
    let changed: Vec<Vec<u8>> = texts.iter().map(|text| generate::mutate(&mut rng, text)).collect();
    for text in texts.iter().chain(&changed) {
        let accepts = |bound: &maskwright::CompiledConstraint| {
            let mut matcher = bound.matcher();
            matcher.accept_bytes(text).is_ok() && matcher.is_accepting()
        };
        let Some((first, rest)) = compiled.split_first() else { break };
        for other in rest {
            if accepts(&first.1) != accepts(&other.1) {
                let what = format!("{} and {} disagree about {}", first.0, other.0, text.escape_ascii());
                return Err((other.0.clone(), Fault::Mask(what)));
            }
        }
    }
    Ok(tally)
}

/// Checks the laws of the oracle, which knows only the grammar.
fn obey_laws(
    compiler: &Compiler,
    constraint: &Constraint,
    fresh: impl Fn() -> Matcher,
    rng: &mut Rng,
) -> Result<(), Fault> {
    /// The maximum number of steps for one set. If it takes more to find out whether a set is empty, the oracle is not
    /// asked.
    const LIMIT: u64 = 100_000;
    let Ok((grammar, _)) = compiler.grammar(constraint) else { return Ok(()) };
    let Ok(oracle) = Oracle::with_limit(&grammar, LIMIT) else { return Ok(()) };
    let vocabulary = compiler.vocabulary();
    let tokens = Tokens::new(vocabulary.size(), vocabulary.ordinary().map(|(token, bytes)| (token.0, bytes)))
        .with_eos(vocabulary.eos().iter().map(|token| token.0));
    let case = Case::new("a random grammar", &oracle, &tokens);
    let effort = Effort { length: 8, rounds: 1, accepts: 400 };
    laws::masks_are_exact(&case, &|| Engine(fresh()), rng, &effort).map_err(Fault::Mask)?;
    Ok(())
}

/// A matcher with the interface of the laws.
struct Engine(Matcher);

impl Subject for Engine {
    fn fill(&mut self, words: &mut [u32]) {
        self.0.fill_mask(words).expect("the buffer is large enough");
    }
    fn accept(&mut self, token: u32) -> bool {
        let accepted = self.0.accept(TokenId(token));
        assert_ne!(accepted, Err(MatchError::TooAmbiguous), "the limits are made for worse than this");
        accepted.is_ok()
    }
    fn accept_bytes(&mut self, bytes: &[u8]) -> bool {
        self.0.accept_bytes(bytes).is_ok()
    }
    fn rollback(&mut self, count: usize) -> bool {
        self.0.rollback(count).is_ok()
    }
    fn fork(&self) -> Self {
        Self(self.0.fork())
    }
    fn reset(&mut self) {
        self.0.reset();
    }
    fn is_accepting(&mut self) -> bool {
        self.0.is_accepting()
    }
}

/// Checks one random structural tag.
pub fn tags(compiler: &Compiler, seed: u64) -> Result<Tally, (Value, Fault)> {
    let mut rng = Rng::new(seed);
    let tag = json!({"type": "structural_tag", "format": format(&mut rng, 3)});
    let mut tally = Tally::default();
    let Ok(bound) = compiler.compile(&Constraint::structural_tag(tag.to_string())) else {
        tally.refused += 1;
        return Ok(tally);
    };
    let mut walker = Walker::new(&bound);
    for tried in [Tried::None, Tried::All, Tried::Joints] {
        let text =
            walker.walk(&plan(&mut rng, tried), &mut rng, &mut None).map_err(|fault| (tag.clone(), fault))?;
        tally.walks += 1;
        if let Some(text) = text {
            let mut matcher = bound.matcher();
            if matcher.accept_bytes(&text).is_err() || !matcher.is_accepting() {
                return Err((tag, Fault::NotRead(text.escape_ascii().to_string())));
            }
        }
    }
    tally.masks += walker.masks;
    Ok(tally)
}

fn format(rng: &mut Rng, depth: usize) -> Value {
    let some = |rng: &mut Rng| (0..=rng.below(3)).map(|_| format(rng, depth - 1)).collect::<Vec<_>>();
    match rng.below(if depth == 0 { 5 } else { 12 }) {
        0 => json!({"type": "const_string", "value": WORDS[rng.below(WORDS.len())]}),
        1 => json!({"type": "regex", "pattern": Notation::Regex.write(&tree(rng, 2, 0))}),
        2 | 3 => json!({"type": "json_schema", "json_schema": crate::schema::random(rng)}),
        4 => json!({"type": "any_text"}),
        5 => json!({"type": "sequence", "elements": some(rng)}),
        6 => json!({"type": "or", "elements": some(rng)}),
        7 => {
            let kind = ["optional", "star", "plus"][rng.below(3)];
            json!({"type": kind, "content": format(rng, depth - 1)})
        }
        8 => tag(rng, depth, "<a>"),
        9 => json!({
            "type": "triggered_tags", "triggers": ["<"], "tags": [tag(rng, depth, "<a>"), tag(rng, depth, "<b>")],
            "at_least_one": rng.one_in(2), "stop_after_first": rng.one_in(2),
        }),
        10 => json!({
            "type": "tags_with_separator", "tags": [tag(rng, depth, "<a>"), tag(rng, depth, "<b>")], "separator": ",",
            "at_least_one": rng.one_in(2), "stop_after_first": rng.one_in(2),
        }),
        _ => {
            json!({"type": "grammar", "grammar": format!("root ::= {}\n", Notation::Ebnf.write(&tree(rng, 2, 0)))})
        }
    }
}

fn tag(rng: &mut Rng, depth: usize, begin: &str) -> Value {
    let end = ["</a>", "|"][rng.below(2)];
    json!({"type": "tag", "begin": begin, "content": format(rng, depth - 1), "end": end})
}
