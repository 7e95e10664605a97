//! Strongly connected components: the loops of a graph.
//!
//! Equations between symbols are solved component by component. Symbols outside loops need no solving, and a loop of
//! five symbols among a thousand is a system of five unknowns.

/// The components of a graph; successors come before their predecessors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Components {
    /// The component of each node.
    pub(crate) of: Vec<u32>,
    /// The nodes of each component, ascending.
    pub(crate) members: Vec<Vec<u32>>,
}

/// Finds the components by Tarjan's algorithm, with an explicit stack because chains of symbols can be long.
pub(crate) fn components<'a>(nodes: usize, edges: impl Fn(u32) -> &'a [u32]) -> Components {
    const NEW: u32 = u32::MAX;
    let mut found = vec![NEW; nodes];
    let mut low = vec![0; nodes];
    let mut out = Components { of: vec![NEW; nodes], members: Vec::new() };
    let mut path: Vec<u32> = Vec::new();
    let mut count = 0;
    let mut work: Vec<(u32, usize)> = Vec::new();
    for root in 0..nodes as u32 {
        if found[root as usize] != NEW {
            continue;
        }
        work.push((root, 0));
        while let Some((node, next)) = work.last_mut() {
            let at = *node as usize;
            if *next == 0 {
                found[at] = count;
                low[at] = count;
                count += 1;
                path.push(*node);
            }
            if let Some(target) = edges(*node).get(*next) {
                *next += 1;
                let target = *target as usize;
                if found[target] == NEW {
                    work.push((target as u32, 0));
                } else if out.of[target] == NEW {
                    low[at] = low[at].min(found[target]);
                }
                continue;
            }
            if low[at] == found[at] {
                let number = out.members.len() as u32;
                let mut members = Vec::new();
                while let Some(member) = path.pop() {
                    out.of[member as usize] = number;
                    members.push(member);
                    if member as usize == at {
                        break;
                    }
                }
                members.sort_unstable();
                out.members.push(members);
            }
            let done = at;
            work.pop();
            if let Some((above, _)) = work.last() {
                low[*above as usize] = low[*above as usize].min(low[done]);
            }
        }
    }
    out
}

/// Returns a shortest cycle through a component, from one of its members back to it.
pub(crate) fn cycle<'a>(parts: &Components, component: u32, edges: impl Fn(u32) -> &'a [u32]) -> Vec<u32> {
    let Some(&first) = parts.members.get(component as usize).and_then(|members| members.first()) else {
        return Vec::new();
    };
    let mut came: Vec<(u32, usize)> = vec![(first, usize::MAX)];
    let mut seen = vec![false; parts.of.len()];
    let mut at = 0;
    while let Some(&(node, _)) = came.get(at) {
        for &target in edges(node) {
            if parts.of[target as usize] != component {
                continue;
            }
            if target == first {
                let mut way = vec![first];
                let mut step = at;
                while let Some(&(node, before)) = came.get(step) {
                    way.push(node);
                    step = before;
                }
                way.reverse();
                return way;
            }
            if !std::mem::replace(&mut seen[target as usize], true) {
                came.push((target, at));
            }
        }
        at += 1;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_found_and_come_in_order() {
        // 0 → 1 → 2 → 1, 2 → 3
        let edges: [&[u32]; 4] = [&[1], &[2], &[1, 3], &[]];
        let parts = components(4, |node| edges[node as usize]);
        assert_eq!(parts.members, [vec![3], vec![1, 2], vec![0]]);
        assert_eq!(cycle(&parts, parts.of[1], |node| edges[node as usize]), [1, 2, 1]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let edges: Vec<Vec<u32>> = (0..200_000u32).map(|node| vec![(node + 1).min(199_999)]).collect();
        let parts = components(edges.len(), |node| &edges[node as usize]);
        assert_eq!(parts.members.len(), edges.len());
    }
}
