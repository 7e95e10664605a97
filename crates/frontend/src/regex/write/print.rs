//! Parts as text, in the syntax that the Rust `regex` crate, Python's `re` and our own reader share.

use core::fmt::Write;

use maskwright_grammar::CharSet;

use super::parts::{Part, PartId, Parts};

/// How tightly the surroundings bind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Around {
    Choice,
    Sequence,
    Repetition,
}

/// What is left to print.
enum Task {
    Part(PartId, Around),
    Text(&'static str),
    Times(u32, Option<u32>),
}

/// The text of a part. Parts may nest deeply, hence the explicit stack.
pub(super) fn print(parts: &Parts, root: PartId) -> String {
    let mut out = String::with_capacity(parts.length(root) as usize);
    let mut work = vec![Task::Part(root, Around::Choice)];
    while let Some(task) = work.pop() {
        match task {
            Task::Text(text) => out.push_str(text),
            Task::Times(min, max) => out.push_str(&times(min, max)),
            Task::Part(id, around) => {
                let part = parts.get(id);
                let own = match part {
                    Part::Alt(_) => Around::Choice,
                    Part::Seq(_) | Part::Repeat { .. } => Around::Sequence,
                    // The empty part is printed as nothing, which must not be repeated or stand beside a bar.
                    Part::Empty | Part::Never => Around::Choice,
                    Part::Class(_) => Around::Repetition,
                };
                let wrap = own < around || (matches!(part, Part::Empty) && around != Around::Choice);
                if wrap {
                    out.push_str("(?:");
                    work.push(Task::Text(")"));
                }
                push_inside(part, &mut out, &mut work);
            }
        }
    }
    out
}

fn push_inside(part: &Part, out: &mut String, work: &mut Vec<Task>) {
    match part {
        // A class without members, for completeness: whoever asks for an empty language gets an error before.
        Part::Never => out.push_str("[^\\x00-\\U0010ffff]"),
        Part::Empty => {}
        Part::Class(set) => out.push_str(&class(set)),
        Part::Seq(list) => work.extend(list.iter().rev().map(|id| Task::Part(*id, Around::Sequence))),
        Part::Alt(list) => {
            for (i, id) in list.iter().enumerate().rev() {
                work.push(Task::Part(*id, Around::Sequence));
                if i > 0 {
                    work.push(Task::Text("|"));
                }
            }
        }
        Part::Repeat { body, min, max } => {
            work.push(Task::Times(*min, *max));
            work.push(Task::Part(*body, Around::Repetition));
        }
    }
}

/// A repetition's bounds.
pub(super) fn times(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, None) => "*".into(),
        (1, None) => "+".into(),
        (0, Some(1)) => "?".into(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// One character of a set.
pub(super) fn class(set: &CharSet) -> String {
    let mut out = String::new();
    if let Some(c) = set.single() {
        push_char(c, &mut out);
        return out;
    }
    if set.is_all() {
        // Both halves together are every character, in every dialect.
        return r"[\s\S]".into();
    }
    let outside = set.complement();
    // Whatever reaches the last character is shorter by what it leaves out.
    let negated = set.contains(char::MAX);
    out.push_str(if negated { "[^" } else { "[" });
    for &(first, last) in if negated { outside.ranges() } else { set.ranges() } {
        push_char(first, &mut out);
        if first != last {
            if u32::from(last) > u32::from(first) + 1 {
                out.push('-');
            }
            push_char(last, &mut out);
        }
    }
    out.push(']');
    out
}

/// A character, escaped where it would mean something else or not be seen. All punctuation is: some of it is special
/// only inside classes, or only in one of the dialects.
fn push_char(c: char, out: &mut String) {
    let number = u32::from(c);
    // Writing to a string cannot fail.
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' | '-' | '&'
        | '~' | '#' => {
            write!(out, "\\{c}")
        }
        ' '..='~' => write!(out, "{c}"),
        _ if c.is_alphabetic() => write!(out, "{c}"),
        _ if number < 0x80 => write!(out, "\\x{number:02x}"),
        _ if number <= 0xFFFF => write!(out, "\\u{number:04x}"),
        _ => write!(out, "\\U{number:08x}"),
    };
}
