//! Finds the combinations of languages that a text can be in at the same time.
//!
//! n languages divide all texts into up to 2ⁿ sets, by the languages that contain a text. Usually most of these sets
//! are empty: if every language has its own prefix, n + 1 are not. Testing each set for emptiness would take 2ⁿ tests.
//! Instead all languages are read together, once. A state lists what remains of each language that is still alive, so
//! it determines the set of the texts that lead to it.
//!
//! ```text
//!   x.*   .*z          ─x─▶  .*   .*z         inside the first
//!                              ─z─▶  .*   (.*z | ε)    inside both
//! ```

use rustc_hash::FxHashSet;

use crate::derivative::Derivatives;
use crate::{ByteClasses, ExprId, Exprs, LimitError, Limits};

/// A set of languages such that some text is in all of them and in no other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Membership {
    /// For each language, whether the text is in it.
    pub inside: Vec<bool>,
    /// The shortest such text, and the least of these.
    pub witness: Vec<u8>,
}

/// The result of [`memberships`].
#[derive(Clone, Debug)]
pub struct Memberships {
    /// The combinations, those with the shortest texts first.
    pub found: Vec<Membership>,
    /// The number of states that were needed to distinguish them.
    pub states: usize,
}

/// Finds the sets of languages that texts of `universe` can be in. Stops when more than `most` are found.
///
/// ```
/// use maskwright_automata::{Exprs, Limits, memberships};
/// let mut e = Exprs::new();
/// let (a, b) = (e.bytes(b"a"), e.bytes(b"b"));
/// let ab = e.alt([a, b]);
/// let (any, letters) = (e.star(ab), e.star(a));
/// let all = memberships(&mut e, any, &[letters, a], &Limits::default(), 100).unwrap();
/// let inside: Vec<_> = all.found.iter().map(|one| (&*one.inside, &*one.witness)).collect();
/// assert_eq!(inside, [(&[true, false][..], &b""[..]), (&[true, true], b"a"), (&[false, false], b"b")]);
/// ```
pub fn memberships(
    exprs: &mut Exprs,
    universe: ExprId,
    languages: &[ExprId],
    limits: &Limits,
    most: usize,
) -> Result<Memberships, LimitError> {
    let roots = languages.iter().chain([&universe]);
    let classes = ByteClasses::new(roots.flat_map(|&root| exprs.sets_of(root)).collect::<Vec<_>>());
    let width = classes.len();
    let mut derivatives = Derivatives::new(classes);
    let mut fuel = limits.fuel();
    let last = languages.len() as u32;
    // The universe is the last member of every state; where it is dead, there is no state.
    let start = (0..).zip(languages.iter().copied().chain([universe]));
    let start: Box<[(u32, ExprId)]> = start.filter(|(_, expr)| *expr != ExprId::NEVER).collect();
    if start.last().is_none_or(|(number, _)| *number != last) {
        return Ok(Memberships { found: Vec::new(), states: 0 });
    }
    let mut known: FxHashSet<Box<[(u32, ExprId)]>> = FxHashSet::from_iter([start.clone()]);
    let mut states = vec![start];
    let mut came_from: Vec<(u32, u8)> = vec![(0, 0)];
    let mut met: FxHashSet<Vec<bool>> = FxHashSet::default();
    let mut found = Vec::new();
    let mut bytes = 0;
    let mut at = 0;
    while let Some(state) = states.get(at).cloned() {
        if exprs.is_nullable(state[state.len() - 1].1) {
            let mut inside = vec![false; languages.len()];
            for &(number, expr) in &state[..state.len() - 1] {
                inside[number as usize] = exprs.is_nullable(expr);
            }
            if met.insert(inside.clone()) {
                found.push(Membership { inside, witness: trace_back(&came_from, at) });
                if found.len() > most || languages.len() < 16 && found.len() == 1 << languages.len() {
                    break;
                }
            }
        }
        for class in 0..width {
            fuel.spend(state.len())?;
            let class = class as u8;
            let mut next = Vec::with_capacity(state.len());
            // The universe comes first: where it is dead, the rest does not matter.
            for &(number, expr) in state.iter().rev() {
                let after = derivatives.derive(exprs, expr, class, limits, &mut fuel)?;
                if after != ExprId::NEVER {
                    next.push((number, after));
                } else if number == last {
                    break;
                }
            }
            next.reverse();
            if next.is_empty() || known.contains(&*next) {
                continue;
            }
            let next: Box<[(u32, ExprId)]> = next.into();
            bytes += 2 * size_of_val(&*next) + 64;
            limits.check_states(states.len() + 1)?;
            limits.check_bytes(bytes + exprs.memory() + derivatives.memory())?;
            known.insert(next.clone());
            states.push(next);
            came_from.push((at as u32, derivatives.representative(class)));
        }
        at += 1;
    }
    Ok(Memberships { found, states: states.len() })
}

/// Returns the bytes that lead to a state.
fn trace_back(came_from: &[(u32, u8)], mut at: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while at != 0 {
        let (before, byte) = came_from[at];
        bytes.push(byte);
        at = before as usize;
    }
    bytes.reverse();
    bytes
}
