//! Resolves names: the definition of each, the order in which terminals can be built, and which definitions are used.

use std::collections::{HashMap, HashSet};

use maskwright_automata::must_stop;
use maskwright_grammar::{Diagnostic, Span};

use super::Options;
use super::ast::{Alternation, Atom, Definition, Document, Ending, Item, Sort, Source, Visit};
use crate::notation::{nearest, remarks::Remarks};
use crate::stopped::stopped;

/// The names of a document, all of them known and used correctly.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) document: &'a Document,
    /// The index of every definition.
    pub(super) names: HashMap<&'a str, usize>,
    /// The index of the start rule.
    pub(super) start: usize,
    /// Whether the start rule or `%ignore` mentions the definition, directly or through others.
    pub(super) reachable: Vec<bool>,
    /// The terminals that are used, each after those that it mentions.
    pub(super) terminals: Vec<usize>,
}

/// Resolves every name of every document.
pub(super) fn resolve<'a>(source: &'a Source, options: &Options) -> Result<Vec<Scope<'a>>, Vec<Diagnostic>> {
    let mut errors = Remarks::default();
    let mut scopes = Vec::with_capacity(source.documents.len());
    for (i, document) in source.documents.iter().enumerate() {
        let start = if i + 1 == source.documents.len() { &*options.start } else { "start" };
        scopes.extend(resolve_document(document, start, &mut errors));
    }
    if errors.is_empty() { Ok(scopes) } else { Err(errors.into_vec()) }
}

fn resolve_document<'a>(document: &'a Document, start: &str, errors: &mut Remarks) -> Option<Scope<'a>> {
    let names = index(document, errors);
    let mut reported = HashSet::new();
    let mut check = Check { document, names: &names, reported: &mut reported, errors };
    for definition in &document.definitions {
        if must_stop() {
            check.errors.push(stopped(definition.span.start));
            return None;
        }
        check.definition(definition);
    }
    for body in &document.ignored {
        check.body(body, None, true);
    }
    let start = match names.get(start) {
        Some(&place) if document.definitions[place].sort == Sort::Rule => {
            check.start(&document.definitions[place]);
            place
        }
        _ => {
            check.errors.push(missing_start(document, start));
            return None;
        }
    };
    if !errors.is_empty() {
        return None;
    }
    let reachable = find_reachable(document, &names, start);
    let terminals = order_terminals(document, &names, &reachable, errors)?;
    Some(Scope { document, names, start, reachable, terminals })
}

fn index<'a>(document: &'a Document, errors: &mut Remarks) -> HashMap<&'a str, usize> {
    let mut names = HashMap::with_capacity(document.definitions.len());
    for (i, definition) in document.definitions.iter().enumerate() {
        let first = *names.entry(&*definition.name).or_insert(i);
        if first != i {
            let message = format!("`{}` is defined twice", definition.name);
            errors.push(
                Diagnostic::error(definition.span, message)
                    .with_help("join the two with `|`, or rename one; an import defines a name as well"),
            );
        }
    }
    names
}

fn missing_start(document: &Document, start: &str) -> Diagnostic {
    let remark = |span, message: String| Diagnostic::error(span, message);
    let rules = || document.definitions.iter().filter(|definition| definition.sort == Sort::Rule);
    match rules().next() {
        None => remark(Span::at(document.span.start), "the grammar has no rules".into())
            .with_help(format!("write at least `{start}: …`")),
        Some(first) => {
            let near = nearest(start, rules().map(|rule| &*rule.name)).unwrap_or(&first.name);
            let message = format!("no rule is called `{start}`, which is where a text begins");
            remark(first.span, message).with_help(format!("add `{start}: {near}`"))
        }
    }
}

/// Checks that names are used in bodies as they are defined.
struct Check<'c, 'a> {
    document: &'a Document,
    names: &'c HashMap<&'a str, usize>,
    reported: &'c mut HashSet<&'a str>,
    errors: &'c mut Remarks,
}

