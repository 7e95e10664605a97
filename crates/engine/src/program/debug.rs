//! The network of a program in readable form: as a list, or as a graph.
//!
//! ```text
//! machine 0 `root`, starts at 3
//!      0  end
//!      1  call leaf 0, then 0
//!      3  b'[' then 1
//! leaf 0: automaton with 7 states
//! ```

use core::fmt;

use super::Program;
use crate::leaf::Leaf;
use crate::program::network::{Callee, Machine, Node, NodeId};

/// A list of the machines of a program, node by node, with its loops, scopes and leaves.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'p>(&'p Program);

/// A graph of the machines of a program, in the DOT language of Graphviz.
#[derive(Clone, Copy, Debug)]
pub struct Dot<'p>(&'p Program);

impl Program {
    /// Returns the number of nodes of all machines together.
    pub fn node_count(&self) -> usize {
        self.network.nodes.len()
    }

    /// Returns the network as a list.
    pub fn describe(&self) -> Listing<'_> {
        Listing(self)
    }

    /// Returns the network as a graph. Calls are boxes; dashed edges take no byte.
    pub fn to_dot(&self) -> Dot<'_> {
        Dot(self)
    }

    fn machine_name(&self, machine: &Machine) -> &str {
        self.names.iter().find(|(expr, _)| *expr == machine.expr).map_or("(shared part)", |(_, name)| name)
    }

    fn callee_name(&self, callee: Callee) -> String {
        match callee {
            Callee::Machine(index) => match self.network.machines.get(index.index()) {
                Some(machine) => format!("machine {} `{}`", index.0, self.machine_name(machine)),
                None => format!("machine {}", index.0),
            },
            Callee::Leaf(leaf) => format!("leaf {}", leaf.index()),
            Callee::Loop(index) => format!("loop {}", index.0),
            Callee::Scope(index) => format!("scope {}", index.0),
            Callee::Limit(index) => format!("limit {}", index.0),
            Callee::Check => "check".to_owned(),
        }
    }
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.0;
        for (index, machine) in program.network.machines.iter().enumerate() {
            let (name, starts) = (program.machine_name(machine), Numbers(&machine.start));
            writeln!(f, "machine {index} `{name}`, starts at {starts}")?;
            for node in machine.nodes.iter().chain(machine.shared.iter()) {
                write!(f, "{node:>6}  ")?;
                self.node(program.network.nodes[node.index()], f)?;
            }
        }
        for (index, counted) in program.network.loops.iter().enumerate() {
            writeln!(f, "loop {index}: machine {}, {}", counted.body.0, Bounds(counted.min, counted.max))?;
        }
        for (index, scope) in program.network.scopes.iter().enumerate() {
            let (required, needs) = (scope.required.len(), scope.needs.len());
            write!(f, "scope {index}: machine {}, {required} keys required", scope.body.0)?;
            if needs > 0 {
                write!(f, ", {needs} pairs of which one needs the other")?;
            }
            match &scope.words {
                Some(words) => write!(f, ", a set of {} words", words.words.len())?,
                None => write!(f, ", no set of words")?,
            }
            if scope.has_list() {
                write!(f, ", listed values: {:?}", scope.values)?;
            }
            writeln!(f)?;
        }
        for (index, leaf) in program.leaves.iter().enumerate() {
            writeln!(f, "leaf {index}: {}", Kind(leaf))?;
        }
        Ok(())
    }
}

impl Listing<'_> {
    fn node(self, node: Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match node {
            Node::Byte { low, high, next } => writeln!(f, "{} then {next}", Bytes(low, high)),
            Node::Split { start, len } => {
                writeln!(f, "split to {}", Numbers(self.0.network.targets(start, len)))
            }
            Node::Call { callee, next } => {
                writeln!(f, "call {}, then {next}", self.0.callee_name(callee))
            }
            Node::Final => writeln!(f, "end"),
        }
    }
}

impl fmt::Display for Dot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.0;
        writeln!(f, "digraph network {{\n  rankdir=LR;\n  node [shape=circle, label=\"\"];")?;
        for (index, machine) in program.network.machines.iter().enumerate() {
            let name = Quoted(&format!("machine {index} {}", program.machine_name(machine))).to_string();
            writeln!(f, "  subgraph cluster_{index} {{\n    label={name};")?;
            writeln!(f, "    start{index} [shape=point];")?;
            for &start in &machine.start {
                writeln!(f, "    start{index} -> n{start};")?;
            }
            for node in machine.nodes.iter().chain(machine.shared.iter()) {
                self.node(node, f)?;
            }
            writeln!(f, "  }}")?;
        }
        writeln!(f, "}}")
    }
}

impl Dot<'_> {
    fn node(self, index: NodeId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.network.nodes[index.index()] {
            Node::Byte { low, high, next } => {
                let label = Bytes(low, high).to_string();
                writeln!(f, "    n{index} -> n{next} [label={}];", Quoted(&label))
            }
            Node::Split { start, len } => {
                writeln!(f, "    n{index} [shape=point];")?;
                for target in self.0.network.targets(start, len) {
                    writeln!(f, "    n{index} -> n{target} [style=dashed];")?;
                }
                Ok(())
            }
            Node::Call { callee, next } => {
                let label = self.0.callee_name(callee);
                writeln!(f, "    n{index} [shape=box, label={}];", Quoted(&label))?;
                writeln!(f, "    n{index} -> n{next} [style=dashed];")
            }
            Node::Final => writeln!(f, "    n{index} [shape=doublecircle];"),
        }
    }
}

/// Displays a byte, or a range of bytes.
struct Bytes(u8, u8);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b'{}'", self.0.escape_ascii())?;
        if self.0 != self.1 {
            write!(f, "–b'{}'", self.1.escape_ascii())?;
        }
        Ok(())
    }
}

/// Displays numbers separated by commas.
struct Numbers<'n>(&'n [NodeId]);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, number) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{number}")?;
        }
        Ok(())
    }
}

/// Displays a minimum and a maximum; `u32::MAX` stands for "no bound".
struct Bounds(u32, u32);

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            u32::MAX => write!(f, "at least {} times", self.0),
            max => write!(f, "{} to {max} times", self.0),
        }
    }
}

/// Displays the kind of a leaf.
struct Kind<'l>(&'l Leaf);

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Leaf::Window { automaton, min, max } => {
                write!(f, "automaton with {} states", automaton.len())?;
                if (*min, *max) != (0, u32::MAX) {
                    write!(f, ", units {}", Bounds(*min, *max))?;
                }
                Ok(())
            }
            Leaf::Text(text) if text.is_except() => f.write_str("JSON string that is not in a list of words"),
            Leaf::Text(_) => f.write_str("JSON string with a condition on its text"),
        }
    }
}

/// Displays a text in the quotes of the DOT language.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
