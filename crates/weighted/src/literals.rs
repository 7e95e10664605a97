//! All literals of a grammar as one tree, with the weights of each symbol below each node.
//!
//! ```text
//! A -> to [.5] | toad [.2] | tie [.3]     B -> toad [.4] | bee [.6]
//!
//!               root ┬─ b e e           bee         B .6
//!                    └─ t ┬─ i e        tie         A .3
//!                         │             (inner)     A 1    B .4
//!                         └─ o ┬        to          A .7   B .4
//!                              └─ a d   toad        A .2   B .4
//! ```
//!
//! An edge has the bytes that all literals below it share, so there are at most two nodes per literal, of any length.
//! Each node has, for every symbol with a rule that can begin with a literal below the node, the total weight of those
//! rules. If a column wants A three times as much as B, the weight below the node `to` is 3·.7 + .4.

use maskwright_grammar::{Diagnostic, Span};

use crate::semiring::Semiring;
use crate::tables::{Lists, Tables};

#[derive(Debug)]
pub(crate) struct Literals<S: Semiring> {
    /// With their symbols, sorted by their bytes.
    sorted: Vec<(Box<[u8]>, u32)>,
    nodes: Vec<Node>,
    /// For each node, the symbols that can begin with a literal below it, ascending, with the weights of those rules.
    sums: Lists<(u32, S::Value)>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The literals below it.
    low: u32,
    high: u32,
    /// The number of bytes that they all share.
    shared: u32,
    /// Its children are the nodes from `first` on, by their next byte.
    first: u32,
    children: u32,
}

impl<S: Semiring> Literals<S> {
    /// The node before any byte.
    pub(crate) const ROOT: u32 = 0;

    /// Builds the tree. `most` is the greatest number of stored weights.
    pub(crate) fn new(
        mut literals: Vec<(Box<[u8]>, u32)>,
        tables: &Tables<S>,
        most: usize,
    ) -> Result<Self, Diagnostic> {
        literals.sort_unstable();
        let high = literals.len() as u32;
        // The root shares nothing, so every literal is below a child of it.
        let mut nodes = vec![Node { low: 0, high, shared: 0, first: 0, children: 0 }];
        let mut at = 0;
        while at < nodes.len() {
            let Node { mut low, high, shared, .. } = nodes[at];
            let first = nodes.len() as u32;
            // The shortest literal comes first, and ends here if it has no more bytes.
            low += u32::from(low < high && literals[low as usize].0.len() == shared as usize);
            while low < high {
                let byte = literals[low as usize].0[shared as usize];
                let same = |entry: &(Box<[u8]>, u32)| entry.0[shared as usize] == byte;
                let end = low + literals[low as usize..high as usize].partition_point(same) as u32;
                let (least, greatest) = (&literals[low as usize].0, &literals[end as usize - 1].0);
                let common = least.iter().zip(greatest).take_while(|(a, b)| a == b).count();
                nodes.push(Node { low, high: end, shared: common as u32, first: 0, children: 0 });
                low = end;
            }
            nodes[at].first = first;
            nodes[at].children = nodes.len() as u32 - first;
            at += 1;
        }
        let sums = sums(&literals, &nodes, tables, most)?;
        Ok(Self { sorted: literals, nodes, sums })
    }

    /// Returns the node after one more byte, for a node that was read up to `depth`.
    pub(crate) fn step(&self, node: u32, depth: u32, byte: u8) -> Option<u32> {
        let here = &self.nodes[node as usize];
        if depth < here.shared {
            let next = self.sorted[here.low as usize].0[depth as usize];
            return (next == byte).then_some(node);
        }
        let children = &self.nodes[here.first as usize..(here.first + here.children) as usize];
        let next = |child: &Node| self.sorted[child.low as usize].0[depth as usize];
        let found = children.binary_search_by_key(&byte, next).ok()?;
        Some(here.first + found as u32)
    }

    /// Returns the literal that ends where a node was read up to `depth`.
    pub(crate) fn ended(&self, node: u32, depth: u32) -> Option<u32> {
        let (bytes, symbol) = &self.sorted[self.nodes[node as usize].low as usize];
        (bytes.len() == depth as usize).then_some(*symbol)
    }

    /// Checks whether there is a longer literal.
    pub(crate) fn goes_on(&self, node: u32, depth: u32) -> bool {
        let here = &self.nodes[node as usize];
        depth < here.shared || here.children > 0
    }

    /// Returns the literals below a node, by rank.
    pub(crate) fn range(&self, node: u32) -> (u32, u32) {
        let here = &self.nodes[node as usize];
        (here.low, here.high)
    }