impl<'a> Check<'_, 'a> {
    fn definition(&mut self, definition: &'a Definition) {
        self.body(&definition.body, Some(definition), definition.is_terminal());
        if let Some((Ending::Stop(atom) | Ending::Suffix(atom), place)) = &definition.attributes.ending {
            self.atom(atom, *place, Some(definition), true);
        }
    }

    /// Checks that the start rule has no parameter.
    fn start(&mut self, definition: &Definition) {
        if definition.is_parametric || !definition.template.is_empty() {
            let message = format!("`{}` is where a text begins, so it has no parameter", definition.name);
            self.error(definition.span, message, "add a rule that calls it with one");
        }
    }

    fn body(&mut self, body: &'a Alternation, within: Option<&'a Definition>, in_terminal: bool) {
        body.walk(in_terminal, |visit| match visit {
            Visit::Item(Item { atom, span, .. }, in_terminal) => self.atom(atom, *span, within, in_terminal),
            Visit::Condition(place, in_terminal) => {
                if in_terminal || !within.is_some_and(|definition| definition.is_parametric) {
                    let help = "define the rule as `name::_`";
                    self.error(place, "a condition needs the parameter of a rule", help);
                }
            }
        });
    }

    fn atom(&mut self, atom: &'a Atom, place: Span, within: Option<&'a Definition>, in_terminal: bool) {
        let (name, what) = match atom {
            Atom::Name(name) => {
                if within.is_some_and(|definition| definition.template.contains(name)) {
                    if in_terminal {
                        self.error(
                            place,
                            "a template's parameter may be a rule, and this is a terminal",
                            "define a terminal",
                        );
                    }
                    return;
                }
                (name, Mention::Plain)
            }
            Atom::Call(name, update) => {
                if update.needs_value() && !within.is_some_and(|definition| definition.is_parametric) {
                    let help = "call it with a number, or define this rule as `name::_`";
                    self.error(place, "there is no parameter here that could be passed on", help);
                }
                (name, Mention::Call)
            }
            Atom::Template(name, arguments) => (name, Mention::Template(arguments.len())),
            Atom::Token(_) if in_terminal => return self.not_in_terminal(place, "a token"),
            Atom::Json(..) if in_terminal => return self.not_in_terminal(place, "`%json`"),
            Atom::Foreign(..) if in_terminal => return self.not_in_terminal(place, "`@name`"),
            Atom::Nested(_) if in_terminal => return self.not_in_terminal(place, "`%lark`"),
            _ => return,
        };
        let Some(&found) = self.names.get(&**name) else { return self.undefined(name, place) };
        let found = &self.document.definitions[found];
        if in_terminal && found.sort == Sort::Rule {
            let message = format!("`{name}` is a rule, and a terminal is made of terminals");
            let help = format!("make it a terminal: `{}`; or make this a rule", name.to_ascii_uppercase());
            return self.error(place, message, help);
        }
        self.mention(found, what, place);
    }

    /// Checks that a mention of a definition has the form that the definition requires.
    fn mention(&mut self, found: &Definition, mention: Mention, place: Span) {
        let name = &found.name;
        let (message, help) = match mention {
            Mention::Plain if found.is_parametric => {
                (format!("rule `{name}` needs a parameter"), format!("write for example `{name}::0`"))
            }
            Mention::Call if !found.is_parametric => {
                (format!("`{name}` has no parameter"), format!("define it as `{name}::_`"))
            }
            Mention::Template(given) if given != found.template.len() => {
                let wanted = found.template.len();
                (
                    format!("`{name}` takes {wanted} arguments, but {given} are given"),
                    "see its definition".into(),
                )
            }
            Mention::Plain if !found.template.is_empty() => {
                let names = found.template.join(", ");
                (format!("`{name}` is a template"), format!("write `{name}{{{names}}}`, with arguments"))
            }
            _ => return,
        };
        self.error(place, message, help);
    }

    fn undefined(&mut self, name: &'a str, place: Span) {
        if !self.reported.insert(name) {
            return;
        }
        // A search for a similar name costs much more than the rest, so it is skipped for errors that are not shown.
        let near = if self.errors.is_full() {
            None
        } else {
            nearest(name, self.document.definitions.iter().map(|definition| &*definition.name))
        };
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if super::common::pattern(name).is_some() => format!("add `%import common.{name}`"),
            None => format!("define it with `{name}: …`, or write `\"{name}\"` for the text itself"),
        };
        self.error(place, format!("`{name}` is not defined"), help);
    }

    fn not_in_terminal(&mut self, place: Span, what: &str) {
        self.error(
            place,
            format!("{what} cannot be used in a terminal"),
            "use it in a rule, with a name in lower case",
        );
    }

    fn error(&mut self, place: Span, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(Diagnostic::error(place, message).with_help(help));
    }
}

