//! Writes a grammar so that it can be read again.

use core::fmt;

use super::{Pcfg, Rule, Symbol};
use crate::terminal::Terminal;

/// Writes all rules, those of a symbol on one line.
pub(super) fn grammar(pcfg: &Pcfg, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut by_left: Vec<Vec<&Rule>> = vec![Vec::new(); pcfg.nonterminals()];
    for rule in pcfg.rules() {
        by_left[rule.left.0 as usize].push(rule);
    }
    // The start symbol is that of the first rule.
    let start = pcfg.start().0 as usize;
    let others = (0..by_left.len()).filter(|left| *left != start);
    for left in std::iter::once(start).chain(others) {
        for (at, rule) in by_left[left].iter().enumerate() {
            if at == 0 {
                write!(f, "{} ->", pcfg.name(rule.left))?;
            } else {
                f.write_str(" |")?;
            }
            write!(f, "{} [{}]", right(pcfg, rule), rule.probability)?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Formats one rule, without its probability.
pub(super) fn rule(pcfg: &Pcfg, rule: &Rule) -> String {
    format!("{} ->{}", pcfg.name(rule.left), right(pcfg, rule))
}

fn right(pcfg: &Pcfg, rule: &Rule) -> String {
    if rule.right.is_empty() {
        return " ε".into();
    }
    let show = |symbol: &Symbol| match symbol {
        Symbol::Nonterminal(id) => format!(" {}", pcfg.name(*id)),
        Symbol::Terminal(id) => format!(" {}", terminal(pcfg, pcfg.terminal(*id))),
    };
    rule.right.iter().map(show).collect()
}

/// Formats a terminal. A literal is not quoted if it would be read as the same literal without quotes.
fn terminal(pcfg: &Pcfg, terminal: &Terminal) -> String {
    if let Terminal::Literal(bytes) = terminal
        && let Ok(text) = core::str::from_utf8(bytes)
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && pcfg.nonterminal(text).is_none()
    {
        return text.to_owned();
    }
    match terminal {
        Terminal::Literal(bytes) => quoted(&String::from_utf8_lossy(bytes)),
        Terminal::Pattern(_) => terminal.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
