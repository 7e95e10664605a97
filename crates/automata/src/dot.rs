//! Renders automata in the DOT language of Graphviz.

use core::fmt::Write;

use crate::{Dfa, Nfa, NfaState};

impl Dfa {
    /// Renders the automaton as a graph, without the dead state.
    pub fn to_dot(&self) -> String {
        let mut out = head();
        if self.is_empty() {
            out.push_str("  empty [shape=plaintext, label=\"empty language\"];\n");
        } else {
            line(&mut out, format_args!("start -> {};", self.start()));
        }
        for state in self.states().skip(1) {
            let shape = if self.is_accepting(state) { "doublecircle" } else { "circle" };
            line(&mut out, format_args!("{state} [shape={shape}];"));
            for (set, target) in self.edges(state) {
                line(&mut out, format_args!("{state} -> {target} [label={}];", quoted(&format!("{set:?}"))));
            }
        }
        out.push_str("}\n");
        out
    }
}

impl Nfa {
    /// Renders the automaton as a graph. Dashed edges read nothing.
    pub fn to_dot(&self) -> String {
        let mut out = head();
        line(&mut out, format_args!("start -> {};", self.start()));
        for (state, kind) in self.states().iter().enumerate() {
            match kind {
                NfaState::Accept => line(&mut out, format_args!("{state} [shape=doublecircle];")),
                NfaState::Read { set, next } => {
                    let set = self.sets()[*set as usize];
                    line(
                        &mut out,
                        format_args!("{state} -> {next} [label={}];", quoted(&format!("{set:?}"))),
                    );
                }
                NfaState::Fork(targets) => {
                    for target in targets {
                        line(&mut out, format_args!("{state} -> {target} [style=dashed];"));
                    }
                }
            }
        }
        out.push_str("}\n");
        out
    }
}

fn head() -> String {
    "digraph automaton {\n  rankdir=LR;\n  node [shape=circle];\n  start [shape=point];\n".into()
}

fn line(out: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {text}");
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use crate::{ByteSet, Dfa, Exprs, Limits};

    #[test]
    fn a_small_automaton_is_drawn() {
        let mut e = Exprs::new();
        let quote = e.set(ByteSet::byte(b'"'));
        let pair = e.concat([quote, quote]);
        let dfa = Dfa::build(&mut e, pair, &Limits::default()).unwrap();
        let dot = dfa.to_dot();
        assert!(dot.contains("start -> 1;"), "{dot}");
        assert!(dot.contains(r#"1 -> 2 [label="[\\\"]"];"#), "{dot}");
        assert!(dot.contains("3 [shape=doublecircle];"), "{dot}");
        assert!(Dfa::never().to_dot().contains("empty language"));
    }
}
