//! `Token(…)`, `ExcludeToken(…)`, `TagDispatch(…)`, `TokenTagDispatch(…)`, `Regex(…)` and `Substring(…)`, in the
//! notation of `XGrammar`.
//!
//! ```text
//! root ::= TagDispatch(("<call>", body), loop_after_dispatch=true, excludes=("</answer>",))
//!                      └ a list ──────┘  └ a named value ──────┘
//! ```
//!
//! A call is one token for the parser, from its name, directly followed by the parenthesis, up to the closing
//! parenthesis. In a grammar with a rule of such a name, the name means the rule.

use maskwright_grammar::{CharSet, Grammar, GrammarBuilder, Span, TokenRef, TokenSet};

use super::ast::{Arm, Dispatch, Trigger};
use crate::notation::substring;
use crate::regex::{self, Dialect};

/// The names of the macros.
pub(super) const NAMES: [&str; 6] =
    ["Token", "ExcludeToken", "TagDispatch", "TokenTagDispatch", "Regex", "Substring"];

/// The maximum number of chunks of a substring.
const MAX_CHUNKS: usize = 100_000;

/// An argument between the parentheses.
#[derive(Debug)]
pub(super) struct Argument {
    /// `name=`.
    pub(super) name: Option<Box<str>>,
    pub(super) value: Value,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(Box<str>),
    /// A number or the name of a rule.
    Word(Box<str>),
    List(Vec<Argument>),
}

/// The meaning of a call.
#[derive(Debug)]
pub(super) enum Meaning {
    Token(TokenSet),
    Dispatch(Dispatch),
    Quoted(Grammar),
}

/// An error: the place, what is wrong, and how to fix it.
pub(super) type Wrong = (Span, String, String);

/// Returns the meaning of the macro with these arguments.
pub(super) fn read(name: &str, arguments: Vec<Argument>, call: Span) -> Result<Meaning, Wrong> {
    match name {
        "Token" | "ExcludeToken" => {
            let ids = arguments.iter().map(token).collect::<Result<Vec<_>, _>>()?;
            let ids = ids.into_iter().map(TokenRef::id);
            Ok(Meaning::Token(match name {
                "Token" if arguments.is_empty() => {
                    let help = "write `Token(12)`, or `ExcludeToken()` for any token";
                    return Err((call, "there is no token in it".into(), help.into()));
                }
                "Token" => TokenSet::these(ids),
                _ => TokenSet::all_but(ids),
            }))
        }
        "Regex" => pattern(&arguments, call).map(Meaning::Quoted),
        "Substring" => chunks(&arguments, call).map(Meaning::Quoted),
        _ => dispatch(arguments, name == "TokenTagDispatch", call).map(Meaning::Dispatch),
    }
}

fn token(argument: &Argument) -> Result<u32, Wrong> {
    match &argument.value {
        Value::Word(word) if argument.name.is_none() => word.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| wrong(argument, "this must be the number of a token", "write for example `Token(12, 13)`"))
}

fn text(argument: &Argument) -> Result<&str, Wrong> {
    match &argument.value {
        Value::Text(text) if !text.is_empty() && argument.name.is_none() => Ok(text),
        _ => Err(wrong(
            argument,
            "this must be a text that is not empty",
            "write it between quotes, as in `\"<call>\"`",
        )),
    }
}

fn pattern(arguments: &[Argument], call: Span) -> Result<Grammar, Wrong> {
    let [argument, named @ ..] = arguments else {
        return Err((call, "`Regex` takes one pattern".into(), "write `Regex(\"[0-9]+\")`".into()));
    };
    let mut options = regex::Options::default().with_dialect(Dialect::Ecma);
    let mut is_in_json = false;
    for option in named {
        match (option.name.as_deref(), &option.value) {
            (Some("flags"), Value::Text(flags)) => {
                for flag in flags.chars() {
                    match flag {
                        'i' => options.ignore_case = true,
                        'm' => options.multi_line = true,
                        's' => options.dot_all = true,
                        // Patterns use characters anyway.
                        'u' => {}
                        _ => {
                            return Err(wrong(
                                option,
                                "there is no such flag",
                                "there are `i`, `m`, `s` and `u`",
                            ));
                        }
                    }
                }
            }
            (Some("json_string"), Value::Word(word)) if matches!(&**word, "true" | "false") => {
                is_in_json = &**word == "true";
            }
            (Some(_), _) => {
                let help = "there are `flags=\"is\"` and `json_string=true`";
                return Err(wrong(option, "there is no such option", help));
            }
            (None, _) => return Err(wrong(option, "`Regex` takes one pattern", "write it as one text")),
        }
    }
    let grammar = regex::grammar(text(argument)?, &options).map_err(|error| {
        let help = error
            .help
            .clone()
            .unwrap_or_else(|| "fix the pattern; a backslash in a literal is written `\\\\`".into());
        (argument.span, format!("in this pattern: {}", error.message), help)
    })?;
    if !is_in_json {
        return Ok(grammar);
    }
    // The characters that need no escape in a JSON string.
    let mut g = GrammarBuilder::new();
    let plain = CharSet::from_ranges([('\0', '\u{1f}'), ('"', '"'), ('\\', '\\')]).complement();
    let plain = g.class(plain);
    let plain = g.star(plain);
    let pattern = g.embed(&grammar);
    let both = g.and([pattern, plain]);
    let root = g.declare("regex");
    g.define(root, both);
    let help = "allow a character that needs no escape";
    g.finish(root).map_err(|error| (argument.span, error.to_string(), help.into()))
}

