//! Strongly connected components of a graph of machines and their calls.

use super::network::MachineId;

/// Computes strongly connected components (Tarjan's algorithm with an explicit stack). Returns the component of each
/// machine.
pub(crate) fn components(edges: &[Vec<MachineId>]) -> Vec<u32> {
    const NEW: u32 = u32::MAX;
    let n = edges.len();
    let (mut order, mut low, mut component) = (vec![NEW; n], vec![0; n], vec![NEW; n]);
    let (mut stack, mut clock, mut count) = (Vec::new(), 0, 0);
    let mut work: Vec<(usize, usize)> = Vec::new();
    for root in 0..n {
        if order[root] != NEW {
            continue;
        }
        work.push((root, 0));
        while let Some((v, edge)) = work.pop() {
            if edge == 0 {
                (order[v], low[v]) = (clock, clock);
                clock += 1;
                stack.push(v);
            } else {
                // The callee that was visited last is complete.
                let w = edges[v][edge - 1].index();
                if component[w] == NEW {
                    low[v] = low[v].min(low[w]);
                }
            }
            let mut next = edge;
            let descend = loop {
                let Some(&w) = edges[v].get(next) else { break None };
                next += 1;
                let w = w.index();
                if order[w] == NEW {
                    break Some(w);
                }
                if component[w] == NEW {
                    low[v] = low[v].min(order[w]);
                }
            };
            if let Some(w) = descend {
                work.push((v, next));
                work.push((w, 0));
            } else if low[v] == order[v] {
                while let Some(w) = stack.pop() {
                    component[w] = count;
                    if w == v {
                        break;
                    }
                }
                count += 1;
            }
        }
    }
    component
}