/// How a name is used.
#[derive(Clone, Copy)]
enum Mention {
    Plain,
    Call,
    Template(usize),
}

/// Returns the definitions that a body mentions. Parameters of templates are left out, because they are not
/// definitions.
fn mentions(definition: &Definition, names: &HashMap<&str, usize>) -> Vec<usize> {
    let mut found = mentions_of(&definition.body, &definition.template, names);
    if let Some((Ending::Stop(Atom::Name(name)) | Ending::Suffix(Atom::Name(name)), _)) =
        &definition.attributes.ending
    {
        found.extend(names.get(&**name));
    }
    found
}

fn mentions_of(body: &Alternation, template: &[Box<str>], names: &HashMap<&str, usize>) -> Vec<usize> {
    let mut found = Vec::new();
    body.walk(false, |visit| {
        if let Visit::Item(
            Item { atom: Atom::Name(name) | Atom::Call(name, _) | Atom::Template(name, _), .. },
            _,
        ) = visit
            && !template.contains(name)
        {
            found.extend(names.get(&**name));
        }
    });
    found
}

fn find_reachable(document: &Document, names: &HashMap<&str, usize>, start: usize) -> Vec<bool> {
    let mut reachable = vec![false; document.definitions.len()];
    let mut work = vec![start];
    work.extend(document.ignored.iter().flat_map(|body| mentions_of(body, &[], names)));
    while let Some(place) = work.pop() {
        if !core::mem::replace(&mut reachable[place], true) {
            work.extend(mentions(&document.definitions[place], names));
        }
    }
    reachable
}

/// Returns the terminals in an order in which each can be built from those before it. This is a depth-first walk with
/// an explicit stack, because terminals may form long chains. Unused ones are visited as well, to find cycles.
fn order_terminals(
    document: &Document,
    names: &HashMap<&str, usize>,
    reachable: &[bool],
    errors: &mut Remarks,
) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let definitions = &document.definitions;
    let mut marks = vec![Mark::New; definitions.len()];
    let mut order = Vec::new();
    for first in 0..definitions.len() {
        if definitions[first].sort != Sort::Terminal || marks[first] != Mark::New {
            continue;
        }
        let mut stack = vec![(first, false)];
        while let Some((place, is_ready)) = stack.pop() {
            if is_ready {
                marks[place] = Mark::Done;
                if reachable[place] {
                    order.push(place);
                }
                continue;
            }
            if marks[place] != Mark::New {
                continue;
            }
            marks[place] = Mark::Open;
            stack.push((place, true));
            for next in mentions(&definitions[place], names) {
                match marks[next] {
                    Mark::Open => {
                        let message = format!("terminal `{}` needs itself", definitions[next].name);
                        let help = "a terminal is a regular expression and cannot call itself; make it a rule, in lower case";
                        errors.push(Diagnostic::error(definitions[next].span, message).with_help(help));
                        return None;
                    }
                    Mark::New => stack.push((next, false)),
                    Mark::Done => {}
                }
            }
        }
    }
    Some(order)
}
