//! Lowers a [`Format`] to a [`Grammar`].
//!
//! Every part is lowered together with its continuation ([`Next`]), because free text must know the markers that end
//! it: in `tag("<think>", any_text, "</think>")` followed by an answer, only `</think>` ends the free text. Lowering a
//! part gives a [`Next`] again, which can be the continuation of another part. Continuations are rules, so nothing is
//! copied, and the last element is a tail call: the engine's stack does not grow with the number of tags.

use maskwright_automata::must_stop;
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder, TokenRef, TokenSet};
use rustc_hash::FxHashMap;

use super::contains;
use super::error::{Reason, TagError};
use super::format::{
    AnyText, Arm, Dispatch, Format, Json, Kind, Marker, Separated, Style, Syntax, Tag, Then,
};
use super::free::{Around, Pattern, check, free_text};
use super::read::MAX_DEPTH;
use super::spelling::{Names, Symbol, marker_expr, spellings, symbols_expr};
use super::wire::wire;
use super::{Options, literal, schema, xml};
use crate::stopped::{STOPPED, STOPPED_HELP};
use crate::{ebnf, lark, regex};

type Lowered<T> = Result<T, TagError>;

/// Checks whether a text can end with the start of a marker that is then completed inside `end`, before its last
/// character.
fn meets(mark: &str, end: &str) -> bool {
    (1..mark.len().min(end.len())).any(|length| {
        mark.is_char_boundary(mark.len() - length) && end.starts_with(&mark[mark.len() - length..])
    })
}

/// The continuation after a part.
#[derive(Clone, Debug)]
struct Next {
    /// The whole continuation.
    expr: ExprId,
    /// The markers with which it may begin.
    exits: Vec<Exit>,
    /// The continuation without those that begin with one of the markers. At the end of the text it is empty.
    leave: Option<ExprId>,
}

/// A marker that ends free text.
#[derive(Clone, Debug)]
struct Exit {
    marker: Marker,
    /// The continuation after the marker.
    then: ExprId,
    /// Whether it is the end of a tag.
    is_end: bool,
    at: String,
}

/// Lowers a tree to a grammar.
pub(super) fn lower(format: &Format, options: &Options) -> Lowered<Grammar> {
    let mut lower = Lower::new(options);
    let end = lower.end();
    let all = lower.format(format, &end, MAX_DEPTH)?;
    let mut g = lower.g;
    let root = g.declare("root");
    g.define(root, all.expr);
    g.finish(root).map_err(|error| {
        TagError::of(
            Reason::Content,
            &format.at,
            error.to_string(),
            "make the part regular, or write it as a grammar of its own",
        )
    })
}

struct Lower<'o> {
    g: GrammarBuilder,
    options: &'o Options,
    names: Names<'o>,
    /// Schemas that were lowered before, by their text and settings.
    schemas: FxHashMap<String, ExprId>,
}

impl<'o> Lower<'o> {
    fn new(options: &'o Options) -> Self {
        Self { g: GrammarBuilder::new(), options, names: Names::of(options), schemas: FxHashMap::default() }
    }

    /// Returns the end of the text.
    fn end(&mut self) -> Next {
        let empty = self.g.empty();
        Next { expr: empty, exits: Vec::new(), leave: Some(empty) }
    }

