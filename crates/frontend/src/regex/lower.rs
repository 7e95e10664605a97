//! Lowers an [`Ast`] to grammar expressions, and resolves anchors and look-around.
//!
//! # The idea
//!
//! A look-ahead is a condition on all text that follows, so it cannot be lowered alone. But if the *language of the
//! following text* is known, it is an intersection: in `A(?=B)C` the text after A must be in C and begin with B, which
//! is `A·(C ∧ B·any)`. So parts are lowered from right to left, each together with its continuation `k`:
//!
//! ```text
//! lower(x, k)       = x·k                     for plain x
//! lower(xy, k)      = lower(x, lower(y, k))
//! lower(x|y, k)     = lower(x, k) | lower(y, k)
//! lower((?=b), k)   = k ∧ lower(b, any)
//! lower((?!b), k)   = k ∧ ¬lower(b, any)
//! lower($, k)       = k ∧ ε                   = ε or nothing
//! ```
//!
//! A condition on the text *before* a position depends on the character just before it. So there is not one
//! continuation, but one for each [context](Contexts): `k[start]`, `k[after a word character]`, … A class followed by
//! different continuations is then split: `[a-z-]\bx` becomes `[a-z]·k[word] | -·k[other]`.
//!
//! ```text
//! lower(^, k)       = k at the start, nothing in the other contexts
//! lower(\b, k)[q]   = k[q] ∧ (a text that begins with the other kind of character)
//! ```
//!
//! A look-behind of more than one character is a mirrored look-ahead: the pattern is reversed, lowered, and everything
//! is written in reverse order.
//!
//! Repetition is a fixed point, which expressions support only for plain bodies. With a small bound the body is lowered
//! again for each round. Without a bound only `^` and `$` can be resolved ([`Lowerer::anchored_loop`]), and rounds of
//! one character, either before the end of the text ([`Lowerer::tempered_loop`]) or before anything if they look ahead
//! only for short words ([`Lowerer::loop_without`]).

use std::collections::HashMap;
use std::sync::Arc;

use maskwright_automata::must_stop;
use maskwright_grammar::{CharSet, Diagnostic, Expr, ExprId, GrammarBuilder, Span};

use super::Options;
use super::ast::{Ast, Kind, Look, Place};
use super::look::{Contexts, SingleCharLook, newline, wide_look_behind};
use super::unicode;
use crate::stopped::stopped;

/// Builds the expression that matches the same texts as the pattern.
pub(super) fn lower(
    ast: &Ast,
    options: &Options,
    builder: &mut GrammarBuilder,
) -> Result<ExprId, Diagnostic> {
    let reversed = ast.reversed();
    let (ast, mirrored) = match (wide_look_behind(ast), wide_look_behind(&reversed)) {
        (None, _) => (ast, false),
        (Some(_), None) => (&reversed, true),
        (Some(behind), Some(_)) => {
            return Err(Diagnostic::error(
                behind,
                "a look-behind and a look-ahead of more than one character each cannot be combined in one pattern",
            )
            .with_help("let one of them ask about a single character, or write the text out instead of looking at it"));
        }
    };
    let any = builder.any_text();
    let contexts = Contexts::of(ast)?;
    let mut lowerer = Lowerer {
        builder,
        contexts,
        mirrored,
        any,
        nullable: HashMap::new(),
        steps: MAX_STEPS,
        restrictions: MAX_RESTRICTIONS,
        stopped_at: None,
    };
    let whole = lowerer.whole(ast, options.anchored)?;
    lowerer.stopped_at.map_or(Ok(whole), |place| Err(stopped(place)))
}

/// The maximum number of times that parts beside an anchor or look-around are lowered.
const MAX_STEPS: usize = 10_000;

/// The maximum number of expressions visited for restricting their first character. Beyond it, intersections are used.
const MAX_RESTRICTIONS: usize = 10_000;

/// The language of the following text, for each context.
type Continuation = Vec<ExprId>;

