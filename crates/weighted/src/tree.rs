//! Parse trees, and drawings of them.
//!
//! Nodes are in one list, so a tree as deep as its text is long needs no deep recursion.

use core::fmt::Write as _;

use crate::pcfg::{NonterminalId, Pcfg, RuleId};

/// A derivation of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// The logarithm of the probability of this derivation.
    pub log_probability: f64,
}

/// One node. The first node of a tree is its root, and children come after their parents.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The content of the node.
    pub label: Label,
    /// The children, from left to right.
    pub children: Vec<usize>,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// A symbol, with the rule that was used.
    Symbol(NonterminalId, RuleId),
    /// A word of the text.
    Word(String),
    /// The empty text: the right side of the rule above is empty.
    Empty,
}

impl Tree {
    /// Returns all nodes, the root first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the rules of the derivation, beginning at the root.
    pub fn rules(&self) -> Vec<RuleId> {
        let rule = |node: &Node| match node.label {
            Label::Symbol(_, rule) => Some(rule),
            _ => None,
        };
        self.nodes.iter().filter_map(rule).collect()
    }

    /// Formats the tree with brackets: `(S (NP Alice) (VP sleeps))`. Words that contain spaces, brackets or quotes are
    /// quoted.
    pub fn brackets(&self, grammar: &Pcfg) -> String {
        let mut out = String::new();
        // A node, or `None` for the bracket that closes one.
        let mut work = vec![Some(0)];
        while let Some(step) = work.pop() {
            let Some(at) = step else {
                out.push(')');
                continue;
            };
            if !out.is_empty() {
                out.push(' ');
            }
            let node = &self.nodes[at];
            if matches!(node.label, Label::Symbol(..)) {
                out.push('(');
                work.push(None);
            }
            let shown = name(&node.label, grammar);
            let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '(' | ')' | '"');
            if matches!(&node.label, Label::Word(word) if !word.chars().all(is_plain)) {
                let _ = write!(out, "{shown:?}");
            } else {
                out.push_str(&shown);
            }
            work.extend(node.children.iter().rev().map(|child| Some(*child)));
        }
        out
    }

    /// Draws the tree as lines for a terminal.
    ///
    /// ```text
    /// S
    /// ├─ NP
    /// │  └─ Alice
    /// └─ VP
    ///    └─ sleeps
    /// ```
    pub fn draw(&self, grammar: &Pcfg) -> String {
        let mut out = String::new();
        let mut work = vec![(0, String::new(), "")];
        while let Some((at, indent, branch)) = work.pop() {
            let node = &self.nodes[at];
            let _ = writeln!(out, "{indent}{branch}{}", name(&node.label, grammar));
            let below = match branch {
                "" => indent,
                "├─ " => indent + "│  ",
                _ => indent + "   ",
            };
            for (from_last, child) in node.children.iter().rev().enumerate() {
                work.push((*child, below.clone(), if from_last == 0 { "└─ " } else { "├─ " }));
            }
        }
        out
    }

    /// Draws the tree as SVG.
    pub fn svg(&self, grammar: &Pcfg) -> String {
        let names: Vec<String> = self.nodes.iter().map(|node| name(&node.label, grammar)).collect();
        let places = self.places(&names);
        let size = |at: fn(&(f64, f64)) -> f64| places.iter().map(at).fold(0.0, f64::max);
        let (width, height) = (size(|place| place.0) + 60.0, size(|place| place.1) + 30.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"sans-serif\" font-size=\"14\" text-anchor=\"middle\">\n<g stroke=\"#888\">\n"
        );
        for (at, node) in self.nodes.iter().enumerate() {
            for child in &node.children {
                let ((x1, y1), (x2, y2)) = (places[at], places[*child]);
                let _ = writeln!(
                    out,
                    "<line x1=\"{x1:.1}\" y1=\"{:.1}\" x2=\"{x2:.1}\" y2=\"{:.1}\"/>",
                    y1 + 6.0,
                    y2 - 14.0
                );
            }
        }
        out.push_str("</g>\n");
        for ((node, (x, y)), name) in self.nodes.iter().zip(&places).zip(&names) {
            let style = if matches!(node.label, Label::Symbol(..)) {
                ""
            } else {
                " fill=\"#06c\" font-style=\"italic\""
            };
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"{style}>{}</text>", escaped(name));
        }
        out.push_str("</svg>\n");
        out
    }

    /// Computes the positions of the nodes: leaves in a row in the order of the text, parents above the middle of their
    /// children.
    fn places(&self, names: &[String]) -> Vec<(f64, f64)> {
        let mut places = vec![(0.0, 0.0); self.nodes.len()];
        let mut right = 10.0;
        let mut work = vec![(0usize, 24.0)];
        while let Some((at, y)) = work.pop() {
            places[at].1 = y;
            if self.nodes[at].children.is_empty() {
                let width = 9.0 * f64::from(names[at].chars().count() as u32) + 20.0;
                places[at].0 = right + width / 2.0;
                right += width;
            }
            work.extend(self.nodes[at].children.iter().rev().map(|child| (*child, y + 46.0)));
        }
        for at in (0..self.nodes.len()).rev() {
            if let [first, .., last] | [first @ last] = self.nodes[at].children.as_slice() {
                places[at].0 = f64::midpoint(places[*first].0, places[*last].0);
            }
        }
        places
    }
}

fn name(label: &Label, grammar: &Pcfg) -> String {
    match label {
        Label::Symbol(id, _) => grammar.name(*id).to_owned(),
        Label::Word(word) => word.clone(),
        Label::Empty => "ε".into(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // XML cannot represent most control characters.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