    /// Lowers a part, followed by `next`.
    fn format(&mut self, format: &Format, next: &Next, depth: usize) -> Lowered<Next> {
        let at = &*format.at;
        let Some(depth) = depth.checked_sub(1) else {
            let message = format!("formats are nested more than {MAX_DEPTH} levels deep");
            return Err(TagError::of(Reason::Limit, at, message, "remove a level"));
        };
        if must_stop() {
            return Err(TagError::of(Reason::Stopped, at, STOPPED, STOPPED_HELP));
        }
        match &format.kind {
            Kind::Const(text) => self.marked(Marker::Text(text.clone()), at, next.clone()),
            Kind::Token(token) => self.marked(Marker::Token(token.clone()), at, next.clone()),
            Kind::Json(json) => {
                let body = self.json(json)?;
                for exit in next.exits.iter().filter(|exit| exit.is_end) {
                    if let Marker::Text(end) = &exit.marker
                        && json.may_go_on_with(end)
                    {
                        return Err(inside(end, "describe no number, or choose another end", &json.at));
                    }
                }
                Ok(self.before(body, next))
            }
            Kind::Regex(pattern) => {
                let grammar = self.regex(pattern, at)?;
                self.embedded(&grammar, "pattern", at, next)
            }
            Kind::Grammar(syntax, source) => {
                let grammar = self.grammar(*syntax, source, at)?;
                self.embedded(&grammar, "grammar", at, next)
            }
            Kind::AnyText(text) => self.any_text(text, at, next),
            Kind::Sequence(parts) => {
                let mut next = next.clone();
                for part in parts.iter().rev() {
                    next = self.format(part, &next, depth)?;
                }
                Ok(next)
            }
            Kind::Or(parts) => {
                let parts = parts.iter().map(|part| self.format(part, next, depth));
                let parts = parts.collect::<Lowered<Vec<_>>>()?;
                Ok(self.either(parts))
            }
            Kind::Repeat { content, min, max } => self.repeat(content, *min, *max, next, depth),
            Kind::Tag(tag) => self.tag(tag, next, depth),
            Kind::Separated(separated) => self.separated(separated, at, next, depth),
            Kind::Dispatch(dispatch) => self.dispatch(dispatch, at, next, depth),
            Kind::ExcludeToken(tokens) => {
                let one = self.token_but(tokens, next);
                Ok(self.before(one, next))
            }
            Kind::AnyTokens(tokens) => {
                let one = self.token_but(tokens, next);
                let many = self.g.star(one);
                Ok(self.before(many, next))
            }
        }
    }

    /// Returns a part that begins with no marker, followed by `next`.
    fn before(&mut self, body: ExprId, next: &Next) -> Next {
        let expr = self.g.seq([body, next.expr]);
        Next { expr, exits: Vec::new(), leave: Some(expr) }
    }

    /// Returns a marker followed by `next`.
    fn marked(&mut self, marker: Marker, at: &str, next: Next) -> Lowered<Next> {
        if marker.is_empty() {
            return Ok(next);
        }
        let expr = marker_expr(&marker, next.expr, at, &self.names, &mut self.g)?;
        let exit = Exit { marker, then: next.expr, is_end: false, at: at.into() };
        Ok(Next { expr, exits: vec![exit], leave: None })
    }

    /// Returns the union of several continuations.
    fn either(&mut self, parts: Vec<Next>) -> Next {
        let expr = self.g.alt(parts.iter().map(|part| part.expr));
        let leaves: Vec<ExprId> = parts.iter().filter_map(|part| part.leave).collect();
        let leave = if leaves.is_empty() { None } else { Some(self.g.alt(leaves)) };
        Next { expr, exits: parts.into_iter().flat_map(|part| part.exits).collect(), leave }
    }

    /// Returns a continuation that is defined later. Its markers are not known yet.
    fn opaque(&mut self, rule: maskwright_grammar::RuleId) -> Next {
        let expr = self.g.rule(rule);
        Next { expr, exits: Vec::new(), leave: Some(expr) }
    }

    fn repeat(
        &mut self,
        content: &Format,
        min: u32,
        max: Option<u32>,
        next: &Next,
        depth: usize,
    ) -> Lowered<Next> {
        match (min, max) {
            (_, Some(0)) => Ok(next.clone()),
            (0, Some(1)) => {
                let once = self.format(content, next, depth)?;
                Ok(self.either(vec![once, next.clone()]))
            }
            (1, Some(1)) => self.format(content, next, depth),
            (0 | 1, None) => {
                let again = self.g.declare("again");
                let after = self.opaque(again);
                let once = self.format(content, &after, depth)?;
                let either = self.either(vec![once.clone(), next.clone()]);
                self.g.define(again, either.expr);
                Ok(if min == 0 { either } else { once })
            }
            _ => {
                let end = self.end();
                let once = self.format(content, &end, depth)?;
                let body = self.g.repeat(once.expr, min, max);
                Ok(self.before(body, next))
            }
        }
    }

