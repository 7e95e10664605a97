//! Parses definitions up to their colon, and directives.

use maskwright_grammar::{Span, Temperature};

use super::super::ast::{Alternation, Atom, Attributes, CaptureAs, Definition, Document, Ending, Sort};
use super::super::common;
use super::super::lex::Kind;
use super::{Parser, Read, body_of, once, sort_of};
use crate::notation::nearest;

/// The attributes that are allowed in brackets after the name of a rule.
const ATTRIBUTES: [&str; 8] =
    ["capture", "lazy", "max_chars", "max_tokens", "stop", "stop_capture", "suffix", "temperature"];

/// The words that begin with a percent sign.
const DIRECTIVES: [&str; 8] =
    ["%grammar_options", "%ignore", "%import", "%llguidance", "%json", "%regex", "%lark", "%if"];

impl Parser<'_> {
    /// Reads a definition or a directive.
    pub(super) fn entry(&mut self, document: &mut Document) -> Read<()> {
        self.definitions += 1;
        if self.peek() == Some(&Kind::Directive) {
            let place = self.here();
            let word = self.text(place).to_owned();
            self.at += 1;
            return self.directive(&word, place, document);
        }
        // `!` keeps the tokens of a rule in Lark's tree, `?` leaves a rule with one child out of it.
        while self.eat("!") || self.eat("?") {}
        if self.peek() != Some(&Kind::Name) {
            return self.unexpected("a definition `name: …` or a directive `%word`");
        }
        let definition = self.definition()?;
        document.definitions.push(definition);
        self.end_of_line()
    }

    fn definition(&mut self) -> Read<Definition> {
        let span = self.here();
        let name = self.expect_name()?;
        let mut definition = Definition {
            sort: sort_of(&name),
            name,
            span,
            is_parametric: false,
            is_imported: false,
            template: Vec::new(),
            attributes: Attributes::default(),
            body: Alternation { alternatives: Vec::new(), span },
        };
        let is_ebnf = self.is_sign("::") && self.peek_at(1) == Some(&Kind::Sign("="));
        if is_ebnf || self.is_sign("=") {
            return self.fail(
                self.here(),
                "a definition is written with a colon",
                "write `name: …`; grammars with `::=` are another language, EBNF or GBNF",
            );
        }
        if self.eat("::") {
            definition.is_parametric = true;
            let place = self.here();
            if &*self.expect_name()? != "_" {
                return self.fail(place, "a parametric rule is defined with `_`", "write `name::_ : …`");
            }
        }
        if self.eat("{") {
            definition.template = self.template_names()?;
        }
        if self.eat(".") {
            // Priorities choose among the readings of a text, not among texts.
            self.number()?;
        }
        if self.eat("[") {
            definition.attributes = self.attributes()?;
        }
        self.refuse_for_terminals(&definition)?;
        self.expect(":", " after the name")?;
        let before = self.at;
        self.skip_newlines_within();
        // A leading bar is decoration, if it is on a separate line.
        if self.at > before {
            self.eat("|");
        }
        definition.body = self.alternation(false)?;
        Ok(definition)
    }

    fn refuse_for_terminals(&mut self, definition: &Definition) -> Read<()> {
        if definition.sort == Sort::Rule {
            if definition.is_parametric && !definition.template.is_empty() {
                let help = "make two rules of it";
                return self.fail(definition.span, "a rule is either parametric or a template", help);
            }
            return Ok(());
        }
        let wrong = if definition.is_parametric {
            "a parameter"
        } else if !definition.template.is_empty() {
            "template parameters"
        } else if definition.attributes != Attributes::default() {
            "attributes"
        } else {
            return Ok(());
        };
        let lower = definition.name.to_ascii_lowercase();
        let message = format!("a terminal has no {}", wrong.trim_start_matches("a "));
        self.fail(definition.span, message, format!("make it a rule: `{lower}`"))
    }

    fn template_names(&mut self) -> Read<Vec<Box<str>>> {
        let mut names = Vec::new();
        loop {
            names.push(self.expect_name()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}", " after the parameters")?;
        Ok(names)
    }

    fn attributes(&mut self) -> Read<Attributes> {
        let mut attributes = Attributes::default();
        let mut seen: Vec<Box<str>> = Vec::new();
        while !self.is_sign("]") {
            let place = self.here();
            let name = self.expect_name()?;
            if seen.contains(&name) {
                return self.fail(place, format!("`{name}` is given twice"), "keep one of them");
            }
            seen.push(name.clone());
            self.attribute(&name, place, &mut attributes)?;
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]", " after the attributes")?;
        Ok(attributes)
    }

    fn attribute(&mut self, name: &str, place: Span, attributes: &mut Attributes) -> Read<()> {
        if name == "capture" && !self.is_sign("=") {
            attributes.captures.push(CaptureAs { name: None, is_stop: false, span: place });
            return Ok(());
        }
        if name == "lazy" {
            // Together with `stop` or `suffix` it has no effect.
            attributes.ending.get_or_insert((Ending::Lazy, place));
            return Ok(());
        }
        if !ATTRIBUTES.contains(&name) {
            let near = nearest(name, ATTRIBUTES.into_iter());
            let help = near.map_or_else(
                || format!("there are {}", ATTRIBUTES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return self.fail(place, format!("there is no attribute `{name}`"), help);
        }
        self.expect("=", " and a value")?;
        let start = self.here();
        match name {
            "max_tokens" => {
                let count = self.unsigned()?;
                attributes.max_tokens = Some((count, Span::new(place.start, self.end_before())));
            }
            "max_chars" => {
                let count = self.unsigned()?;
                attributes.max_chars = Some((count, Span::new(place.start, self.end_before())));
            }
            "temperature" => {
                let value = self.number()?.parse().ok();
                let span = Span::new(place.start, self.end_before());
                let Some(value) = value.and_then(Temperature::new) else {
                    return self.fail(
                        span,
                        "a temperature is a number that is not negative",
                        "write `temperature=0.7`",
                    );
                };
                attributes.temperature = Some((value, span));
            }
            "capture" | "stop_capture" => match self.peek() {
                Some(Kind::String { ignore_case: false, text }) => {
                    let (text, span) = (text.clone(), Span::new(place.start, start.end));
                    self.at += 1;
                    if text.is_empty() {
                        return self.fail(span, "a capture needs a name", "write a name between the quotes");
                    }
                    let is_stop = name == "stop_capture";
                    attributes.captures.push(CaptureAs { name: Some(text), is_stop, span });
                }
                _ => return self.unexpected("a name between quotes"),
            },
            _ => {
                let atom = self.atom()?.atom;
                let place = Span::new(place.start, self.end_before());
                let is_empty = matches!(&atom, Atom::Literal { text, .. } if text.is_empty());
                let is_written = name == "suffix" || self.options.stops_are_written;
                if name == "stop" && is_written && !is_empty {
                    // The capture lets the caller remove this text.
                    attributes.captures.push(CaptureAs { name: Some("".into()), is_stop: true, span: place });
                }
                let ending = if is_written { Ending::Suffix(atom) } else { Ending::Stop(atom) };
                if matches!(attributes.ending, Some((Ending::Stop(_) | Ending::Suffix(_), _))) {
                    return self.fail(place, "there is one `stop` or `suffix` at most", "keep one of them");
                }
                attributes.ending = Some((ending, place));
            }
        }
        Ok(())
    }

    fn directive(&mut self, word: &str, place: Span, document: &mut Document) -> Read<()> {
        match word {
            "%ignore" => {
                let body = self.alternation(false)?;
                document.ignored.push(body);
            }
            "%import" => self.import(document)?,
            "%llguidance" | "%grammar_options" => self.settings(document)?,
            "%declare" => {
                let help = "define it: there is no lexer beside the grammar that could say what it matches";
                return self.fail(place, "a terminal without a definition matches nothing", help);
            }
            "%override" | "%extend" => {
                let help = "only terminals of `common` can be imported; change the definition itself";
                return self.fail(place, format!("there is nothing for `{word}` to change"), help);
            }
            "%if" => return self.fail(place, "`%if` belongs after an alternative", "move it there"),
            "%json" | "%regex" | "%lark" => {
                let help = format!("write `name: {word} {{ … }}`");
                return self.fail(place, format!("`{word}` belongs in the body of a definition"), help);
            }
            _ => {
                let help = match nearest(word, DIRECTIVES.into_iter()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", DIRECTIVES.join(", ")),
                };
                return self.fail(place, format!("there is no directive `{word}`"), help);
            }
        }
        self.end_of_line()
    }

    /// Reads `common.NAME`, `common.NAME -> OTHER` or `common (NAME, OTHER)`.
    fn import(&mut self, document: &mut Document) -> Read<()> {
        let start = self.here();
        let is_relative = self.eat(".");
        let module = self.expect_name()?;
        if is_relative || &*module != "common" {
            let place = Span::new(start.start, self.end_before());
            let help = "copy the definitions that you need into this grammar";
            return self.fail(place, "only the module `common` can be imported", help);
        }
        if self.eat("(") {
            loop {
                self.skip_newlines();
                self.import_one(document, false)?;
                self.skip_newlines();
                if !self.eat(",") {
                    return self.expect(")", " after the names");
                }
            }
        }
        self.expect(".", " and the name of a terminal")?;
        self.import_one(document, true)
    }

    fn import_one(&mut self, document: &mut Document, may_rename: bool) -> Read<()> {
        let mut span = self.here();
        let mut name = self.expect_name()?;
        let Some(pattern) = common::pattern(&name) else {
            let help = match nearest(&name, common::names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", common::names().collect::<Vec<_>>().join(", ")),
            };
            return self.fail(span, format!("`common` has no terminal `{name}`"), help);
        };
        if may_rename && self.eat("->") {
            span = self.here();
            name = self.expect_name()?;
            if sort_of(&name) == Sort::Rule {
                let help = format!("write `{}`", name.to_ascii_uppercase());
                return self.fail(span, "a terminal is imported under the name of a rule", help);
            }
        }
        let regex = Atom::Regex { pattern: pattern.into(), flags: Box::default(), at: None };
        document.definitions.push(Definition {
            name,
            span,
            sort: Sort::Terminal,
            is_parametric: false,
            is_imported: true,
            template: Vec::new(),
            attributes: Attributes::default(),
            body: body_of(once(regex, span)),
        });
        Ok(())
    }

    fn end_of_line(&mut self) -> Read<()> {
        match self.peek() {
            None | Some(Kind::Newline | Kind::Sign("}")) => Ok(()),
            Some(Kind::Sign(":")) => self.fail(
                self.here(),
                "a definition begins in the middle of a line or inside of a group",
                "put it on a line of its own, and close every `(` and `[` before it",
            ),
            Some(Kind::Sign(sign @ (")" | "]"))) => {
                let message = format!("this `{sign}` closes nothing");
                self.fail(self.here(), message, "remove it, or open a group before it")
            }
            _ => self.unexpected("the end of the line"),
        }
    }
}
