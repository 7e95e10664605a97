//! Random grammars.
//!
//! A grammar has two kinds of rules. *Free* rules may call any rule, including themselves, in any place; they produce
//! left recursion, cycles and empty loops. *Word* rules call only later word rules, so they are regular and may be used
//! inside intersections, complements and JSON strings.

use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder, RuleId};

use super::Rng;
use crate::{Oracle, Unknown};

/// The properties of random grammars.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, written by name")]
pub struct Shape {
    /// The characters of literals and small classes.
    pub alphabet: Vec<char>,
    /// The number of rules that may call anything.
    pub free_rules: usize,
    /// Whether free rules call free rules. Without recursion the whole grammar is regular.
    pub recursion: bool,
    /// The number of regular rules.
    pub word_rules: usize,
    /// The nesting depth of expressions.
    pub depth: usize,
    /// Whether there are intersections and complements.
    pub booleans: bool,
    /// Whether there are JSON strings.
    pub json_strings: bool,
    /// Whether classes may contain characters outside the alphabet.
    pub wide_classes: bool,
    /// Whether some repetitions are counted in thousands.
    pub large_counts: bool,
    /// A limit for the lower bound of a repetition, and for the difference of its bounds.
    pub counts: usize,
    /// The greatest [ambiguity](crate::State::ambiguity) of a short text. Some grammars read every part of a text in
    /// every way; they are valid, but take seconds for each mask.
    pub ambiguity: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            alphabet: vec!['a', 'b', '"', '\\', 'é'],
            free_rules: 3,
            recursion: true,
            word_rules: 2,
            depth: 3,
            booleans: true,
            json_strings: true,
            wide_classes: true,
            large_counts: true,
            counts: 3,
            ambiguity: 150,
        }
    }
}

/// Returns a random grammar that has at least one text.
pub fn grammar(rng: &mut Rng, shape: &Shape) -> Grammar {
    /// A grammar whose emptiness takes more steps than this is not small.
    const LIMIT: u64 = 100_000;
    loop {
        let Some(grammar) = any_grammar(rng, shape) else { continue };
        if let Ok(oracle) = Oracle::with_limit(&grammar, LIMIT)
            && oracle.is_viable(&oracle.start())
            && is_tame(rng, shape, &oracle) == Ok(true)
        {
            return grammar;
        }
    }
}