    fn tag(&mut self, tag: &Tag, next: &Next, depth: usize) -> Lowered<Next> {
        let inside = self.inside(tag, next, depth)?;
        self.marked(tag.begin.clone(), &format!("{}/begin", tag.at), inside)
    }

    /// Lowers the rest of a tag after its `begin`: its content, its end, and `next`.
    fn inside(&mut self, tag: &Tag, next: &Next, depth: usize) -> Lowered<Next> {
        let at = format!("{}/end", tag.at);
        let mut ends = Vec::with_capacity(tag.end.len());
        for end in &tag.end {
            let mut end = self.marked(end.clone(), &at, next.clone())?;
            if tag.end.iter().all(|end| !end.is_empty()) {
                end.exits.iter_mut().for_each(|exit| exit.is_end = true);
            }
            ends.push(end);
        }
        let ends = self.either(ends);
        self.format(&tag.content, &ends, depth)
    }

    fn separated(&mut self, separated: &Separated, at: &str, next: &Next, depth: usize) -> Lowered<Next> {
        let rule = self.g.declare("tags");
        let after = if separated.stop_after_first { next.clone() } else { self.opaque(rule) };
        let tags = separated.tags.iter().map(|tag| (tag, &after));
        let tags = tags.chain(separated.last.iter().map(|tag| (tag, next)));
        let tags = tags.map(|(tag, after)| self.tag(tag, after, depth)).collect::<Lowered<Vec<_>>>()?;
        let first = self.either(tags);
        // After a tag: the separator and another tag, or the continuation.
        let separator = Marker::Text(separated.separator.clone());
        let another = self.marked(separator, &format!("{at}/separator"), first.clone())?;
        let either = self.either(vec![another, next.clone()]);
        self.g.define(rule, either.expr);
        Ok(if separated.at_least_one { first } else { self.either(vec![first, next.clone()]) })
    }

    fn dispatch(&mut self, dispatch: &Dispatch, at: &str, next: &Next, depth: usize) -> Lowered<Next> {
        let rule = self.g.declare("free");
        let after = if dispatch.stop_after_first { next.clone() } else { self.opaque(rule) };
        let mut patterns = Vec::new();
        let mut firsts = Vec::new();
        for arm in &dispatch.arms {
            let begun = self.arm(arm, &after, depth, &mut patterns)?;
            firsts.extend(begun);
        }
        let free = if dispatch.by_token {
            self.free_tokens(dispatch, &firsts, next)
        } else {
            self.excluded(&dispatch.excludes, at, &mut patterns)?;
            self.free(patterns, next, &dispatch.excludes)?
        };
        self.g.define(rule, free);
        if !dispatch.at_least_one {
            return Ok(self.opaque(rule));
        }
        if firsts.is_empty() {
            let message = "at least one tag is required, but there is none";
            return Err(TagError::of(
                Reason::Conflict,
                at,
                message,
                "add a tag, or leave `at_least_one` out",
            ));
        }
        Ok(self.either(firsts))
    }

