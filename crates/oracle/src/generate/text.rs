//! Random texts of a grammar, and texts with a small mistake.

use super::Rng;
use crate::Oracle;

/// Returns a random text of the grammar; `None` if it has none.
///
/// Bytes are drawn from those that may come next. After `length` of them, or earlier if the text is complete, the
/// shortest way to the end is taken.
pub fn text(rng: &mut Rng, oracle: &Oracle, length: usize) -> Option<Vec<u8>> {
    let mut state = oracle.start();
    let mut bytes = Vec::new();
    while bytes.len() < length && !(oracle.is_accepting(&state) && rng.one_in(6)) {
        let next = oracle.next_bytes(&state);
        let Some((byte, after)) = favored(rng, &next) else { break };
        bytes.push(*byte);
        state = after.clone();
    }
    bytes.extend(oracle.completion(&state)?);
    Some(bytes)
}

/// Returns a member, preferably one of a few characteristic bytes: where a class allows two hundred bytes, a quote
/// among them would hardly ever be drawn.
fn favored<'a, T>(rng: &mut Rng, next: &'a [(u8, T)]) -> Option<&'a (u8, T)> {
    const TELLING: &[u8] = b"\"\\abn/u0{}[],:";
    let telling: Vec<&(u8, T)> = next.iter().filter(|(byte, _)| TELLING.contains(byte)).collect();
    if !telling.is_empty() && !rng.one_in(4) { rng.choose(&telling).copied() } else { rng.choose(next) }
}

/// Returns the text with a small mistake: a byte lost, doubled, swapped or changed.
pub fn mutate(rng: &mut Rng, text: &[u8]) -> Vec<u8> {
    const OTHER: &[u8] = b"ab\"\\u0\n\xC3\xA9\xFF";
    let mut bytes = text.to_vec();
    let other = OTHER[rng.below(OTHER.len())];
    if bytes.is_empty() {
        return vec![other];
    }
    let at = rng.below(bytes.len());
    match rng.below(5) {
        0 => {
            bytes.remove(at);
        }
        1 => bytes.insert(at, bytes[at]),
        2 => bytes.insert(at, other),
        3 => bytes.swap(at, text.len() - 1),
        _ => bytes[at] = other,
    }
    bytes
}
