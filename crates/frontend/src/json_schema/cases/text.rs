//! The strings of a case, as a regular language over the decoded text: length, `pattern` and `format`.
//!
//! The length alone is a counted repetition of any character, for which the engine needs no table. Otherwise the
//! conditions are intersected, and a negated schema is a complement:
//!
//! ```text
//! {"pattern": "^a", "maxLength": 9, "not": {"format": "date"}}  =  a.* ∧ .{0,9} ∧ ¬date
//! ```

use maskwright_grammar::{Expr, ExprId};
use rustc_hash::FxHashSet;

use super::super::formats;
use super::super::json::Value;
use super::super::schemas::{Keywords, SchemaId, Window};
use super::super::types::TypeSet;
use super::Algebra;
use super::expand::Case;
use super::node::NodeId;
use crate::regex;

/// The depth to which an expression is searched for the lengths of its texts.
const MAX_LENGTH_DEPTH: usize = 64;

/// The number of alternatives after which further negated lengths become part of the automaton.
const MAX_WAYS: usize = 16;

impl<'s> Algebra<'s> {
    /// Checks whether a language is empty. Returns `None` if the limits do not suffice.
    pub(crate) fn is_empty_text(&mut self, text: ExprId) -> Option<bool> {
        match self.split_window(text) {
            Some((language, window)) => self.languages.is_empty_within(&self.grammar, language, window, text),
            None => self.languages.is_empty(&self.grammar, text),
        }
    }

    /// Splits an intersection into a window of lengths and the other parts.
    fn split_window(&mut self, text: ExprId) -> Option<(ExprId, Window)> {
        let Expr::And(parts) = self.grammar.expr(text) else { return None };
        let window = |id: ExprId| match *self.grammar.expr(id) {
            Expr::Repeat { body, min, max } if body == self.character => Some(Window { min, max }),
            _ => None,
        };
        let (length, window) = parts.iter().find_map(|&part| Some((part, window(part)?)))?;
        let others: Vec<ExprId> = parts.iter().copied().filter(|part| *part != length).collect();
        Some((self.grammar.and(others), window))
    }

    /// Returns the decoded strings of a case. Returns `None` after an error.
    pub(crate) fn text(&mut self, case: &Case) -> Option<ExprId> {
        let ways = self.text_ways(case)?;
        Some(self.grammar.alt(ways))
    }

    /// Like [`Self::text`], as a union: a negated length is a choice, so that lengths are counted and not part of an
    /// automaton.
    pub(crate) fn text_ways(&mut self, case: &Case) -> Option<Vec<ExprId>> {
        let mut ways: Vec<(Window, Vec<ExprId>)> = vec![(Window::default(), Vec::new())];
        for local in &case.locals {
            let keywords = self.keywords(local.id);
            if !local.negative {
                let mut languages = Vec::new();
                self.add_languages(local.id, &keywords, false, &mut languages)?;
                for (window, parts) in &mut ways {
                    *window = window.and(keywords.length);
                    parts.extend_from_slice(&languages);
                }
            } else if keywords.length.is_open() || ways.len() > MAX_WAYS {
                let text = self.local_text(local.id, &keywords, true)?;
                let other = self.complement(text);
                for (_, parts) in &mut ways {
                    parts.push(other);
                }
            } else {
                let languages = self.local_languages(local.id, &keywords, true)?;
                let others = if languages.is_empty() { None } else { Some(self.grammar.and(languages)) };
                let others = others.map(|language| self.complement(language));
                let mut next = Vec::with_capacity(ways.len() * 3);
                for (window, mut parts) in ways {
                    let outside = keywords.length.complement();
                    next.extend(outside.map(|outside| (window.and(outside), parts.clone())));
                    if let Some(others) = others {
                        parts.push(others);
                        next.push((window, parts));
                    }
                }
                ways = next;
            }
            ways.retain(|(window, _)| !window.is_empty());
        }
        let ways = ways.into_iter().map(|(window, parts)| self.text_within(parts, window));
        Some(ways.collect())
    }

    /// Returns the texts that are in all these languages and have a length in the window.
    fn text_within(&mut self, mut parts: Vec<ExprId>, window: Window) -> ExprId {
        parts.sort_unstable();
        parts.dedup();
        match *parts {
            [] => return self.any_text_within(window),
            [only] => return self.within(only, window),
            _ => {}
        }
        if !window.is_open() {
            for part in &mut parts {
                *part = self.loosened(*part, window.max, MAX_LENGTH_DEPTH);
            }
            parts.push(self.any_text_within(window));
        }
        self.grammar.and(parts)
    }