    /// Adds the patterns of an arm, and returns the arm as the start of the text.
    fn arm(
        &mut self,
        arm: &Arm,
        after: &Next,
        depth: usize,
        patterns: &mut Vec<Pattern>,
    ) -> Lowered<Vec<Next>> {
        let shown = arm.trigger.shown();
        match &arm.then {
            Then::Format(format) => {
                let then = self.format(format, after, depth)?;
                for spelling in spellings(&arm.trigger, &self.names, &arm.at)? {
                    let (exit, at, shown) = (Some(then.expr), arm.at.clone(), shown.clone());
                    patterns.push(Pattern { symbols: spelling.symbols, exit, counts: true, at, shown });
                }
                Ok(vec![self.marked(arm.trigger.clone(), &arm.at, then)?])
            }
            Then::Tags(tags) => {
                // The trigger counts even if no tag begins with it.
                let before = patterns.len();
                self.excluded(core::slice::from_ref(&arm.trigger), &arm.at, patterns)?;
                patterns[before..].iter_mut().for_each(|pattern| pattern.counts = true);
                let mut firsts = Vec::with_capacity(tags.len());
                for tag in tags {
                    let inside = self.tag_rule(tag, after, depth)?;
                    let length = match &arm.trigger {
                        Marker::Text(text) => text.len(),
                        Marker::Token(_) => 0,
                    };
                    for spelling in spellings(&tag.begin, &self.names, &format!("{}/begin", tag.at))? {
                        let cut = spelling.symbols_for(length);
                        let (trigger, rest) = spelling.symbols.split_at(cut);
                        let rest = symbols_expr(rest, &mut self.g);
                        let exit = self.g.seq([rest, inside.expr]);
                        let (symbols, at, shown) = (trigger.to_vec(), arm.at.clone(), shown.clone());
                        patterns.push(Pattern { symbols, exit: Some(exit), counts: true, at, shown });
                    }
                    firsts.push(self.marked(tag.begin.clone(), &format!("{}/begin", tag.at), inside)?);
                }
                Ok(firsts)
            }
        }
    }

    /// Lowers the inside of a tag to a rule whose name identifies the tag.
    fn tag_rule(&mut self, tag: &Tag, after: &Next, depth: usize) -> Lowered<Next> {
        let inside = self.inside(tag, after, depth)?;
        let name = match &tag.begin {
            Marker::Text(text) => text.trim(),
            Marker::Token(TokenRef::Name(name)) => name,
            Marker::Token(_) => "tag",
        };
        let rule = self.g.declare(name);
        self.g.define(rule, inside.expr);
        Ok(Next { expr: self.g.rule(rule), ..inside })
    }

    fn excluded(&mut self, excludes: &[Marker], at: &str, patterns: &mut Vec<Pattern>) -> Lowered<()> {
        for marker in excludes {
            for spelling in spellings(marker, &self.names, at)? {
                let (at, shown) = (at.to_owned(), marker.shown());
                patterns.push(Pattern { symbols: spelling.symbols, exit: None, counts: false, at, shown });
            }
        }
        Ok(())
    }

    fn any_text(&mut self, text: &AnyText, at: &str, next: &Next) -> Lowered<Next> {
        let excludes: Vec<Marker> = text.excludes.iter().cloned().map(Marker::Text).collect();
        let mut patterns = Vec::new();
        self.excluded(&excludes, &format!("{at}/excludes"), &mut patterns)?;
        if text.min_chars > 0 || text.max_chars.is_some() || text.max_tokens.is_some() {
            self.exits(next, &mut patterns)?;
            check(patterns, &mut self.g)?;
            let body = self.short_text(text, &excludes, at, next)?;
            return Ok(Next { expr: body, exits: Vec::new(), leave: Some(body) });
        }
        let expr = self.free(patterns, next, &excludes)?;
        Ok(Next { expr, exits: Vec::new(), leave: Some(expr) })
    }

    /// Returns free text followed by `next`.
    fn free(&mut self, mut patterns: Vec<Pattern>, next: &Next, excludes: &[Marker]) -> Lowered<ExprId> {
        self.exits(next, &mut patterns)?;
        let without = excludes.iter().filter_map(|marker| match marker {
            Marker::Text(text) if self.options.specials.contains(text) => Some(TokenRef::name(text)),
            Marker::Token(token) => Some(token.clone()),
            Marker::Text(_) => None,
        });
        let without: Vec<TokenRef> = without.collect();
        let specials = !self.options.specials.is_empty();
        free_text(patterns, &Around { leave: next.leave, specials, without: &without }, &mut self.g)
    }

