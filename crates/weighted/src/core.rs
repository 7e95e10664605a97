//! A grammar in the form that the parser uses: flat, and without useless parts.
//!
//! Symbols are numbers, first those with rules and then the terminals. All right sides are in one array, each followed
//! by an end mark, so a *dot* (a rule and how much of it has been read) is an index:
//!
//! ```text
//! S → NP VP        NP → Det N        dot    0    1    2    3    4    5
//!                                    symbol NP   VP   end  Det  N    end
//! ```
//!
//! Rules that derive nothing, that cannot be reached, or that have probability zero are left out; their probability
//! goes to the other rules of the same symbol. A pattern that matches the empty text, such as /a*/, becomes a symbol
//! with two rules: the empty text, and the pattern without it.

use maskwright_grammar::{Diagnostic, Span};

use crate::pcfg::{Pcfg, RuleId, Symbol, TerminalId, productive, reachable, takes_part};
use crate::terminal::Terminal;

/// The end of a right side.
pub(crate) const END: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Core {
    /// The number of symbols with rules.
    pub(crate) nonterminals: u32,
    pub(crate) terminals: u32,
    pub(crate) start: u32,
    pub(crate) rules: Vec<CoreRule>,
    /// The rules of each symbol.
    by_left: Vec<Vec<u32>>,
    /// The symbol after each dot.
    pub(crate) symbols: Vec<u32>,
    /// The rule of each dot.
    pub(crate) rule_of: Vec<u32>,
    /// Whether a symbol derives the empty text.
    pub(crate) nullable: Vec<bool>,
    /// Whether a symbol derives a nonempty text.
    pub(crate) nonempty: Vec<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct CoreRule {
    pub(crate) left: u32,
    /// The dot at its beginning.
    pub(crate) first: u32,
    pub(crate) length: u32,
    pub(crate) probability: f64,
    /// The corresponding rule of the source grammar, if there is one.
    pub(crate) source: Option<RuleId>,
}

impl Core {
    pub(crate) fn new(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        let productive = productive(pcfg);
        if !productive[pcfg.start().0 as usize] {
            let message = format!("the start symbol `{}` derives no text", pcfg.name(pcfg.start()));
            return Err(Diagnostic::error(Span::default(), message));
        }
        let reachable = reachable(pcfg, &productive);
        let hidden = hidden_symbols(pcfg);
        let count = pcfg.nonterminals() as u32 + hidden.iter().flatten().count() as u32;
        let mut core = Self {
            nonterminals: count,
            terminals: pcfg.terminals().len() as u32,
            start: pcfg.start().0,
            rules: Vec::new(),
            by_left: vec![Vec::new(); count as usize],
            symbols: Vec::new(),
            rule_of: Vec::new(),
            nullable: vec![false; count as usize],
            nonempty: vec![false; count as usize],
        };
        let lives =
            |rule: &crate::pcfg::Rule| reachable[rule.left.0 as usize] && takes_part(rule, &productive);
        let mut kept = vec![0.0; pcfg.nonterminals()];
        for rule in pcfg.rules().iter().filter(|rule| lives(rule)) {
            kept[rule.left.0 as usize] += rule.probability;
        }
        for (at, rule) in pcfg.rules().iter().enumerate().filter(|(_, rule)| lives(rule)) {
            let number = |symbol: &Symbol| match symbol {
                Symbol::Nonterminal(id) => id.0,
                Symbol::Terminal(id) => hidden[id.0 as usize].unwrap_or(count + id.0),
            };
            let right: Vec<u32> = rule.right.iter().map(number).collect();
            let probability = rule.probability / kept[rule.left.0 as usize];
            core.rule(rule.left.0, &right, probability, Some(RuleId(at as u32)));
        }
        core.hidden_rules(pcfg, &hidden);
        core.find_empty();
        Ok(core)
    }

    fn rule(&mut self, left: u32, right: &[u32], probability: f64, source: Option<RuleId>) {
        let (number, first) = (self.rules.len() as u32, self.symbols.len() as u32);
        self.by_left[left as usize].push(number);
        self.symbols.extend(right);
        self.symbols.push(END);
        self.rule_of.resize(self.symbols.len(), number);
        self.rules.push(CoreRule { left, first, length: right.len() as u32, probability, source });
    }

    fn hidden_rules(&mut self, pcfg: &Pcfg, hidden: &[Option<u32>]) {
        for (terminal, left) in hidden.iter().enumerate() {
            let (Some(left), Terminal::Pattern(pattern)) = (left, &pcfg.terminals()[terminal]) else {
                continue;
            };
            let empty = pattern.of_stop(pattern.dfa().start());
            self.rule(*left, &[], empty, None);
            if pattern.goes_on(pattern.dfa().start()) {
                self.rule(*left, &[self.nonterminals + terminal as u32], 1.0 - empty, None);
            }
        }
    }

    /// Computes two least fixpoints: the symbols that derive the empty text, and those that derive another one.
    fn find_empty(&mut self) {
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); self.nonterminals as usize];
        for (number, rule) in self.rules.iter().enumerate() {
            for symbol in self.right(rule).iter().filter(|symbol| **symbol < self.nonterminals) {
                users[*symbol as usize].push(number as u32);
            }
        }
        for nonempty in [false, true] {
            let mut found = vec![false; self.nonterminals as usize];
            let mut work: Vec<u32> = (0..self.rules.len() as u32).collect();
            while let Some(number) = work.pop() {
                let rule = &self.rules[number as usize];
                let is = |symbol: &u32| found.get(*symbol as usize).copied().unwrap_or(nonempty);
                let right = self.right(rule);
                let holds = if nonempty { right.iter().any(is) } else { right.iter().all(is) };
                if holds && !std::mem::replace(&mut found[rule.left as usize], true) {
                    work.extend(&users[rule.left as usize]);
                }
            }
            *(if nonempty { &mut self.nonempty } else { &mut self.nullable }) = found;
        }
    }

    /// Returns the right side of a rule.
    pub(crate) fn right(&self, rule: &CoreRule) -> &[u32] {
        &self.symbols[rule.first as usize..(rule.first + rule.length) as usize]
    }

    /// Returns the rules of a symbol.
    pub(crate) fn rules_of(&self, symbol: u32) -> &[u32] {
        &self.by_left[symbol as usize]
    }

    pub(crate) fn left(&self, dot: u32) -> u32 {
        self.rules[self.rule_of[dot as usize] as usize].left
    }

    /// Returns the memory in bytes, approximately.
    pub(crate) fn heap_bytes(&self) -> usize {
        let rules = self.rules.len() * (size_of::<CoreRule>() + size_of::<u32>());
        rules + self.symbols.len() * 8 + self.nonterminals as usize * 28
    }

    pub(crate) fn is_terminal(&self, symbol: u32) -> bool {
        symbol >= self.nonterminals && symbol != END
    }

    pub(crate) fn may_be_empty(&self, symbol: u32) -> bool {
        self.nullable.get(symbol as usize).copied().unwrap_or(false)
    }

    pub(crate) fn may_be_something(&self, symbol: u32) -> bool {
        symbol != END && self.nonempty.get(symbol as usize).copied().unwrap_or(true)
    }

    pub(crate) fn terminal_symbol(&self, terminal: TerminalId) -> u32 {
        self.nonterminals + terminal.0
    }

    pub(crate) fn terminal_of(&self, symbol: u32) -> TerminalId {
        TerminalId(symbol - self.nonterminals)
    }
}

/// Numbers a new symbol for each pattern that matches the empty text.
fn hidden_symbols(pcfg: &Pcfg) -> Vec<Option<u32>> {
    let mut next = pcfg.nonterminals() as u32;
    let mut number = |terminal: &Terminal| {
        terminal.matches(b"").then(|| {
            next += 1;
            next - 1
        })
    };
    pcfg.terminals().iter().map(&mut number).collect()
}