struct Lowerer<'a> {
    builder: &'a mut GrammarBuilder,
    contexts: Contexts,
    /// Whether the pattern is read, and everything written, from right to left.
    mirrored: bool,
    /// Every text.
    any: ExprId,
    nullable: HashMap<ExprId, bool>,
    steps: usize,
    restrictions: usize,
    /// The place in the pattern where the work was cancelled. The result is not usable then.
    stopped_at: Option<usize>,
}

impl Lowerer<'_> {
    fn whole(&mut self, ast: &Ast, anchored: bool) -> Result<ExprId, Diagnostic> {
        let end = if anchored { self.builder.empty() } else { self.any };
        let found = self.node(ast, vec![end; self.contexts.len()])?;
        if anchored || found[0] == self.any {
            return Ok(found[0]);
        }
        if is_uniform(&found) {
            return Ok(self.seq(self.any, found[0]));
        }
        // A match may begin at the start, or after any character that fits it.
        let mut ways = vec![found[0]];
        for (set, rest) in self.groups(&found) {
            let before = self.builder.class(set);
            let before = self.seq(self.any, before);
            ways.push(self.seq(before, rest));
        }
        Ok(self.builder.alt(ways))
    }

    /// Lowers a part, followed by its continuation.
    fn node(&mut self, ast: &Ast, k: Continuation) -> Result<Continuation, Diagnostic> {
        if ast.is_plain() {
            return self.plain_run(core::slice::from_ref(ast), k);
        }
        self.step(ast.span())?;
        match ast.kind() {
            Kind::Empty | Kind::Char(_) | Kind::Class(_) => self.plain_run(core::slice::from_ref(ast), k),
            Kind::Concat(parts) => self.sequence(parts, k),
            Kind::Alt(parts) => {
                let branches: Result<Vec<_>, _> =
                    parts.iter().map(|part| self.node(part, k.clone())).collect();
                Ok(self.union(&branches?))
            }
            Kind::Repeat { body, min, max } => self.repeat(body, *min, *max, k),
            Kind::Place(place) => Ok(self.place(place, k)),
            Kind::Look(look, body) => self.look(*look, body, k),
        }
    }

    fn sequence(&mut self, parts: &[Ast], mut k: Continuation) -> Result<Continuation, Diagnostic> {
        for run in parts.chunk_by(|a, b| a.is_plain() && b.is_plain()).rev() {
            k = match run {
                [ast] => self.node(ast, k)?,
                _ => self.plain_run(run, k)?,
            };
        }
        Ok(k)
    }

    /// Lowers plain parts: one by one while the continuations of the contexts differ, and the rest together.
    fn plain_run(&mut self, mut parts: &[Ast], mut k: Continuation) -> Result<Continuation, Diagnostic> {
        while !is_uniform(&k)
            && let [before @ .., last] = parts
        {
            self.step(last.span())?;
            k = self.split_by_last(last, &k)?;
            parts = before;
        }
        if parts.is_empty() {
            return Ok(k);
        }
        let head = self.concat(parts);
        let whole = self.seq(head, k[0]);
        Ok(vec![whole; k.len()])
    }

    /// Lowers a plain part whose last character decides which continuation follows.
    fn split_by_last(&mut self, ast: &Ast, k: &Continuation) -> Result<Continuation, Diagnostic> {
        let mut ways = Vec::new();
        for (set, rest) in self.groups(k) {
            let head = self.ending_in(ast, &set)?;
            ways.push(self.seq(head, rest));
        }
        let moved = self.builder.alt(ways);
        if !ast.is_nullable() {
            return Ok(vec![moved; k.len()]);
        }
        Ok(k.iter().map(|&stayed| self.builder.alt([moved, stayed])).collect())
    }

    /// Returns the nonempty texts of a plain part that end with a character of the set.
    fn ending_in(&mut self, ast: &Ast, set: &CharSet) -> Result<ExprId, Diagnostic> {
        Ok(match ast.kind() {
            Kind::Char(c) if set.contains(*c) => self.plain(ast),
            Kind::Empty
            | Kind::Char(_)
            | Kind::Place(_)
            | Kind::Look(..)
            | Kind::Repeat { max: Some(0), .. } => self.builder.never(),
            Kind::Class(class) => self.builder.class(class.intersection(set)),
            Kind::Alt(parts) => {
                let parts: Result<Vec<_>, _> = parts.iter().map(|part| self.ending_in(part, set)).collect();
                self.builder.alt(parts?)
            }
            Kind::Concat(parts) => {
                // The last character belongs to the last nonempty part; all parts after that one must be nullable.
                let mut ways = Vec::new();
                for (i, part) in parts.iter().enumerate().rev() {
                    self.step(part.span())?;
                    let head = self.concat(&parts[..i]);
                    let tail = self.ending_in(part, set)?;
                    ways.push(self.seq(head, tail));
                    if !part.is_nullable() {
                        break;
                    }
                }
                self.builder.alt(ways)
            }
            Kind::Repeat { body, min, max } => {
                let last = self.ending_in(body, set)?;
                let body = self.plain(body);
                let before = self.builder.repeat(body, min.saturating_sub(1), max.map(|max| max - 1));
                self.seq(before, last)
            }
        })
    }

    fn repeat(
        &mut self,
        body: &Ast,
        min: u32,
        max: Option<u32>,
        k: Continuation,
    ) -> Result<Continuation, Diagnostic> {
        if body.is_zero_width() {
            // A condition on a position does not change when it is checked again.
            return if min == 0 { Ok(k) } else { self.node(body, k) };
        }
        let Some(max) = max else {
            let mut k = self.anchored_loop(body, &k)?;
            for _ in 0..min {
                self.step(body.span())?;
                k = self.node(body, k)?;
            }
            return Ok(k);
        };
        let mut rounds = k.clone();
        for _ in min..max {
            self.step(body.span())?;
            let again = self.node(body, rounds)?;
            rounds = self.union(&[again, k.clone()]);
        }
        for _ in 0..min {
            self.step(body.span())?;
            rounds = self.node(body, rounds)?;
        }
        Ok(rounds)
    }

    /// Lowers `(…^…|…$…)*`. A round that passes `^` must be the first to read anything, and a round that passes `$` the
    /// last. All other rounds are rounds of a plain body in which the anchors never match.
    fn anchored_loop(&mut self, body: &Ast, k: &Continuation) -> Result<Continuation, Diagnostic> {
        let mut other = None;
        body.for_each(&mut |ast| {
            let anchor = matches!(ast.kind(), Kind::Place(Place::TextStart | Place::TextEnd));
            if other.is_none() && !anchor && matches!(ast.kind(), Kind::Place(_) | Kind::Look(..)) {
                other = Some(ast.span());
            }
        });
        if let Some(span) = other {
            if let Some(result) = self.tempered_loop(body, k)? {
                return Ok(result);
            }
            return Err(Diagnostic::error(
                span,
                "a look-around or boundary cannot be inside an unbounded repetition, unless each round reads one character and the text ends after it, or the round excludes a few short words with `(?!…)`",
            )
            .with_help(
                "move it before or after the repetition, or give the repetition a small upper bound",
            ));
        }
        let ends = k.iter().map(|&k| self.only_empty(k)).collect();
        let last_round = self.node(body, ends)?;
        let after_loop = self.union(&[k.clone(), last_round]);
        let middle = Kind::Repeat { body: Box::new(without_anchors(body)), min: 0, max: None };
        let middle = self.plain_run(&[Ast::new(middle, body.span())], after_loop)?;
        // At the start, one round may pass `^` before the others follow.
        let mut from_start = middle.clone();
        from_start[0] = k[0];
        let first_round = self.node(body, from_start)?;
        let mut result = middle;
        result[0] = self.builder.alt([result[0], first_round[0]]);
        Ok(result)
    }

    /// Lowers loops like `((?!x).)*`, in which every round reads one character and looks ahead. If the text ends after
    /// the loop, a round begins at every position but the last. So each nonempty suffix of the text must begin with a
    /// round G: `¬(any·(¬G ∧ not empty))`. If anything may follow the loop, the loop may end immediately. Returns
    /// `None` for other loops.
    fn tempered_loop(&mut self, body: &Ast, k: &Continuation) -> Result<Option<Continuation>, Diagnostic> {
        if !reads_one_character(body) || !is_uniform(k) {
            return Ok(None);
        }
        let (empty, any) = (self.builder.empty(), self.any);
        if k[0] == any {
            return Ok(Some(k.clone()));
        }
        if k[0] != empty
            && let Some((class, words)) = round_without(body)
        {
            return self.loop_without(&class, &words, k, body.span()).map(Some);
        }
        let round = self.node(body, vec![any; k.len()])?;
        if k[0] != empty || !is_uniform(&round) {
            return Ok(None);
        }
        let character = self.builder.class(CharSet::all());
        let some = self.builder.repeat(character, 1, None);
        let other = self.complement(round[0]);
        let bad = self.intersection(other, some);
        let bad = self.seq(any, bad);
        let all_good = self.complement(bad);
        Ok(Some(vec![all_good; k.len()]))
    }

    /// Lowers `((?!x|y).)*` before `k`: a text of characters of the class, followed by `k`, such that no word begins in
    /// the text. Words that also end in the text are excluded there. A word that continues into `k` is cut in two:
    /// where the text ends with the first part, `k` must not begin with the second. So there is one alternative for
    /// each set of first parts with which the text may end.
    fn loop_without(
        &mut self,
        class: &CharSet,
        words: &[Vec<CharSet>],
        k: &Continuation,
        span: Span,
    ) -> Result<Continuation, Diagnostic> {
        let class = self.builder.class(class.clone());
        let text = self.builder.star(class);
        let whole: Vec<ExprId> = words.iter().map(|word| self.word(word)).collect();
        let whole = self.builder.alt(whole);
        let whole = self.seq(whole, self.any);
        let whole = self.seq(self.any, whole);
        let other = self.complement(whole);
        let text = self.intersection(text, other);
        let cuts = words.iter().flat_map(|word| (1..word.len()).map(|at| word.split_at(at)));
        // The first parts with which the text ends, the text, and the following text.
        let mut ways: Vec<(Vec<&[CharSet]>, ExprId, ExprId)> = vec![(Vec::new(), text, k[0])];
        for (first, second) in cuts {
            let (ending, beginning) = (self.word(first), self.word(second));
            let ending = self.seq(self.any, ending);
            let beginning = self.seq(beginning, self.any);
            let (no_ending, no_beginning) = (self.complement(ending), self.complement(beginning));
            let mut next = Vec::with_capacity(ways.len() * 2);
            for (ends, text, k) in ways {
                self.step(span)?;
                if ends.iter().all(|end| may_end_alike(end, first)) {
                    let (text, k) = (self.intersection(text, ending), self.intersection(k, no_beginning));
                    next.push(([&*ends, &[first]].concat(), text, k));
                }
                next.push((ends, self.intersection(text, no_ending), k));
            }
            ways = next;
        }
        let ways: Vec<ExprId> = ways.into_iter().map(|(_, text, k)| self.seq(text, k)).collect();
        let result = self.builder.alt(ways);
        Ok(vec![result; k.len()])
    }

    /// Returns one character of each of these sets, in reading order.
    fn word(&mut self, sets: &[CharSet]) -> ExprId {
        let empty = self.builder.empty();
        sets.iter().rev().fold(empty, |rest, set| {
            let class = self.builder.class(set.clone());
            self.seq(class, rest)
        })
    }

    fn place(&mut self, place: &Place, k: Continuation) -> Continuation {
        let never = self.builder.never();
        (0..k.len())
            .zip(k)
            .map(|(context, k)| match place {
                Place::TextStart | Place::LineStart if context == 0 => k,
                Place::LineStart if self.contexts.is_after(context, &newline()) => k,
                Place::TextStart | Place::LineStart => never,
                Place::TextEnd => self.only_empty(k),
                Place::LineEnd => {
                    let (end, line) = (self.only_empty(k), self.starting_in(k, &newline()));
                    self.builder.alt([end, line])
                }
                Place::Word { word, holds } => {
                    let before = 2 * usize::from(self.contexts.is_after(context, word));
                    match (holds[before], holds[before + 1]) {
                        (true, true) => k,
                        (false, false) => never,
                        (false, true) => self.starting_in(k, word),
                        (true, false) => {
                            let (end, other) = (self.only_empty(k), self.starting_in(k, &word.complement()));
                            self.builder.alt([end, other])
                        }
                    }
                }
            })
            .collect()
    }

    fn look(&mut self, look: Look, body: &Ast, k: Continuation) -> Result<Continuation, Diagnostic> {
        if look.ahead {
            let seen = self.node(body, vec![self.any; k.len()])?;
            return Ok(k
                .into_iter()
                .zip(seen)
                .map(|(k, seen)| {
                    let seen = if look.negated { self.complement(seen) } else { seen };
                    self.intersection(k, seen)
                })
                .collect());
        }
        let Some(single) = SingleCharLook::of(body) else {
            return Err(Diagnostic::error(body.span(), "this look-behind is too long"));
        };
        let never = self.builder.never();
        let holds =
            |context| if context == 0 { single.start } else { self.contexts.is_after(context, &single.set) };
        Ok((0..).zip(k).map(|(context, k)| if holds(context) == look.negated { never } else { k }).collect())
    }

    /// Lowers a plain part without a continuation.
    fn plain(&mut self, ast: &Ast) -> ExprId {
        if self.stopped_at.is_some() || must_stop() {
            self.stopped_at.get_or_insert(ast.span().start);
            return self.builder.never();
        }
        match ast.kind() {
            Kind::Empty | Kind::Place(_) | Kind::Look(..) => self.builder.empty(),
            Kind::Char(c) => self.builder.bytes(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Kind::Class(set) => self.builder.class(CharSet::clone(set)),
            Kind::Concat(parts) => self.concat(parts),
            Kind::Alt(parts) => self.alternatives(parts),
            Kind::Repeat { body, min, max } => {
                let body = self.plain(body);
                self.builder.repeat(body, *min, *max)
            }
        }
    }

    /// Lowers plain parts in sequence.
    fn concat(&mut self, parts: &[Ast]) -> ExprId {
        let mut list: Vec<ExprId> = parts.iter().map(|part| self.plain(part)).collect();
        if self.mirrored {
            list.reverse();
        }
        self.builder.seq(list)
    }

    /// Lowers a choice of plain parts. Alternatives of one character each become a class.
    fn alternatives(&mut self, parts: &[Ast]) -> ExprId {
        let (mut chars, mut others) = (Vec::new(), Vec::new());
        for part in parts {
            match part.kind() {
                Kind::Char(c) => chars.push((*c, *c)),
                Kind::Class(set) => chars.extend_from_slice(set.ranges()),
                _ => others.push(self.plain(part)),
            }
        }
        others.push(self.builder.class(unicode::ranges(&chars)));
        self.builder.alt(others)
    }

    /// Returns `first` followed by `second`, in reading order.
    fn seq(&mut self, first: ExprId, second: ExprId) -> ExprId {
        if self.mirrored { self.builder.seq([second, first]) } else { self.builder.seq([first, second]) }
    }

    /// Returns the union of the continuations in each context.
    fn union(&mut self, branches: &[Continuation]) -> Continuation {
        (0..self.contexts.len())
            .map(|context| self.builder.alt(branches.iter().map(|branch| branch[context])))
            .collect()
    }

    /// Returns each continuation that is not empty, with all characters after which it follows.
    fn groups(&mut self, k: &Continuation) -> Vec<(CharSet, ExprId)> {
        let never = self.builder.never();
        let mut groups: Vec<(CharSet, ExprId)> = Vec::new();
        for (context, set) in self.contexts.after_char() {
            match groups.iter_mut().find(|group| group.1 == k[context]) {
                Some(group) => group.0 = group.0.union(set),
                None if k[context] != never => groups.push((set.clone(), k[context])),
                None => {}
            }
        }
        groups
    }

    /// Returns `k ∧ ε`.
    fn only_empty(&mut self, k: ExprId) -> ExprId {
        if self.is_nullable(k) { self.builder.empty() } else { self.builder.never() }
    }

    /// Returns the texts of `k` that begin, in reading order, with a character of the set.
    fn starting_in(&mut self, k: ExprId, set: &CharSet) -> ExprId {
        if let Some(restricted) = self.restrict_start(k, set, 0) {
            return restricted;
        }
        let class = self.builder.class(set.clone());
        let begun = self.seq(class, self.any);
        self.intersection(k, begun)
    }

    /// Like `starting_in`, but rewrites the start of the expression. An intersection has the same meaning, but automata
    /// are built faster without it. Returns `None` where the expression is deep, or is an intersection anyway.
    fn restrict_start(&mut self, k: ExprId, set: &CharSet, depth: usize) -> Option<ExprId> {
        self.restrictions = self.restrictions.checked_sub(1)?;
        if depth > 16 {
            return None;
        }
        let never = self.builder.never();
        match self.builder.expr(k) {
            Expr::Never | Expr::Empty => Some(never),
            Expr::Class(class) => {
                let class = class.intersection(set);
                Some(self.builder.class(class))
            }
            Expr::Bytes(bytes) => {
                let text = core::str::from_utf8(bytes).ok()?;
                let first = if self.mirrored { text.chars().next_back() } else { text.chars().next() };
                Some(if set.contains(first?) { k } else { never })
            }
            Expr::Alt(parts) => {
                let parts: Option<Vec<_>> =
                    parts.clone().iter().map(|&part| self.restrict_start(part, set, depth + 1)).collect();
                Some(self.builder.alt(parts?))
            }
            Expr::Repeat { body, min, max } => {
                let (body, min, max) = (*body, min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
                let first = self.restrict_start(body, set, depth + 1)?;
                let others = self.builder.repeat(body, min, max);
                Some(self.seq(first, others))
            }
            Expr::Seq(parts) => {
                let parts: Vec<ExprId> =
                    if self.mirrored { parts.iter().rev().copied().collect() } else { parts.to_vec() };
                // The first character belongs to the first nonempty part; all parts before that one must be nullable.
                let mut ways = Vec::new();
                for (i, &part) in parts.iter().enumerate() {
                    let first = self.restrict_start(part, set, depth + 1)?;
                    let mut way = [&[first], &parts[i + 1..]].concat();
                    if self.mirrored {
                        way.reverse();
                    }
                    ways.push(self.builder.seq(way));
                    if !self.is_nullable(part) {
                        break;
                    }
                }
                Some(self.builder.alt(ways))
            }
            _ => None,
        }
    }

    fn intersection(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let empty = self.builder.empty();
        match (a, b) {
            _ if a == self.any || a == b => b,
            _ if b == self.any => a,
            _ if a == empty => self.only_empty(b),
            _ if b == empty => self.only_empty(a),
            _ => self.builder.and([a, b]),
        }
    }

    fn complement(&mut self, a: ExprId) -> ExprId {
        let never = self.builder.never();
        match a {
            _ if a == self.any => never,
            _ if a == never => self.any,
            _ => self.builder.not(a),
        }
    }

    /// Checks whether the language of an expression contains the empty text.
    fn is_nullable(&mut self, id: ExprId) -> bool {
        let mut work = vec![id];
        while let Some(&top) = work.last() {
            if self.nullable.contains_key(&top) {
                work.pop();
                continue;
            }
            let expr = self.builder.expr(top);
            let before = work.len();
            work.extend(expr.operands().iter().filter(|part| !self.nullable.contains_key(part)));
            if work.len() > before {
                continue;
            }
            let known = |part: &ExprId| self.nullable.get(part).is_some_and(|&yes| yes);
            let answer = match expr {
                Expr::Empty => true,
                Expr::Seq(parts) | Expr::And(parts) => parts.iter().all(known),
                Expr::Alt(parts) => parts.iter().any(known),
                Expr::Repeat { body, min, .. } => *min == 0 || known(body),
                Expr::Not(inner) => !known(inner),
                // A regex makes no other expressions, and these match at least one byte.
                _ => false,
            };
            self.nullable.insert(top, answer);
            work.pop();
        }
        self.nullable.get(&id).is_some_and(|&yes| yes)
    }

    fn step(&mut self, place: Span) -> Result<(), Diagnostic> {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Diagnostic::error(
                place,
                format!(
                    "the anchors and look-arounds of this pattern take more than {MAX_STEPS} steps to resolve"
                ),
            )
            .with_help("use fewer of them, or lower the bounds of the repetitions around them")),
        }
    }
}

