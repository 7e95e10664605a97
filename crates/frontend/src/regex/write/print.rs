//! Prints parts as text.

use super::parts::{Part, PartId, Parts};
use super::syntax::{class, times};

/// How tightly the surrounding construct binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Precedence {
    Choice,
    Sequence,
    Repetition,
}

/// A remaining piece of output.
enum Task {
    Part(PartId, Precedence),
    Text(&'static str),
    Times(u32, Option<u32>),
}

/// Returns the text of a part. Parts may nest deeply, hence the explicit stack.
pub(super) fn print(parts: &Parts, root: PartId) -> String {
    let mut out = String::with_capacity(parts.length(root) as usize);
    let mut work = vec![Task::Part(root, Precedence::Choice)];
    while let Some(task) = work.pop() {
        match task {
            Task::Text(text) => out.push_str(text),
            Task::Times(min, max) => out.push_str(&times(min, max)),
            Task::Part(id, outer) => {
                let part = parts.get(id);
                let own = match part {
                    Part::Alt(_) => Precedence::Choice,
                    Part::Seq(_) | Part::Repeat { .. } => Precedence::Sequence,
                    // The empty part prints as nothing, so it needs parentheses if it is repeated or beside a bar.
                    Part::Empty | Part::Never => Precedence::Choice,
                    Part::Class(_) => Precedence::Repetition,
                };
                let wrap = own < outer || (matches!(part, Part::Empty) && outer != Precedence::Choice);
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
        // A class without members, for completeness: an empty language is reported as an error before.
        Part::Never => out.push_str("[^\\x00-\\U0010ffff]"),
        Part::Empty => {}
        Part::Class(set) => out.push_str(&class(set)),
        Part::Seq(list) => work.extend(list.iter().rev().map(|id| Task::Part(*id, Precedence::Sequence))),
        Part::Alt(list) => {
            for (i, id) in list.iter().enumerate().rev() {
                work.push(Task::Part(*id, Precedence::Sequence));
                if i > 0 {
                    work.push(Task::Text("|"));
                }
            }
        }
        Part::Repeat { body, min, max } => {
            work.push(Task::Times(*min, *max));
            work.push(Task::Part(*body, Precedence::Repetition));
        }
    }
}