    /// Removes maximum counts that the maximum length implies. The result has the same texts of at most `longest`
    /// characters. An intersection with a run of characters, as a look-ahead makes one, also limits the length:
    ///
    /// ```text
    /// (?=.{1,255}$)(.{1,63}\.){1,127}  =  (?=.{1,255}$)(.{1,63}\.)+
    /// ```
    fn loosened(&mut self, language: ExprId, longest: Option<u32>, depth: usize) -> ExprId {
        if depth == 0 {
            return language;
        }
        let is_run = |this: &Self, id: ExprId| match *this.grammar.expr(id) {
            Expr::Repeat { body, max, .. } if matches!(this.grammar.expr(body), Expr::Class(_)) => max,
            _ => None,
        };
        match self.grammar.expr(language) {
            Expr::Seq(parts) | Expr::Alt(parts) | Expr::And(parts) => {
                let before = parts.clone();
                let runs = before.iter().filter_map(|part| is_run(self, *part));
                let longest = match self.grammar.expr(language) {
                    Expr::And(_) => runs.chain(longest).min(),
                    _ => longest,
                };
                let parts: Vec<ExprId> =
                    before.iter().map(|part| self.loosened(*part, longest, depth - 1)).collect();
                match self.grammar.expr(language) {
                    _ if *parts == *before => language,
                    Expr::Seq(_) => self.grammar.seq(parts),
                    Expr::Alt(_) => self.grammar.alt(parts),
                    _ => self.grammar.and(parts),
                }
            }
            &Expr::Repeat { body, min, max } if !matches!(self.grammar.expr(body), Expr::Class(_)) => {
                let shortest = u64::from(self.lengths(body, depth - 1).0);
                let is_free = |max: &u32| {
                    longest.is_none_or(|longest| (u64::from(*max) + 1) * shortest <= u64::from(longest))
                };
                let (loose, most) = (self.loosened(body, longest, depth - 1), max.filter(is_free));
                if (loose, most) == (body, max) { language } else { self.grammar.repeat(loose, min, most) }
            }
            _ => language,
        }
    }

    /// Adds the languages of `pattern` and `format`. Returns `None` after an error. With `is_denied`, the language of a
    /// format is not smaller than the format.
    fn add_languages(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        is_denied: bool,
        parts: &mut Vec<ExprId>,
    ) -> Option<()> {
        if let Some(pattern) = keywords.pattern {
            parts.push(self.pattern(id, "pattern", pattern)?);
        }
        if let Some(format) = keywords.format {
            parts.push(if is_denied { self.wide_format(format) } else { self.format(format) });
        }
        Some(())
    }

    fn any_text_within(&mut self, window: Window) -> ExprId {
        self.grammar.repeat(self.character, window.min, window.max)
    }

    /// Returns the texts of a language that have a length in the window.
    fn within(&mut self, language: ExprId, window: Window) -> ExprId {
        if window.is_open() {
            return language;
        }
        let (shortest, longest) = self.lengths(language, MAX_LENGTH_DEPTH);
        if shortest >= window.min
            && window.max.is_none_or(|max| longest.is_some_and(|longest| longest <= max))
        {
            return language;
        }
        if let Expr::Repeat { body, min, max } = *self.grammar.expr(language)
            && matches!(self.grammar.expr(body), Expr::Class(_))
        {
            // The language repeats one class of characters, so the windows are intersected.
            let both = window.and(Window { min, max });
            return self.grammar.repeat(body, both.min, both.max);
        }
        let language = self.loosened(language, window.max, MAX_LENGTH_DEPTH);
        let length = self.any_text_within(window);
        self.grammar.and([language, length])
    }

    /// Returns bounds on the number of characters of the texts of a language. They may be too wide.
    fn lengths(&self, language: ExprId, depth: usize) -> (u32, Option<u32>) {
        if depth == 0 {
            return (0, None);
        }
        match self.grammar.expr(language) {
            Expr::Never | Expr::Empty => (0, Some(0)),
            Expr::Bytes(bytes) => {
                let count = String::from_utf8_lossy(bytes).chars().count() as u32;
                (count, Some(count))
            }
            Expr::Class(_) => (1, Some(1)),
            Expr::Seq(parts) => parts.iter().fold((0, Some(0)), |(low, high), part| {
                let (a, b) = self.lengths(*part, depth - 1);
                (low.saturating_add(a), high.zip(b).and_then(|(high, b)| high.checked_add(b)))
            }),
            Expr::Alt(parts) => parts.iter().fold((u32::MAX, Some(0)), |(low, high), part| {
                let (a, b) = self.lengths(*part, depth - 1);
                (low.min(a), high.zip(b).map(|(high, b)| high.max(b)))
            }),
            Expr::Repeat { body, min, max } => {
                let (a, b) = self.lengths(*body, depth - 1);
                (a.saturating_mul(*min), max.zip(b).and_then(|(max, b)| b.checked_mul(max)))
            }
            _ => (0, None),
        }
    }

    /// Returns the strings that satisfy the local keywords of a schema, or a superset of them if they are to be negated
    /// (`is_denied`). Returns `None` after an error.
    pub(super) fn local_text(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        is_denied: bool,
    ) -> Option<ExprId> {
        let mut parts = self.local_languages(id, keywords, is_denied)?;
        if !keywords.length.is_open() {
            parts.insert(0, self.any_text_within(keywords.length));
        }
        Some(self.grammar.and(parts))
    }

