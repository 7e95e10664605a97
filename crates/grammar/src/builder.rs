//! Building a grammar: smart constructors that normalise, and the checks at the end.
//!
//! Expressions are hash-consed: building the same expression twice gives the same [`ExprId`], so that
//! later stages compile it once. Operands are always built before the expressions that use them,
//! which makes every pass over [`Grammar::exprs`] a plain loop; only rules can form cycles.

use core::fmt;
use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::{CharSet, Expr, ExprId, Grammar, Rule, RuleId, TokenBase, TokenSet};

/// Builds a [`Grammar`].
#[derive(Debug, Default)]
pub struct GrammarBuilder {
    exprs: Vec<Expr>,
    index: HashTable<u32>,
    rules: Vec<(Box<str>, Option<ExprId>)>,
    /// The operands of the expression that is being built.
    flat: Vec<ExprId>,
}

/// Why a grammar could not be finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarError {
    /// A rule was declared and used, but never defined.
    Undefined {
        /// The rule's name.
        rule: Box<str>,
    },
    /// Intersection, complement or a JSON string stands over a rule that can call itself.
    NotRegular {
        /// A recursive rule that the operand reaches.
        rule: Box<str>,
    },
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { rule } => write!(f, "rule `{rule}` is used but not defined"),
            Self::NotRegular { rule } => write!(
                f,
                "intersection and complement need a regular operand, but rule `{rule}` is recursive"
            ),
        }
    }
}

impl core::error::Error for GrammarError {}

impl GrammarBuilder {
    /// An empty grammar.
    pub fn new() -> Self {
        // Room for a small grammar: growing step by step to a hundred expressions costs as much as building them.
        Self {
            exprs: Vec::with_capacity(128),
            index: HashTable::with_capacity(128),
            rules: Vec::with_capacity(16),
            flat: Vec::new(),
        }
    }

    /// Names a rule that will be [defined](Self::define) later.
    pub fn declare(&mut self, name: &str) -> RuleId {
        self.rules.push((name.into(), None));
        RuleId(self.rules.len() as u32 - 1)
    }

    /// Says what a declared rule matches. Defining a rule again replaces the earlier definition.
    pub fn define(&mut self, rule: RuleId, expr: ExprId) {
        self.rules[rule.index()].1 = Some(expr);
    }

    /// The expression behind an id.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Matches nothing.
    pub fn never(&mut self) -> ExprId {
        self.intern(Expr::Never)
    }

    /// Matches only the empty text.
    pub fn empty(&mut self) -> ExprId {
        self.intern(Expr::Empty)
    }