/// Checks whether the continuation is the same in all contexts.
fn is_uniform(k: &Continuation) -> bool {
    k.iter().all(|other| *other == k[0])
}

/// Checks whether every match of a part is one character.
fn reads_one_character(ast: &Ast) -> bool {
    match ast.kind() {
        Kind::Char(_) | Kind::Class(_) => true,
        Kind::Concat(parts) => {
            let mut readers = parts.iter().filter(|part| !part.is_zero_width());
            readers.next().is_some_and(reads_one_character) && readers.next().is_none()
        }
        Kind::Alt(parts) => parts.iter().all(reads_one_character),
        Kind::Repeat { body, min: 1, max: Some(1) } => reads_one_character(body),
        Kind::Empty | Kind::Repeat { .. } | Kind::Place(_) | Kind::Look(..) => false,
    }
}

/// The maximum number of places at which the words that a round excludes may be cut, in total.
const MAX_CUTS: usize = 12;

/// Returns the class and the words, if a part is `(?!words)class` and the words are few and short.
fn round_without(ast: &Ast) -> Option<(CharSet, Vec<Vec<CharSet>>)> {
    let Kind::Concat(parts) = ast.kind() else { return None };
    let [look, last] = &**parts else { return None };
    let Kind::Look(Look { ahead: true, negated: true }, words) = look.kind() else { return None };
    let [class] = &*words_of(last)? else { return None };
    let [class] = &**class else { return None };
    let words = words_of(words)?;
    let cuts: usize = words.iter().map(|word| word.len().saturating_sub(1)).sum();
    (cuts <= MAX_CUTS && words.iter().all(|word| !word.is_empty())).then(|| (class.clone(), words))
}