    /// Like [`Self::local_text`] without the length, as languages to be intersected.
    fn local_languages(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        is_denied: bool,
    ) -> Option<Vec<ExprId>> {
        let mut parts = Vec::with_capacity(4);
        self.add_languages(id, keywords, is_denied, &mut parts)?;
        if let Some(values) = keywords.listed() {
            let texts = values.iter().filter_map(Value::as_str);
            let texts: Vec<ExprId> = texts.map(|text| self.grammar.bytes(text.as_bytes())).collect();
            parts.push(self.grammar.alt(texts));
        }
        Some(parts)
    }

    /// Returns every text that is not in a language, without [`Expr::Not`] where that is simple.
    pub(crate) fn complement(&mut self, language: ExprId) -> ExprId {
        let is_any = |id: ExprId| matches!(self.grammar.expr(id), Expr::Class(set) if set.is_all());
        match *self.grammar.expr(language) {
            Expr::Not(inner) => inner,
            Expr::Never => self.grammar.any_text(),
            Expr::Repeat { body, min: 0, max: None } if is_any(body) => self.grammar.never(),
            Expr::Repeat { body, min, max: None } if is_any(body) => {
                self.grammar.repeat(body, 0, Some(min - 1))
            }
            Expr::Repeat { body, min: 0, max: Some(max) } if max < u32::MAX && is_any(body) => {
                self.grammar.repeat(body, max + 1, None)
            }
            _ => self.grammar.not(language),
        }
    }

    /// Returns the texts in which a pattern matches somewhere. Returns `None`, and reports an error, if it cannot be
    /// used.
    pub(crate) fn pattern(
        &mut self,
        id: SchemaId,
        keyword: &'static str,
        pattern: &'s str,
    ) -> Option<ExprId> {
        if let Some(&known) = self.patterns.get(pattern) {
            return known;
        }
        let lowered = regex::lower(pattern, &regex::Options::json_schema(), &mut self.grammar);
        let lowered = match lowered {
            Ok(expr) => Some(self.loosened(expr, None, MAX_LENGTH_DEPTH)),
            Err(error) => {
                let message = format!("the pattern `{pattern}` cannot be used: {error}");
                let help = error.help.as_deref().unwrap_or("fix the pattern or remove it");
                let goes_on = self.context.unenforceable(self.path(id), keyword, message, help);
                goes_on.then(|| self.grammar.any_text())
            }
        };
        self.patterns.insert(pattern, lowered);
        lowered
    }

    /// Returns the texts that have a format. An unknown name allows every text.
    pub(crate) fn format(&mut self, name: &'s str) -> ExprId {
        if let Some(&known) = self.formats.get(&(name, false)) {
            return known;
        }
        let expr = formats::lower(name, &mut self.grammar);
        self.languages.assume_inhabited(expr);
        self.formats.insert((name, false), expr);
        expr
    }

    /// Returns a superset of the texts that have a format, for use under a negation.
    fn wide_format(&mut self, name: &'s str) -> ExprId {
        if !formats::is_smaller_than_format(name) {
            return self.format(name);
        }
        if let Some(&known) = self.formats.get(&(name, true)) {
            return known;
        }
        let expr = formats::lower_wide(name, &mut self.grammar);
        self.languages.assume_inhabited(expr);
        self.formats.insert((name, true), expr);
        expr
    }

    /// Checks whether a schema uses, for a value or a part of it, a format whose language is smaller than the format.
    /// Then some values can be written neither where the schema must hold nor where it must not.
    pub(crate) fn has_narrow_format(&mut self, id: SchemaId) -> bool {
        let (mut work, mut seen) = (vec![id], FxHashSet::from_iter([id]));
        while let Some(one) = work.pop() {
            let keywords = &self.schema(one).keywords;
            match self.narrow.get(&one) {
                Some(false) => continue,
                None if !keywords.format.is_some_and(formats::is_smaller_than_format) => {}
                Some(true) | None => {
                    self.narrow.insert(id, true);
                    return true;
                }
            }
            work.extend(keywords.subschemas().filter(|&one| seen.insert(one)));
        }
        // No schema reachable from `id` has such a format either.
        self.narrow.extend(seen.into_iter().map(|one| (one, false)));
        false
    }

    /// Returns the decoded strings of a node, for `propertyNames`. Returns `None` after an error.
    pub(crate) fn texts_of(&mut self, node: NodeId) -> Option<ExprId> {
        if node == NodeId::NEVER {
            return Some(self.grammar.never());
        }
        let members = self.members(node);
        let mut texts = Vec::new();
        for case in &self.cases(&members, TypeSet::STRING)? {
            let Some(id) = self.listing(case) else {
                texts.push(self.text(case)?);
                continue;
            };
            for value in self.keywords(id).listed().unwrap_or_default() {
                if let Value::String(text) = value
                    && self.satisfies(value, &members)
                {
                    texts.push(self.grammar.bytes(text.as_bytes()));
                }
            }
        }
        Some(self.grammar.alt(texts))
    }
}