    /// Adds the markers of the continuation.
    fn exits(&mut self, next: &Next, patterns: &mut Vec<Pattern>) -> Lowered<()> {
        for exit in &next.exits {
            for spelling in spellings(&exit.marker, &self.names, &exit.at)? {
                let (at, shown) = (exit.at.clone(), exit.marker.shown());
                let (symbols, exit) = (spelling.symbols, Some(exit.then));
                patterns.push(Pattern { symbols, exit, counts: true, at, shown });
            }
        }
        Ok(())
    }

    /// Returns text with a limited number of characters or tokens, followed by `next`. It is regular, so the engine
    /// builds a table for it, with the characters counted outside the table where possible.
    fn short_text(
        &mut self,
        limits: &AnyText,
        excludes: &[Marker],
        at: &str,
        next: &Next,
    ) -> Lowered<ExprId> {
        let texts: Vec<&str> = excludes
            .iter()
            .chain(next.exits.iter().map(|exit| &exit.marker))
            .filter_map(|marker| match marker {
                Marker::Text(text) => Some(&**text),
                Marker::Token(_) => None,
            })
            .collect();
        let g = &mut self.g;
        let any = g.class(CharSet::all());
        let (some, all) = (g.repeat(any, limits.min_chars, limits.max_chars), g.any_text());
        let marks: Vec<ExprId> = texts.iter().map(|text| g.bytes(text.as_bytes())).collect();
        let mark = g.alt(marks);
        let marked = g.seq([all, mark, all]);
        let clean = g.not(marked);
        let mut text = if some == all { clean } else { g.and([some, clean]) };
        if let Some(tokens) = limits.max_tokens {
            text = g.limit(text, tokens);
        }
        // No marker may be complete before the last character of the one that ends the text.
        let early = g.seq([all, mark, any, all]);
        let first = g.not(early);
        let mut ways = Vec::new();
        if let Some(leave) = next.leave {
            ways.push(g.seq([text, leave]));
        }
        for exit in &next.exits {
            for spelling in spellings(&exit.marker, &self.names, at)? {
                let symbols = symbols_expr(&spelling.symbols, &mut self.g);
                let is_text = spelling.symbols.iter().all(|symbol| matches!(symbol, Symbol::Char(_)));
                let seam = match &exit.marker {
                    Marker::Text(end) if is_text => texts.iter().any(|mark| meets(mark, end)),
                    _ => false,
                };
                if seam && limits.max_tokens.is_some() {
                    let end = exit.marker.shown();
                    let message = format!(
                        "{end} can be complete before its last character, and then it is not clear which tokens count"
                    );
                    let help = "choose another end, or limit the characters";
                    return Err(TagError::of(
                        Reason::Unsupported,
                        &format!("{at}/max_tokens"),
                        message,
                        help,
                    ));
                }
                let body = if seam {
                    let up_to = self.g.seq([some, symbols]);
                    self.g.and([up_to, first])
                } else {
                    self.g.seq([text, symbols])
                };
                ways.push(self.g.seq([body, exit.then]));
            }
        }
        Ok(self.g.alt(ways))
    }

    /// Returns one token other than these and the one that ends the tag.
    fn token_but(&mut self, tokens: &[TokenRef], next: &Next) -> ExprId {
        let ends = next.exits.iter().filter_map(|exit| match &exit.marker {
            Marker::Token(token) => Some(token.clone()),
            Marker::Text(_) => None,
        });
        let set = TokenSet::all_but(tokens.iter().cloned().chain(ends));
        self.g.token(set)
    }