    /// Matches exactly these bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> ExprId {
        if bytes.is_empty() { self.empty() } else { self.intern(Expr::Bytes(bytes.into())) }
    }

    /// Matches one character of the set.
    pub fn class(&mut self, set: CharSet) -> ExprId {
        if set.is_empty() {
            return self.never();
        }
        match set.single() {
            Some(c) => self.bytes(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.intern(Expr::Class(set)),
        }
    }

    /// Matches one after the other.
    pub fn seq(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        // PERF: the list is used again, and boxed only if the sequence is new.
        let mut flat = core::mem::take(&mut self.flat);
        flat.clear();
        let mut never = None;
        for part in parts {
            match &self.exprs[part.index()] {
                Expr::Never => {
                    never = Some(part);
                    break;
                }
                Expr::Empty => {}
                Expr::Seq(inner) => {
                    for at in 0..inner.len() {
                        if let Expr::Seq(inner) = &self.exprs[part.index()] {
                            self.push_joined(&mut flat, inner[at]);
                        }
                    }
                }
                _ => self.push_joined(&mut flat, part),
            }
        }
        let seq = match (never, &*flat) {
            (Some(never), _) => never,
            (None, []) => self.empty(),
            (None, &[only]) => only,
            (None, parts) => self.intern_list(parts, Expr::Seq),
        };
        self.flat = flat;
        seq
    }

    /// Appends to a sequence, joining neighbouring literals.
    fn push_joined(&mut self, flat: &mut Vec<ExprId>, part: ExprId) {
        if let Some(&last) = flat.last()
            && let (Expr::Bytes(a), Expr::Bytes(b)) = (self.expr(last), self.expr(part))
        {
            let mut joined = Vec::with_capacity(a.len() + b.len());
            joined.extend_from_slice(a);
            joined.extend_from_slice(b);
            flat.pop();
            flat.push(self.intern(Expr::Bytes(joined.into())));
        } else {
            flat.push(part);
        }
    }

    /// Matches one of these.
    pub fn alt(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut flat = core::mem::take(&mut self.flat);
        flat.clear();
        for part in parts {
            match &self.exprs[part.index()] {
                Expr::Never => {}
                Expr::Alt(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        remove_repeated(&mut flat);
        let alt = match &*flat {
            [] => self.never(),
            &[only] => only,
            parts => self.intern_list(parts, Expr::Alt),
        };
        self.flat = flat;
        alt
    }

    /// Matches `body` or nothing.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        let empty = self.empty();
        self.alt([body, empty])
    }

    /// Matches `body` any number of times.
    pub fn star(&mut self, body: ExprId) -> ExprId {
        self.repeat(body, 0, None)
    }

    /// Matches `body` at least `min` and at most `max` times.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>) -> ExprId {
        if max.is_some_and(|max| max < min) {
            return self.never();
        }
        match (self.expr(body), min, max) {
            (_, _, Some(0)) | (Expr::Empty, _, _) | (Expr::Never, 0, _) => self.empty(),
            (Expr::Never, _, _) | (_, 1, Some(1)) => body,
            // (x*)* and its kin: the bounds of the outer repetition change nothing.
            (Expr::Repeat { min: 0, max: None, .. }, _, _) => body,
            _ => self.intern(Expr::Repeat { body, min, max }),
        }
    }

    /// Matches what every operand matches. The operands must be regular.
    pub fn and(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        for part in parts {
            match &self.exprs[part.index()] {
                Expr::Never => return part,
                Expr::And(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        match *flat {
            [] => self.any_text(),
            [only] => only,
            _ => self.intern(Expr::And(flat.into())),
        }
    }

    /// Matches every well-formed text that `inner` does not match. The operand must be regular.
    pub fn not(&mut self, inner: ExprId) -> ExprId {
        self.intern(Expr::Not(inner))
    }

    /// Matches every well-formed UTF-8 text.
    pub fn any_text(&mut self) -> ExprId {
        let any = self.class(CharSet::all());
        self.star(any)
    }

    /// Matches what the rule matches.
    pub fn rule(&mut self, rule: RuleId) -> ExprId {
        self.intern(Expr::Rule(rule))
    }

    /// Matches one token of the set.
    pub fn token(&mut self, set: TokenSet) -> ExprId {
        if set.base() == TokenBase::Nothing && set.listed().is_empty() {
            return self.never();
        }
        self.intern(Expr::Token(set))
    }

    /// Matches every JSON spelling of every text that `text` matches.
    pub fn json_string(&mut self, text: ExprId) -> ExprId {
        if matches!(self.expr(text), Expr::Never) { text } else { self.intern(Expr::JsonString(text)) }
    }

    /// Matches what `body` matches if its [distinct](Self::distinct) parts differ from one another and hold all
    /// `required` strings.
    pub fn scope(&mut self, body: ExprId, required: impl IntoIterator<Item = Box<str>>) -> ExprId {
        if matches!(self.expr(body), Expr::Never) {
            return body;
        }
        self.intern(Expr::Scope { body, required: required.into_iter().collect() })
    }

    /// Matches a JSON value that `value` matches and that did not stand in the scope before.
    pub fn distinct(&mut self, value: ExprId) -> ExprId {
        if matches!(self.expr(value), Expr::Never) { value } else { self.intern(Expr::Distinct(value)) }
    }

    /// Matches what `body` matches, written in at most so many tokens. With no token only the empty text is left.
    pub fn limit(&mut self, body: ExprId, tokens: u32) -> ExprId {
        if matches!(self.expr(body), Expr::Never | Expr::Empty) {
            return body;
        }
        self.intern(Expr::Limit { body, tokens })
    }

    /// Checks the rules and closes the grammar.
    pub fn finish(self, root: RuleId) -> Result<Grammar, GrammarError> {
        let mut rules = Vec::with_capacity(self.rules.len());
        for (name, expr) in self.rules {
            let Some(expr) = expr else { return Err(GrammarError::Undefined { rule: name }) };
            rules.push(Rule { name, expr });
        }
        let grammar = Grammar { exprs: self.exprs, rules, root };
        check_regular(&grammar)?;
        Ok(grammar)
    }

    pub(crate) fn intern(&mut self, expr: Expr) -> ExprId {
        let hash = hash_of(&expr);
        let exprs = &self.exprs;
        if let Some(&found) = self.index.find(hash, |&id| exprs[id as usize] == expr) {
            return ExprId(found);
        }
        self.insert(hash, expr)
    }

    /// The same for a list of operands, which is copied only if it is new.
    fn intern_list(&mut self, parts: &[ExprId], make: fn(Box<[ExprId]>) -> Expr) -> ExprId {
        let empty = make(Box::default());
        let hash = hash_list(&empty, parts);
        let exprs = &self.exprs;
        let same = |&id: &u32| match (&exprs[id as usize], &empty) {
            (Expr::Seq(a), Expr::Seq(_)) | (Expr::Alt(a), Expr::Alt(_)) => **a == *parts,
            _ => false,
        };
        if let Some(&found) = self.index.find(hash, same) {
            return ExprId(found);
        }
        self.insert(hash, make(parts.into()))
    }

    fn insert(&mut self, hash: u64, expr: Expr) -> ExprId {
        let id = self.exprs.len() as u32;
        self.exprs.push(expr);
        let exprs = &self.exprs;
        self.index.insert_unique(hash, id, |&id| hash_of(&exprs[id as usize]));
        ExprId(id)
    }
}

fn hash_of(expr: &Expr) -> u64 {
    match expr {
        Expr::Seq(parts) | Expr::Alt(parts) => hash_list(expr, parts),
        _ => FxBuildHasher.hash_one(expr),
    }
}

/// Of the kind of an expression and a list of operands.
fn hash_list(kind: &Expr, parts: &[ExprId]) -> u64 {
    FxBuildHasher.hash_one((core::mem::discriminant(kind), parts))
}

/// Keeps the first of equal members, in order. Most lists are short, and a hash set would cost more than the rest.
fn remove_repeated(ids: &mut Vec<ExprId>) {
    if ids.len() <= 8 {
        let mut kept = 0;
        for i in 0..ids.len() {
            if !ids[..kept].contains(&ids[i]) {
                ids[kept] = ids[i];
                kept += 1;
            }
        }
        ids.truncate(kept);
    } else {
        let mut seen = rustc_hash::FxHashSet::default();
        ids.retain(|id| seen.insert(*id));
    }
}

/// Refuses `And`, `Not` and `JsonString` over a rule that can reach itself.
fn check_regular(grammar: &Grammar) -> Result<(), GrammarError> {
    let needs_check = |e: &Expr| matches!(e, Expr::And(_) | Expr::Not(_) | Expr::JsonString(_));
    // Where no operand calls a rule, there is nothing to follow. Operands come first, so one pass tells.
    let mut calls = vec![false; grammar.exprs.len()];
    let mut suspicious = false;
    for (i, expr) in grammar.exprs.iter().enumerate() {
        calls[i] = matches!(expr, Expr::Rule(_)) || expr.operands().iter().any(|op| calls[op.index()]);
        suspicious |= calls[i] && needs_check(expr);
    }
    if !suspicious {
        return Ok(());
    }
    let recursive = recursive_rules(grammar);
    if !recursive.contains(&true) {
        return Ok(());
    }
    // The recursive rule that each expression reaches, if any; operands come first. Rules are
    // followed until nothing changes: the longest chain of non-recursive rules bounds the rounds.
    let mut reaches: Vec<Option<RuleId>> = vec![None; grammar.exprs.len()];
    loop {
        let mut changed = false;
        for (i, expr) in grammar.exprs.iter().enumerate() {
            if reaches[i].is_some() {
                continue;
            }
            let found = match expr {
                Expr::Rule(rule) if recursive[rule.index()] => Some(*rule),
                Expr::Rule(rule) => reaches[grammar.rule(*rule).expr.index()],
                _ => expr.operands().iter().find_map(|op| reaches[op.index()]),
            };
            if found.is_some() {
                reaches[i] = found;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    for (i, expr) in grammar.exprs.iter().enumerate() {
        if needs_check(expr)
            && let Some(rule) = reaches[i]
        {
            return Err(GrammarError::NotRegular { rule: grammar.rule(rule).name.clone() });
        }
    }
    Ok(())
}

/// Which rules can reach themselves: members of a cycle of the call graph (Tarjan, without recursion).
fn recursive_rules(grammar: &Grammar) -> Vec<bool> {
    let callees: Vec<Vec<u32>> = grammar.rules.iter().map(|rule| called_rules(grammar, rule.expr)).collect();
    let n = callees.len();
    let mut recursive = vec![false; n];
    let (mut order, mut low) = (vec![u32::MAX; n], vec![0u32; n]);
    let (mut on_stack, mut stack, mut clock) = (vec![false; n], Vec::new(), 0u32);
    for start in 0..n {
        if order[start] != u32::MAX {
            continue;
        }
        let mut work = vec![(start, 0usize)];
        while let Some(&mut (v, ref mut next)) = work.last_mut() {
            if *next == 0 {
                (order[v], low[v]) = (clock, clock);
                clock += 1;
                stack.push(v);
                on_stack[v] = true;
            }
            if let Some(&w) = callees[v].get(*next) {
                *next += 1;
                let w = w as usize;
                if w == v {
                    recursive[v] = true;
                }
                if order[w] == u32::MAX {
                    work.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(order[w]);
                }
                continue;
            }
            // A vertex without callees is visited once; mark it so that it is not opened again.
            if *next == 0 {
                *next = 1;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == order[v] {
                let at = stack.iter().rposition(|&x| x == v).unwrap_or(0);
                let component = stack.split_off(at);
                for &w in &component {
                    on_stack[w] = false;
                    if component.len() > 1 {
                        recursive[w] = true;
                    }
                }
            }
        }
    }
    recursive
}

/// The rules that an expression calls directly, each once.
fn called_rules(grammar: &Grammar, expr: ExprId) -> Vec<u32> {
    let mut seen = rustc_hash::FxHashSet::default();
    let (mut called, mut work) = (Vec::new(), vec![expr]);
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let expr = grammar.expr(id);
        if let Expr::Rule(rule) = expr {
            called.push(rule.0);
        }
        work.extend_from_slice(expr.operands());
    }
    called.sort_unstable();
    called.dedup();
    called
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_normalise() {
        let mut g = GrammarBuilder::new();
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        let ab = g.seq([a, b]);
        assert_eq!(g.expr(ab), &Expr::Bytes((*b"ab").into()));
        let never = g.never();
        assert_eq!(g.seq([a, never]), never);
        assert_eq!(g.alt([a, never]), a);
        assert_eq!(g.alt([a, a]), a);
        let star = g.star(a);
        assert_eq!(g.star(star), star);
        assert_eq!(g.repeat(a, 3, Some(2)), never);
        assert_eq!(g.class(CharSet::from_ranges([('é', 'é')])), g.bytes("é".as_bytes()));
    }

    #[test]
    fn undefined_rules_are_named() {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let gone = g.declare("gone");
        let call = g.rule(gone);
        g.define(root, call);
        assert_eq!(g.finish(root), Err(GrammarError::Undefined { rule: "gone".into() }));
    }

    #[test]
    fn complement_of_a_recursive_rule_is_refused() {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let nest = g.declare("nest");
        let (open, close) = (g.bytes(b"("), g.bytes(b")"));
        let call = g.rule(nest);
        let inner = g.optional(call);
        let body = g.seq([open, inner, close]);
        g.define(nest, body);
        let not = g.not(call);
        g.define(root, not);
        assert_eq!(g.finish(root), Err(GrammarError::NotRegular { rule: "nest".into() }));
    }

    #[test]
    fn complement_of_a_plain_rule_is_fine() {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let word = g.declare("word");
        let a = g.bytes(b"a");
        g.define(word, a);
        let call = g.rule(word);
        let not = g.not(call);
        // The root itself recurses, but not through the complement.
        let again = g.rule(root);
        let tail = g.seq([a, again]);
        let body = g.alt([not, tail]);
        g.define(root, body);
        assert!(g.finish(root).is_ok());
    }
}
