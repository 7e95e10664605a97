//! Parses items: an atom and its repetition.

use core::mem;

use maskwright_grammar::{CharSet, Span};

use super::super::ast::{Alternation, Atom, Item};
use super::super::lex::Kind;
use super::super::named::{self, Named, Origin};
use super::{Parser, Read, once};
use crate::notation::{nearest, tokens};

impl Parser<'_> {
    /// Reads an atom, possibly repeated.
    pub(super) fn item(&mut self) -> Read<Item> {
        let mut item = self.atom()?;
        item.repeat = self.repetition()?;
        if item.repeat.is_some() && self.begins_repetition() {
            return self.fail(
                self.here(),
                "a repetition follows a repetition",
                "put the first into parentheses, as in `(x~2)*`; there are no lazy repetitions such as `*?`",
            );
        }
        Ok(item)
    }

    fn begins_repetition(&self) -> bool {
        match self.peek() {
            Some(Kind::Sign("*" | "+" | "?" | "{")) => true,
            Some(Kind::Sign("~")) => self.peek_at(1) == Some(&Kind::Number),
            _ => false,
        }
    }

    /// Reads `?`, `*`, `+`, `~n`, `~n..m`, `{n}`, `{n,}`, `{,m}` or `{n,m}`.
    fn repetition(&mut self) -> Read<Option<(u32, Option<u32>)>> {
        if !self.begins_repetition() {
            return Ok(None);
        }
        let start = self.here();
        if self.eat("*") {
            return Ok(Some((0, None)));
        }
        if self.eat("+") {
            return Ok(Some((1, None)));
        }
        if self.eat("?") {
            return Ok(Some((0, Some(1))));
        }
        let (min, max) = if self.eat("~") {
            let min = self.times()?;
            (min, Some(if self.eat("..") { self.times()? } else { min }))
        } else {
            self.braces()?
        };
        if let Some(max) = max
            && max < min
        {
            let place = Span::new(start.start, self.end_before());
            let message = format!("at least {min} and at most {max} times is never");
            return self.fail(place, message, "put the smaller number first");
        }
        Ok(Some((min, max)))
    }

    /// Reads `{n}`, `{n,}`, `{,m}` or `{n,m}`.
    fn braces(&mut self) -> Read<(u32, Option<u32>)> {
        self.expect("{", "")?;
        let min = if self.is_sign(",") { 0 } else { self.times()? };
        let max = if !self.eat(",") {
            Some(min)
        } else if self.is_sign("}") {
            None
        } else {
            Some(self.times()?)
        };
        self.expect("}", " after the bounds")?;
        Ok((min, max))
    }

    fn times(&mut self) -> Read<u32> {
        let place = self.here();
        let count = self.unsigned()?;
        let limit = self.options.limits.repetition;
        match u32::try_from(count) {
            Ok(count) if count <= limit => Ok(count),
            _ => {
                let message = format!("a repetition counts to {limit} at most");
                self.fail(place, message, "write `{n,}` for no upper bound, or raise the limit `repetition`")
            }
        }
    }

    /// Reads an atom, without a repetition.
    pub(super) fn atom(&mut self) -> Read<Item> {
        let start = self.here();
        let atom = match self.peek() {
            Some(Kind::Sign("~")) => {
                self.at += 1;
                let inner = self.deeper(Self::atom)?;
                Atom::Not(Box::new(inner))
            }
            Some(Kind::Sign("(")) => self.group(start, ")").map(Atom::Group)?,
            Some(Kind::Sign("[")) => self.group(start, "]").map(Atom::Maybe)?,
            Some(Kind::String { .. }) => self.string()?,
            Some(&Kind::Regex { pattern, flags }) => {
                self.at += 1;
                let (text, flags) = (self.text(pattern).into(), self.text(flags).into());
                Atom::Regex { pattern: text, flags, at: Some(pattern.start) }
            }
            Some(Kind::Name) => self.named()?,
            Some(Kind::Special) => self.special()?,
            Some(Kind::Directive) => self.inline_directive()?,
            Some(Kind::Reference) => self.reference(start)?,
            Some(Kind::Sign("*" | "+" | "?")) => {
                let help = "a repetition is written after what it repeats";
                return self.fail(start, "there is nothing to repeat", help);
            }
            Some(Kind::Sign(":")) => {
                let help = "put it on a line of its own, and close every `(` and `[` before it";
                return self.fail(
                    start,
                    "a definition begins in the middle of a line or inside of a group",
                    help,
                );
            }
            _ => return self.unexpected("a string, a pattern, a name or a group"),
        };
        Ok(once(atom, Span::new(start.start, self.end_before())))
    }

    fn group(&mut self, open: Span, close: &'static str) -> Read<Alternation> {
        self.at += 1;
        let inner = self.deeper(|parser| parser.alternation(true))?;
        self.skip_newlines_within();
        if self.eat(close) {
            return Ok(inner);
        }
        if self.peek() == Some(&Kind::Stray) {
            return self.unexpected(close);
        }
        let message = format!("this `{}` is not closed", self.text(open));
        self.fail(open, message, format!("close it with `{close}`"))
    }

    /// Reads a string, or a range of characters between two strings.
    fn string(&mut self) -> Read<Atom> {
        let start = self.here();
        let (text, ignore_case) = self.string_value()?;
        if !self.eat("..") {
            return Ok(Atom::Literal { text, ignore_case });
        }
        let (end, ignore_end) = self.string_value()?;
        let place = Span::new(start.start, self.end_before());
        let single = |text: &str| {
            let mut chars = text.chars();
            chars.next().filter(|_| chars.next().is_none())
        };
        match (single(&text), single(&end)) {
            (Some(from), Some(to)) if !ignore_case && !ignore_end && from <= to => {
                Ok(Atom::Range(CharSet::from_ranges([(from, to)])))
            }
            (Some(_), Some(_)) if ignore_case || ignore_end => {
                self.fail(place, "a range has no flag `i`", "write two ranges, one for each case")
            }
            (Some(_), Some(_)) => {
                self.fail(place, "this range goes backwards", "put the smaller character first")
            }
            _ => self.fail(
                place,
                "a range goes from one character to another",
                "write for example `\"a\"..\"z\"`",
            ),
        }
    }

    fn string_value(&mut self) -> Read<(Box<str>, bool)> {
        match self.peek().cloned() {
            Some(Kind::String { text, ignore_case }) => {
                self.at += 1;
                Ok((text, ignore_case))
            }
            _ => self.unexpected("a string"),
        }
    }

    /// Reads a name, a call with a parameter, or a template with its arguments.
    fn named(&mut self) -> Read<Atom> {
        let name = self.expect_name()?;
        if &*name == "_" {
            let place = Span::new(self.end_before() - 1, self.end_before());
            return self.fail(place, "`_` is a parameter and no rule", "write `name::_` to hand it on");
        }
        if self.eat("::") {
            return Ok(Atom::Call(name, self.update()?));
        }
        let is_template =
            self.is_sign("{") && !matches!(self.peek_at(1), Some(Kind::Number | Kind::Sign("," | "}")));
        if !is_template {
            return Ok(Atom::Name(name));
        }
        self.at += 1;
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.deeper(Self::atom)?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", " after the arguments")?;
        Ok(Atom::Template(name, arguments))
    }

    /// Reads `@name`: another grammar, which is read at its first call.
    fn reference(&mut self, place: Span) -> Read<Atom> {
        self.at += 1;
        let name: Box<str> = self.text(place)[1..].into();
        match self.options.grammars.get(&*name) {
            Some(Named::JsonSchema { schema, options }) => {
                return Ok(Atom::Json(schema.as_str().into(), options.clone()));
            }
            Some(Named::Lark(_)) => {}
            Some(other) => return Ok(Atom::Foreign(name, Box::new(other.clone()))),
            None => {
                let message = format!("no grammar named `{name}` was given");
                let known = nearest(&name, self.options.grammars.keys().map(String::as_str));
                let help = match known {
                    Some(known) => format!("did you mean `@{known}`?"),
                    None => {
                        "give it beside this one, or put it here, with `%json { … }` or `%lark { … }`".into()
                    }
                };
                return self.fail(place, message, help);
            }
        }
        match self.called.get(&name) {
            Some(Some(document)) => return Ok(Atom::Nested(*document)),
            Some(None) => {
                let message = format!("the grammar `{name}` calls itself");
                return self.fail(place, message, "make it a rule of the grammar that calls it");
            }
            None => {}
        }
        let part = self.places[&name];
        self.origins.push(Origin::new(&name, self.source, part, place));
        self.called.insert(name.clone(), None);
        let document = self.deeper(|parser| {
            let tokens = named::tokens(parser.source, part, &mut parser.errors);
            let before = (mem::replace(&mut parser.tokens, tokens), mem::take(&mut parser.at), parser.end);
            parser.end = part.end;
            let document = parser.document(false);
            (parser.tokens, parser.at, parser.end) = before;
            Ok(document)
        })?;
        self.documents.push(document);
        self.called.insert(name, Some(self.documents.len() - 1));
        Ok(Atom::Nested(self.documents.len() - 1))
    }

    /// Reads `<name>` or `<[numbers]>`.
    fn special(&mut self) -> Read<Atom> {
        let place = self.here();
        self.at += 1;
        match tokens::read(self.text(place), false) {
            Ok(set) => Ok(Atom::Token(set)),
            Err(message) => self.fail(place, message, tokens::FORMS),
        }
    }
}