/// Returns any run of adjacent chunks. An empty chunk adds nothing to a run.
fn chunks(arguments: &[Argument], call: Span) -> Result<Grammar, Wrong> {
    if arguments.len() > MAX_CHUNKS {
        let message = format!("{} chunks are more than the limit of {MAX_CHUNKS}", arguments.len());
        return Err((call, message, "write fewer and longer ones".into()));
    }
    let mut chunks = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match &argument.value {
            Value::Text(text) if argument.name.is_none() => chunks.push(text.clone()),
            _ => {
                return Err(wrong(
                    argument,
                    "a chunk must be a text",
                    "write it between quotes, as in `Substring(\"a\", \"b\")`",
                ));
            }
        }
    }
    chunks.retain(|chunk| !chunk.is_empty());
    let mut g = GrammarBuilder::new();
    let body = substring::lower(&chunks, &mut g);
    let root = g.declare("substring");
    g.define(root, body);
    g.finish(root).map_err(|error| (call, error.to_string(), "write fewer chunks".into()))
}

fn dispatch(arguments: Vec<Argument>, of_tokens: bool, call: Span) -> Result<Dispatch, Wrong> {
    const ARM: &str = "an arm is a trigger and the name of a rule";
    let help = if of_tokens { "write `(12, name)`" } else { "write `(\"<call>\", name)`" };
    let trigger = |argument: &Argument| {
        if of_tokens {
            token(argument).map(Trigger::Token)
        } else {
            text(argument).map(|text| Trigger::Text(text.into()))
        }
    };
    let mut found = Dispatch { arms: Vec::new(), excludes: Vec::new(), is_loop: true, of_tokens };
    for argument in arguments {
        match (argument.name.as_deref(), &argument.value) {
            (None, Value::List(parts)) => {
                let [first, second] = &parts[..] else { return Err(wrong(&argument, ARM, help)) };
                let Value::Word(rule) = &second.value else { return Err(wrong(second, ARM, help)) };
                found.arms.push(Arm { trigger: trigger(first)?, rule: rule.clone(), span: second.span });
            }
            (Some("loop_after_dispatch"), Value::Word(word)) if matches!(&**word, "true" | "false") => {
                found.is_loop = &**word == "true";
            }
            (Some("excludes"), Value::List(parts)) => {
                found.excludes = parts.iter().map(trigger).collect::<Result<_, _>>()?;
            }
            (Some(_), _) => {
                let help =
                    "there are `loop_after_dispatch=true`, `loop_after_dispatch=false` and `excludes=(…)`";
                return Err(wrong(&argument, "there is no such option", help));
            }
            (None, _) => return Err(wrong(&argument, ARM, help)),
        }
    }
    check(&found, call)?;
    Ok(found)
}

/// Refuses triggers that could not be distinguished in a text.
fn check(dispatch: &Dispatch, call: Span) -> Result<(), Wrong> {
    for (at, arm) in dispatch.arms.iter().enumerate() {
        let others =
            dispatch.arms.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, arm)| &arm.trigger);
        let clash = others.chain(&dispatch.excludes).find(|other| match (&arm.trigger, other) {
            (Trigger::Text(text), Trigger::Text(other)) => text.contains(&**other),
            (one, other) => one == *other,
        });
        if let Some(clash) = clash {
            let message = format!(
                "{} is part of the trigger {}, so they could not be distinguished in a text",
                clash, arm.trigger
            );
            return Err((
                call,
                message,
                "choose triggers and exclusions that do not contain one another".into(),
            ));
        }
    }
    Ok(())
}

fn wrong(argument: &Argument, message: &str, help: &str) -> Wrong {
    (argument.span, message.into(), help.into())
}