    /// Returns free text of whole tokens: all except triggers and excluded tokens.
    fn free_tokens(&mut self, dispatch: &Dispatch, arms: &[Next], next: &Next) -> ExprId {
        let marker = |marker: &Marker| match marker {
            Marker::Token(token) => Some(token.clone()),
            Marker::Text(_) => None,
        };
        let triggers = dispatch.arms.iter().filter_map(|arm| marker(&arm.trigger));
        let excludes = dispatch.excludes.iter().filter_map(marker);
        let tokens: Vec<TokenRef> = triggers.chain(excludes).collect();
        let one = self.token_but(&tokens, next);
        let many = self.g.star(one);
        let mut ways: Vec<ExprId> = arms.iter().map(|arm| arm.expr).collect();
        ways.push(next.expr);
        let ways = self.g.alt(ways);
        self.g.seq([many, ways])
    }

    /// Embeds a grammar. It must not contain the end of the enclosing tag.
    fn embedded(&mut self, grammar: &Grammar, field: &str, at: &str, next: &Next) -> Lowered<Next> {
        for exit in next.exits.iter().filter(|exit| exit.is_end) {
            if let Marker::Text(end) = &exit.marker
                && contains::may_contain(grammar, end)
            {
                let help =
                    "describe content that does not contain it, use \"any_text\", or choose another end";
                return Err(inside(end, help, &format!("{at}/{field}")));
            }
        }
        let body = self.g.embed(grammar);
        Ok(self.before(body, next))
    }

    fn regex(&self, pattern: &str, at: &str) -> Lowered<Grammar> {
        regex::grammar(pattern, &self.options.regex).map_err(|error| {
            let help = error.help.clone().unwrap_or_else(|| "fix the pattern".into());
            TagError::of(Reason::Content, &format!("{at}/pattern"), error.to_string(), help)
        })
    }

    fn grammar(&self, syntax: Syntax, source: &str, at: &str) -> Lowered<Grammar> {
        let options = self.options;
        let grammar = match syntax {
            Syntax::Ebnf => ebnf::grammar(source, &options.ebnf),
            Syntax::Lark => lark::grammar(source, &options.lark, &options.json_schema),
        };
        grammar.map(|(grammar, _warnings)| grammar).map_err(|remarks| {
            let mut error = TagError::default();
            for remark in remarks {
                let (line, column) = remark.line_column(source);
                let help = remark.help.clone().unwrap_or_else(|| "fix the grammar".into());
                let message = format!("line {line}, column {column}: {}", remark.message);
                error.push(Reason::Content, &format!("{at}/grammar"), message, help);
            }
            error
        })
    }

    /// Lowers a document to a rule, because several tags may have the same schema.
    fn json(&mut self, json: &Json) -> Lowered<ExprId> {
        let Json { style, any_order, max_whitespace, excludes, objects, schema, .. } = json;
        let key = format!("{style:?} {any_order} {max_whitespace:?} {excludes:?} {objects:?} {schema}");
        if let Some(known) = self.schemas.get(&key) {
            return Ok(*known);
        }
        let mut options = self.options.json_schema.clone();
        options.strictness = objects.unwrap_or(options.strictness);
        let options = &options;
        let body = match (json.style, wire(json.style)) {
            (Style::Python | Style::Gemma4, _) => literal::lower(json, options, &self.names, &mut self.g)?,
            (_, None) => {
                let grammar = schema::grammar(&json.schema, json, "", options)?;
                self.g.embed(&grammar)
            }
            (_, Some(wire)) => xml::lower(json, wire, options, &self.names, &mut self.g)?,
        };
        let is_json = json.style == Style::Json;
        let rule = if is_json { self.g.declare_document("document") } else { self.g.declare("document") };
        self.g.define(rule, body);
        let body = self.g.rule(rule);
        self.schemas.insert(key, body);
        Ok(body)
    }
}

/// Returns the error that the end of a tag can occur inside its content.
fn inside(end: &str, help: &str, at: &str) -> TagError {
    let message = format!(
        "the end {end:?} of the tag can occur inside its content, so the end of the tag could not be recognized"
    );
    TagError::of(Reason::Conflict, at, message, help)
}