/// Checks whether a random prefix stays within the allowed ambiguity, and whether each next byte can be decided.
fn is_tame(rng: &mut Rng, shape: &Shape, oracle: &Oracle) -> Result<bool, Unknown> {
    const LENGTH: usize = 12;
    let letters = shape.alphabet.iter().collect::<String>().into_bytes();
    let mut state = oracle.start();
    for _ in 0..LENGTH {
        let (mut likely, mut others) = (Vec::new(), Vec::new());
        for byte in 0..=u8::MAX {
            let next = oracle.try_step(&state, byte)?;
            if oracle.is_viable(&next) {
                let among = if letters.contains(&byte) { &mut likely } else { &mut others };
                among.push(next);
            }
        }
        let Some(next) = rng.choose(&likely).or_else(|| others.first()) else { break };
        state = next.clone();
        if state.ambiguity() > shape.ambiguity {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any_grammar(rng: &mut Rng, shape: &Shape) -> Option<Grammar> {
    let mut builder = GrammarBuilder::new();
    let free: Vec<RuleId> =
        (0..shape.free_rules.max(1)).map(|i| builder.declare(&format!("free{i}"))).collect();
    let words: Vec<RuleId> = (0..shape.word_rules).map(|i| builder.declare(&format!("word{i}"))).collect();
    let mut writer = Writer { rng, shape, builder, free, words };
    for i in 0..writer.free.len() {
        let callable = if shape.recursion { Callable::All } else { Callable::WordsFrom(0) };
        let expr = writer.expr(shape.depth, callable);
        writer.builder.define(writer.free[i], expr);
    }
    for i in 0..writer.words.len() {
        let expr = writer.expr(shape.depth, Callable::WordsFrom(i + 1));
        writer.builder.define(writer.words[i], expr);
    }
    let root = writer.free[0];
    writer.builder.finish(root).ok()
}

/// The rules that an expression may call.
#[derive(Clone, Copy)]
enum Callable {
    All,
    WordsFrom(usize),
}

impl Callable {
    /// Returns what the operand of an intersection, a complement or a JSON string may call.
    fn regular(self) -> Self {
        match self {
            Self::All => Self::WordsFrom(0),
            Self::WordsFrom(_) => self,
        }
    }
}

struct Writer<'a> {
    rng: &'a mut Rng,
    shape: &'a Shape,
    builder: GrammarBuilder,
    free: Vec<RuleId>,
    words: Vec<RuleId>,
}

impl Writer<'_> {
    fn expr(&mut self, depth: usize, callable: Callable) -> ExprId {
        let Some(depth) = depth.checked_sub(1) else { return self.leaf(callable) };
        match self.rng.below(20) {
            // Numbers below 4, and everything that the shape excludes, give a leaf.
            4..=8 => {
                let parts = self.some(depth, callable);
                self.builder.seq(parts)
            }
            9..=12 => {
                let parts = self.some(depth, callable);
                self.builder.alt(parts)
            }
            13..=15 => self.repeat(depth, callable),
            16 | 17 if self.shape.booleans => self.boolean(depth, callable),
            18 if self.shape.json_strings => {
                let text = self.json_text(depth, callable.regular());
                self.builder.json_string(text)
            }
            _ => self.leaf(callable),
        }
    }

    fn some(&mut self, depth: usize, callable: Callable) -> Vec<ExprId> {
        (0..self.rng.below(2) + 2).map(|_| self.expr(depth, callable)).collect()
    }

    fn repeat(&mut self, depth: usize, callable: Callable) -> ExprId {
        let body = self.expr(depth, callable);
        let min = self.rng.below(self.shape.counts) as u32;
        // Not in word rules: an intersection of large counts takes the oracle minutes.
        if self.shape.large_counts && matches!(callable, Callable::All) && self.rng.one_in(8) {
            return self.builder.repeat(body, min, Some(min + 5000));
        }
        let max =
            if self.rng.one_in(2) { None } else { Some(min + self.rng.below(self.shape.counts) as u32) };
        self.builder.repeat(body, min, max)
    }

    fn json_text(&mut self, depth: usize, callable: Callable) -> ExprId {
        if self.shape.large_counts && self.rng.one_in(4) {
            let (character, min) = (self.class(), self.rng.below(3) as u32);
            return self.builder.repeat(character, min, Some(min + 5000));
        }
        let text = self.expr(depth, callable);
        if self.rng.one_in(3) {
            // Like `minLength` and `maxLength` beside a pattern: a window of lengths.
            let any = self.builder.class(CharSet::all());
            let min = self.rng.below(4) as u32;
            let max = if self.rng.one_in(4) { None } else { Some(min + self.rng.below(4) as u32) };
            let window = self.builder.repeat(any, min, max);
            return self.builder.and([text, window]);
        }
        text
    }

    fn boolean(&mut self, depth: usize, callable: Callable) -> ExprId {
        let callable = callable.regular();
        match self.rng.below(3) {
            0 => {
                let inner = self.expr(depth, callable);
                self.builder.not(inner)
            }
            1 => {
                let parts = self.some(depth, callable);
                self.builder.and(parts)
            }
            _ => {
                let (whole, hole) = (self.expr(depth, callable), self.expr(depth, callable));
                let rest = self.builder.not(hole);
                self.builder.and([whole, rest])
            }
        }
    }

    fn leaf(&mut self, callable: Callable) -> ExprId {
        match self.rng.below(12) {
            0 => self.builder.empty(),
            1..=4 => self.literal(),
            5..=7 => self.class(),
            _ => self.call(callable),
        }
    }

    fn literal(&mut self) -> ExprId {
        let text: String = (0..=self.rng.below(3)).filter_map(|_| self.letter()).collect();
        let mut bytes = text.as_bytes();
        if self.rng.one_in(20) {
            // A literal consists of bytes: it may end inside a character.
            bytes = &bytes[..bytes.len().saturating_sub(1)];
        }
        self.builder.bytes(bytes)
    }

    fn class(&mut self) -> ExprId {
        let mut ranges: Vec<(char, char)> =
            (0..=self.rng.below(2)).filter_map(|_| self.letter()).map(|c| (c, c)).collect();
        if self.shape.wide_classes && self.rng.one_in(3) {
            const WIDE: [(char, char); 5] =
                [('\0', '\u{1F}'), (' ', '~'), ('à', 'ÿ'), ('一', '龥'), ('\u{1_F300}', '\u{1_F64F}')];
            ranges.extend(self.rng.choose(&WIDE));
        }
        let set = CharSet::from_ranges(ranges);
        let set = if self.shape.wide_classes && self.rng.one_in(6) { set.complement() } else { set };
        self.builder.class(set)
    }

    fn call(&mut self, callable: Callable) -> ExprId {
        let rules: Vec<RuleId> = match callable {
            Callable::All => self.free.iter().chain(&self.words).copied().collect(),
            Callable::WordsFrom(first) => self.words.get(first..).unwrap_or_default().to_vec(),
        };
        match self.rng.choose(&rules) {
            Some(&rule) => self.builder.rule(rule),
            None => self.literal(),
        }
    }

    fn letter(&mut self) -> Option<char> {
        self.rng.choose(&self.shape.alphabet).copied()
    }
}
