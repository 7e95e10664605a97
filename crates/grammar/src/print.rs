//! Prints a grammar for people: `Display` writes one rule per line, in a notation like EBNF.

use core::fmt;

use crate::{Expr, ExprId, Grammar};

/// The depth from which on nested expressions are abbreviated.
const MAX_DEPTH: usize = 64;

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.rule(self.root());
        write_rule(self, root, f)?;
        for id in self.rule_ids().filter(|id| *id != self.root()) {
            f.write_str("\n")?;
            write_rule(self, self.rule(id), f)?;
        }
        Ok(())
    }
}

impl Grammar {
    /// Returns an expression that prints as in the whole grammar.
    pub fn display(&self, expr: ExprId) -> impl fmt::Display {
        Shown { grammar: self, expr }
    }
}

struct Shown<'g> {
    grammar: &'g Grammar,
    expr: ExprId,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_expr(self.grammar, self.expr, Level::Alt, MAX_DEPTH, f)
    }
}

fn write_rule(grammar: &Grammar, rule: &crate::Rule, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{} ::= ", rule.name())?;
    write_expr(grammar, rule.expr(), Level::Alt, MAX_DEPTH, f)
}

/// How tightly the context binds; a looser expression inside it gets parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Alt,
    And,
    Seq,
    Atom,
}

fn write_expr(
    g: &Grammar,
    id: ExprId,
    around: Level,
    depth: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let Some(depth) = depth.checked_sub(1) else { return f.write_str("…") };
    let expr = g.expr(id);
    let own = match expr {
        Expr::Alt(_) => Level::Alt,
        Expr::And(_) => Level::And,
        Expr::Seq(_) => Level::Seq,
        _ => Level::Atom,
    };
    let wrap = own < around;
    if wrap {
        f.write_str("(")?;
    }
    match expr {
        Expr::Never => f.write_str("<never>")?,
        Expr::Empty => f.write_str("\"\"")?,
        Expr::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii())?,
        Expr::Class(set) => write!(f, "{set:?}")?,
        Expr::Seq(parts) => write_list(g, parts, " ", Level::Atom, depth, f)?,
        Expr::Alt(parts) => write_list(g, parts, " | ", Level::And, depth, f)?,
        Expr::And(parts) => write_list(g, parts, " & ", Level::Seq, depth, f)?,
        Expr::Not(inner) => {
            f.write_str("~")?;
            write_expr(g, *inner, Level::Atom, depth, f)?;
        }
        Expr::JsonString(text) => {
            f.write_str("<json string ")?;
            write_expr(g, *text, Level::Alt, depth, f)?;
            f.write_str(">")?;
        }
        Expr::Scope { body, required, needs } => {
            f.write_str("<scope ")?;
            write_expr(g, *body, Level::Alt, depth, f)?;
            if !required.is_empty() {
                write!(f, " with {required:?}")?;
            }
            for (one, other) in needs {
                write!(f, ", with {other:?} if with {one:?}")?;
            }
            f.write_str(">")?;
        }
        Expr::Distinct(value) => {
            f.write_str("<distinct ")?;
            write_expr(g, *value, Level::Alt, depth, f)?;
            f.write_str(">")?;
        }
        Expr::Limit { body, tokens } => {
            write!(f, "<at most {tokens} tokens ")?;
            write_expr(g, *body, Level::Alt, depth, f)?;
            f.write_str(">")?;
        }
        Expr::Rule(rule) => f.write_str(g.rule(*rule).name())?,
        Expr::Token(set) => write!(f, "{set}")?,
        Expr::Repeat { body, min, max } => {
            write_expr(g, *body, Level::Atom, depth, f)?;
            match (min, max) {
                (0, None) => f.write_str("*")?,
                (1, None) => f.write_str("+")?,
                (0, Some(1)) => f.write_str("?")?,
                (min, None) => write!(f, "{{{min},}}")?,
                (min, Some(max)) if min == max => write!(f, "{{{min}}}")?,
                (min, Some(max)) => write!(f, "{{{min},{max}}}")?,
            }
        }
    }
    if wrap {
        f.write_str(")")?;
    }
    Ok(())
}

fn write_list(
    g: &Grammar,
    parts: &[ExprId],
    separator: &str,
    level: Level,
    depth: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(separator)?;
        }
        write_expr(g, *part, level, depth, f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{CharSet, GrammarBuilder};

    #[test]
    fn prints_with_as_few_parentheses_as_it_can() {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b\n"));
        let digit = g.class(CharSet::from_ranges([('0', '9')]));
        let either = g.alt([a, b]);
        let some = g.repeat(either, 2, Some(5));
        let not = g.not(digit);
        let again = g.rule(root);
        let body = g.seq([some, not, again]);
        let body = g.alt([body, digit]);
        g.define(root, body);
        let grammar = g.finish(root).expect("defined");
        assert_eq!(grammar.to_string(), r#"root ::= ("a" | "b\n"){2,5} ~[0-9] root | [0-9]"#);
    }
}
