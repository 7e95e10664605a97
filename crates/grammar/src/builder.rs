//! Builds a grammar: smart constructors that normalize, and final checks.
//!
//! Expressions are hash-consed: building the same expression twice gives the same [`ExprId`], so later stages compile
//! it once. Operands are always built before the expressions that use them, so every pass over [`Grammar::exprs`] is a
//! plain loop. Only rules can form cycles.

use core::fmt;
use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::{CharSet, Expr, ExprId, Grammar, Notes, Rule, RuleId, TokenBase, TokenSet};

/// Builds a [`Grammar`].
#[derive(Debug, Default)]
pub struct GrammarBuilder {
    exprs: Vec<Expr>,
    index: HashTable<u32>,
    rules: Vec<Declared>,
    /// A buffer for the operands of the expression that is being built.
    flat: Vec<ExprId>,
}

/// A rule that may not be defined yet.
#[derive(Debug)]
struct Declared {
    name: Box<str>,
    expr: Option<ExprId>,
    is_document: bool,
    notes: Option<Box<Notes>>,
}

/// Why a grammar could not be finished.
///
/// ```
/// use maskwright_grammar::{GrammarBuilder, GrammarError};
///
/// let mut g = GrammarBuilder::new();
/// let (root, item) = (g.declare("root"), g.declare("item"));
/// let body = g.rule(item);
/// g.define(root, body);
/// assert_eq!(g.finish(root), Err(GrammarError::Undefined { rule: "item".into() }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarError {
    /// A rule was declared and used, but never defined.
    Undefined {
        /// The rule's name.
        rule: Box<str>,
    },
    /// Intersection, complement or a JSON string is used over a rule that can call itself.
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
    /// Creates an empty grammar.
    pub fn new() -> Self {
        // Room for a small grammar: growing step by step to a hundred expressions costs as much as building them.
        Self {
            exprs: Vec::with_capacity(128),
            index: HashTable::with_capacity(128),
            rules: Vec::with_capacity(16),
            flat: Vec::new(),
        }
    }

    /// Declares a rule that will be [defined](Self::define) later.
    pub fn declare(&mut self, name: &str) -> RuleId {
        self.declare_as(name, false)
    }

    /// Declares a rule that matches whole JSON documents, so that a place in the text has a path in the document.
    pub fn declare_document(&mut self, name: &str) -> RuleId {
        self.declare_as(name, true)
    }

    pub(crate) fn declare_as(&mut self, name: &str, is_document: bool) -> RuleId {
        self.rules.push(Declared { name: name.into(), expr: None, is_document, notes: None });
        RuleId(self.rules.len() as u32 - 1)
    }

    /// Sets the expression of a declared rule. Defining a rule again replaces the earlier definition.
    pub fn define(&mut self, rule: RuleId, expr: ExprId) {
        self.rules[rule.index()].expr = Some(expr);
    }

    /// Sets the annotations of a rule.
    pub fn annotate(&mut self, rule: RuleId, notes: Notes) {
        self.rules[rule.index()].notes = (notes != Notes::default()).then(|| Box::new(notes));
    }

    /// Returns the number of expressions. The next new one has this index.
    pub fn expr_count(&self) -> usize {
        self.exprs.len()
    }

    /// Returns the expression with an id.
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

    /// Matches the parts one after another.
    pub fn seq(&mut self, parts: impl IntoIterator<Item = ExprId>) -> ExprId {
        // PERF: the list is reused, and boxed only if the sequence is new.
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
                Expr::Seq(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        if never.is_none() {
            self.join(&mut flat);
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

    /// Merges adjacent literals, and adjacent repetitions of the same body.
    fn join(&mut self, flat: &mut Vec<ExprId>) {
        let (mut kept, mut at) = (0usize, 0);
        while let Some(&first) = flat.get(at) {
            let is_literal = |id: &ExprId| matches!(self.expr(*id), Expr::Bytes(_));
            let run = flat[at..].iter().take_while(|id| is_literal(id)).count();
            let joined = match run {
                0 | 1 => first,
                _ => {
                    // All at once: merging one by one would copy the first literals again and again.
                    let literals = flat[at..at + run].iter().map(|id| match self.expr(*id) {
                        Expr::Bytes(bytes) => &**bytes,
                        _ => &[],
                    });
                    let joined: Vec<u8> = literals.flatten().copied().collect();
                    self.intern(Expr::Bytes(joined.into()))
                }
            };
            at += run.max(1);
            let before = kept.checked_sub(1).map(|last| flat[last]);
            if let Some(both) = before.and_then(|before| self.joined_repeats(before, joined)) {
                flat[kept - 1] = both;
            } else {
                flat[kept] = joined;
                kept += 1;
            }
        }
        flat.truncate(kept);
    }

    /// Merges `x{a,b} x{c,d}` into `x{a+c,b+d}`.
    fn joined_repeats(&mut self, first: ExprId, second: ExprId) -> Option<ExprId> {
        let (&Expr::Repeat { body, min: a, max: b }, &Expr::Repeat { body: other, min: c, max: d }) =
            (self.expr(first), self.expr(second))
        else {
            return None;
        };
        if body != other {
            return None;
        }
        let max = match (b, d) {
            (Some(b), Some(d)) => Some(b.checked_add(d)?),
            _ => None,
        };
        let min = a.checked_add(c)?;
        Some(self.intern(Expr::Repeat { body, min, max }))
    }

    /// Matches one of the parts.
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

    /// Matches `body` or the empty text.
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
            (&Expr::Repeat { body: inner, min: low, max: high }, _, _) => {
                match collapse((low, high), (min, max)) {
                    Some((min, max)) => self.intern(Expr::Repeat { body: inner, min, max }),
                    None => self.intern(Expr::Repeat { body, min, max }),
                }
            }
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
        // Two texts of any characters differ in their lengths alone.
        let lengths = |part: &ExprId| match self.exprs[part.index()] {
            Expr::Repeat { body, min, max } => {
                let is_any = matches!(&self.exprs[body.index()], Expr::Class(set) if set.is_all());
                is_any.then_some((body, min, max))
            }
            _ => None,
        };
        let known: Vec<_> = flat.iter().filter_map(lengths).collect();
        if let [(any, ..), _, ..] = *known {
            flat.retain(|part| lengths(part).is_none());
            let min = known.iter().map(|(_, min, _)| *min).max().unwrap_or(0);
            let max = known.iter().filter_map(|(.., max)| *max).min();
            match self.repeat(any, min, max) {
                never if matches!(self.expr(never), Expr::Never) => return never,
                window => flat.push(window),
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

    /// Matches what `body` matches if its [distinct](Self::distinct) parts differ from one another and contain all
    /// `required` strings.
    pub fn scope(&mut self, body: ExprId, required: impl IntoIterator<Item = Box<str>>) -> ExprId {
        self.scope_with_needs(body, required, [])
    }

    /// Like [`Self::scope`], but if the parts contain the first string of a pair of `needs`, they must contain the
    /// second as well.
    pub fn scope_with_needs(
        &mut self,
        body: ExprId,
        required: impl IntoIterator<Item = Box<str>>,
        needs: impl IntoIterator<Item = (Box<str>, Box<str>)>,
    ) -> ExprId {
        if matches!(self.expr(body), Expr::Never) {
            return body;
        }
        let (required, needs) = (required.into_iter().collect(), needs.into_iter().collect());
        self.intern(Expr::Scope { body, required, needs })
    }

    /// Matches a JSON value that `value` matches and that did not occur in the scope before.
    pub fn distinct(&mut self, value: ExprId) -> ExprId {
        if matches!(self.expr(value), Expr::Never) { value } else { self.intern(Expr::Distinct(value)) }
    }

    /// Matches what `body` matches, written in at most `tokens` tokens. With zero tokens only the empty text remains.
    pub fn limit(&mut self, body: ExprId, tokens: u32) -> ExprId {
        if matches!(self.expr(body), Expr::Never | Expr::Empty) {
            return body;
        }
        self.intern(Expr::Limit { body, tokens })
    }

    /// Checks the rules and returns the finished grammar.
    pub fn finish(self, root: RuleId) -> Result<Grammar, GrammarError> {
        let mut rules = Vec::with_capacity(self.rules.len());
        for Declared { name, expr, is_document, notes } in self.rules {
            let Some(expr) = expr else { return Err(GrammarError::Undefined { rule: name }) };
            rules.push(Rule { name, expr, is_document, notes });
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

    /// Interns an expression with a list of operands, which is copied only if the expression is new.
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

/// Hashes the kind of an expression and a list of operands.
fn hash_list(kind: &Expr, parts: &[ExprId]) -> u64 {
    FxBuildHasher.hash_one((core::mem::discriminant(kind), parts))
}

/// Returns the bounds of `(x{i,j}){min,max}` as one repetition of `x`, if there are such: the sums of `min` to `max`
/// numbers between `i` and `j` must have no gap. A nested count where one is enough makes texts ambiguous.
fn collapse((i, j): (u32, Option<u32>), (min, max): (u32, Option<u32>)) -> Option<(u32, Option<u32>)> {
    // From k to k + 1 rounds there is no gap if (k + 1) · i ≤ k · j + 1. If that holds for one k, it holds for all
    // larger k.
    let follows = |k: u32| match j {
        None => k > 0 || i <= 1,
        Some(j) => (u64::from(k) + 1) * u64::from(i) <= u64::from(k) * u64::from(j) + 1,
    };
    let is_contiguous = max == Some(min) || follows(min);
    let high = match (j, max) {
        (Some(j), Some(max)) => Some(j.checked_mul(max)?),
        _ => None,
    };
    is_contiguous.then_some((i.checked_mul(min)?, high))
}

/// Removes duplicates and keeps the first of each, in order. Most lists are short, and a hash set would cost more than
/// the rest.
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

/// Rejects `And`, `Not` and `JsonString` over a rule that can reach itself.
fn check_regular(grammar: &Grammar) -> Result<(), GrammarError> {
    let needs_check = |e: &Expr| matches!(e, Expr::And(_) | Expr::Not(_) | Expr::JsonString(_));
    // Without calls in an operand there is nothing to follow. Operands come first, so one pass is enough.
    let mut calls = vec![false; grammar.exprs.len()];
    let mut suspicious = false;
    for (i, expr) in grammar.exprs.iter().enumerate() {
        calls[i] = matches!(expr, Expr::Rule(_)) || expr.operands().iter().any(|op| calls[op.index()]);
        suspicious |= calls[i] && needs_check(expr);
    }
    if !suspicious {
        return Ok(());
    }
    let recursive = recursive_exprs(grammar);
    if !recursive.contains(&true) {
        return Ok(());
    }
    // Everything in `seen` reaches no recursive rule; otherwise there would have been an error.
    let mut seen = vec![false; grammar.exprs.len()];
    for (i, expr) in grammar.exprs.iter().enumerate().filter(|(i, expr)| calls[*i] && needs_check(expr)) {
        let mut work: Vec<ExprId> = expr.operands().iter().rev().copied().collect();
        seen[i] = true;
        while let Some(id) = work.pop() {
            if core::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            let expr = grammar.expr(id);
            if let Expr::Rule(rule) = expr {
                let Rule { name, expr, .. } = grammar.rule(*rule);
                if recursive[expr.index()] {
                    return Err(GrammarError::NotRegular { rule: name.clone() });
                }
                work.push(*expr);
            }
            work.extend(expr.operands().iter().rev());
        }
    }
    Ok(())
}

/// Finds the expressions that can reach themselves through calls, that is, members of a cycle (Tarjan, without
/// recursion).
fn recursive_exprs(grammar: &Grammar) -> Vec<bool> {
    let follow = |at: usize, edge: usize| match &grammar.exprs[at] {
        Expr::Rule(rule) if edge == 0 => Some(grammar.rule(*rule).expr.index()),
        Expr::Rule(_) => None,
        expr => expr.operands().get(edge).map(|operand| operand.index()),
    };
    let n = grammar.exprs.len();
    let mut recursive = vec![false; n];
    let (mut order, mut low) = (vec![u32::MAX; n], vec![0u32; n]);
    let (mut on_stack, mut stack, mut clock) = (vec![false; n], Vec::new(), 0u32);
    for start in 0..n {
        if order[start] != u32::MAX {
            continue;
        }
        let mut work = vec![(start, 0usize)];
        while let Some(&mut (v, ref mut edge)) = work.last_mut() {
            if order[v] == u32::MAX {
                (order[v], low[v]) = (clock, clock);
                clock += 1;
                stack.push(v);
                on_stack[v] = true;
            }
            if let Some(w) = follow(v, *edge) {
                *edge += 1;
                recursive[v] |= w == v;
                if order[w] == u32::MAX {
                    work.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(order[w]);
                }
                continue;
            }
            work.pop();
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == order[v] {
                let at = stack.iter().rposition(|&x| x == v).unwrap_or(0);
                let is_cycle = stack.len() - at > 1;
                for w in stack.drain(at..) {
                    on_stack[w] = false;
                    recursive[w] |= is_cycle;
                }
            }
        }
    }
    recursive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_normalize() {
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
        let (few, more) = (g.repeat(a, 0, Some(2)), g.repeat(a, 1, None));
        assert_eq!(g.seq([few, more]), more);
        assert_eq!(g.class(CharSet::from_ranges([('é', 'é')])), g.bytes("é".as_bytes()));
    }

    #[test]
    fn any_texts_of_two_lengths_are_one() {
        let mut g = GrammarBuilder::new();
        let (any, a) = (g.class(CharSet::all()), g.bytes(b"a"));
        let all = g.any_text();
        let (few, more) = (g.repeat(any, 0, Some(9)), g.repeat(any, 5, Some(20)));
        let both = g.repeat(any, 5, Some(9));
        assert_eq!(g.and([few, all]), few);
        assert_eq!(g.and([few, more, all]), both);
        let (some, again) = (g.and([few, a]), g.and([all, a, few]));
        assert_eq!(some, again);
        let longer = g.repeat(any, 10, None);
        let never = g.never();
        assert_eq!(g.and([few, longer]), never);
    }

    #[test]
    fn long_sequences_of_literals_become_one() {
        let mut g = GrammarBuilder::new();
        let word = g.bytes(b"ab");
        let before = g.exprs.len();
        let long = g.seq(core::iter::repeat_n(word, 100_000));
        assert_eq!(g.expr(long), &Expr::Bytes("ab".repeat(100_000).into_bytes().into()));
        assert_eq!(g.exprs.len(), before + 1, "no beginning of it is kept");
    }

    /// Returns the numbers of `x` that an expression matches, up to `MAX_COUNT`.
    fn counts((i, j): (u32, Option<u32>), (min, max): (u32, Option<u32>)) -> Vec<u32> {
        const MAX_COUNT: u32 = 20;
        let mut sums = vec![0];
        let mut found: Vec<u32> = if min == 0 { vec![0] } else { Vec::new() };
        for round in 1..=max.unwrap_or(MAX_COUNT) {
            let next =
                |sum: &u32| (sum + i..=(sum + j.unwrap_or(MAX_COUNT)).min(MAX_COUNT)).collect::<Vec<_>>();
            sums = sums.iter().flat_map(next).collect();
            sums.sort_unstable();
            sums.dedup();
            if round >= min {
                found.extend(&sums);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn repetitions_of_repetitions_collapse_where_no_number_is_left_out() {
        let bounds =
            || (0..4).flat_map(|low| (low.max(1)..5).map(move |high| (low, Some(high))).chain([(low, None)]));
        for inner in bounds() {
            for outer in bounds() {
                let wanted = counts(inner, outer);
                let is_range = wanted.windows(2).all(|pair| pair[1] == pair[0] + 1);
                match collapse(inner, outer) {
                    Some(both) => assert_eq!(counts((1, Some(1)), both), wanted, "{inner:?} {outer:?}"),
                    // At most one outer round is not worth collapsing.
                    None => assert!(!is_range || outer.1.is_some_and(|max| max <= 1), "{inner:?} {outer:?}"),
                }
            }
        }
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