/// Returns the texts of a part as sequences of sets of characters, if they are few.
fn words_of(ast: &Ast) -> Option<Vec<Vec<CharSet>>> {
    let words = match ast.kind() {
        Kind::Empty => vec![Vec::new()],
        Kind::Char(c) => vec![vec![unicode::ranges(&[(*c, *c)])]],
        Kind::Class(set) => vec![vec![CharSet::clone(set)]],
        Kind::Alt(parts) => parts.iter().map(words_of).collect::<Option<Vec<_>>>()?.concat(),
        Kind::Concat(parts) => {
            let mut words = vec![Vec::new()];
            for part in parts {
                let next = words_of(part)?;
                words = words
                    .iter()
                    .flat_map(|word: &Vec<CharSet>| next.iter().map(move |more| [&**word, more].concat()))
                    .collect();
                if words.len() > MAX_CUTS + 1 {
                    return None;
                }
            }
            words
        }
        Kind::Repeat { body, min: 1, max: Some(1) } => words_of(body)?,
        Kind::Repeat { .. } | Kind::Place(_) | Kind::Look(..) => return None,
    };
    (words.len() <= MAX_CUTS + 1 && words.iter().all(|word| word.len() <= MAX_CUTS + 1)).then_some(words)
}

/// Checks whether one text may end with both of these.
fn may_end_alike(a: &[CharSet], b: &[CharSet]) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(a, b)| !a.intersection(b).ranges().is_empty())
}

/// Returns the same part with anchors that never match.
fn without_anchors(ast: &Ast) -> Ast {
    let kind = match ast.kind() {
        Kind::Place(_) => Kind::Class(Arc::new(CharSet::none())),
        Kind::Concat(parts) => Kind::Concat(parts.iter().map(without_anchors).collect()),
        Kind::Alt(parts) => Kind::Alt(parts.iter().map(without_anchors).collect()),
        Kind::Repeat { body, min, max } => {
            Kind::Repeat { body: Box::new(without_anchors(body)), min: *min, max: *max }
        }
        kind @ (Kind::Empty | Kind::Char(_) | Kind::Class(_) | Kind::Look(..)) => kind.clone(),
    };
    Ast::new(kind, ast.span())
}