    /// Returns the weight of all rules that begin with a literal below a node, multiplied with how much their symbols
    /// are wanted. `want` is ascending.
    pub(crate) fn mass(&self, node: u32, want: &[(u32, S::Value)]) -> S::Value {
        let sums = self.sums.of(node);
        // The shorter list is iterated, and the longer one is searched.
        let (few, many) = if sums.len() < want.len() { (sums, want) } else { (want, sums) };
        few.iter().fold(S::ZERO, |sum, (symbol, weight)| {
            match many.binary_search_by_key(symbol, |entry| entry.0) {
                Ok(found) => S::add(sum, S::mul(*weight, many[found].1)),
                Err(_) => sum,
            }
        })
    }

    /// Returns a literal by its rank, with its symbol.
    pub(crate) fn literal(&self, rank: u32) -> (&[u8], u32) {
        let (bytes, symbol) = &self.sorted[rank as usize];
        (bytes, *symbol)
    }

    /// Returns the memory in bytes, approximately.
    pub(crate) fn heap_bytes(&self) -> usize {
        let texts = self.sorted.iter().map(|literal| literal.0.len() + 24).sum::<usize>();
        texts + size_of_val(&*self.nodes) + self.sums.heap_bytes()
    }

    /// Returns the symbols of all literals, by rank.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.sorted.iter().map(|literal| literal.1))
    }
}

/// Adds up the rules below each node, children first. The root's sum is never used.
fn sums<S: Semiring>(
    literals: &[(Box<[u8]>, u32)],
    nodes: &[Node],
    tables: &Tables<S>,
    most: usize,
) -> Result<Lists<(u32, S::Value)>, Diagnostic> {
    let mut sums: Vec<Vec<(u32, S::Value)>> = vec![Vec::new(); nodes.len()];
    let mut entries = 0;
    for (at, node) in nodes.iter().enumerate().skip(1).rev() {
        let mut all = Vec::new();
        let (bytes, symbol) = &literals[node.low as usize];
        if bytes.len() == node.shared as usize {
            all.extend(tables.starts(*symbol).iter().map(|start| (start.left, start.weight)));
        }
        for child in node.first..node.first + node.children {
            all.extend(&sums[child as usize]);
        }
        all.sort_by_key(|entry| entry.0);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = S::add(kept.1, next.1);
            }
            same
        });
        entries += all.len();
        if entries > most {
            let message = "too many symbols begin with too many literals";
            return Err(Diagnostic::error(Span::default(), message)
                .with_help("give the words a symbol of their own, and let the others begin with it"));
        }
        sums[at] = all;
    }
    Ok(Lists::new(sums))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Pcfg, Real};

    #[test]
    fn every_place_has_the_weight_of_what_is_below() {
        let source = "S -> A B\nA -> to [.5] | toad [.2] | tie [.3]\nB -> toad [.4] | bee [.6]";
        let pcfg = Pcfg::parse(source, &Options::default()).unwrap();
        let tables = Tables::<Real>::new(&pcfg).unwrap();
        let all = ["to", "toad", "tie", "bee"].map(|text| {
            let symbol = tables.core.terminal_symbol(pcfg.literal(text).unwrap());
            (text.as_bytes().into(), symbol)
        });
        let literals = Literals::new(all.to_vec(), &tables, 100).unwrap();
        let below = |text: &str, want: &[(u32, f64)]| {
            let mut node = Literals::<Real>::ROOT;
            for (depth, byte) in (0..).zip(text.bytes()) {
                node = literals.step(node, depth, byte)?;
            }
            Some(literals.mass(node, want))
        };
        let (a, b) = (pcfg.nonterminal("A").unwrap().0, pcfg.nonterminal("B").unwrap().0);
        let near = |got: Option<f64>, wanted: f64| assert!((got.unwrap() - wanted).abs() < 1e-12, "{got:?}");
        near(below("t", &[(a, 1.0)]), 1.0);
        near(below("to", &[(a, 3.0), (b, 1.0)]), 3.0 * 0.7 + 0.4);
        near(below("toa", &[(b, 0.5)]), 0.2);
        near(below("be", &[(a, 1.0)]), 0.0);
        assert_eq!(below("ti", &[]), Some(0.0));
        assert_eq!((below("ta", &[(a, 1.0)]), below("toads", &[(a, 1.0)])), (None, None));
        // A node for each of the four, one where `ti` and `to` branch, and the root.
        assert_eq!(literals.nodes.len(), 6);
        assert!(Literals::new(all.to_vec(), &tables, 3).is_err());
    }
}
